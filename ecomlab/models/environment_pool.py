"""Worker processes that play the environments of rollouts, each a share of every batch, while the policy is sampled in
this process. They hold shop and renderer, and import no torch."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from ecomlab.catalog import load_shop
from ecomlab.catalog.shop import loaded_shops
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.models.batch import Came, Given, Named, Plays, Start
from ecomlab.task import Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Renderer
    from ecomlab.models.samplers.cached import Sampled

MOST = 8
"""Workers by default at most: each takes two seconds to start, and what else a round does in one process remains."""


class WorkerError(ChildProcessError):
    """A worker process that ended on its own; the message states the way out."""


def workers_for(device: str) -> int:
    """Choose the number of workers of one process whose policy is on `device`: on the CPU, policy and environments take
    turns on the same cores; a GPU idles while they are played."""
    if device == "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))


@contextmanager
def pool_of(workers: int, shop: "Shop", renderer: "Renderer") -> Iterator["EnvironmentPool | None"]:
    """Start so many workers, and end them; None for one, because this process will do."""
    pool = EnvironmentPool(workers, shop, renderer) if workers > 1 else None
    try:
        yield pool
    finally:
        if pool:
            pool.close()


class EnvironmentPool:
    """`Plays` on several processes, for one batch at a time. Each plays as many episodes of an environment and level as
    the others, for they take about as long."""

    def __init__(self, workers: int, shop: "Shop", renderer: "Renderer") -> None:
        """Start the workers. Raises ValueError for a shop that `load_shop` did not load, WorkerError."""
        origin = next((origin for origin, one in loaded_shops() if one is shop), None)
        if origin is None:
            raise ValueError(
                f"other processes cannot open {shop!r}, which load_shop did not load; use environment_workers = 1"
            )
        self._here = Plays(shop, renderer)
        self._worker: dict[int, int] = {}
        # One executor for each: an episode stays where it began. Spawned: a fork would share CUDA and locks.
        context = get_context("spawn")
        self._workers = [ProcessPoolExecutor(1, context, _begin) for _ in range(workers)]
        try:
            self._ask([(_set_up, ENVIRONMENTS.files, origin, renderer)] * workers)
        except BaseException:
            self.close()
            raise

    def open(self, tasks: Mapping[int, Given], strict: bool) -> dict[int, Came]:
        """As `Plays.open`."""
        # Not every exception can be sent.
        failed = {i: task for i, task in tasks.items() if isinstance(task, Exception)}
        rest = {i: task for i, task in tasks.items() if not isinstance(task, Exception)}
        alike = sorted(rest, key=lambda i: _cell(rest[i]))
        self._worker = {i: place % len(self._workers) for place, i in enumerate(alike)}
        return dict(sorted((self._here.open(failed, strict) | self._each(Plays.open, rest, strict)).items()))

    def answer(self, answers: Mapping[int, "Sampled | None"], share: float) -> dict[int, Came]:
        """As `Plays.answer`."""
        return self._each(Plays.answer, answers, share)

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.shutdown(cancel_futures=True)

    def _each(self, method: Any, given: Mapping[int, Any], *rest: Any) -> dict[int, Came]:
        """Call a method of every worker's `Plays` with its share of `given`, and merge the results in order."""
        shares: list[dict[int, Any]] = [{} for _ in self._workers]
        for i, one in given.items():
            shares[self._worker[i]][i] = one
        found = self._ask([(_call, method, share, *rest) for share in shares])
        return dict(sorted((i, came) for share in found for i, came in share.items()))

    def _ask(self, calls: list[Any]) -> list[Any]:
        """Let worker k perform call k, all at once."""
        try:
            running = [worker.submit(*call) for worker, call in zip(self._workers, calls, strict=True)]
            return [one.result() for one in running]
        except BrokenProcessPool as error:
            raise WorkerError(
                "an environment worker ended on its own: killed, perhaps for want of memory, or unable to start, as "
                'in a script whose calls are not below `if __name__ == "__main__":`; repeat the command, with '
                "environment_workers = 1 if it happens again"
            ) from error


def _cell(given: Task | Start | Named) -> tuple[str, int]:
    task = given.task if isinstance(given, Start) else given
    return task.env, task.difficulty


_plays: Plays
"""A worker's own."""


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C reaches workers too, which then end silently
    for name in ("SIGTERM", "SIGUSR1"):  # so may a request to end: the run still finishes its step
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is gone, which may have been killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _set_up(files: list[str], origin: tuple[str | int, int], renderer: "Renderer") -> None:
    global _plays
    for file in files:
        ENVIRONMENTS.load(file)
    _plays = Plays(load_shop(*origin), renderer)


def _call(method: Any, *given: Any) -> dict[int, Came]:
    came: dict[int, Came] = method(_plays, *given)
    return came
