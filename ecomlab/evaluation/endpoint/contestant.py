"""A model behind an endpoint as a contestant: many episodes at once, each waiting for its own answers."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ecomlab.customer.llm import Chat
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.conversation import Conversation, open_episode
from ecomlab.evaluation.customers import customer_identity
from ecomlab.evaluation.endpoint.background import iterate
from ecomlab.evaluation.endpoint.client import Client, Writer, connected
from ecomlab.evaluation.endpoint.completion import Answer, ContextOverflow, EndpointFailure, numbered
from ecomlab.evaluation.endpoint.settings import EndpointSettings
from ecomlab.evaluation.endpoint.templates import TEMPLATES
from ecomlab.evaluation.tasks import write_axes
from ecomlab.evaluation.transcript import Transcript
from ecomlab.seeding import digest, rng
from ecomlab.settings import ConfigError
from ecomlab.suggest import raised
from ecomlab.task import Message

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

GIVEN_UP = 16
"""Requests in a row that fail after all tries, beyond one for each episode under way, after which none is sent."""
HELLO: list[Message] = [
    {"role": "system", "content": "You are a shop assistant."},
    {"role": "user", "content": "Hello! Please answer with one word."},
]
CLOCK = {
    "type": "function",
    "function": {
        "name": "datetime_now",
        "description": "Tell date and time.",
        "parameters": {"type": "object", "properties": {}},
    },
}
"""A tool for the first request, so that an endpoint without native calls is noticed."""
MOVED = "set `url` to the new address, without /chat/completions"
WAYS_OUT = {
    **dict.fromkeys((301, 302, 307, 308), MOVED),
    401: "name an environment variable with a valid key in `key`",
    402: "pay for the account behind `key`, or name another's key there",
    403: "name an environment variable with a key that may use this model in `key`",
    404: "check `url`, which is all before /chat/completions, and `model`",
}
OTHERWISE = 'change the setting that it names: seed = -1 and max_tokens = 0 leave these out, tools = "text" sends none'


class EndpointContestant:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, settings: EndpointSettings, customer: Chat | None = None) -> None:
        self.settings = settings
        self.customer = customer
        """The endpoint that words the customer; None where the templates are said."""
        self._probed = False

    @property
    def identity(self) -> Mapping[str, Any]:
        """Whatever decides the answers; the key, speed and prices do not."""
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
        template = TEMPLATES[said.pop("template")]
        written = {"template": self.settings.template, "prompt": digest(template.prompt)}
        written = written if self.settings.tools == "text" else {}
        return {"kind": "endpoint", **said, **written, **customer_identity(self.customer)}

    @property
    def at_once(self) -> int:
        return self.settings.concurrency

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Transcript]:
        """Play all jobs, `concurrency` at once.

        The first call sends one request of its own, counted with the first episode in the role "probe". Raises
        ConfigError where the endpoint refuses that: a wrong key, model or setting. Where the server fails, here or so
        many times in a row that it must be gone, the jobs left are unscored at once.
        """
        self.settings.secret()
        return iterate(lambda hand_over: self._play_all(list(jobs), shop, hand_over))

    async def _play_all(
        self, jobs: Sequence[Job], shop: "Shop", hand_over: Callable[[Transcript], None]
    ) -> None:
        if self.customer is not None:  # whom every episode may be waiting for, in a thread of its own
            workers = ThreadPoolExecutor(self.settings.concurrency, "ecomlab-customer")
            asyncio.get_running_loop().set_default_executor(workers)
        async with connected(self.settings) as client:
            uncounted = [] if self._probed else [await probe(client)]
            self._probed = not client.gave_up
            left = iter(jobs)

            async def work() -> None:
                for job in left:
                    played = await self._play(job, shop, client)
                    if uncounted:
                        played = replace(played, usage={**played.usage, "probe": uncounted.pop()})
                    hand_over(played)

            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.concurrency, len(jobs))):
                    group.create_task(work())

    async def _play(self, job: Job, shop: "Shop", client: Client) -> Transcript:
        """Play one job to its end, whatever happens."""
        if client.last and client.gave_up > GIVEN_UP + self.settings.concurrency:
            return Transcript.of(
                job, None, unscored=client.last.kind, notes={"why": f"not played: {client.last}"}
            )
        opening = (job, shop, self.settings.strict, self.customer)
        if self.customer is None:
            opened = open_episode(*opening)
        else:  # its opening is worded first, and others go on meanwhile
            opened = await asyncio.to_thread(open_episode, *opening)
        if isinstance(opened, Transcript):
            return opened
        conversation = _Conversation(job=job, episode=opened, settings=self.settings)
        await conversation.play(client)
        return conversation.played()


@dataclass(kw_only=True)
class _Conversation(Conversation):
    settings: EndpointSettings
    finishes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        job = self.job
        self.writer = Writer(self.settings, self.episode.tools)
        self.key = (self.settings.seed, job.env, job.d, write_axes(job.axes), job.seed, job.trial)
        self.seeds = rng("endpoint", *self.key)
        """Gives every request a seed, turn by turn."""

    async def play(self, client: Client) -> None:
        """Play the episode to its end."""
        try:
            while not self.episode.done:
                answer = await self._ask(client)
                if self.episode.wording is None:
                    self._take(answer)
                else:
                    await asyncio.to_thread(self._take, answer)
        except EndpointFailure as failure:
            self.usage += failure.usage
            self.fail(failure.kind, f"{failure.kind}: {failure}")
        except ContextOverflow as overflow:
            self.usage += overflow.usage
            self.cut_off("context", str(overflow))
        except Exception as error:  # a bug of ours costs one unscored episode, not the run
            self.fail("bug", raised(error))

    async def _ask(self, client: Client) -> Answer:
        """Ask for the next message."""
        messages, writer = self.episode.messages, self.writer
        if self.settings.tools == "text":
            messages = TEMPLATES[self.settings.template].write(messages, self.episode.tools)
            writer = Writer(self.settings, ())
        seed, key = int(self.seeds.integers(2**31)), (*self.key, self.episode.turn)
        try:
            answer = await client.answer(writer.write(messages, seed), key)
        except ContextOverflow as overflow:
            if not self.settings.max_tokens:
                raise
            self.usage += overflow.usage
            # some servers refuse a conversation that fits where its longest answer would not: ask for what is left
            answer = await client.answer(writer.write(messages, seed, limited=False), key)
        self.usage += answer.usage
        self.finishes[answer.finish] += 1
        if answer.fingerprint and answer.fingerprint not in self.notes.setdefault("fingerprints", []):
            self.notes["fingerprints"].append(answer.fingerprint)
        return answer

    def _take(self, answer: Answer) -> None:
        """Pass an answer to the episode, unless a limit of tokens cut it off."""
        message = answer.message
        read = answer.usage.prompt_tokens + answer.usage.completion_tokens
        if answer.finish == "length":
            return self.cut_off("length", str(message["content"]))
        if self.settings.context and read > self.settings.context:
            return self.cut_off("context", f"{read} tokens")
        if self.settings.tools == "text" and isinstance(message["content"], str):
            message = TEMPLATES[self.settings.template].read(message["content"])
        if answer.empty:
            self.notes["only_reasoning"] = self.notes.get("only_reasoning", 0) + 1
        if answer.refused:
            self.refused.add(sum(said["role"] == "assistant" for said in self.episode.messages))
        self.act(numbered(message))

    def played(self) -> Transcript:
        """Record the episode, with how its answers ended."""
        self.notes["finish"] = dict(self.finishes)
        return super().played()


async def probe(client: Client) -> Usage:
    """Send a first request, with all settings but nothing of a task, and return what it cost. Raises ConfigError where
    it is refused; a failure of the server is left for `client.gave_up` to tell."""
    settings = client.settings
    tools = [CLOCK] if settings.tools == "native" else []
    asked = f"{settings.address}, asked for model {settings.model!r},"
    try:
        return (await client.answer(Writer(settings, tools).write(HELLO, seed=0), ("probe",))).usage
    except ContextOverflow as overflow:
        raise ConfigError(
            f"{asked} refuses even a short conversation ({overflow}); lower max_tokens"
        ) from None
    except EndpointFailure as failure:
        if failure.kind == "other model":
            raise ConfigError(
                f"{asked} gives an answer that it says is another's ({failure}); name the right model, or give the "
                "name of the answers in `answers_as`"
            ) from None
        if failure.kind == "request refused":
            way_out = WAYS_OUT.get(failure.status, OTHERWISE)
            raise ConfigError(f"{asked} refuses the first request ({failure}); {way_out}") from None
        client.gave_up += GIVEN_UP + settings.concurrency
        return failure.usage
