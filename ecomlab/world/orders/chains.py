"""Chains: an order spoken of by others, as one noun phrase that leads from an order to the one that is meant.

A chain begins with an order that something names, the one with an item of a type, one by its price, one that was split
into two parcels, and counts on from there: so many orders before or after, with an item of a type or of any, or to the
one between two others. It is a step of thought in words: the customer says the phrase, and it is read back from it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from ecomlab.other_words import ONES, ORDINALS
from ecomlab.seeding import shuffled
from ecomlab.values import in_speech, with_article

Seen = Mapping[str, Any]
LEAD = 1.05
"""Least ratio between the prices of an order that its price singles out and of the next ones."""
MOST_COUNTED = 3
"""Most orders, of whatever content, that somebody counts on from another."""
MOST_LINKS = 2
"""Most phrases within each other; what is still larger counts further instead."""
MOST_SIZE = (MOST_LINKS + 1) * len(ORDINALS)
"""Size that no chain exceeds."""
_N = rf"(?P<n>{'|'.join(ORDINALS[1:])}) "

_BEGIN = re.compile(
    rf"\bthe (?:one (?:right|between|two|three)|first|last|cheapest|most expensive|{'|'.join(ORDINALS[1:])})\b",
    re.IGNORECASE,
)
_END = re.compile(r"[.,;:?!()]|\s(?:is that|isn't it)\b|\s(?:right|correct)(?! before| after)\b")
"""Where a chain may begin in a message, and what does not belong to it any more."""


@dataclass(frozen=True)
class Link:
    """A part of a chain: what it says, with the rest of the phrase after it."""

    kinds: ClassVar[tuple[type["Link"], ...]] = ()
    starts: ClassVar[bool] = False
    """It begins a chain: nothing follows."""
    pattern: ClassVar[re.Pattern[str]]

    def __init_subclass__(cls) -> None:
        Link.kinds = (*Link.kinds, cls)

    @property
    def size(self) -> int:
        return 1

    @property
    def words(self) -> str:
        raise NotImplementedError

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        """Find the order that it leads to, from the one at a place of the list, the newest first; None for none. What
        starts a chain is told no place."""
        raise NotImplementedError


@dataclass(frozen=True)
class With(Link):
    """The one order with an item of a type."""

    type: str
    starts = True
    pattern = re.compile(r"the one with the (?P<type>.+)")

    @property
    def size(self) -> int:
        return 0

    @property
    def words(self) -> str:
        return f"the one with the {self.type}"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        found = [i for i, order in enumerate(seen) if holds(order, self.type)]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Ranked(Link):
    """One of the latest orders, by what it cost."""

    way: Literal["most expensive", "cheapest"]
    n: int
    among: int
    starts = True
    pattern = re.compile(rf"the (?:{_N})?(?P<way>most expensive|cheapest) of my last (?P<among>\d+) orders")

    @property
    def size(self) -> int:
        return self.n

    @property
    def words(self) -> str:
        return f"the {_ordinal(self.n)}{self.way} of my last {self.among} orders"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        rows = self.rows(seen)
        return rows[self.n - 1] if rows and len(rows) >= self.n else None

    def rows(self, seen: Sequence[Seen], units: bool = True) -> list[int] | None:
        """Sort the orders among which it is by price; None where one is not known."""
        totals = [_total(order, units) for order in seen[: self.among]]
        known = [total for total in totals if total is not None]
        if len(known) < self.among:
            return None
        return sorted(range(len(known)), key=lambda i: known[i], reverse=self.way == "most expensive")

    def is_clear(self, seen: Sequence[Seen]) -> bool:
        """Tell whether its price leads by a margin, whichever way people add it up."""
        for units in (True, False):
            rows = self.rows(seen, units)
            if rows is None or rows[self.n - 1] != self.follow(0, seen):
                return False
            totals = [_total(seen[i], units) or 1 for i in rows[max(0, self.n - 2) : self.n + 1]]
            if any(max(a, b) / min(a, b) < LEAD for a, b in pairwise(totals)):
                return False
        return True


@dataclass(frozen=True)
class Split(Link):
    """The last or the first order that was split into two parcels."""

    which: Literal["last", "first"]
    starts = True
    pattern = re.compile(r"the (?P<which>last|first) one that was split into two parcels")

    @property
    def words(self) -> str:
        return f"the {self.which} one that was split into two parcels"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        found = [i for i, order in enumerate(seen) if order["parcels"] == 2]
        return (found[0] if self.which == "last" else found[-1]) if found else None


@dataclass(frozen=True)
class Between(Link):
    """The only order between one with an item of a type and another."""

    type: str
    pattern = re.compile(r"the one between the one with the (?P<type>.+?) and (?=the )")

    @property
    def size(self) -> int:
        return 2

    @property
    def words(self) -> str:
        return f"the one between the one with the {self.type} and"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        to = With(self.type).follow(0, seen)
        return (at + to) // 2 if to is not None and abs(at - to) == 2 else None


@dataclass(frozen=True)
class Typed(Link):
    """The n-th order with an item of a type, counted from another one."""

    n: int
    type: str
    way: Literal["before", "after"]
    pattern = re.compile(
        rf"the (?:(?:{_N}to )?last|first|(?P<m>{'|'.join(ORDINALS[1:])})) one with (?P<type>an? .+?) "
        r"(?P<way>before|after) (?=the )"
    )

    @property
    def size(self) -> int:
        return self.n

    @property
    def words(self) -> str:
        if self.way == "before":
            place = f"{ORDINALS[self.n - 1]} to last" if self.n > 1 else "last"
        else:
            place = ORDINALS[self.n - 1] or "first"
        return f"the {place} one with {with_article(self.type)} {self.way}"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        row = range(at - 1, -1, -1) if self.way == "after" else range(at + 1, len(seen))
        found = [i for i in row if holds(seen[i], self.type)]
        return found[self.n - 1] if len(found) >= self.n else None


@dataclass(frozen=True)
class Counted(Link):
    """The order so many before or after another one."""

    n: int
    way: Literal["before", "after"]
    pattern = re.compile(
        rf"the one (?:right|(?P<n>{'|'.join(ONES[1:MOST_COUNTED])}) orders) (?P<way>before|after) (?=the )"
    )

    @property
    def size(self) -> int:
        return self.n

    @property
    def words(self) -> str:
        return f"the one {'right' if self.n == 1 else f'{ONES[self.n - 1]} orders'} {self.way}"

    def follow(self, at: int, seen: Sequence[Seen]) -> int | None:
        to = at + self.n if self.way == "before" else at - self.n
        return to if 0 <= to < len(seen) else None


Chain = tuple[Link, ...]
"""Links, the last of which starts it."""


def say(chain: Chain) -> str:
    """Write a chain as a noun phrase."""
    return " ".join(link.words for link in chain)


@lru_cache(maxsize=1024)
def read_chain(text: str) -> Chain | None:
    """Read a noun phrase that `say` wrote; None for any other."""
    for kind in Link.kinds:
        match = kind.pattern.fullmatch(text) if kind.starts else kind.pattern.match(text)
        if match:
            link = _made(kind, match.groupdict())
            rest = () if kind.starts else read_chain(text[match.end() :].lstrip())
            if rest is not None:
                return (link, *rest)
    return None


def chain_in(text: str) -> str | None:
    """Find the first chain that an agent's message names, in the customer's words; None where it names none."""
    said = re.sub(r"\byour\b", "my", text)
    begin = _BEGIN.search(said)
    words = re.split(_END, said[begin.start() :])[0].strip() if begin else ""
    chain = read_chain(words) if words else None
    return say(chain) if chain else None


def _made(kind: type[Link], said: Mapping[str, str | None]) -> Link:
    words: dict[str, Any] = dict(said)
    place = words.pop("m", None) or words.get("n")
    if kind is Typed:
        # "second to last" is the second, "second" as well
        words["n"] = ORDINALS.index(place) + 1 if place else 1
        words["type"] = re.sub(r"^an? ", "", words["type"])
    elif kind is Ranked:
        words |= {"n": ORDINALS.index(place) + 1 if place else 1, "among": int(words["among"])}
    elif kind is Counted:
        words["n"] = ONES.index(place) + 1 if place else 1
    return kind(**words)


def follow(text: str, seen: Sequence[Seen]) -> int | None:
    """Find the order that a chain leads to, by its place in the list; None for none."""
    chain, at = read_chain(text), 0
    for link in reversed(chain or ()):
        to = link.follow(at, seen)
        if to is None:
            return None
        at = to
    return at if chain else None


def start_of(text: str) -> Link | None:
    """Find what a chain starts with."""
    chain = read_chain(text)
    return chain[-1] if chain else None


def first_met(text: str, seen: Sequence[Seen]) -> int | None:
    """Find the order that somebody takes who follows no link: the first one that what starts the chain may mean."""
    start = start_of(text)
    if isinstance(start, With):
        return start.follow(0, seen)
    if isinstance(start, Split):
        return next((i for i, order in enumerate(seen) if order["parcels"] in (2, None)), None)
    return 0


def draw_chain(target: int, seen: Sequence[Seen], size: int, random: np.random.Generator) -> str | None:
    """Draw a chain of a size that leads to an order, and to another one for who follows no link; None for none."""
    for chain in _chains(target, seen, size, MOST_LINKS, random):
        text = say(chain)
        if follow(text, seen) == target != first_met(text, seen):
            return text
    return None


def _chains(
    target: int, seen: Sequence[Seen], size: int, most: int, random: np.random.Generator
) -> Iterator[Chain]:
    """Yield chains of a size that lead to an order, in random order."""
    starts = [link for link in _starts(target, seen) if link.size == size]
    yield from ((link,) for link in shuffled(random, starts))
    if not most or not size:
        return
    found = [(link, at) for link, at in _links(target, seen) if link.size <= size]
    # What says more is drawn first as often as what says less.
    groups = [[one for one in found if type(one[0]) is kind] for kind in (Typed, Counted, Between)]
    for group in shuffled(random, [group for group in groups if group]):
        for link, at in shuffled(random, group)[:6]:
            for rest in _chains(at, seen, size - link.size, most - 1, random):
                if not (
                    type(link) is type(rest[0]) is Counted
                ):  # nobody says "right after the one right after"
                    yield (link, *rest)
                    break


def _starts(target: int, seen: Sequence[Seen]) -> Iterator[Link]:
    """Yield what may begin a chain at an order."""
    kinds = [in_speech(item["type"]) for item in seen[target]["items"]]
    yield from (With(kind) for kind in kinds if sum(holds(order, kind) for order in seen) == 1)
    splits = [i for i, order in enumerate(seen) if order["parcels"] == 2]
    if len(splits) > 1 and target in (splits[0], splits[-1]):
        yield Split("last" if target == splits[0] else "first")
    ways: tuple[Literal["most expensive", "cheapest"], ...] = ("most expensive", "cheapest")
    for among in range(max(4, target + 1), min(len(seen), 10) + 1):
        for way in ways:
            rows = Ranked(way, 1, among).rows(seen)
            place = rows.index(target) + 1 if rows else among
            link = Ranked(way, place, among)
            if place <= among // 2 and place <= len(ORDINALS) and link.is_clear(seen):
                yield link


def _links(target: int, seen: Sequence[Seen]) -> Iterator[tuple[Link, int]]:
    """Yield (link, the order from which it leads to this one)."""
    ways: tuple[tuple[Literal["before", "after"], int], ...] = (("before", -1), ("after", 1))
    for way, step in ways:
        for n in range(1, MOST_COUNTED + 1):
            if 0 <= target + step * n < len(seen):
                yield Counted(n, way), target + step * n
        for kind in dict.fromkeys(in_speech(item["type"]) for item in seen[target]["items"]):
            for at in range(target + step, len(seen) if step > 0 else -1, step):
                lo, hi = sorted((at, target))
                n = 1 + sum(holds(seen[i], kind) for i in range(lo + 1, hi))
                if hi - lo > n and n <= len(ORDINALS):  # else it is the one right before, or the n-th
                    yield Typed(n, kind, way), at
        side = target + step
        if 0 <= side < len(seen) and 0 <= target - step < len(seen):
            own = (With(in_speech(item["type"])) for item in seen[side]["items"])
            yield from ((Between(one.type), target - step) for one in own if one.follow(0, seen) == side)


def holds(order: Seen, kind: str) -> bool:
    """Tell whether an order has an item of a type, written in small letters or not."""
    return in_speech(kind) in [in_speech(item["type"]) for item in order["items"]]


def _ordinal(n: int) -> str:
    return f"{ORDINALS[n - 1]} " if n > 1 else ""


def _total(order: Seen, units: bool) -> int | None:
    prices = order.get("prices")
    if prices is None or None in prices:
        return None
    if not units:
        return sum(prices)
    return sum([price * item["quantity"] for price, item in zip(prices, order["items"], strict=True)])
