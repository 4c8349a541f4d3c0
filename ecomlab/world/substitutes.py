"""Replacements for a sold-out product, and how much they have in common with it.

In goals of SUB the slot "must" holds the nouns of the attributes that must stay the same, and the unsaid "original" is
the id of the sold-out product.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Constraint, Shop
from ecomlab.slots import LIMITS, PRICE, RATING, SlotType
from ecomlab.task import Event, Goal, GoalChange, changes_of
from ecomlab.wishes import Demand, If, Of
from ecomlab.world import ranking
from ecomlab.world.cart import FEW_KEYS, column_of, constraints_of, keys_of

NOUNS: Mapping[str, str] = {
    "works_with": "compatibility",
    "skin": "skin type",
    "pack": "pack size",
    "hair": "hair type",
    "age": "age range",
    "active": "active ingredient",
    "door": "number of doors",
    "video": "video output",
    "hub": "smart home control",
    "bulb": "type of bulb",
    "media": "filter media",
    "cover": "type of cover",
    "charge": "battery capacity",
    "note": "scent notes",
    "season": "season rating",
    "light": "light color",
    "drive": "type of drive",
    **{
        name: f"number of {name}" for name in ("buttons", "slots", "compartments", "shelves", "vents", "tabs")
    },
}
"""Customers' words for attributes whose plain name would sound odd."""


LIKENESS = "likeness"
"""Slot by which similarity is counted where it is worth something."""
CLOSE_STARS = 2
"""Tenths of a star by which two ratings may differ that count as equal."""
CLOSE_PRICE = 10
"""A price counts as equal to another that it differs from by this fraction of it at most: a tenth."""


def hard_names(nouns: Sequence[str], attributes: Iterable[str]) -> list[str]:
    """List the attributes that the customer's nouns name."""
    return [name for name in attributes if noun(name) in nouns]


def noun(attribute: str) -> str:
    """Return the customer's word for an attribute."""
    return NOUNS.get(attribute, attribute.replace("_", " "))


def original_of(goal: Goal, shop: Shop) -> int:
    """Find the row of the sold-out product."""
    row = shop.catalog.row(goal.unsaid["original"])
    assert row is not None
    return row


def requirements(goal: Goal, shop: Shop, limits: bool = True) -> tuple[Constraint, ...]:
    """List the constraints on a replacement: type, attributes that must stay the same and, if asked for, limits and
    other demands."""
    return tuple(
        constraint for name, constraint in demanded(goal, shop) if limits or name in ("type", "must")
    )


def demanded(goal: Goal, shop: Shop) -> list[tuple[str, Constraint]]:
    """List the constraints on a replacement, each with the slot that demands it. Demands that are not worked out yet
    are left out, and conditions, which depend on what there is: see `narrowed`."""
    attributes = shop.catalog.attributes(original_of(goal, shop))
    kind = goal["type"]
    found = [("type", constraints_of(kind, {})[0])]
    for name in hard_names(goal["must"], attributes):
        found.append(("must", constraints_of(kind, {f"attr:{name}": attributes[name]})[1]))
    for name, value in goal.of().items():
        if isinstance(value, Demand) and not isinstance(value.value, Of | If):
            found.append((name, constraints_of(kind, {value.slot: value.value})[1]))
    found += [
        (limit.name, constraints_of(kind, {limit.name: goal[limit.name]})[1])
        for limit in LIMITS
        if limit.name in goal
    ]
    return found


def narrowed(rows: np.ndarray, goal: Goal, shop: Shop) -> np.ndarray:
    """Keep, of the rows that fit everything else and can be bought, those that a condition leaves."""
    if "if" not in goal:
        return rows
    wish = goal["if"].value
    first = shop.catalog.select(
        constraints_of(wish.type, {wish.slot: wish.first, PRICE.name: wish.limit}), rows
    )
    return (
        first if len(first) else shop.catalog.select(constraints_of(wish.type, {wish.slot: wish.other}), rows)
    )


def similarity(rows: np.ndarray, goal: Goal, shop: Shop) -> np.ndarray:
    """Count, for each row, how many of brand, the attributes that may differ, price and stars equal the original's."""
    catalog, original = shop.catalog, original_of(goal, shop)
    equal = np.zeros(len(rows), int)
    for name in similar_names(goal, shop):
        column = column_of(catalog, name)
        equal += column[rows] == column[original]
    for limit in (PRICE, RATING):
        column = catalog.column(limit)
        equal += are_close(limit, column[rows].astype(np.int64), column.item(original))
    return equal


def are_close(limit: SlotType, values: Any, own: int) -> Any:
    """Tell, for each value, whether it counts as equal to the original's own; what is missing never does."""
    far = abs(values - own)
    close = far * CLOSE_PRICE <= own if limit is PRICE else far <= CLOSE_STARS
    return close & (values != limit.missing) & (own != limit.missing)


def rank_keys(rows: np.ndarray, goal: Goal, shop: Shop) -> np.ndarray:
    """Return a number for each row, the smaller the better: the more similar first, or else by what wishes and each
    likeness are worth, if the customer says so."""
    alike, worth = similarity(rows, goal, shop).astype(np.int64), goal.get("worth")
    if worth is None:
        return -alike
    keys: np.ndarray = worth.key(beside_likeness(alike, ranking.of_rows(rows, shop.catalog)))
    return keys


def beside_likeness(alike: Any, values: ranking.Values) -> ranking.Values:
    """Look up how similar products are beside their values."""
    return lambda of: alike if getattr(of, "name", "") == LIKENESS else values(of)  # copies of slots differ


def best_of(rows: np.ndarray, goal: Goal, count: int, shop: Shop) -> np.ndarray:
    """Keep the rows that may be among the `count` best."""
    keys = rank_keys(rows, goal, shop)
    return rows[keys <= np.sort(keys)[count - 1]] if len(rows) > count else rows


def similar_names(goal: Goal, shop: Shop) -> list[str]:
    """List the slots that count for similarity beside price and stars: brand and the attributes that may differ."""
    attributes = shop.catalog.attributes(original_of(goal, shop))
    hard = hard_names(goal["must"], attributes)
    return ["brand", *(f"attr:{name}" for name in attributes if name not in hard)]


def most_similar(rows: np.ndarray, goal: Goal, count: int, shop: Shop) -> np.ndarray:
    """Return the `count` of these rows that have most in common with the original."""
    return rows[np.argsort(-similarity(rows, goal, shop), kind="stable")[:count]]


def alike_counts(
    catalog: Catalog, rows: np.ndarray, span: range, left: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Count, for each of these rows of a type, how many others equal it in these slots; only those of the type's rows,
    `span`, count that the mask `left` holds."""
    both = np.concatenate([rows, span.start + np.flatnonzero(left)])
    keys = keys_of(catalog, both, names, below=FEW_KEYS)
    mine, theirs = keys[: len(rows)], keys[len(rows) :]
    counts = np.bincount(theirs, minlength=int(keys.max(initial=0)) + 1)
    return counts[mine] - left[rows - span.start]


@lru_cache(maxsize=8)  # one task asks for the same ones many times
def _rows_of(product_ids: tuple[str, ...], shop: Shop) -> list[int | None]:
    return [shop.catalog.row(product_id) for product_id in product_ids]


def stages_of(
    goal: Goal, events: Sequence[Event], gone: Iterable[str], shop: Shop, required: bool = True
) -> list[np.ndarray]:
    """List the valid replacements before, between and after the events, in any order; those after all come last. Where
    nothing is `required`, all other products of the type that are in stock."""
    catalog, span = shop.catalog, shop.catalog.type_rows(goal["type"])
    lost = np.append(catalog.rows_of(gone), original_of(goal, shop))
    lost = lost[(lost >= span.start) & (lost < span.stop)] - span.start

    def replacements(some: Goal, shop: Shop) -> np.ndarray:
        left = catalog.stock[span.start : span.stop] > 0
        left[lost] = False
        rows = catalog.select(requirements(some, shop) if required else (), span)
        return rows[left[rows - span.start]]

    stocks = [event for event in events if not isinstance(event, GoalChange)]
    goals = [goal, *(goal.apply(change) for change in changes_of(events))]
    return [
        narrowed(rows, some, shop) if required else rows
        for some in goals
        for rows in ranking.stages(some, stocks, shop, replacements)
    ]


def fewest(goal: Goal, events: Sequence[Event], gone: Iterable[str], shop: Shop) -> int:
    """Return the smallest number of valid replacements at any time."""
    return min(map(len, stages_of(goal, events, gone, shop)))
