"""Values inside the objects of JSON rows: named by a mapping, found by the guess where nothing else says it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecomlab.catalog.ingest import Mapping, Report, build_products, guess, open_source
from ecomlab.catalog.ingest.rows import RowCleaner, SetAside
from ecomlab.catalog.ingest.sources import SourceRow
from ecomlab.catalog.ingest.values import WRAPPED
from ecomlab.catalog.products import open_products

OFFER = {"@type": "Offer", "price": 9.9, "priceCurrency": "EUR", "shipping": {"price": 4}}
BRAND = {"name": "Acme", "id": 5}
PRODUCT = {"title": "Acme X7Q Tripod", "sku": "T7", "brand": BRAND, "description": "Three legs."}
FOUND: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an offer": ({"name": "Acme X7Q Tripod", "offers": OFFER}, {"price": "offers.price", "title": "name"}),
    "offers": ({"name": "Acme X7Q Tripod", "offers": [OFFER]}, {"price": "offers.price"}),
    "a product": (
        {"product": PRODUCT, "price": 3},
        {"title": "product.title", "id": "product.sku", "brand": "product.brand", "price": "price"},
    ),
    "two levels": ({"data": {"product": PRODUCT}}, {"title": "data.product.title", "id": "data.product.sku"}),
    "several prices": (
        {"title": "Acme Tripod", "price": {"regular": 9, "current": 7}},
        {"price": "price.regular", "sale": "price.current"},
    ),
    "stars": (
        {"title": "Acme Tripod", "aggregateRating": {"ratingValue": 4.5, "reviewCount": 8}},
        {"rating": "aggregateRating.ratingValue", "reviews": "aggregateRating.reviewCount"},
    ),
    "an amount": (
        {"title": "Acme Tripod", "price": {"amount": 9.9, "currency": "EUR"}, "brand": {"name": "Acme"}},
        {"price": "price", "brand": "brand", "currency": ""},
    ),
    "a name with a dot of its own": ({"title": "Acme Tripod", "a.b": {"price": 5}}, {"price": ""}),
    "nothing of the product": (
        {
            "title": "Acme Tripod", "@type": "Product", "@id": "x", "shipping": {"price": 4},
            "image": {"id": 3, "name": "a"},
            "details": {"Brand": "Acme", "price": 5}, "seo": {"description": "Buy it", "type": "page"},
        },
        {"price": "", "id": "", "brand": "", "details": "details", "category": (), "text": ()},
    ),
}  # fmt: skip


def made(
    folder: Path, rows: list[dict[str, Any]], mapping: Any = None
) -> tuple[Report, list[dict[str, Any]]]:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = mapping and Mapping.model_validate({"columns": mapping})
    report = build_products(open_source(str(folder / "a.jsonl")), folder / "out", chosen)
    return report, open_products(folder / "out").rows.to_pylist()


@pytest.mark.parametrize("what", FOUND)
def test_the_guess_finds_what_is_inside_objects(what: str) -> None:
    row, columns = FOUND[what]
    guessed = guess([row] * 3).columns.model_dump()
    assert {name: guessed[name] for name in columns} == columns


def test_a_mapping_names_what_is_inside_objects(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"product": PRODUCT, "offers": OFFER}]
    rows += [{"product": {"title": "Acme X8Q Tripod"}}, {"product": "Acme X9Q Tripod"}]
    columns = {"title": "product.title", "id": "product.sku", "brand": "product.brand.name"}
    columns["price"] = "offers.price"
    report, products = made(tmp_path, rows, columns)
    assert (report.rows, report.products, report.reasons) == (3, 2, {"no title": 1})
    assert {(one["source_id"], one["brand"], one["price_cents"]) for one in products} == {
        ("T7", "Acme", 990),
        (None, None, None),
    }
    assert WRAPPED not in report.repairs
    assert report.unused == ()
    assert "product.title" not in report.examples["no title"][0][1]  # what the row said, no more


def test_a_name_that_no_object_has_is_refused(tmp_path: Path) -> None:
    rows = [{"title": "Acme Tripod", "price": {"amount": 9.9}}]
    with pytest.raises(ValueError, match="'price.amount'"):
        made(tmp_path, rows, {"title": "title", "price": "price.amuont"})
    with pytest.raises(ValueError, match="'title.x'"):
        made(tmp_path, rows, {"title": "title", "price": "title.x"})


@pytest.mark.parametrize(
    "beside",
    [{"price": {"amount": 9.9, "currency": "EUR"}}, {"offers": OFFER}, {"Price": "9.90", "Currency": "EUR"}],
)
def test_prices_are_in_the_currency_beside_them(beside: dict[str, Any], tmp_path: Path) -> None:
    """It was taken for dollars: amounts with "EUR" were dropped, and bare ones beside "EUR" called dollars."""
    report, products = made(tmp_path, [{"title": f"Acme X{at}Q Tripod", **beside} for at in range(3)])
    assert (report.currency, [one["price_cents"] for one in products]) == ("EUR", [990] * 3)


NAMES = st.sampled_from(
    "title name price amount currency offers brand product rating id category a.b".split()
)
VALUES = st.recursive(
    st.sampled_from(("Acme Desk Lamp", "EUR", "4,5", "", 9.9, 5, True, None)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), min_size=1, max_size=4))
def test_any_objects_are_guessed_and_read(rows: list[dict[str, Any]]) -> None:
    try:
        mapping = guess(rows)
    except ValueError:  # no column holds titles
        return
    mapping.check(rows)
    mapping.unread(rows)
    for row in rows:
        assert isinstance(RowCleaner(mapping, "EUR").clean(SourceRow(0, row)), dict | SetAside)
