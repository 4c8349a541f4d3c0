"""A CSV without a line of names keeps its first row; one with such a line never loses it."""

from pathlib import Path

import pytest

from ecomlab.catalog.ingest import Mapping, build_products, open_source, read_mapping, to_toml

ROWS = "Acme Desk Lamp,19.99,Acme,Lamps\nBolt Floor Lamp,24.50,Bolt,Lamps\nAcme Wall Lamp,7,Acme,Lamps\n"
WITHOUT = {
    "a price": "Acme Desk Lamp,19.99\nBolt Floor Lamp,24.50\nAcme Wall Lamp,$7\n",
    "a price in euros": "Lampe de table;19,99 €\nLampadaire à pied;24,50 €\nApplique de mur;7,00 €\n",
    "an address": "Desk Lamp,https://a.example/1\nFloor Lamp,https://a.example/2\nWall Lamp,\n",
    "a date": "2024-01-05,Desk Lamp\n2024-01-06,Floor Lamp\n2024-02-01,Wall Lamp\n",
    "a long number": "4006381333931,Desk Lamp\n4006381333948,Floor Lamp\n4006381333955,Wall Lamp\n",
    "after Excel's line": "sep=;\nDesk Lamp;19,99\nFloor Lamp;24,50\nWall Lamp;7,00\n",
}
WITH = {
    "usual names": "title,price\nDesk Lamp,19.99\nFloor Lamp,24.50\n",
    "one usual name": "Produkt Text,2024-01-01,Preis\nDesk Lamp,2024-01-05,19.99\nWall Lamp,2024-01-06,5.00\n",
    "usual names above others for programs": "title,price,brand\nitem_name,standard_price,brand_name\nLamp,5,Acme\n",
    "names that nobody knows": "Lo que es,Lo que cuesta\nDesk Lamp,19.99\nFloor Lamp,24.50\n",
    "numbers of columns": "0,1,2\nAcme Desk Lamp,19.99,2\nBolt Floor Lamp,24.50,1\nBolt Lamp,3.50,2\n",
    "sizes": "Modelo,36.5,37.5\nZapato negro,49.99,59.99\nZapato blanco,49.99,59.99\n",
    "years": "Lo que es,2023,2024\nDesk Lamp,19.99,2023\nFloor Lamp,24.50,2024\nWall Lamp,24.50,2022\n",
    "addresses of a vocabulary": "http://schema.org/name,http://schema.org/image\n"
    "Desk Lamp,https://a.example/1\nFloor Lamp,https://a.example/2\n",
}


def written(folder: Path, text: str) -> str:
    (folder / "a.csv").write_text(text)
    return str(folder / "a.csv")


@pytest.mark.parametrize("what", WITHOUT)
def test_a_first_line_of_values_is_a_row(what: str, tmp_path: Path) -> None:
    source = open_source(written(tmp_path, WITHOUT[what]))
    rows = [*source.rows()]
    lines = [line for line in WITHOUT[what].splitlines() if not line.startswith("sep=")]
    assert (source.headless, len(rows)) == (("a.csv",), len(lines))
    assert list(rows[0].values) == ["column 1", "column 2"]
    assert not any(row.fault or row.repairs for row in rows)


@pytest.mark.parametrize("what", WITH)
def test_a_line_of_names_stays_one(what: str, tmp_path: Path) -> None:
    source = open_source(written(tmp_path, WITH[what]))
    names = WITH[what].splitlines()[0]
    rows = [*source.rows()]
    assert not source.headless
    assert list(rows[0].values) == names.split(";" if ";" in names else ",")
    assert len(rows) == len(WITH[what].splitlines()) - 1


def test_a_file_without_names_asks_for_a_mapping(tmp_path: Path) -> None:
    source = open_source(written(tmp_path, ROWS + "Cut Lamp\n,,\nLong Lamp,1,2,3,4\n"))
    with pytest.raises(ValueError, match="column 1, column 2"):
        build_products(source, tmp_path / "out")
    mapping = Mapping.model_validate({"columns": {"title": "column 1", "price": "column 2"}})
    report = build_products(source, tmp_path / "out", mapping)
    assert (report.rows, report.products, report.set_aside) == (6, 4, 2)


def test_a_mapping_names_columns_by_position(tmp_path: Path) -> None:
    """`header = false` holds where nothing shows it: here all values are names that columns have."""
    name = written(tmp_path, "Lamp,Price\nShelf,Brand\n")
    (tmp_path / "m.toml").write_text('header = false\n[columns]\ntitle = "column 1"\nbrand = "column 2"\n')
    mapping = read_mapping(tmp_path / "m.toml")
    (tmp_path / "again.toml").write_text(to_toml(mapping))
    assert read_mapping(tmp_path / "again.toml") == mapping
    report = build_products(open_source(name), tmp_path / "out", mapping)
    assert (report.products, report.coverage["brand"]) == (2, 2)


def test_a_mapping_may_insist_on_a_header(tmp_path: Path) -> None:
    mapping = Mapping.model_validate({"header": True, "columns": {"title": "Acme Desk Lamp"}})
    report = build_products(open_source(written(tmp_path, ROWS)), tmp_path / "out", mapping)
    assert (report.rows, report.products) == (2, 2)
