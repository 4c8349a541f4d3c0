"""A model behind an endpoint as a contestant, with many concurrent episodes."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import Chat
from ecomlab.episode.episode import Episode
from ecomlab.episode.messages import parse_output
from ecomlab.evaluation.contestant import Job, Usage, customer_identity, note_turn
from ecomlab.evaluation.endpoint import templates
from ecomlab.evaluation.endpoint.background import iterate, run_each
from ecomlab.evaluation.endpoint.client import CONTEXT, REFUSED, Answer, Client, EndpointFailure
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.evaluation.faults import looks_like_call
from ecomlab.evaluation.scripted import open_episode, recorded
from ecomlab.evaluation.tasks import write_axes
from ecomlab.evaluation.transcript import Transcript
from ecomlab.seeding import digest, rng
from ecomlab.settings import ConfigError
from ecomlab.suggest import raised
from ecomlab.task import Message

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

SHOWN = 2_000
"""Maximum characters that are kept of a truncated answer."""
GIVEN_UP = 16
"""Consecutive failed requests, or `concurrency` if that is more, after which no further one is sent."""
WAYS_OUT: dict[int, str] = {
    **dict.fromkeys((301, 302, 307, 308), "set `url` to the new address, without /chat/completions"),
    401: "name an environment variable with a valid key in `key`",
    402: "pay for the account behind `key`, or name the key of another account",
    403: "name an environment variable with a key that may use this model in `key`",
    404: "check `url`, the part before /chat/completions, and `model`",
}
OTHERWISE = (
    'change the named setting: seed = -1 and max_tokens = 0 omit these fields, tools = "text" sends no tools'
)


class EndpointContestant:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, settings: EndpointSettings, customer: Chat | None = None) -> None:
        self.settings = settings
        self.customer = customer
        """The endpoint that words the customer; None for the templates."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The settings that determine the answers, which excludes key, speed and prices."""
        unsaid = {
            "name",
            "key",
            "concurrency",
            "timeout",
            "retries",
            "backoff",
            "requests_a_minute",
            "prices",
        }
        said = self.settings.model_dump(mode="json", exclude=unsaid)
        prompt = {"prompt": digest(templates.PROMPT)} if self.settings.tools == "text" else {}
        return {"kind": "endpoint", **said, **prompt, **customer_identity(self.customer)}

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Transcript]:
        """Play all jobs, `concurrency` at a time.

        Raises ConfigError if the endpoint refuses the first requests: a wrong key, model or setting. After too many
        consecutive failures the remaining jobs are unscored.
        """
        self.settings.secret()
        return iterate(lambda hand_over: self._play_all(list(jobs), shop, hand_over))

    async def _play_all(
        self, jobs: Sequence[Job], shop: "Shop", hand_over: Callable[[Transcript], None]
    ) -> None:
        if self.customer is not None:  # each episode waits for it in a thread of its own
            workers = ThreadPoolExecutor(self.settings.concurrency, "ecomlab-customer")
            asyncio.get_running_loop().set_default_executor(workers)
        client = Client(self.settings)
        try:
            await run_each(
                lambda job: self._play(job, shop, client), jobs, self.settings.concurrency, hand_over
            )
        finally:
            await client.close()

    async def _play(self, job: Job, shop: "Shop", client: Client) -> Transcript:
        """Play one job to its end."""
        if client.last and client.gave_up >= max(GIVEN_UP, self.settings.concurrency):
            return Transcript.of(
                job, None, unscored=client.last.kind, notes={"why": f"not played: {client.last}"}
            )
        opening = (job, shop, self.settings.strict, self.customer)
        if self.customer is None:
            opened = open_episode(*opening)
        else:  # other episodes go on while it words the opening
            opened = await asyncio.to_thread(open_episode, *opening)
        if isinstance(opened, Transcript):
            return opened
        talk = _Conversation(job, opened, self.settings)
        await talk.play(client)
        return recorded(job, opened, talk.unscored, talk.usage, talk.notes, talk.cut, talk.refused)


@dataclass
class _Conversation:
    """A running episode."""

    job: Job
    episode: Episode
    settings: EndpointSettings
    usage: Usage = field(default_factory=Usage)
    cut: str = ""
    """The token limit that ended the episode: length or context."""
    refused: set[int] = field(default_factory=set)
    """Numbers of the assistant messages that the server marks as refusals."""
    unscored: str = ""
    notes: dict[str, Any] = field(default_factory=lambda: {"finish": {}})

    async def play(self, client: Client) -> None:
        """Play the episode to its end."""
        job = self.job
        seeds = rng("endpoint", self.settings.seed, job.env, job.d, write_axes(job.axes), job.seed, job.trial)
        try:
            while not self.episode.done:
                answer = await self._ask(client, int(seeds.integers(2**31)))
                if self.episode.wording is None:
                    self._take(answer)
                else:
                    await asyncio.to_thread(self._take, answer)
        except EndpointFailure as failure:
            self.usage += failure.usage
            if failure.kind == REFUSED and not client.answered:
                asked = f"{self.settings.address}, asked for model {self.settings.model!r},"
                way_out = WAYS_OUT.get(failure.status, OTHERWISE)
                raise ConfigError(f"{asked} refuses the first request ({failure}); {way_out}") from None
            if failure.kind == CONTEXT:
                self._cut_off(CONTEXT, str(failure))
            else:
                self._fail(failure.kind, f"{failure.kind}: {failure}")
        except Exception as error:  # a bug costs one unscored episode, not the run
            self._fail("bug", raised(error))

    async def _ask(self, client: Client, seed: int) -> Answer:
        """Ask for the next message."""
        messages, tools = self.episode.messages, self.episode.tools
        if self.settings.tools == "text":
            messages, tools = templates.write(messages, tools), []
        body, refused = self.settings.request(messages, tools, seed), Usage()
        try:
            answer = await client.answer(body)
        except EndpointFailure as failure:
            if failure.kind != CONTEXT or "max_tokens" not in body:
                raise
            self.usage += (refused := failure.usage)
            # the prompt may fit where prompt + max_tokens does not
            del body["max_tokens"]
            answer = await client.answer(body)
        self.usage += answer.usage
        note_turn(self.notes, refused + answer.usage)
        _count(self.notes["finish"], answer.finish)
        if answer.fingerprint and answer.fingerprint not in self.notes.setdefault("fingerprints", []):
            self.notes["fingerprints"].append(answer.fingerprint)
        return answer

    def _take(self, answer: Answer) -> None:
        """Pass an answer to the episode, unless a token limit truncated it."""
        message = answer.message
        read = answer.usage.prompt_tokens + answer.usage.completion_tokens
        if answer.finish == "length":
            return self._cut_off("length", str(message["content"]))
        if self.settings.context and read > self.settings.context:
            return self._cut_off(CONTEXT, f"{read} tokens")
        if self.settings.tools == "text" and isinstance(message["content"], str):
            message = parse_output(message["content"])
        if answer.empty:
            _count(self.notes, "only_reasoning")
        if answer.refused:
            self.refused.add(sum(said["role"] == "assistant" for said in self.episode.messages))
        called = message.get("tool_calls") or message.get("invalid")
        if not called and looks_like_call(str(message["content"])):
            _count(self.notes, "calls_in_text")
        self.episode.act(with_ids(message))

    def _cut_off(self, limit: str, seen: str) -> None:
        """End the episode by a token limit: length or context."""
        self.cut, self.notes["cut_off"] = limit, seen[:SHOWN]
        self.episode.end_truncated()

    def _fail(self, kind: str, why: str) -> None:
        """End the episode unscored."""
        self.unscored = kind
        self.episode.fail(why)


def _count(counts: dict[str, Any], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def with_ids(message: Message) -> Message:
    """Renumber the calls of a message if two have the same id."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        return message
    if len({str(call.get("id")) for call in calls}) == len(calls):
        return message
    return {**message, "tool_calls": [{**call, "id": f"call_{n}"} for n, call in enumerate(calls)]}
