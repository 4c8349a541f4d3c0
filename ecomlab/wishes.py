"""Wishes as expressions: the value of a slot may depend on what tools show.

The value of a slot is what was said, or a wish: a frozen expression that takes a step of thought. A wish says itself in
words and is read back from them; `ecomlab.world.plain` works out its value. Customers say the words, never the value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

from ecomlab.suggest import unknown
from ecomlab.values import MONEY, NAME, Format, in_speech, money, read_money

T = TypeVar("T")
Where = Literal["visits", "items"]
"""Where the thing of a reference stands: among the products that the customer looked at, or in the same order."""


@dataclass(frozen=True)
class Wish:
    """A value that must be worked out."""

    kinds: ClassVar[dict[str, type["Wish"]]] = {}
    pattern: ClassVar[str] = ""
    """Pattern of its words, if it has a sentence of its own: a named group for each thing that it says."""

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    @property
    def step(self) -> str:
        """Kind of step of thought that it takes."""
        raise NotImplementedError

    @property
    def amounts(self) -> Sequence[int]:
        """Amounts of money that it names, in cents."""
        return ()

    def without(self, name: str) -> dict[str, Any]:
        """Return the slots that stand in place of it, as slot `name`, for somebody who cannot take its step."""
        return {}

    def say(self) -> str:
        """Word it as its sentence holds it."""
        raise NotImplementedError

    def say_otherwise(self) -> tuple[str, ...]:
        """List other words that mean the same; the pattern knows these too."""
        return ()

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Wish":
        """Make it of the groups of its words. What names and values these mean is found by the shop's vocabulary."""
        return cls(**said)

    @classmethod
    def format(cls) -> Format:
        """Make the format of its words."""
        whole = re.compile(cls.pattern)

        def read(text: str) -> Wish:
            match = whole.fullmatch(text)
            if match is None:
                raise ValueError(f"{text!r} does not fit")
            return cls.read(match.groupdict(""))

        pattern = re.sub(r"\(\?P<\w+>", "(?:", cls.pattern)
        return Format(lambda wish: wish.say(), pattern, read, lambda wish: wish.say_otherwise())


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
    step = "logic"

    def admits(self, value: str | None) -> bool:
        """Tell whether a value will do."""
        return value in self.values

    def without(self, name: str) -> dict[str, Any]:
        return {name: self.values[0]}


@dataclass(frozen=True)
class AnyBut(Wish):
    """Any value but these."""

    values: tuple[str, ...]
    step = "logic"

    def admits(self, value: str | None) -> bool:
        """Tell whether a value will do."""
        return value not in self.values


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
    pattern = (
        rf"(?P<type>[^:.]+): the one (?P<first>.+?) if it costs (?P<limit>{MONEY.pattern}) or less, "
        r"otherwise (?:the cheapest|one (?P<other>(?:[^.]|\.\d)+))"
    )

    step = "logic"

    def without(self, name: str) -> dict[str, Any]:
        return {self.slot: self.first}

    def say(self) -> str:
        first, *other = self.words
        rest = f"one {other[0]}" if other else "the cheapest"
        return in_speech(
            f"{self.type}: the one {first} if it costs {money(self.limit)} or less, otherwise {rest}"
        )

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "If":
        words = tuple(filter(None, (said["first"], said["other"])))
        return cls(said["type"], "", "", read_money(said["limit"]), None, words)


@dataclass(frozen=True)
class Demand(Wish):
    """A wish for a slot of something that is described elsewhere, in a sentence of its own."""

    slot: str
    value: Any
    """Of, OneOf, AnyBut or If; once worked out, the value of a reference alone."""
    words: str = field(default="", compare=False)
    """Phrase after a noun, which follows from the rest."""
    pattern = f"(?P<words>{NAME.pattern})"

    @property
    def step(self) -> str:
        return "joint" if isinstance(self.value, Of) else "logic"

    def without(self, name: str) -> dict[str, Any]:
        return (
            {name: replace(self, value=OneOf(self.value.values[:1]))} if isinstance(self.value, OneOf) else {}
        )

    def say(self) -> str:
        return self.words

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Demand":
        return cls("", None, said["words"])


_PHRASE = r"(?:[^.;!?\n]|\.(?=\S))+?"
_STEP = r"the one that I looked at right (?:after|before) "


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

    pattern = (
        rf"(?P<steps>(?:{_STEP})*)the (?P<pick>cheapest|most expensive) of the (?P<among>{_PHRASE}) that I looked at"
        rf"|(?P<walk>(?:{_STEP})+)the (?P<thing>{_PHRASE})(?=$|[.;!?\n](?:\s|$))"
    )

    step = "reference"

    def say(self) -> str:
        thing = f"{self.pick} of the {self.words} that I looked at" if self.pick else self.words
        walk = "after" if self.steps > 0 else "before"
        return f"the one that I looked at right {walk} " * abs(self.steps) + f"the {thing}"

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Visited":
        walk, pick = said["steps"] or said["walk"], said["pick"]
        steps = walk.count(" right after ") - walk.count(" right before ")
        return cls((), pick, steps, said["among"] or said["thing"])  # type: ignore[arg-type]


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
    """Return slots as somebody reads them who cannot take these kinds of steps."""
    kept: dict[str, Any] = {}
    for name, value in slots.items():
        kept |= value.without(name) if isinstance(value, Wish) and value.step in lacks else {name: value}
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


NO_MORE = re.compile(rf"the ({_PHRASE}) that I looked at")
"""Words of a limit that another thing's price sets."""
