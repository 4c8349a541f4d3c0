"""Products that can stand in for one that is sold out, and how much they have in common with it (SUB).

In these goals "must" holds the nouns of the attributes that must be the same, and the unsaid "original" is the id of
the sold-out product.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.task import Event, Goal, GoalChange, SellOut, TaskKey
from ecomlab.world.cart import constraints_of
from ecomlab.world.state import sold_out_rows

LIMITS = ("price", "rating", "days")
"""Slots that a customer may demand of a replacement beside its being compatible."""
NOUNS: Mapping[str, str] = {
    "works_with": "compatibility",
    "skin": "skin type",
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
"""Words of a customer's for an attribute whose name alone would sound odd."""


def hard_names(nouns: Sequence[str], attributes: Iterable[str]) -> list[str]:
    """The attributes that these words of a customer's name."""
    return [name for name in attributes if noun(name) in nouns]


def noun(attribute: str) -> str:
    """A customer's words for an attribute."""
    return NOUNS.get(attribute, attribute.replace("_", " "))


def original_of(goal: Goal, shop: Shop) -> int:
    """The row of the sold-out product."""
    row = shop.catalog.row(goal.unsaid["original"])
    assert row is not None
    return row


def requirements(goal: Goal, shop: Shop, limits: bool = True) -> tuple[Constraint, ...]:
    """Constraints on a replacement: type, the attributes that must be the same, and the customer's demands."""
    attributes = shop.catalog.attributes(original_of(goal, shop))
    slots: dict[str, Any] = {
        f"attr:{name}": attributes[name] for name in hard_names(goal["must"], attributes)
    }
    if limits:
        slots |= {name: goal[name] for name in LIMITS if name in goal}
    return constraints_of(goal["type"], slots)


def similarity(rows: np.ndarray, goal: Goal, shop: Shop) -> np.ndarray:
    """Number of entries equal to the original's, by row: of brand and the attributes that need not be the same."""
    catalog, original = shop.catalog, original_of(goal, shop)
    attributes = catalog.attributes(original)
    hard = hard_names(goal["must"], attributes)
    columns = [catalog.brand_code, *(catalog.attr[name] for name in attributes if name not in hard)]
    equal = np.zeros(len(rows), int)
    for column in columns:
        equal += column[rows] == column[original]
    return equal


def stages_of(
    goal: Goal, events: Sequence[Event], gone: Iterable[str], key: TaskKey, shop: Shop
) -> list[np.ndarray]:
    """The rows that can stand in before, between and after the events, in whichever order they fall; after all of
    them comes last."""
    catalog = shop.catalog
    lost = np.array([original_of(goal, shop), *(catalog.row(product_id) for product_id in gone)], int)
    goals, masks = [goal], [np.zeros(len(catalog.type_rows(goal["type"])), bool)]
    for event in events:
        if isinstance(event, GoalChange):
            goals.append(goal.changed(event))
        elif isinstance(event, SellOut):
            masks.append(sold_out_rows(key, catalog, goal["type"], event.share))
    stages = []
    for some in goals:
        rows = catalog.select(requirements(some, shop))
        rows = rows[(catalog.stock[rows] > 0) & ~np.isin(rows, lost)]
        stages += [rows[~mask[rows - catalog.type_rows(some["type"]).start]] for mask in masks]
    return stages


def fewest(goal: Goal, events: Sequence[Event], gone: Iterable[str], key: TaskKey, shop: Shop) -> int:
    """Least number of products that can stand in, at any time."""
    return min(map(len, stages_of(goal, events, gone, key, shop)))
