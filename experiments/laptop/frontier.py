"""The adaptive runs' frontier: the highest difficulty with held-out success of one half, beside the schedule's window.

    python experiments/laptop/frontier.py

Evaluates the last checkpoint of each adaptive run of experiments/laptop/sweep.toml on 200 held-out episodes at each of
d = 0..8, sampled and greedy, and writes frontier.csv.
"""

from pathlib import Path

import pandas as pd
import torch

from ecomlab import load_shop
from ecomlab.evaluate.heldout import evaluate
from ecomlab.lab import sweep
from ecomlab.models.load import load_policy
from ecomlab.train import checkpoints
from ecomlab.train.schedule import from_json

HERE = Path(__file__).resolve().parent
LEVELS, EPISODES = range(9), 200


def main() -> None:
    torch.set_num_threads(1)
    shop, rows = load_shop(), []
    for run in sweep.load(HERE / "sweep.toml").runs():
        last = checkpoints.newest(run.folder / "checkpoints") if run.given["schedule"] == "adaptive" else None
        if last is None:
            continue
        policy = load_policy(last.folder, shop, ["CART"])
        low, high = from_json(last.extra["schedule"]).window("CART")
        for decoding in ("sampled", "greedy"):
            found = evaluate(policy, shop, "CART", list(LEVELS), EPISODES, decoding)
            solved = [row["d"] for row in found if row["success"] >= 0.5]
            cells = {f"d{row['d']}": row["success"] for row in found}
            head = {
                "seed": run.given["seed"],
                "step": last.step,
                "decoding": decoding,
                "window_low": low,
                "window_high": high,
            }
            rows.append({**head, "highest_half_solved": max(solved, default=-1), **cells})
            print(rows[-1], flush=True)
    if not rows:
        raise SystemExit(
            "no adaptive run has a checkpoint; first: ecomlab sweep --figures experiments/laptop/sweep.toml"
        )
    pd.DataFrame(rows).to_csv(HERE / "frontier.csv", index=False)


if __name__ == "__main__":
    main()
