"""Requests to an endpoint through the openai package: retries, classes of failures, parsing of answers."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from ecomlab.episode.messages import without_thinking
from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.seeding import rng
from ecomlab.settings import ConfigError
from ecomlab.task import Message

if TYPE_CHECKING:
    from httpx2 import Response

SHOWN = 300
"""Maximum characters of a server's text in a reason."""
LONGEST_WAIT = 600.0
"""Maximum seconds of a wait that a server asks for; a request with a longer one has failed."""
MOST_BACKOFF = 60.0
CONTEXT, REFUSED = "context", "request refused"
"""Kinds of failures: a conversation that is too long (the model's own), and one that may be the caller's mistake."""
_SIZE = r"context[ _](?:length|window|size)"
_OVERFLOW = re.compile(
    rf"(?:exceed|maximum|longer|larger|greater)[^.]{{0,60}}{_SIZE}|{_SIZE}[^.]{{0,40}}exceed|prompt is too long",
    re.IGNORECASE,
)
"""Messages of OpenAI, vLLM, SGLang, llama.cpp, ollama and others for a conversation that is too long."""
_LONE = re.compile("[\ud800-\udfff]")


class EndpointFailure(Exception):
    """A request failed; `kind` is the class of an unscored episode, or CONTEXT."""

    def __init__(
        self, kind: str, why: str, *, again: bool = False, wait: float | None = None, status: int = 200
    ) -> None:
        super().__init__(why)
        self.kind = kind
        self.again = again
        """Whether a retry may succeed."""
        self.wait = wait
        """Seconds to wait before it, if the server asks for it."""
        self.status = status
        """HTTP status, 200 without one."""
        self.usage = Usage()
        """Usage of all tries, without tokens."""


@dataclass(frozen=True)
class Answer:
    """An answer of the model."""

    message: Message
    """Assistant message as sent by the server; the episode checks it."""
    finish: str
    """The server's finish reason: stop, length, tool_calls, content_filter, ...; "" if missing."""
    refused: bool
    """Whether the server marks the answer as a refusal."""
    empty: bool
    """Whether the answer is only reasoning, in a field of its own."""
    usage: Usage
    """Tokens by the server's count."""
    fingerprint: str = ""
    """The server's name for its weights and software, if given."""


class Client:
    """Connections to an endpoint, for one event loop, until `close`."""

    def __init__(self, settings: EndpointSettings) -> None:
        """Raises ConfigError if the key or the openai package is missing."""
        try:
            import httpx2
            from openai import AsyncOpenAI, DefaultAioHttpClient
        except ImportError:
            raise ConfigError(
                "an endpoint needs the openai package; pip install 'ecomlab[endpoint]'"
            ) from None

        self.settings = settings
        self._secret = settings.secret()
        limits = httpx2.Limits(
            max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency
        )
        self._http = AsyncOpenAI(
            base_url=settings.url,
            api_key=self._secret or "none",  # required by the package
            max_retries=0,  # `answer` retries, and counts the requests
            timeout=None,  # of each read; `_post` limits the whole request
            http_client=DefaultAioHttpClient(limits=limits, follow_redirects=False, timeout=None),
        )
        self._jitter = rng("backoff")
        self._next = 0.0
        """Earliest time of the next request."""
        self.answered = False
        """Whether there has been an answer."""
        self.gave_up = 0
        """Requests that have failed after all tries since the last answer."""
        self.last: EndpointFailure | None = None
        """The failure of the last of them."""

    async def close(self) -> None:
        await self._http.close()

    async def answer(self, body: Mapping[str, Any]) -> Answer:
        """Send a request, with retries. Raises EndpointFailure after the last one."""
        began = time.monotonic()
        for attempt in count():
            await self._turn()
            cost = Usage(attempt + 1, retries=attempt)
            try:
                answer = await self._post(body)
            except EndpointFailure as failure:
                if failure.again and attempt < self.settings.retries:
                    await self._back_off(failure, attempt)
                    continue
                failure.usage = replace(cost, seconds=time.monotonic() - began)
                if failure.kind == CONTEXT:  # an answer, too
                    self.answered, self.gave_up = True, 0
                else:
                    self.gave_up, self.last = self.gave_up + 1, failure
                raise
            self.answered, self.gave_up = True, 0
            return replace(answer, usage=answer.usage + replace(cost, seconds=time.monotonic() - began))
        raise AssertionError("count never ends")

    async def _turn(self) -> None:
        """Wait for the turn of a request, by the pace in the settings and any wait that the server asked for."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + (60 / self.settings.requests_a_minute if self.settings.requests_a_minute else 0)
        await asyncio.sleep(turn - now)

    async def _back_off(self, failure: EndpointFailure, attempt: int) -> None:
        """Wait before a retry. A wait that the server asks for applies to all requests."""
        if failure.wait:
            self._next = max(self._next, time.monotonic() + failure.wait)
        longest = min(MOST_BACKOFF, self.settings.backoff * 2**attempt)
        await asyncio.sleep(longest * self._jitter.uniform(0.5, 1.0))

    async def _post(self, body: Mapping[str, Any]) -> Answer:
        """Send one request."""
        import openai
        from httpx2 import Response

        seconds = self.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.post(self.settings.address, body=dict(body), cast_to=Response)
        except TimeoutError:
            raise EndpointFailure("timeout", f"no answer in {seconds:g} s", again=True) from None
        except openai.APIConnectionError as error:
            why = self._shown(str(error.__cause__ or error))
            raise EndpointFailure("connection", why, again=True) from None
        except openai.APIStatusError as error:
            response = error.response
            moved = response.headers.get("Location", "") if response.status_code < 400 else ""
            raise self._failed(
                response.status_code, f"{response.text} {moved}", _retry_after(response)
            ) from None
        return self._read(response.text)

    def _read(self, text: str) -> Answer:
        """Read a chat completion. Raises EndpointFailure for anything else."""
        try:
            found = json.loads(text)
            if "\\ud" in text.lower():  # lone surrogates, which UTF-8 files cannot contain
                found = json.loads(_LONE.sub("\ufffd", json.dumps(found, ensure_ascii=False)))
        except (ValueError, RecursionError):
            raise EndpointFailure("no completion", f"not JSON: {self._shown(text)}", again=True) from None
        try:
            choice = found["choices"][0]
            message = dict(choice["message"])
        except (LookupError, TypeError, ValueError):
            why = f"no chat completion: {self._shown(text)}"
            raise EndpointFailure("no completion", why, again=True) from None
        finish = str(choice.get("finish_reason") or "")
        if finish in ("error", "abort"):  # of routers and vLLM
            raise EndpointFailure("server error", f"the answer ends with {finish!r}", again=True)
        content, refusal = _content(message.get("content")), message.get("refusal")
        said = {"role": "assistant", "content": content or refusal or ""}
        if message.get("tool_calls"):
            said["tool_calls"] = message["tool_calls"]
        reasoned = message.get("reasoning_content") or message.get("reasoning")
        return Answer(
            message=said,
            finish=finish,
            refused=bool(refusal) or finish == "content_filter",
            empty=bool(reasoned) and not (str(content).strip() or said.get("tool_calls")),
            usage=_usage(found.get("usage")),
            fingerprint=str(found.get("system_fingerprint") or "")[:SHOWN],
        )

    def _failed(self, status: int, text: str, wait: float | None = None) -> EndpointFailure:
        """Classify an answer with this status."""
        why = f"status {status}: {self._shown(text)}"
        if (status in (400, 413, 422) or status >= 500) and _OVERFLOW.search(text):
            return EndpointFailure(CONTEXT, why, status=status)
        if status == 429 or status == 408 or status >= 500:
            kind = "rate limit" if status == 429 else "server error"
            return EndpointFailure(kind, why, again=(wait or 0) <= LONGEST_WAIT, wait=wait, status=status)
        return EndpointFailure(REFUSED, why, status=status)

    def _shown(self, text: str) -> str:
        """Shorten a server's text to one line, without the key, which some servers quote."""
        text = text.replace(self._secret, "***") if self._secret else text
        return " ".join(text[: 4 * SHOWN].split())[:SHOWN] or "nothing"


def _retry_after(response: "Response") -> float | None:
    """Read the seconds of Retry-After."""
    text = response.headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _content(content: Any) -> Any:
    """Read text that may come in parts; the episode judges anything else."""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return without_thinking(content) if isinstance(content, str) else content


def _usage(usage: Any) -> Usage:
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    prompt = _count(usage.get("prompt_tokens"))
    return Usage(
        prompt_tokens=prompt,
        cached_tokens=min(prompt, _count(cached)),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _count(number: Any) -> int:
    return number if type(number) is int and number >= 0 else 0
