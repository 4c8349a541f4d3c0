"""Names of real products that a category, a unit or another language would spoil."""

from pathlib import Path

import pytest

from ecomlab.catalog.ingest import attributes, guess, prices, types
from ecomlab.catalog.ingest.report import Report
from ecomlab.catalog.ingest.rows import _brand
from ecomlab.catalog.ingest.text import ENCODING
from ecomlab.catalog.ingest.values import COUNT_UNREAD, STOCK_NONE, STOCK_SOME, read_stock
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


FRENCH = {
    "Référence": "1", "Désignation": "Lampe de bureau", "Marque": "Éclairis", "Catégorie": "Maison",
    "Prix TTC": "12,90", "Devise": "EUR", "Note": "4,5/5", "Nombre d'avis": "12", "En stock": "oui",
    "Description": "Belle.", "Couleur": "Noir",
}  # fmt: skip
SPANISH = {
    "CODIGO": "1", "Nombre del artículo": "Lámpara de mesa", "Marca": "Taurus", "Categoría": "Hogar", "Precio": "12,90",
    "Moneda": "EUR", "Valoración": "4,5", "Opiniones": "12", "Existencias": "3", "Descripcion": "Nueva.", "Talla": "S",
}  # fmt: skip


@pytest.mark.parametrize(("row", "attribute"), [(FRENCH, "color"), (SPANISH, "size")])
def test_french_and_spanish_columns_are_known(row: dict[str, str], attribute: str) -> None:
    mapping = guess([row])
    one = mapping.columns
    found = [
        one.id,
        one.title,
        one.brand,
        *one.category,
        one.price,
        one.currency,
        one.rating,
        one.reviews,
        one.stock,
    ]
    assert [*found, *one.text] == list(row)[:-1]
    assert mapping.attributes == {attribute: list(row)[-1]}


def test_a_note_is_a_rating_only_where_it_reads_as_one() -> None:
    rows = [{"title": "Desk Lamp", "Note": said} for said in ("fragile", "call 12 first", "")]
    assert guess(rows).columns.rating == ""
    assert (
        guess([{"title": "Desk Lamp", "Note": said} for said in (["4,5"], {"value": 4})]).columns.rating
        == "Note"
    )


@pytest.mark.parametrize("said", ["En rupture", "épuisé", "Agotado", "non", "nicht auf Lager"])
def test_sold_out_is_read_in_four_languages(said: str) -> None:
    assert read_stock(said) == (0, (STOCK_NONE,))


@pytest.mark.parametrize("said", ["oui", "Sí", "ja", "In stock", True])
def test_in_stock_without_a_number_is_told_from_nonsense(said: object) -> None:
    assert read_stock(said) == (None, (STOCK_SOME,))
    assert read_stock("pas clair") == (None, (COUNT_UNREAD,))


def test_legal_forms_are_left_out_of_brands() -> None:
    names = ("Taurus S.A.", "Rowenta SARL", "Cecotec S.L.", "Acme S.A.S.", "Sally Hansa", "SA")
    assert [_brand(name) for name in names] == ["Taurus", "Rowenta", "Cecotec", "Acme", "Sally Hansa", "SA"]


def test_the_sign_of_latin_9_is_the_euro() -> None:
    """Its byte for the euro is that of another sign in Windows-1252."""
    assert prices.currency_of("12,90 ¤") == "EUR" and prices.read_price("12,90 ¤", "EUR")[0] == 1290


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
