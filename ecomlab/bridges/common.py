"""Shared code of the bridges: messages and scores as JSON text."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.messages import invalid, parse_output
from ecomlab.episode.play import play
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.reward import Score
from ecomlab.suggest import raised
from ecomlab.task import Message, Task
from ecomlab.training.schedule import settings_of
from ecomlab.training.stream import Groups, Stream


def task_of(job: Job, shop: Shop) -> Task:
    """Draw the task of a job."""
    return make_task(job.env, job.d, job.seed, shop, job.axes)


def play_reference(job: Job, shop: Shop) -> Trajectory:
    """Let the reference player play a job in ecomlab's own loop."""
    return play(ENVIRONMENTS[job.env].reference_player(shop), task_of(job, shop), shop)


def read_message(text: str) -> Message:
    """Read an assistant message from text: JSON in OpenAI's format, or a model's raw output, in which `<tool_call>`
    blocks are calls and all other text goes to the customer.

    Never raises: text that begins as a JSON object but is not a message becomes one that ends the episode as invalid.
    """
    if not text.lstrip().startswith("{"):
        return parse_output(text)
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        return invalid(text, f"bad JSON: {error}")
    if not {"content", "tool_calls"} & set(message):
        return invalid(text, "a JSON object without content or tool_calls is no message")
    return {"role": "assistant", **message}


def score_to_json(score: Score) -> dict[str, Any]:
    """Write a score as a JSON object; the value of an unscored episode is null, because JSON has no NaN."""
    return {**asdict(score), "value": None if score.unscored else score.value}


def score_from_json(value: Mapping[str, Any]) -> Score:
    """Read what `score_to_json` wrote."""
    return Score(**{**value, "value": math.nan if value["unscored"] else value["value"]})


def groups_of(schedule: str, envs: str, size: int, kept: str = "", **settings: Any) -> Groups:
    """Make the groups of a server's stream, with the articles' `tau_num` of 8 groups, and the file in which their state
    is kept. Raises ValueError."""
    usual = settings_of(schedule, {"tau_num": 8 * size})
    return Groups(Stream(schedule, envs, **{**usual, **settings}), size, Path(kept) if kept else None)


def play_call(episode: Episode, name: str, arguments: Mapping[str, Any]) -> str:
    """Play a message with one call, for loops that call tools one by one; return the tool's result and the customer's
    words. An exception makes the episode unscored, and is raised."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{len(episode.messages)}", "type": "function", "function": function}]
    try:
        turn = episode.act({"role": "assistant", "content": "", "tool_calls": calls})
    except Exception as error:  # such a loop would show it to the model as a tool's result, and go on
        episode.fail(raised(error))
        raise
    said = [message["content"] for message in turn.messages if message["role"] == "user"]
    result = next((message["content"] for message in turn.messages if message["role"] == "tool"), "")
    return "\n".join([result, *(f"The customer: {words}" for words in said)])


def outcome(episode: Episode) -> dict[str, Any]:
    """Describe a finished episode: its score as JSON, its end, its turns and tool calls."""
    score = score_to_json(episode.score())
    return {"score": score, "end": episode.end, "turns": episode.turn, "calls": episode.world.calls}


def text_since(messages: Sequence[Message], start: int) -> str:
    """Write the messages from `start` on as a JSON list."""
    return json.dumps(list(messages[start:]), ensure_ascii=False)
