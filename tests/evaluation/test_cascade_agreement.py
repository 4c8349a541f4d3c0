"""Agreement of readers: kappa is Cohen's, answers are checked, every disagreement is listed, the page has the table."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from ecomlab.evaluation.cascade.agreement import (
    FIRST,
    KIND,
    POOLED,
    TURN,
    AnswerError,
    Marks,
    agreements,
    as_markdown,
    differences_as_markdown,
    disagreements,
    kappa,
    of_labels,
    read_answers,
)
from ecomlab.evaluation.cascade.mistakes import KINDS, Labelled, Mistake
from ecomlab.seeding import rng

ROOT = Path(__file__).resolve().parents[2]
READERS, PAGE = ROOT / "experiments" / "cascade" / "readers", ROOT / "docs" / "cascade.md"
TABLE, LIST = READERS / "agreement.csv", READERS / "disagreements.csv"
TURNS = {"01": 3, "02": 2, "03": 5}
ONE: Marks = {"01": [(1, "wrong product"), (3, "out of turns")], "02": [], "03": [(2, "wasted turn")]}
TWO: Marks = {"01": [(1, "wrong product")], "02": [], "03": [(3, "wasted turn"), (5, "missed item")]}


def answers(path: Path, *lines: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def line(trajectory: str, turn: int, kind: str, reason: str = "because") -> dict[str, object]:
    return {"trajectory": trajectory, "turn": turn, "kind": kind, "reason": reason}


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_cohens(seed: int) -> None:
    random = rng("kappa", seed)
    one = random.integers(4, size=50)
    two = np.where(random.random(50) < 0.6, one, random.integers(4, size=50))
    table = np.zeros((4, 4), int)
    np.add.at(table, (one, two), 1)
    assert kappa(table[None])[0] == pytest.approx(cohen_kappa_score(one, two))


def test_where_chance_alone_agrees_there_is_no_kappa() -> None:
    assert math.isnan(kappa(np.array([[[9, 0], [0, 0]]]))[0])


def test_agreement_of_two_small_readings_is_what_a_hand_counts() -> None:
    found = {(a.measure, a.kind): a for a in agreements({"A": ONE, "B": TWO}, TURNS)}
    turn, first, pooled = (found[measure, ""] for measure in (TURN, FIRST, POOLED))
    assert (turn.cases, turn.by_one, turn.by_two, turn.by_both) == (10, 3, 3, 1)
    assert turn.agreed == pytest.approx(0.6)
    assert turn.kappa == pytest.approx(
        (0.6 - 0.58) / (1 - 0.58)
    )  # both: 3 of 10; by chance .3 * .3 + .7 * .7
    assert (first.cases, first.by_both, first.agreed, first.kappa) == (3, 2, 1.0, 1.0)
    assert (pooled.cases, pooled.by_one, pooled.by_two, pooled.by_both) == (40, 3, 3, 1)
    assert {kind for measure, kind in found if measure == KIND} == {
        "wrong product", "out of turns", "wasted turn", "missed item",
    }  # fmt: skip
    assert found[KIND, "wrong product"].kappa == 1.0
    assert found[KIND, "wasted turn"].by_both == 0
    assert all(math.isnan(a.kappa) or a.low <= a.kappa <= a.high for a in found.values())


def test_readers_that_say_the_same_agree_wholly() -> None:
    for found in agreements({"A": ONE, "B": ONE}, TURNS):
        assert (found.agreed, found.kappa, found.low, found.high) == (1.0, 1.0, 1.0, 1.0)


def test_every_disagreement_is_listed_with_what_the_others_say() -> None:
    reasons = {"A": {("03", 2, "wasted turn"): ["asked twice"]}, "B": {}}
    rows = {(row["trajectory"], row["turn"]): row for row in disagreements({"A": ONE, "B": TWO}, reasons)}
    assert set(rows) == {("01", 3), ("03", 2), ("03", 3), ("03", 5)}
    assert rows["03", 2]["others"] == "B: in turn 3"
    assert rows["03", 2]["why"] == "A: asked twice"
    assert rows["03", 5]["noted_by"] == "B"
    assert rows["03", 5]["others"] == "A: nothing"


def test_what_an_end_left_undone_is_left_out_as_readers_were_asked_to() -> None:
    mistakes = (
        Mistake(2, "wasted turn"),
        Mistake(3, "patience lost", parent=0),
        Mistake(3, "missed item", parent=1),
        Mistake(3, "dropped job", parent=1),
    )
    labelled = Labelled("CART", 1, 0, 3, 3, "patience", False, False, mistakes)
    assert of_labels(labelled) == [(2, "wasted turn"), (3, "patience lost")]


def test_answers_are_read_in_order_of_turns(tmp_path: Path) -> None:
    path = answers(
        tmp_path / "a.jsonl",
        line("01", 3, "out of turns"),
        line("01", 1, "wrong product"),
        line("02", 0, "none"),
        line("03", 2, "wasted turn"),
    )
    found, reasons = read_answers(path, TURNS)
    assert found == ONE
    assert reasons["01", 3, "out of turns"] == ["because"]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (line("04", 1, "wasted turn"), "no trajectory '04'"),
        (line("01", 4, "wasted turn"), "turns 1 to 3, not 4"),
        (line("01", 1, "wrong mood"), "wrong mood"),
        ({"turn": 1, "kind": "wasted turn"}, "no object with"),
    ],
)
def test_a_line_that_is_not_as_asked_for_is_named(tmp_path: Path, bad: dict[str, object], told: str) -> None:
    with pytest.raises(AnswerError, match=f"line 2: .*{told}"):
        read_answers(answers(tmp_path / "a.jsonl", line("02", 0, "none"), bad), TURNS)


def test_a_trajectory_of_which_nothing_is_said_is_named(tmp_path: Path) -> None:
    with pytest.raises(AnswerError, match="says nothing of 01, 03"):
        read_answers(answers(tmp_path / "a.jsonl", line("02", 0, "none")), TURNS)


def test_the_readers_are_told_every_kind_that_they_may_note() -> None:
    told = (READERS / "README.md").read_text("utf-8")
    follows = "dropped job"  # only from an end, and what an end leaves undone is not noted
    assert [kind for kind in KINDS if f"`{kind}`" not in told] == [follows]


def test_the_page_has_the_committed_tables() -> None:
    for path, draw in ((TABLE, as_markdown), (LIST, differences_as_markdown)):
        with path.open(newline="", encoding="utf-8") as file:
            drawn = draw(list(csv.DictReader(file)))
        assert drawn in PAGE.read_text("utf-8"), "run: python experiments/cascade/readers/agree.py --draw"


def test_what_not_all_note_is_counted_by_who_does() -> None:
    rows = list(disagreements({"A": ONE, "B": TWO, "code": TWO}, {"A": {}, "B": {}, "code": {}}))
    assert differences_as_markdown(rows).splitlines()[2:] == [
        "| A alone | 2 | out of turns 1, wasted turn 1 |",
        "| B, code alone | 2 | wasted turn 1, missed item 1 |",
    ]
    assert differences_as_markdown([]) == ""


def test_the_table_is_the_same_from_the_file_as_from_memory(tmp_path: Path) -> None:
    rows = [found.row() for found in agreements({"A": ONE, "B": TWO, "code": ONE}, TURNS)]
    text = as_markdown(rows)
    assert as_markdown([{name: str(value) for name, value in row.items()} for row in rows]) == text
    assert "| | A and B | A and code | B and code | noted |" in text
    assert "A 3, B 3, code 3 of 10" in text
