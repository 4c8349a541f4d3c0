"""Drawing how a customer describes a sold-out product, and what they demand of its replacement (SUB)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.goals import VISITS, draw_visits, half_gone
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.task import Goal, GoalChange, TaskKey
from ecomlab.values import FORMATS
from ecomlab.world.cart import constraints_of
from ecomlab.world.substitutes import LIMITS, noun, original_of

TELLING = (
    "works_with", "power", "wattage", "voltage", "size", "capacity", "charge", "layout", "connector", "video", "speed",
    "storage", "grip", "skin", "hair", "age", "opacity", "weight", "terrain", "season",
)  # fmt: skip
"""Attributes that decide whether one product can do another's job, the most important first."""
MOST_SOFT = 2
"""Most attributes that count for similarity; where a type has more, the others must be the same."""


def draw_must(attributes: Mapping[str, str], random: np.random.Generator) -> list[str]:
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
    least = max(0, len(attributes) - 1 - MOST_SOFT)
    more = max(least, int(len(others) > 1 and random.random() < 0.25))
    chosen = {first, *shuffled(random, others)[:more]}
    return [noun(name) for name in attributes if name in chosen]


def draw_words(row: int, shop: Shop, random: np.random.Generator) -> dict[str, str]:
    """Draw the words that name a product: brand and feature, sometimes an attribute as well."""
    words = {name: name_of(row, name, shop) for name in ("brand", "feature")}
    attributes = list(shop.catalog.attributes(row).items())
    if attributes and random.random() < 0.4:
        name, value = pick(random, attributes)
        words[f"attr:{name}"] = value
    return words


def name_of(row: int, slot: str, shop: Shop) -> str:
    """Look up a product's brand or feature, whichever the slot states."""
    catalog = shop.catalog
    if slot.endswith("brand"):
        return catalog.brands[catalog.brand_code.item(row)]
    return catalog.features[catalog.feature_code.item(row)]


def draw_sold_out(
    goal: Goal, axes: Difficulty, key: TaskKey, shop: Shop, random: np.random.Generator
) -> tuple[Goal, list[str], list[str]]:
    """Draw the customer's visits, and which are sold out: half of each type's, those first that fit what is stated.

    In the goal returned, brand and feature may be withheld and are then "was_brand" and "was_feature": said later, they
    need sentences of their own, or they would be taken for demands on the replacement.
    """
    catalog, row, slots = shop.catalog, original_of(goal, shop), goal.but("must").of()
    drawn = (random.random(2) < axes.p_missing).tolist()
    hidden = [name for name, hit in zip(("brand", "feature"), drawn, strict=True) if hit]
    told = {name: value for name, value in slots.items() if name not in hidden}
    others = [kind.name for kind in shuffled(random, catalog.types)[: VISITS * axes.history]]
    others = [name for name in others if name != goal["type"]]
    visits = draw_visits([{"row": row, "slots": slots}], [told], others, axes, key, shop)
    rows = np.sort(np.array([catalog.row(visit) for visit in visits], int))
    fitting = set(catalog.select(constraints_of(goal["type"], told), rows).tolist())
    gone = half_gone(visits, key, shop, lambda r: (r != row, r not in fitting))
    later = {f"was_{name}": slots[name] for name in hidden}
    goal = Goal.one({**goal.but(*hidden).of(), **later}, withheld=[*later], **goal.unsaid)
    return goal, visits, gone


def draw_limits(
    kind: str, rows: np.ndarray, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> dict[str, int]:
    """Draw m - 1 further demands, so that they exclude some of these rows and leave enough to choose from."""
    catalog, limits = shop.catalog, {}
    columns = {"price": catalog.price_cents, "rating": -catalog.rating_tenths, "days": catalog.days}
    for name in shuffled(random, LIMITS)[: axes.constraints - 1]:
        keep = min(len(rows), max(axes.k_rec + 1, round(len(rows) * random.uniform(0.4, 0.75))))
        edge = int(np.sort(columns[name][rows])[keep - 1])
        limits[name] = {"price": 100 * math.ceil(edge / 100), "rating": -edge, "days": edge}[name]
        rows = catalog.select(constraints_of(kind, {name: limits[name]})[1:], rows)
    return {name: limits[name] for name in LIMITS if name in limits}


def changes(goal: Goal, random: np.random.Generator) -> list[GoalChange]:
    """List other values of the limits, higher and lower ones, in random order."""
    other: dict[str, list[int]] = {}
    if "price" in goal:
        other["price"] = [
            100 * max(1, round(goal["price"] * share / 100)) for share in (0.7, 0.85, 1.25, 1.6)
        ]
    if "rating" in goal:
        steps = (-1, 1, -2, 2) * random.integers(2, 6, 4)
        other["rating"] = [value for value in (goal["rating"] + steps).tolist() if 0 < value <= 50]
    if "days" in goal:
        other["days"] = [goal["days"] + step for step in (-2, -1, 1, 2) if goal["days"] + step > 0]
    made = [GoalChange(slots={n: value}) for n, values in other.items() for value in values]
    return [change for change in shuffled(random, made) if all(goal[n] != v for n, v in change.slots.items())]


def other_originals(goal: Goal, gone: Sequence[str], shop: Shop) -> list[Goal]:
    """List the goals of customers who mean another of the sold-out visits and have stated the same about it."""
    catalog, slots = shop.catalog, goal.of()
    told = {name: slots[name] for name in slots if name in ("brand", "feature") or name.startswith("attr:")}
    rows = sorted(catalog.row(product_id) or 0 for product_id in gone)
    made = []
    for row in catalog.select(constraints_of(goal["type"], told), rows).tolist():
        words = {name: name_of(row, name, shop) for name in slots if name.startswith("was_")}
        made.append(replace(goal.with_(words), unsaid={"original": catalog.ids[row]}))
    return made
