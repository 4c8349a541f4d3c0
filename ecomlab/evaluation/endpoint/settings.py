"""Settings of an endpoint: where a model is, how it is asked, and what its tokens cost."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.templates import TEMPLATES
from ecomlab.settings import ConfigError, Settings, checked_by, load_toml, one_of
from ecomlab.task import Message

OURS = ("model", "messages", "tools", "stream", "n", "temperature", "top_p", "max_tokens", "seed")
"""Fields of a request that `extra` may not hold: they have settings of their own, or none."""
SECRET = ("key", "token", "secret", "password")
"""Words in the name of a query's field that give away a secret, which would be written into records."""


def _url_mistake(url: str) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"is an address such as http://127.0.0.1:8000/v1, not {url!r}"
    if parts.username or parts.password or any(word in parts.query.lower() for word in SECRET):
        return "holds a secret, which would be written into records; name an environment variable in `key`"
    if parts.path.rstrip("/").endswith("/completions"):
        return f"is the part before /chat/completions, not {url!r}"
    return None


def _extra_mistake(extra: Mapping[str, Any]) -> str | None:
    taken = [name for name in extra if name in OURS]
    return f"cannot hold {', '.join(taken)}; see the settings of that name" if taken else None


class Prices(Settings):
    """What a million tokens cost, in one currency."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(None, ge=0)
    """Of input that was read from a cache. Default: as any input."""
    currency: str = "USD"

    def cost(self, usage: Usage) -> float:
        """Compute the cost of what a model was asked for, in `currency`."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.prompt_tokens - usage.cached_tokens
        return (
            fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        ) / 1e6


class EndpointSettings(Settings):
    """A model behind an OpenAI-compatible endpoint, and how it is asked."""

    url: Annotated[str, checked_by(_url_mistake)]
    """Address before "/chat/completions", such as http://127.0.0.1:8000/v1."""
    model: str = Field(min_length=1)
    """Name of the model, as the endpoint has it."""
    name: str = ""
    """Name in tables and figures. Default: `model`."""
    key: str = ""
    """Name of the environment variable that holds the key; "" for an endpoint that takes none."""

    tools: Literal["native", "text"] = "native"
    """Whether the endpoint takes tools and returns calls, or both are written as text."""
    template: Annotated[str, one_of("template", TEMPLATES)] = "hermes"
    """How tools and calls are written as text."""
    strict: bool = False
    """End an episode at the first format error."""
    context: int | None = Field(None, ge=1)
    """Tokens that the model was made for; an episode that grows beyond ends truncated, as far as the server counts its
    tokens, whatever else it does."""

    temperature: float | None = Field(None, ge=0)
    """Default, here and for top_p: the endpoint's."""
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int = Field(2048, ge=0)
    """Most tokens of one answer; 0 leaves that to the endpoint."""
    seed: int = Field(0, ge=-1)
    """Seed from which every request gets one of its own; -1 sends none."""
    extra: Annotated[dict[str, Any], checked_by(_extra_mistake)] = Field(default_factory=dict)
    """Further fields of every request, such as {"chat_template_kwargs": {"enable_thinking": false}}."""

    concurrency: int = Field(64, ge=1, le=1024)
    """Episodes at once."""
    timeout: float = Field(120.0, gt=0)
    """Seconds for one request."""
    retries: int = Field(5, ge=0)
    """Further tries of a request that failed for the server's reasons."""
    backoff: float = Field(1.0, gt=0)
    """Seconds before the second try, at most; they double with every further one, up to a minute."""
    requests_a_minute: int | None = Field(None, ge=1)
    """Most requests a minute, of all episodes together. Default: no limit of ours."""
    prices: Prices | None = None
    """Default: costs are not counted."""

    def __init__(self, **given: Any) -> None:
        if isinstance(given.get("prices"), Mapping):
            try:
                given["prices"] = Prices(**given["prices"])
            except ConfigError as error:
                raise ConfigError(f"prices: {error}") from None
        super().__init__(**given)

    def secret(self) -> str:
        """Read the key from its environment variable; "" where none is needed. Raises ConfigError."""
        if not self.key:
            return ""
        found = os.environ.get(self.key, "").strip()
        if not found:
            raise ConfigError(
                f"key: the environment variable {self.key} is not set; export it, or leave `key` out for an "
                "endpoint that takes none"
            )
        return found

    @property
    def address(self) -> str:
        """Address that requests go to."""
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
    given = load_toml(path, "it would hold at least url and model")
    try:
        return EndpointSettings(**(given | dict(changes or {})))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
