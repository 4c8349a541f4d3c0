"""PD: recommend the k best products of a type under the customer's constraints and order of preferences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.goals import draw_row, withhold
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.discovery.audit import DiscoveryAudit
from ecomlab.envs.discovery.player import PREFERENCES, DiscoveryPlayer
from ecomlab.reward import Verdict, ndcg
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import LIMITS, PRICE, SlotType, limits_in, slot_type
from ecomlab.task import LOOK, Event, Goal, GoalChange, Problem, TaskError, TaskKey
from ecomlab.world import ranking
from ecomlab.world.cart import constraints_of
from ecomlab.world.faults import list_faults, named, told
from ecomlab.world.sell_outs import ALIKE, draw_sell_out, draw_sold, sell_out_of
from ecomlab.world.state import PAGE, World
from ecomlab.world.tools.catalog import PRODUCT_TOOLS, submit

WEIGHTS = {"rank": 0.5, "met": 0.4, "stock": 0.1}
"""Weights of nDCG, satisfaction and stock in r_task."""


class Discovery(Environment):
    id, version = "PD", 2
    brief = (
        "Recommend products that satisfy everything the customer asks for and can be bought now, as many as they want "
        "to see, the best of them by what matters most to the customer; where that is equal, by what comes next."
    )
    tools, submit, player, auditor = PRODUCT_TOOLS, submit, DiscoveryPlayer, DiscoveryAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, catalog = key.rng("discovery"), shop.catalog
        kind = pick(random, catalog.drawable_types).name
        row = draw_row(catalog.type_rows(kind), shop, random)
        if row is None:
            raise TaskError(f"no {kind} of this shop is well in stock; load a larger shop")
        limits = _draw_limits(row, self.phrases.limits, axes, shop, random)
        weights = random.gamma(1.0, size=len(PREFERENCES))  # more weight for what the customer constrains
        weights += [2.0 * any(slot_type(name).sort == dim for name in limits) for dim in PREFERENCES]
        known = [limit.sort for limit in self.phrases.limits if catalog.has(limit)]
        importance = [PREFERENCES[i] for i in np.argsort(-weights).tolist() if PREFERENCES[i] in known]
        goal = Goal.one({"type": kind, **limits, "importance": importance})
        goal = withhold(goal, axes, random)
        share, switching = draw_sell_out(axes.p_oos, axes.k_rec, random), random.random() < axes.p_switch
        searches = len(PREFERENCES)
        calls = searches * math.ceil(axes.k_rec / PAGE)
        alike = _alike(goal, self.phrases.limits, axes, shop, random) if share else ()
        chosen = (ranking.ranked_first(ranking.fitting(one, shop), one, axes.k_rec, shop) for one in alike)
        sold = sell_out_of(draw_sold(chosen, share, random), catalog, LOOK)
        events: list[Event] = [replace(sold, turns=searches, calls=calls)] if sold.left else []
        if not min(map(len, ranking.stages(goal, events, shop))):  # it must stay possible
            events = []
        change = _draw_change(goal, events, axes, shop, random) if switching else None
        if change:
            timed = replace(change, moment=pick(random, self.moments), about=(kind,))
            events.append(replace(timed, turns=searches, calls=calls))
        most = min(map(len, ranking.stages(goal, events, shop)))
        goal = goal.set_slots({"count": min(axes.k_rec, axes.top_k, most)})
        return Problem(
            goal, {}, DiscoveryPlayer.need(goal), events, notes={"weights": weights.round(6).tolist()}
        )

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        ids, count = list(answer.get("product_ids", ())), goal["count"]
        if not ids:
            return Verdict(-1.0, False, "nothing was recommended")
        feasible = world.in_stock(world.catalog.select(ranking.constraints(goal)))
        ordered, places = ranking.places(feasible, goal["importance"], world.shop)
        # A product given twice, or shown by no tool, counts as none.
        rows = [
            world.catalog.row(p) if p in world.shown and p not in ids[:i] else None for i, p in enumerate(ids)
        ]
        place = {row: int(p) for row in rows if row is not None for p in places[ordered == row]}
        usable = [place[row] for row in rows if row in place]
        gains = [float(max(0, count - place[row])) if row in place else 0.0 for row in rows]
        worst = max(usable, default=0)
        above = sum(p < worst for p in usable)
        best = len(usable) == count and int((places < worst).sum()) == above
        shares = [ranking.share_met(row, goal, world) for row in rows] + [0.0] * (count - len(ids))
        stock = sum(row is not None and world.stock(row) > 0 for row in rows) / max(count, len(ids))
        met = 2 * float(np.mean(shares)) ** world.axes.discovery.alpha - 1
        ideal = np.maximum(0, count - places[:count]).tolist()
        ranked = 2 * ndcg(gains, ideal, count) * min(1.0, count / len(ids)) - 1
        credit = WEIGHTS["rank"] * ranked + WEIGHTS["met"] * met + WEIGHTS["stock"] * (2 * stock - 1)
        correct = best and len(ids) == count
        if correct:
            why = f"these are the {count} best by {', then '.join(goal['importance'])}"
        else:
            reasons = [fault.words for fault in list_faults(ids, count, ranking.constraints(goal), world)]
            better = [
                row for row, p in zip(ordered.tolist(), places, strict=True) if p < worst and row not in rows
            ]
            if better:
                name = named(world.catalog.ids[better[0]], world.catalog)
                others = f" and {len(better) - 1} more" if len(better) > 1 else ""
                reasons.append(f"better by {', then '.join(goal['importance'])}: {name}{others}")
            why = told(reasons)
        return Verdict(1.0 if correct and ranked > 0.999 else min(credit, 0.999), correct, why, tuple(ids))


def _draw_limits(
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


def _alike(
    goal: Goal, may: Sequence[SlotType], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> list[Goal]:
    """Draw customers who say the same in their opening: this one, and others who leave out something else."""
    stated = {slot.name: slot.value for slot in goal.said()}
    rows = ranking.fitting(Goal.one({"type": goal["type"], **stated}), shop)
    others = []
    for _ in range(ALIKE - 1):
        left_out = _draw_limits(pick(random, rows.tolist()), may, axes, shop, random)
        order = shuffled(random, goal["importance"])
        others.append(Goal.one({"type": goal["type"], **left_out, "importance": order, **stated}))
    return [goal, *others]


def _draw_change(
    goal: Goal,
    events: Sequence[Event],
    axes: Difficulty,
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
    before = ranking.stages(goal, events, shop)
    enough = min(axes.k_rec, *map(len, before))
    for name in shuffled(random, dict.fromkeys(name for slots in (*moved, *turned) for name in slots)):
        for slots in shuffled(random, [slots for slots in (*moved, *turned) if name in slots]):
            change = GoalChange(slots=slots)
            if min(map(len, ranking.stages(goal, [*events, change], shop))) < enough:
                continue
            after = goal.apply(change)
            rows = ranking.stages(after, events, shop)[-1]
            if not ranking.among_the_best(before[-1], rows, goal, after, enough, shop):
                return change
    return None
