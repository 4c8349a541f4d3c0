"""An endpoint that words the customer: a synchronous function of chat messages, over the client that players use."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ecomlab.customer.llm import Answered, NoAnswerError
from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.client import Client, Writer, connected
from ecomlab.evaluation.endpoint.completion import Answer, ContextOverflow, EndpointFailure
from ecomlab.evaluation.endpoint.settings import EndpointSettings, endpoint_from_toml
from ecomlab.seeding import digest, rng
from ecomlab.task import Message

QUICK: Mapping[str, Any] = {"timeout": 30.0, "retries": 1, "max_tokens": 200}
"""Settings of a customer's endpoint, where its file has none: where no answer comes, the template is said."""


class EndpointChat:
    """Asks an endpoint for one answer at a time, from any number of threads at once.

    Its connections live in a thread of their own, from the first call until `close`.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings = settings
        settings.secret()  # a key that is missing is a mistake of the caller, not of the endpoint
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Event, Client] | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """Whatever decides the words; the key, speed and prices do not."""
        decides = ("url", "model", "temperature", "top_p", "max_tokens", "seed", "extra")
        return {"kind": "endpoint", **self.settings.model_dump(mode="json", include=set(decides))}

    def __call__(self, messages: list[Message]) -> Answered:
        """Return the endpoint's text and its cost. Raises NoAnswerError after the last try."""
        key = ("customer", self.settings.seed, digest(messages))
        sent = Writer(self.settings, ()).write(messages, int(rng(*key).integers(2**31)))
        loop, _, client = self._started()
        try:
            answer: Answer = asyncio.run_coroutine_threadsafe(client.answer(sent, key), loop).result()
        except (EndpointFailure, ContextOverflow) as failure:
            raise NoAnswerError(str(failure), _cost(failure.usage)) from failure
        return Answered(str(answer.message["content"]), _cost(answer.usage))

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            running, self._running = self._running, None
        if running:
            loop, over, _ = running
            loop.call_soon_threadsafe(over.set)

    def _started(self) -> tuple[asyncio.AbstractEventLoop, asyncio.Event, Client]:
        with self._lock:
            if self._running is None:
                ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Client]] = Future()
                threading.Thread(
                    target=lambda: asyncio.run(self._serve(ready)), name="ecomlab-customer", daemon=True
                ).start()
                self._running = ready.result()
            return self._running

    async def _serve(self, ready: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Client]]") -> None:
        over = asyncio.Event()
        try:
            async with connected(self.settings) as client:
                ready.set_result((asyncio.get_running_loop(), over, client))
                await over.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise


def _cost(usage: Usage) -> dict[str, int]:
    """Write what was used without the seconds, which whoever asks counts."""
    return {name: count for name, count in asdict(usage).items() if name != "seconds"}


def customer_from_toml(path: Path) -> EndpointChat:
    """Read the settings of the endpoint that words the customer: those of any endpoint, of which `url` and `model` must
    be there and `QUICK` are the defaults. Raises ConfigError."""
    settings = endpoint_from_toml(path)
    unsaid = {name: value for name, value in QUICK.items() if name not in settings.model_fields_set}
    return EndpointChat(settings.replace(**unsaid))
