"""Wishes as expressions: the value of a slot may depend on what tools show.

The value of a slot is what was said, or a wish: a frozen expression that takes a step of thought. A wish says itself in
words and is read back from them; `ecomlab.world.plain` works out its value. Customers say the words, never the value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

from ecomlab.suggest import unknown

T = TypeVar("T")
Where = Literal["visits", "items"]
"""Where the thing of a reference stands: among the products that the customer looked at, or in the same order."""


@dataclass(frozen=True)
class Wish:
    """A value that must be worked out."""

    kinds: ClassVar[dict[str, type["Wish"]]] = {}

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    @property
    def step(self) -> str:
        """Kind of step of thought that it takes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Of(Wish):
    """The value that the same slot has of another thing, which `by` describes so that exactly one fits."""

    where: Where
    by: tuple[tuple[str, Any], ...]
    """Slots of the thing, its type first."""

    @property
    def step(self) -> str:
        return "joint" if self.where == "items" else "reference"

    @property
    def described(self) -> dict[str, Any]:
        """Slots of the thing by name."""
        return dict(self.by)


@dataclass(frozen=True)
class OneOf(Wish):
    """Any of these values."""

    values: tuple[str, ...]

    @property
    def step(self) -> str:
        return "logic"


@dataclass(frozen=True)
class AnyBut(Wish):
    """Any value but these."""

    values: tuple[str, ...]

    @property
    def step(self) -> str:
        return "logic"


@dataclass(frozen=True)
class If(Wish):
    """The first value of a slot if a product with it is to be had within a limit, else the second, at any price.

    With `other` None it is otherwise the cheapest one, whatever its value. The limit's sentence has the words of the
    values, so that it can be written without the shop's vocabulary.
    """

    type: str
    slot: str
    first: str
    limit: int
    """Cents."""
    other: str | None
    words: tuple[str, ...] = field(default=(), compare=False)
    """Phrases of both values: "in Black"; they follow from the values."""

    @property
    def step(self) -> str:
        return "logic"


@dataclass(frozen=True)
class Demand(Wish):
    """A wish for a slot of something that is described elsewhere, in a sentence of its own."""

    slot: str
    value: Any
    """Of, OneOf or AnyBut; once worked out, the value of a reference alone."""
    words: str = field(default="", compare=False)
    """Phrase after a noun, which follows from the rest."""

    @property
    def step(self) -> str:
        return "joint" if isinstance(self.value, Of) else "logic"


@dataclass(frozen=True)
class IfSame(Wish):
    """What has one thing in common with what it replaces, if any such one within a limit is to be had, else another:
    "brand", or the customer's word for an attribute."""

    first: str
    limit: int
    """Cents."""
    other: str

    @property
    def step(self) -> str:
        return "logic"


@dataclass(frozen=True)
class Visited(Wish):
    """One of the products that the customer looked at: from one that slots describe so many steps on."""

    by: tuple[tuple[str, Any], ...]
    """Slots of the one to start from, its type first."""
    pick: Literal["", "cheapest", "most expensive"] = ""
    """Which of those that the slots describe; "" where they describe one."""
    steps: int = 0
    """How many visits later it was; below 0: earlier."""
    words: str = field(default="", compare=False)
    """Noun phrase of the slots, which follows from them."""

    @property
    def step(self) -> str:
        return "reference"


@dataclass(frozen=True)
class Said(Wish):
    """What the reviews of a product must say. `ecomlab.world.reviews` has its words and evaluates it."""

    claims: tuple[tuple[str, str, str], ...]
    """(topic, verdict, by) each: of the reviewers that the customer goes by ("all", "verified", "recent") more say the
    good verdict on the topic than any other, or none says this bad one."""

    @property
    def step(self) -> str:
        return "evidence"

    def others(self) -> list["Said"]:
        """List what the customer may demand of other reviewers instead."""
        (topic, verdict, by), *rest = self.claims
        return [
            Said(((topic, verdict, other), *rest)) for other in ("all", "verified", "recent") if other != by
        ]


def visit_of(
    wish: Visited,
    visits: Sequence[T],
    fits: Callable[[T, Mapping[str, Any]], bool],
    price: Callable[[T], float],
) -> T | None:
    """Find the visit that is meant among all, the newest first; None where there is none."""
    able = [at for at, visit in enumerate(visits) if fits(visit, dict(wish.by))]
    able.sort(key=lambda at: price(visits[at]), reverse=wish.pick == "most expensive")
    if not able:
        return None
    at = able[0] - wish.steps
    return visits[at] if 0 <= at < len(visits) else None


def to_json(value: Any) -> Any:
    """Write a slot's value: a wish as an object that names its class, anything else as it is."""
    if not isinstance(value, Wish):
        return value
    return {"wish": type(value).__name__, **{f.name: _listed(getattr(value, f.name)) for f in fields(value)}}


def from_json(value: Any) -> Any:
    """Read what `to_json` wrote. Raises ValueError for a class that does not exist."""
    if not isinstance(value, Mapping) or "wish" not in value:
        return value
    name = value["wish"]
    if name not in Wish.kinds:
        raise ValueError(unknown("wish", name, Wish.kinds))
    return Wish.kinds[name](**{key: _tuples(each) for key, each in value.items() if key != "wish"})


def without(slots: Mapping[str, Any], lacks: frozenset[str]) -> dict[str, Any]:
    """Return slots as somebody reads them who cannot take these kinds of steps: of values that exclude each other the
    first, no reference, no exception; a condition holds, and one on what stays the same is none."""
    kept: dict[str, Any] = {}
    for name, value in slots.items():
        if not isinstance(value, Wish) or value.step not in lacks:
            kept[name] = value
        elif isinstance(value, OneOf):
            kept[name] = value.values[0]
        elif isinstance(value, Demand) and isinstance(value.value, OneOf):
            kept[name] = replace(value, value=OneOf(value.value.values[:1]))
        elif isinstance(value, If):
            kept[value.slot] = value.first
    return kept


def wishes_in(slots: Mapping[Any, Any]) -> dict[Any, Wish]:
    """Keep the slots whose values must be worked out."""
    return {name: value for name, value in slots.items() if isinstance(value, Wish)}


def has_wish(slots: Mapping[Any, Any]) -> bool:
    """Tell whether any of these slots' values must be worked out."""
    return any(isinstance(value, Wish) for value in slots.values())


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else to_json(value)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list | tuple) else from_json(value)


# In words, after an item's noun: "in Red or Blue", "not in Red", "with the same color as the Lamp I looked at".

_TAILS: Mapping[Where, str] = {"visits": "I looked at", "items": "of this order"}
SAME = re.compile(
    rf"with the same (?P<noun>[a-z][a-z ]*?) as the (?P<thing>[^.;!?\n]+?) (?P<tail>{'|'.join(_TAILS.values())})\b"
)
"""Phrase of a reference."""


def of_phrase(noun: str, thing: str, where: Where) -> str:
    """Word a reference after an item's noun; `thing` is without an article."""
    return f"with the same {noun} as the {thing} {_TAILS[where]}"


def where_of(tail: str) -> Where:
    """Find where the thing of a reference stands, by the last words of its phrase."""
    return next(where for where, words in _TAILS.items() if words == tail)


def or_list(values: tuple[str, ...]) -> str:
    """Join values by "or"."""
    return " or ".join(values)


CONDITION = re.compile(
    r"(?P<type>[^:.]+): the one (?P<first>.+?) if it costs (?P<limit>\$\d+(?:\.\d\d)?) or less, "
    r"otherwise (?:the cheapest|one (?P<other>(?:[^.]|\.\d)+))"
)
"""Words of a conditional wish."""


def condition(wish: If, money: str) -> str:
    """Word a conditional wish, its limit written as `money`."""
    first, *other = wish.words
    rest = f"one {other[0]}" if other else "the cheapest"
    return f"{wish.type}: the one {first} if it costs {money} or less, otherwise {rest}"


_MONEY = r"\$\d+(?:\.\d\d)?"
ONLY_IF = re.compile(
    rf"the same (?P<first>[a-z][a-z ]*) for (?P<limit>{_MONEY}) or less if any such one fits the rest, "
    r"otherwise the same (?P<other>[a-z][a-z ]*)"
)
"""Words of a condition on what stays the same."""
_PHRASE = r"(?:[^.;!?\n]|\.(?=\S))+?"
NO_MORE = re.compile(rf"the ({_PHRASE}) that I looked at")
"""Words of a limit that another thing's price sets."""
_STEP = r"the one that I looked at right (?:after|before) "
SEEN = re.compile(
    rf"(?P<steps>(?:{_STEP})*)the (?P<pick>cheapest|most expensive) of the (?P<among>{_PHRASE}) that I looked at"
    rf"|(?P<walk>(?:{_STEP})+)the (?P<thing>{_PHRASE})(?=$|[.;!?\n](?:\s|$))"
)
"""Words of one of the products that the customer looked at."""


def only_if(wish: IfSame, money: str) -> str:
    """Word a condition on what stays the same, its limit written as `money`."""
    return f"the same {wish.first} for {money} or less if any such one fits the rest, otherwise the same {wish.other}"


def visit_phrase(wish: Visited) -> str:
    """Word a visit: "the one that I looked at right after the GableStone Kettle"."""
    thing = f"{wish.pick} of the {wish.words} that I looked at" if wish.pick else wish.words
    walk = "after" if wish.steps > 0 else "before"
    return f"the one that I looked at right {walk} " * abs(wish.steps) + f"the {thing}"


def read_visit(text: str) -> Visited:
    """Read the words of a visit; what its noun phrase describes is found by the shop's vocabulary."""
    match = SEEN.fullmatch(text)
    assert match is not None
    said = match["steps"] or match["walk"] or ""
    pick: Any = match["pick"] or ""
    steps = said.count(" right after ") - said.count(" right before ")
    return Visited((), pick, steps, match["among"] or match["thing"])
