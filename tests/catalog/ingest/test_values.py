"""What people write in the fields of product files, and what it means."""

from collections.abc import Callable

import pytest

from ecomlab.catalog.ingest import attributes, prices, short_names, text, types, values
from ecomlab.catalog.ingest.rows import _brand
from ecomlab.catalog.ingest.values import COUNT_UNREAD, STOCK_NONE, STOCK_SOME, read_stock
from ecomlab.catalog.real import _said


@pytest.mark.parametrize(
    ("said", "cents"),
    [
        (12.5, 1250), ("12.5", 1250), ("$1,299.00", 129900), ("1.299,00", 129900), ("USD 5", 500), ("None", None),
        ("10.99 - 15.99", 1099), ("$5 to $9", 500), ("from $3", 300), ("", None), ("call", None), ("€9", None),
        ("-3", None), (0, None), ("nan", None), (float("inf"), None), ("1e30", None), (True, None), (10**400, None),
        ("$1.2k", 120_000), ("1.5M", 150_000_000), ("$2-3k", 200_000), ("12.99m", 1299), ("5 for $10", 200),
        ("3/$10", 333), ("$10 for 2", 500), ("2 x $3", 300), ("$10 x 2", 1000), ("pack of 2: $10", 1000),
        ("3 pcs 10.00 USD", 1000), ("Buy 2 get 1 free", None), ("12/15", None), ("$-5", None), ("USD -5", None),
        ("($5.00)", None), ("–5", None), ("5.00-", None), ("5,-", 500), ("was $20.00, now $15.00", 1500),
        ("$15 (was $12)", 1500), ("$20.00 $15.00", 1500), ("$15.00 ($1.25 / oz)", 1500), ("$5 off $20", 2000),
        ("20% off $9.99", 999), ("between $5 and $9", 500), ("50¢", 50), ("99 cents", 99), ("$.99", 99),
        ("$1 299.99", 129_999), ("1'299.00", 129_900), ("$1e3", 100_000), ("$1O.99", None), ("1.2.3", None),
        ("AU $5", None), ("US $5", 500),
    ],
)  # fmt: skip
def test_prices(said: object, cents: int | None) -> None:
    """A number of things is no price, a former price is not paid, a scale and a minus count."""
    assert prices.read_price(said, "USD")[0] == cents


def test_a_price_in_another_currency_is_read_where_that_is_the_catalogs() -> None:
    assert prices.read_price("35€99", "EUR") == (3599, (prices.TEXT,))
    assert prices.read_price("1.299,00 €", "EUR")[0] == 129_900
    assert prices.read_price("AU $5", "AUD")[0] == 500
    assert prices.read_price("$5", "EUR") == (None, (prices.CURRENCY,))
    # Latin-9 writes the euro by the byte that is another sign in Windows-1252
    assert prices.currency_of("12,90 ¤") == "EUR" and prices.read_price("12,90 ¤", "EUR")[0] == 1290


def test_what_was_made_of_a_price_is_said() -> None:
    assert all(prices.read_price(said, "USD")[1] for said in ("5 for $10", "$5 - $9", "$1.2k", "now $3"))
    assert prices.read_price(float("nan"), "USD") == (None, ())  # a missing number is no impossible price


COUNTS = [
    ("1,234 ratings", 1234), ("12.0", 12), ("1.2k", 1200), ("2M+", 2_000_000), ("3 km", 3), ("many", None),
    ("1.2 k", 1200), ("1,5K", 1500), ("(1,234)", 1234), ("1.234", 1234), (1.234, 1), ("~100", 100),
    ("over 1,000", 1000), ("4.5 out of 5", None), ("3/5", None), ("10%", None), ("1.2.3", None),
]  # fmt: skip
STOCK = [
    (4, 4), ("12", 12), ("0", 0), (-3, 0), ("-3", 0), ("Out of stock", 0), ("sold-out", 0), ("backordered", 0),
    (False, 0), (True, None), ("Only 3 left", 3), ("12 in stock", 12), ("In stock", None), ("many", None), ("", None),
]  # fmt: skip
RATINGS = [
    (4.5, 45), ("4,5", 45), ("4.5 out of 5 stars", 45), ("out of 5: 4.2", 42), ("9/10", 45), ("80%", 40),
    ("★★★★☆", 40), (0, None), ("none", None), (7, None), ("-4", None), (True, None),
]  # fmt: skip
DAYS = [
    (2, 2), ("2", 2), ("3-5 days", 3), ("2 jours", 2), ("48h", 2), ("24 hrs", 1), ("120 hours", 5),
    ("30 heures", 2), ("2 weeks", 14), ("1 semaine", 7), ("1 month", 30), ("9 weeks", 60), ("soon", None),
    (None, None), ("400", 60),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "said", "number"),
    [
        *((values.read_count, *case) for case in COUNTS),
        *(
            (read_stock, *case) for case in STOCK
        ),  # oversold units are written below zero: none is drawn for them
        *((values.read_rating, *case) for case in RATINGS),
        *((lambda said: values.read_days(said, 60), *case) for case in DAYS),  # 48 hours were 48 days
    ],
)
def test_counts_stock_ratings_and_days(
    read: Callable[[object], tuple[int | None, object]], said: object, number: int | None
) -> None:
    assert read(said)[0] == number


def test_what_was_read_before_does_not_answer_for_a_truth_value() -> None:
    """1 == True, also for a cache."""
    for said, expected in ((1, (100, 10, 1)), (True, (None, None, None))):
        read = prices.read_price(said, "USD")[0], values.read_rating(said)[0], values.read_count(said)[0]
        assert read == expected


def test_stock_is_read_in_four_languages_and_told_from_nonsense() -> None:
    gone = ["En rupture", "épuisé", "Agotado", "non", "nicht auf Lager", "https://schema.org/OutOfStock"]
    there = ["oui", "Sí", "ja", "In stock", True, "http://schema.org/LimitedAvailability"]
    assert {read_stock(said) for said in gone} == {(0, (STOCK_NONE,))}
    assert {read_stock(said) for said in there} == {(None, (STOCK_SOME,))}
    assert read_stock("pas clair") == (None, (COUNT_UNREAD,))


@pytest.mark.parametrize(
    "said",
    [
        ["Home", "Bath", "Towels"], "Home > Bath > Towels", "Home|Bath|Towels", "/Home/Bath/Towels",
        "Home :: Bath :: Towels", "['Home', 'Bath', 'Towels']", '["Home", "Bath", "Towels"]',
        "['Home' 'Bath' 'Towels']", [["Home", "Bath", "Towels"]], "Home; Bath; Towels", "Home / Bath / Towels",
    ],
)  # fmt: skip
def test_category_paths_in_any_notation(said: object) -> None:
    assert values.read_path(said) == ("Home", "Bath", "Towels")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("Home > Office > Chairs, Home > New", ("Home", "Office", "Chairs")),
        ("Default/Men/Tops,Default/Sale,Default", ("Default", "Men", "Tops")),
        ("Pets/Sale;Pets/Dogs/Beds", ("Pets", "Dogs", "Beds")),
        ("Tops|Tops > Hoodies", ("Tops", "Hoodies")),
        (
            "Health, Home & Baby > Vitamins, Minerals > Zinc",
            ("Health, Home & Baby", "Vitamins, Minerals", "Zinc"),
        ),
        ("A/V | A/V Cables", ("A/V", "A/V Cables")),
        ({"id": 5, "name": "Lamps"}, ("Lamps",)),
    ],
)
def test_of_several_paths_from_one_root_the_deepest_counts(said: object, path: tuple[str, ...]) -> None:
    assert values.read_path(said) == path


@pytest.mark.parametrize(
    "said",
    [
        {"Color": "Red", "Size": "M"}, '{"Color": "Red", "Size": "M"}', "{'Color': 'Red', 'Size': 'M'}",
        "Color: Red; Size: M", '{"Color": "Red", "Size": "M"', [["Color", "Red"], ["Size", "M"]],
        [{"name": "Color", "value": "Red"}, {"name": "Size", "value": "M"}],
    ],
)  # fmt: skip
def test_tables_in_text(said: object) -> None:
    assert values.read_table(said)[0] == {"Color": "Red", "Size": "M"}


def test_tables_and_units_of_marketplaces() -> None:
    several = values.read_table("brand=Luma,climate=Cool, Cold,color=Red")[0]
    assert several == {"brand": "Luma", "climate": "Cool, Cold", "color": "Red"}
    assert values.read_table([{"name": "Power", "value": 600, "unitText": "W"}])[0] == {"Power": "600 W"}
    assert values.single({"@type": "QuantitativeValue", "value": "3", "unitCode": "LBR"})[0] == "3 LBR"
    assert attributes.with_unit("Weight (lbs)", "41") == "41 lbs"
    assert attributes.with_unit("Weight (lbs)", "41 kg") == "41 kg"


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Cable 6-Foot Blk", {"length": "6 ft", "color": "Black"}),
        ("Cable 72 Inches", {"size_in_inches": "72 inches"}),
        ("Drive 1000 GB USB 3.0", {"storage": "1 TB", "connector": "USB"}),
        ("Case for iPad 2 Red Black", {"works_with": "iPad 2"}),  # two colours: neither is sure
        ("Kettle 1.5 L 1.2 kW", {"volume": "1.5 L", "power": "1200W"}),
        ("Pens, Pack of 12", {"pack_size": "12-Pack"}),
        ("M size", {}),
    ],
)
def test_attributes_in_titles(title: str, found: dict[str, str]) -> None:
    assert {name: one.value for name, one in attributes.of_title(title).items()} == found


def test_a_column_gives_an_attribute_in_its_normal_form() -> None:
    assert attributes.of_value("Item Weight", "2.2 pounds", "details")["weight"].value == "998 g"
    assert attributes.of_value("Colour", "grey", "details")["color"].value == "Gray"
    assert attributes.of_value("Number of Items", "2", "details")["pack_size"].value == "2-Pack"
    assert attributes.of_value("Colour", "as in the picture", "details") == {}
    assert attributes.normal("weight", "5 lb") == "2.3 kg" and attributes.normal("weight", "850 g") == "850 g"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Koss EQ50 3-Band Stereo Equalizer", "Equalizer"),
        ("Leather Case for iPad 2", "Tablet Case"),
        ("Kinamax Optical Scroll Wheel Mouse with Retractable Cable", "Mouse"),
        ("New-TOPS 63960 - Docket Perforated Pads Legal Rule - TOP63960", "Notepad"),
        ("Western Digital 1 TB Internal Hard Drive - WD10EARX", "Hard Drive"),
        ("Lost 16GB Uber", None),
        (
            "Hammermill Fore MP Copy Paper, Letter",
            "Paper Pack",
        ),  # a customer asks for one of what is not counted
        ("Elmer's School Glue", "Adhesive"),
        ("Scotch Magic Tape", "Tape Roll"),
        ("Sony MDR Stereo Headphones", "Headphone Set"),
        ("Synology NAS", "Network Drive"),
        ("Acme Dog Food", "Dog Food Bag"),
    ],
)
def test_types_in_titles(title: str, name: str | None) -> None:
    kind = types.of_title(title)
    assert (kind.name if kind else None) == name
    assert name is None or types.is_speakable(name)


@pytest.mark.parametrize(
    ("level", "name"),
    [("Bookshelves", "Bookshelf"), ("Beanies", "Beanie"), ("All Laptops", "Laptop"), ("Gloves", "Glove")],
)
def test_categories_are_called_as_one_of_their_things(level: str, name: str) -> None:
    kind = types.of_path(("Shop", level))
    assert kind and kind.name == name


def test_nobody_asks_for_a_mass_or_for_a_shelf() -> None:
    for name in ("Copy Paper", "Wood Glue", "Pet Food", "Memory", "Stationery", "Car Audio"):
        assert not types.is_speakable(name) and types.plural(name) == name
    for level in ("Womens", "New Arrivals", "Sale"):
        kind = types.of_path(("Shoes", level))
        assert kind and not types.is_speakable(kind.name)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Creative Essentials LLC", "Creative Essentials"), ("Apricorn, Inc.", "Apricorn"), ("Alvin and Co", "Alvin"),
        ("Visit the Anker Store", "Anker"), ("The Neat Company", "The Neat Company"), ("Co", "Co"), ("SA", "SA"),
        ("Taurus S.A.", "Taurus"), ("Rowenta SARL", "Rowenta"), ("Cecotec S.L.", "Cecotec"), ("Acme S.A.S.", "Acme"),
        ("Sally Hansa", "Sally Hansa"),
    ],
)  # fmt: skip
def test_nobody_says_the_legal_form_of_a_brand(said: str, name: str) -> None:
    assert _brand(said) == name


def test_letters_with_marks_are_said_as_plain_ones() -> None:
    assert [_said(name) for name in ("Müller & Söhne", "Straße", "Løvenholm", "华为")] == [
        "Muller-Sohne", "Strasse", "Lovenholm", None,
    ]  # fmt: skip


def test_every_type_is_speakable_and_has_one_department() -> None:
    _, kinds = types._names()
    home: dict[str, str] = {}
    for kind in kinds.values():
        assert len(kind.name.split()) <= 3, kind
        assert home.setdefault(kind.name, kind.department) == kind.department
    for one, several in {
        "Battery": "Batteries",
        "Headphones": "Headphones",
        "Paper Pack": "Paper Packs",
    }.items():
        assert types.plural(one) == several


@pytest.mark.parametrize(
    ("title", "brand", "kind", "said"),
    [
        ("Koss EQ50 3-Band Stereo Equalizer", "Koss", "Equalizer", "EQ50"),
        ("Logitech Performance Mouse MX", "Logitech", "Mouse", "Performance"),
        ("Belkin F3U134-06 USB Extension Cable - 6ft", "Belkin", "Cable", "F3U134-06"),
        ("Velvet Cover for SONY A900", "eforcity", "Cover", ""),
        ("SanDisk Cruzer Micro 16 GB USB 2.0 Flash Drive SDCZ6-016G-A11", "SanDisk", "Flash Drive", "Cruzer"),
        ("Bluelounge Small Multi Purpose Cable Clips", "BlueLounge", "Cable Cover", "Multi-Purpose"),
        ("Kingston 100PK DVD Discs 4.7GB - Spindle", "Kingston", "Disc", ""),  # after the noun
        ("Acme 3 Feet Male Cable", "Acme", "Cable", ""),  # counted
        ("HP Black Print Cartridge", "HP", "Ink Cartridge", ""),  # nobody says "Print Ink Cartridge"
        ("Elmer's Elmer School Glue E623", "Elmer's", "Adhesive", "E623"),  # not "Elmer-E623"
        ("Caselogic UMA-103 Laptop Sleeve", "Case Logic", "Laptop Sleeve", "UMA-103"),
        ("TDK DVD-R 1X-4X Disc", "TDK", "Disc", ""),  # a speed
        ("StarTech Express Dual Adapter Card - PEXUSB3S2", "StarTech", "Adapter", "PEXUSB3S2"),
        ("Kingston 8GB MHz Memory Module", "Kingston", "Memory Module", ""),  # a unit
        ("Duracell 3.7 Volt Lithium Ion Battery DRF60RES", "Duracell", "Battery", "DRF60RES"),  # not "Ion"
    ],
)
def test_short_names_are_what_people_say(title: str, brand: str, kind: str, said: str) -> None:
    assert short_names.feature(title, brand, kind) == said


def test_a_short_name_repeats_no_word_of_the_type_that_the_category_gives() -> None:
    assert types.without_words("Drift Yoga", "Yoga Mat") == "Drift"
    assert types.without_words("Drift Pulse", "Yoga Mat") == "Drift Pulse"


@pytest.mark.parametrize(
    ("raw", "shown", "repairs"),
    [
        ("Caf\u00c3\u00a9 Lamp", "Café Lamp", (text.ENCODING,)),
        ("Caf\u00c3\u00a9\nLamp", "Café Lamp", (text.ENCODING,)),
        ("Lamp \u201cX\u201d", 'Lamp "X"', ()),  # quotes, not letters
        ("Lamp &amp; Caf\u00c3\u00a9", "Lamp & Café", (text.ENCODING,)),
        ("<b>Lamp&#65532;</b>", "Lamp", (text.MARKUP, text.CONTROL)),  # U+FFFC counts as printable
        ("<b>Caf&Atilde;&copy;</b>", "Caf\u00c3\u00a9", (text.MARKUP,)),  # nobody mended its letters
    ],
)
def test_a_text_is_mended_and_says_of_what(raw: str, shown: str, repairs: tuple[str, ...]) -> None:
    assert text.clean(raw) == (shown, repairs)
