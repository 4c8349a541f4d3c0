"""Steps of thought: how many a job holds, and of which kinds.

A step is something that a player must think about rather than look up: each kind has a share and a size among the
fields of `Difficulty.steps`. A step counts where a player that lacks its kind is wrong on this very task.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.difficulty import STEPS, Difficulty
from ecomlab.seeding import whole_near

CALLS_A_STEP = 4
"""Tool calls that a step adds to the budget."""
TURNS_A_STEP = 1
"""Turns that a step adds to the budget."""
SHARE_OF_A_JOB = 1 / 3
"""Steps of a job of a journey, as a share of those of a job by itself."""


def most_steps(axes: Difficulty, chained: bool = False) -> int:
    """Count the most steps that a job is drawn with at this difficulty; one of a journey if `chained`. Budgets stand on
    this number, because that of the steps which count would tell what they come to (SILENT)."""
    return math.ceil(axes.steps.mean * (SHARE_OF_A_JOB if chained else 1))


def draw_kinds(
    axes: Difficulty, kinds: Sequence[str], random: np.random.Generator, most: Mapping[str, int] | None = None
) -> list[str]:
    """Draw the kind of each step of a job among the `kinds` of its environment, by their shares; `most` bounds how
    often a kind can occur in one job."""
    left = {kind: (most or {}).get(kind, 1 << 30) for kind in kinds}
    drawn: list[str] = []
    for _ in range(whole_near(random, axes.steps.mean)):
        able = [kind for kind in kinds if left[kind] and getattr(axes.steps, kind) > 0]
        if not able:
            break
        shares = np.array([getattr(axes.steps, kind) for kind in able])
        drawn.append(able[int(random.choice(len(able), p=shares / shares.sum()))])
        left[drawn[-1]] -= 1
    return drawn


def may_hold(axes: Difficulty, kind: str) -> bool:
    """Tell whether jobs may hold steps of a kind."""
    return axes.steps.mean > 0 and bool(getattr(axes.steps, kind) > 0)


def draw_size(axes: Difficulty, kind: str, random: np.random.Generator) -> int:
    """Draw the size of a step."""
    return whole_near(random, getattr(axes.steps, f"{kind}_size"))


def is_worked_out(axes: Difficulty, random: np.random.Generator) -> bool:
    """Draw whether an amount of a step must be worked out rather than copied."""
    return bool(random.random() < axes.steps.arithmetic)


def only(*kinds: str, **fields: float) -> dict[str, Any]:
    """Make the overrides that leave no other kinds of steps than these: `only("logic", mean=3)`."""
    others: dict[str, Any] = {f"steps.{kind}": 0.0 for kind in STEPS if kind not in kinds}
    return others | {f"steps.{name}": value for name, value in fields.items()}
