"""Limits on catalogs of two million products, held by the committed table of experiments/catalog_scale/bench.py."""

import csv
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "catalog_scale"
SIZES = ("2000", "20000", "200000", "2000000")
SMALL, LARGE = SIZES[0], SIZES[-1]
FLAT = 1.5
"""How much more the largest catalog may take than the smallest."""


def rows(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def lexical() -> dict[str, dict[str, str]]:
    return {row["products"]: row for row in rows("results.csv") if row["embedder"] == "lexical"}


def test_the_tables_have_the_rows_of_today() -> None:
    assert tuple(row["products"] for row in rows("results.csv") if row["embedder"] == "lexical") == SIZES
    for size in SIZES:
        played = [
            r["env"] for r in rows("environments.csv") if (r["products"], r["embedder"]) == (size, "lexical")
        ]
        assert played == sorted(ENVIRONMENTS)


@pytest.mark.parametrize("column", ["reset_ms_p95", "verify_ms_p95"])
def test_an_episode_costs_the_same_at_any_size(column: str, lexical: dict[str, dict[str, str]]) -> None:
    assert float(lexical[LARGE][column]) <= FLAT * float(lexical[SMALL][column])


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_reset_of_each_environment_costs_the_same_at_any_size(env: str) -> None:
    small, large = (
        float(row["reset_ms_p95"])
        for size in (SMALL, LARGE)
        for row in rows("environments.csv")
        if (row["products"], row["embedder"], row["env"]) == (size, "lexical", env)
    )
    assert large <= FLAT * small


def test_the_page_says_what_the_table_says(lexical: dict[str, dict[str, str]]) -> None:
    said, large = (FOLDER.parents[1] / "docs" / "catalogs.md").read_text("utf-8"), lexical[LARGE]
    facts = [f"{float(large[name]):.1f} ms" for name in ("search_ms_p95", "constraints_ms", "reset_ms_p95")]
    facts += [f"{float(large['open_s']):.2f} s", f"{float(large['private_mb']):.0f} MB of its own"]
    assert all(fact in said for fact in facts), facts


@pytest.mark.parametrize(
    ("column", "limit"),
    [
        ("constraints_ms", 10),
        ("search_ms_p95", 15),
        ("open_s", 2),
        ("private_mb", 6_000),
        ("second_private_mb", 500),
    ],
)
def test_two_million_products_stay_within_the_limits(
    column: str, limit: float, lexical: dict[str, dict[str, str]]
) -> None:
    assert float(lexical[LARGE][column]) < limit


def test_what_is_found_is_what_a_scan_finds(lexical: dict[str, dict[str, str]]) -> None:
    assert float(lexical[LARGE]["recall_at_20"]) >= 0.95
    assert all(float(row["recall_at_20"]) == 1 for row in lexical.values() if row["index"] == "exact")
