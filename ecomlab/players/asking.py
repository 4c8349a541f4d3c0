"""Asking as people ask: open questions in natural sentences, as long as the customer has more to tell."""

from typing import Any

from ecomlab.customer import nlu
from ecomlab.customer.templates import Phrases
from ecomlab.players.base import Planner
from ecomlab.task import Message

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
"""Most questions; at two slots each, more than a task withholds."""


class Asking(Planner):
    """A player that asks until the customer says that there is no more; a mistake leaves the rest unasked."""

    phrases: Phrases

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.asked = 0
        self.wants_more = False
        """True while the customer may have more to tell."""

    def begin(self, opening: str) -> None:
        """Take in whether an opening says that this is all."""
        self.wants_more, self.asked = not nlu.is_complete(opening), 0

    def told(self, text: str) -> None:
        """Take in whether a reply says that there is no more."""
        if self.wants_more and nlu.says("nothing", text, self.phrases):
            self.wants_more = False

    def question(self) -> Message | None:
        """Make the next question; None where there is nothing to ask."""
        if not self.wants_more or self.asked >= MOST or self.slip():
            self.wants_more = False
            return None
        self.asked += 1
        return self.turn(self.call("ask_user", None, question=QUESTIONS[self.asked - 1]))
