"""The player of PD: searches under all constraints and ranks what it finds."""

import math
from collections.abc import Mapping
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import LIMITS
from ecomlab.task import Goal, Message, Need
from ecomlab.world.state import PAGE

SORTED = {limit.sort: limit for limit in LIMITS}
"""Slots that a search sorts by, by preference: a key of `catalog_search`'s sort."""
FIELDS = {name: limit.shown for name, limit in SORTED.items()}
"""Fields of a record that preferences are about."""
FILTERS = {name: limit.filter for name, limit in SORTED.items()}
"""Search filters that bound these fields."""
PREFERENCES = tuple(SORTED)
"""Preferences that a customer may have."""


class DiscoveryPlayer(GoalPlayer):
    """Searches the type under all constraints, once per preference, and takes the k best that fit.

    A search is ordered by one key alone, so products that are equal in it come in any order, on any number of pages.
    Each search but the first is therefore bounded by the last place that mattered in those before: its first k rows
    hold what these left open. Places are worked out from the rows' values: that of a distractor tells nothing.
    """

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a recommendation: a search for each preference, and submit."""
        searches = len(PREFERENCES)
        return Need(searches + 1, searches * math.ceil(goal["count"] / PAGE))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any recommendation; a rush and a change of mind each start the search again."""
        searches = len(PREFERENCES)
        calls = searches * math.ceil(axes.k_rec / PAGE)
        events = ((axes.p_oos, searches, calls), (axes.p_switch, searches, calls))
        return budget(Need(searches + 1, calls), axes.constraints + 1, axes, *events)

    def restart(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.bounds: dict[str, float] = {}
        """Filters by the last places that matter, by the searches so far."""
        self.searched: list[str] = []
        """Preferences by which it has searched."""
        self.more = False
        """True if the latest search may have found more: there are further pages, or it was cut after a full one."""

    def work(self) -> Message:
        count, order = self.get("count", 1), self.get("importance", list(PREFERENCES))
        slots = {name: value for (_, name), value in self.known.items()}
        wish = Wish(slots["type"], slots)
        fitting = [record for record in self.found.values() if wish.fits(record) and record["stock"] > 0]
        fitting.sort(key=lambda record: [place_of(record, name) for name in order])
        left = [key for key in order if key not in self.searched]
        if left and (self.more or not self.searched):
            for key in self.searched[-1:] if len(fitting) >= count else ():
                self.bounds[FILTERS[key]] = fitting[count - 1][FIELDS[key]]
            self.searched.append(left[0])
            pages = range(1, math.ceil(count / PAGE) + 1)
            return self.turn(
                *(self.search("page", slots["type"], slots, left[0], page, self.bounds) for page in pages)
            )
        chosen = [record["product_id"] for record in fitting if not self.slip()][:count]
        return self.turn(self.call("submit", None, product_ids=chosen))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if result.get("results"):  # a page beyond the last one is empty
            self.more = result["page"] < result["pages"] or len(result["results"]) >= PAGE
            self.found |= {record["product_id"]: record for record in result["results"]}


def place_of(record: Mapping[str, Any], preference: str) -> float:
    """Rate a record by one preference: the lower, the better."""
    value = float(record[FIELDS[preference]] or 0)  # null where the shop knows none
    return -value if SORTED[preference].op == ">=" else value
