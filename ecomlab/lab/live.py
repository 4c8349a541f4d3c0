"""Progress of a training run: live curves in an interactive notebook, a line per step elsewhere."""

import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import resolve
from ecomlab.lab.progress import QUIET_SECONDS, reporter
from ecomlab.lab.shops import training_settings
from ecomlab.training.metrics import by_environment

REDRAW_SECONDS = 2.0


def watched() -> bool:
    """Tell whether this is an interactive Jupyter kernel, not one started by a batch run."""
    if os.environ.get("ECOMLAB_BATCH"):
        return False
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def train_from_file(file: Path | None, changes: Mapping[str, Any], console: Console) -> int:
    """Train by a TOML file, or by the defaults, overridden by `changes`. Prints a line per step; returns the exit
    code."""
    from ecomlab.training.config import RunError, from_toml
    from ecomlab.training.run import train
    from ecomlab.training.stopping import Stopped

    asked = from_toml(file, changes)
    out = str(resolve(asked.out))
    package, show = str(Path(__file__).parents[1]), warnings.showwarning

    def say(message: Warning | str, category: type[Warning], filename: str, *rest: Any, **more: Any) -> None:
        if filename.startswith(package):
            print(f"warning  {message}", file=sys.stderr)
        else:
            show(message, category, filename, *rest, **more)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = say
            run = train(
                asked.replace(out=out, **training_settings(asked.catalog or None)), watch(out, live=False)
            )
    except RunError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]error[/red]  {escape(str(error))}")
        return 128 + error.number if isinstance(error, Stopped) else 2
    if os.environ.get("RANK", "0") == "0":
        console.print(f"finished: {run.folder}")
    return 0


def watch(out: str | Path, live: bool | None = None) -> Callable[[dict[str, Any]], None]:
    """Make a `progress` for `train` that writes progress.json and, if `live` (default: `watched()`), draws curves."""
    folder = resolve(out)
    return reporter(folder, Curves(folder) if (watched() if live is None else live) else Lines())


class Lines:
    """Prints a line per environment of a step, per row of an evaluation, and per alarm; once a minute another says how
    far the run is."""

    def __init__(self) -> None:
        self.printed = time.monotonic()

    def __call__(self, state: dict[str, Any]) -> None:
        rows = state.get("rows") or []
        if state.get("kind") == "alarm":
            self.print(state, f"ALARM: {state['words']}")
        for row in by_environment(rows) if state.get("kind") == "step" else rows:
            about = f"trained on d = {row['d_low']} to {row['d_high']}" if "d_low" in row else ""
            about = about or f"held out, d = {row['d']}, {row['decoding']}"
            self.print(state, f"{row['env']}, {about}: success {row['success']:.2f}")
        if time.monotonic() - self.printed >= QUIET_SECONDS:
            self.print(state, evaluating(state) or "at work")

    def print(self, state: Mapping[str, Any], text: str) -> None:
        self.printed = time.monotonic()
        print(f"step {state['step']}/{state['steps']}: {text}", flush=True)


def evaluating(state: Mapping[str, Any]) -> str:
    """Return how many episodes of the evaluation under way are played; "" where there is none."""
    if state.get("kind") != "evaluating":
        return ""
    return f"evaluating, {state['episodes']:,} of {state['of']:,} episodes"


class Curves:
    """A bar with steps, time spent and time left; below it the run's curves and the metrics of its last steps, redrawn
    in place. Alarms are printed."""

    def __init__(self, folder: Path) -> None:
        from IPython.display import DisplayHandle

        self.folder = folder
        self.curves, self.metrics = DisplayHandle(), DisplayHandle()
        self.shown = False
        self.drawn = time.monotonic()
        self.bar: Any = None

    def __call__(self, state: dict[str, Any]) -> None:
        if state.get("kind") == "alarm":
            Lines()(state)
            return
        step, steps = state["step"], state["steps"]
        if self.bar is None:
            from tqdm.auto import tqdm

            self.bar = tqdm(total=steps, initial=step, unit="step")
        self.bar.set_postfix_str(evaluating(state), refresh=False)
        self.bar.update(step - self.bar.n)
        self.bar.refresh()
        if step == steps or time.monotonic() - self.drawn >= REDRAW_SECONDS:
            self.draw(steps)

    def draw(self, steps: int) -> None:
        """Draw the tables on disk, as far as they go, of a run of `steps`."""
        from ecomlab.analysis.plots import one_run
        from ecomlab.analysis.tables import TableError, last_steps, load_eval, load_train

        try:
            train, evaluations = load_train(self.folder / "train.csv"), load_eval(self.folder / "eval.csv")
        except TableError:
            return  # there are no rows yet
        for handle, content in (
            (self.curves, one_run(train, evaluations, steps=steps)),
            (self.metrics, last_steps(train)),
        ):
            (handle.update if self.shown else handle.display)(content)
        self.shown = True
        self.drawn = time.monotonic()
