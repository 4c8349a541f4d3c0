"""Where players go wrong by themselves: the labelled mistakes of held-out carts, a row per mistake.

    python experiments/cascade/played.py perturbed novice adaptive=FOLDER [--levels 1,4,6,8] [--tasks 64]

A player is the script reference or perturbed, what `ecomlab eval` takes as weights, or NAME=FOLDER for a checkpoint
that is to be called NAME. Carts are those in which experiments/frontier plants mistakes: a level counts their items and
quantities, and none has an option, because a tiny policy names an option before a tool has shown it. Adds to played.csv
what it lacks, a level of a player at a time, so a killed run goes on; played.json has the provenance of each player's
rows. The figure is notebooks/fig_error_cascade.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from growing import add, read
from players import named, note, play_of

from ecomlab.catalog import load_shop
from ecomlab.difficulty import COMPOSED
from ecomlab.episode.episode import make_task
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.mistakes import label
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.task import Task

ENV = "CART"
AXES = {**COMPOSED, "cart.p_option": 0.0}
TABLE = Path(__file__).with_name("played.csv")
COLUMNS = (
    "player", "env", "d", "seed", "turns", "needed", "end", "correct", "number", "turn", "kind", "cause", "fate",
    "until", "parent",
)  # fmt: skip


def rows_of(name: str, task: Task, trajectory: Trajectory | None, shop: Any) -> Iterator[dict[str, Any]]:
    """Label an episode and yield its rows."""
    head: dict[str, Any] = {"player": name, "env": task.env, "d": task.difficulty, "seed": task.seed}
    made: list[dict[str, Any]] = [{"kind": "unscored"}]
    if trajectory is not None and not trajectory.score.unscored:
        found = label(trajectory, shop)
        head |= {
            "turns": found.turns,
            "needed": found.needed,
            "end": found.end,
            "correct": int(found.correct),
        }
        mistakes = [{"number": number, **asdict(one)} for number, one in enumerate(found.mistakes)]
        made = mistakes or [{"kind": "none"}]
    for row in made:
        values = {**head, **row}
        yield {name: "" if values.get(name) is None else values[name] for name in COLUMNS}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="+")
    parser.add_argument("--levels", default="1,4,6,8")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    asked = parser.parse_args(arguments)
    shop = load_shop(asked.size)
    there = {(row["player"], row["env"], row["d"]) for row in read(asked.out)}
    for name, weights in map(named, asked.player):
        plays = play_of(weights, [ENV], shop)
        for d in asked.levels.split(","):
            if (name, ENV, d) in there:
                continue
            tasks = [make_task(ENV, int(d), seed, shop, AXES) for seed in held_out_seeds(0, asked.tasks)]
            played = zip(tasks, plays(tasks, [()] * len(tasks)), strict=True)
            rows = [row for task, trajectory in played for row in rows_of(name, task, trajectory, shop)]
            note(asked.out, name, weights, [ENV], shop, tasks=asked.tasks, catalog_size=asked.size)
            add(asked.out, COLUMNS, rows)
            print(f"{name}, d = {d}: {len(tasks)} episodes, {len(rows)} rows", flush=True)


if __name__ == "__main__":
    main()
