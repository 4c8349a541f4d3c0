"""How far readers of the same trajectories agree on mistakes, with each other and with the labels: Cohen's kappa."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.evaluation.cascade.mistakes import KINDS, TERMINAL, Labelled
from ecomlab.seeding import rng
from ecomlab.suggest import unknown

Marks = Mapping[str, Sequence[tuple[int, str]]]
"""What one reader found: for every trajectory, by name, (turn, kind) of each mistake in order."""
NONE = "none"
"""Kind of a line that says that a trajectory has no mistake."""
FIELDS = ("trajectory", "turn", "kind", "reason")
"""What a line of an answer holds."""
TURN, FIRST, POOLED, KIND = (
    "a turn has a mistake",
    "kind of the first mistake",
    "a turn has a mistake of a kind, over all kinds",
    "a turn has a mistake of this kind",
)
"""What agreement is measured on."""
RESAMPLES = 2_000
BOUNDS = (2.5, 97.5)
"""Percentiles of the resampled kappas that bound the interval."""


class AnswerError(ValueError):
    """A reader's file that is not as it was asked for; the message names the line and what is wrong."""


@dataclass(frozen=True)
class Agreement:
    """How far two readers agree on one thing."""

    one: str
    two: str
    measure: str
    kind: str
    """Of `KIND`; else empty."""
    cases: int
    """Turns, trajectories, or turns times kinds."""
    by_one: int
    """Cases in which the first reader notes a mistake."""
    by_two: int
    by_both: int
    """Cases in which both note the same."""
    agreed: float
    """Share of cases in which they say the same."""
    kappa: float
    """Cohen's kappa; NaN where both say the same one thing of every case, of which chance would make as much."""
    low: float
    high: float
    """Bounds of kappa at 95%, by drawing trajectories with replacement."""

    def row(self) -> dict[str, Any]:
        """Write as a row of the table, NaN as an empty text."""
        return {name: _text(value) for name, value in asdict(self).items()}


def _text(value: Any) -> Any:
    return ("" if np.isnan(value) else f"{value:.4f}") if isinstance(value, float) else value


# What each of them found.


def read_answers(path: Path, turns: Mapping[str, int]) -> tuple[Marks, dict[tuple[str, int, str], list[str]]]:
    """Read a reader's file of JSON lines: what they found in these trajectories, each of so many `turns`, and their
    reasons by trajectory, turn and kind.

    Raises AnswerError for a line that is not as asked for, and for trajectories of which nothing is said.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    reasons: dict[tuple[str, int, str], list[str]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            name, turn, kind, reason = _read_line(line, turns)
        except ValueError as error:
            raise AnswerError(f"{path}, line {number}: {error}") from None
        marks = found.setdefault(name, [])
        if kind != NONE:
            marks.append((turn, kind))
            reasons.setdefault((name, turn, kind), []).append(reason)
    if unsaid := [name for name in turns if name not in found]:
        raise AnswerError(
            f"{path} says nothing of {', '.join(unsaid)}; a trajectory without a mistake has a line that says so"
        )
    return {name: sorted(found[name], key=lambda mark: mark[0]) for name in turns}, reasons


def _read_line(line: str, turns: Mapping[str, int]) -> tuple[str, int, str, str]:
    value = json.loads(line)
    if not isinstance(value, dict) or not set(FIELDS[:3]) <= set(value):
        raise ValueError(f"it is no object with {', '.join(FIELDS)}")
    name, turn, kind = str(value["trajectory"]), value["turn"], str(value["kind"])
    if name not in turns:
        raise ValueError(f"there is no trajectory {name!r}")
    if kind not in (*KINDS, NONE):
        raise ValueError(unknown("kind", kind, (*KINDS, NONE)))
    if kind != NONE and (type(turn) is not int or not 1 <= turn <= turns[name]):
        raise ValueError(f"trajectory {name} has turns 1 to {turns[name]}, not {turn!r}")
    return name, turn if kind != NONE else 0, kind, str(value.get("reason", ""))


def of_labels(labelled: Labelled) -> list[tuple[int, str]]:
    """List what the labels found as readers were asked to: without what an end left undone, which follows from it."""
    ends = {number for number, m in enumerate(labelled.mistakes) if m.kind in TERMINAL.values()}
    return [(m.turn, m.kind) for m in labelled.mistakes if m.parent not in ends]


# How far they agree.


def agreements(readings: Mapping[str, Marks], turns: Mapping[str, int]) -> Iterator[Agreement]:
    """Compare each two of these readers, by name, on everything that is measured. Kinds that nobody noted are left
    out."""
    noted = {kind for marks in readings.values() for found in marks.values() for _, kind in found}
    kinds = [kind for kind in KINDS if kind in noted]
    for one, two in combinations(readings, 2):
        pair = readings[one], readings[two]
        by_kind = {kind: _tables(pair, turns, _turns_with(kind)) for kind in kinds}
        measured = {
            (TURN, ""): _tables(pair, turns, _turns_with(None)),
            (FIRST, ""): _tables(pair, turns, _first),
            (POOLED, ""): sum(by_kind.values(), np.zeros((len(turns), 2, 2), int)),
            **{(KIND, kind): table for kind, table in by_kind.items()},
        }
        for (measure, kind), tables in measured.items():
            yield _agreement(one, two, measure, kind, tables)


Judge = Callable[[Sequence[tuple[int, str]], int], Sequence[int]]
"""From the marks of a trajectory and its turns to a verdict on each case, 0 for none."""


def _turns_with(kind: str | None) -> Judge:
    """Judge each turn: whether it has a mistake, of this kind if one is given."""

    def judge(marks: Sequence[tuple[int, str]], turns: int) -> Sequence[int]:
        there = {turn for turn, found in marks if kind in (None, found)}
        return [int(turn in there) for turn in range(1, turns + 1)]

    return judge


def _first(marks: Sequence[tuple[int, str]], turns: int) -> Sequence[int]:
    """Judge a trajectory: the kind of its first mistake, by number."""
    return [1 + KINDS.index(marks[0][1]) if marks else 0]


def _tables(pair: tuple[Marks, Marks], turns: Mapping[str, int], judge: Judge) -> np.ndarray:
    """Count the two readers' verdicts, by trajectory: an array (trajectories, verdicts of one, verdicts of two)."""
    size = 1 + (len(KINDS) if judge is _first else 1)
    tables = np.zeros((len(turns), size, size), int)
    for number, (name, count) in enumerate(turns.items()):
        one, two = (judge(marks[name], count) for marks in pair)
        np.add.at(tables[number], (np.array(one), np.array(two)), 1)
    return tables


def _agreement(one: str, two: str, measure: str, kind: str, tables: np.ndarray) -> Agreement:
    table = tables.sum(axis=0)
    cases, same = int(table.sum()), np.diag(table)
    drawn = rng("agreement", one, two, measure, kind).integers(len(tables), size=(RESAMPLES, len(tables)))
    weights = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(tables))
    kappas = kappa(np.tensordot(weights, tables, axes=1))
    known = kappas[~np.isnan(kappas)]
    low, high = np.percentile(known, BOUNDS).tolist() if len(known) else (np.nan, np.nan)
    return Agreement(
        one, two, measure, kind, cases,
        by_one=cases - int(table[0].sum()),
        by_two=cases - int(table[:, 0].sum()),
        by_both=int(same[1:].sum()),
        agreed=float(same.sum() / cases),
        kappa=float(kappa(table[None])[0]),
        low=low,
        high=high,
    )  # fmt: skip


def kappa(tables: np.ndarray) -> np.ndarray:
    """Compute Cohen's kappa of each table (..., verdicts of one, verdicts of two); NaN where chance alone agrees
    always. For many tables at once, which scikit-learn's takes one by one."""
    cases = tables.sum(axis=(-2, -1))
    same = np.trace(tables, axis1=-2, axis2=-1) / cases
    by_chance = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1) / cases**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(by_chance < 1, (same - by_chance) / (1 - by_chance), np.nan)


def disagreements(
    readings: Mapping[str, Marks],
    reasons: Mapping[str, Mapping[tuple[str, int, str], Sequence[str]]],
) -> Iterator[dict[str, Any]]:
    """List every mistake that not all of them note: who does, why, and what the others note in that turn, or of that
    kind elsewhere in the trajectory."""
    for name in next(iter(readings.values())):
        every = {reader: marks[name] for reader, marks in readings.items()}
        for turn, kind in dict.fromkeys(sorted(mark for marks in every.values() for mark in marks)):
            noted = [reader for reader, marks in every.items() if (turn, kind) in marks]
            if len(noted) == len(every):
                continue
            yield {
                "trajectory": name,
                "turn": turn,
                "kind": kind,
                "noted_by": ", ".join(noted),
                "others": "; ".join(_instead(r, every[r], turn, kind) for r in every if r not in noted),
                "why": " / ".join(
                    f"{reader}: {why}"
                    for reader in noted
                    for why in reasons[reader].get((name, turn, kind), ())
                ),
            }


def _instead(reader: str, marks: Sequence[tuple[int, str]], turn: int, kind: str) -> str:
    """Say what a reader notes in place of a mistake."""
    here = [found for at, found in marks if at == turn]
    elsewhere = [str(at) for at, found in marks if found == kind]
    if here:
        return f"{reader}: {', '.join(here)}"
    return f"{reader}: in turn {', '.join(elsewhere)}" if elsewhere else f"{reader}: nothing"


# The table on the page.


def as_markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write the rows of the table in Markdown, a column for each two readers; says so where there are none."""
    rows = list(rows)
    if not rows:
        return "The readers are not through yet."
    pairs = list(dict.fromkeys((row["one"], row["two"]) for row in rows))
    lines = [
        f"| | {' | '.join(f'{one} and {two}' for one, two in pairs)} | noted |",
        f"|---|{'---|' * (len(pairs) + 1)}",
    ]
    for measure, kind in dict.fromkeys((row["measure"], row["kind"]) for row in rows):
        of = {(r["one"], r["two"]): r for r in rows if (r["measure"], r["kind"]) == (measure, kind)}
        cells = [_cell(of[pair]) for pair in pairs]
        lines.append(f"| {kind or measure} | {' | '.join(cells)} | {_noted(of.values())} |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any]) -> str:
    """Write kappa and its interval, as far as there are any."""
    if row["kappa"] == "":
        return "–"
    bounds = f" ({float(row['low']):.2f} to {float(row['high']):.2f})" if row["low"] != "" else ""
    return f"{float(row['kappa']):.2f}{bounds}"


def _noted(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write how many cases each reader notes a mistake in, of how many."""
    counts = {name: row[by] for row in rows for name, by in ((row["one"], "by_one"), (row["two"], "by_two"))}
    cases = next(iter(rows))["cases"]
    return f"{', '.join(f'{name} {count}' for name, count in counts.items())} of {cases}"


def differences_as_markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write in Markdown how many mistakes not all of them note, by who does and by kind; empty without any."""
    by_whom: dict[str, Counter[str]] = {}
    for row in rows:
        by_whom.setdefault(str(row["noted_by"]), Counter())[str(row["kind"])] += 1
    if not by_whom:
        return ""
    lines = ["| noted by | mistakes | of these kinds |", "|---|---|---|"]
    for whom, kinds in sorted(by_whom.items(), key=lambda one: -one[1].total()):
        listed = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        lines.append(f"| {whom} alone | {kinds.total()} | {listed} |")
    return "\n".join(lines)
