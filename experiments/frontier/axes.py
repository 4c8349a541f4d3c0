"""Every axis and every step of thought of a cart alone: what moving one does to a player's success, the rest held.

    python experiments/frontier/axes.py PLAYER [--tasks 384] [--level 2]      # writes axes_PLAYER.csv beside this file

PLAYER is a starter, a folder with a policy, or one of the players made of rules: `reference`, `shortcut`, and `without
KIND`, which lacks one kind of step of thought; these are asked about steps alone, as no axis moves them. An axis goes
to its value at d = 0 and at d = 8; a step of thought is drawn once in every task, or as often as at d = 12, into carts
of d = 0 with the room that a step needs. Tasks have the same seeds in all cells, so that differences are paired
(`compare.paired_interval`, 95%).
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ecomlab.catalog import Shop, load_shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.env import STEPS
from ecomlab.envs.registry import ENVIRONMENTS, moved_by
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import finish
from ecomlab.evaluation.compare import paired_interval
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import play_held_out
from ecomlab.models.load import load_policy
from ecomlab.steps import only

HERE = Path(__file__).resolve().parent
ENV = "CART"
ENDS = (0, 8)
"""Levels whose values an axis takes alone."""
DEEP = Difficulty.at(12)
Axes = Mapping[str, float]
SCRIPTED = {"reference": (), "shortcut": STEPS, **{f"without {kind}": (kind,) for kind in STEPS}}
"""Players made of rules, by the kinds of steps that they lack."""


ROOM = {"cart.items": 2.0, "constraints": Difficulty.at(4).constraints}
"""Steps are about things and demands: fewer hold none of most kinds, and more are too many for every starter."""


def cells(level: int) -> Iterator[tuple[str, str, int, Axes]]:
    """Yield names, level and axes: the level without steps of thought, each axis alone, each kind of step alone."""
    plain = {"steps.mean": 0.0}
    here = Difficulty.at(level)
    yield "none", "as it is", level, plain
    for axis in moved_by(ENV) or ():
        for end in ENDS:
            value = Difficulty.at(end).value(axis)
            if not axis.startswith("steps.") and value != here.value(axis):
                yield axis, f"d = {end}", level, {**plain, axis: value}
    yield "room", "no step", 0, {**ROOM, **plain}
    for kind in STEPS:
        size = {f"{kind}_size": DEEP.value(f"steps.{kind}_size")}
        yield f"steps.{kind}", "one", 0, {**ROOM, **only(kind, mean=1)}
        yield f"steps.{kind}", "as at d = 12", 0, {**ROOM, **only(kind, mean=DEEP.steps.mean, **size)}


def player_of(name: str, shop: Shop) -> Callable[[Cells], list[bool]]:
    """Make the function that plays cells: for each task, in order, whether it was solved."""
    if name in SCRIPTED:
        make = partial(ENVIRONMENTS[ENV].reference_player, shop, lacks=SCRIPTED[name])

        def solved(cells: Cells) -> list[bool]:
            tasks = [make_task(ENV, job.d, job.seed, shop, job.axes) for job in cells.jobs()]
            return [finish(make(), Episode(task, shop)).score.correct for task in tasks]

        return solved
    policy = load_policy(name, shop, [ENV])

    def sampled(cells: Cells) -> list[bool]:
        rows = sorted(play_held_out(policy, cells.jobs(), shop), key=lambda row: row["task_seed"])
        return [bool(row["correct"]) for row in rows]

    return sampled


def compared(found: Mapping[tuple[str, str], np.ndarray]) -> Iterator[dict[str, object]]:
    """Yield success by cell, and its paired difference to the cell that it changes."""
    for (axis, value), solved in found.items():
        base = ("room", "no step") if axis.startswith("steps.") else ("none", "as it is")
        difference, low, high, _ = paired_interval(solved - found[base])
        yield {
            "axis": axis, "value": value, "tasks": len(solved), "success": round(solved.mean(), 4),
            "difference": round(difference, 4), "low": round(low, 4), "high": round(high, 4),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player")
    parser.add_argument("--tasks", type=int, default=384)
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    shop = load_shop()
    play = player_of(given.player, shop)
    found = {}
    scripted = given.player in SCRIPTED
    for axis, value, level, axes in cells(given.level):
        if scripted and not axis.startswith(("none", "room", "steps")):
            continue
        found[axis, value] = np.array(play(Cells((ENV,), (level,), given.tasks, axes=axes)), float)
        print(f"{axis:22} {value:14} {found[axis, value].mean():.3f}", flush=True)
    out = given.out or HERE / f"axes_{Path(given.player).name.replace(' ', '_')}.csv"
    pd.DataFrame(compared(found)).to_csv(out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
