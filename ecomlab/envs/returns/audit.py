"""The audit of RETURN: faults of a return, and the chance of guessing it."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.answers.amounts import read_amount
from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.outcomes import is_named, read_outcome, read_replacement
from ecomlab.catalog import Shop
from ecomlab.customer.dialogue import GUESSES, PATIENCE
from ecomlab.customer.replacements import can_be_had, is_as_wanted
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, SellOut, Task
from ecomlab.values import money
from ecomlab.world.orders import history, lines, returns
from ecomlab.world.plain import AtFirst
from ecomlab.world.state import World


class ReturnsAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        slots, today = goal.of(), date.fromisoformat(world.given["today"])
        order, line = lines.line_meant(slots, world.given["orders"], world.shop)
        meant, expected = (order["order_id"], line["line_id"]), lines.expected_returns(slots, world)
        said = tuple(name for name in slots if lines.is_identity(name))
        found = [
            Fault("wrong line", "item 0", back[1], said, meant, f"{units} of {back[1]} were returned")
            for back, units in world.returns.items()
            if back != meant
        ]
        units = world.returns.get(meant, 0)
        if units and units != expected.get(meant):
            words = f"{units} units were returned, wanted {expected.get(meant, 0)}"
            found.append(Fault("wrong quantity", "item 0", str(units), ("units",), words=words))
        if answer is None or found:
            return found
        if not any(answer.values()):
            return [Fault("missed item", "item 0", slots=said, right=meant, words="nothing was submitted")]
        if not is_named(answer, order, line):
            named = str(answer.get("line_id") or "nothing")
            return [Fault("wrong line", "item 0", named, said, meant, f"{named} was submitted")]
        terms = returns.judge(world.given, order, line, slots, world.catalog)
        standard = returns.judge(world.given, order, line, slots, world.catalog, standard=True)
        outcome, told = read_outcome(answer.get("outcome")), answer.get("last_return_day")
        if outcome != ("returned" if expected else "declined"):
            missed = " although an exception applies" if terms.goes != standard.goes else ""
            words = f"{outcome or 'nothing'} was submitted{missed}"
            return [Fault("wrong outcome", "outcome", str(outcome), words=words)]
        if world.returns != expected:
            return [Fault("missed item", "item 0", slots=said, right=meant, words="nothing was returned")]
        if not lines.has_agreed(slots, world):
            words = (
                f"{meant[1]} was returned before the customer agreed to the amount and the form of the refund"
            )
            found.append(Fault("not agreed", "agreement", words=words, step="rules"))
        last = terms.last_day
        if not expected and not (says_none(told) if last is None else read_day(told, today) == last):
            words = f"{told or 'nothing'} was submitted, it is {last}"
            found.append(Fault("wrong date", "last day", str(told), words=words))
        refund = terms.refund(line["price_cents"], slots.get("units", 1))
        paid = answer.get("refund")
        if refund is not None and read_amount(paid, "cents") != refund:
            words = f"{paid or 'no'} refund was submitted, it is {money(refund)}"
            found.append(Fault("wrong answer", "refund", str(paid), words=words))
        wanted = lines.wanted_for(slots, terms) if expected else []
        given = read_replacement(answer.get("replacement"), world.catalog)
        if given is None and wanted:
            found.append(Fault("missed item", "replacement", "", ("replacement",), words="no replacement"))
        elif given is not None and not (wanted and is_as_wanted(given, wanted, line, world)):
            kind = "wrong product" if wanted else "unwanted item"
            found.append(
                Fault(kind, "replacement", given, ("replacement",), words=f"{given} as a replacement")
            )
        return found

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other values of a withheld slot; with one that describes the line, all that are withheld are those of
        another line."""
        name = slot[1]
        if name == "replacement":
            return [[], [["price", 500_000]]]
        if name == "only_if":
            return [value for value in ("part", "full") if value != goal[name]]
        if name == "units":
            return range(1, 5)
        if name in returns.VALUES:
            return [value for value in returns.VALUES[name] if value != goal[name]]
        hidden = [n for _, n in goal.slots if lines.is_identity(n) and (0, n) in goal.withheld]
        found = []
        for order, line in history.delivered_lines(task.world["orders"]):
            row = shop.catalog.row(line["product_id"])
            values = {n: lines.line_value(line, order, row or 0, n, shop.catalog) for n in hidden}
            if None not in values.values():
                found.append(goal.set_slots(values))
        return found

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        view = AtFirst(shop, task.world)
        for now in (goal, goal.after(task.events)):
            meant = lines.meant_by(now.of(), task.world, shop)
            if meant is None or now.get("units", 1) > meant.most:
                return False
            wanted = now["replacement"] if meant.goes else []
            if wanted and not can_be_had(wanted, meant.line, view, sold):
                return False
        return True

    def chance(self, task: Task, shop: Shop) -> float:
        """Bound the chance of finding the line by one bit at a time: by returning all or one of its units, line after
        line, until the customer no longer corrects it, where units go back; otherwise by picking one of the delivered
        lines. In either case `GUESSES` - 1 lines more can be asked about. Nobody guesses a replacement."""
        goal, arrived = task.goal.after(task.events), history.delivered_lines(task.world["orders"])
        meant = lines.meant_by(goal.of(), task.world, shop)
        if not meant or not meant.goes:
            return min(1.0, GUESSES / len(arrived))
        if goal["replacement"] or goal.get("units", 1) not in (1, meant.line["quantity"]):
            return 0.0
        every = history.lines_of(task.world["orders"])
        able = sum(line["returned"] < line["quantity"] for _, line in arrived)
        # One turn lists the orders, one looks into them, the last hands in; each wrong return is a call to undo.
        calls = task.calls - 1 - len(task.world["orders"])
        tries = min(task.turns - 3, len(every))
        found = sum(_at_most(min(PATIENCE, calls - n - 1), n, able - 1, len(every) - 1) for n in range(tries))
        return min(1.0, (found + GUESSES - 1) / len(every))

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        slots = task.goal.after(task.events).of()
        order, line = lines.line_meant(slots, task.world["orders"], shop)
        goes, standard = (
            returns.judge(task.world, order, line, slots, shop.catalog, standard=plain).goes
            for plain in (False, True)
        )
        found = {"rules: it goes back": goes}
        found |= {"belief: they were told right": goes} if "promise" in slots else {}
        return found | {"rules: the standard window is right": goes == standard} if task.steps else found


def _at_most(most: int, drawn: int, marked: int, of: int) -> float:
    """Compute the probability of at most `most` marked ones among so many drawn, where `marked` of them all are."""
    return sum(
        math.comb(marked, hit) * math.comb(of - marked, drawn - hit) for hit in range(min(most, drawn) + 1)
    ) / math.comb(of, drawn)
