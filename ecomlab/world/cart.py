"""What a customer wants of a cart, how a cart agrees with it, and what the customer sees is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ecomlab.catalog import Constraint
from ecomlab.world.state import World


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
