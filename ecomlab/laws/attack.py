"""Success of attackers in an environment, beside the environment's stated chance and its courteous player.

`python -m ecomlab.laws.attack CART STATUS --players "yes or no" corrections --levels 0 4 --tasks 40` prints it.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish
from ecomlab.laws.certificate import FIRST_SEED, players
from ecomlab.laws.corrected import corrected
from ecomlab.task import Player

Make = Callable[[Episode, int], Player]


@dataclass(frozen=True)
class Attack:
    """Results of one player at one level: share of correct tasks, mean reward, stated chance."""

    env: str
    d: int
    player: str
    tasks: int
    share: float
    reward: float
    chance: float

    def __str__(self) -> str:
        found = (
            f"{self.share:.3f} of {self.tasks} correct, reward {self.reward:5.2f}, chance {self.chance:.3f}"
        )
        return f"{self.env} d = {self.d}: {found}: {self.player}"


def everybody(env_id: str, shop: Shop) -> dict[str, Make]:
    """Make the factories of all players by name: those of a certificate, and the attackers that exploit corrections."""
    env, made = ENVIRONMENTS[env_id], players(env_id, shop)
    for name, make in corrected(env, shop).items():
        made[name] = lambda episode, seed, make=make: make()  # type: ignore[misc]
    return made


def attack(
    env_id: str, names: Sequence[str], levels: Sequence[int], tasks: int, shop: Shop
) -> Iterator[Attack]:
    """Play `tasks` tasks per level with each player whose name contains one of `names`."""
    env = ENVIRONMENTS[env_id]
    chosen = {n: make for n, make in everybody(env_id, shop).items() if any(name in n for name in names)}
    for d in levels:
        drawn = [make_task(env_id, d, FIRST_SEED + seed, shop) for seed in range(tasks)]
        chance = sum(env.audit.chance(task, shop) for task in drawn) / tasks
        for name, make in chosen.items():
            scores = [
                finish(make(episode, episode.task.seed), episode).score
                for episode in (Episode(task, shop) for task in drawn)
            ]
            share, reward = sum(s.correct for s in scores) / tasks, sum(s.value for s in scores) / tasks
            yield Attack(env_id, d, name, tasks, share, reward, chance)


def main() -> None:
    """Print the results of the named players."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("envs", nargs="+", choices=list(ENVIRONMENTS))
    parser.add_argument("--players", nargs="+", default=["one", "yes or no", "guess"], help="parts of names")
    parser.add_argument("--levels", nargs="+", type=int, default=[0, 4])
    parser.add_argument("--tasks", type=int, default=40)
    given = parser.parse_args()
    shop = load_shop()
    for env in given.envs:
        for found in attack(env, given.players, given.levels, given.tasks, shop):
            print(found, flush=True)


if __name__ == "__main__":
    main()
