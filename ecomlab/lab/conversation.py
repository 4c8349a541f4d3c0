"""Conversations as a notebook or a terminal shows them, and assistant messages written by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ecomlab.episode.record import Trajectory
from ecomlab.files import write_json
from ecomlab.lab.truth import parts_of
from ecomlab.markup.conversation import alone
from ecomlab.markup.elements import in_notebook
from ecomlab.markup.entries import as_text, conversation
from ecomlab.markup.record import system_of
from ecomlab.task import Message


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
    """Messages: in a notebook by turns, with tool calls folded; elsewhere as lines, one for each row of a result."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages

    def __repr__(self) -> str:
        work = system_of(self.messages)
        told = [f"{'task':>8}  {work}"] if work else []
        return "\n".join([*told, as_text(conversation(self.messages))])

    def _repr_html_(self) -> str:
        return in_notebook(alone(self.messages))


def show_episode(episode: Trajectory, console: Console) -> None:
    """Print an episode and its score; a line is as long as it is, for what is piped must not be cut."""
    task = episode.task
    budgets = f"at most {task.turns} messages and {task.calls} calls"
    console.print(f"[bold]{task.title}[/bold]: {budgets}\n", soft_wrap=True)
    console.print(escape(str(Conversation(episode.messages[1:]))), soft_wrap=True)
    verdict = "correct" if episode.score.correct else "not correct"
    console.print(
        f"\nreward {episode.score.value:.3f}, {verdict}: {escape(episode.score.why)}", soft_wrap=True
    )
    for part in parts_of(episode.score):
        console.print(f"  {part}", soft_wrap=True)


def write_episode(episode: Trajectory, path: Path) -> None:
    """Write an episode as JSON: task, messages, end and score, whose value is null where it is unscored."""
    score = episode.score
    value = None if score.unscored else score.value
    verdict = {"value": value, "correct": score.correct, "parts": dict(score.parts), "why": score.why}
    told = {"task": episode.task.to_json(), "messages": episode.messages, "end": episode.end}
    write_json(path, {**told, "score": verdict})
