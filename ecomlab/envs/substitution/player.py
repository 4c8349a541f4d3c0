"""The player of SUB: finds the product that the customer looked at, then those most similar to it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ecomlab.catalog import ProductType, Shop
from ecomlab.customer.demand_draws import MATCHES
from ecomlab.customer.demands import identity
from ecomlab.customer.visits import CLUSTER
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import LIMITS, PRICE, RATING, slot_type
from ecomlab.steps import CALLS_A_STEP
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.wishes import AnyBut, Demand, If, Of, OneOf, Visited, visit_of
from ecomlab.world.cart import constraints_of
from ecomlab.world.ranking import of_record
from ecomlab.world.state import PAGE
from ecomlab.world.substitutes import are_close, beside_likeness, hard_names, original_of

LOOKED = frozenset(name for name, limit in MATCHES.items() if limit is not PRICE)
"""Demands for which another visit must be looked at: the history does not show its stars or days."""


class SubstitutionPlayer(GoalPlayer):
    """Finds the sold-out product among the visits, lists all that can replace it, and takes the most similar."""

    visits: list[dict[str, Any]] | None = None
    """All visits, the newest first, or those of the type where no other is spoken of."""
    whole = False
    """True once these are all."""
    looked: dict[str, dict[str, Any]]

    @staticmethod
    def most_calls(axes: Difficulty) -> int:
        """Count the searches that list what can replace a product; a task that takes more is drawn again."""
        return 8 + CALLS_A_STEP * math.ceil(axes.steps.mean)

    @staticmethod
    def steps(goal: Goal, rows: np.ndarray, top_k: int, shop: Shop) -> tuple[int, int] | None:
        """Count (turns, calls) of the search alone, which a change starts again, among the `rows` that fit all but
        conditions and excluded brands; None where no search lists all that it finds."""
        catalog, wanted = shop.catalog, demands_in(goal.of())
        condition = goal["if"].value if "if" in goal else None
        first = {} if condition is None else {condition.slot: condition.first, PRICE.name: condition.limit}
        found = [
            len(catalog.select(constraints_of(goal["type"], branch | fixed), rows))
            for branch in (first, *([{condition.slot: condition.other}] if condition else ()))
            for fixed in split(catalog.type_of(original_of(goal, shop)), wanted)
        ]
        if max(found) > top_k:
            return None
        pages = [max(1, math.ceil(count / PAGE)) for count in found]
        return (1 + (max(pages) > 1)) * (1 + (condition is not None)), sum(pages)

    @classmethod
    def need(cls, goal: Goal, visits: Sequence[str], shop: Shop, turns: int, calls: int) -> Need:
        """Count the steps to the best replacements: visits, a look at those that fit, the search, submit."""
        was = identity(goal.of())
        looks = sum(titled(shop.catalog.title(shop.catalog.row(visit) or 0), was) for visit in visits)
        looks = len(LOOKED & goal.of().keys()) + (1 if "which" in goal else looks)
        return Need(3 + turns, 1 + looks + calls)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any replacements; a rush and a change of mind each start the search again, which takes
        twice the turns where a condition may have two branches."""
        calls, thought = SubstitutionPlayer.most_calls(axes), axes.steps.mean > 0
        turns = 4 if thought and axes.steps.logic > 0 else 2
        events = ((axes.p_oos, turns, calls), (axes.p_switch, turns, calls))
        work = Need(3 + turns, 1 + CLUSTER + len(LOOKED) * thought + calls)
        slots = len(LIMITS[: axes.constraints - 1]) + 3 + math.ceil(axes.steps.mean)
        return budget(work, slots, axes, *events)

    @staticmethod
    def first_guess(goal: Goal, visits: Sequence[str], gone: Sequence[str], shop: Shop) -> str:
        """Find what a player without references takes for the sold-out product."""
        catalog = shop.catalog
        wanted = constraints_of(goal["type"], identity(goal.of()))
        able = [one for one in visits if one in gone and catalog.satisfies(catalog.row(one) or 0, wanted)]
        return min(able, key=lambda one: catalog.title(catalog.row(one) or 0))

    def restart(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.pages: dict[Search, int] = {}
        """Pages of each search that has been made."""
        self.read: set[tuple[Search, int]] = set()
        """Pages that have been asked for."""
        self.branch: bool | None = False if "logic" in self.contrary else None
        """Whether a condition holds; None until it is known, or where there is none."""

    def _bound(self, slots: dict[Place, Any]) -> dict[Place, Any]:
        bound = super()._bound(slots)
        for (item, name), said in bound.items():
            if isinstance(said, Demand) and name in MATCHES:
                bound[item, name] = replace(said, slot=MATCHES[name].name)
            elif isinstance(said, Demand) and name.startswith("excluded") and isinstance(said.value, OneOf):
                bound[item, name] = replace(said, value=AnyBut(said.value.values))
        if isinstance(wish := slots.get((0, "if")), If):
            bound[0, "if"] = Demand(wish.slot, wish)
        return bound

    def work(self) -> Message:
        needs_all = any(isinstance(value, Visited | Demand) for value in self.known.values())
        if self.visits is None or (needs_all and not self.whole):
            self.visits, self.whole = None, needs_all
            self.looked = {}
            kind = None if needs_all else self.get("type")
            return self.turn(self.call("user_get_visit_history", "visits", category=kind))
        fitting = self._fitting()
        told = (self._told_of(self.get(name)) for name in sorted(LOOKED) if self.get(name) is not None)
        others = [visit["product_id"] for visit in told if visit is not None]
        new = [
            product_id for product_id in dict.fromkeys((*fitting, *others)) if product_id not in self.looked
        ]
        if new:
            self.looked |= {product_id: {} for product_id in new}
            return self.turn(
                *(self.call("catalog_get_product", "look", product_id=product_id) for product_id in new)
            )
        original = self._original(fitting)
        if original is None:
            return self.turn(self.call("submit", None, product_ids=[]))
        condition, count = self.get("if"), self.get("count", 3)
        tried = True if condition is not None and self.branch is None else self.branch
        wish = self._wish(original, tried)
        calls = self._unread(original["type"], wish, tried)
        usable = self._usable(original, wish)
        if calls:
            return self.turn(*calls)
        if condition is not None and self.branch is None:
            self.branch = bool(usable)
            return self.work()
        worth = self.get("worth")
        chosen = [pair for pair in usable if not self.slip()]
        if worth:
            found = {one: beside_likeness(alike, of_record(self.found[one])) for one, alike in chosen}
            chosen.sort(key=lambda pair: worth.key(found[pair[0]]))
        else:
            chosen.sort(key=lambda pair: -pair[1])
        ids = [product_id for product_id, _ in chosen]
        return self.turn(self.call("submit", None, product_ids=ids[:count]))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "visits":
            self.visits = result.get("visits", [])
        elif about == "look" and "product" in result:
            self.looked[result["product"]["product_id"]] = result["product"]
        elif "results" in result and isinstance(about, Search):
            self.pages[about] = result["pages"]
            self.found |= {record["product_id"]: record for record in result["results"]}

    def _was(self) -> dict[str, Any]:
        """Known slots of the sold-out product."""
        return identity({name: value for (_, name), value in self.known.items()})

    def _seen(self, wish: Visited) -> dict[str, Any] | None:
        return visit_of(wish, self.visits or [], self._described, lambda visit: float(visit["price"] or 0))

    def _described(self, visit: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
        """Tell whether a visit is of a type and has what describes it."""
        if not titled(visit["title"], by):
            return False
        words = visit["title"].split(" ")
        ends = [" ".join(words[at:]) for at in range(len(words))]  # the longest first
        kind = next((end for end in ends if end in self.lexicon.types), "")
        attributes = {name[5:]: value for name, value in by.items() if name.startswith("attr:")}
        return kind == by["type"] and all(
            visit["attributes"].get(name) == value for name, value in attributes.items()
        )

    def _fitting(self) -> list[str]:
        """List the visits that may be the sold-out product."""
        which = self.get("which")
        if which is not None and (visit := self._seen(which)) is not None:
            return [visit["product_id"]]
        visits = self.visits or []
        return [visit["product_id"] for visit in visits if titled(visit["title"], self._was())]

    def _original(self, fitting: Sequence[str]) -> dict[str, Any] | None:
        """Find the visit that fits everything said, preferably one that is sold out."""
        was = self._was()
        records = [self.looked[product_id] for product_id in fitting if self.looked[product_id]]
        fits = [record for record in records if Wish(was["type"], was).fits(record)]
        return min(fits or records, key=lambda record: (record["stock"] > 0, record["title"]), default=None)

    def _wish(self, original: Mapping[str, Any], branch: bool | None) -> Wish:
        """Describe what can replace it, on one branch of a condition, or on either."""
        hard = hard_names(self.get("must", []), original["attributes"]) or list(original["attributes"])[:1]
        slots = {f"attr:{name}": original["attributes"][name] for name in hard}
        slots |= {limit.name: self.get(limit.name) for limit in LIMITS if (0, limit.name) in self.known}
        condition = self.get("if")
        if condition is not None and branch is not None:
            wish = condition.value
            slots[condition.slot] = wish.first if branch else wish.other
            if branch:
                slots[PRICE.name] = min(wish.limit, slots.get(PRICE.name, wish.limit))
        for demand in (value for value in self.known.values() if isinstance(value, Demand)):
            value = self._value(demand)
            if value is not None:
                limit, other = slot_type(demand.slot), slots.get(demand.slot)
                if limit.is_limit and other is not None:
                    value = limit.edge(np.array([value, other])) if limit.op == ">=" else min(value, other)
                slots[demand.slot] = value
        return Wish(original["type"], slots)

    def _value(self, demand: Demand) -> Any:
        """Work out the value of a demand."""
        if isinstance(demand.value, If):
            return None  # one of its branches
        if not isinstance(demand.value, Of):
            return demand.value
        visit = self._told_of(demand)
        if visit is None:
            return None
        if slot_type(demand.slot).is_limit:
            return of_record(self.looked.get(visit["product_id"]) or visit)(slot_type(demand.slot))
        if demand.slot == "brand":
            return str(visit["title"]).partition(" ")[0]
        return visit["attributes"].get(demand.slot[5:])

    def _told_of(self, demand: Demand) -> dict[str, Any] | None:
        """Find the visit that a demand refers to."""
        return self._seen(Visited(demand.value.by)) if isinstance(demand.value, Of) else None

    def _unread(self, kind: str, wish: Wish, branch: bool | None) -> list[dict[str, Any]]:
        """Make the calls for the pages that list what is wished for and that have not been asked for."""
        calls = []
        for fixed in split(self.lexicon.types[kind], wish.slots):
            about = Search(tuple(fixed.items()), branch)
            for page in range(1, self.pages.get(about, 1) + 1):
                if (about, page) not in self.read:
                    self.read.add((about, page))
                    calls.append(self.search(about, kind, wish.slots | fixed, page=page))
        return calls

    def _usable(self, original: Mapping[str, Any], wish: Wish) -> list[tuple[str, int]]:
        """List (id, number of equal entries) of what can replace it; distractors do not satisfy the filters."""
        hard = hard_names(self.get("must", []), original["attributes"]) or list(original["attributes"])[:1]
        soft = [name for name in original["attributes"] if name not in hard]
        return [
            (product_id, count_alike(record, original, soft))
            for product_id, record in self.found.items()
            if record["stock"] > 0 and product_id != original["product_id"] and wish.fits(record)
        ]


def count_alike(record: Mapping[str, Any], original: Mapping[str, Any], names: Iterable[str]) -> int:
    """Count what a product has in common with another: brand, price, stars and, of its attributes, `names`."""
    has, own = of_record(record), of_record(original)
    return (
        (record["brand"] == original["brand"])
        + sum(record["attributes"].get(name) == original["attributes"][name] for name in names)
        + sum(bool(are_close(limit, has(limit), own(limit))) for limit in (PRICE, RATING))
    )


class Search(NamedTuple):
    """A search for replacements: the attributes that it fixes beside what is wanted in any case."""

    fixed: tuple[tuple[str, str], ...]
    branch: bool | None = None
    """Of a condition."""


def demands_in(slots: Mapping[str, Any]) -> dict[str, Any]:
    """List what is demanded of a replacement, by its slot."""
    return {one.slot: one.value for one in slots.values() if isinstance(one, Demand)}


def split(kind: ProductType, wanted: Mapping[str, Any]) -> list[dict[str, str]]:
    """List the attributes that searches fix, one search each, to list all that alternatives and exceptions admit; what
    excludes brands is left open."""
    able: dict[str, Sequence[str]] = {}
    for one in kind.attributes:
        value = wanted.get(f"attr:{one.name}")
        if isinstance(value, OneOf | AnyBut):
            able[f"attr:{one.name}"] = [name for name in one.values if value.admits(name)]
    return [dict(zip(able, chosen, strict=True)) for chosen in product(*able.values())]


def titled(title: str, was: Mapping[str, Any]) -> bool:
    """Tell whether a title may be that of the product described; "Deluxe-Alpine" is not "Alpine"."""
    said = f" {was['feature']} " if "feature" in was else ""
    return title.startswith(was.get("brand", "")) and title.endswith(f" {was['type']}") and said in title
