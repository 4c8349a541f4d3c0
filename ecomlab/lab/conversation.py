"""Conversations as a notebook or a terminal shows them, and assistant messages written by hand."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from ecomlab.episode.episode import Trajectory
from ecomlab.markup.conversation import alone
from ecomlab.markup.elements import in_notebook
from ecomlab.reward import WEIGHTS
from ecomlab.task import Message

_NAMES = {"system": "task", "user": "customer", "assistant": "agent", "tool": "tool"}


def call(tool: str, **arguments: Any) -> Message:
    """Make the assistant message that calls one tool: `episode.act(call("cart_add", product_id="P3B43PH"))`."""
    made = {
        "id": "call_0",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": "", "tool_calls": [made]}


def say(text: str) -> Message:
    """Make the assistant message that says `text` to the customer."""
    return {"role": "assistant", "content": text}


class Conversation:
    """Messages: in a notebook by turns, with tool calls folded; elsewhere as lines, one per text, call or result, of
    which calls and results are cut to `width`."""

    def __init__(self, messages: Sequence[Message], width: int = 400) -> None:
        self.messages = messages
        self.lines = [line for message in messages for line in _lines(message, width)]

    def __repr__(self) -> str:
        return "\n".join(f"{_NAMES.get(role, role):>8}  {text}" for role, text in self.lines)

    def _repr_html_(self) -> str:
        return in_notebook(alone(self.messages))


def show_episode(episode: Trajectory, console: Console) -> None:
    """Print an episode and its score."""
    console.print(escape(str(Conversation(episode.messages[1:]))))
    verdict = "correct" if episode.score.correct else "not correct"
    console.print(f"\nreward {episode.score.value:.3f}, {verdict}: {escape(episode.score.why)}")
    parts = [(name, WEIGHTS.get(name, 1.0), part) for name, part in episode.score.parts.items()]
    if parts:
        most = WEIGHTS["task"] + WEIGHTS["efficiency"]  # hallucination is at best 0
        weighed = " + ".join(f"{weight:.2f} x {name} {part:.3f}" for name, weight, part in parts)
        console.print(f"{weighed}; at most {most:.2f}")


def _lines(message: Message, width: int) -> list[tuple[str, str]]:
    role, content = message["role"], message.get("content") or ""
    if role == "tool":
        return [(role, cut(f"{message.get('name', '')} → {content}", width))]
    said = [(role, content)] if content else []
    for made in message.get("tool_calls") or []:
        function = made["function"]
        said.append((role, cut(f"{function['name']}({_arguments(function['arguments'])})", width)))
    return said


def _arguments(text: str) -> str:
    try:
        return ", ".join(f"{name}={as_json(value)}" for name, value in json.loads(text).items())
    except (ValueError, AttributeError):
        return text


def as_json(value: Any) -> str:
    """Write `value` as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, width: int) -> str:
    """Cut a text to `width`, noting how much is left out."""
    return text if len(text) <= width else f"{text[:width]} … ({len(text) - width:,} more characters)"
