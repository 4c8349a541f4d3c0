"""Held-out success of a policy in this process: a row per episode, and their summary by cell."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.local import BATCH, check_decoding, play_jobs
from ecomlab.evaluation.tasks import block_of, write_axes
from ecomlab.models.batch import Rollout
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.reward import PUBLISHED, Weights

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.environment_pool import EnvironmentPool
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import Sampler

CELL = ("env", "d", "axes", "block", "decoding")
"""Columns that identify a cell; `axes` are the overridden ones as text."""
PARTS = ("task", "efficiency", "hallucination")
EPISODE = (
    *CELL, "task_seed", "correct", "end", "reward", *(f"reward_{part}" for part in PARTS), "turns", "questions",
    "learned", "tokens", "context_tokens",
)  # fmt: skip
"""Columns of an episode. `env`, `d`, `axes` and `task_seed` identify the task. `correct` is 1 or 0, NaN in an unscored
episode, whose `end` is "failed". reward_* are the parts before weighting, `questions` those to the customer, `learned`
the slots that they revealed: all NaN in invalid and unscored episodes. `tokens` are those that the policy sampled,
`context_tokens` include prompt and results."""
Row = dict[str, Any]


def play_held_out(
    policy: "Policy",
    jobs: Sequence[Job],
    shop: "Shop",
    *,
    decodings: Sequence[str] = ("sampled",),
    sampler_of: "Callable[[str], Sampler] | None" = None,
    batch: int = BATCH,
    pool: "EnvironmentPool | None" = None,
    processes: ProcessGroup = SINGLE_PROCESS,
    keep: Callable[[Job, Rollout, str], None] = lambda job, rollout, decoding: None,
    weights: Weights = PUBLISHED,
) -> list[Row]:
    """Play jobs by each decoding, environments and levels side by side; return a row for each, with columns `EPISODE`.

    Job i has the same task and random stream for every policy, so that results are paired. `sampler_of` makes the
    sampler of a decoding; the default is the policy's. The workers of `pool` play the episodes. The processes
    share the jobs, and each returns all rows: by
    environment and block in the order of `jobs`, then decoding, level and seed. `keep` is called with each episode of
    this process; `weights` are the reward's. Raises ValueError for an unknown decoding.
    """
    sampler_of = sampler_of or (lambda decoding: policy.sampler(greedy=decoding == "greedy"))
    mine = jobs[processes.rank :: processes.workers] if processes.rank < processes.workers else []
    rows: list[Row] = []
    for decoding in map(check_decoding, decodings):
        sampler = sampler_of(decoding)
        for job, rollout in play_jobs(policy, mine, shop, sampler, batch=batch, pool=pool, weights=weights):
            keep(job, rollout, decoding)
            rows.append(_row(job, rollout, decoding))
    groups = _places([(job.env, block_of(job.seed)) for job in jobs])
    levels, order = _places([job.d for job in jobs]), _places(decodings)

    def place(row: Row) -> tuple[int, ...]:
        cell = groups[row["env"], row["block"]]
        return cell, order[row["decoding"]], levels[row["d"]], row["task_seed"]

    return sorted([row for share in processes.all_gather(rows) for row in share], key=place)


def _places(names: Iterable[Any]) -> dict[Any, int]:
    """Number values by their first appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def summarize(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Summarize episodes as rows of eval.csv, one per `CELL`, in the order of their first appearance.

    `success` and `reward` are means over scored episodes, NaN without any; `unscored` is the number of the others.
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


def _row(job: Job, rollout: Rollout, decoding: str) -> Row:
    score = rollout.score
    return {
        "env": job.env,
        "d": job.d,
        "axes": write_axes(job.axes),
        "block": block_of(job.seed),
        "decoding": decoding,
        "task_seed": job.seed,
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
