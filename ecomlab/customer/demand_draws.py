"""Drawing the steps of thought of a customer who misses something: which of the visits it was, told by another one, and
demands on its replacement that must be worked out.

Each is drawn so that it excludes some of the products that fit the rest, and leaves some.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import permutations
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.support import gains
from ecomlab.customer.choices import AMOUNTS, DEAREST, LEAD, draw_worths
from ecomlab.customer.nlg import thing_phrase, wish_phrase
from ecomlab.customer.visits import exact_value
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import DAYS, PRICE, RATING, SlotType
from ecomlab.steps import draw_size
from ecomlab.task import Goal, Task
from ecomlab.wishes import MOST_LINKS, AnyBut, Demand, If, Of, OneOf, Visited
from ecomlab.world.cart import column_of, constraints_of, names_of
from ecomlab.world.ranking import Worth
from ecomlab.world.substitutes import LIKENESS, demanded, original_of, rank_keys, similarity

LUCK = 0.1
"""Most chance with which somebody who lacks a step may still be right where it counts."""
FEW = 4
"""Most replacements that are wanted where worths decide."""
MATCHES: Mapping[str, SlotType] = {"price_match": PRICE, "stars_match": RATING, "days_match": DAYS}
"""Slots in which a replacement is no worse than another thing, each with the limit that this sets."""
MOST = {"reference": 1, "joint": 1 + len(MATCHES), "logic": 5, "trade_off": 1}
"""Most steps of a kind in one job: each is a demand of another form."""
BRANDED = 0.1
"""How often a demand may fix the brand, as far as it is to match."""


@dataclass
class DemandDraws:
    """Draws of one customer who looked at these `visits`, the newest first."""

    visits: np.ndarray
    axes: Difficulty
    shop: Shop
    random: np.random.Generator
    least: int = 1
    """Products that each demand is to leave."""
    holds: bool = True
    """Whether a condition does."""

    @property
    def lexicon(self) -> Lexicon:
        return lexicon_of(self.shop.catalog)

    def fitting(self, kind: str, by: dict[str, Any]) -> list[int]:
        """List the visits that slots describe."""
        return self.shop.catalog.select(constraints_of(kind, by), self.visits).tolist()

    def which(self, row: int) -> Visited | None:
        """Tell which of the visits a product was: by one looked at before or after it, or by its price among those like
        it."""
        size, at = draw_size(self.axes, "reference", self.random), self.visits.tolist().index(row)
        size = min(size, MOST_LINKS)
        found: list[Visited] = []
        for way in (1, -1):
            for steps, extreme in ((way * size, False), (way * (size - 1), True)):
                if not 0 <= at + steps < len(self.visits):
                    continue
                base = int(self.visits[at + steps])
                for chosen, by in self._extremes(base) if extreme else [("", self._alone(base))]:
                    if by:
                        words = thing_phrase(by, self.lexicon, several=bool(chosen))
                        found.append(Visited(tuple(by.items()), chosen, steps, words))  # type: ignore[arg-type]
        return pick(self.random, found) if found else None

    def _alone(self, row: int, but: str = "") -> dict[str, Any]:
        """Describe a visit in few words, so that no other fits: {} where these do not exist; `but` a slot."""
        kind = self.shop.catalog.type_of(row).name
        named = [name for name in ("brand", "feature") if name != but]
        for names in (*shuffled(self.random, [[name] for name in named]), named):
            by: dict[str, Any] = {
                "type": kind,
                **{name: exact_value(row, name, self.shop) for name in named if name in names},
            }
            if self.fitting(kind, by) == [row]:
                return by
        return {}

    def _extremes(self, row: int) -> list[tuple[str, dict[str, Any]]]:
        """List how a visit is the cheapest or the most expensive of several that a few words describe."""
        catalog = self.shop.catalog
        ways: list[dict[str, Any]] = [{}, {"brand": catalog.brand(row)}]
        ways += [{f"attr:{name}": value} for name, value in catalog.attributes(row).items()]
        found = []
        for way in ways:
            by = {"type": catalog.type_of(row).name, **way}
            prices = {one: catalog.price_cents.item(one) for one in self.fitting(by["type"], by)}
            own, others = prices[row], [price for one, price in prices.items() if one != row]
            found += [("cheapest", by)] if others and own < min(others) else []
            found += [("most expensive", by)] if others and own > max(others) else []
        return found

    def choice(self, goal: Goal, rows: np.ndarray, most: int, trades: bool) -> dict[str, Any]:
        """Draw how many of these rows are wanted, `most` at most, so that the last of them and the next differ in how
        similar they are, and the cheapest are not the best, as far as there are such; of a customer who `trades`, also
        what likeness and other wishes are worth, if the best lead then."""
        catalog, alike = self.shop.catalog, similarity(rows, goal, self.shop)
        order = np.sort(alike)[::-1]
        counts = shuffled(self.random, range(2, 1 + min(most, len(rows) - 1)))
        apart = [one for one in counts if order[one - 1] > order[one]]
        dearer = (one for one in apart if not takes_cheapest(-alike, catalog.price_cents[rows], one))
        count = next(dearer, apart[0] if apart else most)
        if not trades:
            return {"count": count}
        dearest = goal.get(PRICE.name, int(catalog.price_cents[rows].max()))
        size = draw_size(self.axes, "trade_off", self.random) - 1
        few = next((one for one in counts if one <= FEW), 0)
        worths = draw_worths(rows, dearest, gains(catalog), size, few, catalog, self.random) if size else []
        amounts = [100 * one for one in AMOUNTS if 100 * one <= DEAREST * dearest]
        for worth in (*worths, *[Worth(())] * len(amounts)) if amounts else ():
            worth = replace(worth, terms=((LIKENESS, pick(self.random, amounts)), *worth.terms))
            clear = are_clear(rows, goal.set_slots({"worth": worth}), self.shop)
            if able := [one for one in counts if one <= FEW and clear[one - 1]]:
                return {"worth": worth, "count": able[0]}
        return {"count": count}

    def demand(self, step: str, goal: Goal, rows: np.ndarray, share: float = 0.7) -> tuple[str, Any] | None:
        """Draw a demand that takes a step of this kind, as (slot, value), which about this share of the rows that fit a
        goal meet, and not all; None where there is none."""
        return _Demand(self, goal, rows, share).draw(step)


Option = tuple[int, Callable[[], Demand | None]]
"""A demand that may be drawn: how many rows it leaves, and what makes it, if words can say it."""


@dataclass
class _Demand:
    """The draw of one demand on the replacement of what a goal describes, among the rows that fit it."""

    draws: DemandDraws
    goal: Goal
    rows: np.ndarray
    share: float

    def __post_init__(self) -> None:
        self.axes, self.shop, self.random = self.draws.axes, self.draws.shop, self.draws.random
        self.original = original_of(self.goal, self.shop)
        self.kind = self.shop.catalog.type_of(self.original)

    def draw(self, step: str) -> tuple[str, Any] | None:
        options = {
            "joint": {"matching": self._matching, **dict.fromkeys(MATCHES, self._as_good)},
            "logic": {
                "choices": self._choices, "choices_too": self._choices, "excluded": self._excluded,
                "excluded_too": self._excluded, "if": self._conditions,
            },
        }.get(step, {})  # fmt: skip
        able = [name for name in options if name not in self.goal and len(self.rows)]
        able = [name for name in able if not (name.endswith("_too") and name[:-4] in able)]
        for name in shuffled(self.random, able):
            least = min(2, self.draws.least) if name == "if" else self.draws.least
            found = [one for one in options[name](name) if least <= one[0] < len(self.rows)]
            aim = self.share * len(self.rows)
            for _, make in sorted(shuffled(self.random, found), key=lambda one: abs(one[0] - aim)):
                if (demand := make()) is not None:
                    return name, demand
        return None

    @cached_property
    def free(self) -> list[str]:
        """Slots on which there is no demand yet."""
        taken = {c.field for _, c in demanded(self.goal, self.shop)}
        taken |= {value.slot for value in self.goal.of().values() if isinstance(value, Demand)}
        names = ["brand", *(f"attr:{name}" for name in self.shop.catalog.attributes(self.original))]
        return [name for name in names if name not in taken]

    @cached_property
    def attributes(self) -> list[str]:
        """Those of them that all products of the type have, and which are no brand."""
        span = self.shop.catalog.type_rows(self.kind.name)
        codes = {name: column_of(self.shop.catalog, name)[span.start : span.stop] for name in self.free}
        return [name for name in self.free if name != "brand" and (codes[name] >= 0).all()]

    def _as_of(self, row: int, slot: str) -> Demand | None:
        """Demand what a visit has; None where few words do not tell which one is meant."""
        by = self.draws._alone(row, but=slot)
        if not by:
            return None
        wish = Of("visits", tuple(by.items()))
        return Demand(slot, wish, wish_phrase(self.kind.name, slot, wish, self.draws.lexicon))

    def _matching(self, name: str) -> Iterator[Option]:
        """List how something may be the same as of another thing that the customer looked at, seldom the brand."""
        visits, catalog = self.draws.visits.tolist(), self.shop.catalog
        others = [row for row in visits if catalog.type_of(row).name != self.kind.name]
        slots = [slot for slot in self.free if slot != "brand" or self.random.random() < BRANDED]
        for slot in slots:
            column = column_of(catalog, slot)
            counts = np.bincount(column[self.rows] + 1, minlength=int(column.max()) + 2)
            for row in others:
                if column.item(row) >= 0:
                    yield int(counts[column.item(row) + 1]), partial(self._as_of, row, slot)

    def _as_good(self, name: str) -> Iterator[Option]:
        """List how it may be no worse in a limit than another thing that the customer looked at."""
        limit = MATCHES[name]
        if not self.shop.catalog.has(limit):
            return
        sign = 1 if limit.op == "<=" else -1
        column = sign * self.shop.catalog.column(limit).astype(np.int64)
        others = self.draws.visits[self.draws.visits != self.original]
        if limit is not DAYS:  # nobody compares the price or the stars of a cable with those of a phone
            span = self.shop.catalog.type_rows(self.kind.name)
            others = others[(span.start <= others) & (others < span.stop)]
        others = others[sign * column[others] != limit.missing]
        kept = np.searchsorted(np.sort(column[self.rows]), column[others], "right")
        for row, count in zip(others.tolist(), kept.tolist(), strict=True):
            yield count, partial(self._as_of, row, limit.name)

    def _choices(self, name: str) -> Iterator[Option]:
        """List a few values of each attribute, any of which will do."""
        size = 1 + draw_size(self.axes, "logic", self.random)
        for slot in self.attributes:
            values = next(one.values for one in self.kind.attributes if f"attr:{one.name}" == slot)
            for _ in range(3 if len(values) > 2 else 0):
                some = shuffled(self.random, values)[: min(size, len(values) - 1)]
                yield self._left(slot, OneOf(tuple(some))), partial(self._demand, slot, OneOf(tuple(some)))

    def _excluded(self, name: str) -> Iterator[Option]:
        """List brands, or values of an attribute, that the most similar products have, and which are excluded."""
        size = draw_size(self.axes, "logic", self.random)
        alike = self.rows[np.argsort(-similarity(self.rows, self.goal, self.shop), kind="stable")]
        for slot in [*self.attributes, *({"brand"} & {*self.free})]:
            column = column_of(self.shop.catalog, slot)
            others = alike[(column[alike] >= 0) & (column[alike] != column[self.original])]
            names = names_of(self.shop.catalog, slot)
            held = [names[code] for code in dict.fromkeys(column[others].tolist())]
            for few in range(1, min(size, len(held)) + 1):
                wish = AnyBut(tuple(held[:few]))
                yield self._left(slot, wish), partial(self._demand, slot, wish)

    def _left(self, slot: str, wish: Any) -> int:
        meets = constraints_of(self.kind.name, {slot: wish})[1:]
        return len(self.shop.catalog.select(meets, self.rows))

    def _demand(self, slot: str, wish: Any) -> Demand:
        return Demand(slot, wish, self._words(slot, OneOf(wish.values)))

    def _words(self, slot: str, wish: OneOf) -> str:
        return wish_phrase(self.kind.name, slot, wish, self.draws.lexicon)

    def _conditions(self, name: str) -> Iterator[Option]:
        """List how the price of one value may decide between it and another; with either outcome. Where it holds, the
        most similar ones with the value are within the limit: it is the same whichever of these is meant."""
        prices, holds = self.shop.catalog.price_cents, self.draws.holds
        alike = similarity(self.rows, self.goal, self.shop)
        for slot in self.attributes:
            column, values = column_of(self.shop.catalog, slot)[self.rows], names_of(self.shop.catalog, slot)
            best = column[alike == alike.max()]
            for first, other in permutations(np.unique(column).tolist(), 2):
                mine, costs = column == first, prices[self.rows[column == first]]
                edge = prices[self.rows[mine & (alike == alike[mine].max())]].max()
                high = pick(self.random, costs[costs >= edge].tolist()) if holds else 0.95 * costs.min()
                limit = 100 * (math.ceil(high / 100) if holds else math.floor(high / 100))
                branch = np.flatnonzero(mine & (prices[self.rows] <= limit) if holds else column == other)
                matters = (best == (first if holds else other)).mean() < 0.5  # who ignores it goes wrong
                matters = matters and not takes_cheapest(-alike[branch], prices[self.rows[branch]], 1)
                if limit > 0 and matters and (holds or not (costs <= limit).any()):
                    yield len(branch), partial(self._condition, slot, values[first], values[other], limit)

    def _condition(self, slot: str, first: str, other: str, limit: int) -> Demand:
        said = tuple(self._words(slot, OneOf((value,))) for value in (first, other))
        wish = If(self.kind.name, slot, first, limit, other, said)
        return Demand(slot, wish, wish.say())


def takes_cheapest(keys: np.ndarray, prices: np.ndarray, count: int) -> bool:
    """Tell whether the `count` cheapest are among the best by keys, the smaller the better."""
    cheapest = np.argsort(prices, kind="stable")[:count]
    return bool((keys[cheapest] <= np.sort(keys)[min(count, len(keys)) - 1]).all())


def are_clear(rows: np.ndarray, goal: Goal, shop: Shop) -> np.ndarray:
    """Tell, for each number of these rows from one to all but one, whether as many best lead the others where worths
    decide, and are neither the cheapest nor the most similar."""
    keys, alike = rank_keys(rows, goal, shop), similarity(rows, goal, shop)
    order = np.argsort(keys, kind="stable")
    keys, alike, prices = keys[order], alike[order], shop.catalog.price_cents[rows[order]]
    dearest, cheapest = np.maximum.accumulate(prices)[:-1], np.minimum.accumulate(prices[::-1])[::-1][1:]
    least, most = np.minimum.accumulate(alike)[:-1], np.maximum.accumulate(alike[::-1])[::-1][1:]
    clear = (np.diff(keys) > LEAD * np.ptp(keys)) & (dearest > cheapest) & (least < most)
    return np.asarray(clear)


def other_demands(name: str, goal: Goal, known: Goal, rows: np.ndarray, task: Task, shop: Shop) -> list[Any]:
    """List other values that a demand of a task may have; `known` is the goal without it, which these `rows` meet."""
    visits, values = shop.catalog.rows_of(task.world["visits"]), []
    for at in range(8):
        draws = DemandDraws(visits, task.axes, shop, rng("others", name, at, *task.key))
        slot, value = draws.demand(goal[name].step, known, rows) or ("", None)
        if slot == name and value != goal[name] and value not in values:
            values.append(value)
    return values


def chance_right(taken: np.ndarray, alike: np.ndarray, right: np.ndarray, best: int, count: int) -> float:
    """Compute the chance that the `count` most alike of the rows `taken`, ties broken at random, are a right choice: as
    many as there can be of the rows `right`, of which `best` is the number."""
    size = min(count, len(taken))
    if size != best or not size:
        return 0.0
    order = np.argsort(-alike, kind="stable")
    cut = alike[order[size - 1]]
    sure, tied = taken[alike > cut], taken[alike == cut]
    if not np.isin(sure, right).all():
        return 0.0
    k = size - len(sure)
    return math.comb(int(np.isin(tied, right).sum()), k) / math.comb(len(tied), k)
