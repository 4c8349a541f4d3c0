"""What tests of runs share: killing one, reading and comparing what it left, and running it in two processes."""

import atexit
import csv
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from ecomlab.models.process_group import ProcessGroup
from ecomlab.training import checkpoints, metrics
from ecomlab.training.config import TrainConfig
from ecomlab.training.run import train

SECONDS = ("seconds", *(f"seconds_{phase}" for phase in metrics.PHASES))


def run_to_end(config: TrainConfig, progress: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """Train, and return the run's folder."""
    return train(config, progress).folder


class Killed(BaseException):
    """Stands in for a kill: nothing may catch it."""


def kill_at(step: int) -> Callable[[dict[str, Any]], None]:
    """A `progress` that ends the process, as it were, once the row of `step` is written."""

    def progress(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == step:
            raise Killed

    return progress


def kill_minus_nine(config: TrainConfig, step: int) -> None:
    """Train `config` in a process of its own, and kill that once the checkpoint of `step` is there."""
    out = Path(config.out)
    code = f"from ecomlab import TrainConfig, train; train(TrainConfig(**{config.to_json()!r}))"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while process.poll() is None and not (out / "checkpoints" / f"step-{step}").exists():
            time.sleep(0.02)
        process.kill()
    assert process.returncode == -signal.SIGKILL and not (out / "done.json").exists()


def rows_of(path: Path, *without: str) -> list[dict[str, str]]:
    """A table's rows, some columns left out."""
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in without} for row in csv.DictReader(file)]


def steps_of(path: Path, name: str = "groups") -> dict[int, int]:
    """The steps of train.csv in order, each with its rows' counts of this name, summed over levels."""
    found: dict[int, int] = {}
    for row in rows_of(path):
        found[int(row["step"])] = found.get(int(row["step"]), 0) + int(row[name])
    return found


def assert_same_run(ours: Path, theirs: Path) -> None:
    """Rows (hence draws and windows), weights, optimizer and schedule, bit for bit."""
    for name in ("train.csv", "eval.csv", "episodes.csv"):
        assert rows_of(ours / name, *SECONDS) == rows_of(theirs / name, *SECONDS)
    one, two = (checkpoints.newest(run / "checkpoints") for run in (ours, theirs))
    assert one and two and one.step == two.step
    assert one.extra["schedule"] == two.extra["schedule"]
    assert (one.folder / "model.safetensors").read_bytes() == (two.folder / "model.safetensors").read_bytes()
    states = [torch.load(c.folder / "optimizer.pt", weights_only=True)["state"] for c in (one, two)]
    assert states[0].keys() == states[1].keys()
    for index, state in states[0].items():
        for name, value in state.items():
            assert torch.equal(torch.as_tensor(value), torch.as_tensor(states[1][index][name]))


def in_two_processes(work: Callable[[ProcessGroup], Any], workers: int = 2) -> list[Any]:
    """The results of `work` in two processes, played by threads."""
    barrier, board = threading.Barrier(2, timeout=60), list[Any]([None, None])

    class Thread(ProcessGroup):
        def all_gather(self, mine: Any) -> list[Any]:
            board[self.rank] = mine
            barrier.wait()
            everyone = list(board)
            barrier.wait()
            return everyone

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: work(Thread(rank, 2, workers)), (0, 1)))


def train_in_two(config: TrainConfig, before: str = "") -> Path:
    """Train `config` in two processes that talk through gloo, as torchrun starts them; make sure that there were two.

    `before` is code that each runs first. Returns the run's folder.
    """
    out = Path(config.out)
    script = out.with_suffix(".py")
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport runs; runs.tell_what_is_left()\n"
        f"{before}\nfrom ecomlab import TrainConfig, train\ntrain(TrainConfig(**{config.to_json()!r}))\n"
    )
    # Not `accelerate launch --cpu --num_processes 2`: without --mpirun_hostfile it starts one process and says nothing.
    launch = "-m torch.distributed.run --standalone --nproc_per_node 2".split()
    done = subprocess.run([sys.executable, *launch, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and (out / "done.json").exists(), done.stderr[-3000:]
    assert LEFT not in done.stderr, done.stderr[done.stderr.index(LEFT) :][:300]
    last = checkpoints.newest(out / "checkpoints")
    assert last is not None and (last.folder / "rng_state_1.pth").exists(), (
        "a second process has left its random state"
    )
    return out


LEFT = "still there at the end: "


def tell_what_is_left() -> None:
    """At the end of this process, after all leave-taking, name the threads of gloo's that are left (Linux only).

    Now and then one of them aborts an interpreter that is on its way out.
    """

    def tell() -> None:
        names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
        if left := [name for name in names if "gloo" in name]:
            print(LEFT + ", ".join(left), file=sys.stderr, flush=True)

    atexit.register(tell)  # first in, last out
