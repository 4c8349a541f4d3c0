"""Seconds that environments take for a round of rollouts by the number of processes that play them.

    python experiments/bench/environments.py OUT.json [WORKERS ...]    # 1 and 2 by default

The sampler replays the reference player's turns, so that a round is environments, tokenizing and messages to workers
only. Rounds of all numbers are interleaved, for other programs use the machine too. What a round takes on free cores is
counted in seconds of the processor: this process's, and in every turn those of the worker that takes longest. A ratio
is of medians to the first number.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab import ENVIRONMENTS, Shop, Task, load_shop, make_task
from ecomlab.episode.play import play
from ecomlab.models.batch import Clock, play_batch
from ecomlab.models.environment_pool import EnvironmentPool, pool_of
from ecomlab.models.load import load_policy
from ecomlab.models.renderer import Renderer
from ecomlab.models.samplers.sampled import Sampled
from ecomlab.seeding import rng

ENVS, DIFFICULTY, EPISODES, ROUNDS = ("CART", "PD", "STATUS", "JOURNEY"), 6, 64, 3


class Replay:
    """A sampler that says what the reference player said in each task."""

    def __init__(self, tasks: Sequence[Task], shop: Shop, renderer: Renderer) -> None:
        self.said = []
        for task in tasks:
            dialogue, messages = (
                renderer.dialogue(),
                play(ENVIRONMENTS[task.env].reference_player(shop), task, shop),
            )
            self.said.append([dialogue.say(m) for m in messages.messages if m["role"] == "assistant"])

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        self.left = [iter(turns) for turns in self.said]

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled]:
        turns = [next(self.left[row], []) for row in rows]
        return [Sampled(ids, [0.0] * len(ids), truncated=not ids) for ids in turns]


class Waited:
    """The processor's seconds of a pool's slowest worker, call by call."""

    def __init__(self, pool: EnvironmentPool) -> None:
        self.seconds, self.ask = 0.0, pool._ask
        pool._ask = self.timed

    def timed(self, calls: list[Any]) -> list[Any]:
        clock: list[Any] = [(time.process_time,)] * len(calls)
        before, found, after = self.ask(clock), self.ask(calls), self.ask(clock)
        self.seconds += max(b - a for a, b in zip(before, after, strict=True))
        return found


def main(out: Path, numbers: Sequence[int]) -> None:
    """Measure a round with each number of workers."""
    shop = load_shop()
    renderer = load_policy("base", shop, ENVS).renderer
    tasks = [make_task(ENVS[i % len(ENVS)], DIFFICULTY, i, shop) for i in range(EPISODES)]
    sampler, streams = Replay(tasks, shop, renderer), [rng("bench", i) for i in range(EPISODES)]
    starting, turns = {}, []
    wall: dict[int, list[float]] = {number: [] for number in numbers}
    free: dict[int, list[float]] = {number: [] for number in numbers}
    with ExitStack() as stack:
        pools = {}
        for number in numbers:
            began = time.perf_counter()
            pools[number] = stack.enter_context(pool_of(number, shop, renderer))
            starting[number] = time.perf_counter() - began
        waited = {number: Waited(pool) for number, pool in pools.items() if pool}
        for place in range(ROUNDS + 1):
            for number, pool in pools.items():
                before = waited[number].seconds if pool else 0.0
                clock, began = Clock(), time.process_time()
                rollouts = play_batch(tasks, streams, shop, sampler, renderer, clock, pool)
                took = time.process_time() - began + (waited[number].seconds - before if pool else 0.0)
                turns.append(sum(rollout.turns for rollout in rollouts))
                if place:  # the first fills caches
                    wall[number].append(clock.seconds["environment"])
                    free[number].append(took)
    first = statistics.median(free[numbers[0]])
    rows = [
        {
            "workers": number, "seconds_on_free_cores": sorted(free[number]),
            "ratio": statistics.median(free[number]) / first, "seconds": sorted(wall[number]),
            "seconds_to_start": starting[number],
        }
        for number in numbers
    ]  # fmt: skip
    record = {
        "environments": ENVS, "difficulty": DIFFICULTY, "episodes": EPISODES, "turns": turns[0],
        "solved": sum(rollout.score.correct for rollout in rollouts), "cores": os.cpu_count(),
        "load": os.getloadavg()[0], "rows": rows,
    }  # fmt: skip
    assert len(set(turns)) == 1, "the same episodes"
    out.write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        free_cores, here = (statistics.median(row[name]) for name in ("seconds_on_free_cores", "seconds"))
        print(f"{row['workers']} workers: {free_cores:.2f} s, {row['ratio']:.2f}; here {here:.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(number) for number in sys.argv[2:]] or [1, 2])
