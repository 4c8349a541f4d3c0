"""Benchmarks: what reset, verification and a whole episode cost, by environment, catalog size and difficulty."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task

REPEATS = 5
WARM_UP = 20
Clock = Callable[[], float]
CLOCKS: Final[dict[str, Clock]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""By name: seconds as they pass, and seconds of the processor, which other work on the machine does not stretch and
waiting for the disk does not count in."""


@dataclass(frozen=True)
class Timing:
    """Timings of one environment, catalog size and level: (lowest, median, highest) of the repeats' means, in ms."""

    env: str
    products: int
    d: int
    episodes: int
    """Episodes per repeat."""
    reset_ms: tuple[float, float, float]
    """Drawing the task and opening the episode."""
    verify_ms: tuple[float, float, float]
    """Scoring an episode that is over."""
    episode_ms: tuple[float, float, float]
    """Reset, the reference player's whole episode and verification, search included."""
    without_search_ms: tuple[float, float, float]
    """`episode_ms` less the time spent in the search engine."""
    clock: str = "wall"

    @property
    def episodes_per_second(self) -> float:
        """Episodes per second on one core, without search time, from the median."""
        return 1000 / self.without_search_ms[1]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "episodes_per_second_without_search": self.episodes_per_second}


class TimedEngine:
    """A search engine that sums the seconds spent in it."""

    def __init__(self, engine: Any, clock: Clock) -> None:
        self.engine, self.clock = engine, clock
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def search(self, *args: Any) -> Sequence[int]:
        began = self.clock()
        try:
            return self.engine.search(*args)
        finally:
            self.seconds += self.clock() - began


def timed_episode(
    env_id: str, d: int, seed: int, shop: Shop, clock: Clock = time.perf_counter
) -> tuple[float, float, float]:
    """Play one of the reference player's episodes: seconds of reset, of verification, and of all of it."""
    began = clock()
    episode = Episode(make_task(env_id, d, seed, shop), shop)
    ready = clock()
    player = ENVIRONMENTS[env_id].reference_player(shop)
    while not episode.done:
        episode.act(player(episode.messages, episode.tools))
    over = clock()
    episode.score()
    end = clock()
    return ready - began, end - over, end - began


def bench_environment(
    env_id: str, shop: Shop, d: int, episodes: int, repeats: int = REPEATS, by: str = "wall"
) -> Timing:
    """Time one environment at one level by the clock `by`; every repeat plays other seeds, so that nothing is
    cached."""
    clock = CLOCKS[by]
    engine = TimedEngine(shop.engine, clock)
    timed = replace(shop, engine=engine)  # type: ignore[arg-type]
    seconds: dict[str, list[float]] = {name: [] for name in ("reset", "verify", "episode", "without_search")}

    for seed in range(WARM_UP):
        timed_episode(env_id, d, seed, timed, clock)
    for repeat in range(repeats):
        engine.seconds = 0.0
        first = WARM_UP + repeat * episodes
        played = [timed_episode(env_id, d, seed, timed, clock) for seed in range(first, first + episodes)]
        parts = np.array(played).mean(axis=0)
        seconds["reset"].append(float(parts[0]))
        seconds["verify"].append(float(parts[1]))
        seconds["episode"].append(float(parts[2]))
        seconds["without_search"].append(float(parts[2]) - engine.seconds / episodes)
    spread = {f"{name}_ms": _spread(values) for name, values in seconds.items()}
    return Timing(env=env_id, products=shop.catalog.size, d=d, episodes=episodes, **spread, clock=by)


def bench(
    envs: Sequence[str],
    sizes: Sequence[int],
    levels: Sequence[int],
    episodes: int,
    report: Callable[[Timing], None] = lambda timing: None,
    clock: str = "wall",
) -> list[Timing]:
    """Time every environment at every catalog size and level, in one thread; `report` gets each timing when done."""
    timings = []
    for env_id in envs:
        for size in sizes:
            shop = load_shop(size)
            for d in levels:
                timings.append(bench_environment(env_id, shop, d, episodes, by=clock))
                report(timings[-1])
    return timings


def _spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    ms = np.array(seconds) * 1000
    return float(ms.min()), float(np.median(ms)), float(ms.max())
