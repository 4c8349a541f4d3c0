"""Protocols of renderers, which turn an episode's messages into tokens and back, strictly by appending."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

START, END = "<|im_start|>", "<|im_end|>"

Message = Mapping[str, Any]


class Dialogue(Protocol):
    """The conversation of one episode as token ids."""

    def open(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Render the first prompt, up to the policy's turn."""

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        """Parse the assistant message in one turn's sampled ids; malformed output is marked `invalid`, never raised."""

    def follow(self, messages: Sequence[Message]) -> list[int]:
        """Render the ids between the policy's last stop token and its next turn."""


class Renderer(Protocol):
    """A policy's tokenizer and format of conversations."""

    @property
    def tokenizer(self) -> Any:
        """Hugging Face tokenizer."""

    @property
    def stop_ids(self) -> Sequence[int]:
        """Token ids that end a turn."""

    @property
    def pad_id(self) -> int:
        """Token id for padding."""

    def dialogue(self) -> Dialogue:
        """Make the dialogue of one episode."""

    def encode(self, text: str) -> list[int]:
        """Tokenise a piece of text on its own."""

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, markers included."""


class TextRenderer:
    """Base of renderers: text to ids and back, with nothing added and nothing cleaned up."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Tokenise a piece of text on its own."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, markers included."""
        return str(
            self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )
