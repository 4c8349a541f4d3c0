"""The questions that customers ask of an order: what they are, when each can be asked, and their right answers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.answers.dates import day_of
from ecomlab.catalog import Shop
from ecomlab.customer.ear import WHOLE
from ecomlab.customer.telling import Asked
from ecomlab.seeding import pick, shuffled
from ecomlab.task import Goal
from ecomlab.values import WEEKDAYS
from ecomlab.world.orders.history import Order
from ecomlab.world.orders.references import look, resolve
from ecomlab.world.state import World

WEEK = 6
"""Days ahead that a weekday names."""
EARLIER, LATER = 3, 2
"""Most days by which a deadline lies before or after the last arrival."""


@dataclass(frozen=True)
class Facts:
    """What an order's record says, whoever reads it."""

    placed: date
    arrivals: Sequence[date]
    """Of each parcel, delivered or expected."""
    items: Mapping[str, date]
    """Arrival by type of the item; empty for a cancelled order."""
    prices: Sequence[tuple[int | None, int]]
    """Cents of a unit, and units, by line."""
    returned: bool = False

    @classmethod
    def of_order(cls, order: Order, shop: Shop) -> "Facts":
        """Read an order of the world."""
        kinds = [item["type"] for item in look([order], shop)[0]["items"]]
        lines = [
            {**line, "type": kind, "cents": line["price_cents"]}
            for line, kind in zip(order["lines"], kinds, strict=True)
        ]
        return cls._of(order, lines)

    @classmethod
    def of_shown(cls, shown: Mapping[str, Any]) -> "Facts":
        """Read an order as the tool shows it."""
        prices = [line["price"] for line in shown["lines"]]
        cents = [None if price is None else round(100 * price) for price in prices]
        return cls._of(
            shown, [{**line, "cents": one} for line, one in zip(shown["lines"], cents, strict=True)]
        )

    @classmethod
    def _of(cls, order: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> "Facts":
        days = [parcel.get("delivered") or parcel["expected"] for parcel in order["parcels"]]
        arrivals = tuple(map(date.fromisoformat, days))
        items = {line["type"]: arrivals[line["parcel"] - 1] for line in lines if line["parcel"]}
        prices = tuple((line["cents"], line["quantity"]) for line in lines)
        sent_back = any(line["returned"] for line in lines)
        return cls(date.fromisoformat(order["placed"]), arrivals, items, prices, sent_back)

    @property
    def size(self) -> int:
        """Number of values behind an answer."""
        return len(self.arrivals) + len(self.prices)


def arrives_by(facts: Facts, today: date, deadline: str) -> str | None:
    """Will all of it be here by then?"""
    return ("yes" if max(facts.arrivals) <= day_of(deadline, today) else "no") if facts.arrivals else None


def days_between(facts: Facts, today: date, kind: str) -> int | None:
    """How many days is it to or from the arrival of an item?"""
    day = facts.items.get(kind)
    return abs((day - today).days) if day else None


def days_taken(facts: Facts, today: date, _: str) -> int | None:
    """How many days is it from the order to the last arrival?"""
    return (max(facts.arrivals) - facts.placed).days if facts.arrivals else None


def paid(facts: Facts, today: date, _: str) -> int | None:
    """What did it all cost?"""
    known = [price * units for price, units in facts.prices if price is not None]
    return sum(known) if len(known) == len(facts.prices) else None


VALUES: Mapping[str, Callable[[Facts, date, str], Any]] = {
    "ask_by": arrives_by,
    "ask_days": days_between,
    "ask_took": days_taken,
    "ask_paid": paid,
}
"""The right answer by slot; None where the question makes no sense."""


def _value(slot: str) -> Callable[[Goal, World], Any]:
    def value(goal: Goal, world: World) -> Any:
        orders, today = world.given["orders"], date.fromisoformat(world.given["today"])
        (at,) = resolve(look(orders, world.shop), goal.of(), today)
        return VALUES[slot](Facts.of_order(orders[at], world.shop), today, goal.asks[slot])

    return value


QUESTIONS = (
    Asked("ask_by", "yes", _value("ask_by"), "{}.", r"\bby then\b|\b[io]n time\b", True),
    Asked("ask_days", "days", _value("ask_days"), "Between today and its arrival lie {}.",
          r"\btoday\b|\bago\b|\b(?:un)?till?\b|\bnow\b|\bto go\b|\baway\b|\bpassed\b|\bhas been\b", True),
    Asked("ask_took", "days", _value("ask_took"), "From the order to the last delivery it's {} in all.",
          rf"{WHOLE}|\blast\b|\bfinal\b|\bcomplete|\bafter (?:the|you|your) |\bstart to finish\b"),
    Asked("ask_paid", "money", _value("ask_paid"), "In total it cost {}.",
          WHOLE),
)  # fmt: skip
KINDS = {"by": {"ask_by"}, "days": {"ask_days", "ask_took"}, "paid": {"ask_paid"}}
"""Kinds of questions, of which a customer asks each once, and their slots."""


def draw_question(
    kind: str, facts: Facts, today: date, named: Collection[str], random: np.random.Generator
) -> tuple[str, Any] | None:
    """Draw (slot, value) of a question of this kind about an order; None where it would make no sense, or somebody who
    names the first value that they see would be right. It may speak of the items that are `named`."""
    if not facts.arrivals:
        return None
    if kind == "by":
        left = (max(facts.arrivals) - today).days
        if left < 2:
            return None
        near = left <= WEEK
        if random.random() < 0.5:
            ahead = min(left + int(random.integers(LATER + 1)), WEEK if near else left + LATER)
        else:
            ahead = max(1, left - 1 - int(random.integers(EARLIER)))
        day = today + timedelta(days=ahead)
        return "ask_by", WEEKDAYS[day.weekday()] if near else day.isoformat()[5:]
    if kind == "paid":
        several = len(facts.prices) > 1 and not facts.returned
        return ("ask_paid", "all") if several and paid(facts, today, "") is not None else None
    kinds = [name for name in facts.items if name in named and days_between(facts, today, name)]
    if kinds and random.random() < 0.5:
        return "ask_days", pick(random, kinds)
    return "ask_took", "all"


def draw_questions(
    kinds: Sequence[str], facts: Facts, today: date, named: Collection[str], random: np.random.Generator
) -> dict[str, Any] | None:
    """Draw a question of each of these kinds; None where one makes no sense of this order."""
    drawn = [draw_question(kind, facts, today, named, random) for kind in kinds]
    return None if None in drawn else dict(one for one in shuffled(random, drawn) if one)
