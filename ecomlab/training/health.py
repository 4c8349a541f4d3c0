"""Health checks of a run: alarms by bounds on the metrics of its steps, for known failures of multi-turn RL."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIRST, LATELY, IDLE = 5, 5, 3
"""First steps, with which later ones are compared; last steps over which shares are taken; steps with nothing kept."""
GAP, GAP_JUMP, GAP_GROWTH, GAP_NOISE = 0.05, 10.0, 4.0, 1e-3
"""Bounds of the mean `|Δ logp|` between sampler and trainer: absolute; relative to its median so far; relative to the
first steps, when it is the backend's noise (1e-6 in float32, 1e-2 in bfloat16), for weights that reach the sampler in
part lag behind a little more with every step, which no median would show; and the gap below which the two relative ones
do not apply."""
FAILURES = 16
"""Fewest failed episodes of an environment at one level of which the share that was cut off is judged."""

Rows = Sequence[Mapping[str, Any]]
"""A row per step, as `metrics.whole_steps` gives them, oldest first."""


@dataclass(frozen=True)
class Alarm:
    """A bound on a metric of a run."""

    metric: Callable[[Rows], Mapping[str, float]]
    """The metric by the place that it is about ("" for the run); NaN, or no place, where it says nothing yet."""
    above: float
    message: str

    def places(self, rows: Rows) -> dict[str, float]:
        """Find where the metric lies beyond the bound after the last of `rows`."""
        return {where: value for where, value in self.metric(rows).items() if value > self.above}


def _entropy(rows: Rows) -> float:
    """Entropy relative to its median over the first steps."""
    if len(rows) <= FIRST:
        return math.nan
    return _ratio(rows[-1]["entropy"], _median([row["entropy"] for row in rows[:FIRST]]))


def _gap(rows: Rows) -> float:
    """Mean `|Δ logp|` in multiples of what is tolerated."""
    gap, before = rows[-1]["logp_gap"], [row["logp_gap"] for row in rows[:-1]]
    shares = [gap / GAP]
    if gap > GAP_NOISE:
        shares.append(_ratio(gap, GAP_JUMP * _median(before)))
        if len(before) >= FIRST:
            shares.append(_ratio(gap, GAP_GROWTH * _median(before[:FIRST])))
    return max((share for share in shares if not math.isnan(share)), default=math.nan)


def _cut_off(rows: Rows) -> Iterator[tuple[str, float]]:
    """The share of failures that a token limit cut off, by environment and level."""
    for env, d in sorted({cell for row in rows[-LATELY:] for cell in row["failures"]}):
        counts = [row["failures"].get((env, d), (0, 0)) for row in rows[-LATELY:]]
        failed, cut = (sum(column) for column in zip(*counts, strict=True))
        if failed >= FAILURES:
            yield f"{env} at d = {d}: ", cut / failed


def _unscored(rows: Rows) -> float:
    lost, episodes = (sum(row[name] for row in rows[-LATELY:]) for name in ("unscored", "rollouts"))
    return float(lost / episodes) if episodes else math.nan


def _idle(rows: Rows) -> float:
    """1 if no group was kept in the last steps."""
    return float(len(rows) >= IDLE and not any(row["kept"] for row in rows[-IDLE:]))


HEALTH = (
    Alarm(
        lambda rows: {"": -_entropy(rows)},
        -0.1,
        "entropy has collapsed to less than a tenth of the first steps': the policy no longer explores; lower lr",
    ),
    Alarm(
        lambda rows: {"": _entropy(rows)},
        3.0,
        "entropy has risen to more than three times the first steps': the policy diverges; go back to an earlier "
        "checkpoint with a lower lr",
    ),
    Alarm(
        lambda rows: {"": _gap(rows)},
        1.0,
        "sampler and trainer disagree (logp_gap in train.csv): stale weights, another precision or another template "
        "on one side",
    ),
    Alarm(
        lambda rows: {"": _idle(rows)},
        0.0,
        f"no group had non-zero advantage for {IDLE} steps: the weights do not move; choose another schedule, or "
        'keep = "reward"',
    ),
    Alarm(
        lambda rows: dict(_cut_off(rows)),
        0.25,
        "more than a quarter of the failures were cut off by a token limit: the policy rambles, or turn_tokens, "
        "episode_tokens or context_tokens are too small (ecomlab train --dry-run)",
    ),
    Alarm(
        lambda rows: {"": _unscored(rows)},
        0.25,
        "more than a quarter of the episodes were unscored: infrastructure errors, listed in unscored.txt",
    ),
)


def alarms(history: Rows, now: Mapping[str, Any]) -> list[str]:
    """List the alarms of the step `now`, given the rows before it; one that held in the step before is not repeated."""
    found = []
    for alarm in HEALTH:
        before = alarm.places(history) if history else {}
        found += [where + alarm.message for where in alarm.places([*history, now]) if where not in before]
    return found


def _median(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return statistics.median(known) if known else math.nan


def _ratio(value: float, by: float) -> float:
    return value / by if by else math.inf
