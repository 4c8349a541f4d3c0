"""Committed tables and figures could be made today, with what is shipped."""

import json
import tomllib
from pathlib import Path

import pytest
from outdated import outdated

from ecomlab.lab import provenance

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
RECORDS = sorted(EXPERIMENTS.glob(f"[!r]*/{provenance.RECORD}"))  # not those of experiments/runs
STARTERS = sorted((EXPERIMENTS / "starters").glob("*.json"))
OUTDATED = tomllib.loads((EXPERIMENTS / "outdated.toml").read_text("utf-8"))
FIGURES = sorted((ROOT / "figures").glob("*.json"))


@pytest.mark.parametrize("record", [*RECORDS, *STARTERS], ids=lambda path: path.parent.name + path.stem)
def test_a_table_was_made_with_what_is_shipped_or_is_said_to_be_outdated(record: Path) -> None:
    name = str(record.relative_to(EXPERIMENTS)) if record in STARTERS else record.parent.name
    found = list(outdated(json.loads(record.read_text("utf-8"))))
    assert bool(found) == (name in OUTDATED), found


@pytest.mark.parametrize("name", ["train.csv", "eval.csv"])
def test_every_table_of_a_sweep_says_where_it_comes_from(name: str) -> None:
    tables = {path.parent for path in EXPERIMENTS.glob(f"[!r]*/{name}")}
    assert tables == {path.parent for path in RECORDS}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_figure_shows_the_table_that_is_there(figure: Path) -> None:
    inputs = json.loads(figure.read_text("utf-8"))["inputs"]
    assert {name: provenance.sha256(ROOT / name) for name in inputs} == inputs
