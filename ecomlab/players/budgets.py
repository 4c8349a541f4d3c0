"""Budgets: the courteous player's need in 99% of the tasks of one kind, in closed form beside the players.

The agent is told the budget, so it must reveal nothing: it is a function of environment, axes and what an opening shows
(how many items it names) alone. A task that needs more is drawn again.
"""

import math

from ecomlab.customer.visits import MOST_WITHHELD
from ecomlab.difficulty import Difficulty
from ecomlab.task import COURTESY, LEARNED, Need

SURE = 0.99
"""Share of tasks for which a budget suffices."""


def quantile(n: int, p: float, most: int | None = None) -> int:
    """Find the least number that the hits of `n` draws with probability `p` do not exceed with probability `SURE`, or
    `most` where it is greater: the binomials of a large `n` are beyond a float soon after."""
    total, k, most = (1 - p) ** n, 0, n if most is None else min(n, most)
    while total < SURE and k < most:
        k += 1
        total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
    return k


def budget(work: Need, slots: int, axes: Difficulty, *events: tuple[float, int, int]) -> Need:
    """Add to `work` the questions about `slots` that may be withheld, the courtesies, and events, each with its
    probability, turns and calls."""
    asks = math.ceil(quantile(slots, axes.p_missing, MOST_WITHHELD) / LEARNED)
    turns = work.turns + asks + COURTESY
    calls = work.calls
    for p, more_turns, more_calls in events:
        if p > 1 - SURE:
            turns, calls = turns + more_turns, calls + more_calls
    return Need(turns, calls)
