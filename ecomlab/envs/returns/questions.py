"""The questions that customers ask of a return: what they are, when each makes sense, and their right answers."""

from collections.abc import Callable, Collection
from typing import Any

from ecomlab.customer.replacements import rows_of
from ecomlab.customer.telling import Asked
from ecomlab.task import Goal
from ecomlab.world.orders.history import Line, Order, delivered
from ecomlab.world.orders.lines import line_meant
from ecomlab.world.orders.returns import Outcome, judge
from ecomlab.world.state import World


def _value(slot: str) -> Callable[[Goal, World], Any]:
    def value(goal: Goal, world: World) -> Any:
        _, line, outcome, cheapest = _known(goal, world)
        return right(slot, outcome, line, goal.of().get("units", 1), cheapest)

    return value


def _known(goal: Goal, world: World) -> tuple[Order, Line, Outcome, int | None]:
    """Find the line that is meant, what the book says of it, and the price of the cheapest replacement."""
    slots = goal.of()
    order, line = line_meant(slots, world.given["orders"], world.shop)
    rows = world.in_stock(rows_of(slots["replacement"], line, world))
    cheapest = int(world.catalog.price_cents[rows].min()) if len(rows) else None
    return order, line, judge(world.given, order, line, slots, world.catalog), cheapest


def _beside(slot: str) -> Callable[[Goal, World], Collection[Any]]:
    def beside(goal: Goal, world: World) -> Collection[Any]:
        order, line, outcome, cheapest = _known(goal, world)
        if slot == "ask_until":
            return [order["placed"], delivered(order, line)]
        units = goal.of().get("units", 1)
        others = [cheapest]
        if slot == "ask_more":
            others += [right("ask_back", outcome, line, units, cheapest), line["price_cents"]]
        answer = right(slot, outcome, line, units, cheapest)
        return [one for one in others if one != answer]  # a difference may come to the same as a price

    return beside


def right(slot: str, outcome: Outcome, line: Line, units: int, cheapest: int | None) -> Any:
    """Find the right answer to a question about a return: cents, a day, or None where there is nothing to answer, as
    where nothing goes back. `cheapest` is the price of the cheapest product that may replace it."""
    if not outcome.goes:
        return None
    if slot == "ask_until":
        assert outcome.last_day is not None
        return outcome.last_day.isoformat()
    if line["price_cents"] is None:
        return None
    back = outcome.back(line["price_cents"], units)
    if slot == "ask_back":
        return back
    return None if cheapest is None else abs(cheapest - back)


def at_first_sight(slot: str, standard_day: str | None, price: int | None, cheapest: int | None) -> Any:
    """Find the first value that tools show for a question, which who works nothing out takes for the answer."""
    return {"ask_until": standard_day, "ask_back": price, "ask_more": cheapest}[slot]


_DIFFERENCE = (
    r"\bdifferen\w+|\bdiffers?\b|\bgap\b|\bapart\b|\bon top\b|\b(?:more|less|extra|cheaper|higher|lower)\b"
)
QUESTIONS = (
    Asked("ask_back", "money", _value("ask_back"), "You get {} back.",
          r"\bback\b|\brefund|\bcredit|\byou(?:'ll)? get\b", until_refused=True, beside=_beside("ask_back")),
    Asked("ask_until", "day", _value("ask_until"), "The last day to send it back is {}.",
          r"\blast day\b|\buntil\b|\bby\b|\blatest\b|\bdeadline\b|\bwindow\b", until_refused=True,
          beside=_beside("ask_until")),
    Asked("ask_more", "money", _value("ask_more"), "The difference between that and the cheapest one is {}.",
          _DIFFERENCE, until_refused=True, beside=_beside("ask_more")),
)  # fmt: skip
