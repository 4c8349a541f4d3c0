"""The sixty places that two readers label: which environment, level, task and player, drawn by a named seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.seeding import pick, rng, shuffled

HERE = Path(__file__).parent
TRANSCRIPTS = HERE / "transcripts.jsonl"
SEATS = HERE / "seats"
SIZE = 20_000
"""Products in the shop."""
LEVELS = range(9)
BLOCK, TASKS = 6, 10_000
"""Held-out tasks to draw from: those of a block that no other table plays."""
EACH = {"perturbed": 3, "base": 2, "novice": 1}
"""Places of a player in every environment."""
MODEL, OF_MODEL = "language model", 12
"""Who plays from the seat, and in how many places: once in every environment, then in others that are drawn."""


@dataclass(frozen=True)
class Place:
    """One episode that is to be played and labelled."""

    number: int
    """From 1, in an order that tells nothing of the player."""
    player: str
    job: Job

    @property
    def name(self) -> str:
        return f"{self.number:02}"


def places() -> list[Place]:
    """Draw the places, the same each time: a player's levels are spread evenly, tasks differ everywhere."""
    random = rng("readers", "places")
    rows = shuffled(random, list(_drawn()))
    return [Place(number, player, job) for number, (player, job) in enumerate(rows, 1)]


def _drawn() -> Iterator[tuple[str, Job]]:
    more = shuffled(rng("readers", "environments"), ENVIRONMENTS)[: OF_MODEL - len(ENVIRONMENTS)]
    envs = {player: [env for env in ENVIRONMENTS for _ in range(each)] for player, each in EACH.items()}
    envs[MODEL] = [*ENVIRONMENTS, *more]
    seeds = held_out_seeds(BLOCK, TASKS)
    for player, played in envs.items():
        random = rng("readers", player)
        rounds = -(-len(played) // len(LEVELS))
        levels = [d for _ in range(rounds) for d in shuffled(random, LEVELS)]
        for env, d in zip(played, levels, strict=False):
            yield player, Job(env, d, pick(random, seeds))
