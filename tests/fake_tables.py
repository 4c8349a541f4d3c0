"""Tables as a sweep writes them, and a certificate, with figures that a reader can follow by hand."""

import json

import pandas as pd

from ecomlab.analysis import tables
from ecomlab.laws.certificate import Row

SCHEDULES = ("static-low", "static-high", "adaptive")


def train_rows(seeds=(0, 1), steps=4):
    """Every run does the same, half at each edge of its window; only the window differs between schedules."""
    window = {"static-low": (0, 1), "static-high": (6, 12), "adaptive": (0, 2)}
    return pd.DataFrame(
        {
            **dict(zip(tables.RUN, (schedule, "C1", seed), strict=True)),
            "step": step,
            "env": "CART",
            "d": d,
            "d_low": window[schedule][0],
            "d_high": window[schedule][1],
            "success": 0.5,
            "reward": 0.1,
            "effective_reward": 0.75,
            "effective_correct": 0.5,
            "groups": 5,
            "discarded": 1,
            "rollouts": 40,
            "unscored": 0,
            "truncated": 5,
            "invalid": 2,
            "failed": 20,
            "tokens_generated": 2000,
            "tokens_used": 1500,
            "seconds": 3.0,
        }
        for schedule in SCHEDULES
        for seed in seeds
        for step in range(1, steps + 1)
        for d in window[schedule]
    )


def eval_rows(seeds=(0, 1), steps=(0, 2, 4)):
    """Success grows by .1 an evaluation, falls by .05 a level, and seed 1 is .02 better."""
    return pd.DataFrame(
        {
            **dict(zip(tables.RUN, (schedule, "C1", seed), strict=True)),
            "step": step,
            "env": "CART",
            "d": d,
            "episodes": 10,
            "reward": 0.0,
            "unscored": 0,
            "decoding": decoding,
            "success": round(0.3 + 0.05 * step - 0.05 * d + 0.02 * seed, 4),
        }
        for schedule in SCHEDULES
        for seed in seeds
        for step in steps
        for d in range(3)
        for decoding in ("sampled", "greedy")
    )


def collection_rows(seeds=(0, 1, 2)):
    """C1 plays CART alone; C2 as much again of SUB, and is .1 better in CART; SUB succeeds half as often."""
    train, evaluation = (
        table(seeds=seeds)[lambda rows: rows.schedule == "adaptive"] for table in (train_rows, eval_rows)
    )
    both = []
    for table, changes in ((train, {}), (evaluation, {"success": evaluation.success + 0.1})):
        cart = table.assign(collection="C2", **changes)
        sub = cart.assign(env="SUB", success=cart.success / 2)
        both.append(pd.concat([table, cart, sub], ignore_index=True))
    return both


def write_certificate(path, envs=("CART", "BUNDLE"), levels=range(13)):
    """The noisy player falls by .05 a level from .8; BUNDLE has no positional players."""
    rows = [
        Row(
            env=env,
            d=d,
            seeds=200,
            others=100,
            solver=1.0,
            fair=1.0,
            noisy=0.8 - 0.05 * d,
            naive=0.0,
            blind={"refuse": 0.0, "the most common answer": 0.02},
            positional={"first": 0.1, "last": 0.2} if env == "CART" else {},
            chance=0.15,
            turns=4.0,
            reward=0.9,
        )
        for env in envs
        for d in reversed(levels)
    ]
    known = {"broken": [], "environments": dict.fromkeys(envs, 1), "fingerprint": "f00", "slip_rate": 0.2}
    path.write_text(json.dumps({"rows": [row.to_json() for row in rows], **known}))
    return path
