"""The player of BUNDLE: lists what can matter of each part, and takes the best list under all demands."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer import nlu
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import PRICE, RATING
from ecomlab.steps import CALLS_A_STEP
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.world.joint import SLOTS, Choice, Demands, Offer, Total, best

Found = dict[str, list[dict[str, Any]]]
"""Rows that a search has shown, by part."""


class BundlePlayer(GoalPlayer):
    """Searches each part, the cheapest first, as many pages as can matter, and takes the best list of what it found.

    When stock has changed, only those parts are looked for again of which the shop says that some have sold out.
    """

    found: Found
    today: date | None

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a list: one turn with a search per part, and submit. Demands across parts take more pages,
        and one that counts from today another turn first."""
        demands = Demands.of(goal.slots)
        return Need(2 + demands.names_days, demands.calls)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any list; after a rush the whole search is repeated. The opening does not show how many
        parts there are, so the budget does not either."""
        parts, steps = math.ceil(axes.bundle.parts), math.ceil(axes.steps.mean)
        calls = parts + CALLS_A_STEP * steps
        events = ((axes.p_oos, 1, calls + 1), (axes.p_switch, 1, 1))
        return budget(Need(2, parts), min(parts, axes.constraints - 1) + steps + 2, axes, *events)

    def read_later(self, text: str) -> dict[Place, Any]:
        return {place: value for place, value in super().read_later(text).items() if place[1] != "quantity"}

    def _told(self, text: str, opening: bool = False) -> dict[Place, Any]:
        """Read the slots that have sentences of their own; each demand across parts has a place of its own."""
        read: dict[Place, Any] = {}
        for name, value in nlu.read_slots(text, self.phrases, self.lexicon, opening):
            known = [*self.known.items(), *read.items()]
            if name not in SLOTS:
                read[0, name] = value
            elif not any(value == other for _, other in known):
                read[sum(place[1] == name for place, _ in known), name] = value
        return read

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            self.found, self.today = {}, None
        super().hear(text, opening)

    def notice(self, text: str) -> None:
        super().notice(text)
        demands = Demands.of(self.known)
        for kind in demands.parts if "sold out" in text else ():
            if self.lexicon.types[kind].plural in text:
                self.found.pop(self._part(kind, demands), None)

    def restart(self) -> None:
        """Keep what was found for each part until some of it sells out."""

    def work(self) -> Message:
        demands = Demands.of(self.known)
        if demands.names_days and self.today is None:
            return self.turn(self.call("datetime_now", "today"))
        new = [kind for kind in demands.parts if self._part(kind, demands) not in self.found]
        if new:
            self.found |= {self._part(kind, demands): [] for kind in new}
            return self.turn(
                *(
                    self.search(
                        self._part(kind, demands), kind, demands.limited(kind, self.today), "price", page
                    )
                    for kind in new
                    for page in range(1, demands.pages(kind) + 1)
                )
            )
        taken, left_out = self._taken(demands, self.found)
        return self.turn(self.call("submit", "submit", product_ids=taken, unmet=left_out or None))

    def _part(self, kind: str, demands: Demands) -> str:
        """Name what is looked for: a part as it is wanted, and how far."""
        return repr((kind, demands.limited(kind, self.today), demands.pages(kind)))

    def _taken(self, demands: Demands, found: Found) -> tuple[list[str], list[str]]:
        """Choose a product for each part of which any was found, and the parts to leave out."""
        offers: dict[str, list[Offer]] = {}
        for kind in demands.parts:
            rows = found.get(self._part(kind, demands), ())
            slots = demands.limited(kind, self.today)
            fitting = [row for row in rows if Wish(kind, slots).fits(row) and row["stock"]]
            some = [_offer(row, demands.shared(kind)) for row in fitting if row["price"] is not None]
            if some and self.slip():
                some = [max(some, key=lambda offer: offer.price)]
            if some:
                offers[kind] = some
        first = demands.order[:1] if "none" in self.contrary else ()
        kinds = [kind for kind in demands.parts if kind in offers and kind not in first]
        demands = replace(demands, parts={kind: demands.parts[kind] for kind in kinds})
        choice = self._best(demands, offers)
        for kind in (one.type for one in demands.worths if "trade_off" in self.contrary):
            dearer = [offer for offer in offers.get(kind, ()) if offer.price > _least(offers[kind])]
            if dearer:
                choice = self._best(demands, offers := offers | {kind: dearer})
        left_out = dict.fromkeys([*first, *choice.left_out])
        return [offer.thing for offer in choice.chosen.values()], list(left_out)

    def _best(self, demands: Demands, offers: Mapping[str, list[Offer]]) -> Choice:
        """Find the best list; where nothing meets all demands, the best without limits in total, or the cheapest."""
        unlimited = tuple(one for one in demands.joints if not isinstance(one, Total))
        loose = replace(demands, budget=None, joints=unlimited, worths=())
        for some in (demands, loose):
            if (choice := best(offers, some, self.today)) is not None:
                return choice
        cheapest = {kind: min(some, key=lambda offer: offer.price) for kind, some in offers.items()}
        return Choice(cheapest, (), 0)

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "today":
            self.today = date.fromisoformat(result["today"]) if "today" in result else date.min
        elif about in self.found:  # not what was looked for before the shop's news of it
            self.found[about].extend(result.get("results", []))


def _least(offers: Iterable[Offer]) -> int:
    return min(offer.price for offer in offers)


def _offer(row: Mapping[str, Any], shared: Iterable[str]) -> Offer:
    """Make the offer of a search's row."""
    values = {
        name: row["brand"] if name == "brand" else row["attributes"].get(name.removeprefix("attr:"))
        for name in shared
    }
    price, rating = PRICE.read_shown(row["price"]), RATING.read_shown(row["rating"])
    assert price is not None
    return Offer(row["product_id"], price, -1 if rating is None else rating, row["ship_days"], values)
