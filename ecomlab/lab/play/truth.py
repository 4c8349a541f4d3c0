"""What nobody is shown while an episode is played: what was wanted and withheld, what was to happen, and the reward."""

from collections.abc import Iterator
from dataclasses import dataclass

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.lab.events import event_in_words, moment_in_words, slot_in_words
from ecomlab.reward import Score
from ecomlab.task import Goal, Task

WITHHELD = "withheld until asked"
NOTHING = "nothing in particular"
"""Of an item of which nothing but its type is wanted."""
MEANS = {
    "task": "what was handed in, from -1 to 1, which is correct",
    "efficiency": "-1 unless correct; else 1, less the shares of the slack of turns and of calls that were used",
    "hallucination": "0, less the share of the products handed in that no tool had shown",
    "invalid": "a message that is no valid call or text ends the episode",
}
"""What a part of a reward measures, in words."""


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


@dataclass(frozen=True)
class Part:
    """One part of a reward."""

    name: str
    value: float
    weight: float
    adds: float

    @property
    def means(self) -> str:
        """What it measures, in words; empty for one that is not known here."""
        return MEANS.get(self.name, "")


def truth_of(task: Task) -> list[Fact]:
    """List what the customer wanted, what of it they withheld, and what was to happen; a journey's by subtask."""
    found = []
    for subtask in task.parts:
        named, phrases = f"{subtask.env}: " * bool(task.subtasks), ENVIRONMENTS[subtask.env].phrases
        for item in subtask.goal.items:
            about = (named + str(subtask.goal.get("type", "", item))).removesuffix(": ")
            for withheld in (False, True):
                slots = [slot for slot in subtask.goal.said(withheld) if slot.item == item]
                text = "; ".join(slot_in_words(slot.name, slot.value, phrases) for slot in slots)
                if text or not withheld:
                    found.append(Fact(about, WITHHELD if withheld else "said at once", text or NOTHING))
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
            text = "; ".join(slot_in_words(name, value, phrases) for name, value in slots.items())
            about = named + str(goal.get("type", "", item))
            yield Fact(about.removesuffix(": "), "wanted in the end", text or NOTHING)


def parts_of(score: Score) -> list[Part]:
    """List the parts of a reward with their weights and what they add to it."""
    weights = {name: score.weights.get(name, 1.0) for name in score.parts}
    return [Part(name, value, weights[name], value * weights[name]) for name, value in score.parts.items()]
