"""What shops and marketplaces export is read as it is meant: options by name, parents, paths, templates, namespaces."""

from pathlib import Path
from typing import Any

import pytest
from ingested import Built, built

from ecomlab.catalog.ingest import build_products, guess, open_source, read_mapping
from ecomlab.catalog.ingest.mapping import Columns
from ecomlab.catalog.products import open_products

SHOPIFY = """Handle,Title,Vendor,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Variant SKU,Variant Price
tee,River Tee,Fern,Size,S,Color,Black,T1,19.00
tee,,,,M,,Black,T2,19.00
tee,,,,L,,Black,T3,19.00
hood,Harbor Hoodie,Fern,Color,Moss,Size,S,H1,64.00
hood,,,,Moss,,M,H2,64.00
hood,,,,Navy,,S,H3,64.00
hood,,,,Navy,,M,H4,64.00
flask,Brook Bottle,Fern,Capacity,18 oz,,,B1,32.00
flask,,,,24 oz,,,B2,32.00
"""
PARENTS = """SKU,Type,Name,Parent,Brands,Categories,Regular price,Sale price,Weight (lbs),Attribute 1 name,\
Attribute 1 value(s)
C1,variable,Atlas Office Chair,,Loft,"Home > Chairs, Home > Sale",,,41,Color,"Black, White"
C1-B,variation,Atlas Office Chair - Black,C1,,,189,,,Color,Black
C1-W,variation,Atlas Office Chair - White,C1,,,189,,,Color,White
C2,variable,Vega Office Chair,,Loft,"Home > Chairs, Home > Sale",,,41,Color,"Black, White"
C2-B,variation,Vega Office Chair - Black,C2,,,199,179,,Color,Black
C2-W,variation,Vega Office Chair - White,C2,,,199,,,Color,White
"""
TEMPLATE = """TemplateType=fptcustom,Version=2023.0912,,,,
Seller SKU,Product Name,Brand Name,Standard Price,Parent SKU,Size
item_sku,item_name,brand_name,standard_price,parent_sku,size_name
P1,Hearth Frying Pan,Kuchina,,,
P1-8,"Hearth Frying Pan, 8 inch",Kuchina,19.99,P1,8 inch
P1-10,"Hearth Frying Pan, 10 inch",Kuchina,24.99,P1,10 inch
"""


def made(text: str, folder: Path) -> Built:
    (folder / "export.csv").write_text(text)
    return built(folder / "export.csv", folder / "out")


def columns(rows: list[dict[str, Any]]) -> Columns:
    return guess(rows).columns


def options(product: dict[str, Any]) -> list[str]:
    return [one["option"] for one in product["variants"]]


def test_options_are_told_by_their_names(tmp_path: Path) -> None:
    """One product gives size and colour, the next colour and size, a third neither: no colour is "M"."""
    found = made(SHOPIFY, tmp_path)
    assert found.products.facts["option"] == "size"
    assert [row["option"] for row in found.rows if row["title"] == "Brook Bottle"] == ["capacity"]
    assert options(found.of("River Tee")) == ["S", "M", "L"]
    hoods = [row for row in found.rows if row["title"] == "Harbor Hoodie"]
    assert [(row["attr.color"], options(row)) for row in hoods] == [
        ("Moss", ["S", "M"]),
        ("Navy Blue", ["S", "M"]),
    ]
    assert options(found.of("Brook Bottle")) == ["18 oz", "24 oz"]
    assert {row["attr.color"] for row in found.rows} == {"Black", "Moss", "Navy Blue", None}


def test_ids_do_not_depend_on_what_others_are_called(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    few = made("".join(SHOPIFY.splitlines(keepends=True)[:-2]), tmp_path / "few")  # without "Capacity"
    ids = {row["id"] for row in made(SHOPIFY, tmp_path).rows}
    assert len(ids) == 4 and len(few.rows) == 3 and ids >= {row["id"] for row in few.rows}


def test_variants_have_what_only_the_row_of_their_parent_says(tmp_path: Path) -> None:
    found = made(PARENTS, tmp_path)
    assert (found.report.products, found.report.set_aside) == (2, 2)
    chair = found.of("Atlas")
    assert (chair["title"], chair["brand"], chair["price_cents"]) == ("Atlas Office Chair", "Loft", 18_900)
    assert (options(chair), chair["attr.weight"]) == (["Black", "White"], "18.6 kg")
    assert (chair["type"], chair["department"]) == ("Chair", "Home")
    assert found.of("Vega")["price_cents"] == 17_900  # of its sale


def test_a_parent_is_named_by_its_sku_or_by_its_other_id(tmp_path: Path) -> None:
    """WooCommerce writes "id:12" for parents without a SKU."""
    found = made(
        "ID,Type,SKU,Name,Regular price,Parent,Attribute 1 name,Attribute 1 value(s)\n"
        '1,variable,,Fern Bed,,,Size,"S, M"\n2,variation,,Fern Bed - S,20,id:1,Size,S\n'
        '3,variation,,Fern Bed - M,25,id:1,Size,M\n4,variable,B,Moss Bed,,,Size,"S, M"\n'
        "5,variation,B1,Moss Bed - S,20,B,Size,S\n6,variation,,Moss Bed - M,25,id:4,Size,M\n",
        tmp_path,
    )
    assert {row["title"]: options(row) for row in found.rows} == {
        "Fern Bed": ["S", "M"],
        "Moss Bed": ["S", "M"],
    }


def test_the_only_variant_of_its_color_has_its_own_price_stock_and_id(tmp_path: Path) -> None:
    found = made(
        "Handle,Title,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Variant SKU,Variant Price,"
        "Variant Inventory Qty\ntee,River Tee,Size,S,Color,Black,T1,19.00,4\ntee,,,M,,Black,T2,19.00,4\n"
        "tee,,,M,,Moss,T3,25.00,0\n",
        tmp_path,
    )
    moss = next(row for row in found.rows if row["attr.color"] != "Black")
    assert (moss["price_cents"], moss["stock"], moss["source_id"], moss["variants"]) == (2_500, 0, "T3", None)


def test_products_without_a_brand_have_that_of_the_mapping(tmp_path: Path) -> None:
    """A parent's brand is its variants' all the same, and the brand in a title is no short name."""
    (tmp_path / "export.csv").write_text(PARENTS + "S1,simple,Fernside Juno Desk Lamp,,,,20,,,,\n")
    source = open_source(str(tmp_path / "export.csv"))
    mapping = guess(source.sample()).model_copy(update={"brand": "Fernside"})
    build_products(source, tmp_path / "out", mapping)
    rows = {row["title"]: row for row in open_products(tmp_path / "out").rows.to_pylist()}
    assert {title: row["brand"] for title, row in rows.items()} == {
        "Atlas Office Chair": "Loft",
        "Vega Office Chair": "Loft",
        "Fernside Juno Desk Lamp": "Fernside",
    }
    assert rows["Fernside Juno Desk Lamp"]["feature"] == "Juno"
    assert read_mapping(tmp_path / "out" / "mapping.toml") == mapping


def test_names_of_columns_may_stand_below_other_lines(tmp_path: Path) -> None:
    found = made(TEMPLATE, tmp_path)
    assert (found.report.rows, found.report.products) == (3, 1)
    pan = found.of("Hearth")
    assert (pan["title"], pan["brand"]) == ("Hearth Frying Pan", "Kuchina")
    assert options(pan) == ["8 inch", "10 inch"]


def test_what_is_read_needs_no_repair_and_what_is_not_is_drawn(tmp_path: Path) -> None:
    """A sale of 0 is none, 3.41 is a number, and of a column of which nothing can be read all is drawn."""
    found = made("title,price,sale price,rating,stock\nFern Lamp,9,0.00,3.41,many\n", tmp_path)
    assert found.report.repairs == {"unreadable count left out": 1}
    assert {*found.report.drawn} == {"days", "stock"}
    assert (found.rows[0]["price_cents"], found.rows[0]["rating_tenths"]) == (900, 34)


GUESSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a remark": (
        {"Name *": "Aroma Toaster", "Categories (x,y,z...)": "Home", "Price (tax excl.)": "29,90"},
        {"title": "Name *", "category": ("Categories (x,y,z...)",), "price": "Price (tax excl.)"},
    ),
    "German": (
        {"Artikelnr.": "1", "Bezeichnung": "Lampe", "VK-Preis": "3,50", "Beschreibung": "Eine schöne neue Lampe"},
        {"id": "Artikelnr.", "title": "Bezeichnung", "price": "VK-Preis", "text": ("Beschreibung",)},
    ),
    "French": (
        {"Référence": "1", "Désignation": "Lampe de bureau", "Marque": "Éclairis", "Catégorie": "Maison",
         "Prix TTC": "12,90", "Devise": "EUR", "Note moyenne": "4,5/5", "Nombre d'avis": "12", "En stock": "oui",
         "Description": "Belle."},
        {"id": "Référence", "title": "Désignation", "brand": "Marque", "category": ("Catégorie",),
         "price": "Prix TTC", "currency": "Devise", "rating": "Note moyenne", "reviews": "Nombre d'avis",
         "stock": "En stock", "text": ("Description",)},
    ),
    "BigCommerce": (
        {"Product ID": "81", "Product Name": "Titan Brake Pads", "Product Code/SKU": "A1", "Brand Name": "Fern",
         "Price": "9", "Product Availability": "by option", "Current Stock Level": "4", "Category": "Brakes",
         "GTIN": "", "MPN": ""},
        {"title": "Product Name", "id": "Product Code/SKU", "brand": "Brand Name", "stock": "Current Stock Level",
         "category": ("Category",)},
    ),
    "a wholesaler": (
        {"Item Ref.": "1", "Mfr": "Fern", "Item Desc. (short)": "FERN STAPLER", "RRP £ ex VAT": "10",
         "RRP £ inc VAT": "£12.00", "Free Stk": "4", "Sub Grp": "Staplers"},
        {"id": "Item Ref.", "brand": "Mfr", "title": "Item Desc. (short)", "price": "RRP £ inc VAT",
         "stock": "Free Stk", "category": ("Sub Grp",)},
    ),
    "a bookshop": (
        {"isbn13": "1", "book_title": "The Glass Garden", "publisher": "Fern", "genre": "Mystery", "on_hand": "4",
         "avg_rating": "4.2"},
        {"id": "isbn13", "title": "book_title", "brand": "publisher", "category": ("genre",), "stock": "on_hand",
         "rating": "avg_rating"},
    ),
    "Spanish": (
        {"CODIGO": "1", "Nombre del artículo": "Lámpara de mesa", "Marca": "Taurus", "Categoría": "Hogar",
         "Precio": "12,90", "Moneda": "EUR", "Valoración": "4,5", "Opiniones": "12", "Existencias": "3"},
        {"id": "CODIGO", "title": "Nombre del artículo", "brand": "Marca", "category": ("Categoría",),
         "price": "Precio", "currency": "Moneda", "rating": "Valoración", "reviews": "Opiniones",
         "stock": "Existencias"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GUESSED)
def test_columns_are_known_by_their_names(what: str) -> None:
    row, expected = GUESSED[what]
    found = columns([row]).model_dump()
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("column", "attribute"), [("C:Color", "color"), ("Couleur", "color"), ("Talla", "size")]
)
def test_attributes_are_known_by_their_names(column: str, attribute: str) -> None:
    assert guess([{"title": "Wave Speaker", column: "S"}]).attributes == {attribute: column}


def test_a_price_or_id_that_few_rows_have_gives_way() -> None:
    whole = {"Regular price": "9", "Unit price": "0,00", "UPC": "Does not apply"}
    rows = [
        {"title": f"Lamp {at}", "Sale price": "5" if at == 3 else "", "Stock code": f"S{at}", **whole}
        for at in range(9)
    ]
    assert (columns(rows).price, columns(rows).id) == ("Regular price", "Stock code")
