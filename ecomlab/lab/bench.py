"""The speed of environments: milliseconds of reset, verification and whole episodes, on one core."""

import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.files import write_json
from ecomlab.lab.evaluation_tables import widened

REPEATS, WARM_UP = 5, 20
Spread = tuple[float, float, float]
"""Lowest, median and highest mean of the repeats, in milliseconds of the processor, which other programs on the machine
do not stretch."""


@dataclass(frozen=True)
class Timing:
    """Timings of one environment, catalog size and level."""

    env: str
    products: int
    d: int
    episodes: int
    """Episodes a repeat."""
    reset_ms: Spread
    """Drawing the task and opening the episode."""
    verify_ms: Spread
    """Scoring an episode that is over."""
    episode_ms: Spread
    """Reset, the reference player's whole episode and verification, search included."""
    without_search_ms: Spread
    """`episode_ms` minus the time in the search engine."""

    @property
    def episodes_per_second(self) -> float:
        """Episodes per second on one core without search, from the median."""
        return 1000 / self.without_search_ms[1]


class _TimedEngine:
    """A search engine that sums the seconds spent in it."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.seconds = engine, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def search(self, *args: Any) -> Sequence[int]:
        began = time.process_time()
        try:
            found: Sequence[int] = self.engine.search(*args)
            return found
        finally:
            self.seconds += time.process_time() - began


def timed_episode(env: str, d: int, seed: int, shop: Shop) -> tuple[float, float, float]:
    """Play an episode of the reference player: the processor's seconds of reset, of verification, and of all of it."""
    began = time.process_time()
    episode = Episode(make_task(env, d, seed, shop), shop)
    ready = time.process_time()
    player = ENVIRONMENTS[env].reference_player(shop)
    while not episode.done:
        episode.act(player(episode.messages, episode.tools))
    over = time.process_time()
    episode.score()
    end = time.process_time()
    return ready - began, end - over, end - began


def time_environment(env: str, shop: Shop, d: int, episodes: int = 100) -> Timing:
    """Time an environment at a level. Every repeat plays other seeds, so that nothing is cached."""
    engine: Any = _TimedEngine(shop.engine)
    timed, means = replace(shop, engine=engine), []
    for seed in range(WARM_UP):
        timed_episode(env, d, seed, timed)
    for repeat in range(REPEATS):
        engine.seconds, first = 0.0, WARM_UP + repeat * episodes
        played = [timed_episode(env, d, seed, timed) for seed in range(first, first + episodes)]
        reset, verify, whole = np.mean(played, axis=0)
        means.append((reset, verify, whole, whole - engine.seconds / episodes))
    spreads = [(float(ms.min()), float(np.median(ms)), float(ms.max())) for ms in 1000 * np.array(means).T]
    return Timing(env, shop.catalog.size, d, episodes, *spreads)


def show_timings(timings: Sequence[Timing], console: Console, json_file: Path | None = None) -> None:
    """Print timings; write them to `json_file` if given, with the machine that they were measured on."""
    heads = ("env", "products", "d", "reset ms", "verify ms", "episode ms", "without search ms", "episodes/s")
    table = Table(*heads)
    for one in timings:
        spreads = (one.reset_ms, one.verify_ms, one.episode_ms, one.without_search_ms)
        cells = [f"{middle:.2f} ({low:.2f}-{high:.2f})" for low, middle, high in spreads]
        table.add_row(one.env, f"{one.products:,}", str(one.d), *cells, f"{one.episodes_per_second:,.0f}")
    widened(console, table).print(table)  # a narrower one would cut values
    console.print(
        "median (lowest-highest) of five repeats, seconds of the processor; episodes/s without search, one core"
    )
    if json_file is not None:
        machine = {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "ecomlab": version("ecomlab"),
        }
        rows = [
            {**asdict(one), "episodes_per_second_without_search": one.episodes_per_second} for one in timings
        ]
        write_json(json_file, {**machine, "clock": "cpu", "timings": rows})
        console.print(f"written to {json_file}")
