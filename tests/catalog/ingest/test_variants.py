"""Variants in the text of a cell or inside an object: products, options and prices as if they were columns."""

import json
from pathlib import Path
from typing import Any

import pytest
from ingested import Built, built

from ecomlab.catalog.ingest.profiles import profiles

MAGENTO = """sku,store_view_code,product_type,categories,name,price,special_price,additional_attributes,qty,\
configurable_variations
A-S,,simple,"Default Category/Chairs,Default Category",Oslo Chair-S,40.0,,"color=Red,material=Wood",2,
A,,configurable,Default Category/Chairs,Oslo Chair,,,material=Wood,0,"sku=A-S,size=S|sku=A-M,size=M"
A-M,,simple,Default Category/Chairs,Oslo Chair-M,45.0,42.0,"color=Red,material=Wood",1,
B,,simple,Default Category/Chairs,Lund Chair,99.0,,"color=Black,material=Steel",5,
B,fr,simple,,Chaise Lund,,,,,
C-S,,simple,Default Category/Chairs,Vega Chair-S,10.0,,material=Wood,3,
C,,configurable,Default Category/Chairs,Vega Chair,,,material=Wood,0,"sku=C-S,size=S"
"""
BIGCOMMERCE = """Item Type,Product ID,Product Name,Product Code/SKU,Brand Name,Price,Sale Price,Current Stock Level,\
Category
Product,81,Titan Chair,,Fern,21.00,0.00,0,Home/Chairs
  SKU,8101,"[S]Size=M,[C]Color=Red",T-M,,,,4,
  SKU,8102,"[S]Size=L,[C]Color=Red",T-L,,25.00,,6,
  Rule,8103,,T-L,,[ADD]5,,,
Product,82,A=B Chair,AB,Velox,9.50,8.55,15,Home/Chairs
"""
EBAY = """Item number,Title,Variation details,Custom label (SKU),Available quantity,Currency,Start price,C:Brand,C:Type
2856,Volta Chair,,,9,GBP,9.5,Volta,Chair
2856,Volta Chair,"[Size=M,Color=Red]",E1,6,GBP,9.5,,
2856,Volta Chair,"[Size=L,Color=Red]",E2,3,GBP,11,,
2857,Slim Chair,,E3,4,GBP,8,Unbranded,Chair
"""
FILE_EXCHANGE = """Title,CustomLabel,Relationship,Relationship details,Start price,Quantity,C:Type
Volta Chair,V,,Size=M;L|Color=Red,,,Chair
,V-M,Variation,Size=M|Color=Red,9.5,6,
,V-L,Variation,Size=L|Color=Red,11,3,
Slim Chair,E3,,,8,4,Chair
"""
# by platform: a file, then of each product the title, the price and the options with their prices
CELLS: dict[str, tuple[str, dict[str, tuple[int, dict[str, int]]]]] = {
    "magento": (
        MAGENTO,
        {
            "Oslo Chair": (4_000, {"S": 4_000, "M": 4_200}),
            "Lund Chair": (9_900, {}),
            "Vega Chair": (1_000, {}),
        },
    ),
    "bigcommerce": (BIGCOMMERCE, {"Titan Chair": (2_100, {"M": 2_100, "L": 2_500}), "A=B Chair": (855, {})}),
    "ebay": (EBAY, {"Volta Chair": (950, {"M": 950, "L": 1_100}), "Slim Chair": (800, {})}),
    "ebay (template)": (
        FILE_EXCHANGE,
        {"Volta Chair": (950, {"M": 950, "L": 1_100}), "Slim Chair": (800, {})},
    ),
}


def sold(found: Built) -> dict[str, tuple[int, dict[str, int]]]:
    return {
        row["title"]: (
            row["price_cents"],
            {one["option"]: one["price_cents"] for one in row["variants"] or ()},
        )
        for row in found.rows
    }


@pytest.mark.parametrize("platform", CELLS)
def test_text_tells_the_variants_of_a_product(platform: str, tmp_path: Path) -> None:
    text, products = CELLS[platform]
    (tmp_path / "a.csv").write_text(text)
    found = built(tmp_path / "a.csv", tmp_path / "out")
    assert found.report.profile == profiles()[platform.split()[0]].name
    assert sold(found) == products
    assert {row["option"] for row in found.rows if row["variants"]} == {"size"}
    assert {row["type"] for row in found.rows} == {"Chair"}
    assert found.report.rows == len(text.splitlines()) - 1
    assert found.report.rows == found.report.kept + found.report.repaired + found.report.set_aside


def test_a_platform_s_other_columns_say_what_is_true_of_all(tmp_path: Path) -> None:
    for name, text in (("magento", MAGENTO), ("bigcommerce", BIGCOMMERCE), ("ebay", EBAY)):
        (tmp_path / f"{name}.csv").write_text(text)
    one, two, three = (
        {row["title"]: row for row in built(tmp_path / f"{name}.csv", tmp_path / name).rows}
        for name in ("magento", "bigcommerce", "ebay")
    )
    oslo = one["Oslo Chair"]
    assert (oslo["attr.color"], oslo["attr.material"], oslo["department"]) == ("Red", "Wood", "Chair")
    assert (one["Vega Chair"]["attr.size"], one["Vega Chair"]["stock"]) == ("S", 3)
    assert (two["Titan Chair"]["brand"], two["Titan Chair"]["stock"]) == ("Fern", 10)
    assert two["Titan Chair"]["attr.color"] == "Red"
    assert (three["Volta Chair"]["brand"], three["Slim Chair"]["brand"]) == ("Volta", None)


TEE = {
    "id": 1,
    "title": "Fern Tee",
    "vendor": "Fern",
    "product_type": "T-Shirts",
    "options": [{"name": "Size"}],
    "variants": [
        {"id": 11, "title": "S", "option1": "S", "option2": None, "price": "9.50", "available": True},
        {"id": 12, "title": "M", "option1": "M", "option2": None, "price": "10.50", "available": False},
    ],
}
CD = {**TEE, "id": 2, "title": "Alpha CD", "product_type": "CDs", "options": []} | {
    "variants": [{"id": 21, "title": "Default Title", "price": "9.99", "available": True}]
}
PLAIN = {
    "name": "Oak Chair",
    "price": 50,
    "variants": [{"size": "S", "price": 40}, {"size": "M", "price": 45}],
}


@pytest.mark.parametrize("whole", [{"products": [TEE, CD]}, [TEE, CD], {"count": 2, "items": [TEE, CD]}])
def test_a_shop_s_json_lists_variants_in_objects(whole: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(whole, indent=1))
    found = built(tmp_path / "a.json", tmp_path / "out")
    assert sold(found) == {"Fern Tee": (950, {"S": 950, "M": 1_050}), "Alpha CD": (999, {})}
    tee = next(row for row in found.rows if row["variants"])
    assert (tee["option"], tee["brand"], tee["variants"][1]["stock"]) == ("size", "Fern", 0)
    assert found.report.rows == 3


def test_variants_of_any_object_are_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(PLAIN))
    assert sold(built(tmp_path / "a.jsonl", tmp_path / "out")) == {
        "Oak Chair": (4_000, {"S": 4_000, "M": 4_500})
    }
