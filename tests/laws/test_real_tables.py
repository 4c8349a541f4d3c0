"""Tables of real catalogs that are gone on with hold no row of another catalog or environment."""

import csv
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, load_shop
from ecomlab.envs.cart.env import Cart

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXPERIMENTS / f"{name}.py"))


BROKEN = {
    "amazon": {"UNDERSTOOD", "TRUTHFUL"},
    "variants": {"UNDERSTOOD", "TRUTHFUL", "SILENT"},
    "apparel": {"UNDERSTOOD", "TRUTHFUL", "SILENT"},
}
"""Laws that a shop does not keep, as docs/catalogs.md says."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_committed_certificates_are_whole(name: str) -> None:
    """Every environment and level is a row, played or refused with a reason, and the tables say what the files say."""
    written = script("catalog_certificate/certify")
    folder = EXPERIMENTS / "catalog_certificate"
    certificate = json.loads((folder / f"{name}.json").read_text("utf-8"))
    tables = {one: (folder / f"{one}.csv").read_text("utf-8").splitlines() for one in ("cells", "laws")}
    cells, laws = (
        [row for row in csv.DictReader(lines) if row["catalog"] == name] for lines in tables.values()
    )
    assert {line.partition(":")[0] for line in certificate["broken"]} == BROKEN[name]
    assert {(row["solver"], row["fair"], row["courteous"], row["misses"]) for row in cells} == {
        ("1.0", "1.0", "1.0", "0")
    }
    assert {(row["env"], int(row["d"])) for row in cells} == {
        (env, d) for env in ENVIRONMENTS for d in (0, 4, 8, 12)
    }
    assert all(
        int(row["seeds"] or 0) + int(row["refused"] or 0) == 25
        and bool(row["why"]) == (row["refused"] != "0")
        for row in cells
    )
    searched = {leak["env"] for leak in certificate["leaks"]}
    assert certificate["understood"] and searched == {*ENVIRONMENTS} - {"POLICY"}  # has too few lists
    for made, there in ((written["cells_of"], cells), (written["laws_of"], laws)):
        assert [
            {k: "" if v is None else str(v) for k, v in row.items()} for row in made(name, certificate)
        ] == there


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
