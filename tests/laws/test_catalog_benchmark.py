"""The benchmark of catalogs fills its tables, one row a size, and leaves other sizes alone."""

import csv
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS
from ecomlab.catalog.store import read_manifest
from ecomlab.files import write_json
from ecomlab.laws import catalog_benchmark


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def test_a_row_replaces_the_one_of_its_size(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    for products, embedder, seconds in (
        (2_000_000, "lexical", 5),
        (2_000, "m", 3),
        (2_000, "lexical", 1),
        (2_000, "lexical", 2),
    ):
        row = {"products": products, "embedder": embedder, "open_s": seconds}
        catalog_benchmark.update(file, [row], ("products", "embedder"))
    found = [(row["products"], row["embedder"], row["open_s"]) for row in rows(file)]
    assert found == [("2000", "lexical", "2"), ("2000", "m", "3"), ("2000000", "lexical", "5")]


def test_of_repeated_times_the_least_is_kept_and_of_memory_the_most() -> None:
    measured = [{"env": "PD", "open_s": 2.0, "rss_mb": 5.0}, {"env": "PD", "open_s": 1.0, "rss_mb": 4.0}]
    assert catalog_benchmark.best(measured) == {"env": "PD", "open_s": 1.0, "rss_mb": 5.0}


def test_a_build_that_is_kept_is_not_made_or_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = catalog_benchmark._build(300, tmp_path, "lexical")
    assert first["build_s"] > 0 and first["embedder"] == "lexical"
    write_json(
        tmp_path / catalog_benchmark.SPENT,
        {"data": read_manifest(tmp_path).data, "build_s": 7.5, "build_cpu_s": 3.5},
    )
    again = catalog_benchmark._build(300, tmp_path, "lexical")
    assert again == first | {"build_s": 7.5, "build_cpu_s": 3.5}


@pytest.mark.slow
def test_a_size_is_measured_in_processes_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECOMLAB_CACHE", str(tmp_path / "cache"))
    (found,) = catalog_benchmark.bench([2_000], 1, "lexical", tmp_path, repeats=2)
    assert found.products == 2_000 and found.index == "exact" and found.recall_at_20 == 1
    assert min(found.open_s, found.reset_ms_p95, found.search_ms_p95, found.private_mb, found.build_s) > 0
    (row,) = rows(tmp_path / "results.csv")
    assert row["products"] == "2000" and row["embedder"] == "lexical"
    assert [row["env"] for row in rows(tmp_path / "environments.csv")] == sorted(ENVIRONMENTS)
    assert not list((tmp_path / "cache").iterdir())  # what was built is gone
