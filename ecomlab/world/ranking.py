"""Products that satisfy a customer's constraints, ranked by the customer's order of preferences."""

from collections.abc import Callable, Sequence

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.task import Event, Goal, GoalChange, SellOut
from ecomlab.world.cart import constraints_of, without_type
from ecomlab.world.sell_outs import sold_rows
from ecomlab.world.state import World


def constraints(goal: Goal) -> tuple[Constraint, ...]:
    """List the constraints that the goal puts on a product."""
    return constraints_of(goal["type"], without_type(goal.of()))


def fitting(goal: Goal, shop: Shop) -> np.ndarray:
    """Find the rows of a goal's type that are in stock and satisfy its constraints."""
    rows = shop.catalog.select(constraints(goal))
    return rows[shop.catalog.stock[rows] > 0]


def stages(
    goal: Goal,
    events: Sequence[Event],
    shop: Shop,
    find: Callable[[Goal, Shop], np.ndarray] = fitting,
) -> list[np.ndarray]:
    """List the rows that `find` finds before, between and after the events, in any order of events; those after all
    come last."""
    goals, sold_out = [goal], [sold_rows(None, shop.catalog)]
    for event in events:
        if isinstance(event, GoalChange):
            goals.append(goal.apply(event))
        elif isinstance(event, SellOut):
            sold_out.append(sold_rows(event, shop.catalog))
    found = (find(some, shop) for some in goals)
    return [rows[~np.isin(rows, gone)] for rows in found for gone in sold_out]


def places(rows: np.ndarray, importance: Sequence[str], shop: Shop) -> tuple[np.ndarray, np.ndarray]:
    """Order rows by the preferences, and count how many rank before each; equal rows share a rank."""
    ordered = shop.engine.ordered(rows, importance)
    keys = np.array([shop.engine.rank_key(ordered, name) for name in importance])
    differs = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    return ordered, np.maximum.accumulate(np.arange(len(ordered)) * np.r_[True, differs][: len(ordered)])


def share_met(row: int | None, goal: Goal, world: World) -> float:
    """Compute the share of the constraints that a product satisfies; 0 without a product."""
    if row is None:
        return 0.0
    wanted = constraints(goal)
    return sum(world.catalog.satisfies(row, (c,)) for c in wanted) / len(wanted)


def among_the_best(
    before: np.ndarray, after: np.ndarray, goal: Goal, changed: Goal, count: int, shop: Shop
) -> bool:
    """Tell whether the `count` best of `before` by the first goal are a right choice of `after` by the changed one."""
    best = ranked_first(before, goal, count, shop)
    ordered, order = places(after, changed["importance"], shop)
    mine = np.isin(ordered, best)
    return int(mine.sum()) == count and not bool((~mine & (order < order[mine].max())).any())


def ranked_first(rows: np.ndarray, goal: Goal, count: int, shop: Shop) -> np.ndarray:
    """Return the first `count` of these rows by a goal's order of preferences."""
    return places(rows, goal["importance"], shop)[0][:count]
