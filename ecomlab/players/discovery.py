"""The player of PD: searches under all constraints and ranks what it finds."""

import math
from collections.abc import Mapping
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.players.budgets import budget
from ecomlab.players.cart import Wish
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, Message, Need
from ecomlab.world.state import PAGE

PREFERENCES = ("price", "rating", "delivery")
"""Preferences that a customer may have: keys of `catalog_search`'s sort."""


class DiscoveryPlayer(GoalPlayer):
    """Searches the type under all constraints, ordered by the customer's preferences, and takes the first k that fit.

    It sorts again by itself, because the place of a distractor tells nothing.
    """

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a recommendation: the pages of a search, handing in."""
        return Need(2, math.ceil(goal["count"] / PAGE))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any recommendation; a rush and a change of mind each start the search again."""
        pages = math.ceil(axes.k_rec / PAGE)
        events = ((axes.p_oos, 1, pages), (axes.p_switch, 1, pages))
        return budget(Need(2, pages), axes.constraints + 1, axes, *events)

    def restart(self) -> None:
        self.found: list[dict[str, Any]] | None = None

    def work(self) -> Message:
        count, order = self.get("count", 1), self.get("importance", list(PREFERENCES))
        slots = {name: value for (_, name), value in self.known.items()}
        if self.found is None:
            self.found = []
            pages = range(1, math.ceil(count / PAGE) + 1)
            return self.turn(*(self.search("page", slots["type"], slots, order, page) for page in pages))
        wish = Wish(slots["type"], slots)
        fitting = [record for record in self.found if wish.fits(record) and record["stock"] > 0]
        fitting.sort(key=lambda record: [_place(record, name) for name in order])
        chosen = [record["product_id"] for record in fitting if not self.slip()][:count]
        return self.turn(self.call("submit", None, product_ids=chosen))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if self.found is not None and "results" in result:
            self.found += result["results"]


def _place(record: Mapping[str, Any], preference: str) -> float:
    """Rate a record by one preference: the lower, the better."""
    if preference == "rating":
        return -float(record["rating"])
    return float(record["price" if preference == "price" else "ship_days"])
