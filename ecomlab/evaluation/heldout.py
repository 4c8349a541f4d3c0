"""Held-out success of a policy at fixed difficulties, on tasks that training never draws: a row per episode, and what
is drawn from those rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import Axes, axes_of, held_out_seeds, write_axes
from ecomlab.models.batch import Rollout, Start, draw_task, play_batch
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.reward import PUBLISHED, Weights
from ecomlab.seeding import rng
from ecomlab.suggest import unknown

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Limits, Sampler

DECODINGS = ("sampled", "greedy")
BATCH = 128
"""Number of episodes that a small policy plays at once."""
CELL = ("env", "d", "axes", "block", "decoding")
"""What the episodes of one summary have in common: environment, level, overridden axes as text, block of tasks, and
decoding."""
PARTS = ("task", "efficiency", "hallucination")
EPISODE = (
    *CELL, "task_seed", "correct", "end", "reward", *(f"reward_{part}" for part in PARTS), "turns", "questions",
    "learned", "tokens", "context_tokens",
)  # fmt: skip
"""Columns of an episode. `task_seed` names the task, with `env`, `d` and `axes`; `correct` is 1 or 0, NaN in an
unscored episode, whose `end` is "failed"; reward_* are the named parts before weighting, `questions` are those that the
customer was asked, `learned` the slots that they revealed: all NaN in invalid and unscored episodes; `tokens` are those
that the policy sampled, `context_tokens` all, the prompt included."""


def check_decoding(name: str) -> str:
    """Return the name of a decoding. Raises ValueError for any other."""
    if name not in DECODINGS:
        raise ValueError(unknown("decoding", name, DECODINGS))
    return name


def play_held_out(
    policy: "Policy",
    shop: "Shop",
    env: str,
    difficulties: Sequence[int],
    episodes: int,
    decoding: str = "sampled",
    limits: "Limits | None" = None,
    block: int = 0,
    axes: Axes | None = None,
    batch: int = BATCH,
    processes: ProcessGroup = SINGLE_PROCESS,
    sampler: "Sampler | None" = None,
    keep: Callable[[Job, Rollout], None] = lambda job, rollout: None,
    weights: Weights = PUBLISHED,
) -> list[dict[str, Any]]:
    """Play held-out tasks: a row for each of `episodes` tasks at each difficulty, with the columns `EPISODE`.

    Episode i at difficulty d of a block is the same task with the same random stream for every policy, so that results
    are paired. Blocks share no task, and none with training. Of `axes`, those apply that move the environment. A given
    `sampler` has its own limits and decoding. Every process gets all rows, in the same order;
    `keep` is called with each episode that this process played. Raises ValueError for an unknown decoding or block.
    """
    sampler = sampler or policy.sampler(limits, greedy=check_decoding(decoding) == "greedy")
    overrides = axes_of(axes or {}, env)
    cells = [(d, seed) for d in difficulties for seed in held_out_seeds(block, episodes)]
    mine = cells[processes.rank :: processes.workers] if processes.rank < processes.workers else []
    head = {"env": env, "axes": write_axes(overrides), "block": block, "decoding": decoding}
    rows: list[dict[str, Any]] = []
    for start in range(0, len(mine), batch):
        chunk = mine[start : start + batch]
        tasks = [draw_task(env, d, seed, shop, overrides) for d, seed in chunk]
        streams = [rng("evaluate", env, d, seed) for d, seed in chunk]
        starts = [task if isinstance(task, Exception) else Start(task, weights) for task in tasks]
        rollouts = play_batch(starts, streams, shop, sampler, policy.renderer)
        for (d, seed), rollout in zip(chunk, rollouts, strict=True):
            keep(Job(env, d, seed, axes=overrides), rollout)
        rows += [
            {**head, "d": d, "task_seed": seed, **_outcome(rollout)}
            for (d, seed), rollout in zip(chunk, rollouts, strict=True)
        ]
    gathered = [row for share in processes.all_gather(rows) for row in share]
    order = {d: place for place, d in enumerate(difficulties)}
    return sorted(gathered, key=lambda row: (order[row["d"]], row["task_seed"]))


def evaluate(
    policy: "Policy",
    shop: "Shop",
    env: str,
    difficulties: Sequence[int],
    episodes: int,
    decoding: str = "sampled",
    **more: Any,
) -> list[dict[str, Any]]:
    """Measure held-out success: play as `play_held_out` does, which takes `more`, and summarize."""
    return summarize(play_held_out(policy, shop, env, difficulties, episodes, decoding, **more))


def summarize(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Draw the rows of eval.csv from those of episodes, one for each `CELL`, in the order in which cells first appear.

    `success` and `reward` are means over scored episodes, NaN without any; `unscored` ones are counted.
    """
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in CELL), []).append(row)
    found = []
    for cell, mine in cells.items():
        scored = [row for row in mine if not math.isnan(row["correct"])]
        count = len(scored) or math.nan
        found.append(
            {
                **dict(zip(CELL, cell, strict=True)),
                "episodes": len(mine),
                "success": sum(row["correct"] for row in scored) / count,
                "reward": sum(row["reward"] for row in scored) / count,
                "unscored": len(mine) - len(scored),
            }
        )
    return found


def _outcome(rollout: Rollout) -> dict[str, Any]:
    score = rollout.score
    return {
        "correct": math.nan if score.unscored else int(score.correct),
        "end": rollout.end,
        "reward": score.value,
        **{f"reward_{part}": score.parts.get(part, math.nan) for part in PARTS},
        "turns": rollout.turns,
        "questions": score.asking.get("questions", math.nan),
        "learned": score.asking.get("learned", math.nan),
        "tokens": rollout.sampled,
        "context_tokens": len(rollout.prompt_ids) + len(rollout.completion_ids),
    }
