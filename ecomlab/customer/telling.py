"""Telling: the questions that a customer asks in their turn, and the answers that the agent has told them.

An environment declares its questions as `Asked`; a goal that holds one under `asks` has it asked in the opening, or
later by a goal change. The last clear answer in any message of the agent counts, and is kept in `World.told`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from ecomlab.answers.amounts import read_amount
from ecomlab.answers.dates import days_in
from ecomlab.customer.acts import Act
from ecomlab.customer.reading.words import DAYS, MONEY, NUMBER, Known, Sentence, sentences
from ecomlab.reward import Fault, Verdict
from ecomlab.task import Goal
from ecomlab.values import FORMATS
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import TODAY

Kind = Literal["money", "day", "days", "count", "yes"]
"""Kinds of values that can be asked for: cents, a day as "2026-03-09", numbers of days or things, "yes" or "no"."""
SHARE = 0.1
"""Share of the credit that the answers have."""
TIMES = 2
"""Number of times that a question is asked again."""
_WRITE: dict[str, Callable[[Any], str]] = {
    "money": FORMATS["money"].write,
    "day": FORMATS["day"].write,
    "days": FORMATS["days"].write,
    "count": str,
    "yes": str.capitalize,
}
_MARKS = {"money": MONEY, "days": DAYS, "count": NUMBER}
_UNITS = {"money": "cents", "days": "days", "count": "points"}
_CLAUSE = re.compile(r"=|,? \b(?:so|therefore|thus|hence|which (?:means|makes|gives))\b", re.IGNORECASE)
"""Where a sentence begins to say what follows from the rest of it."""
_RANGE = re.compile(
    r"\d(?:st|nd|rd|th)?\s*(?:-|–|—|/|\bto\b|\bor\b|\band\b)\s*(?:the )?\$?\d"
    r"|\b(?:at least|at most|up to|no more than|no less than|(?<!\d )(?<!dollars )(?:more|less) than)\b"
    r"|\b(?:under|over|or so)\b",
    re.IGNORECASE,
)
"""Marks of a range."""
_LONG_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PROMISE = re.compile(r"\b(?:let me|i'll|i will|i'm going to|(?:one|just a) moment|hold on)\b", re.IGNORECASE)
"""Words of a sentence that says what the agent is about to do."""
_PLACED = re.compile(r"\b(?:placed|ordered|bought|purchased|order (?:of|from)|from)(?: on)? $", re.IGNORECASE)
"""Words before the day on which an order was placed."""
_YES = re.compile(r"\b(?:yes|yeah|yep|yup)\b", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:afraid|unfortunately|sadly),? not?\b|\b(?:no|nope)\b(?=\s*(?:[,.;:!—–-]|$|(?:it|they|that|this|not|only|"
    r"unfortunately|sorry|i'm|sadly|both|one)\b))",
    re.IGNORECASE,
)
"""Words that are an answer by themselves: "there is no delay" is none."""
_NAMES = Known([])


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

    def say(self, value: Any) -> str:
        """Answer the question."""
        return self.answer.format(_WRITE[self.kind](value))


@dataclass(frozen=True)
class Told:
    """What a message says to a question: its values, and whether its words say that they are the answer."""

    values: tuple[Any, ...] = ()
    sure: bool = False


def read(text: str, asked: Asked, today: date) -> Told:
    """Read what a message tells of a question; one value is an answer, several are none.

    Sentences that ask, or say what the agent is about to do, tell nothing; what follows from the rest counts before it,
    and a sentence with the marks of an answer before those without.
    """
    marked, others = list[tuple[Any, ...]](), list[Any]()
    for sentence in sentences(text, _NAMES):
        said = text[sentence.start : sentence.end]
        if sentence.mark == "?" or _PROMISE.search(said):
            continue
        starts = [0, *(match.end() for match in _CLAUSE.finditer(said))]
        for start in reversed(starts):
            values = tuple(dict.fromkeys(_values(text, sentence, sentence.start + start, asked.kind, today)))
            if values:
                others += values
                if re.search(asked.marks, said, re.IGNORECASE):
                    marked.append(values)
                break
    clear = [one for one in marked if len(one) == 1]
    if clear or marked:
        return Told(tuple(dict.fromkeys(value for one in clear or marked for value in one)), True)
    return Told(tuple(dict.fromkeys(others)))


def _values(text: str, sentence: Sentence, start: int, kind: Kind, today: date) -> Iterator[Any]:
    """Yield the values of a kind in a sentence from a place on; a range is two."""
    said = text[start : sentence.end]
    if kind == "yes":
        yield from (word for word, pattern in (("yes", _YES), ("no", _NO)) if pattern.search(said))
        return
    if kind == "day":
        days = [day for at, day in days_in(said, today) if day and not _PLACED.search(said[:at])]
        found: list[Any] = [day.isoformat() for day in days]
    else:
        tokens = [one for one in sentence.tokens if one.stem == _MARKS[kind] and one.start >= start]
        amounts = [read_amount(text[one.start : one.end], _UNITS[kind]) for one in tokens]
        found = [amount for amount in amounts if amount is not None]
    yield from found
    if found and _RANGE.search(_LONG_DAY.sub("", said)):
        yield None


@dataclass
class Listener:
    """Takes in what the agent tells of one customer's questions, and asks them again where that is not clear."""

    questions: Sequence[Asked]
    goal: Goal | None = None
    """The goal by which the last message was heard."""
    sure: set[str] = field(default_factory=set)
    """Questions to which an answer was told in words that say so; another sentence with a value changes none of it."""
    again: Counter[str] = field(default_factory=Counter)
    """Number of times that a question was asked again."""

    def hear(self, text: str, goal: Goal, world: World) -> tuple[set[str], set[str]]:
        """Take in a message. Return the questions that it answers, and those to which it tells several values."""
        if goal != self.goal:
            self.goal, self.sure = goal, set()
        today = date.fromisoformat(world.given.get("today", TODAY))
        answered, unclear = set[str](), set[str]()
        for asked in self.questions:
            told = read(text, asked, today) if asked.slot in goal.asks else Told()
            if len(told.values) == 1 and (told.sure or asked.slot not in self.sure):
                world.told[asked.slot] = told.values[0]
                self.sure |= {asked.slot} if told.sure else set()
                answered.add(asked.slot)
            elif len(told.values) > 1:
                unclear.add(asked.slot)
        return answered, unclear

    def ask_again(self, goal: Goal, world: World, unclear: set[str], is_done: bool) -> list[Act]:
        """Ask again what a message has answered with several values; one that says that the work `is_done` also what
        was never answered."""
        left = {name for name in goal.asks if name not in world.told} if is_done else set[str]()
        names = [name for name in goal.asks if name in unclear | left and self.again[name] < TIMES]
        self.again.update(names)
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
