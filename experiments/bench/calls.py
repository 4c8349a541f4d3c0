"""Calls of functions that an episode takes: a cost that a busy machine does not change.

    python experiments/bench/calls.py OUT.csv [--products 20000] [--levels 0 8 12] [--episodes 10]

Plays episodes of the reference player and of the courteous player, after some that fill what is made once a process,
and writes a row per environment, level and player: the mean calls of Python functions, those of any functions, and a
digest of every task, message and score, which two versions that behave alike share. calls.csv is of the issue `Fast`,
calls_before.csv of 1e4161dc, before it: all 48 digests are equal.
"""

import argparse
import csv
from cProfile import Profile
from pathlib import Path
from types import CodeType

from ecomlab import ENVIRONMENTS, Shop, load_shop, make_task
from ecomlab.episode.play import play
from ecomlab.seeding import digest

WARM_UP = 5
OTHER_TASKS = 1_000
"""The courteous player plays tasks from this seed on, so that the reference player's leave it nothing in a cache."""


def count(env: str, d: int, courteous: bool, episodes: int, shop: Shop) -> dict[str, str | int | float]:
    """Count the calls of one environment's episodes at a level: drawing the task, playing and scoring it."""
    profile, seen, first = Profile(), [], OTHER_TASKS * courteous
    for seed in range(first, first + WARM_UP + episodes):
        if seed >= first + WARM_UP:
            profile.enable()
        task = make_task(env, d, seed, shop)
        done = play(ENVIRONMENTS[env].reference_player(shop, courteous=courteous), task, shop)
        profile.disable()
        seen.append((task.to_json(), done.messages, done.end, repr(done.score)))
    stats = profile.getstats()
    return {
        "env": env,
        "d": d,
        "player": "courteous" if courteous else "reference",
        "python_calls": sum(s.callcount for s in stats if isinstance(s.code, CodeType)) / episodes,
        "all_calls": sum(s.callcount for s in stats) / episodes,
        "digest": digest(seen),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--products", type=int, default=20_000)
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 8, 12])
    parser.add_argument("--episodes", type=int, default=10)
    given = parser.parse_args()
    shop = load_shop(given.products)
    rows = [
        count(env, d, courteous, given.episodes, shop)
        for d in given.levels
        for env in ENVIRONMENTS
        for courteous in (False, True)
    ]
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
