"""Jobs and usage of a contestant, and the records of an endpoint that words the customer."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.customer.llm import UNASKED, Chat
from ecomlab.episode.record import Trajectory


@dataclass(frozen=True)
class Job:
    """One episode to play: a held-out task and its trial."""

    env: str
    d: int
    seed: int
    """Seed of the task, from `held_out_seeds`."""
    trial: int = 0
    """Number of the trial, for pass^k; with the task it determines the sampler's randomness."""
    axes: Mapping[str, float] = field(default_factory=dict)
    """Overridden axes of difficulty."""


@dataclass(frozen=True)
class Usage:
    """Requests, tokens and time that an episode took of a model."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server read from its cache, if reported."""
    completion_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    """Seconds of waiting for answers."""

    @property
    def is_reported(self) -> bool:
        """True if the server reported tokens: no prompt is empty."""
        return self.prompt_tokens > 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + others for mine, others in zip(vars(self).values(), vars(other).values())))


def note_turn(notes: dict[str, Any], used: Usage) -> None:
    """Note the tokens that the agent's next turn sampled, and its seconds."""
    turns = notes.setdefault("turns", {"tokens": [], "seconds": []})
    turns["tokens"].append(used.completion_tokens)
    turns["seconds"].append(round(used.seconds, 3))


def customer_identity(customer: Chat | None) -> dict[str, Any]:
    """Return the identity of the customer's endpoint as {"customer": ...}; empty without one."""
    if customer is None:
        return {}
    known = getattr(customer, "identity", None)
    return {"customer": dict(known) if isinstance(known, Mapping) else repr(customer)}


def customer_usage(trajectory: Trajectory) -> dict[str, Usage]:
    """Add up an episode's requests to the customer's endpoint: reported tokens, and the time waited."""
    if not trajectory.wording:
        return {}
    asked = [one for one in trajectory.wording if one["refused"] != UNASKED]
    costs = (Usage(**{"requests": 1, **one.get("usage", {}), "seconds": one["seconds"]}) for one in asked)
    return {"customer": sum(costs, Usage())}


def customer_notes(trajectory: Trajectory) -> dict[str, Any]:
    """Count an episode's requests by task, and the refused ones by reason."""
    if not trajectory.wording:
        return {}
    tasks = Counter(one["task"] for one in trajectory.wording)
    refused = Counter(one["refused"] for one in trajectory.wording if one["refused"])
    return {"customer": {**tasks, "refused": dict(refused)}}
