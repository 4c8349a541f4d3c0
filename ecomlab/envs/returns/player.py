"""The player of RETURN: finds the line that is meant, returns it, and searches for a replacement."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Event, Goal, GoalChange, Message, Need, Place
from ecomlab.world.orders.history import Order
from ecomlab.world.orders.lines import LOOKUPS, is_identity, may_be
from ecomlab.world.orders.references import named

MOST_SAID = 7
"""Maximum number of slots by which a customer describes the returned line and its replacement."""


class ReturnsPlayer(GoalPlayer):
    """Lists the orders, looks into those that may be meant, checks the line, returns it, searches a replacement."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.checked: dict[tuple[str, str], dict[str, Any]] = {}
        self.returns: dict[tuple[str, str], int] = {}
        self.refused: set[tuple[tuple[str, str], int]] = set()
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.choice: tuple[str, str] | None = None
        self.minded: list[Any] = []

    @staticmethod
    def need(goal: Goal, goes: bool, orders: Sequence[Order], shop: Shop) -> Need:
        """Count the steps to a decline, or to a return if the line `goes` back: listing the orders, looking into those
        that may be meant, checking the line, returning it while searching for a replacement, submit."""
        return Need(4 + goes, 1 + _calls(goal.of(), goes, orders, shop))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any return; after a turn to another line the orders are looked into again."""
        look = min(LOOKUPS, axes.history)
        events = ((axes.p_oos, 1, 1), (axes.p_switch, 3, look + 4))
        return budget(Need(5, 1 + look + 3), MOST_SAID, axes, *events)

    @staticmethod
    def costs(event: Event, goes: bool, then: bool, orders: Sequence[Order], shop: Shop) -> Event:
        """Set the steps that an event costs; `then`: the line meant from then on goes back."""
        turns = calls = int(goes)  # returned again, or a replacement sought again
        if isinstance(event, GoalChange) and event.how == "anew":
            turns = 2 + then
            calls = _calls(event.slots, then, orders, shop) + goes  # the first return is undone
        elif isinstance(event, GoalChange) and "units" in event.slots:
            calls = 2 * goes
        elif isinstance(event, GoalChange):
            turns = calls = int(goes and bool(event.slots["replacement"]))
        return replace(event, turns=turns, calls=calls)

    def hear(self, text: str, opening: bool) -> None:
        super().hear(text, opening)
        self.choice = None

    def stock_changed(self) -> None:
        self.found.clear()

    def read_later(self, text: str) -> dict[Place, Any]:
        return self.read_renamed(text, keeps=("replacement",))

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        if self.orders is None:
            return self.turn(self.call("order_list", "orders"))
        slots = {name: value for (_, name), value in self.known.items() if is_identity(name) and value}
        likely = [order for order in self.orders if _listed(order, slots)] or self.orders[:1]
        unseen = [o["order_id"] for o in likely if o["order_id"] not in self.looked][:LOOKUPS]
        undo = [self.call("return_cancel", "returns", order_id=o, line_id=n) for o, n in self._stale(slots)]
        if unseen:
            return self.turn(*undo, *(self.call("order_get_status", "order", order_id=o) for o in unseen))
        if self.choice is None:
            self.choice = self._choose([self.looked[order["order_id"]] for order in likely], slots)
        order_id, line_id = self.choice
        if self.choice not in self.checked:
            check = self.call("return_check_eligibility", "check", order_id=order_id, line_id=line_id)
            return self.turn(*undo, check)
        said = self.checked[self.choice]
        units, calls = self.get("units") or 1, undo
        swap = self.get("replacement") if said["eligible"] else None
        now = self.returns.get(self.choice, 0)
        if said["eligible"] and now != units and (self.choice, units) not in self.refused:
            if now:
                calls.append(self.call("return_cancel", "returns", order_id=order_id, line_id=line_id))
            about = ("return", self.choice, units)
            calls.append(
                self.call("return_initiate", about, order_id=order_id, line_id=line_id, quantity=units)
            )
        sought = repr((slots["type"], swap))
        if swap and sought not in self.found:
            self.minded = [pair for pair in swap if not self.slip()]  # the others are overlooked
            minded = {str(name): value for name, value in self.minded}
            calls.append(self.search(("search", sought), slots["type"], minded))
        if calls:
            return self.turn(*calls)
        return self._submit(said, self._fitting(sought, slots["type"], self.minded) if swap else None)

    def _submit(self, said: Mapping[str, Any], replacement: str | None) -> Message:
        assert self.choice is not None
        order_id, line_id = self.choice
        done = bool(said["eligible"])
        told = done or not self.slip()  # a mistake forgets until when it could be returned
        return self.turn(
            self.call(
                "submit",
                None,
                order_id=order_id,
                line_id=line_id,
                outcome="returned" if done else "declined",
                last_return_day=said["last_return_day"] if told and not done else None,
                replacement=replacement,
            )
        )

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "orders" in result:
            self.orders = result["orders"]
        elif "lines" in result:
            self.looked[result["order_id"]] = result
        elif "eligible" in result:
            self.checked[result["order_id"], result["line_id"]] = result
        elif "returns" in result:
            self.returns = {(r["order_id"], r["line_id"]): r["quantity"] for r in result["returns"]}
        elif "results" in result:
            self.found[about[1]] = result["results"]
        elif "error" in result and isinstance(about, tuple) and about[0] == "return":
            self.refused.add(about[1:])
        elif "error" in result and isinstance(about, tuple):
            self.found[about[1]] = []

    def _stale(self, slots: Mapping[str, Any]) -> list[tuple[str, str]]:
        """List the returns of lines that are no longer meant."""
        return [
            (o, n)
            for o, n in self.returns
            if (self.choice not in (None, (o, n)))
            or not any(r["line_id"] == n and _fits(self.looked[o], r, slots) for r in self.looked[o]["lines"])
        ]

    def _choose(self, looked: Sequence[Mapping[str, Any]], slots: Mapping[str, Any]) -> tuple[str, str]:
        lines = [(order, line) for order in looked for line in order["lines"]]
        alike = [pair for pair in lines if _fits(*pair, {"type": slots["type"]})] or lines
        fitting = [pair for pair in alike if _fits(*pair, slots)] or alike[:1]
        others = [pair for pair in alike if pair not in fitting]
        if others and any(self.slip() for _ in range(len(slots) - 1 + len(others))):
            fitting = others  # each slot, and each line it excludes, is a chance of a mistake
        order, line = fitting[0]
        return order["order_id"], line["line_id"]

    def _fitting(self, sought: str, kind: str, swap: Sequence[Sequence[Any]]) -> str | None:
        """Find the first wanted product that differs from the returned one; distractors may be of other types."""
        assert self.choice is not None
        order = self.looked[self.choice[0]]
        own = next(r["product_id"] for r in order["lines"] if r["line_id"] == self.choice[1])
        wish = Wish(kind, {str(name): value for name, value in swap})
        for record in self.found[sought]:
            if record["product_id"] != own and record["stock"] > 0 and wish.fits(record):
                return str(record["product_id"])
        return None


def _calls(slots: Mapping[str, Any], goes: bool, orders: Sequence[Order], shop: Shop) -> int:
    """Count the calls for a line: the orders to look into, the check and, if it goes back, its return and a search."""
    return sum(may_be(order, slots, shop) for order in orders) + 1 + goes * (1 + bool(slots["replacement"]))


def _listed(order: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether an order may hold what these slots describe, by what `order_list` shows of it."""
    if slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    return any(named(item, slots) for item in order["items"])


def _fits(order: Mapping[str, Any], line: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether a line that `order_get_status` shows is as these slots describe."""
    if not named(line, slots) or slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    if slots.get("option") not in (None, line["variant_id"]):
        return False
    parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else {}
    if slots.get("delivered") not in (None, parcel.get("delivered", "")[5:]):
        return False
    return all(line["attributes"].get(n[5:]) == v for n, v in slots.items() if n.startswith("attr:"))
