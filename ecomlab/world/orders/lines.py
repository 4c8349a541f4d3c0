"""The order line that a customer means: what describes a line, and the lines that a description leaves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.seeding import shuffled
from ecomlab.task import TaskKey
from ecomlab.world.orders.history import (
    Line,
    Order,
    delivered,
    delivered_lines,
    eligible_first,
    eligible_now,
    lines_of,
)
from ecomlab.world.state import World

LISTED = ("type", "brand", "feature", "ordered")
"""Slots that `order_list` can settle; for the others one looks into the orders."""
DATES = ("ordered", "delivered")
"""Slots that hold a day, "MM-DD"."""
LOOKUPS = 40
"""Most orders that a description leaves to be looked into."""


def is_identity(name: str) -> bool:
    """Tell whether a slot says which line is meant."""
    return name in ("type", "brand", "feature", "option", *DATES) or name.startswith("attr:")


def line_fits(
    line: Line, order: Order, slots: Mapping[str, Any], catalog: Catalog, only: Collection[str] | None = None
) -> bool:
    """Tell whether a line is what these slots describe: product words, the option, the day of order or delivery."""
    row = catalog.row(line["product_id"])
    if row is None:
        return False
    for name, value in slots.items():
        if value is None or (only is not None and name not in only):
            continue
        if line_value(line, order, row, name, catalog) != value:
            return False
    return True


def line_value(line: Line, order: Order, row: int, name: str, catalog: Catalog) -> Any:
    """The value for this line of a slot that describes one; None where the line has no such value."""
    if name == "type":
        return catalog.type_of(row).name
    if name == "brand":
        return catalog.brands[catalog.brand_code.item(row)]
    if name == "feature":
        return catalog.features[catalog.feature_code.item(row)]
    if name == "option":
        return line["variant_id"]
    if name == "ordered":
        return order["placed"][5:]
    if name == "delivered":
        day = delivered(order, line)
        return None if day is None else day[5:]
    return catalog.attributes(row).get(name.removeprefix("attr:"))


def describe(
    order: Order, line: Line, history: Sequence[Order], shop: Shop, patient: bool, random: np.random.Generator
) -> dict[str, Any] | None:
    """The slots that make a line the only one, each of them needed; None if nothing does.

    A `patient` customer says first what tells little, and the date last: then there is more to be heard.
    """
    catalog = shop.catalog
    row = catalog.row(line["product_id"])
    if row is None:
        return None
    names = ["brand", "feature", "option", *(f"attr:{name}" for name in catalog.attributes(row)), *DATES]
    values = {name: line_value(line, order, row, name, catalog) for name in names}
    names = shuffled(random, names)
    slots: dict[str, Any] = {"type": catalog.type_of(row).name}
    left = [(o, n) for o, n in lines_of(history) if line_fits(n, o, slots, catalog)]
    if patient:
        names.sort(key=lambda name: (name in DATES, -_count(left, name, values[name], shop)))
    if len(left) > LOOKUPS:
        names.insert(0, "ordered")
    for name in names:
        fewer = [(o, n) for o, n in left if line_fits(n, o, {name: values[name]}, catalog)]
        if values[name] is not None and len(fewer) < len(left) and len(left) > 1:
            slots[name], left = values[name], fewer
    if len(left) != 1:
        return None
    ranks = ["type", "brand", "feature", "option"]
    return dict(
        sorted(slots.items(), key=lambda s: (s[0] in DATES, ranks.index(s[0]) if s[0] in ranks else 9))
    )


@dataclass(frozen=True)
class Candidate:
    """A line that a customer may mean, the slots that describe it, and whether it can be returned."""

    order: Order
    line: Line
    slots: Mapping[str, Any]
    goes: bool

    @property
    def most(self) -> int:
        """Units that the customer may speak of: those that are left, if it can be returned."""
        return int(self.line["quantity"] - (self.line["returned"] if self.goes else 0))


def candidates(
    given: Mapping[str, Any], patient: bool, key: TaskKey, shop: Shop, random: np.random.Generator
) -> Iterator[Candidate]:
    """The delivered lines that can be told from all others, in random order."""
    for order, line in shuffled(random, delivered_lines(given["orders"])):
        slots = describe(order, line, given["orders"], shop, patient, random)
        if slots is not None:
            goes = eligible_first(given, key, order, line, shop.catalog).eligible
            yield Candidate(order, line, slots, goes)


def meant_by(
    slots: Mapping[str, Any], given: Mapping[str, Any], key: TaskKey, shop: Shop
) -> Candidate | None:
    """The delivered line that these slots mean; None where they mean no such line, or several."""
    found = lines_meant(slots, given["orders"], shop)
    if len(found) != 1 or not delivered(*found[0]):
        return None
    return Candidate(*found[0], slots, eligible_first(given, key, *found[0], shop.catalog).eligible)


def _count(lines: Sequence[tuple[Order, Line]], name: str, value: Any, shop: Shop) -> int:
    return sum(line_fits(n, o, {name: value}, shop.catalog) for o, n in lines)


def lines_meant(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> list[tuple[Order, Line]]:
    """The lines that these slots leave."""
    described = {name: value for name, value in slots.items() if is_identity(name)}
    return [(o, n) for o, n in lines_of(history) if line_fits(n, o, described, shop.catalog)]


def line_meant(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> tuple[Order, Line]:
    """The line that is meant: the one that all slots leave."""
    (target,) = lines_meant(slots, history, shop)
    return target


def values_of(name: str, pairs: Sequence[tuple[Order, Line]], shop: Shop) -> list[Any]:
    """Values that a slot which describes a line might have among these."""
    rows = [(order, line, shop.catalog.row(line["product_id"]) or 0) for order, line in pairs]
    values = [line_value(line, order, row, name, shop.catalog) for order, line, row in rows]
    return [value for value in values if value is not None]


def may_be(order: Order, slots: Mapping[str, Any], shop: Shop) -> bool:
    """Tell whether `order_list` leaves it open that an order holds what these slots describe."""
    return any(line_fits(line, order, slots, shop.catalog, only=LISTED) for line in order["lines"])


def expected_returns(slots: Mapping[str, Any], world: World) -> dict[tuple[str, str], int]:
    """Units by (order id, line id) that should have been returned in the end."""
    order, line = line_meant(slots, world.given["orders"], world.shop)
    if not eligible_now(world, order, line, undone=True).eligible:
        return {}
    return {(order["order_id"], line["line_id"]): slots.get("units", 1)}
