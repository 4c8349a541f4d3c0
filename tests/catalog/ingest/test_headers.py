"""The line that names the columns of a CSV: the first, one below others, or none where a mapping says so."""

from pathlib import Path

import pytest

from ecomlab.catalog.ingest import build_products, open_source, read_mapping, to_toml

WITH = {
    "usual names": ("title,price\nDesk Lamp,19.99\nFloor Lamp,24.50\n", 0),
    "usual names above others for programs": (
        "title,price,brand\nitem_name,standard_price,brand_name\nLamp,5,Acme\n",
        0,
    ),
    "names below other lines": ("Version=2,,\nby Acme,,\ntitle,price,brand\nLamp,5,Acme\n", 2),
    "names that nobody knows": ("Lo que es,Lo que cuesta\nDesk Lamp,19.99\nFloor Lamp,24.50\n", 0),
}


def written(folder: Path, text: str) -> str:
    (folder / "a.csv").write_text(text)
    return str(folder / "a.csv")


@pytest.mark.parametrize("what", WITH)
def test_a_line_names_the_columns(what: str, tmp_path: Path) -> None:
    text, above = WITH[what]
    rows = [*open_source(written(tmp_path, text)).rows()]
    assert list(rows[0].values) == text.splitlines()[above].split(",")
    assert len(rows) == len(text.splitlines()) - above - 1


@pytest.mark.parametrize("above", ["", "sep=;\n"])
def test_a_file_without_names_asks_for_a_mapping(above: str, tmp_path: Path) -> None:
    source = open_source(written(tmp_path, f"{above}Desk Lamp;19,99\nFloor Lamp;24,50\nCut Lamp\nLong;1;2\n"))
    with pytest.raises(ValueError, match="header = false"):
        build_products(source, tmp_path / "out")
    (tmp_path / "m.toml").write_text('header = false\n[columns]\ntitle = "column 1"\nprice = "column 2"\n')
    mapping = read_mapping(tmp_path / "m.toml")
    (tmp_path / "again.toml").write_text(to_toml(mapping))
    assert read_mapping(tmp_path / "again.toml") == mapping
    report = build_products(source, tmp_path / "out", mapping)
    assert (report.rows, report.products, report.coverage["price"]) == (4, 4, 3)
