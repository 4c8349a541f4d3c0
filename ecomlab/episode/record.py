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
    """A played episode: its task, conversation, end and score."""

    task: Task
    messages: list[Message]
    end: str | None
    score: Score
    turns: int
    """Number of played assistant messages; a replay must have the same number, which detects truncated records."""
    calls: int
    strict: bool = False
    """True if the first format error ended the episode."""
    wording: list[dict[str, Any]] = field(default_factory=list)
    """Exchanges with the endpoint that reworded the customer (`customer.llm.Exchange`), as JSON objects, in order;
    empty without an endpoint. A replay uses these answers."""

    def record(self) -> Record:
        """Make the displayed record of the episode without its shop."""
        return Record.of(self.task.title, self.messages, self.end, self.score, self.score.weights)

    def _repr_html_(self) -> str:
        return in_notebook(conversation.episode(self.record()))
