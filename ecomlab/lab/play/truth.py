"""What nobody is shown while an episode is played: what was wanted and withheld, what was to happen, and the reward."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ecomlab.lab.play.results import worded
from ecomlab.reward import WEIGHTS, Score
from ecomlab.task import ACT, LOOK, Event, Goal, GoalChange, Instead, SellOut, Task
from ecomlab.values import FORMATS, MONTHS, money

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
AT_MOST, AT_LEAST = ("price", "budget", "days"), ("rating",)


@dataclass(frozen=True)
class Fact:
    """One line of the truth."""

    about: str
    """The subtask and the item: "CART: Yoga Mat"."""
    what: str
    """wanted, withheld, or when it was to happen."""
    text: str


@dataclass(frozen=True)
class Part:
    """One part of a reward."""

    name: str
    value: float
    weight: float
    adds: float


def truth_of(task: Task) -> list[Fact]:
    """List what the customer wanted, what of it they withheld, and what was to happen; a journey's by subtask."""
    found = []
    for subtask in task.parts:
        named = f"{subtask.env}: " if task.subtasks else ""
        for item in subtask.goal.items:
            about = named + str(subtask.goal.get("type", "", item))
            for withheld in (False, True):
                slots = [slot for slot in subtask.goal.said(withheld) if slot.item == item]
                text = "; ".join(slot_in_words(slot.name, slot.value) for slot in slots)
                if text or not withheld:
                    found.append(Fact(about, "withheld until asked" if withheld else "said at once", text))
        for name, value in subtask.goal.unsaid.items():
            found.append(Fact(named.removesuffix(": "), "never said", slot_in_words(name, value)))
        for event in subtask.events:
            about = named + str(subtask.goal.get("type", "", event.item))
            found.append(Fact(about, f"after {moment_of(event)}", event_in_words(event)))
    for number, event in task.interrupts:
        inner, outer = task.parts[number + 1].env, task.parts[number].env
        found.append(Fact(outer, f"after {moment_of(event)}", f"interrupted by {inner}"))
    return found


def wanted(goals: list[tuple[str, Goal]]) -> Iterator[Fact]:
    """List what is wanted by goals as they are now, each with its environment's name, or "" for a single one."""
    for env, goal in goals:
        for item in goal.items:
            slots = {name: value for name, value in goal.of(item).items() if name != "type"}
            text = "; ".join(slot_in_words(name, value) for name, value in slots.items())
            about = f"{env}: " * bool(env) + str(goal.get("type", "", item))
            yield Fact(about.removesuffix(": "), "wanted in the end", text)


def parts_of(score: Score) -> list[Part]:
    """List the parts of a reward with their weights and what they add to it."""
    weights = {name: WEIGHTS.get(name, 1.0) for name in score.parts}
    return [Part(name, value, weights[name], value * weights[name]) for name, value in score.parts.items()]


def slot_in_words(name: str, value: Any) -> str:
    """Write a slot of a goal: amounts in dollars, ratings in stars, bounds as bounds."""
    label = name.removeprefix("attr:").replace("_", " ")
    if name in ("price", "budget") and isinstance(value, int):
        text = money(value)
    elif name == "rating" and isinstance(value, int):
        text = FORMATS["stars"].write(value)
    elif name == "replacement" and isinstance(value, list | tuple) and len(value) == 2:
        text = slot_in_words(str(value[0]), value[1])
    elif name == "placed" and isinstance(value, str) and value[-5:-3].isdigit():
        text = f"{MONTHS[int(value[-5:-3]) - 1]} {int(value[-2:])}"
    else:
        text = worded(value)
    bound = "at most " if name in AT_MOST else "at least " if name in AT_LEAST else ""
    return f"{label}: {bound}{text}"


def moment_of(event: Event) -> str:
    """Describe when an event happens, at the latest when the agent first hands in."""
    if isinstance(event, Instead):
        return "hearing of it"
    return {LOOK: "a look at the type", ACT: "a first act or proposal"}.get(event.moment, event.moment)


def event_in_words(event: Event) -> str:
    """Describe an event: its kind and what it changes."""
    if isinstance(event, SellOut):
        options = " (options)" if event.of == "options" else ""
        return f"sells out: {event.share:.0%} of {', '.join(event.types)}{options}"
    if isinstance(event, Instead):
        other = "; ".join(slot_in_words(name, value) for name, value in event.slots.items())
        return f"would take {PREFERS[event.prefers]}" + (f", or else {other}" if other else "")
    if isinstance(event, GoalChange):
        slots = dict(event.slots)
        told = [slot_in_words(n, v) for n, v in slots.items() if n != "correction"]
        if "correction" in slots:  # of an order: in steps from the one first asked about
            told.append(f"order: {slots['correction']:+d} from the one asked about")
        return f"{HOW[event.how]} {'; '.join(told)}".rstrip()
    return type(event).__name__
