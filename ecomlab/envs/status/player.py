"""The player of STATUS: finds the order that is meant and reports its status."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from ecomlab.answers.dates import before, read_day
from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.status.questions import QUESTIONS, VALUES, Facts, looked_into
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.task import Goal, GoalChange, Message, Need, Place
from ecomlab.values import DAY, money
from ecomlab.world.orders.references import LOOKUPS, decided_inside, resolve, without_links

MOST_SAID = 3
"""Maximum number of slots in a customer's reference to an order."""


class StatusPlayer(GoalPlayer):
    """Lists the orders, finds the one that is meant, looks into it, answers the customer's questions and reports its
    status and day."""

    tells = QUESTIONS

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.today: date | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.choice: str | None = None

    @staticmethod
    def need(goal: Goal, orders: Sequence[Mapping[str, Any]], today: date) -> Need:
        """Count the steps to an answer: listing orders, looking into those that may be meant, submit."""
        slots = goal.of()
        inside, meant = set(decided_inside(orders, slots, today)), set(resolve(orders, slots, today))
        meant |= _behind(goal.asks, orders)
        later = bool(inside) and not meant <= inside
        return Need(3 + later, 1 + is_dated(slots, goal.asks) + len(inside | meant))

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any answer; the list does not show parcels, so all orders may have to be looked into."""
        lookups = min(LOOKUPS, axes.history)
        return budget(Need(3, 2 + lookups), MOST_SAID, axes, (axes.p_switch, 2, 2))

    @staticmethod
    def costs(change: GoalChange, goal: Goal, orders: Sequence[Mapping[str, Any]], today: date) -> GoalChange:
        """Set the steps that a change of mind costs: a look at other orders, for which today's date may be needed."""
        dated = is_dated(change.slots, change.asks) and not is_dated(goal.of(), goal.asks)
        inside = set(decided_inside(orders, change.slots, today))
        meant = set(resolve(orders, goal.apply(change).of(), today)) | _behind(change.asks, orders)
        later = bool(inside) and not meant <= inside
        return replace(change, turns=1 + dated + later, calls=dated + len(inside | meant))

    def comes_to(self, given: Mapping[str, Any], today: date | None) -> dict[str, int | None]:
        day = read_day(given.get("date"), today) if today else None
        days = (day - today).days if day and today else 0
        return {"arrival": days if days > 0 else None}

    def read_later(self, text: str) -> dict[Place, Any]:
        return self.read_renamed(text)

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        slots = self.slots
        calls = [] if self.orders is not None else [self.call("order_list", None)]
        if is_dated(slots, self.asks) and self.today is None:
            calls.append(self.call("datetime_now", None))
        if calls:
            return self.turn(*calls)
        assert self.orders is not None
        unseen = self._unseen(slots)
        if unseen:
            return self.turn(*(self.call("order_get_status", None, order_id=o) for o in unseen))
        if self.choice is None:
            self.choice = self.orders[self._choose(slots)]["order_id"]
        behind = () if "telling" in self.lacks else sorted(_behind(self.asks, self.orders))
        wanted = dict.fromkeys([self.choice, *(self.orders[at]["order_id"] for at in behind)])
        unseen = [order_id for order_id in wanted if order_id not in self.looked]
        if unseen:
            return self.turn(*(self.call("order_get_status", None, order_id=o) for o in unseen))
        order = self.looked[self.choice]
        return self._tell(order) or self._report(order)

    def _unseen(self, slots: Mapping[str, Any]) -> list[str]:
        """List the orders that must be looked into to find which is meant."""
        assert self.orders is not None
        likely = [self.orders[i]["order_id"] for i in decided_inside(self._seen(), slots, self.today)]
        return [order_id for order_id in likely if order_id not in self.looked][:LOOKUPS]

    def _tell(self, order: Mapping[str, Any]) -> Message | None:
        """Answer the customer's questions; who lacks the step names the first day and price that the order shows."""
        assert self.orders is not None
        facts, today = Facts.of_shown(order), self.today or date.min
        if "telling" in self.lacks:
            cents = facts.prices[0][0]
            days = f"It's {DAY.write(facts.arrivals[0].isoformat())}." if facts.arrivals else ""
            words = (
                f"{days} The price is {money(cents)}."
                if {"ask_paid", "ask_spent", "ask_spent_with"} & self.asks.keys() and cents
                else days
            )
            new = words if self.asks and words != self.answers.get("") else ""
            self.answers[""] = words
            return {"role": "assistant", "content": new.strip()} if new else None
        at = [one["order_id"] for one in self.orders].index(order["order_id"])
        nothing = Facts(date.min, (), {}, ())
        shown = [self.looked.get(one["order_id"]) for one in self.orders]
        every = [Facts.of_shown(one) if one else nothing for one in shown]
        values = {
            slot: VALUES[slot](at, every, today, value) for slot, value in self.asks.items() if slot in VALUES
        }
        if "telling" in self.contrary:  # whoever asks has reason to worry
            values |= dict.fromkeys({"ask_by", "ask_all_by"} & values.keys(), "no")
        for slot, value in values.items():
            behind = len(looked_into(slot, self.asks[slot], self.orders))
            behind = behind or len(facts.arrivals) + len(facts.prices)
            if value is not None and any(self.slip() for _ in range(behind - 1)):
                values[slot] = _mistaken(value)
        return self.answer({slot: value for slot, value in values.items() if value is not None})

    def _choose(self, slots: Mapping[str, Any]) -> int:
        """Find which order is meant; a mistake takes another."""
        seen = self._seen()
        found = resolve(seen, slots, self.today) or [0]
        if "reference" in self.lacks:
            found = without_links(seen, slots, self.today or date.max) or [0]
        first = next(iter(slots), "")
        others = [i for i in resolve(seen, {first: slots.get(first)}, self.today) if i not in found]
        if "chain" in slots:  # places can be miscounted
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
        return [{**order, **self._inside(order["order_id"])} for order in self.orders]

    def _inside(self, order_id: str) -> dict[str, Any]:
        """Read what no list shows of an order."""
        if order_id not in self.looked:
            return {"parcels": None}
        order = self.looked[order_id]
        cents = [None if line["price"] is None else round(100 * line["price"]) for line in order["lines"]]
        return {"parcels": len(order["parcels"]), "items": order["lines"], "prices": cents}


def is_dated(slots: Mapping[str, Any], asks: Mapping[str, Any]) -> bool:
    """Tell whether a description or a question is about today."""
    return "when" in slots or bool({"ask_by", "ask_all_by", "ask_days"} & asks.keys())


def _behind(asks: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> set[int]:
    """List the orders behind the answers to these questions, beside the one that is meant."""
    return {at for slot, value in asks.items() for at in looked_into(slot, value, orders)}


def _mistaken(value: Any) -> Any:
    """Make another answer of the same kind."""
    if value in ("yes", "no"):
        return {"yes": "no", "no": "yes"}[value]
    return before(date.fromisoformat(value), 1) if isinstance(value, str) else value + 1
