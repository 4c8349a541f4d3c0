"""From a product file to a shop in one command."""

import csv
from pathlib import Path

import pytest
from rich.console import Console

from ecomlab.catalog import CatalogError, load_shop
from ecomlab.lab.catalogs import build


def write(file: Path, count: int) -> Path:
    """Write lamps of three brands, each with a model of its own."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened)
        table.writerow(["id", "title", "brand", "price", "category", "rating"])
        for row in range(count):
            brand = ["Lumo", "Acme", "Koss"][row % 3]
            title = f"{brand} LX{row} Bright LED Desk Lamp, Black, 12W"
            table.writerow([row, title, brand, f"${10 + row}.99", "Home > Desk Lamps", 3.5 + row % 3 / 2])
    return file


def made(source: Path, out: Path, embedder: str = "lexical") -> str:
    console = Console(record=True, width=200)
    build(str(source), out, None, True, "train", console, embedder)
    return console.export_text()


def test_a_product_file_becomes_a_shop(tmp_path: Path) -> None:
    said = made(write(tmp_path / "lamps.csv", 40), tmp_path / "shop")
    assert "40 products, exact index: load_shop(" in said
    shop = load_shop(tmp_path / "shop")
    (best,) = shop.engine.search("koss lx8 desk lamp", top_k=1)
    assert shop.catalog.titles is not None and shop.catalog.titles[best].startswith("Koss LX8 ")
    before = shop.fingerprint
    made(write(tmp_path / "lamps.csv", 50), tmp_path / "shop")
    assert load_shop(tmp_path / "shop").catalog.size == 50 and shop.fingerprint == before


def test_a_file_that_makes_no_shop_is_an_error_that_keeps_the_products(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no shop was made of it: no type of"):
        made(write(tmp_path / "lamps.csv", 3), tmp_path / "shop")
    assert (tmp_path / "shop" / "products.json").is_file()
    with pytest.raises(CatalogError):
        load_shop(tmp_path / "shop")


def test_what_lacks_is_counted_and_every_guessed_column_is_shown(tmp_path: Path) -> None:
    rows = [
        "Product Name,Vendor,Size",
        "Acme Desk Lamp,Acme,\x1b]52;c;cm0=\x07S",
        "Bolt Desk Lamp,Bolt,M",
        ",Bolt,M",
    ]
    (tmp_path / "lamps.csv").write_text("\n".join(rows) + "\n")
    console = Console(record=True, width=200)
    with pytest.raises(ValueError, match=r"lamps.csv can be sold \(2 no short name\); a brand comes from"):
        build(str(tmp_path / "lamps.csv"), tmp_path / "shop", None, True, "train", console)
    said = console.export_text()
    assert "attribute: size" in said and "set aside: no title, 1 row\n" in said
    assert "\x1b" not in said, "a value of the file that a terminal would obey"


def test_an_embedder_that_is_not_there_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no embedder 'minilmm'"):
        made(write(tmp_path / "lamps.csv", 40), tmp_path / "shop", embedder="minilmm")
    assert not (tmp_path / "shop").exists()
