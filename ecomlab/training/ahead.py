"""Rollouts one step ahead: a step's are played in a thread, while the trainer updates on those of the step before."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from ecomlab.models.samplers.cached import OpenSampler, Sampled
from ecomlab.training.rollouts import Collection

AHEAD = "ahead.csv"
AHEAD_COLUMNS = ("step", "version", "tokens", "ratio_mean", "ratio_max", "capped")
"""A row per step: `Collection.version` of its rollouts (the weights that it begins to train are of version step - 1),
trained tokens, and over these the mean and the largest ratio before the cap, and the share of tokens that it caps."""
PATIENCE = 10.0
"""Seconds that a run which stops waits for the turn under way."""


class StoppedError(Exception):
    """The run ends; what is in flight is not wanted any more."""


def mirror(model: Any, copy: Any) -> None:
    """Give `copy` the model's weights, on its device: one that trains on a GPU plays on it too."""
    copy.to(next(model.parameters()).device).load_state_dict(model.state_dict())


class Ahead:
    """At most one collection in flight, played in a daemon thread."""

    def __init__(self) -> None:
        self._flight: tuple[Future[Collection], threading.Thread] | None = None
        self._stop = threading.Event()

    @property
    def busy(self) -> bool:
        """True if a collection is in flight or has landed, and was not taken."""
        return self._flight is not None

    def begin(self, play: Callable[[], Collection]) -> None:
        """Begin to play a collection. Nothing else may be in flight."""
        assert not self.busy
        future: Future[Collection] = Future()

        def work() -> None:
            try:
                future.set_result(play())
            except BaseException as error:
                future.set_exception(error)

        thread = threading.Thread(target=work, name="ecomlab-ahead", daemon=True)
        self._flight = (future, thread)
        thread.start()

    def land(self) -> None:
        """Wait until nothing plays. What was played is kept, and so is its error."""
        if self._flight is not None:
            self._flight[1].join()

    def take(self) -> Collection:
        """Return the collection in flight as soon as it is whole, or raise its error."""
        assert self._flight is not None
        future, _ = self._flight
        self._flight = None
        return future.result()

    def stop(self, interrupt: Callable[[], None] = lambda: None) -> None:
        """Give up what is in flight, after the turn that its sampler is in, which `interrupt` may cut short."""
        self._stop.set()
        if self._flight is not None:
            interrupt()
            self._flight[1].join(PATIENCE)

    def watched(self, sampler: OpenSampler) -> OpenSampler:
        """Wrap a sampler so that `stop` ends the collection that plays with it."""
        return _Watched(sampler, self._stop)


class _Watched:
    """A sampler that raises StoppedError once it is told to stop."""

    def __init__(self, sampler: OpenSampler, stop: threading.Event) -> None:
        self._sampler, self._stop = sampler, stop

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        self._sampler.start(streams)

    def join(self, streams: Sequence[np.random.Generator]) -> None:
        self._sampler.join(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> Sequence[Sampled | None]:
        if self._stop.is_set():
            raise StoppedError
        return self._sampler.turn(rows, inputs)
