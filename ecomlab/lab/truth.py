"""What nobody is shown while an episode is played, in words: wishes, withheld slots, events, parts of the reward."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ecomlab.customer.templates import Phrases
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.reward import Score
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import ACT, LOOK, Event, Goal, GoalChange, Instead, SellOut, Task
from ecomlab.wishes import (
    AnyBut,
    Earlier,
    Of,
    OneOf,
    Packs,
    Taste,
    amount_words,
    delivery_words,
    of_phrase,
    or_list,
    packs_phrase,
)
from ecomlab.world.substitutes import noun

HOW = {
    "set": "changed:",
    "add": "adds an item:",
    "drop": "no longer wants this item",
    "replace": "wants another item instead:",
    "anew": "corrects the request:",
}
"""Goal changes in words."""
PREFERS = {
    "option": "another option",
    "quantity": "as many as are left",
    "replace": "another product",
    "drop": "to leave it out",
}
"""What is preferred instead of what has run short, in words."""
BOUNDS = {"<=": "at most ", ">=": "at least ", "==": ""}
"""Directions of limits in words."""
CALLED = {"must": "must be the same", "days": "delivery", "said": "reviews", "worth": "would pay"}
"""Slots whose names say too little by themselves."""
REWORDS = "twist"
"""A slot that only tells how a change is worded."""
SAID, WITHHELD = "said at once", "withheld until asked"
NOTHING = "nothing in particular"
"""Of an item of which nothing but its type is wanted."""


@dataclass(frozen=True)
class Fact:
    """One line of the truth."""

    about: str
    """The subtask and the item: "CART: Yoga Mat"; empty where there is but one and it has no type."""
    what: str
    """wanted, withheld, or when it was to happen."""
    text: str

    def __str__(self) -> str:
        return f"{', '.join(filter(None, [self.about, self.what]))}: {self.text}"


def truth_of(task: Task) -> list[Fact]:
    """List what the customer wanted, what of it they withheld, and what was to happen; a journey's by subtask."""
    found = []
    for subtask in task.parts:
        named, phrases = f"{subtask.env}: " * bool(task.subtasks), ENVIRONMENTS[subtask.env].phrases
        for item in subtask.goal.items:
            about = (named + str(subtask.goal.get("type", "", item))).removesuffix(": ")
            for withheld in (False, True):
                slots = [slot for slot in subtask.goal.said(withheld) if slot.item == item]
                text = _told(((slot.name, slot.value) for slot in slots), phrases)
                if text or not withheld:
                    found.append(Fact(about, WITHHELD if withheld else SAID, text or NOTHING))
        for name, value in subtask.goal.unsaid.items():
            found.append(Fact(named.removesuffix(": "), "never said", f"{name.replace('_', ' ')}: {value}"))
        for event in subtask.events:
            about = (named + str(subtask.goal.get("type", "", event.item))).removesuffix(": ")
            found.append(Fact(about, f"after {moment_in_words(event)}", event_in_words(event, phrases)))
    for number, event in task.interrupts:
        inner, outer = task.parts[number + 1].env, task.parts[number].env
        found.append(Fact(outer, f"after {moment_in_words(event)}", f"interrupted by {inner}"))
    return found


def wanted(goals: list[tuple[str, Goal]]) -> Iterator[Fact]:
    """List what is wanted by goals as they are now, each with its environment."""
    for env, goal in goals:
        phrases, named = ENVIRONMENTS[env].phrases, f"{env}: " * (len(goals) > 1)
        for item in goal.items:
            slots = {name: value for name, value in goal.of(item).items() if name != "type"}
            text = _told(slots.items(), phrases)
            about = named + str(goal.get("type", "", item))
            yield Fact(about.removesuffix(": "), "wanted in the end", text or NOTHING)


def score_in_lines(score: Score) -> list[str]:
    """Write a score: the reward and the reason, then a line for each part."""
    verdict = "unscored" if score.unscored else "correct" if score.correct else "not correct"
    weighted = ((name, value, score.weights.get(name, 1.0)) for name, value in score.parts.items())
    return [
        f"reward {score.value:.3f}, {verdict}: {score.why}",
        *(f"{name} {value:.3f} x {weight:.2f} = {value * weight:.3f}" for name, value, weight in weighted),
    ]


def slot_in_words(name: str, value: Any, phrases: Phrases, called: str = "") -> str:
    """Write a slot: its name, or what the customer calls it, whether it is a bound, and its value; or the first of the
    customer's whole sentences for it."""
    own = phrases.slots.get(name)
    named = "asks" if name.startswith("ask_") else called or CALLED.get(name) or name.removeprefix("attr:")
    if own and isinstance(value, str) and value in own.sentences:
        return f'{named.replace("_", " ")}: "{own.sentences[value][0]}"'
    return f"{named.replace('_', ' ')}: {BOUNDS[slot_type(name).op]}{value_in_words(name, value, phrases)}"


def value_in_words(name: str, value: Any, phrases: Phrases) -> str:
    """Write the value of a slot as the customer would, $12.50 for 1250; what has no words is JSON."""
    if isinstance(value, Of):
        described = (value.described.get(part) for part in ("brand", "feature", "type"))
        return of_phrase(noun(name.removeprefix("attr:")), " ".join(filter(None, described)), value)
    if isinstance(value, Earlier):
        return amount_words(value) if name == PRICE.name else delivery_words(value)
    if isinstance(value, Packs):
        return packs_phrase(value)
    if isinstance(value, Taste):
        return f"{or_list(value.values)}, known when seen"
    if isinstance(value, OneOf | AnyBut):
        return "not " * isinstance(value, AnyBut) + or_list(value.values)
    own = phrases.slots.get(name)
    form = own.format if own else slot_type(name).format
    if form is None:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return form.write(value)


def moment_in_words(event: Event) -> str:
    """Describe when an event happens, at the latest at the agent's first submit."""
    if isinstance(event, Instead):
        return "being told"
    return {LOOK: "a look at the type", ACT: "a first change or proposal"}.get(event.moment, event.moment)


def event_in_words(event: Event, phrases: Phrases) -> str:
    """Describe an event: its kind and what it changes."""
    if isinstance(event, SellOut):
        options = " (options)" if all(option for _, option, _ in event.left) else ""
        count = len({product_id for product_id, _, _ in event.left})
        return f"sold out: {count} of {', '.join(event.types)}{options}"
    if isinstance(event, Instead):
        return f"prefers {PREFERS[event.prefers]}, else {_told(event.slots.items(), phrases)}"
    if isinstance(event, GoalChange):
        return f"{HOW[event.how]} {_told(event.slots.items(), phrases)}".rstrip()
    return type(event).__name__


def _told(slots: Iterable[tuple[str, Any]], phrases: Phrases) -> str:
    return "; ".join(slot_in_words(name, value, phrases) for name, value in slots if name != REWORDS)
