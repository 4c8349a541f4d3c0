"""A policy's way of writing conversations: messages of an episode as tokens and back, strictly by appending."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

START, END = "<|im_start|>", "<|im_end|>"


Message = Mapping[str, Any]


class Dialogue(Protocol):
    """One episode's view of its messages, as ids."""

    def open(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Give the first prompt, up to where the policy speaks."""

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        """Read the assistant message in one turn's sampled ids; malformed output is marked `invalid`, never raised."""

    def follow(self, messages: Sequence[Message]) -> list[int]:
        """Give the ids between the policy's last stop token and its next own token."""


class Renderer(Protocol):
    """A policy's way of writing conversations."""

    @property
    def tokenizer(self) -> Any:
        """A Hugging Face tokenizer."""

    @property
    def stop_ids(self) -> Sequence[int]:
        """The ids that end a turn."""

    @property
    def pad_id(self) -> int:
        """An id that fills up."""

    def dialogue(self) -> Dialogue:
        """Make a dialogue for one episode."""

    def encode(self, text: str) -> list[int]:
        """Give the ids of a piece of text on its own."""

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of ids, markers included."""


class TextRenderer:
    """Base of renderers: text to ids and back, nothing added and nothing cleaned up."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Give the ids of a piece of text on its own."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of ids, markers included."""
        return str(
            self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )
