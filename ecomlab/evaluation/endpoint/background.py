"""A coroutine's results as an ordinary iterator, also where a loop runs already, as in a notebook."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _End:
    """The last entry of a queue."""

    error: BaseException | None


def iterate(work: Callable[[Callable[[T], None]], Awaitable[None]]) -> Iterator[T]:
    """Run `work` in a thread with a loop of its own, and yield what it hands over.

    What it raises is raised here. When the iterator is closed, or interrupted, the work is cancelled and its thread
    ends before anything else happens.
    """
    inbox: SimpleQueue[T | _End] = SimpleQueue()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        await work(inbox.put)

    def run() -> None:
        error: BaseException | None = None
        try:
            asyncio.run(main())
        except BaseException as raised:
            error = raised
            while isinstance(error, BaseExceptionGroup):  # of a TaskGroup, whose first one stopped the others
                error = error.exceptions[0]
        inbox.put(_End(error))

    thread = Thread(target=run, name="ecomlab-endpoint", daemon=True)
    thread.start()
    loop, task = started.result()
    try:
        while not isinstance(item := inbox.get(), _End):
            yield item
        if item.error:
            raise item.error
    finally:
        with suppress(RuntimeError):  # the loop is closed, all is over
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
