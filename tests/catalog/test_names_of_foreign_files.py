"""Names of real products that a category, a unit or another language would spoil."""

from pathlib import Path

import pytest

from ecomlab.catalog.ingest import attributes, guess, types
from ecomlab.catalog.ingest.report import Report
from ecomlab.catalog.ingest.text import ENCODING
from ecomlab.catalog.real import _said
from ecomlab.catalog.store import CatalogError, read_manifest


def test_a_short_name_repeats_no_word_of_the_type_that_the_category_gives() -> None:
    assert types.without_words("Drift Yoga", "Yoga Mat") == "Drift"
    assert types.without_words("Drift Pulse", "Yoga Mat") == "Drift Pulse"


def test_letters_with_marks_are_said_as_plain_ones() -> None:
    assert (_said("Müller & Söhne"), _said("Straße"), _said("Løvenholm")) == (
        "Muller-Sohne",
        "Strasse",
        "Lovenholm",
    )
    assert _said("华为") is None


def test_nobody_asks_for_grams_in_hundredths_by_the_thousand() -> None:
    assert attributes.normal("weight", "5 lb") == "2.3 kg"
    assert attributes.normal("weight", "850 g") == "850 g"


def test_german_columns_are_known() -> None:
    row = {
        "Artikelnr.": "1",
        "Bezeichnung": "Lampe",
        "VK-Preis": "3,50",
        "Beschreibung": "Eine schöne neue Lampe",
    }
    columns = guess([row]).columns
    assert (columns.title, columns.id, columns.price, columns.text) == (
        "Bezeichnung",
        "Artikelnr.",
        "VK-Preis",
        ("Beschreibung",),
    )


def test_a_file_and_products_without_a_shop_are_told_from_a_missing_catalog(tmp_path: Path) -> None:
    (tmp_path / "products.csv").write_text("title\n")
    with pytest.raises(CatalogError, match="products.csv is a file; `ecomlab catalog build"):
        read_manifest(tmp_path / "products.csv")
    (tmp_path / "products.json").write_text("{}")
    with pytest.raises(CatalogError, match="holds products of which no shop was made"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(("mended", "told"), [(9, True), (1, False)])
def test_a_file_of_another_encoding_is_named_as_one(mended: int, told: bool) -> None:
    report = Report("a.csv", 10, 10 - mended, mended, 0, 10, 0, {ENCODING: mended}, {}, {}, {})
    assert any("save the file as UTF-8" in line for line in report.lines()) == told
