"""Telling: the questions that a customer asks in their turn, and the answers that the agent has told them.

An environment declares its questions as `Asked`; a goal that holds one under `asks` has it asked in the opening, or
later by a goal change. The last clear answer in any message of the agent counts, and is kept in `World.told`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from ecomlab.customer.acts import Act
from ecomlab.customer.ear import Kind, Told, listen
from ecomlab.reward import Fault, Verdict
from ecomlab.task import Goal
from ecomlab.values import FORMATS
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import TODAY

SURE = 2
"""Ties to a question that make an answer clear, which takes the place of an earlier one."""
SHARE = 0.1
"""Share of the credit that the answers have."""
_WRITE: dict[str, Callable[[Any], str]] = {
    "money": FORMATS["money"].write,
    "day": FORMATS["day"].write,
    "days": FORMATS["days"].write,
    "count": str,
    "yes": str.capitalize,
}


@dataclass(frozen=True)
class Asked:
    """A question that a customer may ask: a slot of their phrases whose sentences ask it."""

    slot: str
    kind: Kind
    value: Callable[[Goal, World], Any]
    """The right answer, by the customer's goal and the world as it stands; None where there is nothing to answer."""
    answer: str
    """A sentence that answers it, with {} for the value."""
    marks: str
    """Pattern of words by which a sentence is an answer to it, and not about something else."""
    about: bool = False
    """Its value names the thing or the day that it is about."""
    until_refused: bool = False
    """Who has heard a refusal has no more to ask: asked again or not would tell whether it was right."""
    case: Callable[[Any], str] | None = None
    """Pattern, by its value, of words that tell its answer from what has to be told beside it: those of another case,
    or of a difference."""
    beside: Callable[[Goal, World], Collection[Any]] = lambda goal, world: ()
    """Values of its kind that belong to something else in the world, right or not."""

    def say(self, value: Any) -> str:
        """Answer the question."""
        return self.answer.format(_WRITE[self.kind](value))


def read(text: str, asked: Asked, today: date, about: Any = None, beside: Collection[Any] = ()) -> Told:
    """Read what a message tells of a question; `about` is the value with which it was asked, and the values `beside`
    belong to something else in the world."""
    case = asked.case(about) if asked.case else ""
    return listen(text, asked.kind, asked.marks, today, about if asked.about else None, case, beside)


@dataclass
class Listener:
    """Takes in what the agent tells of one customer's questions, and asks them again where that is not clear."""

    questions: Sequence[Asked]
    goal: Goal | None = None
    """The goal by which the last message was heard."""
    sure: dict[str, float] = field(default_factory=dict)
    """How sure the answers are that stand; what is said of something else, less surely, changes none of them."""

    def hear(self, text: str, goal: Goal, world: World) -> tuple[set[str], set[str]]:
        """Take in a message. Return the questions that it answers, and those to which it tells several values."""
        if goal != self.goal:
            self._turn_to(goal, world)
        today = date.fromisoformat(world.given.get("today", TODAY))
        answered, unclear = set[str](), set[str]()
        for asked in self.questions:
            about = goal.asks.get(asked.slot)
            told = (
                read(text, asked, today, about, asked.beside(goal, world))
                if asked.slot in goal.asks
                else Told()
            )
            if len(told.values) == 1 and told.sure >= min(SURE, self.sure.get(asked.slot, 0)):
                world.told[asked.slot] = told.values[0]
                self.sure[asked.slot] = told.sure
                answered.add(asked.slot)
            elif len(told.values) > 1 and (told.sure > 0 or "?" not in text):  # not what is asked about
                unclear.add(asked.slot)
        return answered, unclear

    def _turn_to(self, goal: Goal, world: World) -> None:
        """Forget what was told of another order or wish than is meant now."""
        for asked in self.questions if self.goal is not None else ():
            before = self.goal is not None and asked.slot in self.goal.asks and asked.value(self.goal, world)
            if asked.slot in goal.asks and before != asked.value(goal, world):
                world.told.pop(asked.slot, None)
        self.goal = goal
        self.sure = {slot: sure for slot, sure in self.sure.items() if slot in world.told}

    def ask_again(
        self, goal: Goal, world: World, unclear: set[str], nothing_left: bool, refused: bool
    ) -> list[Act]:
        """Ask again what a message has answered with several values and, where the customer has `nothing_left` to say,
        whatever is open; of what is asked until they are `refused`, nothing more then."""
        ended = {asked.slot for asked in self.questions if refused and asked.until_refused}
        left = (
            {name for name in goal.asks if name not in ended | world.told.keys()}
            if nothing_left
            else set[str]()
        )
        names = [name for name in goal.asks if name in unclear | left]
        return [Act("ask agent", slots={name: goal.asks[name] for name in names})] if names else []


def faults(questions: Sequence[Asked], goal: Goal, world: World, at_end: bool) -> list[Fault]:
    """List the questions to which a wrong answer stands and, `at_end`, those to which there is none."""
    found = []
    for asked in questions:
        if asked.slot in goal.asks:
            right, told = asked.value(goal, world), world.told.get(asked.slot)
            if right is None:
                continue
            if told is None and at_end:
                found.append(
                    Fault("not told", asked.slot, words=f"the question {asked.slot} was not answered")
                )
            elif told is not None and told != right:
                said, wanted = (_WRITE[asked.kind](value) for value in (told, right))
                words = f"the answer to {asked.slot} was {said}, it is {wanted}"
                found.append(Fault("wrong answer told", asked.slot, str(told), words=words))
    return found


def judged(verdict: Verdict, questions: Sequence[Asked], goal: Goal, world: World) -> Verdict:
    """Add the customer's questions to a verdict: an answer that is missing or wrong makes the end not correct."""
    wrong = faults(questions, goal, world, at_end=True)
    if not goal.asks:
        return verdict
    share = 1 - 2 * len(wrong) / len(goal.asks)
    credit = (1 - SHARE) * verdict.credit + SHARE * share
    why = "; ".join([*([] if verdict.correct and wrong else [verdict.why]), *(one.words for one in wrong)])
    return Verdict.of(verdict.correct and not wrong, credit, why, verdict.claims)
