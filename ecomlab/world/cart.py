"""The cart lines that a goal asks for, and how well a cart matches them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Constraint
from ecomlab.catalog.schema import OPTION
from ecomlab.slots import slot_type
from ecomlab.task import Goal
from ecomlab.wishes import AnyBut, OneOf, Taste
from ecomlab.world.state import World


@dataclass(frozen=True)
class Want:
    """A wanted cart line: `quantity` units of any product in a class, in `option` (None: any variant or none)."""

    item: int
    type: str
    slots: Mapping[str, Any]
    """The class, by slot name: products that the customer's words cannot tell apart."""
    option: str | None
    quantity: int

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return constraints_of(self.type, self.slots)


def wants_of(goal: Goal) -> list[Want]:
    """List one want per item of a goal."""
    wants = []
    for item in goal.items:
        slots = goal.of(item)
        option, quantity = slots.get("option"), slots.get("quantity", 1)
        wants.append(Want(item, slots["type"], identity_of(slots), option, quantity))
    return wants


def total_of(world: World) -> int:
    """Add up the prices of all units in the cart, in cents."""
    return sum(units * cents for cents, units in _priced(world))


def prices_in(world: World) -> set[int]:
    """List the prices of units and of lines in the cart, in cents, as far as the cart holds more than these."""
    lines = _priced(world)
    found = {one for cents, units in lines for one in (cents, cents * units)}
    return found if len(lines) > 1 else found - {total_of(world)}


def _priced(world: World) -> list[tuple[int, int]]:
    prices = world.catalog.price_cents
    return [(prices.item(world.row(product_id)), units) for (product_id, _), units in world.cart.items()]


def identity_of(slots: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the slots that tell products of a type apart."""
    return {name: value for name, value in slots.items() if name != "type" and slot_type(name).of != "line"}


def constraints_of(type_name: str, slots: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Build the constraints that define the class of products these slots describe, those that come in the option if
    one is among them."""
    made = [_constraint("type", "==", type_name)]
    for name, value in slots.items():
        if isinstance(value, OneOf | AnyBut | Taste):
            made.append(_constraint(name, "not in" if isinstance(value, AnyBut) else "in", value.values))
        elif is_exact(name) or name == OPTION:
            made.append(_constraint(name, "==", value))
        elif slot_type(name).is_limit:
            made.append(_constraint(name, slot_type(name).op, value))
    return tuple(made)


def is_exact(name: str) -> bool:
    """Tell whether a product's slot is equal or not, rather than a bound."""
    slot = slot_type(name)
    return slot.of == "product" and slot.op == "=="


FEW_KEYS = 10_000
"""Maximum range of keys that `keys_of` returns for counting without closing the gaps, which takes a sort."""
ANY_KEYS = 1 << 40
"""The same for comparisons only: multiplied by the number of a slot's values it stays below 2**63."""


def keys_of(catalog: Catalog, rows: np.ndarray, names: Iterable[str], below: int = ANY_KEYS) -> np.ndarray:
    """Number the rows, from 0 to `below`, so that those equal in all of these slots have the same number."""
    keys, count = np.zeros(len(rows), np.int64), 1
    for name in names:
        column = (
            column_of(catalog, name)[rows].astype(np.int64) + 1
        )  # 0: it has none, like others that have none
        codes = int(column.max()) + 1
        keys, count = keys * codes + column, count * codes
        if count > below:
            found, keys = np.unique(keys, return_inverse=True)
            keys, count = keys.reshape(-1), len(found)
    return keys


def column_of(catalog: Catalog, name: str) -> np.ndarray:
    """Return the codes of an exact slot by row; -1: the product has none."""
    if name == "brand":
        return catalog.brand_code
    return catalog.feature_code if name == "feature" else catalog.attr[name.removeprefix("attr:")]


def names_of(catalog: Catalog, name: str) -> Sequence[str]:
    """Return the values of a brand or attribute by code."""
    return catalog.brands if name == "brand" else catalog.attr_values[name.removeprefix("attr:")]


_constraint = lru_cache(maxsize=20_000)(Constraint)  # every reset asks for the same few


def without_type(slots: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the type from these slots."""
    return {name: value for name, value in slots.items() if name != "type"}


@dataclass(frozen=True)
class Match:
    """Units in the cart per want, and units of each line that no want accounts for."""

    held: list[int]
    extra: dict[tuple[str, str | None], int]
    near: int
    """Extra units of a type of which more units are still wanted."""


def match(wants: Sequence[Want], world: World) -> Match:
    """Assign cart lines to wants, those with an option first; exact, as classes of different types are disjoint."""
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
