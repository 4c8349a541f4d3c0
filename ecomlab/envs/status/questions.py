"""The questions that customers ask of an order: what they are, when each can be asked, and their right answers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.answers.dates import day_of
from ecomlab.catalog import Shop
from ecomlab.customer.ear import WHOLE
from ecomlab.customer.telling import Asked
from ecomlab.seeding import pick, shuffled
from ecomlab.task import Goal
from ecomlab.values import WEEKDAYS, in_speech
from ecomlab.world.orders.chains import holds
from ecomlab.world.orders.history import Order
from ecomlab.world.orders.references import look, resolve
from ecomlab.world.state import World

MOST_ASKED = 3
"""Most questions that a customer asks at once; what is more has an answer behind which more orders stand."""
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
    types: Sequence[str] = ()
    """Of each line."""
    open: Sequence[date] = ()
    """Expected arrivals of the parcels that have not been delivered."""
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
        types = tuple(line["type"] for line in lines)
        still = tuple(
            day for day, one in zip(arrivals, order["parcels"], strict=True) if "delivered" not in one
        )
        return cls(date.fromisoformat(order["placed"]), arrivals, items, prices, types, still, sent_back)


def arrives_by(at: int, every: Sequence[Facts], today: date, deadline: str) -> str | None:
    """Will all of it be here by then?"""
    return _by(every[at].arrivals, today, deadline)


def all_arrive_by(at: int, every: Sequence[Facts], today: date, deadline: str) -> str | None:
    """Will everything of all orders be here by then?"""
    return _by([day for facts in every for day in facts.open], today, deadline)


def _by(days: Sequence[date], today: date, deadline: str) -> str | None:
    day = day_of(deadline, today)
    return ("yes" if max(days) <= day else "no") if days and day else None


def days_between(at: int, every: Sequence[Facts], today: date, kind: str) -> int | None:
    """How many days is it to or from the arrival of an item?"""
    day = every[at].items.get(kind)
    return abs((day - today).days) if day else None


def days_taken(at: int, every: Sequence[Facts], today: date, _: str) -> int | None:
    """How many days is it from the order to the last arrival?"""
    facts = every[at]
    return (max(facts.arrivals) - facts.placed).days if facts.arrivals else None


def last_due(at: int, every: Sequence[Facts], today: date, _: str) -> str | None:
    """When does the last parcel of all orders come?"""
    days = [day for facts in every for day in facts.open]
    return max(days).isoformat() if days else None


def left(at: int, every: Sequence[Facts], today: date, _: str) -> int | None:
    """How many parcels of all orders have not been delivered?"""
    return sum(len(facts.open) for facts in every)


def paid(at: int, every: Sequence[Facts], today: date, _: str) -> int | None:
    """What did it all cost?"""
    return _sum(every[at : at + 1])


def spent(at: int, every: Sequence[Facts], today: date, count: int) -> int | None:
    """What did the last so many orders cost?"""
    return _sum(every[:count]) if count <= len(every) else None


def spent_with(at: int, every: Sequence[Facts], today: date, kind: str) -> int | None:
    """What did all orders with an item of a type cost?"""
    return _sum([facts for facts in every if _has(facts, kind)])


def _sum(some: Sequence[Facts]) -> int | None:
    prices = [one for facts in some for one in facts.prices]
    known = [price * units for price, units in prices if price is not None]
    return sum(known) if prices and len(known) == len(prices) else None


def _has(facts: Facts, kind: str) -> bool:
    return any(in_speech(name) == in_speech(kind) for name in facts.types)


VALUES: Mapping[str, Callable[[int, Sequence[Facts], date, Any], Any]] = {
    "ask_by": arrives_by,
    "ask_days": days_between,
    "ask_took": days_taken,
    "ask_paid": paid,
    "ask_all_by": all_arrive_by,
    "ask_due": last_due,
    "ask_left": left,
    "ask_spent": spent,
    "ask_spent_with": spent_with,
}
"""The right answer by slot, from the place of the order that is meant and all of them; None where the question makes
no sense."""


def looked_into(slot: str, value: Any, listed: Sequence[Mapping[str, Any]]) -> list[int]:
    """List the orders that a question needs looked into, beside the one that is meant."""
    if slot in ("ask_all_by", "ask_due", "ask_left"):
        return list(range(len(listed)))
    if slot == "ask_spent":
        return list(range(min(value, len(listed))))
    if slot == "ask_spent_with":
        return [i for i, order in enumerate(listed) if holds(order, value)]
    return []


def _known(goal: Goal, world: World) -> tuple[int, list[Facts], date]:
    """Find the place of the order that is meant among all, what their records say, and the day."""
    orders, today = world.given["orders"], date.fromisoformat(world.given["today"])
    (at,) = resolve(look(orders, world.shop), goal.of(), today)
    return at, [Facts.of_order(order, world.shop) for order in orders], today


def _value(slot: str) -> Callable[[Goal, World], Any]:
    return lambda goal, world: VALUES[slot](*_known(goal, world), goal.asks[slot])


def _beside(slot: str) -> Callable[[Goal, World], Collection[Any]]:
    """Make what lists the days on which orders were placed, how long ago that was of the one that is meant, or prices
    of lines and of single orders, as far as none of these can be the answer."""

    def beside(goal: Goal, world: World) -> Collection[Any]:
        at, every, today = _known(goal, world)
        if slot == "ask_due":  # nor the day that another question names
            named = day_of(goal.asks.get("ask_all_by", ""), today)
            right = VALUES[slot](at, every, today, goal.asks[slot])
            days = {facts.placed.isoformat() for facts in every}
            return days | ({named.isoformat()} - {right} if named else set())
        if slot == "ask_took":
            return [(today - every[at].placed).days] if today not in every[at].arrivals else ()
        if slot not in KINDS["money"]:
            return ()
        lines = {cents * some for facts in every for cents, n in facts.prices if cents for some in (1, n)}
        several = slot != "ask_paid" and goal.asks[slot] != 1
        return lines | ({_sum([facts]) for facts in every} if several else set())

    return beside


_ALL = r"\bacross\b|\ball\b|\beverything\b|\borders\b|\bstill\b|\bwaiting\b|\bopen\b"
_QUESTIONS = (
    Asked("ask_by", "yes", _value("ask_by"), "{}.", r"\bby then\b|\b[io]n time\b", True),
    Asked("ask_days", "days", _value("ask_days"), "Between today and its arrival lie {}.",
          r"\btoday\b|\bago\b|\b(?:un)?till?\b|\bnow\b|\bto go\b|\baway\b|\bpassed\b|\bhas been\b", True),
    Asked("ask_took", "days", _value("ask_took"), "From the order to the last delivery it's {} in all.",
          rf"{WHOLE}|\blast\b|\bfinal\b|\bcomplete|\bafter (?:the|you|your) |\bstart to finish\b"),
    Asked("ask_paid", "money", _value("ask_paid"), "In total it cost {}.", WHOLE),
    Asked("ask_all_by", "yes", _value("ask_all_by"), "{}.", r"\bby then\b|\b[io]n time\b", True),
    Asked("ask_due", "day", _value("ask_due"), "The last of all parcels comes on {}.",
          rf"{_ALL}|\blast\b|\blatest\b|\bfinal|\bcomplete"),
    Asked("ask_left", "count", _value("ask_left"), "Across all orders, {} parcels are still to come.",
          rf"{_ALL}|\bparcels?\b|\bundelivered|\bleft\b|\bto come\b|\bmissing\b|\boutstanding|\bpending"
          r"|\byet\b|\bon (?:its|the|their) way\b|\bnot\b|n't\b|\btotal|\baltogether"),
    *(
        Asked(slot, "money", _value(slot), "All those orders together cost {}.", rf"{WHOLE}|{_ALL}")
        for slot in ("ask_spent", "ask_spent_with")
    ),
)  # fmt: skip
QUESTIONS = tuple(replace(one, beside=_beside(one.slot)) for one in _QUESTIONS)
KINDS: Mapping[str, tuple[str, ...]] = {
    "yes": ("ask_by", "ask_all_by"),
    "days": ("ask_days", "ask_took"),
    "money": ("ask_paid", "ask_spent", "ask_spent_with"),
    "day": ("ask_due",),
    "count": ("ask_left",),
}
"""Slots by the kind of their values: a customer asks at most one of each, so that an answer is to one of them."""


def draw_question(
    slots: Sequence[str],
    at: int,
    every: Sequence[Facts],
    today: date,
    named: Collection[str],
    size: int,
    random: np.random.Generator,
) -> tuple[str, Any] | None:
    """Draw (slot, value) of one of these questions, behind which `size` values stand where there are so
    many; None where none would make sense, or somebody who names the first value that they see would be right. It may
    speak of the items that are `named`."""
    facts, waiting = every[at], [day for one in every for day in one.open]
    if not facts.arrivals:
        return None
    for slot in shuffled(random, [slot for slot in slots if slot in OF_ONE or size > 1]):
        value: Any
        if slot == "ask_by":
            value = _deadline(max(facts.arrivals), today, random)
        elif slot == "ask_all_by":
            later = waiting and max(waiting) != max(facts.arrivals)
            value = _deadline(max(waiting), today, random) if later else None
        elif slot == "ask_due":
            value = "all" if waiting and max(waiting) not in facts.arrivals else None
        elif slot == "ask_left":
            value = "all" if len(waiting) > 1 else None
        elif slot == "ask_paid":
            value = "all" if len(facts.prices) > 1 and not facts.returned else None
        elif slot == "ask_spent":
            value = _most_spent(every, size, random)
        elif slot == "ask_spent_with":
            kinds = {name for one in every for name in one.types if name in named}
            some = {name: [one for one in every if name in one.types] for name in sorted(kinds)}
            able = [name for name, held in some.items() if len(held) > 1 and all(map(_is_plain, held))]
            value = pick(random, able) if able else None
        elif slot == "ask_days":
            kinds = {name for name in facts.items if name in named and days_between(at, every, today, name)}
            value = pick(random, sorted(kinds)) if kinds else None
        else:
            value = "all"
        if value is not None and VALUES[slot](at, every, today, value) is not None:
            return slot, value
    return None


OF_ONE = ("ask_by", "ask_days", "ask_took", "ask_paid")
"""Questions about the order alone."""


def _is_plain(facts: Facts) -> bool:
    """Tell whether it is plain what was paid for an order: neither cancelled nor in part sent back."""
    return bool(facts.arrivals) and not facts.returned


def _most_spent(every: Sequence[Facts], size: int, random: np.random.Generator) -> int | None:
    """Draw of how many latest orders the sum is asked: around `size`, as far as it is plain."""
    plain = next((i for i, facts in enumerate(every) if not _is_plain(facts)), len(every))
    return min(plain, size + int(random.integers(2))) if plain > 1 else None


def _deadline(last: date, today: date, random: np.random.Generator) -> str | None:
    """Draw a day near the last arrival, before it or not."""
    left = (last - today).days
    if left < 2:
        return None
    near = left <= WEEK
    if random.random() < 0.5:
        ahead = min(left + int(random.integers(LATER + 1)), WEEK if near else left + LATER)
    else:
        ahead = max(1, left - 1 - int(random.integers(EARLIER)))
    day = today + timedelta(days=ahead)
    return WEEKDAYS[day.weekday()] if near else day.isoformat()[5:]


def draw_questions(
    kinds: Sequence[Sequence[str]],
    at: int,
    every: Sequence[Facts],
    today: date,
    named: Collection[str],
    size: int,
    random: np.random.Generator,
) -> dict[str, Any] | None:
    """Draw one of each of these groups of questions; None where none of a group makes sense of this order."""
    drawn = [draw_question(slots, at, every, today, named, size, random) for slots in kinds]
    return None if None in drawn else dict(one for one in shuffled(random, drawn) if one)
