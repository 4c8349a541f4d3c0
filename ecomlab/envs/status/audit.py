"""The audit of STATUS: faults of an answer, and the chance of guessing the order."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.status import read_status
from ecomlab.catalog import Shop
from ecomlab.customer.dialogue import GUESSES
from ecomlab.envs.base import Audit
from ecomlab.envs.status.questions import VALUES, Facts
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, Task
from ecomlab.world.orders.history import last_date, status_of
from ecomlab.world.orders.references import look, resolve, values_of
from ecomlab.world.state import World


class StatusAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        if not answer or not any(answer.values()):
            return [] if answer is None else [Fault("missed item", "answer", words="nothing was submitted")]
        today, orders = date.fromisoformat(world.given["today"]), world.given["orders"]
        (at,) = resolve(look(orders, world.shop), goal.of(), today)
        meant, token, told = orders[at], answer.get("order_id"), answer.get("date")
        if not isinstance(token, str) or token.strip().upper() != meant["order_id"]:
            right = meant["order_id"]
            words = f"{token or 'nothing'} was submitted, {right} was meant"
            return [Fault("wrong order", "item 0", str(token), tuple(goal.of()), (right,), words)]
        status, last, found = status_of(meant), last_date(meant), list[Fault]()
        if read_status(answer.get("status")) != status:
            words = f"{answer.get('status') or 'nothing'} was submitted, it is {status}"
            found.append(Fault("wrong status", "status", str(answer.get("status")), words=words))
        if not (says_none(told) if last is None else read_day(told, today) == date.fromisoformat(last)):
            words = f"{told or 'nothing'} was submitted, it is {last or 'none'}"
            found.append(Fault("wrong date", "date", str(told), words=words))
        return found

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        return values_of(slot[1], look(task.world["orders"], shop), shop)

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        orders, today = look(task.world["orders"], shop), date.fromisoformat(task.world["today"])
        stages = (goal, goal.after(task.events))
        if not all(len(resolve(orders, stage.of(), today)) == 1 for stage in stages):
            return False
        for stage in stages:
            (at,) = resolve(orders, stage.of(), today)
            every = [Facts.of_order(order, shop) for order in task.world["orders"]]
            if None in [VALUES[slot](at, every, today, value) for slot, value in stage.asks.items()]:
                return False
        return True

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        goal, orders = task.goal.after(task.events), task.world["orders"]
        today = date.fromisoformat(task.world["today"])
        (at,) = resolve(look(orders, shop), goal.of(), today)
        every = [Facts.of_order(order, shop) for order in orders]
        asked = {slot: goal.asks[slot] for slot in ("ask_by", "ask_all_by") if slot in goal.asks}
        return {
            f"telling: {slot}": VALUES[slot](at, every, today, day) == "yes" for slot, day in asked.items()
        }

    def chance(self, task: Task, shop: Shop) -> float:
        """Compute the chance of picking orders at random until the customer agrees: all are equally likely to be meant
        in the end, and the second wrong one ends the episode."""
        return min(1.0, GUESSES / len(task.world["orders"]))
