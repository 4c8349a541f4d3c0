"""The twenty held-out tasks on which every bridge is tested, and their players."""

import json

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import BLOCKS, held_out_seeds
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng
from ecomlab.task import Message, Player

COUNT, LEVELS = 20, (0, 3, 6)
BLOCK = BLOCKS - 1
"""The last block of held-out tasks; evaluations begin with block 0."""
SHOP = 1_000
"""Number of products in their shop."""


def sample_jobs() -> list[Job]:
    """List the tasks: all environments, one level after another."""
    cells = [(env, d) for d in LEVELS for env in ENVIRONMENTS]
    seeds = held_out_seeds(BLOCK, COUNT)
    return [Job(env, d, seed) for (env, d), seed in zip(cells[:COUNT], seeds, strict=True)]


def sample_player(job: Job, shop: Shop) -> Player:
    """Make the reference player, with seeded mistakes on every second task: without any all scores are equal."""
    mistakes = Perturbation(rng("bridges", job.env, job.d, job.seed), 0.3) if job.seed % 2 else None
    player: Player = ENVIRONMENTS[job.env].reference_player(shop, mistakes)
    return player


def write_message(message: Message) -> str:
    """Write an assistant message as JSON text, for frameworks that carry only text."""
    return json.dumps(message, ensure_ascii=False)
