"""What a planted mistake leads to, for players that can be run: pairs of episodes that differ in one act.

    python experiments/cascade/effect.py novice adaptive=FOLDER [--env CART] [--levels 1,8] [--tasks 48] [--size 20000]

A player is a script, such as reference or perturbed, what `ecomlab eval` takes as weights, or NAME=FOLDER for a
checkpoint that is to be called NAME. Adds to effect.csv what it lacks of the held-out tasks: a row for each kind of
mistake that planted.csv or played.csv has in the environment, with the pair or why there is none. Rows that are there
are kept and not played again. Each task is written as it is done, so that a kill costs the one under way; weights need
less time with `--at-once 12`, and may differ in a token. effect.json says what each player's rows were made with; other
weights or another shop under a name that is there are refused: give --out.

Prints of each kind how many tasks have a pair, or why not, and each player's effects with 95% intervals; without a
player, of all in the table. `--verify N` adds nothing: it plays N tasks of each player again, drawn from the table, and
exits with code 1 where a row is another now. `--draw` plays nothing and puts the tables into docs/cascade.md.
"""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from growing import add, read
from players import check_record, named, note, runner_of

from ecomlab.analysis.cascades import as_markdown, planted, unpaired
from ecomlab.analysis.tables import load_effect
from ecomlab.catalog import load_shop
from ecomlab.evaluation.cascade.causal import ACTS, COLUMNS, measure
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.files import replace_between
from ecomlab.seeding import rng, shuffled

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

TABLE = Path(__file__).with_name("effect.csv")
OTHERS = Path(__file__).with_name("effect_others.csv")
"""Of environments other than the cart."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cascade.md"
PLANTED, PLAYED = (Path(__file__).with_name(f"{name}.csv") for name in ("planted", "played"))
Row = Mapping[str, str]
Task = tuple[str, int, int]
"""Environment, level and seed."""
Kinds = Mapping[Task, tuple[str, ...]]
"""Kinds of mistakes by task."""


def kinds_of(env: str) -> list[str]:
    """List the kinds of wrong acts that an environment gives the opportunity for: those that could be planted in the
    reference player's episodes, and those that players make by themselves, such as an item of a type that only they
    look up."""
    there = {row["planted"] for row in read(PLANTED) if row["env"] == env}
    there |= {row["kind"] for row in read(PLAYED) if row["env"] == env}
    return [kind for kind in ACTS if kind in there]


def kinds_in(rows: Sequence[Row]) -> Kinds:
    """List the kinds that rows have of each task."""
    found: dict[Task, tuple[str, ...]] = {}
    for row in rows:
        task = (row["env"], int(row["d"]), int(row["seed"]))
        found[task] = (*found.get(task, ()), row["kind"])
    return found


def lacking(there: Kinds, tasks: Sequence[Task]) -> Kinds:
    """List the kinds that are lacking in each of these tasks, as far as any are."""
    wanted = {env: kinds_of(env) for env in {env for env, *_ in tasks}}
    left = {task: tuple(k for k in wanted[task[0]] if k not in there.get(task, ())) for task in tasks}
    return {task: kinds for task, kinds in left.items() if kinds}


def play(weights: str, wanted: Kinds, shop: "Shop", at_once: int) -> Iterator[list[dict[str, str]]]:
    """Plant these kinds in a player's tasks, so many at once of those with the same kinds, and yield the rows."""
    runner = runner_of(weights, list(dict.fromkeys(env for env, *_ in wanted)), shop)
    for kinds, same in groupby(wanted, key=lambda task: wanted[task]):
        tasks = list(same)
        for first in range(0, len(tasks), at_once):
            pairs = measure(runner, [Job(*task) for task in tasks[first : first + at_once]], shop, kinds)
            yield [{column: str(value) for column, value in pair.row().items()} for pair in pairs]


def extend(name: str, weights: str, tasks: Sequence[Task], shop: "Shop", asked: argparse.Namespace) -> None:
    """Add to the table what a player lacks of these tasks."""
    there = kinds_in(rows_of(asked.out, name))
    wanted = lacking(there, tasks)
    print(f"{name}: {len(wanted)} of {len(tasks)} tasks are played", flush=True)
    if wanted:
        envs = list(dict.fromkeys(env for env, *_ in (*there, *wanted)))
        note(asked.out, name, weights, envs, shop, catalog_size=asked.size)
    for rows in play(weights, wanted, shop, asked.at_once) if wanted else ():
        add(asked.out, ("player", *COLUMNS), [{"player": name, **row} for row in rows])


def verify(name: str, weights: str, shop: "Shop", asked: argparse.Namespace) -> int:
    """Play some tasks of a player's rows again, print the rows that are others now, and count them."""
    was = {key_of(row): row for row in rows_of(asked.out, name)}
    there = kinds_in(list(was.values()))
    drawn = shuffled(rng("verify effects", name), there)[: asked.verify]
    wanted = {task: there[task] for task in sorted(drawn, key=lambda task: (there[task], task))}
    again = [row for rows in play(weights, wanted, shop, asked.at_once) for row in rows] if wanted else []
    other = [row for row in again if {"player": name, **row} != was[key_of(row)]]
    for row in other:
        print(f"{name}: was {was[key_of(row)]}, is {row}", flush=True)
    print(f"{name}: {len(drawn)} tasks played again, {len(other)} of {len(again)} rows differ", flush=True)
    return len(other)


def rows_of(table: Path, name: str) -> list[dict[str, str]]:
    """Read a player's rows."""
    return [row for row in read(table) if row["player"] == name]


def key_of(row: Row) -> tuple[str, ...]:
    """Name a row of a player."""
    return row["env"], row["d"], row["seed"], row["kind"]


def show(table: Path, names: Collection[str]) -> None:
    """Print of these players' rows, without names of all, how many tasks have a pair of each kind, or why not, and the
    effects."""
    rows = [row for row in read(table) if row["player"] in names or not names]
    for found in (unpaired(pd.DataFrame(rows)), planted(pd.DataFrame(rows))) if rows else ():
        print(f"\n{found.round(3).to_string(index=False)}", flush=True)


def draw() -> None:
    """Put what the tables come to into the page."""
    for table in filter(Path.exists, (TABLE, OTHERS)):
        marks = (
            f"<!-- drawn by experiments/cascade/effect.py from {table.name}: begin -->",
            f"<!-- {table.stem}: end -->",
        )
        replace_between(PAGE, marks, as_markdown(load_effect(table)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="*")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,8")
    parser.add_argument("--tasks", type=int, default=48)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--verify", type=int, default=0, metavar="N")
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.draw:
        return draw()
    if asked.verify and not asked.player:
        parser.error("--verify needs a player to play")
    shop, levels, differ = load_shop(asked.size), [int(level) for level in asked.levels.split(",")], 0
    tasks = list(product(asked.env.split(","), levels, held_out_seeds(0, asked.tasks)))
    players = dict(map(named, asked.player))
    for name, weights in players.items():
        check_record(asked.out, name, weights, shop)
        if asked.verify:
            differ += verify(name, weights, shop, asked)
        else:
            extend(name, weights, tasks, shop, asked)
    if differ:
        raise SystemExit(1)
    if not asked.verify:
        show(asked.out, players)


if __name__ == "__main__":
    main()
