"""The values of wishes, worked out over a world: a goal with wishes becomes one with plain slots, which verifiers,
customers and oracles compare with what is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import Goal, Place
from ecomlab.wishes import Demand, If, Of, Packs, Wish, has_wish, is_chained, settled
from ecomlab.world.cart import constraints_of, is_exact

PACK = "attr:pack"
"""Slot of the size of a pack."""


class View(Protocol):
    """What wishes are worked out over: a world, or a task's before anything has happened in it."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def given(self) -> Mapping[str, Any]: ...
    @property
    def cart(self) -> Mapping[tuple[str, str | None], int]: ...
    def stock(self, row: int, option: str | None = None) -> int:
        """Count the units that can be bought beyond those in the cart."""


@dataclass(frozen=True)
class AtFirst:
    """A task's world before anything has happened in it; `given` is its public part."""

    shop: Shop
    given: Mapping[str, Any]
    cart: Mapping[tuple[str, str | None], int] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        return self.shop.catalog

    def stock(self, row: int, option: str | None = None) -> int:
        return int(self.catalog.stock[row])


def plain(goal: Goal, view: View, conditions: bool = True) -> Goal:
    """Return the goal with values in the place of its wishes; one that cannot be worked out is left out. Without
    `conditions` those stay open, as they are to a customer, who does not know the shop's stock."""
    if not has_wish(goal.slots):
        return goal
    goal = with_amounts(goal)
    found: dict[int, dict[str, Any]] = {}
    for item in sorted(goal.items, key=lambda item: _stands_on_items(goal.of(item))):
        found[item] = _plain_slots(goal.of(item), view, found, conditions)
    slots: dict[Place, Any] = {}
    for item in goal.items:
        slots |= {(item, name): value for name, value in found[item].items()}
    order = [place for place in goal.slots if place in slots]  # as the customer said them
    order += [place for place in slots if place not in goal.slots]
    return replace(goal, slots={place: slots[place] for place in order})


def with_amounts(goal: Goal) -> Goal:
    """Put what earlier jobs of a journey come to in the place of the words for it."""
    if not any(map(is_chained, goal.slots.values())):
        return goal
    slots = {place: settled(value, lambda wish: wish.value) for place, value in goal.slots.items()}
    return replace(goal, slots=slots)


def _stands_on_items(slots: Mapping[str, Any]) -> bool:
    return any(isinstance(value, Of) and value.where == "items" for value in slots.values())


def _plain_slots(
    slots: Mapping[str, Any], view: View, items: Mapping[int, Mapping[str, Any]], conditions: bool
) -> dict[str, Any]:
    known = {name: value for name, value in slots.items() if not isinstance(value, Of | If)}
    for name, wish in slots.items():
        if isinstance(wish, Demand) and isinstance(wish.value, Of):
            known[name] = replace(wish, value=value_of(wish.value, wish.slot, view))
    for name, wish in slots.items():
        if isinstance(wish, Of) and (value := value_of(wish, name, view, items)) is not None:
            known[name] = value
    if isinstance(wish := known.get("quantity"), Packs):
        known["quantity"] = wish.units(str(known.get(PACK, "")))
    for wish in slots.values():
        if isinstance(wish, If) and conditions:
            known |= branch_of(wish, known, view)
    return known


def value_of(
    wish: Of, name: str, view: View, items: Mapping[int, Mapping[str, Any]] | None = None
) -> str | int | None:
    """Find the value that a slot has of the thing of a reference; None where nothing fits its description."""
    by, catalog = wish.described, view.catalog
    if wish.where == "items":
        anchor = next((slots for slots in (items or {}).values() if slots["type"] == by["type"]), None)
        rows = [] if anchor is None else catalog.select(constraints_of(anchor["type"], anchor)).tolist()
    elif wish.where == "orders":
        rows = ordered_then(by["type"], by["month"], view)
    else:
        rows = things_that_fit(by, view)
        if wish.steps:
            visits = visited_rows(view)
            at = [visits.index(row) - wish.steps for row in rows]  # the newest come first
            rows = [visits[place] for place in at if 0 <= place < len(visits)]
    values = dict.fromkeys(_exact(row, name, catalog) for row in rows)
    return next(iter(values), None)


def visited_rows(view: View) -> list[int]:
    """List the rows of the visits, the newest first."""
    rows: list[int] = view.catalog.rows_of(view.given.get("visits", ())).tolist()
    return rows


def things_that_fit(by: Mapping[str, Any], view: View) -> list[int]:
    """List the rows of the visits that a description fits."""
    visits = np.array(visited_rows(view), int)
    rows: list[int] = view.catalog.select(constraints_of(by["type"], by), visits).tolist()
    return rows


def ordered_then(kind: str, month: str, view: View) -> list[int]:
    """List the rows of what was ordered of a type in a month."""
    orders = [order for order in view.given["orders"] if order["placed"][5:7] == month]
    rows = [view.catalog.row(line["product_id"]) for order in orders for line in order["lines"]]
    return [row for row in rows if row is not None and view.catalog.type_of(row).name == kind]


def branch_of(wish: If, slots: Mapping[str, Any], view: View) -> dict[str, Any]:
    """Find what a conditional wish comes to: its first value within the limit, or else the other one, or the price of
    the cheapest."""
    first = {wish.slot: wish.first, PRICE.name: wish.limit}
    if len(_can_be_had({**slots, **first}, view)):
        return first
    if wish.other is not None:
        return {wish.slot: wish.other}
    rows = _can_be_had(slots, view)
    return {PRICE.name: int(view.catalog.price_cents[rows].min())} if len(rows) else {}


def _can_be_had(slots: Mapping[str, Any], view: View) -> np.ndarray:
    """List the rows that these slots describe and of which as many units as wanted can be bought or are in the cart."""
    units, option, able = slots.get("quantity", 1), slots.get("option"), []
    for row in view.catalog.select(constraints_of(slots["type"], slots)).tolist():
        line = (view.catalog.ids[row], option)
        held = sum(n for (product, variant), n in view.cart.items() if (product, option and variant) == line)
        if view.stock(row, option) + held >= units:
            able.append(row)
    return np.array(able, int)


def in_words(slots: Mapping[str, Any], goal: Goal, item: int) -> dict[str, Any]:
    """Put the words of the goal's wishes in the place of values that were worked out."""
    said = goal.of(item)
    return {name: said[name] if isinstance(said.get(name), Wish) else value for name, value in slots.items()}


def _exact(row: int, name: str, catalog: Catalog) -> str | int | None:
    if slot_type(name).is_limit:
        return int(catalog.column(slot_type(name))[row])
    if name in ("brand", "feature"):
        return catalog.brand(row) if name == "brand" else catalog.feature(row)
    return catalog.attributes(row).get(name.removeprefix("attr:")) if is_exact(name) else None
