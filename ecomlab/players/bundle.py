"""The player of BUNDLE: takes the cheapest product that fits each part of the list."""

import math
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.players.budgets import budget
from ecomlab.players.cart import Wish
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.world.shopping_list import parts_of


class BundlePlayer(GoalPlayer):
    """Searches each part, the cheapest first, and takes the first that fits: if these exceed the budget, all do."""

    found: dict[str, list[dict[str, Any]]]

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a list: one turn with a search per part, and handing in."""
        return Need(2, len(parts_of(goal.slots)))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any list; after a rush all is looked for again. The opening does not show how many parts
        there are, so the budget does not either."""
        parts = math.ceil(axes.bundle.parts)
        events = ((axes.p_oos, 1, parts + 1), (axes.p_switch, 1, 1))
        return budget(Need(2, parts), min(parts, axes.constraints - 1) + 2, axes, *events)

    def read_later(self, text: str) -> dict[Place, Any]:
        return {place: value for place, value in super().read_later(text).items() if place[1] != "quantity"}

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            self.found = {}
        super().hear(text, opening)

    def stock_changed(self) -> None:
        self.found = {}

    def restart(self) -> None:
        """Keep what was found for each part until something sells out."""

    def work(self) -> Message:
        parts = parts_of(self.known)
        new = [part for part in parts if repr(part) not in self.found]
        if new:
            self.found |= {repr(part): [] for part in new}
            return self.turn(*(self.search(repr(part), *part, sort="price") for part in new))
        chosen = []
        for kind, slots in parts:
            fitting = [r for r in self.found[repr((kind, slots))] if Wish(kind, slots).fits(r) and r["stock"]]
            if fitting:
                choose = max if self.slip() else min
                chosen.append(choose(fitting, key=lambda record: record["price"])["product_id"])
        return self.turn(self.call("submit", None, product_ids=chosen))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about in self.found:
            self.found[about] += result.get("results", [])
