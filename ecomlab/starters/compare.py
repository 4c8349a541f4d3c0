"""A starter's held-out success by environment and difficulty, sampled and greedy, next to the best attacker's."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out, summarize
from ecomlab.laws import attackers
from ecomlab.models.load import load_policy
from ecomlab.seeding import EVALUATION_SEEDS

HEADER = f"{'env':8} {'d':>2} {'sampled':>8} {'greedy':>7} {'best other':>10}  who"


def compare(
    name: str | Path,
    cells: Sequence[tuple[str, int]],
    episodes: int,
    shop: Shop,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each cell: the starter's success rates and that of the best attacker."""
    on_progress(HEADER)
    for env, d in cells:
        policy = load_policy(name, shop, [env])
        row: dict[str, Any] = {"env": env, "d": d, "episodes": episodes}
        jobs = Cells((env,), (d,), episodes).jobs()
        for found in summarize(play_held_out(policy, jobs, shop, decodings=("sampled", "greedy"))):
            row[found["decoding"]] = found["success"]
        row["other"], row["who"] = best_other(env, d, episodes, shop)
        on_progress(
            f"{env:8} {d:2} {row['sampled']:8.3f} {row['greedy']:7.3f} {row['other']:10.3f}  {row['who']}"
        )
        yield row


def best_other(env: str, d: int, episodes: int, shop: Shop) -> tuple[float, str]:
    """Find the highest success rate of a blind or positional attacker on the same tasks, and its name."""
    environment = ENVIRONMENTS[env]
    players = {**attackers.blind(environment), **attackers.positional(environment)}
    tasks = [make_task(env, d, EVALUATION_SEEDS.start + i, shop) for i in range(episodes)]

    def share(make: attackers.Factory) -> float:
        return float(np.mean([finish(make(t.seed), Episode(t, shop)).score.correct for t in tasks]))

    return max((share(make), who) for who, make in players.items())
