"""What schedules do to a learner of skills, in simulation: a task is a bag of uses of skills, each right with its own
probability.

    python experiments/frontier/simulate.py START.csv OUT.csv [--steps 256] [--seeds 3] [--rate 0.1 | --gain 0.2]

A cart uses: the first item, each further item, each option, each quantity, and "pair" for every two of its composed
steps, which must not disturb each other; it is right if all uses are. A skill is one logit. Groups of eight with mixed
outcomes give REINFORCE's gradient, and a step has a fixed length, as Adam's nearly has. START.csv is a starter's table
by `composition.py`, to which the logits are fitted. The schedules are the objects that train. With --gain, a step is as
long as it takes for levels 0 to 6, drawn evenly, to gain so much, as a run of the gates did.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq, least_squares

from ecomlab.difficulty import Difficulty
from ecomlab.seeding import rng, whole_near
from ecomlab.training.schedule import Draw, end_step, make_schedule, report

HERE = Path(__file__).resolve().parent
SKILLS = (
    "first item",
    "second item",
    "third item",
    "fourth item",
    "fifth item",
    "option",
    "quantity",
    "pair",
)
LEVELS = tuple(range(9))
PROMPTS, GROUP = 8, 8
A_CART, A_USE = 13, 17
"""Sampled tokens of an episode of *novice*: of any cart, and for each use of a skill."""
ARMS: dict[str, dict[str, Any]] = {
    "static-0-1": {}, "static-4-6": {}, "static-0-6": {},
    "adaptive": {}, "adaptive narrow": {"tau_acc": 0.7, "d_delta": 2},
    "singles": {}, "target": {}, "learnability": {}, "skill_wise": {}, "skill_wise_shuffled": {},
}  # fmt: skip
BUILT_IN = ("static", "adaptive")


def uses(draw: Draw, random: np.random.Generator) -> np.ndarray:
    """Draw how often a cart uses each skill, by the formulas of its level and the draw's overrides."""
    cart = Difficulty.at(draw.level, **draw.overrides).cart
    items = whole_near(random, cart.items)
    found = np.zeros(len(SKILLS))
    found[: min(items, 5)] = 1
    found[5], found[6] = random.binomial(items, cart.p_option), random.binomial(items, cart.p_quantity)
    steps = found[1:7].sum()
    found[7] = steps * (steps - 1) / 2
    return found


def right(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


def success(logits: np.ndarray, draw: Draw, carts: int = 400) -> float:
    """Compute the mean success of a level's carts."""
    random = rng("carts of a level", draw.level, sorted(draw.overrides.items()))
    each = np.array([uses(draw, random) for _ in range(carts)])
    return float(np.exp(each @ np.log(right(logits))).mean())


def fitted(measured: pd.DataFrame) -> np.ndarray:
    """Fit the logits to a starter's success, in a table of `composition.py`."""
    draws = [Draw("CART", row.level, json.loads(row.overrides)) for row in measured.itertuples()]
    found = least_squares(
        lambda logits: [success(logits, d) - y for d, y in zip(draws, measured.sampled, strict=True)],
        np.ones(len(SKILLS)),
        bounds=(-4, 6),
        diff_step=0.05,
    )
    return np.asarray(found.x)


def trained(
    logits: np.ndarray, arm: str, seed: int, steps: int, rate: float
) -> tuple[np.ndarray, dict[str, float]]:
    """Train for so many steps; return the logits, and tokens, share of mixed groups and the window's upper edge."""
    name = arm.split()[0]
    which = name if name.startswith(BUILT_IN) else f"{HERE / 'schedules.py'}:{name}"
    schedule, random = make_schedule(which, ["CART"], **ARMS[arm]), rng("simulated", arm, seed)
    spent = mixed = 0
    for _ in range(steps):
        gradient = np.zeros(len(SKILLS))
        for _ in range(PROMPTS):
            draw = schedule.draw(random)
            n, p = uses(draw, random), right(logits)
            hits = random.binomial(n.astype(int), p, size=(GROUP, len(SKILLS)))
            correct = (hits == n).all(axis=1)
            schedule = report(schedule, draw, list(correct))
            spent += GROUP * (A_CART + A_USE * n[:7].sum())
            if 0 < correct.sum() < GROUP:
                mixed += 1
                advantage = (correct - correct.mean()) / correct.std()
                gradient += advantage @ (hits - n * p)
        schedule = end_step(schedule)
        if gradient.any():
            logits = np.clip(logits + rate * gradient / np.linalg.norm(gradient), -6, 8)
    window = getattr(schedule, "window", None)
    top = window("CART")[1] if window else np.nan
    return logits, {"tokens": round(spent), "mixed": mixed / (steps * PROMPTS), "top": top}


def rate_of(start: np.ndarray, gain: float, steps: int) -> float:
    """Find the length of a step with which `static-0-6` gains so much over levels 0 to 6."""
    before = np.mean([success(start, Draw("CART", d)) for d in range(7)])

    def missing(rate: float) -> float:
        after, _ = trained(start, "static-0-6", 0, steps, rate)
        return float(np.mean([success(after, Draw("CART", d)) for d in range(7)]) - before - gain)

    return float(brentq(missing, 1e-4, 1.0, xtol=1e-4))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("start", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.1, help="length of a step, in logits")
    parser.add_argument(
        "--gain", type=float, help="of static-0-6 over levels 0 to 6; fits the length of a step"
    )
    given = parser.parse_args()
    start = fitted(pd.read_csv(given.start))
    print({name: round(float(p), 3) for name, p in zip(SKILLS, right(start), strict=True)})
    rate = given.rate if given.gain is None else rate_of(start, given.gain, given.steps)
    print(f"length of a step: {rate:.4f}")
    rows = []
    for arm in ARMS:
        for seed in range(given.seeds):
            logits, told = trained(start, arm, seed, given.steps, rate)
            levels = {f"d{d}": round(success(logits, Draw("CART", d)), 3) for d in LEVELS}
            rows.append({"arm": arm, "seed": seed, **told, **levels})
    table = pd.DataFrame(rows)
    table.to_csv(given.out, index=False, lineterminator="\n")
    print(table.groupby("arm", sort=False).mean(numeric_only=True).round(3).to_string())


if __name__ == "__main__":
    main()
