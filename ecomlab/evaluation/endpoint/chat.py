"""An endpoint that words the customer: a synchronous function of chat messages over the client of players."""

import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ecomlab.customer.llm import Answered, NoAnswerError
from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.background import Background
from ecomlab.evaluation.endpoint.client import Client, EndpointFailure
from ecomlab.evaluation.endpoint.settings import EndpointSettings, endpoint_from_toml
from ecomlab.seeding import digest, rng
from ecomlab.task import Message

QUICK: Mapping[str, Any] = {"timeout": 30.0, "retries": 1, "max_tokens": 200}
"""Defaults of a customer's endpoint; without an answer, the template is used."""


class EndpointChat:
    """Asks an endpoint for single answers, from any number of threads.

    Its connections belong to a thread of their own, from the first call until `close`.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        """Raises ConfigError if the key is missing."""
        self.settings = settings
        settings.secret()
        self._lock = threading.Lock()
        self._running: tuple[Background, Client] | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The settings that determine the words, which excludes key, speed and prices."""
        decides = {"url", "model", "temperature", "top_p", "max_tokens", "seed", "extra"}
        return {"kind": "endpoint", **self.settings.model_dump(mode="json", include=decides)}

    def __call__(self, messages: list[Message]) -> Answered:
        """Return the endpoint's text and its usage. Raises NoAnswerError after the last retry."""
        seed = int(rng("customer", self.settings.seed, digest(messages)).integers(2**31))
        with self._lock:
            self._running = self._running or (Background("ecomlab-customer"), Client(self.settings))
            background, client = self._running
        try:
            answer = background.submit(client.answer(self.settings.request(messages, (), seed))).result()
        except EndpointFailure as failure:
            raise NoAnswerError(str(failure), _cost(failure.usage)) from failure
        return Answered(str(answer.message["content"]), _cost(answer.usage))

    def close(self) -> None:
        """Close the connections; a later call reopens them."""
        with self._lock:
            running, self._running = self._running, None
        if running:
            background, client = running
            background.submit(client.close()).result()
            background.close()


def _cost(usage: Usage) -> dict[str, int]:
    """Drop the seconds, which the caller counts."""
    return {name: count for name, count in asdict(usage).items() if name != "seconds"}


def customer_from_toml(path: Path) -> EndpointChat:
    """Read the endpoint that words the customer: the settings of any endpoint, with the defaults of `QUICK`. Raises
    ConfigError."""
    settings = endpoint_from_toml(path)
    unsaid = {name: value for name, value in QUICK.items() if name not in settings.model_fields_set}
    return EndpointChat(settings.replace(**unsaid))
