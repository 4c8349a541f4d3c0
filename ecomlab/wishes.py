"""Wishes as expressions: the value of a slot may depend on what tools show.

The value of a slot is what was said, or a wish: a frozen expression that takes a step of thought. A wish says itself in
words and is read back from them; `ecomlab.world.plain` works out its value. Customers say the words, never the value.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

from ecomlab.other_words import ORDINALS
from ecomlab.suggest import unknown
from ecomlab.values import FORMATS, LOOKS, MONEY, NAME, Format, in_speech, money, read_money

T = TypeVar("T")
Where = Literal["visits", "items", "orders"]
"""Where the thing of a reference stands: among the products that the customer looked at, in the same order, or in an
earlier one."""


@dataclass(frozen=True)
class Wish:
    """A value that must be worked out."""

    kinds: ClassVar[dict[str, type["Wish"]]] = {}
    pattern: ClassVar[str] = ""
    """Pattern of its words, if it has a sentence of its own: a named group for each thing that it says."""

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    def __deepcopy__(self, memo: dict[int, Any]) -> "Wish":
        return self  # no wish changes

    @property
    def step(self) -> str:
        """Kind of step of thought that it takes."""
        raise NotImplementedError

    @property
    def said_values(self) -> tuple[Any, ...]:
        """Values that its words hold: a text with all of them says it again."""
        return ()

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
    """The value that the same slot has of another thing: of the one that `by` describes so that exactly one fits, or of
    a visit so many steps from that."""

    where: Where
    by: tuple[tuple[str, Any], ...]
    """Slots of the thing, its type first; of one ordered earlier the type and the month, as "03"."""
    steps: int = 0
    """How many visits later than the described one it was; below 0: earlier."""

    @property
    def step(self) -> str:
        return "joint" if self.where == "items" else "reference"

    @property
    def described(self) -> dict[str, Any]:
        """Slots of the thing by name."""
        return dict(self.by)

    @property
    def said_values(self) -> tuple[Any, ...]:
        return ("same", *self.described.values())


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

    @property
    def said_values(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True)
class AnyBut(Wish):
    """Any value but these."""

    values: tuple[str, ...]
    step = "logic"

    def admits(self, value: str | None) -> bool:
        """Tell whether a value will do."""
        return value not in self.values

    @property
    def said_values(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True)
class Taste(Wish):
    """A value that the customer cannot name and knows when they see it: any of those that they like."""

    values: tuple[str, ...] = field(default=(), compare=False)
    """Those that they like, which no words tell."""

    step = "taste"

    @property
    def said_values(self) -> tuple[Any, ...]:
        return ("to see first",)


@dataclass(frozen=True)
class Earlier(Wish):
    """An amount that stands on the right outcomes of earlier jobs of a journey: the sum of these, each as often as it
    says, and of `plus`. Where there is no such outcome, it is `other`: what goes back no longer pays nothing."""

    terms: tuple[tuple[str, int], ...]
    """Names of outcomes, as in `OUTCOMES`, each with the number of times that it counts."""
    plus: int
    """In the unit of the slot."""
    other: int | None = None
    value: int | None = field(default=None, compare=False)
    """What it comes to, which no customer says and no words tell."""

    step = "chain"

    def of(self, outcomes: Mapping[str, int | None]) -> int | None:
        """Work out the amount from outcomes; None where one is not known at all."""
        if any(name not in outcomes for name, _ in self.terms):
            return None
        known = [(outcomes[name], times) for name, times in self.terms]
        if any(outcome is None for outcome, _ in known):
            return self.other
        return self.plus + sum(times * outcome for outcome, times in known if outcome is not None)


_DAYS = r"\d+ days?"
OUTCOMES: Mapping[str, str] = {
    "refund": "what I get back for my return",
    "answer": "the charge that I asked about",
    "arrival": "the last parcel of the order I asked about",
}
"""What an earlier job comes to, in cents or, of an arrival, in days from today, as the customer says it."""
ELSE: Mapping[str, str] = {"refund": "if it can't go back", "arrival": "if that is here already"}
"""When there is no such outcome."""
_BASE = "|".join(words for name, words in OUTCOMES.items() if name != "arrival")
AMOUNT = (
    rf"(?:{MONEY.pattern} (?:on top of|minus) )?(?:twice )?(?:{_BASE})(?: minus (?:{_BASE}|{MONEY.pattern}))*"
    rf"(?:,? or {MONEY.pattern} {ELSE['refund']})?"
)
"""Words of an amount of money that stands on earlier jobs."""
DELIVERY = rf"(?:{_DAYS} (?:before|after) )?{OUTCOMES['arrival']}(?:,? or within {_DAYS} {ELSE['arrival']})?"
"""Words of a last day that does."""


def amount_words(wish: Earlier) -> str:
    """Word an amount of money that stands on earlier jobs."""
    (first, times), *others = wish.terms
    sign = "on top of" if times > 0 else "minus"
    before = f"{money(wish.plus)} {sign} " if wish.plus > 0 else ""
    text = before + "twice " * (times == 2) + OUTCOMES[first]
    text += "".join(f" minus {OUTCOMES[name]}" for name, _ in others)
    text += f" minus {money(-wish.plus)}" if wish.plus < 0 else ""
    return text if wish.other is None else f"{text}, or {money(wish.other)} {ELSE['refund']}"


def read_amount(text: str) -> Earlier:
    """Read the words of an amount of money that stands on earlier jobs."""
    names, terms, plus = {words: name for name, words in OUTCOMES.items()}, dict[str, int](), 0
    sums, _, rest = text.partition(" or ")
    for less, twice, what in re.findall(rf"(minus )?(twice )?({_BASE}|{MONEY.pattern})", sums):
        times = (-1 if less else 1) * (2 if twice else 1)
        if what in names:
            terms[names[what]] = times
        else:
            plus = times * read_money(what)
    other = re.search(MONEY.pattern, rest)
    return Earlier(tuple(terms.items()), plus, read_money(other.group()) if other else None)


def delivery_words(wish: Earlier) -> str:
    """Word a last day that stands on an earlier job, after "no later than"."""

    def days(count: int) -> str:
        return f"{count} day" + "s" * (count != 1)

    shift = f"{days(abs(wish.plus))} {'after' if wish.plus > 0 else 'before'} " if wish.plus else ""
    rest = "" if wish.other is None else f", or within {days(wish.other)} {ELSE['arrival']}"
    return shift + OUTCOMES["arrival"] + rest


def read_delivery(text: str) -> Earlier:
    """Read the words of a last day that stands on an earlier job."""
    shift, within = re.match(r"(\d+) days? (before|after)", text), re.search(r"or within (\d+) day", text)
    plus = int(shift[1]) * (1 if shift[2] == "after" else -1) if shift else 0
    return Earlier((("arrival", 1),), plus, int(within[1]) if within else None)


def at_most(limit: Any) -> str:
    """Word a limit in cents, whether it is said or stands on earlier jobs."""
    if isinstance(limit, Earlier):
        return f"no more than {amount_words(limit)}"
    return f"{money(limit)} or less"


_SAID = FORMATS["money"]
_AMOUNT = re.compile(AMOUNT, re.IGNORECASE)
AMOUNT_FORMAT = Format(
    lambda value: amount_words(value) if isinstance(value, Earlier) else money(value),
    f"{AMOUNT}|{_SAID.pattern}",
    lambda text: read_amount(text) if _AMOUNT.fullmatch(text) else _SAID.read(text),
    lambda value: () if isinstance(value, Earlier) else _SAID.others(value),
)
"""Cents, said or standing on earlier jobs."""
AT_MOST = rf"(?:{MONEY.pattern} or less|no more than (?:{AMOUNT}|{MONEY.pattern}))"
"""Words of a limit in cents."""


def read_at_most(text: str) -> Any:
    """Read the words of a limit in cents."""
    amount = text.removeprefix("no more than ").removesuffix(" or less")
    return read_money(amount) if re.fullmatch(MONEY.pattern, amount) else read_amount(amount)


@dataclass(frozen=True)
class If(Wish):
    """The first value of a slot if a product with it is to be had within a limit, else the second, at any price.

    With `other` None it is otherwise the cheapest one, whatever its value. The limit's sentence has the words of the
    values, so that it can be written without the shop's vocabulary.
    """

    type: str
    slot: str
    first: str
    limit: Any
    """Cents, or an `Earlier` amount."""
    other: str | None
    words: tuple[str, ...] = field(default=(), compare=False)
    """Phrases of both values: "in Black"; they follow from the values."""
    pattern = (
        rf"(?P<type>[^:.]+): one (?P<first>.+?) if there is any for (?P<limit>{AT_MOST}), "
        r"otherwise (?:whichever is cheapest|one (?P<other>(?:[^.]|\.\d)+))"
    )

    step = "logic"

    def without(self, name: str) -> dict[str, Any]:
        return {self.slot: self.first}

    def say(self) -> str:
        first, *other = self.words
        rest = f"one {other[0]}" if other else "whichever is cheapest"
        return in_speech(
            f"{self.type}: one {first} if there is any for {at_most(self.limit)}, otherwise {rest}"
        )

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "If":
        words = tuple(filter(None, (said["first"], said["other"])))
        return cls(said["type"], "", "", read_at_most(said["limit"]), None, words)

    @property
    def said_values(self) -> tuple[Any, ...]:
        return (self.first, self.limit, self.other or "cheapest")


@dataclass(frozen=True)
class Packs(Wish):
    """As many packs as hold a number of single things; how many one holds, the product's size of a pack says."""

    count: int
    step = "logic"

    def without(self, name: str) -> dict[str, Any]:
        return {name: self.count}

    @property
    def said_values(self) -> tuple[Any, ...]:
        return ("enough", str(self.count))

    def units(self, pack: str) -> int:
        """Count the packs of this size: "6-Pack"."""
        return math.ceil(self.count / pack_size(pack))


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

    @property
    def said_values(self) -> tuple[Any, ...]:
        return self.value.said_values if isinstance(self.value, Wish) else ()

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
_STEP = rf"the (?:(?:{'|'.join(ORDINALS[1:])}) )?thing that I looked at (?:right )?(?:after|before) "


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
        rf"(?P<steps>(?:{_STEP})?)the (?P<pick>cheapest|most expensive) of the (?P<among>{_PHRASE}) that I looked at"
        rf"|(?P<walk>{_STEP})the (?P<thing>{_PHRASE})(?=$|[.;!?\n](?:\s|$))"
    )

    step = "reference"

    def say(self) -> str:
        thing = f"{self.pick} of the {self.words} that I looked at" if self.pick else self.words
        far, way = abs(self.steps), "after" if self.steps > 0 else "before"
        walk = f"the {_nth(far)}thing that I looked at {'right ' * (far == 1)}{way} " if far else ""
        return f"{walk}the {thing}"

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Visited":
        walk, pick = said["steps"] or said["walk"], said["pick"]
        far = next((n for n, word in enumerate(ORDINALS, 1) if walk.startswith(f"the {word} thing")), 1)
        steps = (far if " after " in walk else -far) if walk else 0
        return cls((), pick, steps, said["among"] or said["thing"])  # type: ignore[arg-type]

    @property
    def said_values(self) -> tuple[Any, ...]:
        return tuple(value for _, value in self.by)


def is_chained(value: Any) -> bool:
    """Tell whether a value is an amount that stands on earlier jobs, or a wish with one inside."""
    if not isinstance(value, Wish):
        return False
    return isinstance(value, Earlier) or any(is_chained(getattr(value, one.name)) for one in fields(value))


def settled(value: Any, amount: Callable[[Earlier], Any]) -> Any:
    """Put amounts in the place of those that stand on earlier jobs, inside other wishes too."""
    if isinstance(value, Earlier):
        return amount(value)
    if not is_chained(value):
        return value
    return replace(value, **{one.name: settled(getattr(value, one.name), amount) for one in fields(value)})


@dataclass(frozen=True)
class Said(Wish):
    """What the reviews of a product must say. `ecomlab.world.reviews` has its words and evaluates it."""

    claims: tuple[tuple[str, str, str], ...]
    """(topic, verdict, by) each: of the reviewers that the customer goes by ("all", "verified", "recent") more say the
    good verdict on the topic than any other, or none says this bad one."""
    step = "evidence"

    def others(self) -> list["Said"]:
        """List what the customer may demand of other reviewers instead."""
        (topic, verdict, by), *rest = self.claims
        return [
            Said(((topic, verdict, other), *rest)) for other in ("all", "verified", "recent") if other != by
        ]

    def fewer(self) -> list["Said"]:
        """List what they demand who do not care for one of the claims."""
        return [Said((*self.claims[:n], *self.claims[n + 1 :])) for n in range(len(self.claims))]


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
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if not isinstance(value, Wish):
        return value
    return {"wish": type(value).__name__, **{f.name: _listed(getattr(value, f.name)) for f in fields(value)}}


def from_json(value: Any) -> Any:
    """Read what `to_json` wrote. Raises ValueError for a class that does not exist."""
    if isinstance(value, list):
        return [from_json(each) for each in value]
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

_TAILS: Mapping[Where, str] = {"visits": "I looked at", "items": "of this order", "orders": "I ordered in"}
SAME = re.compile(
    rf"with the same (?P<noun>[a-z][a-z ]*?) as the "
    rf"(?:(?:(?P<nth>{'|'.join(ORDINALS[1:])}) )?thing I saw (?:right )?(?P<way>after|before) the )?"
    rf"(?P<thing>[^.;!?\n]+?) (?P<tail>{'|'.join(_TAILS.values())})\b"
    r"(?P<when>(?<=ordered in) [A-Z][a-z]+)?"
)
"""Phrase of a reference."""
MOST_LINKS = len(ORDINALS)
"""Most steps from one visit to another."""


def _nth(far: int) -> str:
    return f"{ORDINALS[far - 1]} " if far > 1 else ""


def of_phrase(noun: str, thing: str, wish: Of, month: str = "") -> str:
    """Word a reference after an item's noun; `thing` is without an article, `month` is that of an earlier order."""
    way, far = "after" if wish.steps > 0 else "before", abs(wish.steps)
    link = f"{_nth(far)}thing I saw {'right ' * (far == 1)}{way} the " if far else ""
    return f"with the same {noun} as the {link}{thing} {_TAILS[wish.where]} {month}".rstrip()


def steps_of(match: re.Match[str]) -> int:
    """Read how many visits a reference's thing is from the one that its words describe."""
    far = ORDINALS.index(match["nth"]) + 1 if match["nth"] else int(match["way"] is not None)
    return far if match["way"] == "after" else -far


def where_of(tail: str) -> Where:
    """Find where the thing of a reference stands, by the last words of its phrase."""
    return next(where for where, words in _TAILS.items() if words == tail)


PACKS = re.compile(r"in enough packs to have (\d+) of them")
"""Phrase of a number of single things."""


def packs_phrase(wish: Packs) -> str:
    """Word a number of single things after an item's noun."""
    return f"in enough packs to have {wish.count} of them"


SEEN_FIRST = re.compile(rf"in a (?P<noun>{'|'.join(LOOKS)}) that I'd have to see first")
"""Phrase of a value that the customer cannot name."""
SHOWINGS = 2
"""Times that a customer looks at what they are shown of an item."""
MOST_SHOWN = 3
"""Most products of a showing."""


def taste_phrase(noun: str) -> str:
    """Word a value that the customer cannot name after an item's noun."""
    return f"in a {noun} that I'd have to see first"


def pack_size(pack: str) -> int:
    """Read how many single things a pack holds: 6 of "6-Pack"; 1 where it does not say."""
    digits = re.match(r"\d+", pack)
    return int(digits[0]) if digits else 1


def or_list(values: tuple[str, ...]) -> str:
    """Join values by "or"."""
    return " or ".join(values)


NO_MORE = re.compile(rf"the ({_PHRASE}) that I looked at")
"""Words of a limit that another thing's price sets."""
