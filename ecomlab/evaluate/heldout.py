"""Held-out success of a policy at fixed difficulties, on tasks that training never draws."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ecomlab.models.batch import EVALUATION_SEEDS, draw_task, play_batch
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.reward import Score
from ecomlab.seeding import rng
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Limits, Sampler

DECODINGS = ("sampled", "greedy")
BATCH = 128
"""Number of episodes that a small policy plays at once."""


def evaluate(
    policy: "Policy",
    shop: "Shop",
    env: str,
    difficulties: Sequence[int],
    episodes: int,
    decoding: str = "sampled",
    limits: "Limits | None" = None,
    first_seed: int = EVALUATION_SEEDS.start,
    batch: int = BATCH,
    processes: ProcessGroup = SINGLE_PROCESS,
    sampler: "Sampler | None" = None,
) -> list[dict[str, Any]]:
    """Measure held-out success: a row for each difficulty, as `result_row` makes it.

    Episode i at difficulty d is the same task with the same random stream for every policy, so that results are
    paired. Seeds start at `first_seed`, by default beyond those of training tasks. A given `sampler` has its own limits
    and decoding. Raises ValueError for an unknown decoding.
    """
    if decoding not in DECODINGS:
        raise ValueError(unknown("decoding", decoding, DECODINGS))
    sampler = sampler or policy.sampler(limits, greedy=decoding == "greedy")
    cells = [(d, first_seed + i) for d in difficulties for i in range(episodes)]
    mine = cells[processes.rank :: processes.workers] if processes.rank < processes.workers else []
    scores: list[tuple[int, Score]] = []
    for start in range(0, len(mine), batch):
        chunk = mine[start : start + batch]
        tasks = [draw_task(env, d, seed, shop) for d, seed in chunk]
        streams = [rng("evaluate", env, d, seed) for d, seed in chunk]
        rollouts = play_batch(tasks, streams, shop, sampler, policy.renderer)
        scores += [(d, r.score) for (d, _), r in zip(chunk, rollouts, strict=True)]
    gathered = [pair for share in processes.all_gather(scores) for pair in share]
    by_level = {d: [score for level, score in gathered if level == d] for d in difficulties}
    return [result_row(env, d, found, decoding) for d, found in by_level.items()]


def result_row(env: str, d: int, scores: Sequence[Score], decoding: str) -> dict[str, Any]:
    """Summarise one difficulty; unscored episodes are counted and left out of the means."""
    scored = [s for s in scores if not s.unscored]
    count = len(scored) or math.nan
    return {
        "env": env,
        "d": d,
        "episodes": len(scores),
        "success": sum(s.correct for s in scored) / count,
        "reward": sum(s.value for s in scored) / count,
        "unscored": len(scores) - len(scored),
        "decoding": decoding,
    }
