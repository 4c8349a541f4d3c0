"""A run in two processes that talk through gloo, as torchrun starts them; made sure that there were two."""

import subprocess
import sys
from pathlib import Path

from ecomlab.train import checkpoints
from ecomlab.train.run import TrainConfig


def train_in_two(config: TrainConfig, before: str = "") -> Path:
    """Train `config` in two processes; `before` is code that each runs first. Returns the run's folder."""
    out = Path(config.out)
    script = out.with_suffix(".py")
    script.write_text(
        f"{before}\nfrom ecomlab.train.run import TrainConfig, train\ntrain(TrainConfig(**{config.to_json()!r}))\n"
    )
    # Not `accelerate launch --cpu --num_processes 2`: without --mpirun_hostfile it starts one process and says nothing.
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended_well(done, out), done.stderr[-3000:]
    last = checkpoints.newest(out / "checkpoints")
    assert last is not None and (last.folder / "rng_state_1.pth").exists(), (
        "a second process has left its random state"
    )
    return out


def ended_well(done: "subprocess.CompletedProcess[str]", out: Path) -> bool:
    """Whether all processes came to the end of the run, after which all is on disk and they meet once more.

    On a busy machine gloo's threads now and then abort an interpreter that is on its way out; that is let pass.
    """
    late = "terminate called without an active exception" in done.stderr
    return (out / "done.json").exists() and (done.returncode == 0 or late)
