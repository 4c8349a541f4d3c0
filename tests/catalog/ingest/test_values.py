"""What people write in the fields of product files, and what it means."""

from collections.abc import Callable
from typing import Any

import pytest

from ecomlab.catalog.ingest import attributes, prices, short_names, text, types, values
from ecomlab.catalog.ingest.rows import _brand
from ecomlab.catalog.ingest.values import COUNT_UNREAD, STOCK_NONE, STOCK_SOME, read_stock
from ecomlab.catalog.real import _said


def first(read: Callable[..., tuple[Any, Any]], *more: Any) -> Callable[[Any], Any]:
    """What is read, without the names of the repairs."""
    return lambda said: read(said, *more)[0]


def shown(found: dict[str, attributes.Found]) -> dict[str, str]:
    return {name: value for name, (value, _) in found.items()}


def name_of(kind: types.Kind | None) -> str | None:
    return kind.name if kind else None


def kind_of(title: str) -> str | None:
    """The type in a title, which a customer can say."""
    name = name_of(types.of_title(title))
    assert name is None or types.is_speakable(name)
    return name


TOWELS = ("Home", "Bath", "Towels")
RED_M = {"Color": "Red", "Size": "M"}
READ: dict[str, tuple[Callable[[Any], Any], list[tuple[Any, Any]]]] = {
    "price": (first(prices.read_price, "USD"), [
        (12.5, 1250), ("12.5", 1250), ("$1,299.00", 129900), ("1.299,00", 129900), ("USD 5", 500), ("None", None),
        ("10.99 - 15.99", 1099), ("$5 to $9", 500), ("from $3", 300), ("", None), ("call", None), ("€9", None),
        ("-3", None), (0, None), ("nan", None), (float("inf"), None), ("1e30", None), (True, None), (10**400, None),
        # what is not sure is no price: some of several, thousands, cents
        ("$1.2k", None), ("1.5M", None), ("5 for $10", None), ("3/$10", None), ("$10 for 2", None), ("2 x $3", None),
        ("Buy 2 get 1 free", None), ("12/15", None), ("50¢", None), ("99 cents", None), ("$1e3", None),
        ("$-5", None), ("USD -5", None), ("–5", None), ("5,-", 500), ("was $20.00, now $15.00", 1500),
        ("$20.00 $15.00", 1500), ("20% off $9.99", 999), ("between $5 and $9", 500), ("$.99", 99),
        ("$1 299.99", 129_999), ("1'299.00", 129_900), ("$1O.99", None), ("1.2.3", None),
        # others than a former price stand beside it: of a unit, a saving, another half of it
        ("$15.00 ($1.25 / oz)", None), ("$5 off $20", None), ("$15 + $4.99 shipping", None), ("35€99", None),
        ("AU $5", None), ("US $5", 500),
    ]),
    "price in euros": (lambda said: prices.read_price(said, "EUR"), [
        ("1.299,00 €", (129_900, (prices.TEXT,))),
        ("$5", (None, (prices.CURRENCY,))),
        ("12,90 ¤", (1290, (prices.TEXT,))),  # Latin-9 writes the euro by the byte of another sign in Windows-1252
    ]),
    "price in Australian dollars": (first(prices.read_price, "AUD"), [("AU $5", 500)]),
    "currency": (prices.currency_of, [("12,90 ¤", "EUR"), ("19", None)]),
    "count": (first(values.read_count), [
        ("1,234 ratings", 1234), ("12.0", 12), ("1.2k", 1200), ("2M+", 2_000_000), ("3 km", 3), ("many", None),
        ("1.2 k", 1200), ("1,5K", 1500), ("(1,234)", 1234), ("1.234", 1234), (1.234, 1), ("~100", 100),
        ("over 1,000", 1000), ("4.5 out of 5", None), ("3/5", None), ("10%", None), ("1.2.3", None),
    ]),
    "stock": (first(read_stock), [  # oversold units are written below zero: none is drawn for them
        (4, 4), ("12", 12), ("0", 0), (-3, 0), ("-3", 0), ("Out of stock", 0), ("sold-out", 0), ("backordered", 0),
        (False, 0), (True, None), ("Only 3 left", 3), ("12 in stock", 12), ("In stock", None), ("many", None),
        ("", None),
    ]),
    "stock in four languages": (read_stock, [
        *((said, (0, (STOCK_NONE,))) for said in (
            "En rupture", "épuisé", "Agotado", "non", "nicht auf Lager", "https://schema.org/OutOfStock",
        )),
        *((said, (None, (STOCK_SOME,))) for said in (
            "oui", "Sí", "ja", "In stock", True, "http://schema.org/LimitedAvailability",
        )),
        ("pas clair", (None, (COUNT_UNREAD,))),
    ]),
    "rating": (first(values.read_rating), [
        (4.5, 45), ("4,5", 45), ("4.5 out of 5 stars", 45), ("out of 5: 4.2", 42), ("9/10", 45), ("80%", 40),
        ("★★★★☆", 40), (0, None), ("none", None), (7, None), ("-4", None), (True, None),
    ]),
    "days": (first(values.read_days, 60), [
        (2, 2), ("2", 2), ("3-5 days", 3), ("2 jours", 2), ("48h", 2), ("24 hrs", 1), ("120 hours", 5),
        ("30 heures", 2), ("2 weeks", 14), ("1 month", 30), ("9 weeks", 60), ("soon", None),
        (None, None), ("400", 60),
    ]),
    "category path": (values.read_path, [
        *((said, TOWELS) for said in (
            ["Home", "Bath", "Towels"], "Home > Bath > Towels", "Home|Bath|Towels", "/Home/Bath/Towels",
            "Home :: Bath :: Towels", "['Home', 'Bath', 'Towels']", '["Home", "Bath", "Towels"]',
            "['Home' 'Bath' 'Towels']", [["Home", "Bath", "Towels"]], "Home; Bath; Towels", "Home / Bath / Towels",
        )),
        # of several paths from one root the deepest counts
        ("Home > Office > Chairs, Home > New", ("Home", "Office", "Chairs")),
        ("Default/Men/Tops,Default/Sale,Default", ("Default", "Men", "Tops")),
        ("Pets/Sale;Pets/Dogs/Beds", ("Pets", "Dogs", "Beds")), ("Tops|Tops > Hoodies", ("Tops", "Hoodies")),
        ("Health, Home & Baby > Vitamins, Minerals > Zinc", ("Health, Home & Baby", "Vitamins, Minerals", "Zinc")),
        ("A/V | A/V Cables", ("A/V", "A/V Cables")), ({"id": 5, "name": "Lamps"}, ("Lamps",)),
    ]),
    "details": (first(values.read_table), [
        *((said, RED_M) for said in (
            RED_M, '{"Color": "Red", "Size": "M"}', "{'Color': 'Red', 'Size': 'M'}", "Color: Red; Size: M",
            '{"Color": "Red", "Size": "M"', [["Color", "Red"], ["Size", "M"]],
            [{"name": "Color", "value": "Red"}, {"name": "Size", "value": "M"}],
        )),
        ("brand=Luma,climate=Cool, Cold,color=Red", {"brand": "Luma", "climate": "Cool, Cold", "color": "Red"}),
        ([{"name": "Power", "value": 600, "unitText": "W"}], {"Power": "600 W"}),
    ]),
    "single value": (first(values.single), [
        ({"@type": "QuantitativeValue", "value": "3", "unitCode": "LBR"}, "3 LBR"),
    ]),
    "value with the unit of its column": (lambda said: attributes.with_unit("Weight (lbs)", said), [
        ("41", "41 lbs"), ("41 kg", "41 kg"),
    ]),
    "attributes in a title": (
        lambda title: shown(attributes.read_title(title)[0]), [
        ("Cable 6-Foot Blk", {"length": "6 ft", "color": "Black"}),
        ("Cable 72 Inches", {"size_in_inches": "72 inches"}),
        ("Drive 1000 GB USB 3.0", {"storage": "1 TB", "connector": "USB"}),
        ("Case for iPad 2 Red Black", {"works_with": "iPad 2"}),  # two colours: neither is sure
        ("Kettle 1.5 L 1.2 kW", {"volume": "1.5 L", "power": "1200W"}), ("Pens, Pack of 12", {"pack_size": "12-Pack"}),
        ("M size", {}),
    ]),
    "attribute in a column": (
        lambda said: shown(attributes.of_value(said[0], said[1], "details")), [
        (("Item Weight", "2.2 pounds"), {"weight": "998 g"}), (("Colour", "grey"), {"color": "Gray"}),
        (("Number of Items", "2"), {"pack_size": "2-Pack"}), (("Colour", "as in the picture"), {}),
        (("Item Weight", "5 lb"), {"weight": "2.3 kg"}), (("Item Weight", "850 g"), {"weight": "850 g"}),
    ]),
    "type in a title": (kind_of, [
        ("Koss EQ50 3-Band Stereo Equalizer", "Equalizer"), ("Leather Case for iPad 2", "Tablet Case"),
        ("Kinamax Optical Scroll Wheel Mouse with Retractable Cable", "Mouse"),
        ("New-TOPS 63960 - Docket Perforated Pads Legal Rule - TOP63960", "Notepad"),
        ("Western Digital 1 TB Internal Hard Drive - WD10EARX", "Hard Drive"), ("Lost 16GB Uber", None),
        # a customer asks for one of what is not counted
        ("Hammermill Fore MP Copy Paper, Letter", "Pack of Paper"), ("Elmer's School Glue", "Adhesive"),
        ("Scotch Magic Tape", "Roll of Tape"), ("Sony MDR Stereo Headphones", "Headphone Set"),
        ("Synology NAS", "Network Drive"), ("Acme Dog Food", "Bag of Dog Food"),
    ]),
    "type of a category": (lambda level: name_of(types.of_path(("Shop", level))), [
        ("Bookshelves", "Bookshelf"), ("Hoodies", "Hoodie"), ("All Laptops", "Laptop"),
        ("Gloves", "Pair of Gloves"), ("Sneaker", "Pair of Sneakers"), ("slippers", "Pair of Slippers"),
        ("Trellises", "Trellis"), ("Potatoes", "Potato"),
        ("Rice", "Bag of Rice"), ("Basmati Rice", "Bag of Basmati Rice"),
    ]),
    "plural": (types.plural, [
        ("Battery", "Batteries"), ("Earring", "Earrings"), ("Headphones", "Headphones"),
        ("Pack of Paper", "Packs of Paper"),
    ]),
    "brand, without the legal form that nobody says": (_brand, [
        ("Creative Essentials LLC", "Creative Essentials"), ("Apricorn, Inc.", "Apricorn"), ("Alvin and Co", "Alvin"),
        ("Visit the Anker Store", "Anker"), ("The Neat Company", "The Neat Company"), ("Co", "Co"), ("SA", "SA"),
        ("Taurus S.A.", "Taurus"), ("Rowenta SARL", "Rowenta"), ("Cecotec S.L.", "Cecotec"), ("Acme S.A.S.", "Acme"),
        ("Sally Hansa", "Sally Hansa"),
    ]),
    "name in plain letters": (_said, [
        ("Müller & Söhne", "Muller-Sohne"), ("Straße", "Strasse"), ("Løvenholm", "Lovenholm"), ("华为", None),
        ("SUPER-SPEED", "Super-Speed"), ("HDMI-SATA", "HDMI-SATA"), ("ASUS-LCD", "ASUS-LCD"),
    ]),
    "short name, which people say": (lambda said: short_names.feature(*said), [
        (("Koss EQ50 3-Band Stereo Equalizer", "Koss", "Equalizer"), "EQ50"),
        (("Logitech Performance Mouse MX", "Logitech", "Mouse"), "Performance"),
        (("Belkin F3U134-06 USB Extension Cable - 6ft", "Belkin", "Cable"), "F3U134-06"),
        (("Velvet Cover for SONY A900", "eforcity", "Cover"), ""),
        (("SanDisk Cruzer Micro 16 GB USB 2.0 Flash Drive SDCZ6-016G-A11", "SanDisk", "Flash Drive"), "Cruzer"),
        (("Bluelounge Small Multi Purpose Cable Clips", "BlueLounge", "Cable Cover"), "Multi-Purpose"),
        (("Kingston 100PK DVD Discs 4.7GB - Spindle", "Kingston", "Disc"), ""),  # after the noun
        (("Acme 3 Feet Male Cable", "Acme", "Cable"), ""),  # counted
        (("HP Black Print Cartridge", "HP", "Ink Cartridge"), ""),  # nobody says "Print Ink Cartridge"
        (("Elmer's Elmer School Glue E623", "Elmer's", "Adhesive"), "E623"),  # not "Elmer-E623"
        (("Caselogic UMA-103 Laptop Sleeve", "Case Logic", "Laptop Sleeve"), "UMA-103"),
        (("TDK DVD-R 1X-4X Disc", "TDK", "Disc"), ""),  # a speed
        (("StarTech Express Dual Adapter Card - PEXUSB3S2", "StarTech", "Adapter"), "PEXUSB3S2"),
        (("Kingston 8GB MHz Memory Module", "Kingston", "Memory Module"), ""),  # a unit
        (("Duracell 3.7 Volt Lithium Ion Battery DRF60RES", "Duracell", "Battery"), "DRF60RES"),  # not "Ion"
    ]),
    "short name beside a type that the category gives": (lambda said: types.without_words(said, "Yoga Mat"), [
        ("Drift Yoga", "Drift"), ("Drift Pulse", "Drift Pulse"),
    ]),
    "text, and what it was mended of": (text.clean, [
        ("Caf\u00c3\u00a9 Lamp", ("Café Lamp", (text.ENCODING,))),
        ("Lamp \u201cX\u201d", ('Lamp "X"', ())),  # quotes, not letters
        ("Lamp &amp; Caf\u00c3\u00a9", ("Lamp & Café", (text.ENCODING, text.MARKUP))),
        ("<b>Lamp&#65532;</b>", ("Lamp", (text.MARKUP, text.CONTROL))),  # U+FFFC counts as printable
        ("<b>Caf&Atilde;&copy;</b>", ("Caf\u00c3\u00a9", (text.MARKUP,))),  # nobody mended its letters
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "said", "expected"), [(what, *case) for what, (_, cases) in READ.items() for case in cases]
)
def test_a_field_is_read_as_a_person_reads_it(what: str, said: Any, expected: Any) -> None:
    assert READ[what][0](said) == expected


def test_what_was_made_of_a_price_is_said() -> None:
    assert all(prices.read_price(said, "USD")[1] for said in ("5 for $10", "$5 - $9", "$1.2k", "now $3"))
    assert prices.read_price(float("nan"), "USD") == (None, ())  # a missing number is no impossible price


def test_what_was_read_before_does_not_answer_for_a_truth_value() -> None:
    """1 == True, also for a cache."""
    for said, expected in ((1, (100, 10, 1)), (True, (None, None, None))):
        read = prices.read_price(said, "USD")[0], values.read_rating(said)[0], values.read_count(said)[0]
        assert read == expected


def test_nobody_asks_for_a_mass_or_for_a_shelf() -> None:
    for level in "Pet Food,Car Audio,Nursing,Crockery,Accessories,Electronics,Womens,New Arrivals,Party Supplies".split(
        ","
    ):
        name = str(name_of(types.of_path((level,))))
        assert not types.is_speakable(name) and types.plural(name) == name
    assert name_of(types.of_path(("Shoes", "Womens"))) == "Pair of Shoes"  # the level above says it
    assert types.is_speakable("Pair of Jeans") and types.plural("Pair of Jeans") == "Pairs of Jeans"


def test_every_type_is_speakable_and_has_one_department() -> None:
    home: dict[str, str] = {}
    for kind in types.names().kinds.values():
        assert types.is_speakable(kind.name), kind
        assert home.setdefault(kind.name, kind.department) == kind.department
