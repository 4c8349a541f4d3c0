"""Tokens of whole episodes, and the committed table of them.

`python experiments/tokens/count.py` plays the courteous player and writes experiments/tokens/tokens.csv.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ecomlab.catalog import Shop
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import play
from ecomlab.models.qwen3 import ChatRenderer
from ecomlab.models.renderer import START
from ecomlab.task import Player, Task

TABLE = Path("experiments/tokens/tokens.csv")
LEVELS = (0, 4, 8, 12)
"""Levels of the table."""
SHARE = 0.99
"""Share of courteous episodes that must fit."""


@dataclass(frozen=True)
class Count:
    """Token counts of one environment at one level: of system prompt with tool schemas, and of whole episodes."""

    env: str
    d: int
    tasks: int
    prompt: int
    median: int
    p99: int
    max: int
    limit: int
    fits: float
    """Share of episodes with at most `limit` tokens; `low` and `high` bound it with 95% confidence (exact binomial)."""
    low: float
    high: float
    written: int
    """Maximum number of tokens written by the player in an episode; with `turn`, in one message."""
    turn: int


def episode_tokens(
    task: Task, shop: Shop, renderer: ChatRenderer, player: Player
) -> tuple[int, int, list[int]]:
    """Count the tokens of an episode that `player` plays: its system prompt and tools, all of it, and each turn."""
    tools, messages = Episode(task, shop).tools, play(player, task, shop).messages
    lengths = [_length(renderer, some, tools) for some in (messages[:1], messages)]
    return lengths[0], lengths[1], _turns(renderer, messages)


def _turns(renderer: ChatRenderer, messages: Sequence[Any]) -> list[int]:
    """Count the tokens of each message that the player wrote, its end marker included."""
    said = [renderer.text([message], speak=False) for message in messages if message["role"] == "assistant"]
    return [len(renderer.encode(text.removeprefix(f"{START}assistant\n").rstrip())) for text in said]


def _length(renderer: ChatRenderer, messages: Sequence[Any], tools: Sequence[Any]) -> int:
    return len(renderer.encode(renderer.text(messages, tools, speak=False)))


def write_table(counts: Iterable[Count], path: Path) -> None:
    """Write one row per environment and level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(list(counts)).to_csv(path, index=False)


def read_table(path: Path) -> list[Count]:
    """Read the rows of a table that `write_table` wrote; none if the file is missing."""
    return [Count(**row) for row in pd.read_csv(path).to_dict("records")] if path.is_file() else []
