"""Drawing what a customer who wants recommendations asks for (PD): limits, and changes of mind about them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import shuffled
from ecomlab.slots import LIMITS, PRICE, SlotType, limits_in
from ecomlab.task import Event, Goal, GoalChange, TaskKey
from ecomlab.world import ranking
from ecomlab.world.cart import constraints_of


def draw_limits(
    row: int, may: Sequence[SlotType], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """Draw constraints that a product satisfies: the price and up to m - 1 others; of those that `may` limit a number,
    with random slack.

    They leave k_rec products to choose from, even after a sell-out: a list of one is no recommendation.
    """
    catalog = shop.catalog
    shares = (2 * axes.discovery.slack * random.random(len(may))).tolist()
    slack = dict(zip(may, shares, strict=True))
    kind = catalog.type_of(row).name
    values: dict[str, Any] = {}
    for limit, share in slack.items():
        if limit is PRICE or not catalog.has(limit):
            continue
        value = limit.loosened(catalog.column(limit).item(row), share)
        # A user's limit outside its range says nothing ("at least 0"); the shipped ones keep what their versions draw.
        if limit in LIMITS or limit.range[0] <= value <= limit.range[1]:
            values[limit.name] = value
    values["brand"] = catalog.brands[catalog.brand_code.item(row)]
    values |= {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    rows = catalog.select(constraints_of(kind, {}))
    rows, enough = rows[catalog.stock[rows] > 0], math.ceil(axes.k_rec / max(0.1, 1 - axes.p_oos))
    limits: dict[str, Any] = {}
    for name in shuffled(random, values):
        narrower = catalog.select(constraints_of(kind, {name: values[name]})[1:], rows)
        if len(limits) < axes.constraints - 1 and len(narrower) >= min(enough, len(rows)):
            limits[name], rows = values[name], narrower
    prices = np.sort(catalog.price_cents[rows])
    least = PRICE.rounded(prices[min(enough, len(prices)) - 1].item())
    dearest = max(PRICE.loosened(catalog.price_cents.item(row), slack[PRICE]), least)
    return {PRICE.name: dearest, **limits}


def draw_change(
    goal: Goal,
    events: Sequence[Event],
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> GoalChange | None:
    """Draw a change of mind: a limit moved up or down, or another order of preferences. None that leaves the same
    products the best, or that leaves fewer than are shown without it."""
    order = goal["importance"]
    moved: list[dict[str, Any]] = [
        {limit.name: new} for limit, value in limits_in(goal.of()) for new in limit.moved(value)
    ]
    turned = [{"importance": [*order[i:], *order[:i]]} for i in range(1, len(order))]
    before = ranking.stages(goal, events, key, shop)
    enough = min(axes.k_rec, *map(len, before))
    for name in shuffled(random, dict.fromkeys(name for slots in (*moved, *turned) for name in slots)):
        for slots in shuffled(random, [slots for slots in (*moved, *turned) if name in slots]):
            change = GoalChange(slots=slots)
            if min(map(len, ranking.stages(goal, [*events, change], key, shop))) < enough:
                continue
            after = goal.apply(change)
            rows = ranking.stages(after, events, key, shop)[-1]
            if not ranking.among_the_best(before[-1], rows, goal, after, enough, shop):
                return change
    return None
