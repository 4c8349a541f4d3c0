"""experiments/cascade, effect.py and played.py: tables grow, keep what they have, and are what is played again."""

import csv
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ecomlab.files import read_json, write_json

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "cascade"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts can be imported as they are run: with what is beside them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in ("effect", "played", "growing", "players"):
        sys.modules.pop(name, None)


@pytest.fixture
def effect(scripts: None) -> ModuleType:
    return importlib.import_module("effect")


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(table: Path, rows: list[dict[str, str]]) -> None:
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run(effect: ModuleType, table: Path, *more: str) -> None:
    effect.main(["perturbed", "--levels", "1", "--size", "2000", "--out", str(table), *more])


def test_a_table_that_was_stopped_goes_on_and_is_that_of_one_run(
    effect: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, most = list[int](), [3]

    def measure(runner: Any, jobs: Any, *more: Any) -> Iterator[Any]:
        if len(played) == most[0]:
            raise KeyboardInterrupt
        played.extend(job.seed for job in jobs)
        return real(runner, jobs, *more)

    real = effect.measure
    monkeypatch.setattr(effect, "measure", measure)
    parts, once = tmp_path / "parts.csv", tmp_path / "once.csv"
    with pytest.raises(KeyboardInterrupt):
        run(effect, parts, "--tasks", "5")
    stopped = rows_of(parts)
    assert len(played) == 3 and {int(row["seed"]) for row in stopped} == set(played)
    assert (read_json(tmp_path / "parts.json") or {})["perturbed"]["made_with"]["starter"] == "perturbed"
    most[0] = -1
    run(effect, parts, "--tasks", "5")
    assert len(played) == len(set(played)) == 5, "none is played twice"
    played.clear()
    run(effect, once, "--tasks", "5", "--at-once", "5")
    assert rows_of(parts)[: len(stopped)] == stopped
    assert sorted(rows_of(parts), key=effect.key_of) == sorted(rows_of(once), key=effect.key_of)
    assert any(not row["why"] for row in stopped) and any(row["why"] for row in stopped)


def test_rows_are_played_again_as_they_are_and_one_that_differs_is_named(
    effect: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    run(effect, table, "--tasks", "3")
    whole = table.read_bytes()
    run(effect, table, "--verify", "3")
    rows = rows_of(table)
    assert f"perturbed: 3 tasks played again, 0 of {len(rows)} rows differ" in capsys.readouterr().out
    pair = next(number for number, row in enumerate(rows) if not row["why"])
    rows[pair]["mended"] = str(1 - int(rows[pair]["mended"]))
    write(table, rows)
    with pytest.raises(SystemExit) as left:
        run(effect, table, "--verify", "3")
    said = capsys.readouterr().out
    assert left.value.code == 1 and f"1 of {len(rows)} rows differ" in said and str(rows[pair]) in said
    assert table.read_bytes() != whole, "what differs is left as it is"


def test_rows_of_other_weights_or_of_another_shop_are_not_added_under_the_same_name(
    effect: ModuleType, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    run(effect, table, "--tasks", "1")
    with pytest.raises(SystemExit, match=r"rows of perturbed made with what is another now: the weights;"):
        effect.main(["perturbed=reference", "--levels", "1", "--size", "2000", "--out", str(table)])
    record = read_json(table.with_suffix(".json"))
    assert record
    record["perturbed"]["catalog"] = "another"
    write_json(table.with_suffix(".json"), record)
    with pytest.raises(SystemExit, match="another now: the shop; give another name or --out"):
        run(effect, table, "--tasks", "2")


def test_episodes_are_played_again_as_they_are_and_one_that_differs_is_named(
    scripts: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played, table = importlib.import_module("played"), tmp_path / "played.csv"
    given = ["perturbed", "--levels", "1", "--tasks", "4", "--size", "2000", "--out", str(table)]
    played.main(given)
    played.main([*given, "--verify", "4"])
    assert "perturbed, d = 1: 4 episodes played again, 0 differ" in capsys.readouterr().out
    rows = rows_of(table)
    rows[-1]["turn"] = "99"
    write(table, rows)
    with pytest.raises(SystemExit):
        played.main([*given, "--verify", "4"])
    assert f"1 differ {rows[-1]['seed']}" in capsys.readouterr().out
