"""Comparison of players on the same tasks and under the same conditions: paired differences in success."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.evaluation.evaluation import EVALUATION
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.result import Result, Table, gap, interval, number, numbered, picture
from ecomlab.evaluation.summary import CONFIDENCE, POWER, Ledger
from ecomlab.evaluation.transcript import Key, Transcript
from ecomlab.evaluation.transcripts import TranscriptError, complete, differences, without_place
from ecomlab.markup.elements import Html, element, joined, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_UNSCORED = 0.02
"""Maximum share of unscored episodes: they may be the hard ones."""
ALIGN = {
    "limits.turn": "--set turn_tokens= of weights, --set max_tokens= of an endpoint",
    "limits.context": "--set context_tokens= of weights, --set context= of an endpoint",
    "limits.episode": "--set episode_tokens= so large that no episode reaches it",
    "limits": "--set turn_tokens=, episode_tokens=, context_tokens=",
    "axes": "--axis",
    "block": "--block",
    "catalog": "--catalog",
    "strict": "--set strict=",
    "customer": "--customer",
    "reward": "evaluate both with the same weights",
    "environments": "evaluate both with the same ecomlab",
    "scores": "evaluate both with the same ecomlab, or score the older one again: --rescore",
}
"""How to align two evaluations, by the first part of the condition in which they differ."""
INTERVALS = (
    "95%: interval of the paired difference, over tasks, not corrected for the number of rows; significant: "
    "the interval excludes 0; detectable: the smallest difference that the sample detects with a power of 80%"
)
STANDINGS = "standings, over the tasks that all have scored"
LOUD = "NOT UNDER THE SAME CONDITIONS: these may cause the differences"


@dataclass(frozen=True)
class Difference:
    """Success of the first player minus that of the second, over a group of tasks that both played."""

    first: str
    second: str
    env: str
    """An environment, or "all"."""
    tasks: int
    first_success: float
    second_success: float
    mean: float
    low: float
    high: float
    detectable: float
    """Smallest difference that the sample detects with a power of 80%."""

    @property
    def significant(self) -> bool:
        """True if the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Standing:
    """A player over the tasks that all players have scored."""

    player: str
    tasks: int
    success: float
    low: float
    high: float
    """Bounds of the 95% interval."""
    reward: float
    turns: float
    tokens: float
    """Sampled in a mean episode; NaN if unknown."""
    cost: str
    """Of the whole evaluation, with its currency; "" if unknown."""


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Players by name, the best first in `standings`, and the differences of each pair, by environment and over all
    tasks."""

    players: tuple[str, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[int, ...] = ()
    """Scored episodes of each player that a partner has not scored."""
    notes: tuple[str, ...] = ()
    """Conditions in which the evaluations differ, if they were compared nevertheless."""
    standings: tuple[Standing, ...] = ()
    """The best first; empty if no task is common to all."""
    cells: "Mapping[str, pd.DataFrame]" = field(default_factory=dict, repr=False)
    """Success by environment and level, by player, over the tasks that are common to all."""

    @property
    def board(self) -> Table:
        """The standings as text."""
        headings = ["", "player", "tasks", "success", "95%", "reward", "turns", "tokens", "cost"]
        rows = [
            [
                *(str(place), one.player, str(one.tasks), number(one.success), interval(one.low, one.high)),
                *(number(one.reward), number(one.turns, 1), number(one.tokens, 0), one.cost),
            ]
            for place, one in enumerate(self.standings, 1)
        ]
        return headings, rows

    @property
    def tables(self) -> dict[str, Table]:
        return {STANDINGS: self.board, **super().tables} if self.standings else super().tables

    def plot(self) -> "Figure":
        """Draw the success of all players by environment and level, over their common tasks."""
        from ecomlab.evaluation.report_plots import success_by_level

        return success_by_level(self.cells)

    def html(self) -> Html:
        if not self.standings:
            return super().html()
        headings, rows = self.board
        shown = [
            element("h4", STANDINGS),
            table(headings, numbered(rows)),
        ]
        about = f"success of {', '.join(self.players)} by environment and level, with 95% intervals"
        return joined([*shown, picture(self.plot(), about), super().html()])

    @property
    def frame(self) -> "pd.DataFrame":
        """A row a pair and group of tasks, with `significant`."""
        import pandas as pd

        return pd.DataFrame(self.to_json()["differences"])

    @property
    def overall(self) -> tuple[Difference, ...]:
        """The difference of each pair over all tasks."""
        return tuple(one for one in self.differences if one.env == "all")

    @property
    def title(self) -> str:
        return " against ".join(self.players)

    @property
    def table(self) -> Table:
        names = "first, second, env, tasks, first's, second's, difference, 95%, significant, detectable"
        headings = names.split(", ")
        rows = [
            [
                *(d.first, d.second, d.env, str(d.tasks), number(d.first_success), number(d.second_success)),
                *(f"{d.mean:+.3f}", f"{d.low:+.3f} to {d.high:+.3f}", "yes" if d.significant else "no"),
                gap(d.detectable),
            ]
            for d in self.differences
        ]
        return headings, rows

    @property
    def lines(self) -> list[str]:
        loud = [LOUD, *self.notes] if self.notes else []
        out = [
            f"left out, {name}: {count} episodes that another player has not scored"
            for name, count in zip(self.players, self.left_out, strict=False)
            if count
        ]
        return [*loud, INTERVALS, *out]

    def to_json(self) -> dict[str, Any]:
        rows = [{**asdict(one), "significant": one.significant} for one in self.differences]
        left_out, notes = list(self.left_out), list(self.notes)
        standings = [asdict(one) for one in self.standings]
        found = {"players": list(self.players), "differences": rows, "left_out": left_out, "notes": notes}
        return {**found, "standings": standings}


def compare(*evaluations: "Report | str | Path", strict: bool = True) -> Comparison:
    """Compare the success of two or more evaluations, reports or folders of saved ones, task by task.

    Raises TranscriptError for evaluations under different conditions, unfinished ones, and those with more than 2%
    unscored episodes, with every obstacle and the option that removes it; with `strict=False` these become notes of the
    comparison. Also raises it for other kinds of runs, and for two evaluations without a common task.
    """
    if len(evaluations) < 2:
        raise ValueError("a comparison takes two or more evaluations: reports or folders of saved ones")
    reports = [one if isinstance(one, Report) else Report.read(one) for one in evaluations]
    for report in reports:
        if report.header["kind"] != EVALUATION:
            raise TranscriptError(
                f"{report.folder} holds a {report.header['kind']} run, which selects its episodes, not an evaluation; "
                "evaluate that player with `ecomlab eval`"
            )
    names = _names(reports)
    couples = combinations(range(len(reports)), 2)
    wrong = [line for one, two in couples for line in _differ(reports, names, one, two)]
    wrong += [line for name, report in zip(names, reports, strict=True) for line in _unfit(name, report)]
    if wrong and strict:
        raise TranscriptError(
            f"these evaluations cannot be compared: {'; '.join(wrong)}; use strict=False or --anyway to compare them "
            "nevertheless"
        )
    found = compare_transcripts(names, [report.transcripts for report in reports], notes=wrong)
    standings, cells = _standings(names, reports)
    return replace(found, standings=standings, cells=cells)


def _standings(
    names: Sequence[str], reports: Sequence[Report]
) -> tuple[tuple[Standing, ...], "dict[str, pd.DataFrame]"]:
    """Rank players over the tasks that all have scored."""
    scored = [{t.key for t in report.transcripts if not t.unscored} for report in reports]
    common = set.intersection(*scored)
    if not common:
        return (), {}
    found, cells = [], {}
    for name, report in zip(names, reports, strict=True):
        mine = replace(report, attempts=[t for t in report.transcripts if t.key in common], plan=None)
        whole = mine.summary["all"]
        figures = {
            key: whole[key] for key in ("tasks", "success", "low", "high", "reward", "turns", "tokens")
        }
        found.append(Standing(name, **figures, cost=Ledger(report.prices, report.attempts).cost))
        cells[name] = mine.cells
    found.sort(key=lambda one: -one.success)
    return tuple(found), {one.player: cells[one.player] for one in found}


def compare_transcripts(
    names: Sequence[str], played: Sequence[Iterable[Transcript]], notes: Sequence[str] = ()
) -> Comparison:
    """Compare the scored episodes of each pair. The unit is the task: its trials are averaged.

    Raises TranscriptError if a pair has no common task.
    """
    outcomes = [{t.key: float(t.score.correct) for t in found if not t.unscored} for found in played]
    rows: list[Difference] = []
    used: list[set[Key]] = [set(mine) for mine in outcomes]
    for i, j in combinations(range(len(names)), 2):
        one, two = outcomes[i], outcomes[j]
        common = sorted(one.keys() & two.keys())
        if not common:
            raise TranscriptError(
                f"{names[i]} and {names[j]} have no common task; evaluate both on the same environments and levels"
            )
        used[i] &= set(common)
        used[j] &= set(common)
        envs = list(dict.fromkeys(key[0] for key in common))
        groups = {env: [key for key in common if key[0] == env] for env in envs if len(envs) > 1}
        for env, keys in {**groups, "all": common}.items():
            rows.append(_difference((names[i], names[j]), env, keys, one, two))
    left_out = tuple(len(mine) - len(kept) for mine, kept in zip(outcomes, used, strict=True))
    return Comparison(tuple(names), tuple(rows), left_out, tuple(notes))


def _difference(
    names: tuple[str, str], env: str, keys: Sequence[Key], one: Mapping[Key, float], two: Mapping[Key, float]
) -> Difference:
    tasks: dict[tuple[str, int, int], list[Key]] = defaultdict(list)
    for key in keys:
        tasks[key[:3]].append(key)
    first, second = (
        np.array([sum(side[key] for key in trials) / len(trials) for trials in tasks.values()])
        for side in (one, two)
    )
    success = float(first.mean()), float(second.mean())
    return Difference(*names, env, len(tasks), *success, *paired_interval(first - second))


def paired_interval(differences: Sequence[float] | np.ndarray) -> tuple[float, float, float, float]:
    """Compute the mean of paired differences in [-1, 1], its bounds, and the smallest detectable difference.

    Bonett and Price's interval (2012): Wald's, with an additional task won by the first and one won by the second. It
    keeps its coverage if nearly all pairs agree, and has a positive width even if all do, unlike a bootstrap.
    """
    from scipy.stats import norm

    values = np.asarray(differences, dtype=float)
    more = np.append(values, [1.0, -1.0])
    error = math.sqrt(more.var() / len(more))
    z = norm.ppf((1 + CONFIDENCE) / 2)
    low, high = max(-1.0, more.mean() - z * error), min(1.0, more.mean() + z * error)
    return float(values.mean()), float(low), float(high), float((z + norm.ppf(POWER)) * error)


# --- conditions ---


def check_scored(where: object, found: Sequence[Transcript]) -> None:
    """Raise TranscriptError if more than 2% of the episodes are unscored; `where` names them."""
    if why := _unscored(where, found):
        raise TranscriptError(f"{why}; run it again with --retry-unscored")


def _unscored(where: object, found: Sequence[Transcript]) -> str:
    lost = [t for t in found if t.unscored]
    if len(lost) <= MOST_UNSCORED * len(found):
        return ""
    classes = ", ".join(sorted({t.unscored for t in lost}))
    return (
        f"{where}: {len(lost)} of {len(found)} episodes are unscored ({classes}), more than {MOST_UNSCORED:.0%}; "
        f"the last: {lost[-1].why_unscored}"
    )


def _unfit(name: str, report: Report) -> list[str]:
    """List why an evaluation cannot be compared: missing episodes may be the hard ones."""
    cells, there, found = report.header["cells"], len(report.transcripts), []
    tasks = (report.plan or cells)["tasks"]
    planned = tasks * len(cells["envs"]) * len(cells["levels"]) * cells["trials"]
    if there < planned:
        way = "run the same `ecomlab eval` again to finish it"
        found.append(f"{name} is unfinished: {there} of {planned} episodes; {way}")
    if why := _unscored(name, report.transcripts):
        found.append(f"{why}; run it again with --retry-unscored")
    return found


def _differ(reports: Sequence[Report], names: Sequence[str], i: int, j: int) -> list[str]:
    """List every condition in which two evaluations differ, with the option that aligns it, for the environments that
    both have played."""
    pair = reports[i], reports[j]
    one, two = (without_place(report.header["conditions"]) for report in pair)
    envs = one["environments"].keys() & two["environments"].keys()
    for conditions, report in zip((one, two), pair, strict=True):
        conditions["environments"] = {env: conditions["environments"][env] for env in sorted(envs)}
        conditions["block"] = report.header["cells"]["block"]
    complete(one, two)
    if one["limits"] is None or two["limits"] is None:  # a script has none
        del one["limits"], two["limits"]
    else:
        one["limits"], two["limits"] = _reached(one["limits"], two["limits"], pair)
    return [
        f"{line} (align: {next(way for name, way in ALIGN.items() if line.startswith(name))})"
        for line in differences(one, two, (f"of {names[i]}", f"of {names[j]}"))
    ]


def _reached(
    one: Mapping[str, Any], two: Mapping[str, Any], pair: tuple[Report, Report]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Drop the token limit of an episode if only one player has it (weights do, endpoints do not) and never reached
    it: it has changed nothing."""
    for limits, others, report in ((one, two, pair[0]), (two, one, pair[1])):
        most: int | None = limits.get("episode")
        if most is None or others.get("episode", most) is not None:
            continue
        if all(t.usage["agent"].completion_tokens < most for t in report.transcripts if "agent" in t.usage):
            one, two = ({k: v for k, v in side.items() if k != "episode"} for side in (one, two))
            break
    return one, two


def _names(reports: Sequence[Report]) -> list[str]:
    """Name the players; those with equal names by folder or number."""
    often = Counter(report.name for report in reports)
    return [
        report.name
        if often[report.name] == 1
        else report.folder.name
        if report.folder
        else f"{report.name} ({number})"
        for number, report in enumerate(reports, 1)
    ]
