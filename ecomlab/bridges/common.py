"""Shared code of the bridges: messages and scores as JSON text, and the twenty tasks on which each is tested."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.messages import invalid, parse_output
from ecomlab.episode.play import play
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import BLOCKS, held_out_seeds
from ecomlab.players.base import Perturbation
from ecomlab.reward import Score
from ecomlab.seeding import rng
from ecomlab.task import Message, Player, Task

LEVELS = (0, 3, 6)
"""Levels of the tasks on which bridges are tested."""
COUNT = 20
"""Number of tasks on which bridges are tested."""
BLOCK = BLOCKS - 1
"""Block of held-out tasks to test on, the last one; evaluations begin with block 0."""
SLIPS = 0.3
"""Rate of mistakes per decision of the perturbed player."""
SHOP = 1_000
"""Number of products in the shop of the test tasks."""


def sample_jobs() -> list[Job]:
    """List the twenty tasks on which every bridge is tested: all environments, one level after another."""
    cells = [(env, d) for d in LEVELS for env in ENVIRONMENTS]
    seeds = held_out_seeds(BLOCK, COUNT)
    return [Job(env, d, seed) for (env, d), seed in zip(cells[:COUNT], seeds, strict=True)]


def sample_player(job: Job, shop: Shop) -> Player:
    """Make the player of one of the twenty tasks: the reference player, with seeded mistakes on every second task,
    because without mistakes all scores are equal."""
    random = rng("bridges", job.env, job.d, job.seed)
    mistakes = Perturbation(random, SLIPS) if job.seed % 2 else None
    player: Player = ENVIRONMENTS[job.env].reference_player(shop, mistakes)
    return player


def task_of(job: Job, shop: Shop) -> Task:
    """Draw the task of a job."""
    return make_task(job.env, job.d, job.seed, shop, job.axes)


def play_reference(job: Job, shop: Shop) -> Trajectory:
    """Let the reference player play a job in ecomlab's own loop."""
    return play(ENVIRONMENTS[job.env].reference_player(shop), task_of(job, shop), shop)


def write_message(message: Message) -> str:
    """Write an assistant message as JSON text, for frameworks that carry only text."""
    return json.dumps(message, ensure_ascii=False)


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


def outcome(episode: Episode) -> dict[str, Any]:
    """Describe a finished episode: its score as JSON, its end, its turns and tool calls."""
    score = score_to_json(episode.score())
    return {"score": score, "end": episode.end, "turns": episode.turn, "calls": episode.world.calls}


def text_since(messages: Sequence[Message], start: int) -> str:
    """Write the messages from `start` on as a JSON list."""
    return json.dumps(list(messages[start:]), ensure_ascii=False)
