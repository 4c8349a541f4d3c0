"""Seconds of the laptop policy's training step, by phase, on a GPU and on one thread of the same machine's CPU.

    python experiments/gpu/laptop_step.py --out $OUT              # twelve steps on each: novice, adaptive
    python experiments/gpu/laptop_step.py --steps 2 --out /tmp/x  # anywhere: a check that it runs

Writes laptop_step.csv: a row per device, mean seconds per step without the first two. Finished runs are not repeated.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pandas as pd

from ecomlab.training import metrics

CONFIG = Path(__file__).resolve().parents[1] / "quick" / "train.toml"


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    devices = {"cpu": platform.processor() or platform.machine()}
    if torch.cuda.is_available():
        devices = {"cuda": torch.cuda.get_device_name()} | devices
    rows = []
    for device, name in devices.items():
        folder = arguments.out.resolve() / f"run-{device}-{arguments.steps}"
        changed = {"out": str(folder), "steps": arguments.steps, "eval_every": 0, "eval_episodes": 1}
        command = [sys.executable, "-m", "ecomlab", "train", "--config", str(CONFIG)]
        for setting, value in changed.items():
            command += ["--set", f"{setting}={json.dumps(value)}"]  # which is TOML too
        hidden = {} if device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        subprocess.run(command, check=True, env={**os.environ, **hidden})
        steps = metrics.read(folder / "train.csv")[min(2, arguments.steps - 1) :]
        phases = (f"seconds_{phase}" for phase in metrics.PHASES)
        columns = ["seconds", *phases, "rollouts", "tokens_generated"]
        means = {column: f"{sum(float(row[column]) for row in steps) / len(steps):.4g}" for column in columns}
        rows.append({"device": device, "name": name, "steps": len(steps), **means})
        print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(arguments.out / "laptop_step.csv", index=False)


if __name__ == "__main__":
    main()
