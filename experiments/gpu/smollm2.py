"""A small real model before training, after supervised fine-tuning, and after DAPO on carts; on a GPU.

    python experiments/gpu/smollm2.py MODEL --work /tmp/smollm2 --out $OUT        # in calls of ten minutes
    python experiments/gpu/smollm2.py MODEL --work /tmp/x --out /tmp/x/out --check     # anywhere: that it runs

MODEL is the folder that `make smollm2-weights` makes. Its stages: held-out success by `ecomlab eval`; ten minutes of
experiments/smollm2/sft.py on natural demonstrations of all eight environments; `ecomlab eval`; ten minutes of DAPO on
CART by `ecomlab train`; `ecomlab eval`. Killed and started again, it goes on where it was; each stage that is whole is
left alone. It writes smollm2.csv (a row per stage, environment and level), loss.json, train.csv and machine.json.

A folder that is too large to travel in one call goes in parts, each carried and copied to --work's machine by a call of
its own while it is warm.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch

ROOT = Path(__file__).resolve().parents[2]
SFT = ROOT / "experiments" / "smollm2" / "sft.py"
LIMITS = {"turn_tokens": 256, "episode_tokens": 768, "context_tokens": 6144}
"""Of CART's courteous episodes up to d = 3 in this model's tokens."""
FEW = ("--env", "POLICY", "--steps", 1, "--batch", 1, "--accumulate", 1)
"""Of fine-tuning, for a check."""
STAGES = ("untrained", "fine-tuned", "trained on carts")


def main() -> None:
    """Run the stages that are not finished."""
    chosen = arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    tuned, run = chosen.work / "sft", chosen.work / "dapo"
    evaluate(chosen, chosen.model, STAGES[0])
    if not (tuned / "sft.json").exists():
        call(SFT, chosen.model, tuned, "--minutes", chosen.minutes, *(FEW if chosen.check else []))
    evaluate(chosen, tuned, STAGES[1])
    train(chosen, tuned, run)
    last = max(run.glob("checkpoints/step-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    evaluate(chosen, last, STAGES[2])
    pd.DataFrame(rows(chosen)).to_csv(chosen.out / "smollm2.csv", index=False)
    shutil.copy(tuned / "sft.json", chosen.out / "loss.json")
    shutil.copy(run / "train.csv", chosen.out)
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    machine = {"card": card, "cores": os.cpu_count(), "torch": torch.__version__, "minutes": chosen.minutes}
    (chosen.out / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")


def evaluate(chosen: argparse.Namespace, model: Path, stage: str) -> None:
    """Play held-out tasks, or go on with them: CART at four levels, the others at d = 0."""
    cells = [("CART", "0:3", chosen.episodes), ("C8", "0", chosen.episodes // 4)]
    for envs, levels, episodes in [("POLICY", "0", 1)] if chosen.check else cells:
        found = result(chosen, stage, envs)
        if not found.exists():
            limits = [part for name, value in LIMITS.items() for part in ("--set", f"{name}={value}")]
            more = ["--env", envs, "--difficulty", levels, "--episodes", episodes, "--json", found]
            call("-m", "ecomlab", "eval", model, *more, *limits, "--out", found.with_suffix(""))


def train(chosen: argparse.Namespace, tuned: Path, run: Path) -> None:
    """Train for the minutes that are given; a run that is cut off so ends at its last checkpoint."""
    ended = run / "ended"
    if ended.exists():
        return
    small = {
        "steps": 1,
        "prompts_per_step": 2,
        "group_size": 2,
        "minibatches": 1,
        "rounds": 1,
        "turn_tokens": 8,
        "dtype": "float32",  # bfloat16 takes minutes a step on a CPU
    }
    settings = {
        "out": str(run), "starter": str(tuned), "collection": "CART", "schedule": "adaptive", "lora_rank": 32,
        "lr": 1e-4, "dtype": "bfloat16", "steps": 10_000, "eval_every": 0, "eval_episodes": 1, "checkpoint_every": 5,
        "eval_difficulties": [0], "micro_batch": 1 if chosen.check else 8, **LIMITS, **(small if chosen.check else {}),
    }  # fmt: skip
    config = chosen.work / "dapo.toml"
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    try:
        call("-m", "ecomlab", "train", "--config", config, seconds=60 * chosen.minutes)
    except subprocess.TimeoutExpired:
        print(f"training was cut off after {chosen.minutes} minutes", flush=True)
    ended.touch()


def result(chosen: argparse.Namespace, stage: str, envs: str) -> Path:
    """Name the file of a stage's evaluation."""
    return Path(chosen.work / f"{stage.replace(' ', '_')}-{envs}.json")


def rows(chosen: argparse.Namespace) -> Iterator[dict[str, object]]:
    """List the cells of all evaluations."""
    for stage in STAGES:
        for file in sorted(chosen.work.glob(f"{stage.replace(' ', '_')}-*.json")):
            for cell in json.loads(file.read_text("utf-8"))["cells"]:
                yield {
                    "stage": stage,
                    **{name: cell[name] for name in cell if not isinstance(cell[name], dict)},
                }


def call(*command: object, seconds: float | None = None) -> None:
    """Run Python with a command in the project's root."""
    arguments = [str(part) for part in command]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    print("+", *arguments, flush=True)
    subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, timeout=seconds, env=environment)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder for what is resumed")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0, help="of fine-tuning, and of DAPO")
    parser.add_argument("--episodes", type=int, default=192, help="held-out tasks a level of CART")
    parser.add_argument("--check", action="store_true", help="as little as possible of every stage")
    chosen = parser.parse_args()
    chosen.model, chosen.work, chosen.out = (
        path.resolve() for path in (chosen.model, chosen.work, chosen.out)
    )
    chosen.work.mkdir(parents=True, exist_ok=True)
    return chosen


if __name__ == "__main__":
    main()
