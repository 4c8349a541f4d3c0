"""Adaptive training on carts from a policy made by base.py: the window's upper edge over the steps.

    python experiments/gpu/base.py --size 30M --tokens 60 --episodes 32 --out $OUT              # three to four minutes
    python experiments/gpu/frontier.py $OUT/base-30M --out $OUT --steps 120                     # five minutes
    python experiments/gpu/frontier.py novice --out /tmp/f --steps 1 --prompts 8                # anywhere: a check

The graph sampler and the pool of processes play; axes are those of experiments/frontier, so that a level says how many
steps a cart composes. Leaves train.csv, eval.csv and window.csv.
"""

import argparse
import os
from pathlib import Path

import pandas as pd

from ecomlab.difficulty import COMPOSED
from ecomlab.training.config import TrainConfig
from ecomlab.training.run import train


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-4)
    given = parser.parse_args()
    out = given.out.resolve() / "frontier"
    config = TrainConfig(
        out=str(out), starter=given.policy, schedule="adaptive", axes=COMPOSED, eval_axes=COMPOSED, steps=given.steps,
        prompts_per_step=given.prompts, rounds=1, lr=given.lr, adam_beta2=0.98, eval_every=0, eval_episodes=32,
        eval_difficulties=(0, 2, 4, 6, 8), eval_decodings=("sampled",), transcripts_every=0, checkpoint_every=1000,
        environment_workers=max(1, (os.cpu_count() or 1) - 3),
    )  # fmt: skip
    train(config)
    steps = pd.read_csv(out / "train.csv")
    window = steps.groupby("step").agg(
        d_low=("d_low", "min"), d_high=("d_high", "max"), seconds=("seconds", "first")
    )
    window.to_csv(given.out / "window.csv", lineterminator="\n")
    print(window.iloc[:: max(1, len(window) // 20)].to_string())


if __name__ == "__main__":
    main()
