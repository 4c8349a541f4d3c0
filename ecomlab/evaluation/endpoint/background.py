"""An event loop in a thread of its own, for callers that have none or, as in a notebook, run inside one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
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
        """Begin `work` in the loop. Any thread may call this."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


def iterate(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]) -> Iterator[T]:
    """Run `work` in the background and yield what it passes to its argument; raise what it raises.

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
