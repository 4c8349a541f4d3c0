"""Sampling from an engine that answers each request by itself, so that no row waits for the turn of another.

`EngineSampler.turn` returns as soon as one row has its answer; `VllmEngine` is a vLLM server, asked over HTTP.
"""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ecomlab.models.samplers.cached import Limits, Sampled, SamplerError
from ecomlab.models.samplers.conversations import Conversations
from ecomlab.models.samplers.vllm import PATIENCE

if TYPE_CHECKING:
    from aiohttp import ClientSession

Answer = tuple[list[int], Sequence[Any] | None]
"""Sampled ids, and their log-probabilities if there are any."""


class Engine(Protocol):
    """A generation engine that works on many requests at once."""

    async def generate(self, ids: Sequence[int], most: int) -> Answer:
        """Sample up to `most` tokens after `ids`, to a stop token, which is included. When cancelled, stop working.

        Raises SamplerError if the engine is gone, which ends the batch. Any other error costs this row alone.
        """

    async def close(self) -> None:
        """Free what it holds."""


class EngineSampler(Conversations):
    """A `Sampler` on an `Engine`, whose requests run in a thread of their own."""

    backend = "the engine"

    def __init__(self, engine: Engine, stop_ids: Sequence[int], limits: Limits | None = None) -> None:
        super().__init__(stop_ids, limits)
        self.engine = engine
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, tuple[Future[Answer], int]] = {}
        """Requests under way, by row, and how many tokens they may sample."""
        # a daemon: whoever is interrupted need not wait for the engine
        threading.Thread(target=self._loop.run_forever, name="ecomlab-engine", daemon=True).start()

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows and forget those before, with their requests."""
        self.cancel()
        super().start(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled | None]:
        """Send what `rows` have to say to the engine; wait until one of them has an answer at least. None for the rest.

        Raises SamplerError if the engine is gone. Whatever is raised here, an interruption too, no request goes on.
        """
        said: dict[int, Sampled] = {}
        for row, new in zip(rows, inputs, strict=True):
            if row in self._running:
                continue
            self._ids[row] += new
            room = self._room(row)
            if room > 0:
                self._running[row] = self._submit(self.engine.generate(list(self._ids[row]), room)), room
            else:
                said[row] = Sampled([], [], truncated=True)
        try:
            waiting = [self._running[row][0] for row in rows if row in self._running]
            wait(waiting, timeout=0 if said else None, return_when=FIRST_COMPLETED)
            for row in rows:
                if row in self._running and self._running[row][0].done():
                    said[row] = self._answered(row, self._read(*self._running.pop(row)))
        except BaseException:
            self.cancel()
            raise
        return [said.get(row) for row in rows]

    def cancel(self) -> None:
        """Stop all requests."""
        for request, _ in self._running.values():
            request.cancel()
        self._running.clear()

    def close(self) -> None:
        """Stop all requests and the thread. The sampler cannot be used afterwards."""
        self.cancel()
        if not self._loop.is_closed() and self._loop.is_running():
            self._submit(self.engine.close()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _read(self, request: Future[Answer], room: int) -> Sampled:
        try:
            return self._cut(*request.result(), room)
        except SamplerError:
            raise
        except Exception as error:
            return Sampled([], [], True, failure=f"{type(error).__name__}: {error}")


class VllmEngine:
    """A vLLM server at `url`, which serves `model`."""

    def __init__(
        self, url: str, model: str, stop_ids: Sequence[int], greedy: bool = False, patience: float = PATIENCE
    ) -> None:
        self.url, self.patience = url, patience
        self._asked = {
            "model": model, "n": 1, "temperature": 0.0 if greedy else 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0,
            "repetition_penalty": 1.0, "logprobs": 0, "stop_token_ids": list(stop_ids), "return_token_ids": True,
        }  # fmt: skip
        self._session: ClientSession | None = None

    async def generate(self, ids: Sequence[int], most: int) -> Answer:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=self.patience)
            )
        asked = {**self._asked, "prompt": list(ids), "max_tokens": most}
        try:
            async with self._session.post(f"{self.url}/v1/completions", json=asked) as answer:
                if answer.status != 200:
                    raise RuntimeError(f"vLLM answered {answer.status}: {(await answer.text())[:200]}")
                (choice,) = (await answer.json())["choices"]
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise SamplerError(
                f"the vLLM server at {self.url} failed ({type(error).__name__}: {error}); start it again with the line "
                "that `ecomlab train --dry-run` prints, then run again: the run goes on from its last checkpoint"
            ) from error
        logprobs = choice["logprobs"]
        return choice["token_ids"], logprobs and logprobs["token_logprobs"]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
