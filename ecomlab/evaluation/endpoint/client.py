"""Requests to one endpoint, many at once: a shared rate limit, tries again with backoff, and failures by class."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import Usage
from ecomlab.evaluation.endpoint.completion import (
    Answer,
    ContextOverflow,
    EndpointFailure,
    failure_of,
    read_completion,
    rejected_call,
)
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.seeding import rng
from ecomlab.task import Message

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
MOST_BODY = 4 * 2**20
"""Most bytes of an answer."""
LONGEST_WAIT = 600.0
"""Most seconds to wait because a server asks for it; one that asks for more has failed."""
MOST_BACKOFF = 60.0
FIRST_GAP, MOST_GAP = 0.05, 10.0
"""Seconds between two requests after a first rate limit, and at most after many."""
EASED = 0.9
"""What an answer leaves of the gap that rate limits made."""


class Pace:
    """When requests may be sent: at most so many a minute, and none before a time that the server named.

    After that time those that waited go one by one, not all at once into the same limit: every further limit doubles
    the gap between them, every answer narrows it.
    """

    def __init__(self, requests_a_minute: int | None) -> None:
        self._least = self._gap = 60 / requests_a_minute if requests_a_minute else 0.0
        self._next, self._limited = 0.0, -math.inf
        self._line = asyncio.Lock()

    async def wait(self) -> float:
        """Wait for this request's turn, and return when that is; whoever came first goes first."""
        async with self._line:
            while (seconds := self._next - time.monotonic()) > 0:
                await asyncio.sleep(seconds)
            now = time.monotonic()
            self._next = now + self._gap
            return now

    def hold(self, seconds: float, turn: float) -> None:
        """Hold back all further requests for so long, because the one that had its turn then was refused."""
        now = time.monotonic()
        # those under way at a limit are refused with it, however late: it counts once
        if turn > self._limited:
            self._gap = max(self._least, min(MOST_GAP, max(FIRST_GAP, 2 * self._gap)))
            self._limited = now
        self._next = max(self._next, now + seconds)

    def ease(self) -> None:
        """Narrow the gap that rate limits made: there was an answer."""
        eased = self._gap * EASED
        self._gap = max(self._least, eased if eased > FIRST_GAP / 10 else 0.0)


class Client:
    """An open connection pool. Made by `connected`; belongs to one event loop."""

    def __init__(self, settings: EndpointSettings, session: "ClientSession", secret: str) -> None:
        self.settings = settings
        self._session = session
        self._secret = secret
        self._pace = Pace(settings.requests_a_minute)
        self.gave_up = 0
        """Requests that failed after all tries, since the last answer."""
        self.last: EndpointFailure | None = None
        """The failure of the last of them."""

    async def answer(self, sent: bytes, key: Sequence[Any]) -> Answer:
        """Send a request until there is an answer. `key` names the randomness of the backoff.

        Raises EndpointFailure after the last try, and ContextOverflow.
        """
        began = time.monotonic()
        for attempt in count():
            turn = await self._pace.wait()
            try:
                answer = read_completion(await self._post(sent), self.settings)
            except EndpointFailure as failure:
                if not self._may_retry(failure, attempt):
                    failure.usage = Usage(attempt + 1, retries=attempt, seconds=time.monotonic() - began)
                    self.gave_up, self.last = self.gave_up + 1, failure
                    raise
                await self._back_off(failure, attempt, turn, key)
            except ContextOverflow as overflow:
                overflow.usage = Usage(attempt + 1, retries=attempt, seconds=time.monotonic() - began)
                self.gave_up = 0  # it is an answer
                self._pace.ease()
                raise
            else:
                self.gave_up = 0
                self._pace.ease()
                seconds = time.monotonic() - began
                usage = replace(answer.usage, requests=attempt + 1, retries=attempt, seconds=seconds)
                return replace(answer, usage=usage)
        raise AssertionError("count never ends")

    def _may_retry(self, failure: EndpointFailure, attempt: int) -> bool:
        return failure.again and attempt < self.settings.retries and (failure.wait or 0) <= LONGEST_WAIT

    async def _back_off(
        self, failure: EndpointFailure, attempt: int, turn: float, key: Sequence[Any]
    ) -> None:
        """Wait before the next try. A rate limit is everybody's, and so is the wait that a server asks for."""
        longest = min(MOST_BACKOFF, self.settings.backoff * 2**attempt)
        seconds = longest * rng("backoff", *key, attempt).uniform(0.5, 1.0)
        if failure.kind == "rate limit" or failure.wait:
            self._pace.hold(failure.wait or seconds, turn)
        await asyncio.sleep(seconds)

    async def _post(self, sent: bytes) -> bytes:
        """Send one request and return the body of its answer."""
        import aiohttp

        try:
            async with self._session.post(
                self.settings.address, data=sent, allow_redirects=False
            ) as response:
                body = self._scrubbed(await _read(response))
                if (withheld := rejected_call(response.status, body)) is not None:
                    return withheld
                if response.status != 200:
                    wait = _retry_after(response.headers)
                    moved = self._scrubbed(response.headers.get("Location", "").encode())
                    raise failure_of(response.status, body, wait, moved)
                return body
        except TimeoutError:  # first: aiohttp's are connection errors as well
            raise EndpointFailure(
                "timeout", f"no answer in {self.settings.timeout:g} s", again=True
            ) from None
        except aiohttp.ClientConnectionError as error:
            raise EndpointFailure("connection", _worded(error), again=True) from None
        except aiohttp.ClientPayloadError as error:
            raise EndpointFailure("cut off", _worded(error), again=True) from None
        except aiohttp.ClientError as error:  # what came is no HTTP
            raise EndpointFailure("no completion", _worded(error), again=True) from None

    def _scrubbed(self, body: bytes) -> bytes:
        """Leave out the key, which servers like to quote."""
        return body.replace(self._secret.encode(), b"***") if self._secret else body


@asynccontextmanager
async def connected(settings: EndpointSettings) -> AsyncIterator[Client]:
    """Open a client. Raises ConfigError where the key is missing."""
    import aiohttp

    secret = settings.secret()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
    async with aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=settings.timeout),
        connector=aiohttp.TCPConnector(limit=settings.concurrency),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield Client(settings, session, secret)


class Writer:
    """Writes the requests of one conversation: its messages and tools, and the settings, nothing else.

    The conversation only grows, so that what was encoded once is kept.
    """

    def __init__(self, settings: EndpointSettings, tools: Sequence[Mapping[str, Any]]) -> None:
        self.settings = settings
        self._tools = f',"tools":{_json(list(tools))}' if tools else ""
        self._messages: list[str] = []

    def write(self, messages: Sequence[Message], seed: int, limited: bool = True) -> bytes:
        """Write the request that follows `messages`; unless `limited`, without max_tokens."""
        self._messages += map(_json, messages[len(self._messages) :])
        settings = self.settings
        fields: dict[str, Any] = {"model": settings.model}
        for name in ("temperature", "top_p"):
            if (value := getattr(settings, name)) is not None:
                fields[name] = value
        if settings.max_tokens and limited:
            fields["max_tokens"] = settings.max_tokens
        if settings.seed >= 0:
            fields["seed"] = seed
        conversation = f'"messages":[{",".join(self._messages)}]{self._tools}'
        return f"{{{conversation},{_json(fields | settings.extra)[1:]}".encode("utf-8", "replace")


async def _read(response: "ClientResponse") -> bytes:
    """Read a body up to MOST_BODY. Raises EndpointFailure beyond."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MOST_BODY:
            raise EndpointFailure("too large", f"the answer is larger than {MOST_BODY} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds of Retry-After, which may be a date."""
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = float(text) if text[:1].isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds)


def _worded(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
