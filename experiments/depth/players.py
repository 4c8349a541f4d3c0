"""Success of reference, courteous and shortcut players, of the oracle, and of players that lack one kind of step or
believe that its plain choice is always wrong.

    python experiments/depth/players.py CART PD --tasks 60 --levels 0 2 6 12 20

It prints a line per environment and level: share correct and mean reward of each player, steps that count per task by
kind, and, for each kind, how many of the tasks that hold it the player without it solves, and of those with a trap of
it the contrary one. A quick look: the figure is drawn from the certificate, which plays them too.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import product
from typing import Any

from ecomlab.catalog import Shop, load_shop
from ecomlab.difficulty import STEPS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish
from ecomlab.laws.certificate import BESIDE, outcomes_of
from ecomlab.reward import Score


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("envs", nargs="*", default=[])
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 2, 6, 12, 20])
    asked = parser.parse_args()
    shop = load_shop()
    for env, d in product(asked.envs or ENVIRONMENTS, asked.levels):
        print(in_words(env, d, play(env, d, asked.tasks, shop)), flush=True)


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


if __name__ == "__main__":
    main()
