"""Descriptions of order lines, and the lines that match a description."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.seeding import shuffled
from ecomlab.world.orders.history import Line, Order, delivered, lines_of
from ecomlab.world.orders.returns import Desk, Outcome, judge
from ecomlab.world.policy_book.rules import FORM, RULES
from ecomlab.world.state import World

IN_HAND = ("brand", "attr:color", "attr:colors")
"""Slots of what everybody knows who holds the thing in their hands."""
LISTED = ("type", "brand", "feature", "ordered")
"""Slots that `order_list` shows; the others need a look into the orders."""
DATES = ("ordered", "delivered")
"""Slots that hold a day as "MM-DD"."""
FORMS = tuple(map(str, RULES[FORM].values))
"""Forms in which a refund may be paid."""
LOOKUPS = 40
"""Maximum number of orders that a description may leave to be looked into."""


def is_identity(name: str) -> bool:
    """Tell whether a slot describes the line that is meant."""
    return name in ("type", "brand", "feature", "option", *DATES) or name.startswith("attr:")


def line_fits(
    line: Line, order: Order, slots: Mapping[str, Any], catalog: Catalog, only: Collection[str] | None = None
) -> bool:
    """Tell whether a line matches these slots: product words, option, day of order or delivery."""
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
    """Return a line's value for a descriptive slot, or None."""
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
    order: Order,
    line: Line,
    history: Sequence[Order],
    shop: Shop,
    patient: bool,
    random: np.random.Generator,
    also: Collection[str] = (),
) -> dict[str, Any] | None:
    """Find a small set of slots that only this line matches, and what everybody knows who holds it in their hands, and
    of `also`; None if there is none. Days are what people forget: they come last.

    A `patient` customer starts with the least telling slots, so there is more to ask for.
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
        names.sort(key=lambda name: -_count(left, name, values[name], shop))
    names.sort(key=lambda name: name in DATES)
    if len(left) > LOOKUPS:
        names.insert(0, "ordered")
    for name in names:
        fewer = [(o, n) for o, n in left if line_fits(n, o, {name: values[name]}, catalog)]
        if values[name] is not None and len(fewer) < len(left) and len(left) > 1:
            slots[name], left = values[name], fewer
    if len(left) != 1:
        return None
    slots |= {name: values[name] for name in (*IN_HAND, *also) if values.get(name) is not None}
    ranks = ["type", "brand", "feature", "option"]
    return dict(
        sorted(slots.items(), key=lambda s: (s[0] in DATES, ranks.index(s[0]) if s[0] in ranks else 9))
    )


@dataclass(frozen=True)
class Candidate:
    """A line that a customer may mean, the slots that describe it, and whether it can be returned (`goes`)."""

    order: Order
    line: Line
    slots: Mapping[str, Any]
    goes: bool

    @property
    def most(self) -> int:
        """Largest number of units that the customer may mention: those not yet returned."""
        return int(self.line["quantity"] - self.line["returned"])


def meant_by(slots: Mapping[str, Any], given: Mapping[str, Any], shop: Shop) -> Candidate | None:
    """Find the delivered line that matches these slots; None if none or several lines match."""
    found = lines_meant(slots, given["orders"], shop)
    if len(found) != 1 or not delivered(*found[0]):
        return None
    return Candidate(*found[0], slots, judge(given, *found[0], slots, shop.catalog).goes)


def _count(lines: Sequence[tuple[Order, Line]], name: str, value: Any, shop: Shop) -> int:
    return sum(line_fits(n, o, {name: value}, shop.catalog) for o, n in lines)


def lines_meant(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> list[tuple[Order, Line]]:
    """List the lines that match these slots."""
    described = {name: value for name, value in slots.items() if is_identity(name)}
    return [(o, n) for o, n in lines_of(history) if line_fits(n, o, described, shop.catalog)]


def line_meant(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> tuple[Order, Line]:
    """Return the only line that matches these slots."""
    (target,) = lines_meant(slots, history, shop)
    return target


def values_of(name: str, pairs: Sequence[tuple[Order, Line]], shop: Shop) -> list[Any]:
    """List the values of a descriptive slot among these lines."""
    rows = [(order, line, shop.catalog.row(line["product_id"]) or 0) for order, line in pairs]
    values = [line_value(line, order, row, name, shop.catalog) for order, line, row in rows]
    return [value for value in values if value is not None]


def may_be(order: Order, slots: Mapping[str, Any], shop: Shop) -> bool:
    """Tell whether, by what `order_list` shows, an order may hold a line that matches these slots."""
    return any(line_fits(line, order, slots, shop.catalog, only=LISTED) for line in order["lines"])


def wanted_returns(slots: Mapping[str, Any], world: World) -> dict[tuple[str, str], int]:
    """Compute the returns that the customer wishes for: units by (order id, line id)."""
    order, line = line_meant(slots, world.given["orders"], world.shop)
    return {(order["order_id"], line["line_id"]): slots.get("units", 1)}


def expected_returns(slots: Mapping[str, Any], world: World) -> dict[tuple[str, str], int]:
    """Compute the returns that the verifier expects: those wished for, if the book allows them."""
    order, line = line_meant(slots, world.given["orders"], world.shop)
    goes = judge(world.given, order, line, slots, world.catalog).goes
    return wanted_returns(slots, world) if goes else {}


def wanted_for(slots: Mapping[str, Any], outcome: Outcome) -> Sequence[Sequence[Any]]:
    """Return what another product should be like that the customer wants in this outcome of their return; nothing where
    they want their money. A condition is on whether all of it is paid back."""
    fails = slots.get("only_if") == ("part" if outcome.is_full else "full")
    wanted: Sequence[Sequence[Any]] = [] if fails or not outcome.goes else slots["replacement"]
    return wanted


def has_agreed(slots: Mapping[str, Any], world: World) -> bool:
    """Tell whether the customer agreed to what they get back before the return was started, or need not."""
    order, line = line_meant(slots, world.given["orders"], world.shop)
    desk, row = Desk(world.given, world.catalog), world.row(line["product_id"])
    if line["price_cents"] is None or not desk.must_agree(order, line, slots):
        return True  # without prices there is no amount to agree to
    outcome = desk.judge(order, line, slots)
    names = (line["line_id"], world.catalog.title(row), world.catalog.type_of(row).name)
    price, units = line["price_cents"] or 0, slots.get("units", 1)
    cents, paid = outcome.back(price, units), price * units
    beside = {paid, price, outcome.label or 0, paid * (outcome.restocking or 0) // 1000}
    form = "" if wanted_for(slots, outcome) else outcome.form
    before = world.agreed_before.get((order["order_id"], line["line_id"]), ())
    prices = {one.text: _prices_named(one.text, world) for one in before}
    return any(one.names(names, cents, beside | prices[one.text], form, FORMS) for one in before)


def _prices_named(text: str, world: World) -> set[int]:
    """List the prices, in cents, of products that tools have shown and that a text in small letters names."""
    rows = (world.row(product_id) for product_id in world.shown)
    named = (row for row in rows if world.catalog.title(row).lower() in text)
    return {int(world.catalog.price_cents[row]) for row in named}
