"""Seconds of a training step of the laptop policy with each switch for throughput, against its being off, in one run.

    python experiments/bench/switches.py OUT.csv                   # on a CPU, some minutes
    python experiments/bench/switches.py OUT.csv --repeats 1 --steps 2 --arms off ahead       # less

Trains *novice* on cart building at d = 0 to 4 for some steps, arm after arm, again and again, so that whatever else the
machine does meets all arms alike. Steps differ in how much they sample, with `ahead` between arms too: seconds are per
thousand sampled tokens, without the first step, which warms up. A row per arm and kind of seconds, wall and processor:
the ratio to the arm that it is compared with, the median over repeats with the lowest and the highest. `ahead` needs a
second idle core, or a GPU, to save any: it spends no less processor time. On a GPU the same command measures that; the
table names the device.
"""

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ARMS: dict[str, tuple[dict[str, Any], str]] = {
    "off": ({}, ""),
    "micro_batch = 8": ({"micro_batch": 8}, "off"),
    "micro_tokens = 4000": ({"micro_tokens": 4_000}, "micro_batch = 8"),
    "early_refill": ({"early_refill": True}, "off"),
    "ahead": ({"ahead": True}, "off"),
    "all three": ({"micro_tokens": 4_000, "early_refill": True, "ahead": True}, "off"),
}
"""Settings by name, and the arm that each is compared with."""
COMMON = {
    "starter": "novice", "schedule": "static-0-4", "eval_every": 0, "eval_episodes": 1, "eval_difficulties": (0,),
    "eval_decodings": ("greedy",),
}  # fmt: skip
RUN = """
import json, sys, time
from pathlib import Path
from ecomlab.training.loop import TrainConfig, train
settings, told = json.loads(sys.argv[1]), []
config = TrainConfig(**settings)
train(config, lambda event: event["kind"] == "step" and told.append((time.perf_counter(), time.process_time())))
Path(config.out, "clock.json").write_text(json.dumps(told))
"""
"""One run, which notes both clocks after each of its steps."""


def main() -> None:

    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="of a run, the first of which is not counted")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    chosen = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {arm: [] for arm in chosen.arms}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(chosen.repeats):
            for number, arm in enumerate(chosen.arms):
                out = Path(folder) / f"{repeat}-{number}"
                settings = {**COMMON, **ARMS[arm][0], "steps": chosen.steps, "out": str(out), "seed": repeat}
                subprocess.run([sys.executable, "-c", RUN, json.dumps(settings)], check=True)
                found[arm].append(seconds(out))
                print(repeat, arm, *(f"{each:.3f}" for each in found[arm][-1]), flush=True)
    cuda = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if cuda else f"{platform.machine()} CPU, {os.cpu_count()} cores"
    with chosen.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "arm",
                "against",
                "seconds",
                "ratio",
                "lowest",
                "highest",
                "repeats",
                "steps",
                "threads",
                "device",
            ]
        )
        for arm in chosen.arms:
            against = ARMS[arm][1]
            if against not in found:
                continue
            for column, what in enumerate(("wall", "processor")):
                pairs = zip(found[arm], found[against], strict=True)
                ratios = [mine[column] / theirs[column] for mine, theirs in pairs]
                shown = (f"{each:.3f}" for each in (statistics.median(ratios), min(ratios), max(ratios)))
                writer.writerow(
                    [
                        arm,
                        against,
                        what,
                        *shown,
                        len(ratios),
                        chosen.steps - 1,
                        torch.get_num_threads(),
                        device,
                    ]
                )
    print(chosen.out.read_text())


def seconds(run: Path) -> tuple[float, float]:
    """Wall and processor seconds per thousand sampled tokens, of the steps after the first."""
    with (run / "train.csv").open(newline="") as file:
        tokens = sum(int(row["tokens_generated"]) for row in csv.DictReader(file) if int(row["step"]) > 1)
    first, *_, last = json.loads((run / "clock.json").read_text())
    wall, processor = (1e3 * (after - before) / tokens for before, after in zip(first, last, strict=True))
    return wall, processor


if __name__ == "__main__":
    main()
