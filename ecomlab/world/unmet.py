"""Demands that no product meets together, and the products that come nearest to all of them.

Each product breaks a set of demands, written as an integer with a bit for each. A set of demands cannot be met together
if every product breaks one of them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Constraint, Shop
from ecomlab.reward import Fault
from ecomlab.slots import DAYS, PRICE, RATING
from ecomlab.task import Event, Goal, SellOut
from ecomlab.values import Format, joined
from ecomlab.wishes import Said
from ecomlab.world import ranking, reviews
from ecomlab.world.cart import constraints_of
from ecomlab.world.sell_outs import sold_rows
from ecomlab.world.state import World
from ecomlab.world.substitutes import NOUNS, noun

WORDS: Mapping[str, tuple[str, ...]] = {
    PRICE.name: ("price", "budget", "cost", "costs", "dollars", "money"),
    RATING.name: ("rating", "star", "stars", "review", "reviews"),
    DAYS.name: ("delivery", "days", "day", "shipping", "ship", "arrival"),
    "brand": ("brand", "maker", "make", "manufacturer"),
}
"""Words by which an answer may name a demand, beside its own name."""
_NOTHING = ("", "none", "nothing")
"""Names of no demand."""
_NAMES = {DAYS.name: "delivery time"}
"""Customers' words for demands whose plain name would sound odd."""
_SAID = {words: f"attr:{name}" for name, words in NOUNS.items()} | {
    words: name for name, words in _NAMES.items()
}
_SAID |= {name: name for name in (PRICE.name, RATING.name, "brand")}
_DEMAND = r"the [a-z][\w/-]*(?: [\w/-]+)*?"
_OR_ELSE = ", or else "


def _named(said: str) -> str:
    return _SAID.get(said[4:]) or f"attr:{said[4:].replace(' ', '_')}"


def _called(name: str) -> str:
    return f"the {_NAMES.get(name) or noun(name.removeprefix('attr:'))}"


GIVE_WAY = Format(
    lambda names: _OR_ELSE.join(map(_called, names)),
    rf"{_DEMAND}(?:{_OR_ELSE}{_DEMAND})*",
    lambda text: list(map(_named, text.split(_OR_ELSE))),
)
"""Names of demands, the one that gives way first: "the price, or else the color"."""


def can_be_named(name: str) -> bool:
    """Tell whether a demand's name can be said and read again."""
    return re.fullmatch(_DEMAND, _called(name)) is not None and _named(_called(name)) == name


@dataclass(frozen=True)
class Nearest:
    """What is left for a goal: the rows that meet all demands, or else all but the one that gives way."""

    goal: Goal
    """The goal without what gives way."""
    rows: np.ndarray
    dropped: str = ""
    """The demand that gives way; "" where something meets all, or where nothing that the customer named helps."""
    meeting: int = 0
    """Number of rows that meet it, whatever else they break."""
    asked: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    """Rows whose reviews decide; none where the customer does not go by reviews."""


def demands(goal: Goal) -> tuple[Constraint, ...]:
    """List the demands on a product of the goal's type."""
    return ranking.constraints(goal)[1:]


def broken(rows: np.ndarray, wanted: Sequence[Constraint], catalog: Catalog) -> np.ndarray:
    """Return the sets of demands that rows (ascending) break: int64 (rows,), bit n for number n of `wanted`."""
    sets = np.zeros(len(rows), np.int64)
    for number, one in enumerate(wanted):
        sets |= (~np.isin(rows, catalog.select((one,), rows), assume_unique=True)).astype(np.int64) << number
    return sets


def nearest(goal: Goal, rows: np.ndarray, catalog: Catalog) -> Nearest:
    """Find the rows, of those of the goal's type that can be bought, which meet all demands; where none does, all but
    the first in the customer's order that lets something through when it alone is given up."""
    wanted = demands(goal)
    fitting = catalog.select(wanted, rows)
    said: Said | None = goal.get("said")
    if said is not None:
        return by_reviews(Nearest(goal, fitting), said, catalog)
    for name in goal.get("give_way", ()) if not len(fitting) else ():
        others = goal.drop_slots(name)
        near = catalog.select(demands(others), rows)
        if len(near):
            meeting = catalog.select([one for one in wanted if one.field == name], rows)
            return Nearest(others, near, name, len(meeting))
    return Nearest(goal, fitting)


def by_reviews(left: Nearest, said: Said, catalog: Catalog) -> Nearest:
    """Keep of what is left for a goal what reviews say that of."""
    rows = reviews.kept(said, left.rows, catalog)
    return replace(left, rows=rows, asked=left.rows)


def nearest_in(goal: Goal, world: World) -> Nearest:
    """Find what is nearest to a goal as the world stands."""
    of_type = world.catalog.select(constraints_of(goal["type"], {}))
    return nearest(goal, world.in_stock(of_type), world.catalog)


def stages(goal: Goal, events: Sequence[Event], shop: Shop) -> list[Nearest]:
    """List what is nearest before, between and after the events, in any order of events; after all comes last."""

    def in_stock(some: Goal, shop: Shop) -> np.ndarray:
        return ranking.fitting(Goal.one({"type": some["type"]}), shop)

    worlds = ranking.worlds(goal, events, shop, in_stock)
    return [nearest(some, rows, shop.catalog) for some, rows in worlds]


def last_stage(goal: Goal, events: Sequence[Event], shop: Shop) -> Nearest:
    """Find what is nearest after all events: the last of the `stages`."""
    end, rows = goal.after(events), ranking.fitting(Goal.one({"type": goal["type"]}), shop)
    for event in events:
        if isinstance(event, SellOut):
            rows = rows[~np.isin(rows, sold_rows(event, shop.catalog))]
    return nearest(end, rows, shop.catalog)


def smallest(sets: Iterable[int]) -> list[int]:
    """List the smallest sets of demands that cannot be met together, those without a part that cannot, given the sets
    that products break; fewest demands first. None where a product breaks no demand."""
    distinct = set(sets)
    least = [one for one in distinct if not any(other != one and other & one == other for other in distinct)]
    bits = [1 << n for n in range(max(least, default=0).bit_length())]
    found: list[int] = []
    for size in range(1, len(bits) + 1):
        for chosen in combinations(bits, size):
            one = sum(chosen)
            if all(one & other for other in least) and not any(one & part == part for part in found):
                found.append(one)
    return found


def is_smallest(names: Sequence[str], goal: Goal, rows: np.ndarray, catalog: Catalog) -> bool:
    """Tell whether these demands cannot be met together by any of the rows, and any fewer of them can."""
    wanted = demands(goal)
    numbers = {one.field: number for number, one in enumerate(wanted)}
    if not names or len({*names}) != len(names) or not {*names} <= numbers.keys():
        return False
    sets, given = broken(rows, wanted, catalog), [1 << numbers[name] for name in names]
    return bool((sets & sum(given)).all()) and all(
        bool((sets & (sum(given) - one) == 0).any()) for one in given
    )


def fault_of(said: Sequence[str] | None, left: Nearest, goal: Goal, world: World) -> Fault | None:
    """Find why an answer's unmet demands are not right; None where they are: none where something meets all."""
    given = [one for one in said or () if _folded(one) not in _NOTHING]
    names = {one: named(one, goal) for one in given}
    unknown = [one for one, name in names.items() if name is None]
    if not left.dropped:
        words = "something meets all demands" if given else ""
    elif unknown:
        words = f"no demand of the customer is called {unknown[0]!r}"
    elif not given:
        words = "nothing meets all demands, and no reason was given"
    else:
        of_type = world.in_stock(world.catalog.select(constraints_of(goal["type"], {})))
        right = is_smallest([*{name for name in names.values() if name}], goal, of_type, world.catalog)
        words = "" if right else f"{joined(given)} are no smallest set of demands that cannot be met together"
    if not words:
        return None
    return Fault("wrong reason", "unmet", ",".join(given), ("give_way",), words=words, step="none")


def named(said: str, goal: Goal) -> str | None:
    """Find the demand of a goal that an answer means: "Price", "the colour", "delivery time", "rating >= 4.5"; None
    where none or several may be meant."""
    text = f" {_folded(said)} "
    found: dict[str, int] = {}
    for one in demands(goal):
        own = one.field.removeprefix("attr:")
        if text.strip() == _folded(own):
            return one.field
        value = (one.value,) if isinstance(one.value, str) else ()
        for word in (own, noun(own), *value, *WORDS.get(one.field, ())):
            if f" {_folded(word)} " in text:
                found[one.field] = max(found.get(one.field, 0), len(word))
    longest = [name for name, length in found.items() if length == max(found.values())]
    return longest[0] if len(longest) == 1 else None


def _folded(text: Any) -> str:
    words = re.sub(r"[^a-z0-9.]+", " ", str(text).lower()).strip()
    return re.sub(r"\bcolour", "color", words)
