"""Local weights that we cannot train: any causal model of transformers, with its own chat template, as a contestant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.customer.llm import Chat
from ecomlab.evaluation.chat_format import ChatFormat
from ecomlab.evaluation.contestant import Job, Played, Usage
from ecomlab.evaluation.conversation import Conversation, open_episode
from ecomlab.evaluation.local import WeightsContestant, stream_of
from ecomlab.models.policy import PolicyError
from ecomlab.models.qwen3 import check_dtype, check_tokens, load_model, load_tokenizer, whole_name
from ecomlab.suggest import raised

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.samplers.cached import Limits

BATCH = 16
"""Number of episodes at once of any ordinary model, which may be large and its episodes long: of an 8B 16 x 24,000
tokens are 57 GB of keys and values."""


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
    check_tokens(model, tokenizer, str(tokenizer.chat_template), base)
    known = (model.config, model.config.get_text_config(), model.generation_config)
    stops = [i for config in known for i in _ids(getattr(config, "eos_token_id", None))]
    model.generation_config = GenerationConfig()  # generate fills in from it whatever it is not told
    chat_format = ChatFormat(tokenizer, stops, thinking, base)
    return ChatModel(model, chat_format, {"base": base, "dtype": dtype, **chat_format.identity})


def _ids(given: int | Iterable[int] | None) -> list[int]:
    return [given] if isinstance(given, int) else list(given or ())


class ChatModelContestant(WeightsContestant):
    """A model that is evaluated only."""

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
        """Takes what `WeightsContestant` takes, and raises what it raises."""
        from ecomlab.evaluation.generation import shows_padding

        batch = 1 if shows_padding(chat.model, chat.format.pad_id) else batch
        super().__init__(
            name, chat.model, chat.made_for, decoding, temperature, limits, batch, customer, strict
        )
        self.chat = chat

    def _play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Played]:
        going: list[_Conversation] = []
        for job in jobs:
            opened = open_episode(job, shop, self.strict, self.customer)
            if isinstance(opened, Played):
                yield opened
                continue
            going.append(
                _Conversation(
                    job=job,
                    episode=opened,
                    stream=stream_of(job),
                    format=self.chat.format,
                    limits=self.limits,
                )
            )
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

    def _turn(self, going: Sequence["_Conversation"]) -> None:
        """Let every conversation that has room say its next message; the others end truncated."""
        from ecomlab.evaluation.generation import Row, generate

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


@dataclass(kw_only=True)
class _Conversation(Conversation):
    stream: np.random.Generator
    format: ChatFormat
    limits: "Limits"

    def ask(self) -> Iterator[tuple[list[int], int]]:
        """Yield the prompt of the next message and the room for it, unless a limit or our own bug ends the episode."""
        try:
            prompt = self.format.prompt(self.episode.messages, self.episode.tools)
        except Exception as error:
            return self.fail("bug", raised(error))
        context = self.limits.context - len(prompt)
        room = min(self.limits.turn, self.limits.episode - self.usage.completion_tokens, context)
        if room <= 0:
            return self.cut_off("context" if context <= 0 else "length", f"{len(prompt)} tokens")
        yield prompt, room

    def take(self, read: int, said: Sequence[int], seconds: float) -> None:
        """Pass a turn's ids to the episode, unless a limit of tokens cut it off; `read` tokens were before it."""
        self.usage += Usage(1, read, completion_tokens=len(said), seconds=seconds)
        try:
            if said[-1] not in self.format.stop_ids:
                full = read + len(said) >= self.limits.context
                return self.cut_off("context" if full else "length", self.format.text(said))
            self.act(self.format.read(said))
        except Exception as error:  # a bug of ours costs one unscored episode, not the run
            self.fail("bug", raised(error))
