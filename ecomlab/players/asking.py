"""Questions in natural sentences: open questions, as long as the customer has more to tell."""

import copy
import json
from collections.abc import Callable, Collection
from typing import Any

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import nlu
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

    def told(self, text: str) -> None:
        """Note whether a reply says that there is no more."""
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
