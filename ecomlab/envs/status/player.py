"""The player of STATUS: finds the order that is meant and reports its status."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, GoalChange, Message, Need, Place
from ecomlab.world.orders.references import LOOKUPS, STEPS, resolve

MOST_SAID = 3
"""Maximum number of slots in a customer's reference to an order."""


class StatusPlayer(GoalPlayer):
    """Lists the orders, finds the one that is meant, looks into it and reports its status and day."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.today: date | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.choice: str | None = None

    @staticmethod
    def need(goal: Goal, orders: Sequence[Mapping[str, Any]], today: date) -> Need:
        """Count the steps to an answer: listing orders, looking into those that may be meant, submit."""
        lookups = 1
        if "parcels" in goal:  # no list shows the number of parcels
            lookups = len(resolve(orders, goal.drop_slots("parcels", *STEPS).of(), today))
        return Need(3, 1 + ("when" in goal) + lookups)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any answer; the list does not show parcels, so all orders may have to be looked into."""
        lookups = min(LOOKUPS, axes.history)
        return budget(Need(3, 2 + lookups), MOST_SAID, axes, (axes.p_switch, 2, 2))

    @staticmethod
    def costs(change: GoalChange, goal: Goal) -> GoalChange:
        """Set the steps that a change of mind costs: a look at another order, for which today's date may be needed."""
        dated = "when" in change.slots and "when" not in goal
        return replace(change, turns=1 + dated, calls=1 + dated)

    def read_later(self, text: str) -> dict[Place, Any]:
        return self.read_renamed(text)

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        slots = self.slots
        calls = [] if self.orders is not None else [self.call("order_list", None)]
        if "when" in slots and self.today is None:
            calls.append(self.call("datetime_now", None))
        if calls:
            return self.turn(*calls)
        assert self.orders is not None
        unseen = self._unseen(slots)
        if unseen:
            return self.turn(*(self.call("order_get_status", None, order_id=o) for o in unseen))
        if self.choice is None:
            self.choice = self.orders[self._choose(slots)]["order_id"]
        if self.choice not in self.looked:
            return self.turn(self.call("order_get_status", None, order_id=self.choice))
        return self._report(self.looked[self.choice])

    def _unseen(self, slots: Mapping[str, Any]) -> list[str]:
        """List the orders that must be looked into to find which is meant: no list shows the number of parcels."""
        assert self.orders is not None
        if "parcels" not in slots:
            return []
        listed = {name: value for name, value in slots.items() if name not in ("parcels", *STEPS)}
        likely = [self.orders[i]["order_id"] for i in resolve(self._seen(), listed, self.today)]
        return [order_id for order_id in likely if order_id not in self.looked][:LOOKUPS]

    def _choose(self, slots: Mapping[str, Any]) -> int:
        """Find which order is meant; a mistake takes another."""
        seen = self._seen()
        found = resolve(seen, slots, self.today) or [0]
        first = next(iter(slots), "")
        others = [i for i in resolve(seen, {first: slots.get(first)}, self.today) if i not in found]
        if slots.get("place", 0) not in (0, -1) or "relation" in slots:  # places can be miscounted
            others += [i - 1 for i in found if i]
        # Each slot, and each order that it excludes, is a chance of a mistake.
        if any(self.slip() for _ in range(max(0, len(slots) - 1) + len(others))) and others:
            found = others
        return found[0]

    def _report(self, order: Mapping[str, Any]) -> Message:
        day = max((p.get("delivered") or p["expected"] for p in order["parcels"]), default=None)
        status = order["status"]
        if any(self.slip() for _ in order["parcels"][1:]):  # the first parcel is taken for the whole order
            status = order["parcels"][0]["status"] if status.startswith("partly") else "processing"
        dates = sum(len(parcel) - 2 for parcel in order["parcels"])
        if any(self.slip() for _ in range(dates - 1)):  # each further date may be mistaken for it
            day = order["placed"]
        return self.turn(self.call("submit", None, order_id=order["order_id"], status=status, date=day))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "orders" in result:
            self.orders = result["orders"]
        elif "today" in result:
            self.today = date.fromisoformat(result["today"])
        elif "lines" in result:
            self.looked[result["order_id"]] = result

    def _seen(self) -> list[dict[str, Any]]:
        assert self.orders is not None
        parcels = {order_id: len(order["parcels"]) for order_id, order in self.looked.items()}
        return [{**order, "parcels": parcels.get(order["order_id"])} for order in self.orders]
