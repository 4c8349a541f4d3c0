"""Local weights that we cannot train: any causal model of transformers, with its own chat template, as a contestant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.customer.llm import Chat, Wording
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import record
from ecomlab.evaluate.chat_format import ChatFormat
from ecomlab.evaluate.contestant import Job, Played, Usage
from ecomlab.evaluate.customers import customer_identity, customer_notes, customer_usage
from ecomlab.evaluate.faults import faults_of, looks_like_call
from ecomlab.evaluate.heldout import check_decoding
from ecomlab.evaluate.local import stream_of, weights_digest
from ecomlab.models.batch import draw_task
from ecomlab.models.policy import PolicyError
from ecomlab.models.qwen3 import check_dtype, load_model, load_tokenizer, whole_name
from ecomlab.suggest import raised
from ecomlab.task import Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.samplers.cached import Limits

BATCH = 16
"""Number of episodes at once: such a model is large, and every turn reads all conversations anew."""


@dataclass(frozen=True)
class ChatModel:
    """A model with the format of its conversations."""

    model: Any
    format: ChatFormat
    made_for: dict[str, Any]
    """What it was loaded as, for the record."""


def load_chat_model(name: str | Path, dtype: str = "float32", thinking: bool = False) -> ChatModel:
    """Load a model with a chat template from the local Hugging Face cache or a folder, on CPU. Raises PolicyError."""
    from transformers import GenerationConfig

    check_dtype(dtype)
    base = whole_name(name)
    tokenizer = load_tokenizer(base, base)
    if not tokenizer.chat_template:
        raise PolicyError(f"{base} has no chat template; put one beside its files as chat_template.jinja")
    model = load_model(base, dtype).eval()
    known = (model.config, model.config.get_text_config(), model.generation_config)
    stops = [i for config in known for i in _ids(getattr(config, "eos_token_id", None))]
    model.generation_config = GenerationConfig()  # generate fills in from it whatever it is not told
    chat_format = ChatFormat(tokenizer, stops, thinking, base)
    return ChatModel(model, chat_format, {"base": base, "dtype": dtype, **chat_format.identity})


def _ids(given: int | Iterable[int] | None) -> list[int]:
    return [given] if isinstance(given, int) else list(given or ())


class ChatModelContestant:
    """A model that is evaluated only. The same job has the same random stream in any batch."""

    def __init__(
        self,
        name: str,
        chat: ChatModel,
        decoding: str = "sampled",
        temperature: float = 1.0,
        limits: "Limits | None" = None,
        batch: int = BATCH,
        customer: Chat | None = None,
        strict: bool = False,
    ) -> None:
        """Takes what `LocalContestant` takes. Raises ValueError for an unknown decoding and a temperature that is not
        positive."""
        from ecomlab.evaluate.generation import shows_padding
        from ecomlab.models.samplers.cached import Limits

        if temperature <= 0:
            raise ValueError(f"temperature must be positive, not {temperature}; use greedy decoding instead")
        self.name, self.chat, self.decoding = name, chat, check_decoding(decoding)
        self.at_once = 1 if shows_padding(chat.model, chat.format.pad_id) else batch
        self.temperature, self.customer, self.strict = temperature, customer, strict
        self.limits = limits or Limits()
        self._digest = weights_digest(chat.model)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name, a digest of all weights, the format of conversations, decoding and limits."""
        sampling = {"temperature": self.temperature} if self.decoding == "sampled" else {}
        return {
            "kind": "local",
            "model": self.name,
            "weights": self._digest,
            "made_for": dict(self.chat.made_for),
            "decoding": self.decoding,
            **sampling,
            "limits": asdict(self.limits),
            "strict": self.strict,
            **customer_identity(self.customer),
        }

    @property
    def device(self) -> str:
        """The device that holds the weights."""
        return str(self.chat.model.device)

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        """Play the jobs, a batch at a time, and yield each episode as soon as it is over. A model that fails costs
        those of its batch that are not: they are unscored."""
        left = iter(jobs)
        while chunk := list(islice(left, self.at_once)):
            yield from self._play(chunk, shop)

    def _play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        going: list[_Conversation] = []
        for job in jobs:
            opened = self._open(job, shop)
            if isinstance(opened, Played):
                yield opened
            else:
                going.append(opened)
        while going:
            try:
                self._turn(going)
            except Exception as error:  # out of memory, logits that are NaN, a backend that is gone
                why = {"why": raised(error)}
                for one in going:
                    over = one.episode.done
                    yield one.played() if over else Played(one.job, None, unscored="sampler", notes=why)
                return
            yield from (one.played() for one in going if one.episode.done)
            going = [one for one in going if not one.episode.done]

    def _open(self, job: Job, shop: "Shop") -> "_Conversation | Played":
        task = draw_task(job.env, job.d, job.seed, shop, job.axes)
        if not isinstance(task, Task):
            return Played(job, None, unscored="task", notes={"why": raised(task)})
        try:
            wording = Wording(self.customer) if self.customer else None
            episode = Episode(task, shop, strict=self.strict, wording=wording)
        except Exception as error:  # a bug of ours costs one unscored episode, not the run
            return Played(job, None, unscored="bug", notes={"why": raised(error)})
        return _Conversation(job, episode, stream_of(job), self.chat.format, self.limits)

    def _turn(self, going: Sequence["_Conversation"]) -> None:
        """Let every conversation that has room say its next message; the others end truncated."""
        from ecomlab.evaluate.generation import Row, generate

        asked = [(one, prompt, room) for one in going for prompt, room in one.ask()]
        if not asked:
            return
        rows = [Row(prompt, room, one.stream) for one, prompt, room in asked]
        began, known = perf_counter(), self.chat.format
        temperature = self.temperature if self.decoding == "sampled" else 0.0
        generate(self.chat.model, rows, known.stop_ids, known.pad_id, temperature)
        seconds = (perf_counter() - began) / len(rows)
        for (one, prompt, _), row in zip(asked, rows, strict=True):
            one.take(len(prompt), row.said, seconds)


@dataclass
class _Conversation:
    """One episode and what is to be recorded beside it; changes as it is played."""

    job: Job
    episode: Episode
    stream: np.random.Generator
    format: ChatFormat
    limits: "Limits"
    usage: Usage = field(default_factory=Usage)
    cut: str = ""
    """The limit of tokens that ended the episode: length or context."""
    unscored: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def ask(self) -> Iterator[tuple[list[int], int]]:
        """Yield the prompt of the next message and the room for it, unless a limit or our own bug ends the episode."""
        try:
            prompt = self.format.prompt(self.episode.messages, self.episode.tools)
        except Exception as error:
            return self._fail(raised(error))
        context = self.limits.context - len(prompt)
        room = min(self.limits.turn, self.limits.episode - self.usage.completion_tokens, context)
        if room <= 0:
            return self._cut("context" if context <= 0 else "length", f"{len(prompt)} tokens")
        yield prompt, room

    def take(self, read: int, said: Sequence[int], seconds: float) -> None:
        """Pass a turn's ids to the episode, unless a limit of tokens cut it off; `read` tokens were before it."""
        self.usage += Usage(1, read, completion_tokens=len(said), seconds=seconds)
        try:
            if said[-1] not in self.format.stop_ids:
                full = read + len(said) >= self.limits.context
                return self._cut("context" if full else "length", self.format.text(said))
            message = self.format.read(said)
            called = message.get("tool_calls") or message.get("invalid")
            if not called and looks_like_call(str(message["content"])):
                self.notes["calls_in_text"] = self.notes.get("calls_in_text", 0) + 1
            self.episode.act(message)
        except Exception as error:  # a bug of ours costs one unscored episode, not the run
            self._fail(raised(error))

    def _cut(self, limit: str, seen: str) -> None:
        self.cut, self.notes["cut_off"] = limit, seen[:2000]
        self.episode.end_truncated()

    def _fail(self, why: str) -> None:
        self.unscored, self.notes["why"] = "bug", why
        self.episode.fail(why)

    def played(self) -> Played:
        """Record the episode, which is over."""
        try:
            trajectory = record(self.episode)
        except Exception as error:  # of the verifier
            self._fail(raised(error))
            trajectory = record(self.episode)
        return Played(
            job=self.job,
            trajectory=trajectory,
            usage={"agent": self.usage, **customer_usage(trajectory)},
            faults=faults_of(trajectory, self.cut),
            unscored=self.unscored,
            notes={**self.notes, **customer_notes(trajectory)},
        )
