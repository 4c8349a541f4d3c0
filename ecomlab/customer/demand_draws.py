"""Drawing the steps of thought of a customer who misses something: which of the visits it was, told by another one, and
demands on its replacement that must be worked out.

Each is drawn so that it excludes some of the products that fit the rest, and leaves some.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer.choices import draw_worths
from ecomlab.customer.nlg import thing_phrase, wish_phrase
from ecomlab.customer.visits import exact_value
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import LIMITS, PRICE
from ecomlab.steps import draw_size
from ecomlab.task import Goal, Task
from ecomlab.wishes import AnyBut, Demand, If, Of, OneOf, Visited
from ecomlab.world.cart import column_of, constraints_of, names_of
from ecomlab.world.substitutes import demanded, original_of, similarity

LUCK = 0.1
"""Most chance with which somebody who lacks a step may still be right where it counts."""
FEW = 4
"""Most replacements that are wanted where something decides among equally similar ones."""
MOST = {"reference": 1, "joint": 2, "logic": 3, "trade_off": 1}
"""Most steps of a kind in one job: each is a demand of another form."""


@dataclass
class DemandDraws:
    """Draws of one customer who looked at these `visits`, the newest first."""

    visits: np.ndarray
    axes: Difficulty
    shop: Shop
    random: np.random.Generator
    least: int = 1
    """Products that each demand is to leave."""

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

    def worth(self, goal: Goal, rows: np.ndarray) -> dict[str, Any]:
        """Draw what decides among equally similar replacements, and how few of these rows are wanted; {} where there is
        no choice."""
        catalog, alike = self.shop.catalog, similarity(rows, goal, self.shop)
        order = np.sort(alike)[::-1]
        terms = [limit for limit in LIMITS if limit.gain and catalog.has(limit)]
        for count in shuffled(self.random, range(1, 1 + min(FEW, len(rows) - 1))):
            equal = rows[alike == order[count - 1]]
            most = goal.get(PRICE.name, int(catalog.price_cents[equal].max()))
            size = draw_size(self.axes, "trade_off", self.random)
            few = count - int((order > order[count - 1]).sum())
            for worth in draw_worths(equal, most, terms, size, few, catalog, self.random)[:1]:
                return {"worth": worth, "count": count}
        return {}

    def demand(self, step: str, goal: Goal, rows: np.ndarray) -> tuple[str, Any] | None:
        """Draw a demand that takes a step of this kind, as (slot, value), which some of the rows that fit a goal meet,
        and not all; None where there is none."""
        return _Demand(self, goal, rows).draw(step)


@dataclass
class _Demand:
    """The draw of one demand on the replacement of what a goal describes, among the rows that fit it."""

    draws: DemandDraws
    goal: Goal
    rows: np.ndarray

    def __post_init__(self) -> None:
        self.axes, self.shop, self.random = self.draws.axes, self.draws.shop, self.draws.random
        self.original = original_of(self.goal, self.shop)
        self.kind = self.shop.catalog.type_of(self.original)

    def draw(self, step: str) -> tuple[str, Any] | None:
        makers = {
            "joint": (self._matching, self._price_match),
            "logic": (self._choices, self._excluded, self._condition),
        }
        for maker in shuffled(self.random, makers.get(step, ()) if len(self.rows) else ()):
            made: tuple[str, Any] | None = maker()
            if made and made[0] not in self.goal:
                return made
        return None

    @cached_property
    def free(self) -> list[str]:
        """Slots on which there is no demand yet."""
        taken = {c.field for _, c in demanded(self.goal, self.shop)}
        taken |= {value.slot for value in self.goal.of().values() if isinstance(value, Demand)}
        names = ["brand", *(f"attr:{name}" for name in self.shop.catalog.attributes(self.original))]
        return [name for name in names if name not in taken]

    def _divides(self, slot: str, value: Any) -> bool:
        """Tell whether a demand leaves some of the rows, and not all."""
        meets = constraints_of(self.kind.name, {slot: value})[1:]
        return self.draws.least <= len(self.shop.catalog.select(meets, self.rows)) < len(self.rows)

    def _as_of(self, row: int, slot: str) -> Demand | None:
        """Demand what a visit has; None where few words do not tell which one is meant."""
        by = self.draws._alone(row, but=slot)
        if not by:
            return None
        wish = Of("visits", tuple(by.items()))
        return Demand(slot, wish, wish_phrase(self.kind.name, slot, wish, self.draws.lexicon))

    def _matching(self) -> tuple[str, Any] | None:
        """Let something be the same as of another thing that the customer looked at."""
        visits, catalog = self.draws.visits, self.shop.catalog
        others = [row for row in visits.tolist() if catalog.type_of(row).name != self.kind.name]
        for slot in shuffled(self.random, self.free):
            column = column_of(catalog, slot)
            codes, counts = np.unique(column[self.rows], return_counts=True)
            here = dict(zip(codes.tolist(), counts.tolist(), strict=True))
            for row in shuffled(self.random, others):
                code = column.item(row)
                some = code >= 0 and self.draws.least <= here.get(code, 0) < len(self.rows)
                if some and (demand := self._as_of(row, slot)):
                    return "matching", demand
        return None

    def _price_match(self) -> tuple[str, Any] | None:
        """Let it cost no more than another thing that the customer looked at."""
        prices, aim = self.shop.catalog.price_cents, self.random.uniform(0.5, 0.8)
        others = self.draws.visits[self.draws.visits != self.original]
        below = np.searchsorted(np.sort(prices[self.rows]), prices[others], "right") / len(self.rows)
        shares = dict(zip(others.tolist(), below.tolist(), strict=True))
        able = [
            row
            for row, share in shares.items()
            if self.draws.least <= share * len(self.rows) < len(self.rows)
        ]
        for row in sorted(able, key=lambda row: abs(shares[row] - aim)):
            if demand := self._as_of(row, PRICE.name):
                return "price_match", demand
        return None

    def _choices(self) -> tuple[str, Any] | None:
        """Name a few values of an attribute, any of which will do."""
        size = 1 + draw_size(self.axes, "logic", self.random)
        for one in shuffled(self.random, self.kind.attributes):
            slot = f"attr:{one.name}"
            if slot not in self.free or len(one.values) < 3:
                continue
            some = shuffled(self.random, one.values)[: min(size, len(one.values) - 1)]
            wish = OneOf(tuple(some))
            if self._divides(slot, wish):
                return "choices", Demand(slot, wish, self._words(slot, wish))
        return None

    def _excluded(self) -> tuple[str, Any] | None:
        """Exclude brands, or values of an attribute, that the most similar products have."""
        size = draw_size(self.axes, "logic", self.random)
        alike = self.rows[np.argsort(-similarity(self.rows, self.goal, self.shop), kind="stable")]
        for slot in shuffled(self.random, self.free):
            column = column_of(self.shop.catalog, slot)
            others = alike[(column[alike] >= 0) & (column[alike] != column[self.original])]
            names = names_of(self.shop.catalog, slot)
            held = [names[code] for code in dict.fromkeys(column[others].tolist())]
            wish = AnyBut(tuple(held[:size]))
            if held and self._divides(slot, wish):
                return "excluded", Demand(slot, wish, self._words(slot, OneOf(wish.values)))
        return None

    def _words(self, slot: str, wish: OneOf) -> str:
        return wish_phrase(self.kind.name, slot, wish, self.draws.lexicon)

    def _condition(self) -> tuple[str, Any] | None:
        """Let the price of one value decide between it and another; with either outcome."""
        prices, catalog, holds = self.shop.catalog.price_cents, self.shop.catalog, self.random.random() < 0.5
        for slot in shuffled(self.random, [name for name in self.free if name != "brand"]):
            column, names = column_of(catalog, slot)[self.rows], names_of(catalog, slot)
            codes = shuffled(self.random, [code for code in np.unique(column).tolist() if code >= 0])
            for first, other in pairwise(codes):
                costs = prices[self.rows[column == first]]
                dollars = pick(self.random, costs.tolist()) / 100 if holds else 0.95 * costs.min() / 100
                limit = 100 * (math.ceil(dollars) if holds else math.floor(dollars))
                left = (costs <= limit).sum() or (column == other).sum()
                if limit > 0 and (holds or not (costs <= limit).any()) and left >= self.draws.least:
                    said = [self._words(slot, OneOf((names[code],))) for code in (first, other)]
                    wish = If(self.kind.name, slot, names[first], limit, names[other], tuple(said))
                    return "if", Demand(slot, wish, wish.say())
        return None


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
