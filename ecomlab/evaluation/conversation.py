"""One episode of a contestant that says a message at a time, and what is to be recorded beside it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import Chat, Wording
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import record
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.customers import customer_notes, customer_usage
from ecomlab.evaluation.faults import faults_of, looks_like_call
from ecomlab.evaluation.transcript import Transcript
from ecomlab.models.batch import draw_task
from ecomlab.suggest import raised
from ecomlab.task import Message, Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

SHOWN = 2_000
"""Most characters that are kept of what was cut off."""


def open_episode(job: Job, shop: "Shop", strict: bool, customer: Chat | None) -> Episode | Transcript:
    """Begin a job's episode; an unscored one if its task cannot be drawn, or by a bug of ours, which costs no run."""
    task = draw_task(job.env, job.d, job.seed, shop, job.axes)
    if not isinstance(task, Task):
        return Transcript.of(job, None, unscored="task", notes={"why": raised(task)})
    try:
        return Episode(task, shop, strict=strict, wording=Wording(customer) if customer else None)
    except Exception as error:
        return Transcript.of(job, None, unscored="bug", notes={"why": raised(error)})


@dataclass(kw_only=True)
class Conversation:
    """An episode under way; changes as it is played."""

    job: Job
    episode: Episode
    usage: Usage = field(default_factory=Usage)
    cut: str = ""
    """The limit of tokens that ended the episode: length or context."""
    refused: set[int] = field(default_factory=set)
    """Numbers of the assistant messages that are known to be refusals."""
    unscored: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def act(self, message: Message) -> None:
        """Pass a message to the episode; note a call that stands in its text, where none is read."""
        called = message.get("tool_calls") or message.get("invalid")
        if not called and looks_like_call(str(message["content"])):
            self.notes["calls_in_text"] = self.notes.get("calls_in_text", 0) + 1
        self.episode.act(message)

    def cut_off(self, limit: str, seen: str) -> None:
        """End the episode by a limit of tokens: length or context."""
        self.cut, self.notes["cut_off"] = limit, seen[:SHOWN]
        self.episode.end_truncated()

    def fail(self, kind: str, why: str) -> None:
        """End the episode unscored."""
        self.unscored, self.notes["why"] = kind, why
        self.episode.fail(why)

    def played(self) -> Transcript:
        """Record the episode, which is over."""
        try:
            trajectory = record(self.episode)
        except Exception as error:  # of the verifier
            self.fail("bug", raised(error))
            trajectory = record(self.episode)
        return Transcript.of(
            job=self.job,
            trajectory=trajectory,
            usage={"agent": self.usage, **customer_usage(trajectory)},
            faults=faults_of(trajectory, self.cut, self.refused),
            unscored=self.unscored,
            notes={**self.notes, **customer_notes(trajectory)},
        )
