"""What is evaluated: anything that plays tasks and hands back what was said, be it a script, weights or an endpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.episode.episode import Trajectory


@dataclass(frozen=True)
class Job:
    """One episode to play: a held-out task and the number of its trial."""

    env: str
    d: int
    seed: int
    """Seed of the task, from `held_out_seeds`."""
    trial: int = 0
    """Number of the trial of this task, for pass^k; it names the sampler's randomness together with the task."""
    axes: Mapping[str, float] = field(default_factory=dict)
    """Overridden axes of the difficulty."""


@dataclass(frozen=True)
class Usage:
    """What an episode asked of one model."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt's, those that the model had read before, as far as it says so."""
    completion_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    """Time waited for answers, in seconds."""

    @property
    def told(self) -> bool:
        """True if the model said how many tokens it read: no prompt is empty."""
        return self.prompt_tokens > 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + others for mine, others in zip(vars(self).values(), vars(other).values())))


@dataclass(frozen=True)
class Played:
    """An episode that was played."""

    job: Job
    trajectory: "Trajectory | None"
    """None for an episode without a task: it could not be drawn."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """By role: "agent"; "customer" where a model words the customer."""
    faults: tuple[str, ...] = ()
    """Classes of the model's own mistakes of form, in order: malformed call, empty answer, refusal, length, context."""
    unscored: str = ""
    """Class of the failure that is not the model's, such as "connection" or "rate limit"; "" for a scored episode."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the record, JSON values: a customer's rewrites, finish reasons."""


class Contestant(Protocol):
    """A player of many episodes at once."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its answers, JSON values: kind, model, digest of weights, template, sampling, limits."""

    @property
    def at_once(self) -> int:
        """Most episodes that it plays side by side."""

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        """Play every job, in any order, and yield each as soon as it is over.

        A caller that stops iterating ends what still runs. What fails for reasons of our own, or of the server, is
        unscored and yielded like the others; only a mistake of the caller raises.
        """
