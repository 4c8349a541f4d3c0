"""The tables of catalogs by size and of retrieval keep the limits and say what the pages say; their scripts run."""

import csv
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecomlab.catalog import LexicalEmbedder, generate
from ecomlab.catalog.embed import on_grid

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs" / "catalogs.md", ROOT / "experiments" / "README.md")
SIZES = ("2000", "20000", "200000", "2000000")
SMALL, LARGE = SIZES[0], SIZES[-1]
FLAT = 1.5
"""How much more the largest catalog may take than the smallest."""


def table(name: str) -> list[dict[str, str]]:
    with (ROOT / "experiments" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def percent(share: str) -> str:
    return f"{float(share):.1%}"


def test_index_kinds_are_measured_on_kept_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = runpy.run_path(str(ROOT / "experiments/catalog_scale/index.py"))
    embedder, rows = LexicalEmbedder(), np.arange(600)
    catalog, texts = script["products_with"](600)
    assert catalog.fingerprint == generate(2_000).fingerprint and texts.count >= 600
    monkeypatch.setitem(script["embedded"].__globals__, "SHARD", 256)
    vectors = script["embedded"](catalog, rows, embedder, tmp_path)
    assert capsys.readouterr().out.count("embedded") == 3
    assert (script["embedded"](catalog, rows, embedder, tmp_path) == vectors).all()
    assert not capsys.readouterr().out  # nothing is embedded twice
    measured: list[dict[str, Any]] = list(
        script["measured"](vectors, on_grid(embedder.encode([catalog.title(row) for row in (1, 90)])))
    )
    assert measured[0]["index"] == "SQfp16" and measured[0]["recall_at_20"] == 1
    assert len({(row["index"], row["effort"]) for row in measured}) == len(measured) == 27
    assert max(row["recall_at_20"] for row in measured if row["index"].endswith("SQ8")) == 1


def test_other_titles_of_the_same_products_are_found(tmp_path: Path) -> None:
    """A shop of 300 generated products, and another that names six of them in another order."""
    script = runpy.run_path(str(ROOT / "experiments/catalog_retrieval/measure.py"))
    catalog, wanted = generate(300), range(0, 300, 50)
    titles = [f"{catalog.title(row)} {' '.join(catalog.attributes(row).values())}" for row in range(300)]
    files = {
        "amazon": ["id|title", *(f"a{row}|{title}" for row, title in enumerate(titles))],
        "walmart": ["id|title", *(f"w{row}|{' '.join(reversed(titles[row].split()))}" for row in wanted)],
        "gt": ["D1|D2", *(f"w{row}|a{row}" for row in wanted)],
    }
    for name, lines in files.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), "utf-8")
    exact, lists = script["measure"](script["read_matches"](tmp_path), LexicalEmbedder())
    assert (exact["products"], exact["queries"], exact["recall_at_1"], exact["mrr"]) == (300, 6, 1.0, 1.0)
    assert lists["index"].startswith("IVF") and lists["recall_at_20"] == 1.0
    found = [np.array([4, 2, 9]), np.array([1]), np.array([7, 5])]
    assert script["ranks_of"](found, np.array([9, 1, 3])).tolist() == [3, 1, np.inf], "counted from one"


@pytest.fixture
def lexical() -> dict[str, dict[str, str]]:
    return {row["products"]: row for row in table("catalog_scale/results") if row["embedder"] == "lexical"}


def test_a_verification_costs_the_same_at_any_size(lexical: dict[str, dict[str, str]]) -> None:
    assert float(lexical[LARGE]["verify_ms_p95"]) <= FLAT * float(lexical[SMALL]["verify_ms_p95"])


@pytest.mark.parametrize(
    ("column", "limit"),
    [
        ("reset_ms_p50", 10),  # draws look at more rows of a type, up to 512 of each
        ("reset_ms_p95", 100),
        ("episode_ms_p50", 25),
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
