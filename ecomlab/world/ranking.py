"""Products that satisfy a customer's constraints, ranked by an order of preferences or by what wishes are worth."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ecomlab import other_words
from ecomlab.catalog import Catalog, Constraint, Shop
from ecomlab.slots import LIMITS, PRICE, SlotType, declared, slot_type
from ecomlab.task import Event, Goal, GoalChange, SellOut
from ecomlab.values import FORMATS, in_speech, joined, money
from ecomlab.wishes import Wish
from ecomlab.world.cart import column_of, constraints_of, names_of, without_type
from ecomlab.world.sell_outs import sold_rows
from ecomlab.world.state import World


def constraints(goal: Goal) -> tuple[Constraint, ...]:
    """List the constraints that the goal puts on a product."""
    return constraints_of(goal["type"], without_type(goal.of()))


def fitting(goal: Goal, shop: Shop) -> np.ndarray:
    """Find the rows of a goal's type that are in stock and satisfy its constraints."""
    rows = shop.catalog.select(constraints(goal))
    return rows[shop.catalog.stock[rows] > 0]


def stages(
    goal: Goal,
    events: Sequence[Event],
    shop: Shop,
    find: Callable[[Goal, Shop], np.ndarray] = fitting,
) -> list[np.ndarray]:
    """List the rows that `find` finds before, between and after the events, in any order of events; those after all
    come last."""
    return [rows for _, rows in worlds(goal, events, shop, find)]


def worlds(
    goal: Goal, events: Sequence[Event], shop: Shop, find: Callable[[Goal, Shop], np.ndarray]
) -> list[tuple[Goal, np.ndarray]]:
    """List the goal beside the rows that `find` finds, for each of the `stages`."""
    goals, sold_out = [goal], [np.array([], int)]
    for event in events:
        if isinstance(event, GoalChange):
            goals.append(goal.apply(event))
        elif isinstance(event, SellOut):
            sold_out.append(sold_rows(event, shop.catalog))
    found = [(some, find(some, shop)) for some in goals]
    return [
        (some, rows[~np.isin(rows, gone)] if len(gone) else rows) for some, rows in found for gone in sold_out
    ]


SORTED = {limit.sort: limit for limit in LIMITS}
"""Slots by what a search sorts by and a customer calls a preference."""
Values = Callable[[Any], Any]
"""Looks up a limit's value of one product as an integer, or of several as an array (rows,) of int64; of a pair (slot,
value) 1 where a product has that value, else 0."""


def of_rows(rows: np.ndarray, catalog: Catalog) -> Values:
    """Look up values of rows."""

    def value(of: SlotType | tuple[str, str]) -> np.ndarray:
        if isinstance(of, SlotType):
            return catalog.column(of)[rows].astype(np.int64)
        names = names_of(catalog, of[0])
        code = names.index(of[1]) if of[1] in names else None
        return (column_of(catalog, of[0])[rows] == code).astype(np.int64)

    return value


def of_record(record: Mapping[str, Any]) -> Values:
    """Look up values of a record that a tool shows, as the catalog has them."""

    def value(of: SlotType | tuple[str, str]) -> int:
        if not isinstance(of, SlotType):
            slot, wanted = of
            return int(
                {**record["attributes"], "brand": record["brand"]}.get(slot[slot.find(":") + 1 :]) == wanted
            )
        shown = of.read_shown(record[of.shown])
        return int(of.missing or 0) if shown is None else shown

    return value


@dataclass(frozen=True)
class Lex(Wish):
    """An order of preferences: the first decides, then the next."""

    preferences: tuple[str, ...]
    step = ""

    def key(self, values: Values) -> Any:
        """Compute a number, the smaller the better."""
        key = 0 * values(PRICE)
        for limit in (SORTED[name] for name in self.preferences):
            room, value = _room(limit), values(limit)
            key = key * room + (
                value if limit.op == "<=" else room - 2 - value
            )  # the best is 0; missing is below
        return key

    def __str__(self) -> str:
        return ", then ".join(self.preferences)


MOST_A_DAY = 2_000
"""Most cents that people pay to have something a day sooner."""
_MORE = rf"(?:{FORMATS['money'].pattern}) more for "
VALUED = r"(?:[^.,;!?$\n]|[.,](?=\S))+?"
"""Pattern of the phrase of a value that is worth something."""
_TERM = rf"{_MORE}(?:each [a-z]+ [a-z]+|one {VALUED})"


@dataclass(frozen=True)
class Worth(Wish):
    """What a unit of other wishes is worth, and what certain values are: the lowest price counts after that is taken
    off, in proportion."""

    terms: tuple[tuple[str, int], ...]
    """(slot, cents a displayed unit) each: ("rating", 1000) for $10 a star. Cents are multiples of the slot's scale,
    so that keys are whole."""
    type: str = ""
    """Of a list, the part that it is about."""
    bonuses: tuple[tuple[str, str, int], ...] = ()
    """(slot, value, cents) each; while nobody has found out what the words mean, the slot is "" and they are the
    value."""
    words: tuple[str, ...] = field(default=(), compare=False)
    """Phrase of each of these values, which follows from it: "made of bamboo"."""
    step = "trade_off"
    slot = "worth"
    pattern = rf"(?P<terms>{_TERM}(?:(?:, | and ){_TERM})*)(?: on the (?P<type>[^.!?\n]+?))?"

    @property
    def items(self) -> tuple[str, ...]:
        return (self.type,)

    def key(self, values: Values) -> Any:
        """Compute a number of cents, the smaller the better."""
        key = values(PRICE)
        for limit, cents in self._limits:
            value = values(limit)
            key = key + cents // limit.scale * value * (value > 0) * (1 if limit.op == "<=" else -1)
        for slot, wanted, cents in self.bonuses:
            key = key - cents * values((slot, wanted))
        return key

    def others(self) -> list["Worth"]:
        """List other worths that a customer may have: one of the terms twice or half of it."""
        found = []
        for name in ("terms", "bonuses"):
            each = getattr(self, name)
            found += [
                replace(self, **{name: (*each[:n], (*what, other), *each[n + 1 :])})  # type: ignore[arg-type]
                for n, (*what, cents) in enumerate(each)
                for other in (2 * cents, cents // 200 * 100)
                if other
            ]
        return found

    @cached_property
    def most(self) -> int:
        """Cents that a key lies below the price at most."""
        units = sum(int(cents // one.scale * one.range[1]) for one, cents in self._limits if one.op == ">=")
        values: dict[str, int] = {}  # no product has two of one slot
        for slot, _, cents in self.bonuses:
            values[slot] = max(cents, values.get(slot, 0))
        return units + sum(values.values())

    @property
    def _limits(self) -> list[tuple[SlotType, int]]:
        return _limits_of(self.terms)

    @property
    def amounts(self) -> Sequence[int]:
        return [cents for _, cents in self.terms] + [cents for _, _, cents in self.bonuses]

    def say(self, write: Callable[[int], str] = money) -> str:
        terms = [f"{write(cents)} more for each {limit.gain}" for limit, cents in self._limits]
        terms += [
            f"{write(cents)} more for one {words}"
            for (*_, cents), words in zip(self.bonuses, self.words, strict=True)
        ]
        return joined(terms) + (f" on the {in_speech(self.type)}" if self.type else "")

    def say_otherwise(self) -> tuple[str, ...]:
        return tuple(self.say(lambda cents, n=n: other_words.dollars(cents)[n]) for n in range(2))  # type: ignore[misc]

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Worth":
        slots = {limit.gain: limit.name for limit in declared() if limit.gain}
        terms, bonuses = [], []
        for one in re.finditer(rf"{_TERM}(?=$|(?:, | and ){_MORE})", said["terms"]):
            cents, _, what = one[0].partition(" more for ")
            amount, (kind, _, words) = FORMATS["money"].read(cents), what.partition(" ")
            if kind == "one":
                bonuses.append(("", words, amount))
            elif words in slots:
                terms.append((slots[words], amount))
        return cls(tuple(terms), said["type"], tuple(bonuses), tuple(words for _, words, _ in bonuses))

    def __str__(self) -> str:
        said = [f"{money(cents)} for each {limit.gain}" for limit, cents in self._limits]
        said += [f"{money(cents)} for {value}" for _, value, cents in self.bonuses]
        return f"price minus {joined(said)}"


Rank = Lex | Worth


def rank_of(goal: Goal) -> Rank:
    """Return what a goal's products are ranked by."""
    worth: Worth | None = goal.get("worth")
    return worth or Lex(tuple(goal["importance"]))


def _room(limit: SlotType) -> int:
    """Return a number above all places of a limit's values, the best of which is 0."""
    return int(limit.range[1]) + 2 if math.isfinite(limit.range[1]) else 1 << (31 if limit is PRICE else 16)


def places(rows: np.ndarray, rank: Rank, catalog: Catalog) -> tuple[np.ndarray, np.ndarray]:
    """Order rows by their rank, and count how many come before each; equal rows share a rank. Ties go to the lower
    row."""
    keys = rank.key(of_rows(rows, catalog))
    order = np.lexsort((rows, keys))
    differs = keys[order][1:] != keys[order][:-1]
    return rows[order], np.maximum.accumulate(np.arange(len(rows)) * np.r_[True, differs][: len(rows)])


def share_met(row: int | None, goal: Goal, world: World) -> float:
    """Compute the share of the constraints that a product satisfies; 0 without a product."""
    if row is None:
        return 0.0
    wanted = constraints(goal)
    return sum(world.catalog.satisfies(row, (c,)) for c in wanted) / len(wanted)


def among_the_best(
    before: np.ndarray, after: np.ndarray, goal: Goal, changed: Goal, count: int, shop: Shop
) -> bool:
    """Tell whether the `count` best of `before` by the first goal are a right choice of `after` by the changed one."""
    best = ranked_first(before, goal, count, shop)
    ordered, order = places(after, rank_of(changed), shop.catalog)
    mine = np.isin(ordered, best)
    return int(mine.sum()) == count and not bool((~mine & (order < order[mine].max())).any())


def ranked_first(rows: np.ndarray, goal: Goal, count: int, shop: Shop) -> np.ndarray:
    """Return the first `count` of these rows by a goal's order of preferences."""
    return places(rows, rank_of(goal), shop.catalog)[0][:count]


@cache  # not kept in the wish, which is pickled
def _limits_of(terms: tuple[tuple[str, int], ...]) -> list[tuple[SlotType, int]]:
    return [(slot_type(name), cents) for name, cents in terms]
