"""What people write in the fields of product files, and what it means."""

import pytest

from ecomlab.catalog.ingest import attributes, prices, short_names, text, types, values
from ecomlab.catalog.ingest.rows import _brand


@pytest.mark.parametrize(
    ("said", "cents"),
    [
        (12.5, 1250), ("12.5", 1250), ("$1,299.00", 129900), ("1.299,00", 129900),
        ("USD 5", 500), ("10.99 - 15.99", 1099),
        ("$5 to $9", 500), ("from $3", 300), ("None", None), ("", None), ("call", None), ("€9", None), ("-3", None),
        (0, None), ("nan", None), (float("inf"), None), ("1e30", None), (True, None), (10**400, None),
    ],
)  # fmt: skip
def test_prices(said: object, cents: int | None) -> None:
    assert prices.read_price(said, "USD")[0] == cents


@pytest.mark.parametrize(
    ("said", "cents"),
    [
        ("$1.2k", 120_000), ("1.5M", 150_000_000), ("$2-3k", 200_000), ("12.99m", 1299),
        ("5 for $10", 200), ("3/$10", 333), ("$10 for 2", 500), ("2 x $3", 300), ("$10 x 2", 1000),
        ("pack of 2: $10", 1000), ("3 pcs 10.00 USD", 1000), ("Buy 2 get 1 free", None), ("12/15", None),
        ("$-5", None), ("USD -5", None), ("($5.00)", None), ("–5", None), ("5.00-", None), ("5,-", 500),
        ("was $20.00, now $15.00", 1500), ("$15 (was $12)", 1500), ("$20.00 $15.00", 1500),
        ("$15.00 ($1.25 / oz)", 1500), ("$5 off $20", 2000), ("20% off $9.99", 999), ("between $5 and $9", 500),
        ("50¢", 50), ("99 cents", 99), ("$.99", 99), ("$1 299.99", 129_999), ("1'299.00", 129_900),
        ("$1e3", 100_000), ("$1O.99", None), ("1.2.3", None), ("AU $5", None), ("US $5", 500),
    ],
)  # fmt: skip
def test_prices_among_words_and_other_numbers(said: str, cents: int | None) -> None:
    """A number of things is no price, a former price is not paid, a scale and a minus count."""
    assert prices.read_price(said, "USD")[0] == cents


def test_a_price_in_another_currency_is_read_where_that_is_the_catalogs() -> None:
    assert prices.read_price("35€99", "EUR") == (3599, (prices.TEXT,))
    assert prices.read_price("1.299,00 €", "EUR")[0] == 129_900
    assert prices.read_price("AU $5", "AUD")[0] == 500
    assert prices.read_price("$5", "EUR") == (None, (prices.CURRENCY,))


@pytest.mark.parametrize("said", ["5 for $10", "$5 - $9", "$1.2k", "now $3"])
def test_what_was_made_of_a_price_is_said(said: str) -> None:
    assert prices.read_price(said, "USD")[1]


def test_a_missing_number_is_no_impossible_price() -> None:
    assert prices.read_price(float("nan"), "USD") == (None, ())


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("1,234 ratings", 1234), ("12.0", 12), ("1.2k", 1200), ("2M+", 2_000_000), ("3 km", 3), ("many", None),
        ("1.2 k", 1200), ("1,5K", 1500), ("(1,234)", 1234), ("1.234", 1234), (1.234, 1), ("~100", 100),
        ("over 1,000", 1000), ("4.5 out of 5", None), ("3/5", None), ("10%", None), ("1.2.3", None),
    ],
)  # fmt: skip
def test_counts(said: object, count: int | None) -> None:
    assert values.read_count(said)[0] == count


def test_what_was_read_before_does_not_answer_for_a_truth_value() -> None:
    """1 == True, also for a cache."""
    assert (prices.read_price(1, "USD")[0], values.read_rating(1)[0], values.read_count(1)[0]) == (100, 10, 1)
    assert (prices.read_price(True, "USD")[0], values.read_rating(True)[0], values.read_count(True)[0]) == (
        None,
    ) * 3


@pytest.mark.parametrize(
    ("said", "units"),
    [
        (4, 4),
        ("12", 12),
        ("0", 0),
        (-3, 0),
        ("-3", 0),
        ("Out of stock", 0),
        ("sold-out", 0),
        ("backordered", 0),
        (False, 0),
        (True, None),
        ("Only 3 left", 3),
        ("12 in stock", 12),
        ("In stock", None),
        ("many", None),
        ("", None),
    ],
)
def test_units_in_stock(said: object, units: int | None) -> None:
    """An export writes oversold units below zero; that is no reason to draw some."""
    assert values.read_stock(said)[0] == units


@pytest.mark.parametrize(
    ("said", "tenths"),
    [
        (4.5, 45),
        ("4,5", 45),
        ("4.5 out of 5 stars", 45),
        ("out of 5: 4.2", 42),
        ("9/10", 45),
        ("80%", 40),
        ("★★★★☆", 40),
        (0, None),
        ("none", None),
        (7, None),
        ("-4", None),
        (True, None),
    ],
)
def test_ratings(said: object, tenths: int | None) -> None:
    assert values.read_rating(said)[0] == tenths


@pytest.mark.parametrize(
    "said",
    [
        ["Home", "Bath", "Towels"], "Home > Bath > Towels", "Home|Bath|Towels", "/Home/Bath/Towels",
        "Home :: Bath :: Towels",
        "['Home', 'Bath', 'Towels']", '["Home", "Bath", "Towels"]', "['Home' 'Bath' 'Towels']",
        [["Home", "Bath", "Towels"]],
        "Home; Bath; Towels", "Home / Bath / Towels",
    ],
)  # fmt: skip
def test_category_paths_in_any_notation(said: object) -> None:
    assert values.read_path(said) == ("Home", "Bath", "Towels")


@pytest.mark.parametrize(
    "said",
    [
        {"Color": "Red", "Size": "M"}, '{"Color": "Red", "Size": "M"}', "{'Color': 'Red', 'Size': 'M'}",
        "Color: Red; Size: M",
        '{"Color": "Red", "Size": "M"', [["Color", "Red"], ["Size", "M"]],
        [{"name": "Color", "value": "Red"}, {"name": "Size", "value": "M"}],
    ],
)  # fmt: skip
def test_tables_in_text(said: object) -> None:
    assert values.read_table(said)[0] == {"Color": "Red", "Size": "M"}


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


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Koss EQ50 3-Band Stereo Equalizer", "Equalizer"),
        ("Leather Case for iPad 2", "Tablet Case"),
        ("Kinamax Optical Scroll Wheel Mouse with Retractable Cable", "Mouse"),
        ("New-TOPS 63960 - Docket Perforated Pads Legal Rule - TOP63960", "Notepad"),
        ("Western Digital 1 TB Internal Hard Drive - WD10EARX", "Hard Drive"),
        ("Lost 16GB Uber", None),
    ],
)
def test_types_in_titles(title: str, name: str | None) -> None:
    kind = types.of_title(title)
    assert (kind.name if kind else None) == name


@pytest.mark.parametrize(
    ("title", "name", "several"),
    [
        ("Hammermill Fore MP Copy Paper, Letter", "Paper Pack", "Paper Packs"),
        ("Elmer's School Glue", "Adhesive", "Adhesives"),
        ("Scotch Magic Tape", "Tape Roll", "Tape Rolls"),
        ("Avery Shipping Labels", "Label Pack", "Label Packs"),
        ("Sony MDR Stereo Headphones", "Headphone Set", "Headphone Sets"),
        ("Synology NAS", "Network Drive", "Network Drives"),
        ("Acme Dog Food", "Dog Food Bag", "Dog Food Bags"),
    ],
)
def test_a_customer_can_ask_for_one_of_what_is_not_counted(title: str, name: str, several: str) -> None:
    kind = types.of_title(title)
    assert kind and (kind.name, types.plural(name)) == (name, several)
    assert types.is_speakable(name)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Creative Essentials LLC", "Creative Essentials"),
        ("Apricorn, Inc.", "Apricorn"),
        ("Alvin and Co", "Alvin"),
        ("Visit the Anker Store", "Anker"),
        ("The Neat Company", "The Neat Company"),
        ("Co", "Co"),
    ],
)
def test_nobody_says_the_legal_form_of_a_brand(said: str, name: str) -> None:
    assert _brand(said) == name


@pytest.mark.parametrize("name", ["Copy Paper", "Wood Glue", "Pet Food", "Memory", "Stationery", "Car Audio"])
def test_nobody_asks_for_one_of_a_mass(name: str) -> None:
    assert not types.is_speakable(name) and types.plural(name) == name


def test_every_type_is_speakable_and_has_one_department() -> None:
    _, kinds = types._names()
    home: dict[str, str] = {}
    for kind in kinds.values():
        assert len(kind.name.split()) <= 3, kind
        assert home.setdefault(kind.name, kind.department) == kind.department
    assert {types.plural("Battery"), types.plural("Headphones")} == {"Batteries", "Headphones"}


@pytest.mark.parametrize(
    ("title", "brand", "kind", "said"),
    [
        ("Koss EQ50 3-Band Stereo Equalizer", "Koss", "Equalizer", "EQ50"),
        ("Logitech Performance Mouse MX", "Logitech", "Mouse", "Performance"),
        ("Belkin F3U134-06 USB Extension Cable - 6ft", "Belkin", "Cable", "F3U134-06"),
        ("Velvet Cover for SONY A900", "eforcity", "Cover", ""),
        ("Black Mouse", "Acme", "Mouse", ""),
        ("SanDisk Cruzer Micro 16 GB USB 2.0 Flash Drive SDCZ6-016G-A11", "SanDisk", "Flash Drive", "Cruzer"),
        ("Bluelounge Small Multi Purpose Cable Clips", "BlueLounge", "Cable Cover", "Multi-Purpose"),
        ("Kingston 100PK DVD Discs 4.7GB - Spindle", "Kingston", "Disc", ""),  # after the noun
        ("Acme 3 Feet Male Cable", "Acme", "Cable", ""),  # counted
        ("HP Black Print Cartridge", "HP", "Ink Cartridge", ""),  # nobody says "Print Ink Cartridge"
        ("Avery Shipping Labels 2x4", "Avery", "Label Pack", "Shipping"),
        ("Elmer's Elmer School Glue E623", "Elmer's", "Adhesive", "E623"),  # not "Elmer-E623"
        ("Caselogic UMA-103 Laptop Sleeve", "Case Logic", "Laptop Sleeve", "UMA-103"),
        ("TDK DVD-R 1X-4X Disc", "TDK", "Disc", ""),  # a speed
        ("Acer Aspire One AOD257 Netbook", "Acer", "Netbook", "Aspire AOD257"),
        (
            "StarTech Express Dual Adapter Card - PEXUSB3S2",
            "StarTech",
            "Adapter",
            "PEXUSB3S2",
        ),  # not "Express-..."
        ("Avery Brand Color Two Notepad", "Avery", "Notepad", ""),
        ("Kingston 8GB MHz Memory Module", "Kingston", "Memory Module", ""),  # a unit
        ("Duracell 3.7 Volt Lithium Ion Battery DRF60RES", "Duracell", "Battery", "DRF60RES"),  # not "Ion"
    ],
)
def test_short_names_are_what_people_say(title: str, brand: str, kind: str, said: str) -> None:
    assert short_names.feature(title, brand, kind) == said


@pytest.mark.parametrize(
    ("said", "days"),
    [
        (2, 2), ("2", 2), ("3-5 days", 3), ("2 jours", 2), ("48h", 2), ("24 hrs", 1), ("120 hours", 5),
        ("30 heures", 2), ("2 weeks", 14), ("1 semaine", 7), ("1 month", 30), ("9 weeks", 60), ("soon", None),
        (None, None), ("400", 60),
    ],
)  # fmt: skip
def test_hours_and_weeks_are_counted_in_days(said: object, days: int | None) -> None:
    """48 hours were 48 days."""
    assert values.read_days(said, 60)[0] == days


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
