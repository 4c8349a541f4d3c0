"""Rows of backends that keep nothing between turns: every turn sends the whole conversation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ecomlab.models.samplers.cached import Limits, Sampled


class Conversations:
    """The token ids of each row, and its limits."""

    backend = "vLLM"

    def __init__(self, stop_ids: Sequence[int], limits: Limits | None = None) -> None:
        self.stop_ids = tuple(stop_ids)
        self.limits = limits or Limits()
        self._ids: list[list[int]] = []
        self._said: list[int] = []

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows. The streams are not used; the backend draws its own random numbers."""
        self._ids, self._said = [], []
        self.join(streams)

    def join(self, streams: Sequence[np.random.Generator]) -> None:
        """Open more rows, numbered after those that were opened before."""
        self._ids += [[] for _ in streams]
        self._said += [0] * len(streams)

    def _room(self, row: int) -> int:
        """Count the tokens this row may still sample in this turn."""
        limits = self.limits
        return min(limits.turn, limits.episode - self._said[row], limits.context - len(self._ids[row]))

    def _cut(self, ids: list[int], logprobs: Sequence[Any] | None, room: int) -> Sampled:
        """Cut a row's answer at its own limit."""
        kept = list(ids[:room])
        truncated = not kept or kept[-1] not in self.stop_ids
        if not kept:
            return Sampled([], [], True, failure=f"{self.backend} returned no token")
        nothing = [0.0] * len(kept)
        if logprobs is None or len(logprobs) != len(ids):
            return Sampled(kept, nothing, truncated, failure=f"{self.backend} returned no log-probabilities")
        chosen = [number(entry) for entry in logprobs[:room]]
        if any(np.isnan(chosen)):
            failure = f"{self.backend} returned log-probabilities that are NaN"
            return Sampled(kept, nothing, truncated, failure=failure)
        return Sampled(kept, chosen, truncated)

    def _answered(self, row: int, said: Sampled) -> Sampled:
        """Add a turn to its row."""
        self._ids[row] += said.ids
        self._said[row] += len(said.ids)
        return said


def number(entry: Any) -> float:
    """Read the sampled token's log-probability, which vLLM may give as [value], with None for "not a number"."""
    value = entry[0] if isinstance(entry, list | tuple) else entry
    return float("nan") if value is None else float(value)
