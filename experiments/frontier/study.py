"""The study that REGISTERED.md describes: its runs in their order.

make study                      # all that is not done, from a worktree at the registered commit, one niced process
make study ARGS=--dry-run       # runs and hours by arm
make study ARGS="--only S1/"    # one part
python study.py pilot           # before: one run of each kind with a seed of no other, for its seconds
python study.py fresh           # registered later: three arms with seeds that no gate had (REGISTERED.md, Corrections)
python study.py recovery        # registered later: given turns that end in a mistake, and the control
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from composition import ALONE
from trials import NATURAL, OWN, Run, main

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.seeding import rng

Settings = Mapping[str, Any]
STEPS, STARTERS = 256, ("singles", "novice")
CHOSEN: Settings = {"prompts_per_step": 8, "lr": 3e-4, "steps": STEPS}
"""What passed the gates (gates.csv), for both starters: 64 rollouts a step."""
S1_ARMS: Mapping[str, Settings] = {
    "adaptive": {"schedule": "adaptive"},
    "static-0-6": {"schedule": "static-0-6"},
    "singles": {"schedule": OWN + "singles"},
    "static-4-6": {"schedule": "static-4-6"},
    "adaptive-narrow": {"schedule": "adaptive", "tau_acc": 0.7, "d_delta": 2},
    "prefix": {"schedule": OWN + "prefix"},
    "target": {"schedule": OWN + "target"},
    "skill-wise": {"schedule": OWN + "skill_wise"},
    "skill-wise-shuffled": {"schedule": OWN + "skill_wise_shuffled"},
}
IMITATION: Mapping[str, Settings] = {
    "imitate-singles": {
        "imitate": tuple(axes for name, axes in ALONE.items() if name in ("option", "quantity", "2 items"))
    },
    "imitate-compositions": {"imitate": ({},), "levels": range(7)},
}
OWN_TOKENS = 650_000
"""Tokens of the demonstrator that imitation gets: about as many as *novice* samples under `adaptive`."""
PRIMARY = ("adaptive", "prefix")
CONTRASTS = (
    ("adaptive", "singles"),  # does the low one saturate
    ("adaptive", "static-4-6"),  # does the high one starve
    ("adaptive", "static-0-6"),  # is the window worth more than its range
    ("prefix", "adaptive"),  # does a reference that begins do better
)
"""Primary contrasts: success over levels 0 to 6, sampled."""
SEEDS, MORE = 5, 8
ORDERS, COUNTS = 10, (1, 2, 4, 7)


def composition() -> Iterator[Run]:
    """S1: one seed of all arms and both starters after the other; the primary arms get three seeds more."""
    for seed, starter, (arm, settings) in product(range(MORE), STARTERS, S1_ARMS.items()):
        if seed < SEEDS or arm in PRIMARY:
            yield Run("S1", arm, starter, seed, {**CHOSEN, **settings, "eval_every": 32}, planted=192)
    for seed, starter, (arm, demonstrations) in product(range(SEEDS), STARTERS, IMITATION.items()):
        yield Run("S1", arm, starter, seed, planted=192, own_tokens=OWN_TOKENS, **demonstrations)


def environments() -> Iterator[Run]:
    """S2: the first 1, 2, 4 or 7 environments of ten random orders; the last is never trained."""
    for number, count in product(range(ORDERS), COUNTS):
        order = rng("order of environments", number).permutation(sorted(ENVIRONMENTS)).tolist()
        settings = {
            **CHOSEN, "collection": ",".join(order[:count]), "eval_collection": ",".join(order), "schedule": "adaptive",
            "axes": dict(NATURAL), "eval_axes": dict(NATURAL), "eval_difficulties": (0,), "eval_episodes": 32,
        }  # fmt: skip
        yield Run("S2", f"{count}-environments", "novice", number, settings, held_out=order[-1])


RUNS = [*composition(), *environments()]
PILOTS = [
    replace(run, part=f"pilot-{run.part}", seed=900)
    for run in RUNS
    if run.seed == 0
    and run.starter == "novice"
    and run.arm in ("adaptive", "imitate-compositions", "7-environments")
]

FRESH_SEEDS = range(3, MORE)
"""Seeds that no gate had."""
FRESH = [
    Run("fresh", arm, starter, seed, {**CHOSEN, **S1_ARMS[arm], "eval_every": 32})
    for seed, starter, arm in product(range(SEEDS, MORE), STARTERS, S1_ARMS)
    if arm in ("static-0-6", "static-4-6", "singles")
]
"""The other arms of the primary contrasts with the seeds that adaptive and prefix have more."""

RECOVERY_ARMS: Mapping[str, Settings] = {
    "recovery": {"schedule": OWN + "recovery"},
    "recovery-control": {"schedule": OWN + "recovery_control"},
}
RECOVERY = [
    Run("recovery", arm, starter, seed, {**CHOSEN, **settings, "eval_every": 32}, planted=192)
    for starter, seed, (arm, settings) in product(reversed(STARTERS), range(SEEDS), RECOVERY_ARMS.items())
]
"""Does a beginning that ends in a mistake teach to mend it? Exploratory."""

if __name__ == "__main__":
    others = {"pilot": PILOTS, "fresh": FRESH, "recovery": RECOVERY}
    chosen = others.get(sys.argv[1]) if sys.argv[1:] else None
    del sys.argv[1 : 1 + (chosen is not None)]
    main(RUNS if chosen is None else chosen, __doc__ or "")
