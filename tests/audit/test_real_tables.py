"""Tables of real catalogs that are gone on with hold no row of another catalog or environment."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.catalog import Shop
from ecomlab.envs.cart import Cart

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXPERIMENTS / f"{name}.py"))


@pytest.mark.parametrize("changed", [{"shop": "another"}, {"version": "0"}, {"seeds": "2"}, {"env": "GONE"}])
def test_a_row_of_another_shop_version_or_count_is_played_again(shop: Shop, changed: dict[str, str]) -> None:
    fair = script("catalog_ingest/fair")
    row = {
        "env": "CART",
        "d": "0",
        **{name: str(said) for name, said in fair["made_with"]("CART", 3, shop).items()},
    }
    assert fair["kept"]([row, row | changed], 3, shop) == [row]
    assert fair["kept"]([{"env": "CART", "d": "0", "seeds": "3"}], 3, shop) == []  # as tables once were


def test_a_certificate_of_other_versions_stays_out_of_the_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_today = script("catalog_certificate/certify")["of_today"]
    one = {"environments": {"CART": ENVIRONMENTS["CART"].version}}
    assert of_today("amazon", one)
    monkeypatch.setattr(Cart, "version", Cart.version + 1)
    assert not of_today("amazon", one)
    assert "amazon.json is left out of the tables" in capsys.readouterr().out


def test_a_catalog_is_built_again_when_its_file_changes(tmp_path: Path) -> None:
    built = script("catalog_certificate/certify")["built"]
    file, folder = tmp_path / "a.csv", tmp_path / "out"
    rows = [f"Acme X{at}Q Tripod,Acme,{10 + at}" for at in range(20)]
    sizes = []
    for count in (15, 15, 20):
        file.write_text("\n".join(["title,brand,price", *rows[:count]]))
        built(file, folder)
        sizes.append((load_shop(folder).catalog.size, (folder / "manifest.json").stat().st_mtime_ns))
    assert [size for size, _ in sizes] == [15, 15, 20]
    assert sizes[0] == sizes[1]  # the same file is opened as it was built
