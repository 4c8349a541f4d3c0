"""The player of BUNDLE: takes the cheapest product that fits each part of the list."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.world.shopping_list import Part, parts_of

_GONE = re.compile(r"stock has changed \((?:none of these|(.+)) sold out\)")
"""The error for a list submitted before its player knew that stock had changed."""
Found = dict[str, list[dict[str, Any]]]
"""Rows that a search has shown, by part."""


class BundlePlayer(GoalPlayer):
    """Searches each part, the cheapest first, and takes the first that fits: if these exceed the budget, all do.

    When stock has changed, what was taken and is still there stays the cheapest: only the rest is looked for again.
    """

    found: Found
    doubted: Found
    """Products found before stock changed."""

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a list: one turn with a search per part, and submit."""
        return Need(2, len(parts_of(goal.slots)))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any list; after a rush the whole search is repeated. The opening does not show how many
        parts there are, so the budget does not either."""
        parts = math.ceil(axes.bundle.parts)
        events = ((axes.p_oos, 1, parts + 1), (axes.p_switch, 1, 1))
        return budget(Need(2, parts), min(parts, axes.constraints - 1) + 2, axes, *events)

    def read_later(self, text: str) -> dict[Place, Any]:
        return {place: value for place, value in super().read_later(text).items() if place[1] != "quantity"}

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            self.found, self.doubted = {}, {}
        super().hear(text, opening)

    def stock_changed(self) -> None:
        self.found, self.doubted = {}, self.doubted | self.found

    def restart(self) -> None:
        """Keep what was found for each part until something sells out."""

    def work(self) -> Message:
        parts = parts_of(self.known)
        if self.courtesy is not None and (taken := self._taken(parts, self.doubted)):
            return self.turn(self.call("catalog_rerank", "still there", product_ids=taken))
        self.doubted = {}
        new = [part for part in parts if repr(part) not in self.found]
        if new:
            self.found |= {repr(part): [] for part in new}
            return self.turn(*(self.search(repr(part), *part, sort="price") for part in new))
        return self.turn(self.call("submit", "submit", product_ids=self._taken(parts, self.found)))

    def _taken(self, parts: Iterable[Part], found: Found) -> list[str]:
        """Choose a product for each part of which any was found."""
        chosen = []
        for kind, slots in parts:
            rows = found.get(repr((kind, slots)), ())
            fitting = [row for row in rows if Wish(kind, slots).fits(row) and row["stock"]]
            if fitting:
                choose = max if self.slip() else min
                chosen.append(choose(fitting, key=lambda record: record["price"])["product_id"])
        return chosen

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "still there":
            self._keep([row["product_id"] for row in result.get("results", ()) if not row["stock"]])
        elif about == "submit":
            if told := _GONE.search(result.get("error", "")):
                self._keep((told[1] or "").split(", "))
        else:  # the news may have come before what was looked for earlier is read
            found = self.found if about in self.found else self.doubted
            found.setdefault(about, []).extend(result.get("results", []))

    def _keep(self, gone: Collection[str]) -> None:
        """Go on with what was found before for parts of which the chosen product is not `gone`."""
        kept = {part: rows for part, rows in self.doubted.items() if not _ids(rows) & set(gone)}
        self.found, self.doubted = kept | self.found, {}


def _ids(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    return {row["product_id"] for row in rows}
