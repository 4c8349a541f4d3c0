"""The player of SUB: finds the product that the customer looked at, then those most similar to it."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.visits import CLUSTER
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import LIMITS
from ecomlab.task import Goal, Message, Need
from ecomlab.world.state import PAGE
from ecomlab.world.substitutes import hard_names, original_of


class SubstitutionPlayer(GoalPlayer):
    """Finds the sold-out product among the visits, then searches for products that are equal in all entries, in fewer
    and fewer: a page of each combination, and more of those of which more may be needed; the first `count` will do."""

    visits: list[dict[str, Any]] | None = None
    looked: dict[str, dict[str, Any]]

    @staticmethod
    def steps(goal: Goal, shop: Shop) -> tuple[int, int]:
        """Count (turns, calls) of the search alone, which a change starts again: every combination of entries, each in
        as many pages as the suggestions need."""
        attributes, pages = shop.catalog.attributes(original_of(goal, shop)), math.ceil(goal["count"] / PAGE)
        entries = 1 + len(attributes) - len(hard_names(goal["must"], attributes))
        return 1 + (pages > 1), pages * 2**entries

    @classmethod
    def need(cls, goal: Goal, visits: Sequence[str], shop: Shop) -> Need:
        """Count the steps to the best replacements: visits, a look at those that fit, the search, submit."""
        was = identity(goal.of())
        looks = sum(titled(shop.catalog.title(shop.catalog.row(visit) or 0), was) for visit in visits)
        turns, calls = cls.steps(goal, shop)
        return Need(3 + turns, 1 + looks + calls)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any replacements, of products with as many attributes as there are, one of which stays; a
        rush and a change of mind each start the search again."""
        pages = math.ceil(axes.k_rec / PAGE)
        entries = max(len(kind.attributes) for kind in shop.catalog.types)
        turns, calls = 1 + (pages > 1), pages * 2**entries
        events = ((axes.p_oos, turns, calls), (axes.p_switch, turns, calls))
        work = Need(3 + turns, 1 + CLUSTER + calls)
        return budget(work, len(LIMITS[: axes.constraints - 1]) + 3, axes, *events)

    def restart(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.pages: dict[tuple[str, ...], int] | None = None
        self.deeper = False

    def work(self) -> Message:
        if self.visits is None:
            self.visits, self.looked = [], {}
            return self.turn(self.call("user_get_visit_history", "visits", category=self.get("type")))
        fitting = [v["product_id"] for v in self.visits if titled(v["title"], self._was())]
        new = [product_id for product_id in fitting if product_id not in self.looked]
        if new:
            self.looked |= {product_id: {} for product_id in new}
            return self.turn(
                *(self.call("catalog_get_product", "look", product_id=product_id) for product_id in new)
            )
        original = self._original(fitting)
        if original is None:
            return self.turn(self.call("submit", None, product_ids=[]))
        hard = hard_names(self.get("must", []), original["attributes"]) or list(original["attributes"])[:1]
        entries = ["brand", *(name for name in original["attributes"] if name not in hard)]
        count = self.get("count", 3)
        if self.pages is None:
            self.pages = {}
            rows = [equal for size in range(len(entries), -1, -1) for equal in combinations(entries, size)]
            return self.turn(*(self._search(original, hard, equal, 1) for equal in rows))
        if not self.deeper:
            self.deeper = True
            more = [
                self._search(original, hard, equal, page)
                for equal, pages in self.pages.items()
                if self._as_similar(original, hard, entries, len(equal)) < count
                for page in range(2, min(pages, math.ceil(count / PAGE)) + 1)
            ]
            if more:
                return self.turn(*more)
        return self.turn(self.call("submit", None, product_ids=self._chosen(original, hard, entries)[:count]))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "visits":
            self.visits = result.get("visits", [])
        elif about == "look" and "product" in result:
            self.looked[result["product"]["product_id"]] = result["product"]
        elif "results" in result and self.pages is not None:
            self.pages[about] = result["pages"]
            self.found |= {record["product_id"]: record for record in result["results"]}

    def _was(self) -> dict[str, Any]:
        """Known slots of the sold-out product."""
        return identity({name: value for (_, name), value in self.known.items()})

    def _limits(self) -> dict[str, Any]:
        return {limit.name: self.get(limit.name) for limit in LIMITS if (0, limit.name) in self.known}

    def _original(self, fitting: Sequence[str]) -> dict[str, Any] | None:
        """Find the visit that fits everything said, preferably one that is sold out."""
        was = self._was()
        records = [self.looked[product_id] for product_id in fitting if self.looked[product_id]]
        fits = [record for record in records if Wish(was["type"], was).fits(record)]
        return min(fits or records, key=lambda record: record["stock"] > 0, default=None)

    def _search(
        self, original: Mapping[str, Any], hard: Sequence[str], equal: tuple[str, ...], page: int
    ) -> dict[str, Any]:
        alike = {f"attr:{name}": original["attributes"][name] for name in (*hard, *equal) if name != "brand"}
        brand = {"brand": original["brand"]} if "brand" in equal else {}
        return self.search(equal, original["type"], {**brand, **alike, **self._limits()}, page=page)

    def _chosen(self, original: Mapping[str, Any], hard: Sequence[str], entries: Sequence[str]) -> list[str]:
        """List the products that can replace it, the most similar first."""
        usable = [pair for pair in self._usable(original, hard, entries) if not self.slip()]
        return [product_id for product_id, _ in sorted(usable, key=lambda pair: -pair[1])]

    def _as_similar(
        self, original: Mapping[str, Any], hard: Sequence[str], entries: Sequence[str], least: int
    ) -> int:
        """Count what was found with at least so many equal entries: with enough, nothing less similar is of use."""
        return sum(equal >= least for _, equal in self._usable(original, hard, entries))

    def _usable(
        self, original: Mapping[str, Any], hard: Sequence[str], entries: Sequence[str]
    ) -> list[tuple[str, int]]:
        """List (id, number of equal entries) of what can replace it; distractors do not satisfy the filters."""
        wish = Wish(original["type"], {f"attr:{n}": original["attributes"][n] for n in hard} | self._limits())
        return [
            (product_id, sum(_entry(record, name) == _entry(original, name) for name in entries))
            for product_id, record in self.found.items()
            if record["stock"] > 0 and product_id != original["product_id"] and wish.fits(record)
        ]


def identity(slots: Mapping[str, Any]) -> dict[str, Any]:
    """Select the slots that describe the sold-out product, whether said at first or later."""
    named = {name.removeprefix("was_"): value for name, value in slots.items()}
    return {n: v for n, v in named.items() if n in ("type", "brand", "feature") or n.startswith("attr:")}


def titled(title: str, was: Mapping[str, Any]) -> bool:
    """Tell whether a title may be that of the product described."""
    return (
        title.endswith(was["type"])
        and title.startswith(was.get("brand", ""))
        and was.get("feature", "") in title
    )


def _entry(record: Mapping[str, Any], name: str) -> Any:
    return record["brand"] if name == "brand" else record["attributes"].get(name)
