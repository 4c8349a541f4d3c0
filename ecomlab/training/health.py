"""Health checks of a run: alarms by bounds on the metrics of its steps, for known failures of multi-turn RL."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

FIRST, LATELY, IDLE = 5, 5, 3
"""Number of first steps that serve as baseline; of last steps over which shares are taken; of steps without a kept
group."""
GAP, GAP_JUMP, GAP_GROWTH, GAP_NOISE = 0.05, 10.0, 4.0, 1e-3
"""Bounds of the mean `|Δ logp|` between sampler and trainer: absolute; relative to its median so far; relative to the
first steps, when it is the backend's noise (1e-6 in float32, 1e-2 in bfloat16), because weights that reach the sampler
in part lag behind a little more with every step, which no median would show; and the gap below which the two relative
ones do not apply."""
FAILURES = 16
"""Minimum number of failed episodes of an environment at one level before the share of truncated ones is judged."""

Rows = Sequence[Mapping[str, Any]]
"""A row per step, as `metrics.whole_steps` gives them, oldest first."""


def _entropy(rows: Rows) -> dict[str, float]:
    """Entropy relative to its median over the first steps."""
    first = [row["entropy"] for row in rows[:FIRST]]
    return {"": _ratio(rows[-1]["entropy"], _median(first))} if len(rows) > FIRST else {}


def _gap(rows: Rows) -> dict[str, float]:
    """Mean `|Δ logp|` in multiples of its bound."""
    gap, before = rows[-1]["logp_gap"], [row["logp_gap"] for row in rows[:-1]]
    shares = [gap / GAP]
    if gap > GAP_NOISE:
        shares.append(_ratio(gap, GAP_JUMP * _median(before)))
        if len(before) >= FIRST:
            shares.append(_ratio(gap, GAP_GROWTH * _median(before[:FIRST])))
    return {"": max((share for share in shares if not math.isnan(share)), default=math.nan)}


def _kept(rows: Rows) -> dict[str, float]:
    """Groups that were kept in the last steps."""
    return {"": sum(row["kept"] for row in rows[-IDLE:])} if len(rows) >= IDLE else {}


def _cut_off(rows: Rows) -> dict[str, float]:
    """The share of failures that a token limit cut off, by environment and level."""
    found = {}
    for env, d in sorted({cell for row in rows[-LATELY:] for cell in row["failures"]}):
        counts = [row["failures"].get((env, d), (0, 0)) for row in rows[-LATELY:]]
        failed, cut = (sum(column) for column in zip(*counts, strict=True))
        if failed >= FAILURES:
            found[f"{env} at d = {d}: "] = cut / failed
    return found


def _unscored(rows: Rows) -> dict[str, float]:
    lost, episodes = (sum(row[name] for row in rows[-LATELY:]) for name in ("unscored", "rollouts"))
    return {"": _ratio(lost, episodes)} if episodes else {}


HEALTH = (
    (_entropy, "<", 0.1, "entropy has collapsed to a tenth of the first steps': the policy explores no more; lower lr"),
    (_entropy, ">", 3.0, "entropy has risen to three times the first steps': go back to a checkpoint with a lower lr"),
    (_gap, ">", 1.0, "sampler and trainer disagree (logp_gap): stale weights, another precision or another template"),
    (_kept, "<", 1, 'no group had non-zero advantage for three steps; choose another schedule, or keep = "reward"'),
    (
        _cut_off, ">", 0.25,
        "more than a quarter of the failures were cut off by a token limit: the policy rambles, or turn_tokens, "
        "episode_tokens or context_tokens are too small (ecomlab train --dry-run)",
    ),
    (_unscored, ">", 0.25, "more than a quarter of the episodes were unscored: infrastructure errors (unscored.txt)"),
)  # fmt: skip
"""Alarms: a metric by place ("" for the whole run), the bound beyond which it is an alarm, and the message. NaN, or no
place, says nothing yet."""


def alarms(history: Rows, now: Mapping[str, Any]) -> list[str]:
    """List the alarms of the step `now`, given the earlier rows; alarms of the previous step are not repeated."""
    before = set(_true_of(history)) if history else set()
    return [words for words in _true_of([*history, now]) if words not in before]


def _true_of(rows: Rows) -> list[str]:
    return [
        where + message
        for metric, side, bound, message in HEALTH
        for where, value in metric(rows).items()
        if (value < bound if side == "<" else value > bound)
    ]


def _median(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return statistics.median(known) if known else math.nan


def _ratio(value: float, by: float) -> float:
    return value / by if by else math.inf
