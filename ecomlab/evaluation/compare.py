"""Comparison of two players on the same tasks, under the same conditions."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.evaluation.evaluation import EVALUATION
from ecomlab.evaluation.summary import CONFIDENCE, POWER
from ecomlab.evaluation.transcript import Key, Transcript
from ecomlab.evaluation.transcripts import (
    TranscriptError,
    differences,
    path_of,
    read,
    read_header,
    read_plan,
    without_place,
)

MOST_UNSCORED = 0.02
"""Share of unscored episodes above which nothing is concluded: they may be the hard ones."""
Task = tuple[str, int, int]
"""Environment, level and seed."""


@dataclass(frozen=True)
class Difference:
    """By how much the first player's success exceeds the second's, in a group of tasks that both played."""

    group: str
    tasks: int
    first: float
    second: float
    mean: float
    low: float
    high: float
    shows: float
    """Smallest difference that this sample shows with a power of 80%."""

    @property
    def shown(self) -> bool:
        """True if the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Comparison:
    """Two players by name, their difference over all tasks and in each environment."""

    players: tuple[str, str]
    overall: Difference
    environments: tuple[Difference, ...]
    trials: int
    left_out: tuple[int, int]
    """Episodes of each that have no scored partner."""

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        found = self.overall
        said = f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}] over {found.tasks} tasks"
        if not found.shown:
            enough = (
                f"shows about {found.shows:.3f} or more" if found.shows < 1 else "is too small to show any"
            )
            return (
                f"No difference shown between {self.players[0]} and {self.players[1]}: {said}; "
                f"a sample of this size {enough}."
            )
        better, worse = self.players if found.mean > 0 else self.players[::-1]
        low, high = sorted((abs(found.low), abs(found.high)))
        return (
            f"{better} succeeds more often than {worse}: by {abs(found.mean):.3f} [{low:.3f}, {high:.3f}] over "
            f"{found.tasks} tasks."
        )

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object."""
        return {**asdict(self), "verdict": self.verdict}


def compare(first: Path, second: Path) -> Comparison:
    """Compare the success of two evaluations, task by task.

    Raises TranscriptError, with everything that is wrong, for what is no evaluation, is unfinished, was played under
    other conditions, has more than 2% unscored episodes, or has no task in common.
    """
    headers = [read_header(path) for path in (first, second)]
    names = _names(headers, (first, second))
    for path, header in zip((first, second), headers, strict=True):
        if header["kind"] != EVALUATION:
            raise TranscriptError(
                f"{path} holds transcripts of a {header['kind']} run, not of an evaluation: its episodes were not "
                "chosen alike; evaluate that player with `ecomlab eval`"
            )
    played = [list(read(path)) for path in (first, second)]
    _check_alike(headers, played)
    for path, header, found in zip((first, second), headers, played, strict=True):
        _check_finished(path, header, found)
        check_scored(path, found)
    return compare_transcripts(names, *played)


def compare_transcripts(
    names: tuple[str, str], first: Iterable[Transcript], second: Iterable[Transcript]
) -> Comparison:
    """Compare the episodes that both have scored; the unit is the task, whose trials are averaged.

    Raises TranscriptError where they have none in common.
    """
    one, two = ({t.key: float(t.score.correct) for t in found if not t.unscored} for found in (first, second))
    common = sorted(one.keys() & two.keys())
    if not common:
        raise TranscriptError(
            f"{names[0]} and {names[1]} have no task in common; evaluate both on the same environments and levels"
        )
    envs = list(dict.fromkeys(env for env, *_ in common))
    groups = {env: [key for key in common if key[0] == env] for env in envs}
    return Comparison(
        names,
        _difference("all", common, one, two),
        tuple(_difference(env, keys, one, two) for env, keys in groups.items()),
        max(trial for *_, trial in common) + 1,
        (len(one) - len(common), len(two) - len(common)),
    )


def _difference(
    group: str, keys: Sequence[Key], one: Mapping[Key, float], two: Mapping[Key, float]
) -> Difference:
    tasks: dict[Task, list[Key]] = defaultdict(list)
    for key in keys:
        tasks[key[:3]].append(key)
    first, second = (
        np.array([sum(side[key] for key in trials) / len(trials) for trials in tasks.values()])
        for side in (one, two)
    )
    mean, low, high, shows = paired_interval(first - second)
    return Difference(group, len(tasks), float(first.mean()), float(second.mean()), mean, low, high, shows)


def paired_interval(
    differences: Sequence[float] | np.ndarray, confidence: float = CONFIDENCE
) -> tuple[float, float, float, float]:
    """Compute the mean of paired differences in [-1, 1], its bounds, and the smallest difference that is shown.

    Bonett and Price's interval (2012): Wald's, with one more task that the first wins and one that the second wins. It
    holds its coverage where nearly all pairs agree, and has a width where all do, which a bootstrap has not.
    """
    from scipy.stats import norm

    values = np.asarray(differences, dtype=float)
    more = np.append(values, [1.0, -1.0])
    error = math.sqrt(more.var() / len(more))
    z = norm.ppf((1 + confidence) / 2)
    low, high = max(-1.0, more.mean() - z * error), min(1.0, more.mean() + z * error)
    return float(values.mean()), float(low), float(high), float((z + norm.ppf(POWER)) * error)


# --- what may be compared ---


def check_scored(where: object, found: Sequence[Transcript]) -> None:
    """Raise TranscriptError where more than 2% of the episodes are unscored; `where` says of what they are."""
    missing = sum(bool(t.unscored) for t in found)
    if missing > MOST_UNSCORED * len(found):
        classes = ", ".join(sorted({t.unscored for t in found if t.unscored}))
        raise TranscriptError(
            f"{where}: {missing} of {len(found)} episodes are unscored ({classes}), more than {MOST_UNSCORED:.0%}; "
            f"the last: {[t.why_unscored for t in found if t.unscored][-1]}; run it again with --retry-unscored"
        )


def _check_alike(headers: Sequence[Mapping[str, Any]], played: Sequence[Sequence[Transcript]]) -> None:
    """Raise TranscriptError with every condition in which two evaluations differ; environments that only one has played
    are left out of the comparison."""
    one, two = (without_place(header["conditions"]) for header in headers)
    envs = one["environments"].keys() & two["environments"].keys()
    for conditions in (one, two):
        conditions["environments"] = {env: conditions["environments"][env] for env in sorted(envs)}
    if one["limits"] is None or two["limits"] is None:  # a script has none that it could reach
        del one["limits"], two["limits"]
    else:
        one["limits"], two["limits"] = _reached(one["limits"], two["limits"], played)
    for conditions, header in zip((one, two), headers, strict=True):
        conditions["block"] = header["cells"]["block"]
    if differ := differences(one, two, ("in the first", "in the second")):
        way_out = "evaluate both under the same conditions"
        episodes = [(side.get("limits") or {}).get("episode", 0) for side in (one, two)]
        if episodes.count(None) == 1:
            way_out += ", local weights with --set episode_tokens so large that no episode reaches it"
        raise TranscriptError(f"these evaluations cannot be compared: {'; '.join(differ)}; {way_out}")


def _reached(
    one: Mapping[str, Any], two: Mapping[str, Any], played: Sequence[Sequence[Transcript]]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Leave out the limit of an episode where only one player has it, as local weights beside an endpoint, and no
    episode reached it: without it the same would have been played."""
    for limits, others, found in ((one, two, played[0]), (two, one, played[1])):
        most: int | None = limits.get("episode")
        if most is None or others.get("episode", most) is not None:
            continue
        if all(t.usage["agent"].completion_tokens < most for t in found if "agent" in t.usage):
            one, two = ({k: v for k, v in side.items() if k != "episode"} for side in (one, two))
            break
    return one, two


def _check_finished(path: Path, header: Mapping[str, Any], found: Sequence[Transcript]) -> None:
    """Raise TranscriptError for an evaluation that lacks episodes: the slow ones may be the hard ones."""
    cells = header["cells"]
    tasks = (read_plan(path) or {"tasks": cells["tasks"]})["tasks"]
    planned = tasks * len(cells["envs"]) * len(cells["levels"]) * cells["trials"]
    if len(found) < planned:
        raise TranscriptError(
            f"{path_of(path).parent} is unfinished: {len(found)} of {planned} episodes; run the same `ecomlab eval` "
            "again to finish it"
        )


def _names(headers: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> tuple[str, str]:
    """Name the players; by their folders where both have the same name."""
    names = [str(header["player"]) for header in headers]
    if names[0] == names[1]:
        names = [path.name for path in paths]
    return names[0], names[1]
