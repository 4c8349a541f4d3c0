"""One arm of the quick ablation by the torch sampler, against the committed table, and by the kernel beside it.

    python experiments/bench/quick_arm.py [--schedule adaptive] [--seed 0]    # prints quick_arm.txt

Rows of training and evaluation are compared in every column but seconds. Where the kernel's rows differ, a draw fell on
the other side of a border by rounding, and what follows is another run.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from ecomlab.lab.paths import kernel_environment
from ecomlab.lab.sweep import load
from ecomlab.models.samplers.tiny import CHOICE, TinySampler

QUICK = Path(__file__).resolve().parents[1] / "quick"
TRAIN = (
    "import json, sys; from ecomlab import train; from ecomlab.lab.sweep import training_config; "
    "train(training_config(json.loads(sys.argv[1])))"
)


def rows(file: Path, schedule: str, seed: int) -> list[dict[str, str]]:
    """Read the rows of an arm, without seconds."""
    found = list(csv.DictReader(file.open(newline="")))
    mine = [row for row in found if (row["schedule"], row["seed"]) == (schedule, str(seed))]
    return [{name: row[name] for name in row if not name.startswith("seconds")} for row in mine]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedule", default="adaptive")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    fixed = load(QUICK / "sweep.toml").fixed
    with tempfile.TemporaryDirectory() as folder:
        for sampler in ("torch", TinySampler.name):
            settings = {**fixed, "out": f"{folder}/{sampler}", "schedule": given.schedule, "seed": given.seed}
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            here = {**os.environ, **kernel_environment(), CHOICE: sampler}
            subprocess.run([sys.executable, "-c", TRAIN, json.dumps(settings)], check=True, env=here)
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            print(f"{sampler}: {seconds:.0f} s of the processor", flush=True)
            for name in ("train.csv", "eval.csv"):
                kept = rows(QUICK / name, given.schedule, given.seed)
                made = rows(Path(folder) / sampler / name, given.schedule, given.seed)
                shared = [{column: row[column] for column in kept[0]} for row in made]
                equal = sum(one == other for one, other in zip(kept, shared, strict=False))
                print(f"  {name}: {equal} of {len(kept)} rows equal the committed ones, {len(made)} made")
                if name == "eval.csv":
                    last = max(int(row["step"]) for row in kept)
                    for what, table in (("committed", kept), (sampler, made)):
                        ends = [row["success"] for row in table if int(row["step"]) == last]
                        print(f"  success after step {last}, by level, {what}: {', '.join(ends)}")


if __name__ == "__main__":
    main()
