"""Sampling from an engine that answers each request by itself, so that no row waits for the turn of another.

`turn` returns as soon as one row has its answer. `EngineSampler` asks an engine in a thread of its own, such as
`VllmEngine`, a vLLM server asked over HTTP; `ColocatedSampler` steps the engine of a vLLM in this process.
"""

import asyncio
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ecomlab.models.samplers.cached import Limits, Sampled, SamplerError
from ecomlab.models.samplers.conversations import Conversations
from ecomlab.models.samplers.vllm import PATIENCE, way_out

if TYPE_CHECKING:
    from aiohttp import ClientSession

SAMPLING = {
    "n": 1, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "logprobs": 0,
}  # fmt: skip
"""The policy's own distribution, whatever the model's generation_config says."""
STOPPED = "the engine was stopped"
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


class OneByOne(Conversations, ABC):
    """Rows that are answered one by one: `turn` returns as soon as one of them has its answer."""

    def __init__(self, stop_ids: Sequence[int], limits: Limits | None = None) -> None:
        super().__init__(stop_ids, limits)
        self._asked: dict[int, Any] = {}
        """Requests under way, by row."""
        self._asking = threading.Lock()
        """Held while a request is sent and noted, so that another thread's `cancel` comes before or after both."""
        self._cancelled = False

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        """Open `len(streams)` rows and forget those before, with their requests."""
        self.cancel()
        self._cancelled = False
        super().start(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled | None]:
        """Ask for what `rows` say next; wait until one of them has an answer at least. None for the rest.

        Raises SamplerError if the engine is gone. Whatever is raised here, an interruption too, no request goes on.
        """
        said: dict[int, Sampled] = {}
        try:
            for row, new in zip(rows, inputs, strict=True):
                if row in self._asked:
                    continue
                self._ids[row] += new
                room = self._room(row)
                if room <= 0:
                    said[row] = Sampled([], [], truncated=True)
                    continue
                with self._asking:
                    if self._cancelled:
                        raise SamplerError(STOPPED)
                    self._asked[row] = self._ask(row, room)
            said |= {row: self._answered(row, answer) for row, answer in self._answers(wait=not said).items()}
        except BaseException:
            self.cancel()
            raise
        return [said.get(row) for row in rows]

    @abstractmethod
    def _ask(self, row: int, room: int) -> Any:
        """Send a row's conversation, of which up to `room` tokens are sampled; return the request."""

    @abstractmethod
    def _answers(self, wait: bool) -> dict[int, Sampled]:
        """Take the answers that are there, out of `_asked`, too; with `wait` one at least."""

    def cancel(self) -> None:
        """Stop all requests, and send none until `start`. A turn that another thread is in ends, without an answer or
        in SamplerError."""
        with self._asking:
            self._cancelled = True
            self._abort()
            self._asked = {}

    @abstractmethod
    def _abort(self) -> None:
        """Stop the requests in `_asked`."""

    def close(self) -> None:
        """Stop all requests and free what this holds. The sampler cannot be used afterwards."""
        self.cancel()


class EngineSampler(OneByOne):
    """A `Sampler` on an `Engine`, whose requests run in a thread of their own."""

    backend = "the engine"

    def __init__(self, engine: Engine, stop_ids: Sequence[int], limits: Limits | None = None) -> None:
        super().__init__(stop_ids, limits)
        self.engine = engine
        self._loop = asyncio.new_event_loop()
        # a daemon: whoever is interrupted need not wait for the engine
        self._thread = threading.Thread(target=self._serve, name="ecomlab-engine", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _ask(self, row: int, room: int) -> tuple[Future[Answer], int]:
        return self._submit(self.engine.generate(list(self._ids[row]), room)), room

    def _answers(self, wait: bool) -> dict[int, Sampled]:
        asked = self._asked  # another thread may put an empty one in its place
        requests = [request for request, _ in asked.values()]
        futures.wait(requests, timeout=None if wait else 0, return_when=futures.FIRST_COMPLETED)
        ready = [row for row, (request, _) in asked.items() if request.done()]
        return {row: self._read(*asked.pop(row)) for row in ready}

    def _read(self, request: Future[Answer], room: int) -> Sampled:
        try:
            return self._cut(*request.result(), room)
        except futures.CancelledError as error:
            raise SamplerError(STOPPED) from error
        except SamplerError:
            raise
        except Exception as error:
            return Sampled([], [], True, failure=f"{type(error).__name__}: {error}")

    def _abort(self) -> None:
        for request, _ in list(self._asked.values()):  # another thread may take answers out
            request.cancel()

    def close(self) -> None:
        super().close()
        if self._thread.is_alive():
            self._submit(self.engine.close()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


class ColocatedSampler(OneByOne):
    """A `Sampler` on a vLLM in this process, `llm`, whose engine is stepped here, in the calling thread, until a row
    has its answer; its scheduler adds the rows that ask meanwhile to those that are being sampled."""

    backend = "the colocated vLLM"

    def __init__(self, llm: Any, stop_ids: Sequence[int], limits: Limits | None = None) -> None:
        super().__init__(stop_ids, limits)
        self._engine = llm.llm_engine
        self._names = (f"ecomlab-{number}" for number in itertools.count())

    def _ask(self, row: int, room: int) -> tuple[str, int]:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        asked = SamplingParams(
            **SAMPLING, max_tokens=room, stop_token_ids=list(self.stop_ids), detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )  # fmt: skip
        name = next(self._names)
        with self._in_words():
            self._engine.add_request(name, {"type": "token", "prompt_token_ids": list(self._ids[row])}, asked)
        return name, room

    def _answers(self, wait: bool) -> dict[int, Sampled]:
        said: dict[int, Sampled] = {}
        asked = self._asked  # another thread may put an empty one in its place, and end the wait
        rows = {name: row for row, (name, _) in asked.items()}
        while wait and not said and not self._cancelled:
            with self._in_words():
                found = [output for output in self._engine.step() if output.finished]
            for output in found:
                (answer,) = output.outputs
                row = rows[output.request_id]
                _, room = asked.pop(row)
                chosen = zip(answer.token_ids, answer.logprobs or (), strict=False)
                said[row] = self._cut(list(answer.token_ids), [known[i].logprob for i, known in chosen], room)
        return said

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # vLLM and its engine raise errors of their own
            raise SamplerError(
                f"the colocated vLLM failed ({type(error).__name__}: {error}); {way_out('colocate')}"
            ) from error

    def _abort(self) -> None:
        if self._asked:
            self._engine.abort_request([name for name, _ in self._asked.values()])


class VllmEngine:
    """A vLLM server at `url`, which serves `model`."""

    def __init__(self, url: str, model: str, stop_ids: Sequence[int], patience: float = PATIENCE) -> None:
        self.url, self.patience = url, patience
        self._asked = {
            **SAMPLING, "model": model, "stop_token_ids": list(stop_ids), "return_token_ids": True,
        }  # fmt: skip
        self._session: ClientSession | None = None

    async def generate(self, ids: Sequence[int], most: int) -> Answer:
        import aiohttp

        if self._session is None:
            # The server hangs up on connections that are idle: a request on an old one might cross with that.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            timeout = aiohttp.ClientTimeout(total=self.patience)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
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
