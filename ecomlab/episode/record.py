"""The record of a played episode."""

from dataclasses import dataclass, field
from typing import Any

from ecomlab.markup import conversation
from ecomlab.markup.elements import in_notebook
from ecomlab.markup.record import Record
from ecomlab.reward import Score
from ecomlab.task import Message, Task


@dataclass(frozen=True)
class Trajectory:
    """A played episode: its task, everything that was said, how it ended and what it earned."""

    task: Task
    messages: list[Message]
    end: str | None
    score: Score
    turns: int
    """Assistant messages that were played; a replay must come to as many, so that a record cut short is noticed."""
    calls: int
    strict: bool = False
    """True if the first format error ended the episode."""
    wording: list[dict[str, Any]] = field(default_factory=list)
    """Exchanges with the endpoint that worded the customer (`customer.llm.Exchange`), as JSON objects, in order; empty
    where the templates were said. A replay takes the answers from here."""

    def record(self) -> Record:
        """Record what is shown of the episode without the shop that it was played in."""
        return Record.of(self.task.title, self.messages, self.end, self.score, self.score.weights)

    def _repr_html_(self) -> str:
        return in_notebook(conversation.episode(self.record()))
