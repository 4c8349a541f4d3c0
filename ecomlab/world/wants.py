"""What a customer wants of a cart, how a cart agrees with it, and what the customer sees is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ecomlab.catalog import Constraint
from ecomlab.core import Fault
from ecomlab.customer.ledger import Slot
from ecomlab.customer.words import Act
from ecomlab.world.overlay import World


@dataclass(frozen=True)
class Want:
    """What the customer wants now: so many units of any product in the class, in that option (None: any or none)."""

    subject: int
    type: str
    slots: Mapping[str, Any]
    """The class by slot name: products that the customer's words cannot tell apart are one class."""
    option: str | None
    quantity: int

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return constraints_of(self.type, self.slots)


def want_of(subject: int, slots: Mapping[str, Any]) -> Want:
    identity = {n: v for n, v in slots.items() if n not in ("type", "option", "quantity")}
    return Want(subject, slots["type"], identity, slots.get("option"), slots.get("quantity", 1))


def constraints_of(type_name: str, slots: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The class of products that these slots describe."""
    made = [_constraint("type", "==", type_name)]
    for name, value in slots.items():
        if name in ("brand", "feature") or name.startswith("attr:"):
            made.append(_constraint(name, "==", value))
        elif name in ("price", "days"):
            made.append(_constraint(name, "<=", value))
        elif name == "rating":
            made.append(_constraint(name, ">=", value))
    return tuple(made)


_constraint = lru_cache(maxsize=20_000)(Constraint)  # the same few words over and over, in every reset


def without_type(slots: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in slots.items() if name != "type"}


@dataclass(frozen=True)
class Match:
    """How cart and wants agree: units held per want, and units of each line that nobody wants."""

    held: list[int]
    extra: dict[tuple[str, str | None], int]
    near: int
    """Extra units that are of a type of which units are still wanted."""


def match(wants: Sequence[Want], world: World) -> Match:
    """Assign cart lines to wants, those that name an option first. Exact: classes of different types are disjoint."""
    held = [0] * len(wants)
    left = dict(world.cart)
    order = sorted(range(len(wants)), key=lambda i: wants[i].option is None)
    for i in order:
        want = wants[i]
        for line, units in left.items():
            if want.option not in (None, line[1]) or units == 0:
                continue
            row = world.row(line[0])
            if world.catalog.satisfies(row, want.constraints):
                taken = min(units, want.quantity - held[i])
                held[i] += taken
                left[line] -= taken
    extra = {line: units for line, units in left.items() if units}
    lacking: Counter[str] = Counter()
    for want, units in zip(wants, held, strict=True):
        lacking[want.type] += want.quantity - units
    spare: Counter[str] = Counter()
    for (product_id, _), units in extra.items():
        spare[world.catalog.type_of(world.row(product_id)).name] += units
    return Match(held, extra, (lacking & spare).total())


def faults(wants: Sequence[Want], world: World) -> list[Fault]:
    """What is wrong with the cart, one fault a thing; units that are merely not there yet are none."""
    matched = match(wants, world)
    found: list[Fault] = []
    for (product_id, variant), extra in matched.extra.items():
        row = world.row(product_id)
        mine = [
            (want, held)
            for want, held in zip(wants, matched.held, strict=True)
            if want.type == world.catalog.type_of(row).name
        ]
        found.append(_fault(mine, world, row, variant, extra))
    blamed = {fault.subject for fault in found}
    for want, held in zip(wants, matched.held, strict=True):
        if 0 < held < want.quantity and want.subject not in blamed:
            act = Act("wrong quantity", want.type, seen=str(held), number=want.quantity)
            found.append(Fault(act, subject=want.subject))
    first = {fault.thing: fault for fault in reversed(found)}
    return list(reversed(first.values()))


def _fault(
    mine: Sequence[tuple[Want, int]], world: World, row: int, variant: str | None, extra: int
) -> Fault:
    """What is wrong with `extra` units of a line; `mine` are the wants of its type with the units that they hold."""
    for want, _ in mine:
        if want.option in (None, variant) and world.catalog.satisfies(row, want.constraints):
            act = Act("wrong quantity", want.type, seen=str(want.quantity + extra), number=want.quantity)
            return Fault(act, subject=want.subject)
    lacking = [want for want, held in mine if held < want.quantity]
    for want in lacking:
        if world.catalog.satisfies(row, want.constraints):
            act = Act(
                "wrong option" if variant else "no option", want.type, {"option": want.option}, variant or ""
            )
            return Fault(act, (Slot(want.subject, "option", want.option),), want.subject)
    if not lacking:
        title = world.catalog.title(row)
        return Fault(Act("not wanted", seen=f"{title} ({variant})" if variant else title))
    want = lacking[0]
    broken = {
        c.field: want.slots[c.field]
        for c in want.constraints
        if c.field != "type" and not world.catalog.satisfies(row, (c,))
    }
    slots = tuple(Slot(want.subject, name, value) for name, value in broken.items())
    act = Act("wrong product", want.type, broken, seen=f"The {world.catalog.title(row)}")
    return Fault(act, slots, want.subject)
