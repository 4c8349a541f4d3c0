"""What a planted mistake leads to, for players that can be run: pairs of episodes that differ in one act.

    python experiments/cascade/effect.py novice adaptive=FOLDER [--env CART] [--levels 1,8] [--tasks 48] [--size 20000]

A player is a script, such as reference or perturbed, what `ecomlab eval` takes as weights, or NAME=FOLDER for a
checkpoint that is to be called NAME. Adds to effect.csv the pairs that it lacks, of held-out tasks, and prints each
player's effects with 95% intervals; effect.json says what each player's rows were made with. A run that was killed goes
on; give --out for other settings.
"""

import argparse
from itertools import islice
from pathlib import Path

from growing import add, read
from players import named, note, runner_of

from ecomlab.catalog import load_shop
from ecomlab.evaluate.cascade.causal import COLUMNS, effects, measure, outcome_of
from ecomlab.evaluate.contestant import Job
from ecomlab.evaluate.tasks import held_out_seeds

TABLE = Path(__file__).with_name("effect.csv")
AT_ONCE = 48
"""Pairs that are played before they are written."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="+")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,8")
    parser.add_argument("--tasks", type=int, default=AT_ONCE)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    asked = parser.parse_args()
    envs, levels = asked.env.split(","), [int(level) for level in asked.levels.split(",")]
    shop = load_shop(asked.size)
    there = read(asked.out)
    for name, weights in map(named, asked.player):
        mine = [row for row in there if row["player"] == name]
        done = {(row["env"], int(row["d"]), int(row["seed"])) for row in mine}
        jobs = [Job(env, d, s) for env in envs for d in levels for s in held_out_seeds(0, asked.tasks)]
        left = (job for job in jobs if (job.env, job.d, job.seed) not in done)
        runner = runner_of(weights, envs, shop)
        while chunk := list(islice(left, AT_ONCE)):
            rows = [{"player": name, **one.row()} for one in measure(runner, chunk, shop)]
            add(asked.out, ("player", *COLUMNS), rows)
            mine += [{column: str(value) for column, value in row.items()} for row in rows]
        note(asked.out, name, weights, envs, shop, tasks=asked.tasks, catalog_size=asked.size)
        for row in effects([outcome_of(row) for row in mine if not row["why"]]):
            found = {column: round(v, 3) if isinstance(v, float) else v for column, v in row.items()}
            print(name, found, flush=True)
        print(
            f"{name}: {sum(bool(row['why']) for row in mine)} of {len(mine)} episodes have no pair",
            flush=True,
        )


if __name__ == "__main__":
    main()
