"""What a customer thinks of the things that an agent names: a product, an order, one of its lines.

They know which one they mean and whether its attributes meet their wishes, as a person in their place does. They have
no opinion of sets, totals, clauses or statuses.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from ecomlab.task import Goal, Slot
from ecomlab.values import MONTHS
from ecomlab.world.cart import constraints_of, identity_of
from ecomlab.world.state import World


class Thing(NamedTuple):
    """Something that a message names: a product ("product", its id), an order ("order", its id) or a line of one
    ("line", order id, line id). `text` is how the customer would call it."""

    kind: str
    id: str
    text: str
    line: str = ""
    dated: bool = False
    """Named by its day alone, which may be what the message asks about."""


@dataclass(frozen=True)
class Opinion:
    """A customer's opinion of a thing: whether it is right, whether that says which one they mean, and a slot that
    it does not meet."""

    right: bool
    identifies: bool = False
    broken: Slot | None = None
    consistent: bool = True
    """It fits everything that was said so far."""


Judge = Callable[[Goal, World, Thing], Opinion | None]
"""A function that judges a thing by a goal, which may hold only what was said; None where a person in the customer's
place could not tell."""


def of_product(goal: Goal, world: World, thing: Thing, identifies: bool = False) -> Opinion | None:
    """Judge a product by the wishes for its type. A type that nobody asked for is wrong where the customer means
    certain products, else there is no opinion of it."""
    if thing.kind != "product":
        return None
    row = world.row(thing.id)
    kind = world.catalog.type_of(row).name
    items = [item for item in goal.items if goal.get("type", item=item) == kind]
    if not items:
        return Opinion(False, identifies) if identifies else None
    slots = identity_of(goal.of(items[0]))
    for constraint in constraints_of(kind, slots)[1:]:
        if not world.catalog.satisfies(row, (constraint,)):
            return Opinion(False, identifies, Slot(items[0], constraint.field, slots[constraint.field]))
    return Opinion(True, identifies)


def opinions_of(
    things: Sequence[Thing], goal: Goal, known: Sequence[Slot], world: World, judge: Judge
) -> list[tuple[Thing, Opinion]]:
    """Judge the things that a message names, by the goal and by what is known of it; of several of one name, the one
    that is meant."""
    places = {(slot.item, slot.name) for slot in known}
    said = replace(goal, slots={p: v for p, v in goal.slots.items() if p in places or p[1] == "type"})
    found: dict[str, tuple[Thing, Opinion]] = {}
    for thing in things:
        opinion, so_far = judge(goal, world, thing), judge(said, world, thing)
        if opinion is None or so_far is None or (thing.text in found and not opinion.right):
            continue
        broken = so_far.broken or opinion.broken
        found[thing.text] = (thing, replace(opinion, broken=broken, consistent=so_far.right))
    return list(found.values())


def things_in(text: str, world: World) -> list[Thing]:
    """Find the products, orders and order lines that a message names, by id, by title or by the order's day."""
    said = text.lower()
    orders = [order for order in world.given.get("orders", ()) if _names(order, said)]
    lines = [
        Thing("line", order["order_id"], world.catalog.title(world.row(line["product_id"])), line["line_id"])
        for order in world.given.get("orders", ())
        for line in order["lines"]
        if line["line_id"].lower() in said
        or world.catalog.title(world.row(line["product_id"])).lower() in said
    ]
    named = {order["order_id"] for order in orders}
    lines = [line for line in lines if not named or line.id in named] or lines
    if lines:
        return lines
    if orders:
        return [
            Thing(
                "order",
                order["order_id"],
                f"the one of {_day(order['placed'])}",
                dated=order["order_id"].lower() not in said,
            )
            for order in orders
        ]
    found: list[Thing] = []
    for product_id in world.shown:
        title = world.catalog.title(world.row(product_id))
        if product_id.lower() in said or title.lower() in said:
            found.append(Thing("product", product_id, title))
    return sorted(found, key=lambda thing: _first(said, thing))


def without(text: str, things: Sequence[Thing]) -> str:
    """Leave the names of things out of a message, so that they are not read as questions about their words."""
    for thing in sorted(things, key=lambda thing: -len(thing.text)):
        text = re.sub(re.escape(thing.text), "it", text, flags=re.IGNORECASE)
    return text


def _first(said: str, thing: Thing) -> int:
    places = [said.find(thing.id.lower()), said.find(thing.text.lower())]
    return min(place for place in places if place >= 0)


def _names(order: object, said: str) -> bool:
    assert hasattr(order, "__getitem__")
    day = order["placed"]
    return order["order_id"].lower() in said or day in said or _day(day).lower() in said


def _day(text: str) -> str:
    day = date.fromisoformat(text)
    return f"{MONTHS[day.month - 1]} {day.day}"
