"""Watching a training run: curves and a bar where a person looks, a line per step where nobody does."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ecomlab.analysis.tables import TableError, last_steps, load_eval, load_train
from ecomlab.lab.paths import resolve
from ecomlab.lab.progress import Pace, reporter, time_left

REDRAW_SECONDS = 2.0


def watched() -> bool:
    """Tell whether a person may be looking: a Jupyter kernel that no batch run has started."""
    if os.environ.get("ECOMLAB_BATCH"):
        return False
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def train_from_file(file: Path, changes: Mapping[str, Any], console: Console) -> int:
    """Train what a TOML file says, with `changes` on top, a line a step. Returns the exit code."""
    from ecomlab.train.config import RunError, from_toml
    from ecomlab.train.loop import train

    out = str(resolve(from_toml(file, changes).out))
    try:
        folder = train(from_toml(file, {**changes, "out": out}), watch(out, live=False))
    except RunError as error:
        console.print(f"[red]error[/red]  {escape(str(error))}")
        return 1
    if os.environ.get("RANK", "0") == "0":
        console.print(f"finished: {folder}")
    return 0


def watch(out: str | Path, live: bool | None = None) -> Callable[[dict[str, Any]], None]:
    """Make a `progress` for `train`: keeps progress.json; curves if `live` (default: when watched), else lines."""
    folder = resolve(out)
    show = watched() if live is None else live
    return reporter(folder, Curves(folder) if show else print_line)


def print_line(state: dict[str, Any]) -> None:
    """Print a line for the log."""
    if state.get("kind") == "alarm":
        print(f"step {state['step']}/{state['steps']}: ALARM: {state['words']}", flush=True)
    for row in state.get("rows") or []:
        if "decoding" in row:
            what = f"held out, d = {row['d']}, {row['decoding']}"
        else:
            what = f"trained on d = {row['d_low']} to {row['d_high']}"
        print(
            f"step {state['step']}/{state['steps']}: {row['env']}, {what}: success {row['success']:.2f}",
            flush=True,
        )


class Curves:
    """A bar with what is done, what is left and what it has cost; below it the run's curves and the figures of its last
    steps, redrawn in place, and alarms as they come."""

    def __init__(self, folder: Path) -> None:
        from IPython.display import DisplayHandle

        self.folder = folder
        self.picture, self.figures = DisplayHandle(), DisplayHandle()
        self.shown = False
        self.began = self.drawn = time.monotonic()
        self.pace: Pace | None = None

    def __call__(self, state: dict[str, Any]) -> None:
        if state.get("kind") == "alarm":
            print_line(state)
            return
        step, steps = state["step"], state["steps"]
        now = time.monotonic()
        if self.pace is None:
            from tqdm.auto import tqdm

            self.pace = Pace(self.began, step / steps)
            self.bar = tqdm(total=steps, initial=step, bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} steps")
        left = time_left(self.pace.seconds_left(now, step / steps))
        self.bar.set_description_str(f"{(now - self.began) / 60:.1f} min spent, {left}", refresh=False)
        self.bar.n = step
        self.bar.refresh()
        if step == steps or now - self.drawn >= REDRAW_SECONDS:
            self.draw()

    def draw(self) -> None:
        """Draw the curves as far as the tables on disk go."""
        from ecomlab.analysis.plots import one_run

        try:
            steps, evaluations = load_train(self.folder / "train.csv"), load_eval(self.folder / "eval.csv")
        except TableError:
            return  # the first rows are still to come
        for handle, content in (
            (self.picture, one_run(steps, evaluations)),
            (self.figures, last_steps(steps)),
        ):
            (handle.update if self.shown else handle.display)(content)
        self.shown = True
        self.drawn = time.monotonic()
