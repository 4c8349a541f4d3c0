"""Slots: the named wishes of customers. Each is declared once as a `SlotType`, which all other code reads.

If a slot is no property of a product, its format and sentences are in a file of phrases, and only its other traits are
declared here. A user's file declares more limits with `Phrases.load(path, SlotType(...))`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from ecomlab.values import FORMATS, Format

NO_PRICE = 2**31 - 1
"""Cents of a product without a price: no limit admits it."""
NO_RATING = -1
"""Tenths of a product without a rating: no limit admits it."""
SLACK = 0.2
"""Maximum share by which a limit without `jitter` exceeds the last product that satisfies the other slots."""

Mark = Literal["", "MONEY", "STARS", "DAYS", "DATE", "KILOS", "NUMBER"]


@dataclass(frozen=True, eq=False)
class SlotType:
    """Traits of one slot. A limit is a slot of a product with an `op` other than "=="; it needs a column, a field of a
    record, a filter, a format and a fault."""

    name: str
    of: Literal["product", "line", "request"] = "request"
    """"product": tells products of a type apart; "line": says how a cart line is wanted; "request": anything else."""
    op: Literal["==", "<=", ">="] = "=="
    format: Format | None = None
    """Format of a value, unless the slot has sentences of its own."""

    # Of a number.
    scale: int = 1
    """Internal units per displayed unit: 100 cents in a dollar."""
    unit: int = 1
    """Smallest difference between two values that customers state."""
    step: int = 1
    """Usual difference; limits are multiples of it unless they must be exact."""
    moves: tuple[int, ...] = ()
    """Differences by which a goal change moves it."""
    others: tuple[int, ...] = ()
    """Differences to other possible values, for counterfactuals."""
    range: tuple[float, float] = (1, math.inf)
    jitter: int = 0
    """Number of values among which a limit beyond the last fitting product is drawn; 0: up to `SLACK` of its value."""
    span: int = 0
    """Largest distance from a product's value, per share of slack; 0: the share is of the value itself."""

    # Of a product's number.
    column: str = ""
    """Column of the catalog."""
    missing: int | None = None
    """Value in the column for a product without it."""
    shown: str = ""
    """Field of a record that tools show."""
    filter: str = ""
    """Argument of the search that limits it."""
    filter_help: str = ""
    """Description of that argument, for the model."""
    sort: str = ""
    """Key of the search that sorts by it, which is also the customer's name for it as a preference."""
    gain: str = ""
    """One unit of it for the better, in two words, as in "$10 more for each extra star"; "" if customers do not say
    what it is worth to them."""
    fault: str = ""
    """Text for a product that violates the limit, with {has}, {wanted} and {number} (the wanted value as a bare
    number)."""

    # Of how it is spoken of.
    mark: Mark = ""
    """Kind of amount that is a value of it."""
    names: Literal["", "brand", "feature", "type"] = ""
    """Kind of the shop's names that are values of it."""
    shares: str = ""
    """Slot whose phrases ask for this one as well."""
    alike: tuple[str, ...] = ()
    """Slots that answer a question for this one, if the customer does not have it."""
    describes: bool = False
    """A value of it beside a thing's name only describes the thing, and asks for nothing more."""
    forms: tuple[str, ...] = ()
    """Phrases after a product's name, {} for the value; those of shipped slots are in phrases.toml."""
    asked: tuple[str, ...] = ()
    """Words by which a question asks for it; those of shipped slots are in asks.toml."""
    questions: tuple[str, ...] = ()
    """A courteous player's questions for it; those of shipped slots are in courtesy.toml."""

    is_limit: bool = field(default=False, init=False)
    """True if it bounds a number of a product."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_limit", self.of == "product" and self.op != "==")
        wanted = ("column", "shown", "filter", "format", "fault")
        lacks = [name for name in wanted if self.is_limit and not getattr(self, name)]
        if lacks:
            raise ValueError(
                f"slot {self.name!r} is a limit without {', '.join(lacks)}; give it all of {wanted}"
            )

    def admits(self, limit: int, value: int) -> bool:
        """Tell whether a value is within a limit."""
        return value <= limit if self.op == "<=" else value >= limit

    def read_shown(self, shown: float | None) -> int | None:
        """Read the value of a record's field; None if it is not known."""
        return None if shown is None else round(shown * self.scale)

    def as_shown(self, value: int) -> float | None:
        """Convert a value to the unit of records and filters: 1250 cents are 12.5 dollars."""
        if value == self.missing:
            return None
        return value / self.scale if self.scale > 1 else value

    def bare(self, value: int) -> str:
        """Write a value without the name of its unit: "$12.50", "4.5", "3"."""
        if self.mark == "MONEY":
            return FORMATS["money"].write(value)
        return f"{value / self.scale:.1f}" if self.scale > 1 else str(value)

    def explain(self, value: int, limit: int) -> str:
        """Describe in words how a product's value violates a limit."""
        assert self.format is not None
        write = self.format.write
        return self.fault.format(has=write(value), wanted=write(limit), number=self.bare(limit))

    def edge(self, values: np.ndarray) -> int:
        """Find the strictest limit that admits all of these values."""
        return int(values.max() if self.op == "<=" else values.min())

    def rounded(self, value: float) -> int:
        """Round a limit to whole steps, so that it still admits the same values."""
        if self.op == "<=":
            return self.step * math.ceil(value / self.step)
        return max(0, math.floor(value / self.step) * self.step)

    def loosened(self, value: int, share: float) -> int:
        """Make the limit that leaves a share of slack to a product's value, half of it if the limit is a minimum."""
        if self.span:
            return value + round(self.span * share) * (1 if self.op == "<=" else -1)
        return self.rounded(value * (1 + share) if self.op == "<=" else value * (1 - share / 2))

    def drawn_beyond(self, edge: int, random: np.random.Generator) -> int:
        """Draw a limit at a random distance beyond the last value that it must admit."""
        if not self.jitter:
            return self.loosened(edge, SLACK * random.random())
        moved = int(random.integers(self.jitter))
        return self.rounded(edge + moved if self.op == "<=" else edge - moved)

    def moved(self, value: int) -> list[int]:
        """List the values in range to which a goal change may move it."""
        low, high = self.range
        return [value + move for move in self.moves if low <= value + move <= high]

    def alternatives(self, value: int) -> list[int]:
        """List other possible values."""
        return [value + other for other in self.others]


BRAND = SlotType("brand", "product", names="brand", alike=("was_brand", "same"), describes=True)
FEATURE = SlotType(
    "feature", "product", names="feature", alike=("was_feature", "attr", "option"), describes=True
)
ATTRIBUTE = SlotType("attr", "product", alike=("same",), describes=True)
"""Any attribute: its slots are "attr:color" and the like."""
OPTION = SlotType("option", "line", describes=True)
PRICE = SlotType(
    "price", "product", "<=", FORMATS["money"], scale=100, unit=100, step=500,
    moves=(-2000, -1000, -500, 1000, 2000, 4000), others=(500, -500),
    column="price_cents", missing=NO_PRICE, shown="price", filter="price_max", filter_help="Dollars.", sort="price",
    fault="costs {has}, wanted at most {wanted}", mark="MONEY", alike=("budget", "replacement", "subtotal"),
)  # fmt: skip
RATING = SlotType(
    "rating", "product", ">=", FORMATS["stars"], scale=10, step=5, moves=(-10, -5, 5, 10), others=(-5, 5),
    range=(1, 50), jitter=5, column="rating_tenths", missing=NO_RATING, shown="rating", filter="rating_min",
    filter_help="Stars.", sort="rating", gain="extra star", fault="has {has}, wanted {number}", mark="STARS",
    alike=("replacement", "worth"),
)  # fmt: skip
DAYS = SlotType(
    "days", "product", "<=", FORMATS["days"], moves=(-2, -1, 1, 2), others=(1,), jitter=2, span=4, column="days",
    shown="ship_days", filter="ship_days_max", filter_help="Days until delivery.", sort="delivery", gain="day sooner",
    fault="arrives in {has}, wanted within {wanted}", mark="DAYS", alike=("arrival", "worth"),
)  # fmt: skip
QUANTITY = SlotType("quantity", "line", mark="NUMBER", alike=("units", "count"))
LIMITS = (PRICE, RATING, DAYS)
"""The limits of every customer, in the order of speech."""
BUDGET = SlotType("budget", op="<=", scale=100, step=500, others=(1000,), mark="MONEY", shares="price")

_DECLARED = {
    slot.name: slot
    for slot in (
        BRAND, FEATURE, ATTRIBUTE, OPTION, *LIMITS, QUANTITY, BUDGET,
        SlotType("was_brand", names="brand", shares="brand", alike=("brand",), describes=True),
        SlotType("was_feature", names="feature", shares="feature", alike=("feature",), describes=True),
        SlotType("importance", alike=("worth",)),
        SlotType("worth", scale=100, mark="MONEY", alike=("importance",)),
        SlotType("likeness", gain="matching detail"),
        SlotType("parts", names="type", alike=("added",)),
        SlotType("added", alike=("parts",)),
        SlotType("same"),
        SlotType("subtotal"),
        SlotType("arrival"),
        SlotType("give_way"),
        SlotType("said"),
        SlotType("units", mark="NUMBER"),
        SlotType("count", mark="NUMBER"),
        SlotType("ordered", mark="DATE", describes=True),
        SlotType("delivered", mark="DATE", describes=True),
        SlotType("placed", mark="DATE", alike=("when", "place", "correction", "relation"), describes=True),
        SlotType("when", alike=("placed", "place", "correction", "relation"), describes=True),
        SlotType("place", alike=("correction", "relation", "when", "placed"), describes=True),
        SlotType("relation", alike=("correction", "place")),
        SlotType("thing", names="type", alike=("brand", "feature", "things"), describes=True),
        SlotType("things", mark="NUMBER", describes=True),
        SlotType("parcels", mark="NUMBER", describes=True),
        SlotType("total", scale=100, step=500, mark="MONEY"),
        SlotType("age", mark="DAYS", alike=("delivered",)),
        SlotType("weight", mark="KILOS"),
        SlotType("items", mark="NUMBER"),
    )
}  # fmt: skip
SHIPPED = tuple(_DECLARED)
"""Names of the slots that are declared here."""


@cache
def slot_type(name: str) -> SlotType:
    """Look up a slot's declaration; a slot without one has sentences of its own and no traits."""
    return _DECLARED.get(name.partition(":")[0]) or SlotType(name)


def declared() -> Iterable[SlotType]:
    """List all declared slots."""
    return _DECLARED.values()


def declare(slot: SlotType) -> SlotType:
    """Add a user's limit for this process; a later declaration replaces an earlier one. Raises ValueError for the name
    of a shipped slot."""
    if slot.name in SHIPPED and slot is not _DECLARED[slot.name]:
        raise ValueError(f"there is a slot {slot.name!r} already; choose another name")
    if not slot.is_limit:
        raise ValueError(
            f"slot {slot.name!r} is not a limit of a product; give it a table [slots.{slot.name}]"
        )
    _DECLARED[slot.name] = slot
    slot_type.cache_clear()
    _declared_limits.cache_clear()
    return slot


@cache
def _declared_limits() -> tuple[SlotType, ...]:
    return tuple(slot for slot in declared() if slot.is_limit)


def limits_in(slots: Mapping[str, Any]) -> list[tuple[SlotType, int]]:
    """List the limits among slots, each with its value, in the order of their declaration."""
    return [(slot, slots[slot.name]) for slot in _declared_limits() if slot.name in slots]


def filters_of(slots: Mapping[str, Any]) -> dict[str, Any]:
    """Make the search filters for the limits among slots: dollars, stars, days."""
    return {limit.filter: limit.as_shown(value) for limit, value in limits_in(slots)}


def fits(record: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether a record is within the limits among slots."""
    for limit, value in limits_in(slots):
        has = limit.read_shown(record[limit.shown])
        if has is None or not limit.admits(value, has):
            return False
    return True
