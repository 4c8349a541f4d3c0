"""Progress: of a run, in progress.json; of a command, as a bar; of training, as curves in a notebook or as lines."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from ecomlab.files import read_json, write_json
from ecomlab.lab.paths import resolve, shown

if TYPE_CHECKING:
    from ecomlab.evaluation.evaluation import OnProgress

FILE = "progress.json"
QUIET_SECONDS = 60.0
"""Seconds between two lines where there is no terminal for a bar."""
REDRAW_SECONDS = 2.0
DAY = 86_400.0
"""Seconds over which the pace is measured; rich's own period is shorter than a training step."""


class Bar(AbstractContextManager["Bar"]):
    """A bar with a text and the time left; where `console` has no terminal, a line on standard error once a minute. A
    quiet console stays quiet."""

    def __init__(self, console: Console) -> None:
        text = Column(no_wrap=True, overflow="ellipsis", ratio=4)
        drawn = console.is_terminal and not console.quiet
        self.bar = Progress(
            TextColumn("{task.description}", markup=False, table_column=text),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6)),
            TimeRemainingColumn(),
            console=console, disable=not drawn, expand=True, transient=True, speed_estimate_period=DAY,
        )  # fmt: skip
        self.task = self.bar.add_task("at work", total=None)
        self.speaks, self.printed = not (drawn or console.quiet), time.monotonic()

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, text: str, share: float | None = None) -> None:
        """Show a text and the share that is done, if it is known."""
        self.bar.update(self.task, description=text, completed=share, total=None if share is None else 1.0)
        if self.speaks and time.monotonic() - self.printed >= QUIET_SECONDS:
            self.printed = time.monotonic()
            left = self.bar.tasks[0].time_remaining
            told = text if left is None else f"{text}, {timedelta(seconds=round(left))} left"
            print(told, file=sys.stderr, flush=True)


# --- an evaluation ---


def watching(console: Console) -> Callable[..., AbstractContextManager["OnProgress"]]:
    """Make the `watching` of an evaluation or a frontier: a bar with episodes, success, cost and the time left."""

    @contextmanager
    def watch(folder: Path, prices: Mapping[str, Any]) -> Iterator["OnProgress"]:
        from ecomlab.evaluation.result import gap
        from ecomlab.evaluation.summary import Ledger, smallest_difference
        from ecomlab.evaluation.transcripts import FILE as TRANSCRIPTS

        ledger = Ledger(prices)
        won = scored = unscored = before = most = 0  # before: episodes of earlier rounds of a frontier

        def on_progress(event: Mapping[str, Any]) -> None:
            nonlocal won, scored, unscored, before, most
            if event["kind"] == "round":
                before, most = event["episodes"], event["most"]
            if event["kind"] == "plan":
                shows = gap(smallest_difference(event["tasks"] * event["cells"]))
                console.print(
                    f"tasks per cell: {event['tasks']}, cells: {event['cells']}; smallest difference between two "
                    f"players that these show (80% power): {shows}",
                    soft_wrap=True,
                )
            if event["kind"] != "episode":
                return
            transcript, total = event["transcript"], most or event["total"]
            ledger.add(transcript)
            unscored += bool(transcript.unscored)
            scored += not transcript.unscored
            won += transcript.score.correct
            done = before + event["total"] - event["left"]
            told = [
                f"{done} of at most {most} episodes" if most else f"{done}/{total} episodes",
                f"success {won / scored:.3f}" if scored else "",
                f"{unscored} unscored" if unscored else "",
                str(ledger.cost or ""),
            ]
            bar.update(", ".join(filter(None, told)), done / total)

        console.print(f"transcripts: {shown(folder / TRANSCRIPTS)}", soft_wrap=True)
        with Bar(console) as bar:
            bar.update("waiting for the first episode")  # an endpoint that hangs may take minutes
            yield on_progress

    return watch


# --- a training run ---


@dataclass(frozen=True)
class RunState:
    """How far a run is, as it last wrote."""

    step: int = 0
    steps: int = 0
    evaluated: float | None = None
    """Share of the evaluation under way."""

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 0.0

    def __str__(self) -> str:
        evaluating = "" if self.evaluated is None else f", evaluating {self.evaluated:.0%}"
        return f"{self.step}/{self.steps}{evaluating}" if self.steps else "at work"

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "RunState":
        """Take a state as `train` reports it; step 0 of 0 if it is not whole."""
        try:
            share = state["episodes"] / state["of"] if state.get("kind") == "evaluating" else None
            return cls(int(state["step"]), int(state["steps"]), share)
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            return cls()

    @classmethod
    def read(cls, folder: Path) -> "RunState":
        """Read the state last written in `folder`; step 0 of 0 if there is none."""
        return cls.of(read_json(folder / FILE) or {})


def watch(out: str | Path, bar: Bar | None = None) -> Callable[[Mapping[str, Any]], None]:
    """Make a `progress` for `train(config, progress=...)` that writes `out`/progress.json. It draws curves in an
    interactive notebook; elsewhere, or with a bar, it prints lines.

    The state needs `step` (steps done) and `steps`; of the rest, only plain values are written.
    """
    folder, console = resolve(out), Console()
    curves = (
        bar is None and console.is_jupyter and not os.environ.get("ECOMLAB_BATCH")
    )  # which batch runs set
    show = Curves(folder) if curves else Lines(bar or Bar(console))

    def report(state: Mapping[str, Any]) -> None:
        write_json(folder / FILE, {k: v for k, v in state.items() if isinstance(v, bool | int | float | str)})
        show(state)

    return report


class Lines:
    """Prints a line per environment of a step, per row of an evaluation, and per alarm, and updates a bar."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar

    def __call__(self, state: Mapping[str, Any]) -> None:
        from ecomlab.training.metrics import by_environment

        at, rows = RunState.of(state), state.get("rows") or []
        if state.get("kind") == "alarm":
            print(f"step {at}: ALARM: {state['words']}", flush=True)
        for row in by_environment(rows) if state.get("kind") == "step" else rows:
            about = f"trained on d = {row['d_low']} to {row['d_high']}" if "d_low" in row else ""
            about = about or f"held out, d = {row['d']}, {row['decoding']}"
            print(f"step {at}: {row['env']}, {about}: success {row['success']:.2f}", flush=True)
        self.bar.update(f"step {at}", at.share)


class Curves:
    """A bar with steps, time spent and time left; below it the run's curves and the metrics of its last steps, redrawn
    in place. Alarms are printed."""

    def __init__(self, folder: Path) -> None:
        from IPython.display import DisplayHandle

        self.folder, self.shown, self.drawn = folder, False, time.monotonic()
        self.handles = DisplayHandle(), DisplayHandle()
        self.bar: Any = None

    def __call__(self, state: Mapping[str, Any]) -> None:
        from tqdm.auto import tqdm

        at = RunState.of(state)
        if state.get("kind") == "alarm":
            return print(f"step {at}: ALARM: {state['words']}")
        if self.bar is None:
            self.bar = tqdm(total=at.steps, initial=at.step, unit="step")
        self.bar.set_postfix_str(
            "" if at.evaluated is None else f"evaluating {at.evaluated:.0%}", refresh=False
        )
        self.bar.update(at.step - self.bar.n)
        self.bar.refresh()
        if at.step == at.steps or time.monotonic() - self.drawn >= REDRAW_SECONDS:
            self.draw(at.steps)

    def draw(self, steps: int) -> None:
        """Draw the tables on disk, as far as they go, of a run of `steps`."""
        from ecomlab.analysis.plots import one_run
        from ecomlab.analysis.tables import TableError, last_steps, load_eval, load_train

        try:
            train, evaluations = load_train(self.folder / "train.csv"), load_eval(self.folder / "eval.csv")
        except TableError:
            return  # there are no rows yet
        contents = one_run(train, evaluations, steps=steps), last_steps(train)
        for handle, content in zip(self.handles, contents, strict=True):
            (handle.update if self.shown else handle.display)(content)
        self.shown, self.drawn = True, time.monotonic()
