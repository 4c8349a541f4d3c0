"""What a planted mistake leads to, for players that can be run: pairs of episodes that differ in one act.

    python experiments/cascade/effect.py novice adaptive=FOLDER [--env CART] [--levels 1,8] [--tasks 48] [--size 20000]

Players are named as for played.py. Adds to effect.csv, task by task, what it lacks of the held-out tasks: a row for
each kind of mistake, with the pair or why there is none (`ecomlab.evaluation.planting.measure`); effect.json has the
provenance of each player's rows. Prints the effects of all rows of these players with 95% intervals.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from growing import add, read
from players import named, note, play_of

from ecomlab.analysis.cascades import planted
from ecomlab.catalog import load_shop
from ecomlab.episode.episode import make_task
from ecomlab.evaluation.planting import PLANTABLE, Pair, measure
from ecomlab.evaluation.tasks import held_out_seeds

TABLE = Path(__file__).with_name("effect.csv")
COLUMNS = (
    "player", "env", "d", "seed", "trial", "kind", "turn", "final", "twin_correct", "planted_correct", "twin_later",
    "planted_later", "mended", "why",
)  # fmt: skip


def row_of(name: str, pair: Pair) -> dict[str, Any]:
    """Write a pair as a row; without one only its task, kind and reason."""
    values = {key: int(one) if isinstance(one, bool) else one for key, one in asdict(pair).items()}
    known = {"player": name, "trial": 0}
    if pair.why:
        values = {key: values[key] for key in ("env", "d", "seed", "kind", "why")}
    return {**dict.fromkeys(COLUMNS, ""), **known, **values}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="+")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,8")
    parser.add_argument("--tasks", type=int, default=48)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    asked = parser.parse_args(arguments)
    shop, envs, levels = load_shop(asked.size), asked.env.split(","), map(int, asked.levels.split(","))
    cells = list(product(envs, levels, held_out_seeds(0, asked.tasks)))
    players = dict(map(named, asked.player))
    for name, weights in players.items():
        plays = play_of(weights, envs, shop)
        there = {
            (row["env"], int(row["d"]), int(row["seed"])) for row in read(asked.out) if row["player"] == name
        }
        for cell in cells:
            if cell not in there:
                note(asked.out, name, weights, envs, shop, catalog_size=asked.size)
                pairs = measure(plays, [make_task(*cell, shop)], shop, tuple(PLANTABLE))
                add(asked.out, COLUMNS, [row_of(name, pair) for pair in pairs])
    rows = pd.DataFrame([row for row in read(asked.out) if row["player"] in players])
    print(planted(rows).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
