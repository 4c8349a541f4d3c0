"""Settings of an endpoint: address, request fields, limits, and prices of tokens."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from ecomlab.evaluation.contestant import Usage
from ecomlab.settings import ConfigError, Settings, checked_by, load_toml
from ecomlab.task import Message

OURS = ("model", "messages", "tools", "stream", "n", "temperature", "top_p", "max_tokens", "seed")
"""Fields of a request that `extra` must not contain: they have settings of their own, or none."""
SECRET = ("key", "token", "secret", "password")
"""Words in a URL's query that indicate a secret, which the records would contain."""


def _url_mistake(url: str) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"is an address such as http://127.0.0.1:8000/v1, not {url!r}"
    if parts.username or parts.password or any(word in parts.query.lower() for word in SECRET):
        return "contains a secret, which the records would contain too; name an environment variable in `key`"
    if parts.path.rstrip("/").endswith("/completions"):
        return f"is the part before /chat/completions, not {url!r}"
    return None


def _extra_mistake(extra: Mapping[str, Any]) -> str | None:
    taken = [name for name in extra if name in OURS]
    return f"cannot hold {', '.join(taken)}; see the settings of that name" if taken else None


class Prices(Settings):
    """Prices of a million tokens, in one currency."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Price of cached input. Default: that of other input."""
    currency: str = "USD"

    def cost(self, usage: Usage) -> float:
        """Compute the cost of some usage, in `currency`."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.prompt_tokens - usage.cached_tokens
        return (
            fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        ) / 1e6


class EndpointSettings(Settings):
    """A model behind an OpenAI-compatible endpoint, and the fields of its requests."""

    url: Annotated[str, checked_by(_url_mistake)]
    """Address before "/chat/completions", such as http://127.0.0.1:8000/v1."""
    model: str = Field(min_length=1)
    """The endpoint's name of the model."""
    name: str = ""
    """Name in tables and figures. Default: `model`."""
    key: str = ""
    """Name of the environment variable with the key; "" for an endpoint without keys."""

    tools: Literal["native", "text"] = "native"
    """native: the endpoint takes tools and returns calls; text: both are part of the text."""
    strict: bool = False
    """End an episode at its first format error."""
    context: int | None = Field(default=None, ge=1)
    """Context length of the model in tokens: an episode that exceeds it, by the server's count, ends truncated."""

    temperature: float | None = Field(default=None, ge=0)
    """Default of this and top_p: the endpoint's."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=2048, ge=0)
    """Maximum tokens of an answer; 0 sends no limit."""
    seed: int = Field(default=0, ge=-1)
    """Seed from which the seed of every request is drawn; -1 sends none."""
    extra: Annotated[dict[str, Any], checked_by(_extra_mistake)] = Field(default_factory=dict)
    """Further fields of every request, such as {"chat_template_kwargs": {"enable_thinking": false}}."""

    concurrency: int = Field(default=64, ge=1, le=1024)
    """Concurrent episodes."""
    timeout: float = Field(default=120.0, gt=0)
    """Seconds per request."""
    retries: int = Field(default=5, ge=0)
    """Retries of a request that failed because of the server."""
    backoff: float = Field(default=1.0, gt=0)
    """Maximum seconds before the first retry; they double with every further one, up to a minute."""
    requests_a_minute: int | None = Field(default=None, ge=1)
    """Maximum requests per minute of all episodes together. Default: no limit."""
    prices: Prices | None = None
    """Default: no cost is computed."""

    def secret(self) -> str:
        """Read the key from its environment variable; "" if none is named. Raises ConfigError."""
        if not self.key:
            return ""
        found = os.environ.get(self.key, "").strip()
        if not found:
            raise ConfigError(
                f"key: the environment variable {self.key} is not set; export it, or leave `key` out for an "
                "endpoint without keys"
            )
        return found

    @property
    def address(self) -> str:
        """Address of requests."""
        parts = urlsplit(self.url)
        return parts._replace(path=parts.path.rstrip("/") + "/chat/completions", fragment="").geturl()

    def request(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], seed: int
    ) -> dict[str, Any]:
        """Write a request: messages, tools and settings, nothing else."""
        body: dict[str, Any] = {"messages": list(messages), "model": self.model}
        if tools and self.tools == "native":
            body["tools"] = list(tools)
        for name in ("temperature", "top_p"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if self.max_tokens:
            body["max_tokens"] = self.max_tokens
        if self.seed >= 0:
            body["seed"] = seed
        return body | self.extra


def endpoint_from_toml(path: Path, changes: Mapping[str, Any] | None = None) -> EndpointSettings:
    """Read `EndpointSettings` from a TOML file of its fields, overridden by `changes`. Raises ConfigError."""
    given = load_toml(path, "it must set at least url and model")
    try:
        return EndpointSettings(**(given | dict(changes or {})))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
