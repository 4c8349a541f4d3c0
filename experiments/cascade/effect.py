"""What a planted mistake leads to, for a player that can be run: pairs of episodes that differ in one act.

    python experiments/cascade/effect.py novice [--env CART] [--levels 1,8] [--tasks 50] [--block 0] [--size 20000]

Adds to effect_novice.csv the pairs that it lacks, of held-out tasks, and prints the effects with 95% intervals. A
player is a script, such as reference or perturbed, or what `ecomlab eval` takes as weights. A run that was killed goes
on; give --out for other settings.
"""

import argparse
import csv
from itertools import islice
from pathlib import Path
from typing import Any

from ecomlab.catalog import load_shop
from ecomlab.evaluate.cascade.causal import COLUMNS, effects, measure, outcome_of
from ecomlab.evaluate.cascade.forced import LocalRunner, Runner, ScriptedRunner
from ecomlab.evaluate.contestant import Job
from ecomlab.evaluate.scripted import PLAYERS
from ecomlab.evaluate.tasks import held_out_seeds
from ecomlab.models.load import load_policy

AT_ONCE = 16
"""Pairs that are played before they are written."""


def runner_of(player: str, envs: list[str], shop: Any) -> Runner:
    """Make the player: a script, or weights with their usual limits."""
    return ScriptedRunner(player) if player in PLAYERS else LocalRunner(load_policy(player, shop, envs))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,8")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--block", type=int, default=0)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    out = asked.out or Path(__file__).with_name(f"effect_{Path(asked.player).name}.csv")
    envs, levels = asked.env.split(","), [int(level) for level in asked.levels.split(",")]
    shop = load_shop(asked.size)
    runner = runner_of(asked.player, envs, shop)
    there = list(csv.DictReader(out.open(newline="", encoding="utf-8"))) if out.exists() else []
    done = {(row["env"], int(row["d"]), int(row["seed"])) for row in there}
    jobs = [Job(env, d, s) for s in held_out_seeds(asked.block, asked.tasks) for env in envs for d in levels]
    left = (job for job in jobs if (job.env, job.d, job.seed) not in done)
    while chunk := list(islice(left, AT_ONCE)):
        rows = [one.row() for one in measure(runner, chunk, shop)]
        with out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if not file.tell():
                writer.writeheader()
            writer.writerows(rows)
        there += [{name: str(value) for name, value in row.items()} for row in rows]
    for row in effects([outcome_of(row) for row in there if not row["why"]]):
        print({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
    print(f"{sum(bool(row['why']) for row in there)} of {len(there)} episodes have no pair")


if __name__ == "__main__":
    main()
