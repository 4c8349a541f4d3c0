"""What a planted mistake leads to, for players that can be run: pairs of episodes that differ in one act.

    python experiments/cascade/effect.py novice adaptive=FOLDER [--env CART] [--levels 1,8] [--tasks 48] [--size 20000]

A player is a script, such as reference or perturbed, what `ecomlab eval` takes as weights, or NAME=FOLDER for a
checkpoint that is to be called NAME. Adds to effect.csv what it lacks of the held-out tasks: a row for each kind of
mistake that planted.csv or played.csv has in the environment, with the pair or why there is none. Prints each player's
effects with 95% intervals; effect.json says what each player's rows were made with. A run that was killed goes on; give
--out for other settings. `--draw` plays nothing and puts the tables into docs/cascade.md.
"""

import argparse
from collections import Counter
from itertools import groupby, islice, product
from pathlib import Path

from growing import add, read
from players import named, note, runner_of

from ecomlab.analysis.cascades import as_markdown
from ecomlab.analysis.tables import load_effect
from ecomlab.catalog import load_shop
from ecomlab.evaluate.cascade.causal import ACTS, COLUMNS, effects, measure, outcome_of
from ecomlab.evaluate.contestant import Job
from ecomlab.evaluate.tasks import held_out_seeds
from ecomlab.files import replace_between

TABLE = Path(__file__).with_name("effect.csv")
OTHERS = Path(__file__).with_name("effect_others.csv")
"""Of environments other than the cart."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cascade.md"
PLANTED, PLAYED = (Path(__file__).with_name(f"{name}.csv") for name in ("planted", "played"))
AT_ONCE = 48
"""Tasks that are played before their pairs are written."""


def kinds_of(env: str) -> list[str]:
    """List the kinds of wrong acts that an environment gives the opportunity for: those that could be planted in the
    reference player's episodes, and those that players make by themselves, such as an item of a type that only they
    look up."""
    there = {row["planted"] for row in read(PLANTED) if row["env"] == env}
    there |= {row["kind"] for row in read(PLAYED) if row["env"] == env}
    return [kind for kind in ACTS if kind in there]


def draw() -> None:
    """Put what the tables come to into the page."""
    for table in filter(Path.exists, (TABLE, OTHERS)):
        marks = (
            f"<!-- drawn by experiments/cascade/effect.py from {table.name}: begin -->",
            f"<!-- {table.stem}: end -->",
        )
        replace_between(PAGE, marks, as_markdown(load_effect(table)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="*")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,8")
    parser.add_argument("--tasks", type=int, default=AT_ONCE)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    if asked.draw:
        return draw()
    if not asked.player:
        parser.error("a player is needed")
    envs, levels = asked.env.split(","), [int(level) for level in asked.levels.split(",")]
    shop = load_shop(asked.size)
    there = read(asked.out)
    for name, weights in map(named, asked.player):
        mine = [row for row in there if row["player"] == name]
        done = {(row["env"], int(row["d"]), int(row["seed"]), row["kind"]) for row in mine}
        runner, seeds = runner_of(weights, envs, shop), held_out_seeds(0, asked.tasks)
        for env, d in product(envs, levels):
            lacking = [[kind for kind in kinds_of(env) if (env, d, seed, kind) not in done] for seed in seeds]
            tasks = zip(lacking, (Job(env, d, seed) for seed in seeds), strict=True)
            for kinds, same in groupby(tasks, key=lambda task: task[0]):
                left = (job for _, job in same)
                while kinds and (chunk := list(islice(left, AT_ONCE))):
                    pairs = measure(runner, chunk, shop, kinds)
                    rows = [{"player": name, **one.row()} for one in pairs]
                    add(asked.out, ("player", *COLUMNS), rows)
                    mine += [{column: str(value) for column, value in row.items()} for row in rows]
        counts = Counter(
            f"{env}, d = {d}" for env, d, _ in {(row["env"], row["d"], row["seed"]) for row in mine}
        )
        note(
            asked.out, name, weights, envs, shop, tasks=dict(sorted(counts.items())), catalog_size=asked.size
        )
        for row in effects([outcome_of(row) for row in mine if not row["why"]]):
            found = {column: round(v, 3) if isinstance(v, float) else v for column, v in row.items()}
            print(name, found, flush=True)
        why = Counter((row["kind"], row["why"]) for row in mine if row["why"])
        for (kind, reason), tasks in sorted(why.items()):
            print(f"{name}, {kind}: {tasks} tasks without a pair, {reason}", flush=True)


if __name__ == "__main__":
    main()
