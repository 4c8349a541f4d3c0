"""Success of reference, courteous and shortcut players, of the oracle, and of players that lack one kind of step.

    python experiments/depth/players.py CART PD --tasks 60 --levels 0 2 6 12 20

prints a line per environment and level: share correct and mean reward of each player, steps that count per task by
kind, and, for each kind, how many of the tasks that hold it the player without it solves.
"""

import argparse
from collections import Counter, defaultdict

from ecomlab.catalog import load_shop
from ecomlab.difficulty import STEPS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("envs", nargs="*", default=list(ENVIRONMENTS))
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--levels", type=int, nargs="+", default=[0, 2, 6, 12, 20])
    asked = parser.parse_args()
    shop = load_shop()
    for name in asked.envs:
        env = ENVIRONMENTS[name]
        for d in asked.levels:
            right, reward = Counter[str](), defaultdict[str, float](float)
            steps, held, lacking = Counter[str](), Counter[str](), Counter[str]()
            for seed in range(asked.tasks):
                task = make_task(name, d, seed, shop)
                steps.update(task.steps)
                episode = Episode(task, shop)
                players = {
                    "reference": env.reference_player(shop),
                    "courteous": env.reference_player(shop, courteous=True),
                    "shortcut": env.reference_player(shop, lacks=STEPS),
                }
                scores = {who: finish(player, Episode(task, shop)).score for who, player in players.items()}
                scores["oracle"] = finish(env.oracle(episode), episode).score
                for who, score in scores.items():
                    right[who] += score.correct
                    reward[who] += score.value
                for kind in set(task.steps):
                    player = env.reference_player(shop, lacks=[kind])
                    held[kind] += 1
                    lacking[kind] += finish(player, Episode(task, shop)).score.correct
            shares = ", ".join(
                f"{w} {right[w] / asked.tasks:.3f} ({reward[w] / asked.tasks:.3f})" for w in right
            )
            kinds = ", ".join(
                f"{kind} {steps[kind] / asked.tasks:.2f} a task, without it {lacking[kind]} of {held[kind]}"
                for kind in held
            )
            print(f"{name} d = {d}: {shares}; {kinds}", flush=True)


if __name__ == "__main__":
    main()
