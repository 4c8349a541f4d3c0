"""Success of reference, courteous and shortcut players, of the oracle, and of players that lack one kind of step or
believe that its plain choice is always wrong.

    python experiments/depth/players.py CART PD --tasks 60 --levels 0 2 6 12 20
    python experiments/depth/players.py --table
    python experiments/depth/players.py figure

The first prints a line per environment and level: share correct and mean reward of each player, steps that count per
task by kind, and, for each kind, how many of the tasks that hold it the player without it solves, and of those with a
trap of it the contrary one. The second plays all cells of the figure and writes them to players.csv beside this file,
one after another: it can be stopped, and goes on where the same code has left off. The third draws the figure of it.
"""

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop, load_shop
from ecomlab.difficulty import STEPS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish
from ecomlab.laws.certificate import BESIDE, outcomes_of
from ecomlab.reward import Score
from ecomlab.seeding import package_digest

TABLE = Path(__file__).with_name("players.csv")
LEVELS = [*range(13), 16, 20]
COLUMNS = ("env", "d", "player", "tasks", "right", "reward", "steps", "code")
"""Of each player its tasks (of one that lacks a kind or is contrary those that hold it), how many of them it solves,
its mean reward, and steps of the kind in a task; the code's digest."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("envs", nargs="*", default=[])
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--levels", type=int, nargs="+")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.envs == ["figure"]:
        draw_figure()
        return
    shop = load_shop()
    cells = [
        (env, d)
        for env in asked.envs or ENVIRONMENTS
        for d in asked.levels or (LEVELS if asked.table else [0, 2, 6, 12, 20])
    ]
    done = keep_done(asked.tasks) if asked.table else []
    for env, d in cells:
        if not any((env, str(d)) == (row["env"], row["d"]) for row in done):
            rows = play(env, d, asked.tasks, shop)
            print(in_words(env, d, rows), flush=True)
            if asked.table:
                append(rows)


def play(name: str, d: int, tasks: int, shop: Shop) -> list[dict[str, Any]]:
    """Play one cell with every player: a row for each."""
    env, scores, steps = ENVIRONMENTS[name], defaultdict[str, list[Score]](list), Counter[str]()
    for seed in range(tasks):
        task = make_task(name, d, seed, shop)
        steps.update(task.steps)
        episode = Episode(task, shop)
        held = [kind for kind in STEPS if kind in task.steps]
        known = {kind for kind, _, _ in outcomes_of(task, shop)}
        traps = [kind for kind in STEPS if kind in known and kind not in BESIDE]
        players = {
            "oracle": env.oracle(episode),
            "reference": env.reference_player(shop),
            "courteous": env.reference_player(shop, courteous=True),
            "shortcut": env.reference_player(shop, lacks=STEPS),
            **{f"without {kind}": env.reference_player(shop, lacks=[kind]) for kind in held},
            **{f"against {kind}": env.reference_player(shop, contrary=[kind]) for kind in traps},
        }
        for who, player in players.items():
            played = episode if who == "oracle" else Episode(task, shop)
            scores[who].append(finish(player, played).score)
    return [
        {
            "env": name,
            "d": d,
            "player": who,
            "tasks": len(mine),
            "right": sum(score.correct for score in mine),
            "reward": round(sum(score.value for score in mine) / len(mine), 4),
            "steps": round(steps[who.removeprefix("without ")] / tasks, 4) if " " in who else 0,
            "code": package_digest(),
        }
        for who, mine in scores.items()
    ]


def in_words(name: str, d: int, rows: list[dict[str, Any]]) -> str:
    """Word the rows of one cell."""

    def said(row: Mapping[str, Any]) -> str:
        who, right, of = row["player"], row["right"], row["tasks"]
        if who.startswith("without "):
            return f"{who} {right} of {of} ({row['steps']:.2f} a task)"
        if who.startswith("against "):
            return f"{who} {right} of {of}"
        return f"{who} {right / of:.3f} ({row['reward']:.3f})"

    return f"{name} d = {d}: {', '.join(map(said, rows))}"


def keep_done(tasks: int) -> list[dict[str, str]]:
    """Read the table's rows of this code and so many tasks, and leave no others in it."""
    rows = list(csv.DictReader(TABLE.open())) if TABLE.exists() else []
    cells = {(row["env"], row["d"]): row["tasks"] for row in rows if row["player"] == "reference"}
    kept = [
        row
        for row in rows
        if row["code"] == package_digest() and cells.get((row["env"], row["d"])) == str(tasks)
    ]
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return kept


def append(rows: list[dict[str, Any]]) -> None:
    """Add the rows of one cell to the table, in one write."""
    with TABLE.open("a", newline="") as file:
        csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)


def draw_figure() -> None:
    """Draw the table's figure into the folder of figures."""
    from rich.console import Console

    from ecomlab.lab.experiment import draw

    root = TABLE.parents[2]
    draw([root / "notebooks" / "fig_depth.ipynb"], None, root / "figures", Console())


if __name__ == "__main__":
    main()
