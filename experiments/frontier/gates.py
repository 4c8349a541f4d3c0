"""Gates, passed before the study is registered: does reinforcement learning teach a tiny policy to compose steps?

    python experiments/frontier/gates.py first [--dry-run]      # rollouts x learning rate x starter: block 0
    python experiments/frontier/gates.py second                 # the best again, two fresh seeds each: block 1
    python experiments/frontier/gates.py long                   # 600 steps of each schedule, with the best settings
    python experiments/frontier/gates.py environments           # novice as it starts, all eight: for S2's gains
    python experiments/frontier/gates.py planted                # what the starters mend, on S4's tasks
    python experiments/frontier/gates.py levels                 # the starters on S1's final tasks
    python experiments/frontier/gates.py table                  # gains over the starters: gates.csv, gates_skills.csv

All draw levels 0 to 6 uniformly but the long ones. The first have equally many rollouts. A gain is success after
training minus that of the starter on the same tasks, in the mean over levels 0 to 6 (drawn) or 7 and 8 (never drawn);
its interval is normal, as if the two sides were independent, which is wider than a paired one. Both seeds of a second
gate together have the mean of their gains and an interval as wide as the mean one, for they share their tasks; the gate
is passed if its lower bound exceeds .03, sampled and greedy.
"""

import sys
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from composition import by_steps, measured, played
from trials import HERE, OWN, Run, environments, main, planted

from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.models.load import load_policy

ROLLOUTS = 16_384
PROMPTS, RATES, STARTERS = (8, 32, 64), (1e-4, 3e-4, 1e-3), ("singles", "novice")
TASKS = {0: 96, 1: 192}
"""Held-out tasks of a level, by block."""
PASSED = 0.03
LEVELS = {"0-6": range(7), "7-8": (7, 8)}
LONG = {
    "adaptive": {"schedule": "adaptive"},
    "static-0-6": {"schedule": "static-0-6"},
    "singles": {"schedule": OWN + "singles"},
    "static-4-6": {"schedule": "static-4-6"},
    "prefix": {"schedule": OWN + "prefix"},
}


def settings(prompts: int, rate: float) -> dict[str, Any]:
    return {"prompts_per_step": prompts, "lr": rate}


def first() -> list[Run]:
    return [
        Run(
            "gate-1", f"{8 * prompts}-rollouts-{rate:g}", starter, 0,
            {"schedule": "static-0-6", "steps": ROLLOUTS // (8 * prompts), **settings(prompts, rate)},
            tasks=TASKS[0], blocks=(0,),
        )
        for starter, prompts, rate in product(STARTERS, PROMPTS, RATES)
    ]  # fmt: skip


def second() -> list[Run]:
    """The two runs of the first gate that gained most, and each starter's best, with seeds of their own."""
    gains = (
        table(first()).query("decoding == 'sampled' and levels == '0-6'").sort_values("gain", ascending=False)
    )
    starters = gains.name.str.extract(f"({'|'.join(STARTERS)})", expand=False)
    best = {*gains.name[:2], *gains.name[~starters.duplicated()]}
    chosen = [run for run in first() if run.name in best]
    return [
        Run("gate-2", run.arm, run.starter, seed, run.settings, tasks=TASKS[1], blocks=(1,))
        for run, seed in product(chosen, (1, 2))
    ]


def long() -> list[Run]:
    """Six hundred steps of each schedule with the settings that gained most, and of *singles* with a reference that
    begins, the schedule that needs no success of the policy's own."""
    best = table(first()).query("decoding == 'sampled' and levels == '0-6'").nlargest(1, "gain").name.item()
    run = next(run for run in first() if run.name == best)
    steps = 600 * 8 // run.settings["prompts_per_step"]  # as many rollouts as 600 steps of 64 have
    more = {"steps": steps, "eval_every": steps // 6}
    arms = [(arm, run.starter) for arm in LONG] + [("prefix", starter) for starter in STARTERS]
    return [
        Run("gate-long", arm, starter, 0, {**run.settings, **LONG[arm], **more}, tasks=TASKS[0], blocks=(0,))
        for arm, starter in dict.fromkeys(arms)
    ]


def start(starter: str, block: int) -> pd.DataFrame:
    """Read a starter's table of a block, or make it."""
    path = HERE / "results" / f"start-{starter}-{block}.csv"
    if not path.exists():
        shop = load_shop()
        path.parent.mkdir(exist_ok=True)
        found = measured(played(load_policy(starter, shop, ["CART"]), shop, TASKS[block], block))
        found.to_csv(path, index=False, lineterminator="\n")
    return pd.read_csv(path).set_index("cell")


def start_environments() -> None:
    """Measure *novice* in all environments, on the tasks on which S2 measures those that it holds out."""
    shop = load_shop()
    tasks = dict.fromkeys(product(ENVIRONMENTS, (0, 1)), 192)
    found = environments(load_policy("novice", shop, list(ENVIRONMENTS)), shop, tasks)
    found.to_csv(HERE / "results/start-environments.csv", index=False, lineterminator="\n")


def start_levels() -> None:
    """Measure both starters on the tasks on which S1's runs are measured at their end."""
    shop = load_shop()
    for starter in STARTERS:
        policy = load_policy(starter, shop, ["CART"])
        found = {block: played(policy, shop, 192, block, "d =") for block in (0, 1)}
        for name, of in (("levels", measured), ("steps", by_steps)):
            table = pd.concat(of(tasks).assign(block=block) for block, tasks in found.items())
            table.to_csv(HERE / f"results/start-{name}-{starter}.csv", index=False, lineterminator="\n")


def start_planted() -> None:
    """Plant mistakes in the starters' own correct beginnings, on the tasks of S4."""
    shop = load_shop()
    for starter in STARTERS:
        pairs = planted(load_policy(starter, shop, ["CART"]), shop, 192)
        pairs[pairs.why == ""].drop(columns=["env", "why"]).to_csv(
            HERE / f"results/start-planted-{starter}.csv", index=False, lineterminator="\n"
        )


def table(runs: Iterable[Run]) -> pd.DataFrame:
    """Tabulate the gains of the runs that are done: a row for each, decoding and range of levels."""
    rows = []
    for run in runs:
        file = HERE / "results" / run.name / "end.csv"
        if not file.exists():
            continue
        after, before = pd.read_csv(file).set_index("cell"), start(run.starter, run.blocks[0])
        for decoding, (name, levels) in product(("sampled", "greedy"), LEVELS.items()):
            cells = [f"d = {d}" for d in levels]
            two = [side.loc[cells, decoding].to_numpy() for side in (before, after)]
            gain = float((two[1] - two[0]).mean())
            error = float(np.sqrt(sum((p * (1 - p)).sum() for p in two) / run.tasks) / len(cells))
            rows.append(
                {"name": run.name, "decoding": decoding, "levels": name, "before": two[0].mean(),
                 "after": two[1].mean(), "gain": gain, "low": gain - 1.96 * error, "high": gain + 1.96 * error}
            )  # fmt: skip
    return pd.DataFrame(rows).round(4)


def both(gains: pd.DataFrame) -> pd.DataFrame:
    """Put the seeds of each second gate together."""
    second = gains[gains.name.str.startswith("gate-2/")].copy()
    second["name"] = second.name.str.rsplit("-", n=1).str[0]
    means = second.groupby(["name", "decoding", "levels"], as_index=False).mean(numeric_only=True)
    means["passed"] = means.low > PASSED
    return means.round(4)


def skills(runs: Iterable[Run]) -> pd.DataFrame:
    """Tabulate what the runs that are done gained, sampled, in each cell: levels, steps alone, pairs of steps."""
    rows = []
    for run in runs:
        file = HERE / "results" / run.name / "end.csv"
        if file.exists():
            gain = pd.read_csv(file).set_index("cell").sampled - start(run.starter, run.blocks[0]).sampled
            rows.append(gain.round(4).rename(run.name))
    return pd.DataFrame(rows).rename_axis("name").reset_index()


STARTS = {"environments": start_environments, "planted": start_planted, "levels": start_levels}
STAGES = {"first": first, "second": second, "long": long}


if __name__ == "__main__":
    stage = sys.argv.pop(1) if len(sys.argv) > 1 else "table"
    if stage in STAGES:
        main(STAGES[stage](), __doc__ or "")
    elif stage in STARTS:
        STARTS[stage]()
    else:
        everything = [run for make in STAGES.values() for run in make()]
        gains = table(everything)
        gains = pd.concat([gains, both(gains)])
        for name, found in (("gates.csv", gains), ("gates_skills.csv", skills(everything))):
            found.to_csv(HERE / name, index=False, lineterminator="\n")
        print(gains.pivot(index="name", columns=["decoding", "levels"], values="gain").round(3).to_string())
        print(gains.dropna(subset="passed")[["name", "decoding", "levels", "low", "passed"]].to_string())
