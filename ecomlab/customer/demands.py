"""Drawing how a customer describes a sold-out product, and what they demand of its replacement (SUB)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.demand_draws import DemandDraws, are_clear
from ecomlab.customer.goals import draw_row
from ecomlab.customer.visits import (
    Cluster,
    Outline,
    draw_cluster,
    exact_value,
    half_gone,
    history_of,
    left_out,
    visited_types,
    visits_of,
)
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import DAYS, LIMITS, PRICE, RATING
from ecomlab.task import Event, Goal, GoalChange, SellOut, Task, TaskKey
from ecomlab.values import FORMATS
from ecomlab.wishes import visit_of
from ecomlab.world.cart import column_of, constraints_of
from ecomlab.world.sell_outs import ALIKE, draw_sold, sell_out_of
from ecomlab.world.substitutes import (
    alike_counts,
    hard_names,
    most_similar,
    noun,
    original_of,
    rank_keys,
    stages_of,
)

TELLING = (
    "works_with", "power", "wattage", "voltage", "size", "capacity", "charge", "layout", "connector", "video", "speed",
    "storage", "grip", "skin", "hair", "age", "opacity", "weight", "terrain", "season",
)  # fmt: skip
"""Attributes that decide whether one product can do another's job, the most important first."""


SPREAD = 0.1
"""How far the share that a limit keeps may lie from what is asked for."""


def draw_must(attributes: Sequence[str], random: np.random.Generator) -> list[str]:
    """Draw the attributes that must be the same, in a customer's words; none where no attribute can be named.

    Half of the time the first decides whether the product can do its job, else it is any, so that it cannot be guessed
    without listening.
    """
    able = [
        name
        for name in attributes
        if re.fullmatch(FORMATS["names"].pattern, noun(name)) and not re.search(", | and ", noun(name))
    ]
    if not able:
        return []
    first = next((name for name in TELLING if name in able), able[0])
    if random.random() < 0.5:
        first = pick(random, able)
    others = [name for name in able if name != first]
    more = len(others) > 1 and random.random() < 0.25
    chosen = {first, *shuffled(random, others)[:more]}
    return [noun(name) for name in attributes if name in chosen]


@dataclass(frozen=True)
class Missed:
    """What a customer says of a sold-out product before it is known which: `rows` are visits that it may be."""

    outline: Outline
    must: tuple[str, ...]
    """Attributes that must stay the same in a replacement, in the customer's words."""
    rows: tuple[int, ...]
    said: tuple[str, ...]
    """Slots by which they describe it: where something else tells which it was, what they remember."""

    @property
    def told(self) -> Outline:
        """The outline of what they say of the product itself."""
        return replace(self.outline, names=self.said)


def draw_missed(
    kind: str, enough: int, axes: Difficulty, shop: Shop, random: np.random.Generator, vague: bool = False
) -> Missed | None:
    """Draw the description of a sold-out product of a type, and visits that it fits: for each `enough` others could
    replace it. A `vague` one fits several. None where there is no such product."""
    catalog, rows = shop.catalog, shop.catalog.type_rows(kind)
    row = draw_row(kind, shop, random)
    attributes = [] if row is None else list(catalog.attributes(row))
    must = draw_must(attributes, random) if attributes else []
    if not must:
        return None
    names = ["brand", "feature", *([f"attr:{pick(random, attributes)}"] if random.random() < 0.4 else [])]
    hidden = {name for _, name in left_out([(0, "brand"), (0, "feature")], axes.p_missing, random)}
    outline = Outline(kind, tuple(names), frozenset(hidden))
    hard = [f"attr:{name}" for name in hard_names(must, attributes)]
    left = catalog.stock[rows.start : rows.stop] > 0

    def usable(pool: np.ndarray) -> np.ndarray:
        for name in hard:  # a real product may lack what must stay the same
            pool = pool[column_of(catalog, name)[pool] >= 0]
        return pool[alike_counts(catalog, pool, rows, left, hard) >= enough]

    found = draw_cluster(outline, shop, random, usable)
    said = tuple(names)
    if vague:  # who looked at a thing remembers something of it
        known = [one for one in attributes if (catalog.attr[one][found] >= 0).all()]
        said = tuple(shuffled(random, ["brand", f"attr:{pick(random, known)}" if known else "", ""])[:1])
        said = tuple(filter(None, said))
    return Missed(outline, tuple(must), tuple(found), said) if found else None


def draw_visits(
    missed: Missed, enough: int, axes: Difficulty, key: TaskKey, shop: Shop, vague: bool = False
) -> tuple[Cluster, list[str], list[str]]:
    """Draw which of the visits it is, all visits, and those that are sold out.

    Half of each type's visits are, chosen in the same way around a product that is missed, by nobody where the type is
    another: they tell neither the type nor the product.
    """
    random, catalog = rng("sold out", *key), shop.catalog
    kinds = [
        kind.name for kind in shuffled(random, catalog.stocked_types) if kind.name != missed.outline.type
    ]
    found = {missed.outline.type: missed}

    def others() -> Iterator[Sequence[int]]:
        for kind in kinds:
            other = draw_missed(kind, enough, axes, shop, random, vague)
            if other is not None:
                found[kind] = other
                yield other.rows

    chosen = history_of([missed.rows], others(), visited_types(1, axes.history))
    clusters = [
        Cluster(found[catalog.type_of(rows[0]).name].told, tuple(rows), pick(random, rows)) for rows in chosen
    ]
    gone = [row for cluster in clusters for row in half_gone(cluster, shop, random)]
    return clusters[0], visits_of(chosen, key, shop), sorted(catalog.ids[row] for row in gone)


def goal_of(cluster: Cluster, must: Sequence[str], shop: Shop) -> Goal:
    """Make the goal of a customer who misses this product.

    What is hidden of its brand and feature is "was_brand" and "was_feature": said later, it needs sentences of its own,
    or it would be taken for a demand on the replacement.
    """
    outline, row = cluster.outline, cluster.row
    values = {name: exact_value(row, name, shop) for name in outline.names}
    told = {name: value for name, value in values.items() if name not in outline.hidden}
    later = {f"was_{name}": value for name, value in values.items() if name in outline.hidden}
    slots = {"type": outline.type, **told, "must": list(must), **later}
    return Goal.one(slots, withheld=[*later], original=shop.catalog.ids[row])


def draw_sell_out(
    goal: Goal, gone: Sequence[str], share: float, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> SellOut | None:
    """Draw a sell-out among the best replacements for the missed product, and for others that are `gone` and may as
    well be meant by a customer who says the same, without further demands; None if nothing sells out."""
    others = [one for one in other_originals(goal, gone, shop) if one.unsaid != goal.unsaid]
    names = [limit.name for limit in LIMITS]
    alike = [goal, *(one.drop_slots(*names) for one in shuffled(random, others)[: ALIKE - 1])]
    choices = (most_similar(stages_of(one, (), gone, shop)[-1], one, axes.k_rec, shop) for one in alike)
    sold = draw_sold(choices, share, random)
    return sell_out_of(sold, shop.catalog) if sold else None


def draw_limits(
    kind: str,
    rows: np.ndarray,
    enough: int,
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
    share: float,
) -> dict[str, int]:
    """Draw m - 1 further demands, each of which keeps about this share of these rows, and `enough` to choose from.

    Each lies anywhere between the last product that it admits and the next, so that it names neither.
    """
    catalog, limits = shop.catalog, {}
    for limit in shuffled(random, [limit for limit in LIMITS if catalog.has(limit)])[: axes.constraints - 1]:
        keep = min(
            len(rows),
            max(enough, round(len(rows) * random.uniform(share - SPREAD, min(1.0, share + SPREAD)))),
        )
        column = catalog.column(limit)[rows]
        values = np.sort(column if limit.op == "<=" else -column)
        edge, beyond = int(values[keep - 1]), [*values[values > values[keep - 1]].tolist(), None][0]
        low = -(-edge // limit.unit)
        high = low if beyond is None else max(low, -(-beyond // limit.unit) - 1)
        limits[limit.name] = abs(limit.unit * int(random.integers(low, high + 1)))
        rows = catalog.select(constraints_of(kind, {limit.name: limits[limit.name]})[1:], rows)
    return {limit.name: limits[limit.name] for limit in LIMITS if limit.name in limits}


def draw_change(
    goal: Goal,
    events: Sequence[Event],
    gone: Sequence[str],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> GoalChange | None:
    """Draw another value of a limit. None that leaves the same replacements the best, or too few, or where what wishes
    are worth would not decide clearly."""
    before, count = stages_of(goal, events, gone, shop), int(goal["count"])
    for change in _changes(goal, random):
        after = stages_of(goal, [*events, change], gone, shop)
        if min(map(len, after)) < max(2, min(axes.k_rec, *map(len, before)) // 2):
            continue
        rows = stages_of(goal.apply(change), events, gone, shop)[-1]
        keys = rank_keys(before[-1], goal, shop)
        luckiest = np.lexsort((~np.isin(before[-1], rows), keys))  # of equals, who takes those that still fit
        best, now = before[-1][luckiest[:count]], np.sort(rank_keys(rows, goal, shop))[:count]
        same = np.isin(best, rows).all() and np.array_equal(np.sort(rank_keys(best, goal, shop)), now)
        clear = "worth" not in goal or len(rows) <= count or are_clear(rows, goal, shop)[count - 1]
        if not same and clear:
            return change
    return None


def _changes(goal: Goal, random: np.random.Generator) -> list[GoalChange]:
    """List other values of the limits, higher and lower ones, in random order."""
    other: dict[str, list[int]] = {}
    if (price := goal.get(PRICE.name)) is not None:
        other[PRICE.name] = [100 * max(1, round(price * share / 100)) for share in (0.7, 0.85, 1.25, 1.6)]
    if (rating := goal.get(RATING.name)) is not None:
        steps = (-1, 1, -2, 2) * random.integers(2, 6, 4)
        other[RATING.name] = [value for value in (rating + steps).tolist() if 0 < value <= 50]
    if (days := goal.get(DAYS.name)) is not None:
        other[DAYS.name] = DAYS.moved(days)
    made = [GoalChange(slots={n: value}) for n, values in other.items() for value in values]
    return [change for change in shuffled(random, made) if all(goal[n] != v for n, v in change.slots.items())]


def identity(slots: Mapping[str, Any]) -> dict[str, Any]:
    """Select the slots that describe the sold-out product, whether said at first or later."""
    named = {name.removeprefix("was_"): value for name, value in slots.items()}
    return {n: v for n, v in named.items() if n in ("type", "brand", "feature") or n.startswith("attr:")}


def meant(goal: Goal, visits: Sequence[str], shop: Shop) -> list[int]:
    """List the rows of the visits, the newest first, that all is true of which the customer says of what sold out."""
    catalog, said = shop.catalog, constraints_of(goal["type"], identity(goal.of()))
    rows = catalog.rows_of(visits)
    if "which" not in goal:
        return catalog.select(said, rows).tolist()
    found = visit_of(
        goal["which"],
        rows.tolist(),
        lambda row, by: catalog.satisfies(row, constraints_of(by["type"], by)),
        lambda row: float(catalog.price_cents[row]),
    )
    return [found] if found is not None and catalog.satisfies(found, said) else []


def other_originals(goal: Goal, gone: Sequence[str], shop: Shop) -> list[Goal]:
    """List the goals of customers who mean another of the sold-out visits and have stated the same about it."""
    catalog, slots = shop.catalog, goal.of()
    told = {name: slots[name] for name in slots if name in ("brand", "feature") or name.startswith("attr:")}
    made = []
    for row in catalog.select(constraints_of(goal["type"], told), np.sort(catalog.rows_of(gone))).tolist():
        words = {
            name: exact_value(row, name.removeprefix("was_"), shop)
            for name in slots
            if name.startswith("was_")
        }
        made.append(replace(goal.set_slots(words), unsaid={"original": catalog.ids[row]}))
    return made


def told_anew(other: Goal, goal: Goal, task: Task, shop: Shop) -> Goal | None:
    """Let a customer who means another product tell which visit it was; None where they have already said another."""
    if "which" not in goal:
        return other
    if (0, "which") not in goal.withheld:
        return None
    row, seen = original_of(other, shop), shop.catalog.rows_of(task.world["visits"])
    which = DemandDraws(seen, task.axes, shop, rng("other", row, *task.key)).which(row)
    return other.set_slots({"which": which}) if which else None
