"""Where players go wrong by themselves: the labelled mistakes of held-out episodes, a row per mistake.

    python experiments/cascade/played.py perturbed novice adaptive=FOLDER [--env CART] [--levels 1,3,8] [--tasks 64]

A player is a script, such as reference or perturbed, what `ecomlab eval` takes as weights, or NAME=FOLDER for a
checkpoint that is to be called NAME. Adds to played.csv what it lacks, a level of a player at a time, so a run that was
killed goes on; played.json says what each player's rows were made with. `--verify N` adds nothing: it plays N episodes
of each of these levels in the table again, and exits with code 1 where the mistakes of one are others now. The figure
is notebooks/fig_error_cascade.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from growing import add, read
from players import check_record, named, note, runner_of

from ecomlab.catalog import load_shop
from ecomlab.evaluation.cascade.forced import Runner
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.tables import UNSCORED, Episode, rows_of
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.seeding import rng, shuffled

TABLE = Path(__file__).with_name("played.csv")
COLUMNS = (
    "player", "env", "d", "seed", "turns", "needed", "end", "correct", "number", "turn", "kind", "cause", "fate",
    "until", "parent",
)  # fmt: skip


def play(name: str, runner: Runner, jobs: list[Job], shop: Any) -> Iterator[dict[str, Any]]:
    """Play these episodes, label them, and yield the rows of the table."""
    for job, trajectory in zip(jobs, runner.play(jobs, [None] * len(jobs), shop), strict=True):
        broken = trajectory is None or trajectory.score.unscored
        labelled = None if trajectory is None or broken else label(trajectory, shop)
        for row in rows_of(Episode(job, None, labelled, UNSCORED if broken else "")):
            yield {"player": name, **{column: row[column] for column in COLUMNS[1:]}}


def episodes_of(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[dict[str, str]]]:
    """Group rows by the seed of their episode, with values as a table holds them."""
    found: dict[int, list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(int(row["seed"]), []).append({name: str(row[name]) for name in COLUMNS})
    return found


def verify(name: str, runner: Runner, rows: Sequence[Mapping[str, str]], count: int, shop: Any) -> int:
    """Play so many episodes of a player's level again, print those whose rows are others now, and count them."""
    was, (env, d) = episodes_of(rows), (rows[0]["env"], int(rows[0]["d"]))
    jobs = [Job(env, d, seed) for seed in sorted(shuffled(rng("verify played", name, env, d), was)[:count])]
    now = episodes_of(play(name, runner, jobs, shop))
    differ = [job.seed for job in jobs if now[job.seed] != was[job.seed]]
    print(f"{name}, d = {d}: {len(jobs)} episodes played again, {len(differ)} differ", *differ, flush=True)
    return len(differ)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", nargs="+")
    parser.add_argument("--env", default="CART")
    parser.add_argument("--levels", default="1,3,8")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--verify", type=int, default=0, metavar="N")
    asked = parser.parse_args(arguments)
    shop = load_shop(asked.size)
    there, differ = dict[tuple[str, str, str], list[dict[str, str]]](), 0
    for row in read(asked.out):
        there.setdefault((row["player"], row["env"], row["d"]), []).append(row)
    for name, weights in map(named, asked.player):
        check_record(asked.out, name, weights, shop)
        runner = runner_of(weights, [asked.env], shop)
        for d in asked.levels.split(","):
            rows = there.get((name, asked.env, d), [])
            if asked.verify and rows:
                differ += verify(name, runner, rows, asked.verify, shop)
            if asked.verify or rows:
                continue
            jobs = [Job(asked.env, int(d), seed) for seed in held_out_seeds(0, asked.tasks)]
            rows = list(play(name, runner, jobs, shop))
            note(asked.out, name, weights, [asked.env], shop, tasks=asked.tasks, catalog_size=asked.size)
            add(asked.out, COLUMNS, rows)
            print(f"{name}, d = {d}: {len(jobs)} episodes, {len(rows)} rows", flush=True)
    if differ:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
