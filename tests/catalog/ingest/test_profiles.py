"""Files of real shops in small (cases/), and those of each platform: what their columns mean is in its profile."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ingested import Built, built
from test_exports import PARENTS
from test_variants import CELLS

from ecomlab.catalog.ingest import build_products, open_source, read_mapping, types
from ecomlab.catalog.ingest.profiles import FOLDER, is_known, profile_of, profiles
from ecomlab.catalog.products import open_products

CASES = Path(__file__).with_name("cases")
SIZES = ["S", "M", "L"]


@pytest.fixture
def case(tmp_path: Path) -> Any:
    return lambda name: built(CASES / f"{name}.csv", tmp_path / name)


def kinds(found: Built) -> dict[str, int]:
    return dict(Counter(row["type"] for row in found.rows))


def options(row: dict[str, Any]) -> list[str]:
    return [one["option"] for one in row["variants"]]


def test_a_name_in_a_header_says_brand_color_and_currency(case: Any) -> None:
    found = case("currency_in_header")
    assert (found.report.currency, found.report.currency_from) == ("INR", "the name of Price (INR)")
    assert all(row["brand"] and row["attr.color"] and row["source_id"] for row in found.rows)


def test_a_placeholder_is_no_id_and_a_sale_is_the_price(case: Any) -> None:
    found = case("gtin_placeholder")
    assert (found.report.products, found.report.set_aside) == (28, 0)
    assert {row["price_cents"] for row in found.rows if row["title"] == "Alder Backpack"} == {2_000}
    assert {row["price_cents"] for row in found.rows if row["title"] == "Alder Scarf"} == {1_500}


def test_products_of_one_file_have_options_of_their_own(case: Any) -> None:
    rows = case("two_option_names").rows
    assert {(row["type"], row["option"], len(row["variants"])) for row in rows} == {
        ("T-Shirt", "size", 3),
        ("Mug", "color", 2),
    }


def test_options_that_name_themselves_are_all_read_wherever_they_stand(case: Any) -> None:
    found = case("size_in_the_other_column")
    assert (found.report.products, found.report.set_aside) == (160, 0)
    assert all((row["option"], options(row)) == ("size", SIZES) for row in found.rows)


def test_what_differs_only_after_the_first_rows_differs_all_the_same(tmp_path: Path) -> None:
    lines = ["Parent SKU,SKU,Title,Price,Size,Color"]
    lines += [f"P{at},S{at}{size},Fern Tee {at},9,{size},Moss" for at in range(90) for size in SIZES]
    lines += [f"Q{at},T{at}{color},Fern Mug {at},9,,{color}" for at in range(20) for color in ("Red", "Blue")]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = built(tmp_path / "a.csv", tmp_path / "out")
    assert (found.report.products, found.report.set_aside) == (110, 0)
    assert Counter((row["type"], row["option"]) for row in found.rows) == {
        ("T-Shirt", "size"): 90,
        ("Mug", "color"): 20,
    }


def test_an_option_of_one_value_is_an_attribute(case: Any) -> None:
    rows = case("one_colour_a_handle").rows
    assert {row["attr.color"] for row in rows} == {"Black", "Navy Blue"}
    assert {(row["type"], row["option"]) for row in rows} == {("Dress", "size"), ("Scarf", None)}


def test_names_of_options_are_singular_and_english(case: Any) -> None:
    found = case("plural_option_names")
    assert {row["option"] for row in found.rows} == {"size", None}, "rather a size than a color"
    assert {*found.products.attribute_names} >= {"color"} and "colors" not in found.products.attribute_names


@pytest.mark.parametrize("name", ["unit_price_en", "unit_price_en2"])
def test_a_unit_price_is_no_price(name: str, case: Any) -> None:
    assert min(row["price_cents"] for row in case(name).rows) == 1_250


def test_a_category_is_never_overruled(case: Any) -> None:
    assert kinds(case("gloves")) == {"Pair of Gloves": 13, "Top": 13}


def test_other_names_of_a_trade_have_their_own_sense_in_a_general_shop(case: Any) -> None:
    assert kinds(case("wrong_sense")) == {
        **dict.fromkeys(("Shirt", "Toner", "Face Mask", "Comb"), 14),
        types.OTHER.name: 14,  # "Skin Oil" is no skin
    }


def test_what_is_not_counted_is_named_by_what_it_comes_in_or_not_asked_for(case: Any) -> None:
    found = kinds(case("mass_nouns"))
    assert {name for name in found if types.is_speakable(name)} == {"Bag of Rice", "Bag of Salt", "Snack"}


PRESTA = """ID;Name *;Categories (x,y,z...);Price tax excluded or Price tax included;Unity;Unit price;Manufacturer
1;Juno Lamp;Home,Lighting,Lamps;20,90;;2,00;Fernside
"""
ETSY = """TITLE,DESCRIPTION,PRICE,CURRENCY_CODE,QUANTITY,TAGS,VARIATION 1 TYPE,VARIATION 1 NAME,VARIATION 1 VALUES,SKU
Fern Tee,Soft.,20,GBP,9,tee,Custom Property,Choose your Sizes,"S,M,L",T1
Fern Mug,Hot.,9,GBP,4,mug,,,,M1
"""
GOOGLE = """g:id,g:title,g:price,g:sale_price,g:availability,g:item_group_id,g:product_type,g:color,g:size
1S,Vega Tee,20.00 EUR,15.00 EUR,in_stock,1,Apparel > T-Shirts,Moss,S
1M,Vega Tee,20.00 EUR,25.00 EUR,out_of_stock,1,Apparel > T-Shirts,Moss,M
"""
AMAZE = """asin,parent_asin,title,store,price,average_rating,Size
B1,P,Vega Tee,Visit the Vega Store,20,4.5,S
B2,P,Vega Tee,Visit the Vega Store,21,4.5,M
"""
LISTED = """Artikelnr.;Bezeichnung;Marke;Preis in €;Größe
1;Fern Shirt;Fern;19,90;S | M | L
2;Moss Shirt;Fern;29,90;M | L
"""
SQUARESPACE = """Product ID [Non Editable],Variant ID [Non Editable],Title,SKU,Option Name 1,Option Value 1,Price,\
Sale Price,Stock,Categories,Visible
a,1,Alder Planter,S1,Size,S,10.00,0.00,3,"/all, /outdoor/planters",Yes
,2,,S2,Size,M,14.00,0.00,Unlimited,,
,3,,S3,Size,L,15.00,0.00,2,,
b,4,Birch Planter,S4,Size,S,11.00,9.00,0,/outdoor/planters,No
,5,,S5,Size,M,11.00,9.00,4,,
"""
WIX = """handleId,fieldType,name,collection,sku,price,surcharge,visible,inventory,productOptionName1,\
productOptionDescription1
p1,Product,Luna Ring,Best Sellers;Rings;Gold,,100,,TRUE,InStock,Metal,#d4af37:Gold;#c0c0c0:Silver
p1,Variant,,,W1,,25,TRUE,3,,Gold
p1,Variant,,,W2,,0,TRUE,0,,Silver
p2,Product,Ivy Ring,Rings,,90,,FALSE,InStock,Metal,#d4af37:Gold;#c0c0c0:Silver
p2,Variant,,,W3,,25,TRUE,2,,Gold
"""
SQUARE = """Reference Handle,Item Name,Variation Name,SKU,Categories,Price,Archived,Option Name 1,Option Value 1,\
Current Quantity Mill Street
#rice,Fern Rice,1 lb,1,Pantry > Rice (#AB12CD),4.00,N,Size,1 lb,3
#rice,Fern Rice,5 lb,2,Pantry > Rice (#AB12CD),9.00,N,Size,5 lb,4
"""
JTL = """Artikelnummer;Artikelname;Brutto-VK;Netto-VK;Kategorie Ebene 1;Kategorie Ebene 2;Vaterartikelnummer;\
Variationsname 1;Variationswert 1
W1;Fern Drill;54,95;46,18;Tools;Drills;;Farbe;
W2;Fern Drill Rot;54,95;46,18;Tools;Drills;W1;Farbe;Rot
W3;Fern Drill Blau;59,95;50,38;Tools;Drills;W1;Farbe;Blau
"""
FEED = """id\ttítulo\tprecio\tprecio de oferta\tdisponibilidad\tid de grupo de artículos\ttipo de producto\ttalla
1S\tVega Tee\t20.00 EUR\t15.00 EUR\ten stock\t1\tRopa > Shirts\tS
1M\tVega Tee\t20.00 EUR\t\tagotado\t1\tRopa > Shirts\tM
"""
SHOPWARE = """id;parent_id;product_number;active;stock;name;price_gross;manufacturer_name;categories;optionIds
a1;;T1;1;0;Vega Tee;20,00;Vega;Clothing > Shirts|Sale;
a2;a1;T1.1;;3;;;;;Farbe: Rot|Größe: S
a3;a1;T1.2;;4;;21,00;;;Farbe: Rot|Größe: M
b1;;T2;0;0;Moss Tee;20,00;Vega;Clothing > Shirts;
b2;b1;T2.1;;5;;;;;
"""
OPENCART = """product_id,name(en-gb),categories,sku,quantity,manufacturer,price,status,tax_class_id,stock_status_id
1,Vega Kettle,"20,21",K1,4,Vega,63.9900,true,9,7
2,Moss Kettle,"20,21",K2,4,Vega,63.9900,false,9,7
"""
# by file: the profile's name, then of the first product the price, the option, its values, the type and the currency
PLATFORMS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "woocommerce": (PARENTS, (18_900, "color", ["Black", "White"], "Chair", "USD")),
    "prestashop": (PRESTA, (2_090, None, [], "Lamp", "USD")),
    "etsy": (ETSY, (2_000, "size", SIZES, "T-Shirt", "GBP")),
    "google": (GOOGLE, (1_500, "size", ["S", "M"], "T-Shirt", "EUR")),
    "amazebay": (AMAZE, (2_000, "size", ["S", "M"], "T-Shirt", "USD")),
    "squarespace": (SQUARESPACE, (1_000, "size", SIZES, "Planter", "USD")),
    "wix": (WIX, (10_000, "metal", ["Gold", "Silver"], "Ring", "USD")),
    "square": (SQUARE, (400, "size", ["1 lb", "5 lb"], "Bag of Rice", "USD")),
    "jtl": (JTL, (5_495, "color", ["Rot", "Blau"], "Drill", "USD")),
    "shopware": (SHOPWARE, (2_000, "size", ["S", "M"], "Shirt", "USD")),
    "opencart": (OPENCART, (6_399, None, [], "Kettle", "USD")),
    "plain": (LISTED, (1_990, "size", SIZES, "Shirt", "EUR")),
}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_is_known_by_its_columns(platform: str, tmp_path: Path) -> None:
    text, (price, option, values, kind, currency) = PLATFORMS[platform]
    (tmp_path / "a.csv").write_text(text)
    found = built(tmp_path / "a.csv", tmp_path / "out")
    row = min(found.rows, key=lambda one: one["source_row"])
    assert (found.report.profile, found.report.currency) == (profiles()[platform].name, currency)
    assert (row["price_cents"], row["option"], row["type"]) == (price, option, kind)
    assert [one["option"] for one in row["variants"] or ()] == values
    if platform == "etsy":  # all that is there of what one row lists
        assert (row["stock"], {one["stock"] for one in row["variants"]}) == (9, {9})
    if platform == "wix":
        assert [(one["price_cents"], one["stock"]) for one in row["variants"]] == [(12_500, 3), (10_000, 0)]
    if platform == "squarespace":
        assert [one["price_cents"] for one in row["variants"]] == [1_000, 1_400, 1_500]
    if platform in ("wix", "squarespace"):
        assert found.report.products == 1 and found.report.reasons["not for sale"] == 2
    if platform == "shopware":
        assert (row["attr.color"], row["stock"], [one["stock"] for one in row["variants"]]) == (
            "Rot",
            7,
            [3, 4],
        )
    assert {*profiles()} == {*PLATFORMS, "shopify", *(name for name in CELLS if name.isalpha())}


HIDDEN = {
    "Shopify": "Handle,Title,Option1 Name,Option1 Value,Variant Price,Status\na,Fern Mug,Color,Red,5,active\n"
    "a,,,Blue,5,\nb,Moss Mug,Color,Red,5,draft\nb,,,Blue,5,\nc,Oak Mug,Color,Red,5,Archived\nc,,,Blue,5,\n",
    "WooCommerce": "ID,Type,SKU,Name,Published,Regular price,Parent,Attribute 1 name,Attribute 1 value(s)\n"
    "1,variable,A,Fern Mug,1,,,Color,\n2,variation,A1,Fern Mug,1,5,A,Color,Red\n"
    "3,variation,A2,Fern Mug,1,5,A,Color,Blue\n4,variable,B,Moss Mug,-1,,,Color,\n"
    "5,variation,B1,Moss Mug,1,5,B,Color,Red\n6,simple,C,Oak Mug,0,5,,,\n",
    "PrestaShop": "ID;Actif (0/1);Nom *;Prix HT ou TTC\n1;1;Fern Mug;5\n2;0;Moss Mug;5\n",
    "a plain table": "Title,Price,Disc'd?,Product Visible?\nFern Mug,5,,Y\nMoss Mug,5,Y,Y\nOak Mug,6,N,\n"
    "Elm Mug,6,,N\n",
}


@pytest.mark.parametrize(("platform", "sold", "aside"), [*zip(HIDDEN, (1, 1, 1, 2), (4, 3, 1, 2))])
def test_what_is_not_for_sale_is_set_aside(platform: str, sold: int, aside: int, tmp_path: Path) -> None:
    """Also rows that say nothing themselves, below one that does."""
    (tmp_path / "a.csv").write_text(HIDDEN[platform])
    found = built(tmp_path / "a.csv", tmp_path / "out")
    assert (found.report.profile, found.report.products) == (platform, sold)
    assert found.report.reasons["not for sale"] == aside and found.of("Fern Mug")


def test_a_mapping_says_what_is_not_for_sale(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Title,Price,State\nFern Mug,5,listed\nMoss Mug,5,Withdrawn\n")
    (tmp_path / "m.toml").write_text(
        '[columns]\ntitle = "Title"\nprice = "Price"\n[hidden]\n"State" = ["Withdrawn"]\n'
    )
    mapping = read_mapping(tmp_path / "m.toml")
    report = build_products(open_source(str(tmp_path / "a.csv")), tmp_path / "out", mapping)
    assert report.reasons == {"not for sale": 1} and report.unused == ()
    kept = read_mapping(tmp_path / "out" / "mapping.toml")
    assert kept == mapping.model_copy(update={"brand": "Own-Brand"})


CATEGORIES = {
    '"/outdoor/planters, /all"': "Planter",
    "/soil-and-compost": "Bag of Soil",
    "running-shoes": "Pair of Running Shoes",
    "t-shirts": "T-shirt",
    "Rings;Best Sellers": "Ring",
    "Bracelets;New In": "Bracelet",
    "Car Parts > Interior > Floor Mats;Shop All": "Floor Mat",
    "Inicio": "Other Product",
    '"Sport > Women, Men > Shoes"': "Pair of Shoes",
    "Coffee (#AB12CD)": "Bag of Coffee",
}


def test_the_first_category_that_names_a_thing_counts(tmp_path: Path) -> None:
    lines = [f"Alder Zzyzx {at},5,{said}" for at, said in enumerate(CATEGORIES)]
    (tmp_path / "a.csv").write_text("\n".join(["title,price,category", *lines]) + "\n")
    rows = sorted(built(tmp_path / "a.csv", tmp_path / "out").rows, key=lambda row: row["title"])
    assert [row["type"] for row in rows] == [*CATEGORIES.values()]
    assert "Sport" in {row["department"] for row in rows}


def test_a_further_picture_is_no_repeated_variant(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "Handle,Title,Option1 Name,Option1 Value,Variant Price,Image Src\n"
        "tee,Fern Tee,Size,S,5,1.jpg\ntee,,,M,5,2.jpg\ntee,,,,,3.jpg\ntee,,,,,4.jpg\n"
        "mug,Fern Mug,Title,Default Title,5,1.jpg\nmug,,,,,2.jpg\n"
    )
    report = built(tmp_path / "a.csv", tmp_path / "out").report
    assert report.reasons == {"of a product whose variants are in other rows": 3} and report.products == 2


def test_a_feed_in_another_language_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(FEED)
    (row,) = (found := built(tmp_path / "a.tsv", tmp_path / "out")).rows
    assert (found.report.profile, found.report.currency) == ("Google Merchant", "EUR")
    assert (row["price_cents"], row["type"], row["option"]) == (1_500, "Shirt", "size")
    assert [one["stock"] > 0 for one in row["variants"]] == [True, False]


def test_variants_that_do_not_say_in_what_they_differ_are_of_their_product(tmp_path: Path) -> None:
    lines = (
        SHOPWARE.replace("Farbe: Rot|Größe: S", "3b9c").replace("Farbe: Rot|Größe: M", "77fe").splitlines()
    )
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (row,) = built(tmp_path / "a.csv", tmp_path / "out").rows
    assert (row["title"], row["stock"], row["price_cents"], row["variants"]) == ("Vega Tee", 7, 2_100, None)


def test_products_of_a_kind_come_in_one_option(tmp_path: Path) -> None:
    """Jeans of one color vary in length alone; where most vary in waist, they are products apart by length."""
    lines = ["Handle,Title,Category,Price,Waist,Length,Color"]
    for at in range(20):
        lines += [
            f"j{at},Fern {at} Jeans,Jeans,50,{waist},34,{color}"
            for waist in (30, 32)
            for color in ("Red", "Blue")
        ]
    lines += [f"k,Moss Jeans,Jeans,50,30,{length},Red" for length in (32, 34, 36)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "m.toml").write_text('[columns]\nparent = "Handle"\noptions = ["Waist", "Length", "Color"]\n')
    source = open_source(str(tmp_path / "a.csv"))
    report = build_products(source, tmp_path / "out", read_mapping(tmp_path / "m.toml", source.sample()))
    rows = open_products(tmp_path / "out").rows.to_pylist()
    assert report.products == 43 and report.set_aside == 0
    assert Counter(row["option"] for row in rows) == {"waist": 40, None: 3}
    assert {row["attr.color"] for row in rows} == {"Red", "Blue"}


def test_a_mapping_without_a_title_completes_the_guess(tmp_path: Path) -> None:
    lines = [f"Vega Ruhe {at},{at + 5},Schlafen > Isomatten" for at in range(3)]
    (tmp_path / "a.csv").write_text("\n".join(["Name,Preis,Kategorie", *lines]) + "\n")
    (tmp_path / "m.toml").write_text(
        'currency = "EUR"\nbrand = "Vega"\n[kinds]\n"Isomatten" = "Sleeping Mat"\n'
    )
    source = open_source(str(tmp_path / "a.csv"))
    mapping = read_mapping(tmp_path / "m.toml", source.sample())
    assert (mapping.columns.title, mapping.columns.price) == ("Name", "Preis")
    report = build_products(source, tmp_path / "out", mapping)
    assert (report.currency, report.types) == ("EUR", {"Sleeping Mat": 3})
    assert read_mapping(tmp_path / "out" / "mapping.toml") == mapping


def test_of_several_names_of_a_category_the_titles_own_counts(tmp_path: Path) -> None:
    lines = [
        f"Vega {name} {at},5,Outerwear > Coats & Jackets"
        for at, name in enumerate(("Jacket", "Coat", "Alder"))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["title,price,category", *lines]) + "\n")
    rows = sorted(built(tmp_path / "a.csv", tmp_path / "out").rows, key=lambda row: row["source_row"])
    assert [row["type"] for row in rows] == ["Jacket", "Coat", "Coat"]
    (tmp_path / "m.toml").write_text('[kinds]\n"Coats & Jackets" = "Anorak"\n')
    source = open_source(str(tmp_path / "a.csv"))
    mapping = read_mapping(tmp_path / "m.toml", source.sample())
    assert build_products(source, tmp_path / "named", mapping).types == {"Anorak": 3}, (
        "a mapping's name counts first"
    )


def test_what_a_database_writes_is_read(tmp_path: Path) -> None:
    """Names by language, prices and stock inside objects, categories by id."""
    lines = [
        {"sku": f"W{at}", "name": {"de": "Vega Stuhl", "en": f"Vega {at}X Chair"}, "status": "eol" if at else "active",
         "manufacturer": {"id": 4, "name": "Vega"}, "pricing": {"msrp": 20 + at, "breaks": [{"qty": 10, "price": 15}]},
         "inventory": {"total": 7}, "category": "f8130c4237730edfafbd67f9619699cf", "description": "Two words."}
        for at in range(3)
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (row,) = built(tmp_path / "a.jsonl", tmp_path / "out").rows
    assert (row["title"], row["type"], row["brand"]) == ("Vega 0X Chair", "Chair", "Vega")
    assert (row["price_cents"], row["stock"]) == (2_000, 7)


def test_a_description_is_a_title_only_where_it_is_short(tmp_path: Path) -> None:
    prose = "This chair is made of solid oak by hand, and comes with felt pads for all floors of a house."
    for name, said in (("list", "Vega Oak Chair"), ("prose", prose)):
        (tmp_path / f"{name}.csv").write_text(
            f"SKU,Goods,Description,Price\n1,Vega Chair,{said!r},5\n".replace("'", '"')
        )
    (row,) = built(tmp_path / "list.csv", tmp_path / "out").rows
    assert row["title"] == "Vega Oak Chair"
    with pytest.raises(ValueError, match="no column is called a title"):
        built(tmp_path / "prose.csv", tmp_path / "out2")


def test_every_profile_is_known_by_each_of_its_signs() -> None:
    for name, one in profiles().items():
        assert (FOLDER / f"{name}.toml").is_file()
        assert all(profile_of(sign) == one for sign in one.signs)
        assert all(is_known(column) for names in one.columns.values() for column in names)
