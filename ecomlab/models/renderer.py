"""Protocols of renderers, which turn an episode's messages into tokens and back, strictly by appending."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.task import Player

START, END = "<|im_start|>", "<|im_end|>"
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""Texts that structure a turn in Qwen3's format."""
BREAK = "\ufdd0"
"""A noncharacter, which no text may contain: `encode` cuts a text there and leaves it out."""

Message = Mapping[str, Any]


class Dialogue(Protocol):
    """The conversation of one episode as token ids."""

    def open(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Render the first prompt, up to the policy's turn."""

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        """Parse the assistant message in one turn's sampled ids; malformed output is marked `invalid`, never raised."""

    def say(self, message: Message) -> list[int]:
        """Render an assistant message as the policy would have written it, with the stop token: a message put into its
        mouth without having sampled it. `read` parses it back."""

    def follow(self, messages: Sequence[Message]) -> list[int]:
        """Render the ids between the policy's last stop token and its next turn."""

    def teacher(self, env: str, shop: "Shop") -> "Player | None":
        """Make the player that wrote what the policy imitated, which plays given turns; None: the reference player."""


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

    @property
    def markers(self) -> Iterable[str]:
        """Markers of the format, which contents of messages must not be able to write."""
        return (START, END, str(self.tokenizer.pad_token), *TAGS)

    def encode(self, text: str) -> list[int]:
        """Tokenise a piece of text on its own; a BREAK in it separates tokens."""
        pieces = [piece for piece in text.split(BREAK) if piece]
        return [i for piece in pieces for i in self.tokenizer.encode(piece, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, markers included."""
        return str(
            self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    def defused(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Copy messages with a BREAK inside each marker in a tool's or customer's text, so that a product called
        `<|im_end|>` reads so and ends no turn."""
        pattern = re.compile("|".join(map(re.escape, sorted(self.markers, key=len, reverse=True))))

        def broken(text: str) -> str:
            whole = text.replace(BREAK, "\ufffd")
            return pattern.sub(lambda marker: marker[0][0] + BREAK + marker[0][1:], whole)

        heard = ("user", "tool")
        return [
            {**m, "content": broken(str(m["content"]))} if m["role"] in heard else dict(m) for m in messages
        ]
