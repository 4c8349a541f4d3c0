"""The player of SUB: finds the product that the customer looked at, then those most similar to it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.demands import identity
from ecomlab.customer.visits import CLUSTER, exact_value
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import LIMITS, PRICE
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.wishes import AnyBut, Demand, If, Of, OneOf, Visited, visit_of
from ecomlab.world.cart import constraints_of
from ecomlab.world.ranking import of_record
from ecomlab.world.state import PAGE
from ecomlab.world.substitutes import hard_names, original_of, requirements, similar_names, similarity

MOST_WISHES = 6
"""Most wishes that must be worked out."""
MOST_PAGES = 16
"""Most pages of a search that it reads."""


class SubstitutionPlayer(GoalPlayer):
    """Finds the sold-out product among the visits, then searches for products that are equal in all entries, in fewer
    and fewer: a page of each combination, and more of those of which more may be needed; the first `count` will do."""

    visits: list[dict[str, Any]] | None = None
    """All visits, the newest first, or those of the type where no other is spoken of."""
    whole = False
    """True once these are all."""
    looked: dict[str, dict[str, Any]]

    @staticmethod
    def steps(goal: Goal, rows: np.ndarray, top_k: int, shop: Shop) -> tuple[int, int]:
        """Count (turns, calls) of the search alone, which a change starts again: every combination of entries, each in
        as many pages as the suggestions need, among the `rows` that filters leave."""
        count, catalog, original = goal["count"], shop.catalog, original_of(goal, shop)
        entries = similar_names(goal, shop)
        wanted = {one.slot: one.value for one in goal.of().values() if isinstance(one, Demand)}
        values = [values_of(exact_value(original, entry, shop), wanted.get(entry)) for entry in entries]
        usable = np.isin(rows, catalog.select(requirements(goal, shop), rows))
        is_open = any(isinstance(value, AnyBut) for value in wanted.values())
        enough, calls, deep = math.ceil(count / PAGE), 0, 0
        alike = np.sort(similarity(rows[usable], goal, shop))[::-1]
        needed = int(alike[count - 1]) if len(alike) >= count and "if" not in goal else 0
        for row in product(*values):
            fixed = {name: value for name, value in zip(entries, row, strict=True) if value is not None}
            here = np.isin(rows, catalog.select(constraints_of(goal["type"], fixed), rows))
            found, fit = int(here.sum()), int((here & usable).sum())
            pages = math.ceil(min(found, top_k) / PAGE)
            most = enough
            if "worth" in goal and sum(value is not None for value in row) >= needed:
                most = pages
            elif is_open:
                most = pages if fit < count else 1 + math.ceil(count * found / fit / PAGE)
            calls += max(1, min(pages, most))
            deep = max(deep, (min(pages, enough) > 1) + ((is_open or "worth" in goal) and pages > enough))
        return 1 + deep + ("if" in goal), calls

    @classmethod
    def need(cls, goal: Goal, visits: Sequence[str], shop: Shop, turns: int, calls: int) -> Need:
        """Count the steps to the best replacements: visits, a look at those that fit, the search, submit."""
        was = identity(goal.of())
        looks = sum(titled(shop.catalog.title(shop.catalog.row(visit) or 0), was) for visit in visits)
        return Need(3 + turns, 1 + (1 if "which" in goal else looks) + calls)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any replacements, of products with as many attributes as there are, one of which stays; a
        rush and a change of mind each start the search again, which takes a turn more where filters cannot say all that
        is wanted."""
        pages = math.ceil(axes.k_rec / PAGE)
        entries = max(len(kind.attributes) for kind in shop.catalog.types)
        turns, calls = 1 + (pages > 1), pages * 2**entries
        again = turns + (axes.steps.logic > 0 and axes.steps.mean > 0)
        events = ((axes.p_oos, again, calls), (axes.p_switch, again, calls))
        work = Need(3 + turns, 1 + CLUSTER + calls)
        slots = len(LIMITS[: axes.constraints - 1]) + 3 + min(MOST_WISHES, math.ceil(axes.steps.mean))
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
        if isinstance(said := bound.get((0, "excluded")), Demand):
            bound[0, "excluded"] = replace(said, value=AnyBut(said.value.values))
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
        new = [product_id for product_id in fitting if product_id not in self.looked]
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
        searches = self._searches(original, wish, tried)
        usable = self._usable(original, wish)
        calls = self._unread(original, wish, searches, 1)
        if condition is not None and self.branch is None and not calls:
            if not usable and self._is_open(wish):  # what fits may stand on further pages
                calls = self._unread(original, wish, searches, MOST_PAGES)
            if not calls:
                self.branch = bool(usable)
                return self.work()
        worth = self.get("worth")
        for most in (math.ceil(count / PAGE), MOST_PAGES if self._is_open(wish) or worth else 1):
            above = 1 if worth else 0  # of equally similar ones all are compared
            lacking = [one for one in searches if sum(n >= one.least + above for _, n in usable) < count]
            calls = calls or self._unread(original, wish, lacking, most)
        if calls:
            return self.turn(*calls)
        chosen = [pair for pair in usable if not self.slip()]
        key = {one: worth.key(of_record(self.found[one])) if worth else 0 for one, _ in chosen}
        ids = [product_id for product_id, _ in sorted(chosen, key=lambda pair: (-pair[1], key[pair[0]]))]
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
        kind = max(
            (name for name in self.lexicon.types if visit["title"].endswith(name)), key=len, default=""
        )
        attributes = {name[5:]: value for name, value in by.items() if name.startswith("attr:")}
        return (
            kind == by["type"]
            and titled(visit["title"], by)
            and all(visit["attributes"].get(name) == value for name, value in attributes.items())
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
                both = demand.slot == PRICE.name and PRICE.name in slots
                slots[demand.slot] = min(value, slots[demand.slot]) if both else value
        return Wish(original["type"], slots)

    def _value(self, demand: Demand) -> Any:
        """Work out the value of a demand."""
        if isinstance(demand.value, If):
            return None  # one of its branches
        if not isinstance(demand.value, Of):
            return demand.value
        visit = self._seen(Visited(demand.value.by))
        if visit is None:
            return None
        if demand.slot == PRICE.name:
            return round(100 * visit["price"])
        if demand.slot == "brand":
            return str(visit["title"]).partition(" ")[0]
        return visit["attributes"].get(demand.slot[5:])

    @staticmethod
    def _entry(record: Mapping[str, Any], slot: str) -> Any:
        return record["brand"] if slot == "brand" else record["attributes"].get(slot[5:])

    def _entries(self, original: Mapping[str, Any]) -> list[str]:
        """List what counts for similarity."""
        hard = hard_names(self.get("must", []), original["attributes"]) or list(original["attributes"])[:1]
        return ["brand", *(f"attr:{name}" for name in original["attributes"] if name not in hard)]

    def _searches(self, original: Mapping[str, Any], wish: Wish, branch: bool | None) -> "list[Search]":
        """List the searches that find what can replace it, those for the most similar first."""
        entries = self._entries(original)
        owns = [self._entry(original, entry) for entry in entries]
        values = [values_of(own, wish.slots.get(entry)) for own, entry in zip(owns, entries, strict=True)]
        made = [
            Search(row, sum(value == own for value, own in zip(row, owns, strict=True)), branch)
            for row in product(*values)
        ]
        return sorted(made, key=lambda one: -one.least)

    def _unread(
        self, original: Mapping[str, Any], wish: Wish, searches: "Sequence[Search]", most: int
    ) -> list[dict[str, Any]]:
        """Make the calls for the pages of these searches that have not been asked for, up to page `most`."""
        calls, entries = [], self._entries(original)
        for one in searches:
            fixed = {
                name: value for name, value in zip(entries, one.values, strict=True) if value is not None
            }
            for page in range(1, min(self.pages.get(one, 1), most) + 1):
                if (one, page) not in self.read:
                    self.read.add((one, page))
                    calls.append(self.search(one, original["type"], wish.slots | fixed, page=page))
        return calls

    def _is_open(self, wish: Wish) -> bool:
        """Tell whether filters cannot say all that is wanted."""
        return any(isinstance(value, AnyBut) for value in wish.slots.values())

    def _usable(self, original: Mapping[str, Any], wish: Wish) -> list[tuple[str, int]]:
        """List (id, number of equal entries) of what can replace it; distractors do not satisfy the filters."""
        entries = self._entries(original)
        return [
            (product_id, sum(self._entry(record, name) == self._entry(original, name) for name in entries))
            for product_id, record in self.found.items()
            if record["stock"] > 0 and product_id != original["product_id"] and wish.fits(record)
        ]


class Search(NamedTuple):
    """A search for replacements: values of the entries that count, None for any, and how many are the original's."""

    values: tuple[Any, ...]
    least: int
    branch: bool | None = None
    """Of a condition."""


def values_of(own: Any, wanted: Any) -> list[Any]:
    """List the values of an entry that searches fix, None for any: its own first, where something similar is sought."""
    if isinstance(wanted, OneOf):
        return list(wanted.values)
    if isinstance(wanted, If):
        return [wanted.first, wanted.other]
    if isinstance(wanted, AnyBut):
        return [None] if own in wanted.values else [own, None]
    return [own, None] if wanted is None else [wanted]


def titled(title: str, was: Mapping[str, Any]) -> bool:
    """Tell whether a title may be that of the product described."""
    return (
        title.endswith(was["type"])
        and title.startswith(was.get("brand", ""))
        and was.get("feature", "") in title
    )
