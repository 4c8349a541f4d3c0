"""Questions in natural sentences: open questions, as long as the customer has more to tell."""

import copy
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import nlu
from ecomlab.customer.telling import Asked
from ecomlab.customer.templates import Phrases
from ecomlab.players.base import Perturbation, Planner
from ecomlab.players.courteous import Courtesy
from ecomlab.task import Goal, Message

QUESTIONS = (
    "Is there anything else I should know before I start?",
    "Do you have any other wishes?",
    "What else is important to you?",
    "Anything else you would like to tell me?",
    "Are there any further requirements?",
    "Is there something else?",
    "Have I missed anything?",
)
MOST = len(QUESTIONS)
"""Maximum number of questions; at two slots each, more than a task withholds."""


class Asking(Planner):
    """A player that asks until the customer says that there is no more; a mistake leaves the rest unasked.

    With a `courtesy` it asks for one or two things by name as well, and talks to the customer about what it does.
    """

    tells: ClassVar[Sequence[Asked]] = ()
    """Questions of the customer that it answers."""

    def __init__(
        self,
        phrases: Phrases,
        lexicon: Lexicon,
        truth: Callable[[], Goal] | None = None,
        perturbation: Perturbation | None = None,
        courtesy: Courtesy | None = None,
    ) -> None:
        super().__init__(perturbation)
        self.phrases = phrases
        self.lexicon = lexicon
        self.truth = truth
        self.asked = 0
        self.courtesy = courtesy
        self.wants_more = False
        """True while the customer may have more to tell."""
        self.answers: dict[str, str] = {}
        """What the customer was told, by the slots of their questions."""
        self._asks: dict[str, Any] = {}

    @property
    def asks(self) -> dict[str, Any]:
        """Questions of the customer that are to be answered, by their slots, each with its value."""
        return self._asks if self.truth is None else dict(self.truth().asks)

    def comes_to(self, given: Mapping[str, Any], today: date | None) -> dict[str, int | None]:
        """Say what its job came to, by names of `ecomlab.wishes.OUTCOMES`, when it submits with these arguments."""
        return {}

    def answer(self, values: Mapping[str, Any]) -> Message | None:
        """Answer the customer's questions by these values, as far as they were not told them; None if all were."""
        said = {one.slot: one.say(values[one.slot]) for one in self.tells if one.slot in values}
        new = {slot: words for slot, words in said.items() if self.answers.get(slot) != words}
        self.answers |= new
        return {"role": "assistant", "content": " ".join(new.values())} if new else None

    def _hear_questions(self, text: str, opening: bool = False) -> None:
        slots = {one.slot for one in self.tells}
        told = nlu.read_slots(text, self.phrases, self.lexicon, opening) if slots else ()
        asked = {name: value for name, value in told if name in slots}
        self._asks |= asked
        for name in asked:  # what is asked again is told again, though it be the same
            self.answers.pop(name, None)

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        if self.courtesy is None:
            return super().__call__(messages, tools)
        for message in messages[self._read :]:
            if message["role"] == "tool":
                self.courtesy.saw(json.loads(message["content"]))
        return super().__call__(messages, tools)

    def planned(self) -> Message:
        if self.courtesy is None or self.courtesy.finished:
            return self.plan()
        before = copy.deepcopy(vars(self), {id(one): one for one in self._shared()})
        message = self.plan()
        words = self.courtesy.before(message)
        if words is None:
            return message
        vars(self).update(before)  # the plan was not carried out
        return words

    def _shared(self) -> list[Any]:
        """List what a copy of this player's state shares with it."""
        names = ("phrases", "lexicon", "courtesy", "perturbation", "truth")
        return [vars(self)[name] for name in names if name in vars(self)]

    def begin(self, opening: str) -> None:
        """Note whether an opening says that this is all."""
        self.wants_more, self.asked = not nlu.is_complete(opening), 0
        self._hear_questions(opening, opening=True)

    def told(self, text: str) -> None:
        """Note what a reply asks, and whether it says that there is no more."""
        self._hear_questions(text)
        if self.wants_more and nlu.says("nothing", text, self.phrases, self.lexicon):
            self.wants_more = False

    def heard_of(self) -> Collection[str]:
        """Name the slots that are known of every item."""
        return ()

    def question(self) -> Message | None:
        """Make the next question; None if there is nothing to ask."""
        if not self.wants_more or self.asked >= MOST or self.slip():
            self.wants_more = False
            return None
        self.asked += 1
        if self.courtesy is not None:
            return {"role": "assistant", "content": self.courtesy.question(list(self.heard_of()))}
        return self.turn(self.call("ask_user", None, question=QUESTIONS[self.asked - 1]))
