"""Slots of a goal and events of a task in words: what is wanted, when something happens, and what it changes."""

import json
from typing import Any

from ecomlab.customer.templates import Phrases
from ecomlab.slots import slot_type
from ecomlab.task import ACT, LOOK, Event, GoalChange, Instead, SellOut

HOW = {
    "set": "now wants",
    "add": "adds",
    "drop": "gives up",
    "replace": "wants instead",
    "anew": "wants something else:",
}
"""Goal changes in words."""
PREFERS = {
    "option": "another option",
    "quantity": "as many as there are",
    "replace": "another product",
    "drop": "nothing",
}
"""What is preferred instead of what has run short, in words."""
BOUNDS = {"<=": "at most ", ">=": "at least ", "==": ""}
"""Directions of limits in words."""
CALLED = {"must": "must be the same"}
"""Slots whose names say too little by themselves."""


def slot_in_words(name: str, value: Any, phrases: Phrases, called: str = "") -> str:
    """Write a slot: its name, or what the customer calls it, whether it is a bound, and its value."""
    said = (called or CALLED.get(name) or name.removeprefix("attr:")).replace("_", " ")
    return f"{said}: {BOUNDS[slot_type(name).op]}{value_in_words(name, value, phrases)}"


def value_in_words(name: str, value: Any, phrases: Phrases) -> str:
    """Write the value of a slot as the customer would, $12.50 for 1250; what has no words is JSON."""
    own = phrases.slots.get(name)
    form = own.format if own else slot_type(name).format
    if form is None:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return form.write(value)


def moment_in_words(event: Event) -> str:
    """Describe when an event happens, at the latest when the agent first hands in."""
    if isinstance(event, Instead):
        return "hearing of it"
    return {LOOK: "a look at the type", ACT: "a first act or proposal"}.get(event.moment, event.moment)


def event_in_words(event: Event, phrases: Phrases) -> str:
    """Describe an event: its kind and what it changes."""
    if isinstance(event, SellOut):
        options = " (options)" if event.of == "options" else ""
        return f"sells out: {event.share:.0%} of {', '.join(event.types)}{options}"
    if isinstance(event, Instead):
        return f"would take: {PREFERS[event.prefers]}, or {_told(event.slots.items(), phrases)}"
    if isinstance(event, GoalChange):
        return f"{HOW[event.how]} {_told(event.slots.items(), phrases)}".rstrip()
    return type(event).__name__


def _told(slots: Any, phrases: Phrases) -> str:
    return "; ".join(slot_in_words(name, value, phrases) for name, value in slots)
