"""Health checks of a run: alarms in words, computed from the metrics rows.

The rules cover the known failures of multi-turn RL that show in a step's metrics: entropy that collapses or explodes,
sampler and trainer that disagree about log-probabilities, groups that teach nothing.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

FIRST = 5
"""First steps, with which later ones are compared."""
COLLAPSED, EXPLODED = 0.1, 3.0
"""Entropy relative to the first steps."""
GAP, GAP_JUMP, GAP_GROWTH = 0.05, 10.0, 4.0
"""Mean `|Δ logp|`: absolute, relative to its median so far, and relative to the first steps, when the weights have
hardly moved and it is the backend's noise: 1e-6 in float32, 1e-2 in bfloat16. Weights that reach the sampler in part
lag behind a little more with every step, which no median would show."""
GAP_NOISE = 1e-3
"""Mean `|Δ logp|` below which a jump does not matter."""
IDLE = 3
"""Steps in a row without a group that teaches something."""
LOST, LATELY = 0.25, 5
"""Alarming share of failed episodes that were cut off, of all episodes that are unscored; and the number of last steps
over which both are taken."""
FAILURES = 16
"""Failed episodes of an environment at one level, below which the share of those that were cut off says little."""


def alarms(history: Sequence[Mapping[str, Any]], now: Mapping[str, Any]) -> list[str]:
    """List the alarms of the step `now`, given the rows before it, one per step, oldest first.

    Reads entropy, logp_gap, kept, rollouts, unscored and failures, as `metrics.whole_steps` gives them. An alarm that
    held in the step before already is not repeated; that of truncated episodes is one for each environment and level.
    """
    before = _true_of(history[:-1], history[-1]) if history else {}
    return [words for kind, words in _true_of(history, now).items() if kind not in before]


def _true_of(history: Sequence[Mapping[str, Any]], now: Mapping[str, Any]) -> dict[str, str]:
    """Find the alarms that hold, by kind."""
    found: dict[str, str] = {}
    entropy, start = now["entropy"], _median([row["entropy"] for row in history[:FIRST]])
    if len(history) >= FIRST and not math.isnan(start) and not math.isnan(entropy):
        if entropy < COLLAPSED * start:
            found["collapse"] = (
                f"entropy has collapsed to {entropy:.3g}, from {start:.3g} in the first steps: the policy no longer "
                "explores; a lower lr or a higher upper clip keeps it alive longer"
            )
        elif entropy > EXPLODED * start:
            found["explosion"] = (
                f"entropy has risen to {entropy:.3g}, from {start:.3g} in the first steps: the policy is diverging; "
                "go back to an earlier checkpoint with a lower lr"
            )
    gap, usual = now["logp_gap"], _median([row["logp_gap"] for row in history])
    noise = _median([row["logp_gap"] for row in history[:FIRST]])
    grown = len(history) >= FIRST and gap > GAP_GROWTH * noise
    if gap > GAP or (gap > GAP_NOISE and (grown or gap > GAP_JUMP * usual)):
        found["gap"] = (
            f"sampler and trainer disagree: mean |Δ logp| is {gap:.2g}"
            + ("" if math.isnan(usual) else f", was {usual:.2g}, and {noise:.2g} in the first steps")
            + "; stale weights, another precision or another template on one side would do this"
        )
    recent = [*history[-(IDLE - 1) :], now]
    if len(recent) == IDLE and not any(row["kept"] for row in recent):
        found["idle"] = (
            f"no group has taught anything for {IDLE} steps: every task was solved by all of its rollouts or by none; "
            'the weights do not move. Another schedule, or keep = "reward", would change that'
        )
    lately = [*history[-(LATELY - 1) :], now]
    found |= _cut_off(lately)
    lost, episodes = (sum(row[name] for row in lately) for name in ("unscored", "rollouts"))
    if lost > LOST * episodes:
        found["unscored"] = (
            f"{lost} of the last {episodes} episodes were unscored: that is our failure, not the policy's; "
            "unscored.txt has the reasons"
        )
    return found


def _cut_off(lately: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Find the environments and levels at which many of the failures are of episodes that a token limit cut off."""
    found = {}
    for env, d in sorted({cell for row in lately for cell in row["failures"]}):
        counts = [row["failures"].get((env, d), (0, 0)) for row in lately]
        failed, cut = (sum(column) for column in zip(*counts, strict=True))
        if failed >= FAILURES and cut > LOST * failed:
            found[f"truncated, {env} {d}"] = (
                f"{env} at d = {d}: {cut} of the last {failed} failures were episodes cut off by a token limit: the "
                "policy rambles, or turn_tokens, episode_tokens or context_tokens are too small (--dry-run says for "
                "which levels they do)"
            )
    return found


def _median(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return statistics.median(known) if known else math.nan
