"""Which steps of thought imitation alone teaches a tiny policy: 200 seconds of a core for each, by environment.

    python experiments/starters/steps.py POLICY OUT.csv [--seconds 200] [--tasks 96]

Each kind starts from POLICY's weights and imitates clean demonstrations of tasks at d = 0 in which a step of this kind
counts and no other does, in an environment's own words. The table has success on held-out tasks of that sort, before
and after, and how often the demonstrator is right itself; a kind is learned if the share after is .3 or more. Tasks
whose demonstration exceeds 700 tokens are left out; of journeys only chains are asked about, the rest are their jobs'.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ecomlab.catalog import load_shop
from ecomlab.difficulty import STEPS, Difficulty
from ecomlab.envs.registry import ENVIRONMENTS, moved_by
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.heldout import play_held_out
from ecomlab.models.batch import draw_task
from ecomlab.models.load import load_policy
from ecomlab.seeding import EVALUATION_SEEDS, TRAINING_SEEDS, rng
from ecomlab.starters.demonstrations import Demonstration, transcribe
from ecomlab.starters.recipe import RECIPES
from ecomlab.starters.sft import batches_of, imitate
from ecomlab.steps import only

LONGEST, SOME = 700, 1500
TRIES = 40_000


def axes_of(env: str, kind: str) -> dict[str, float]:
    """Make the axes that leave one kind of step, with room for it."""
    moving = moved_by(env) or ()
    wanted = {
        **only(kind, mean=2.0),
        "constraints": Difficulty.at(8).constraints,
        "cart.items": 2.0 if kind in ("joint", "telling") else 1.0,
    }
    return {name: value for name, value in wanted.items() if name in moving}


def tasks_with(env: str, kind: str, seeds: Any, shop: Any, count: int, tries: int) -> list[Any]:
    """Draw tasks in which this kind of step counts alone."""
    axes, found = axes_of(env, kind), []
    for _, seed in zip(range(tries), seeds, strict=False):
        task = draw_task(env, 0, int(seed), shop, axes)
        if not isinstance(task, Exception) and set(task.steps) == {kind}:
            found.append(task)
        if len(found) == count:
            break
    return found


def learned(name: str, env: str, kind: str, shop: Any, seconds: float, tasks: int) -> dict[str, Any]:
    """Imitate one kind of step in one environment for so many seconds of the processor."""
    policy = load_policy(name, shop, [env])
    random = rng("steps alone", env, kind)
    began = time.process_time()
    right, demonstrations = [], []
    for task in tasks_with(
        env, kind, random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop, TRIES), shop, SOME, 4 * SOME
    ):
        played = transcribe(task, shop)
        right.append(played.correct)
        one = Demonstration.of(played.pieces, policy.renderer, played.correct, env)
        if played.correct and len(one.ids) <= LONGEST:
            demonstrations.append(one)
    row = {"env": env, "kind": kind, "drawn": len(right), "demonstrator": np.mean(right) if right else np.nan,
           "demonstrations": len(demonstrations)}  # fmt: skip
    held_out = tasks_with(
        env, kind, range(EVALUATION_SEEDS.start, EVALUATION_SEEDS.stop), shop, tasks, 6 * tasks
    )
    jobs = [Job(env, 0, task.seed, 0, axes_of(env, kind)) for task in held_out]
    if len(demonstrations) < 50 or len(jobs) < tasks // 4:
        return {**row, "tasks": len(jobs), "before": np.nan, "after": np.nan, "tokens": 0}

    def success() -> float:
        return float(np.mean([one["correct"] for one in play_held_out(policy, jobs, shop)]))

    row["before"], drawing = success(), time.process_time() - began
    trial = list(batches_of(demonstrations, 2_000, 20_000, ("pace", env, kind)))
    began = time.process_time()
    imitate(policy.model, trial, 1e-9, 1e-9, 1.0)
    pace = sum(len(d.ids) for batch in trial for d in batch) / (time.process_time() - began)
    batches = list(batches_of(demonstrations, 2_000, int(pace * seconds), ("steps alone", env, kind)))
    imitate(policy.model, batches, 0.01, 2e-3, 0.5, decay=RECIPES["singles"].decay)
    row |= {"tasks": len(jobs), "after": success(), "tokens": int(pace * seconds)}
    print(
        {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()},
        f"drawn in {drawing:.0f} s",
        flush=True,
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--tasks", type=int, default=96)
    parser.add_argument("--env", nargs="+", default=list(ENVIRONMENTS))
    given = parser.parse_args()
    shop = load_shop()
    rows = []
    for env in given.env:
        for kind in STEPS:
            if f"steps.{kind}" in (moved_by(env) or ()) and (env != "JOURNEY" or kind == "chain"):
                rows.append(learned(given.policy, env, kind, shop, given.seconds, given.tasks))
                pd.DataFrame(rows).to_csv(given.out, index=False, lineterminator="\n")
    print(pd.DataFrame(rows).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
