"""The benchmark of catalogs fills its tables, one row a size, and leaves other sizes alone."""

import csv
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS
from ecomlab.audit import catalog_benchmark


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def test_a_row_replaces_the_one_of_its_size(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    for products, seconds in ((2_000_000, 5), (2_000, 1), (2_000, 2)):
        catalog_benchmark.update(file, [{"products": products, "open_s": seconds}], ("products",))
    assert rows(file) == [{"products": "2000", "open_s": "2"}, {"products": "2000000", "open_s": "5"}]


@pytest.mark.slow
def test_a_size_is_measured_in_processes_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "cache"))
    (found,) = catalog_benchmark.bench([2_000], 1, "lexical", tmp_path)
    assert found.products == 2_000 and found.index == "exact" and found.recall_at_20 == 1
    assert min(found.open_s, found.reset_ms_p95, found.search_ms_p95, found.private_mb, found.build_s) > 0
    (row,) = rows(tmp_path / "results.csv")
    assert row["products"] == "2000" and row["embedder"] == "lexical"
    assert [row["env"] for row in rows(tmp_path / "environments.csv")] == sorted(ENVIRONMENTS)
    assert not list((tmp_path / "cache").iterdir())  # what was built is gone
