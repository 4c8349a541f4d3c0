"""The axes of the study, in which a level says how many steps a cart composes, and a policy's success by step.

    python experiments/frontier/composition.py POLICY OUT.csv [--tasks 192] [--block 0]

`ecomlab.difficulty.COMPOSED` holds everything at its easiest but what a cart is made of: items, options, quantities.
`composed` counts them in a task. The table has success at levels 0 to 8, at each step alone and at pairs of them, by
both decodings, with the mean number of composed steps and p^n: what independent steps would make, each as likely to be
right as it is alone.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ecomlab.catalog import load_shop
from ecomlab.difficulty import COMPOSED
from ecomlab.episode.episode import make_task
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out
from ecomlab.evaluation.local import DECODINGS
from ecomlab.models.load import load_policy
from ecomlab.task import Task

KINDS = ("item", "option", "quantity")
SEEN, HELD_OUT = tuple(range(7)), (7, 8)
"""Levels that arms may draw, and levels that none sees."""
ALONE: Mapping[str, Mapping[str, float]] = {
    "plain": {},
    "option": {"cart.p_option": 1.0},
    "quantity": {"cart.p_quantity": 1.0},
    **{f"{n} items": {"cart.items": float(n)} for n in (2, 3, 4, 5)},
}
"""Steps alone, each by the axes that make it, at level 0."""
PAIRS: Mapping[str, Mapping[str, float]] = {
    "option and quantity": {"cart.p_option": 1.0, "cart.p_quantity": 1.0},
    "2 items, options": {"cart.items": 2.0, "cart.p_option": 1.0},
    "2 items, quantities": {"cart.items": 2.0, "cart.p_quantity": 1.0},
    "2 items, both": {"cart.items": 2.0, "cart.p_option": 1.0, "cart.p_quantity": 1.0},
    "3 items, both": {"cart.items": 3.0, "cart.p_option": 1.0, "cart.p_quantity": 1.0},
}


def composed(task: Task) -> Counter[str]:
    """Count the steps of a cart: items beyond the first, options, quantities above one."""
    slots = task.goal.slots
    found = Counter({"item": len(task.goal.items) - 1})
    found["option"] = sum(name == "option" for _, name in slots)
    found["quantity"] = sum(name == "quantity" and value != 1 for (_, name), value in slots.items())
    return found


def cells() -> Iterator[tuple[str, int, Mapping[str, float]]]:
    """Yield names, levels and axes beyond `COMPOSED`."""
    yield from ((f"d = {d}", d, {}) for d in (*SEEN, *HELD_OUT))
    yield from ((name, 0, axes) for name, axes in {**ALONE, **PAIRS}.items())


def played(policy: Any, shop: Any, tasks: int, block: int, only: str = "") -> pd.DataFrame:
    """Play the cells whose names begin with `only`: a row a task, with its steps by kind and success by decoding."""
    frames = []
    for name, level, more in cells():
        if not name.startswith(only):
            continue
        axes = {**COMPOSED, **more}
        jobs = Cells(("CART",), (level,), tasks, block, axes=axes).jobs()
        steps = [composed(make_task("CART", level, job.seed, shop, axes)) for job in jobs]
        rows = pd.DataFrame(
            {"cell": name, "level": level, "overrides": json.dumps(dict(more)), "seed": job.seed,
             **{kind: counts[kind] for kind in KINDS}}
            for job, counts in zip(jobs, steps, strict=True)
        )  # fmt: skip
        solved = pd.DataFrame(play_held_out(policy, jobs, shop, decodings=DECODINGS))
        for decoding in DECODINGS:
            right = solved[solved.decoding == decoding].set_index("task_seed").correct
            rows[decoding] = rows.seed.map(right).astype(float)
        frames.append(rows)
    return pd.concat(frames, ignore_index=True)


def by_steps(tasks: pd.DataFrame) -> pd.DataFrame:
    """Count levels' tasks of `played`, and those solved, by the exact number of composed steps."""
    levels = tasks[tasks.cell.str.startswith("d =")]
    groups = levels.assign(steps=levels[list(KINDS)].sum(axis=1), tasks=1).groupby(["level", "steps"])
    return groups[["tasks", *DECODINGS]].sum().astype(int).reset_index()


def measured(tasks: pd.DataFrame) -> pd.DataFrame:
    """Tabulate what `played` returned: a row a cell, with success by decoding, the mean number of steps of each kind,
    and where every cell was played, p^n."""
    names = ["cell", "level", "overrides"]
    groups = tasks.groupby(names, sort=False)
    table = groups.size().rename("tasks").reset_index()
    means = groups[[*KINDS, *DECODINGS]].mean().reset_index(drop=True)
    table = pd.concat([table, means[list(KINDS)].round(3), means[list(DECODINGS)].round(4)], axis=1)
    for decoding in DECODINGS if "plain" in set(table.cell) else ():
        alone = table.set_index("cell")[decoding].clip(lower=1e-3)
        plain = alone["plain"]
        by_items = np.interp(table["item"], range(5), [plain, *(alone[f"{n} items"] for n in (2, 3, 4, 5))])
        chance = (
            by_items
            * (alone["option"] / plain) ** table["option"]
            * (alone["quantity"] / plain) ** table["quantity"]
        )
        table[f"{decoding}_independent"] = np.minimum(chance, 1).round(4)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy")
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=192)
    parser.add_argument("--block", type=int, default=0)
    parser.add_argument("--only", default="", help="cells whose names begin like this, such as 'd ='")
    given = parser.parse_args()
    shop = load_shop()
    policy = load_policy(given.policy, shop, ["CART"])
    table = measured(played(policy, shop, given.tasks, given.block, given.only))
    table.to_csv(given.out, index=False, lineterminator="\n")
    print(table.drop(columns="overrides").to_string(index=False))


if __name__ == "__main__":
    main()
