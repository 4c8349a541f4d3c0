"""An event loop in a thread of its own, for callers without one or, as in a notebook, inside another."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
Job = TypeVar("Job")
_END: Any = object()


class Background:
    """An event loop that runs until `close`."""

    def __init__(self, name: str) -> None:
        ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

        async def serve() -> None:
            over = asyncio.Event()
            ready.set_result((asyncio.get_running_loop(), over))
            await over.wait()

        self._thread = Thread(target=lambda: asyncio.run(serve()), name=name, daemon=True)
        self._thread.start()
        self._loop, self._over = ready.result()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start `work` in the loop, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel all running work, and wait until it has ended."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


def iterate(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]) -> Iterator[T]:
    """Run `work` in the background; yield the values that it passes to its argument, and raise its error.

    A caller that stops iterating, or is interrupted, cancels the work and waits until it has ended.
    """
    inbox: SimpleQueue[Any] = SimpleQueue()
    background = Background("ecomlab-endpoint")
    try:
        done = background.submit(work(inbox.put))
        done.add_done_callback(lambda _: inbox.put(_END))
        while (item := inbox.get()) is not _END:
            yield item
        error = done.exception()
        while isinstance(error, BaseExceptionGroup):  # of a TaskGroup, whose first error stopped the others
            error = error.exceptions[0]
        if error:
            raise error
    finally:
        background.close()


async def run_each(
    play: Callable[[Job], Coroutine[Any, Any, T]],
    jobs: Sequence[Job],
    at_once: int,
    hand_over: Callable[[T], None],
) -> None:
    """Await `play` for each job, `at_once` at a time, and pass each result to `hand_over`."""
    left = iter(jobs)

    async def work() -> None:
        for job in left:
            hand_over(await play(job))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(jobs))):
            group.create_task(work())
