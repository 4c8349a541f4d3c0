"""What a contestant is asked to play, and what it takes: jobs and usage."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """Requests, tokens and time that an episode took of one model."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server read from its cache, if it reports them."""
    completion_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    """Time waited for answers, in seconds."""

    @property
    def told(self) -> bool:
        """True if the server reported tokens: no prompt is empty."""
        return self.prompt_tokens > 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + others for mine, others in zip(vars(self).values(), vars(other).values())))
