"""The frozen benchmark: its tasks, what a submission must hold, and the row that it earns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from contestants import Script
from test_evaluation import run

from ecomlab import Shop
from ecomlab.evaluation import core
from ecomlab.evaluation.core import CORE, LEVELS, Row, check, freeze, frozen
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.transcripts import FILE, TranscriptError
from ecomlab.lab.core_board import add, newcombe, rows_of, write_board

SMALL = Cells(("STATUS", "CART"), (2, 6), CORE.tasks, core.BLOCK, trials=2)
"""A part of the benchmark, so that a check takes seconds."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "CORE", SMALL)
    monkeypatch.setattr(core, "LEVELS", SMALL.levels)
    monkeypatch.setattr(core, "TRIALS", SMALL.trials)


@pytest.fixture(scope="module")
def submitted(big_shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A player with slips, in the embedded default."""
    folder = tmp_path_factory.mktemp("core")
    run(Script(rate=0.2, name="slips"), big_shop, folder, SMALL)
    return folder


def test_the_benchmark_is_eight_environments_at_four_levels(big_shop: Shop) -> None:
    assert freeze(big_shop) == frozen()["generated"]
    for split in frozen().values():
        assert set(split["tasks"]) == {f"{env} {d}" for env in CORE.envs for d in LEVELS}


@pytest.mark.usefixtures("small")
def test_a_submission_earns_a_row(big_shop: Shop, submitted: Path, tmp_path: Path) -> None:
    row = check(submitted, big_shop)
    lines = [json.loads(line) for line in (submitted / FILE).read_text().splitlines()]
    right = [one["episode"]["score"]["correct"] for one in lines if "episode" in one]
    assert len(right) == 64 and 0 < row.pass_1 < 1
    assert row.pass_1 == pytest.approx(sum(right) / 64) == pytest.approx(sum(row.by_level.values()) / 2)
    assert row.player == "slips" and row.tokens > 0 and "%" in row.fails_at
    board = tmp_path / "board.json"
    for _ in range(2):  # the same row once
        add(row, board)
        assert rows_of(board, "generated") == [row] and not rows_of(board, "real")
    other = replace(row, trajectories="0" * 32)
    with pytest.raises(ValueError, match="another row named 'slips'"):
        add(other, board)
    add(other, board, replace=True)
    add(replace(row, player="first"), board)
    assert {one.trajectories for one in rows_of(board, "generated")} == {row.trajectories, "0" * 32}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("score", "does not replay to its score"),
        ("message", "does not replay to its score: message"),
        ("missing", "lacks 1 of 64 episodes; run the same"),
        ("task", "are not the frozen ones"),
        ("axes", "axes of difficulty are overridden"),
    ],
)
def test_a_submission_with_a_fault_is_refused(
    fault: str, says: str, big_shop: Shop, submitted: Path, tmp_path: Path
) -> None:
    kind, *rest = (submitted / FILE).read_text().splitlines()
    values = [json.loads(line) for line in rest]
    episodes = [value["episode"] for value in values if "episode" in value]
    wrong = next(one for one in episodes if not one["score"]["correct"])
    match fault:
        case "score":
            wrong["score"] |= {"value": 1.0, "correct": True}
        case "message":
            wrong["messages"][1]["content"] = "Something else."
        case "task":
            first = next(one for one in episodes if one["job"]["trial"] == 0)
            first["task"] = "0" * 32
        case "axes":
            wrong["job"]["axes"] = {"p_missing": 0.0}
        case "missing":
            values = [value for value in values if value.get("episode") is not wrong]
    (tmp_path / FILE).write_text("\n".join([kind, *map(json.dumps, values)]) + "\n")
    with pytest.raises(TranscriptError, match=says):
        check(tmp_path, big_shop)


def test_other_tasks_or_products_are_no_submission(shop: Shop, big_shop: Shop, tmp_path: Path) -> None:
    run(Script(), shop, tmp_path, Cells(("CART",), (0,), 2))
    with pytest.raises(
        TranscriptError, match=r"levels = \[0\], not .*; no split .*ecomlab eval PLAYER --core"
    ):
        check(tmp_path, big_shop)


def test_a_level_of_one_half_lies_between_the_levels_played() -> None:
    assert core._half([1.0, 0.75, 0.25, 0.0]) == "9.0"  # halfway from 6 to 12
    assert core._half([0.4, 0.9, 0.9, 0.9]) == "<2" and core._half([0.9, 0.9, 0.9, 0.5]) == ">20"


def test_the_board_is_written_from_its_rows(tmp_path: Path) -> None:
    shares = dict.fromkeys(("all", *CORE.envs), "7.5")
    rows = [
        Row(
            name,
            p,
            float("nan"),
            dict.fromkeys(LEVELS, p),
            shares,
            9.0,
            float("nan"),
            "0",
            "",
            "2026-01-01",
            "0",
            "ab" * 16,
        )
        for name, p in (("weak", 0.25), ("strong", 0.75))
    ]
    (tmp_path / "head.md").write_text("# Board\n")
    for row in rows:
        add(row, tmp_path / "board.json")
    add(replace(rows[1], pass_1=0.5, split="real"), tmp_path / "board.json")
    text = write_board(tmp_path).read_text()
    (tmp_path / "notes.json").write_text("[]")
    with pytest.raises(ValueError, match=r"notes.json is no board"):
        add(rows[0], tmp_path / "notes.json")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert text.startswith("# Board") and "strong" in table[2] and "weak" in table[3]
    assert {line.count("|") for line in table[:7]} == {len(core.HEADINGS) + 1}
    gap = [cell.strip() for cell in table[-1].split("|")[1:6]]
    assert gap == ["strong", "0.750", "0.500", "0.250", "0.167–0.328"]


def test_the_gap_has_newcombe_s_interval() -> None:
    low, high = newcombe(0.75, 0.5, 100)
    one, other = (0.6569, 0.8245), (0.4038, 0.5962)  # Wilson's intervals of 75 and 50 of 100
    assert low == pytest.approx(0.25 - ((0.75 - one[0]) ** 2 + (other[1] - 0.5) ** 2) ** 0.5, abs=1e-3)
    assert high == pytest.approx(0.25 + ((one[1] - 0.75) ** 2 + (0.5 - other[0]) ** 2) ** 0.5, abs=1e-3)
