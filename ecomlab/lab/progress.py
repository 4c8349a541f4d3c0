"""Progress: of a run, which writes it as progress.json and the sweep shows as one bar for all runs; and a line a minute
of long commands without a terminal."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from ecomlab.files import read_json, write_json

FILE = "progress.json"
QUIET_SECONDS = 60.0
"""Seconds between two lines where there is no terminal for a bar."""


def reporter(
    folder: Path, then: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[dict[str, Any]], None]:
    """Make a callback for `train(config, progress=...)` that writes `folder`/progress.json, then calls `then`.

    The state needs `step` (steps done) and `steps`; of the rest, only plain values are written.
    """

    def report(state: dict[str, Any]) -> None:
        write_json(folder / FILE, {k: v for k, v in state.items() if isinstance(v, bool | int | float | str)})
        if then is not None:
            then(state)

    return report


@contextmanager
def each_minute(console: Console) -> Iterator[Callable[[str], None]]:
    """Give a function that is told how far a command is.

    Where `console` has no terminal for a bar, what it was told last is printed on standard error every `QUIET_SECONDS`,
    also while nothing new comes. A quiet console stays quiet.
    """
    last, over, began = ["at work"], threading.Event(), time.monotonic()

    def say(text: str) -> None:
        last[0] = text

    def repeat() -> None:
        while not over.wait(QUIET_SECONDS):
            minutes = round((time.monotonic() - began) / 60)
            Console(stderr=True, highlight=False, soft_wrap=True).print(escape(f"{minutes} min: {last[0]}"))

    if console.is_terminal or console.quiet:
        yield say
        return
    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield say
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class RunState:
    """One run as the bar shows it."""

    step: int = 0
    steps: int = 0
    evaluated: float | None = None
    """Share of an evaluation that is under way."""

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 0.0

    def describe(self, word: str = "") -> str:
        """Say where it stands: "3/150, evaluating 40%"; `word` comes before the steps."""
        if not self.steps:
            return "at work"
        evaluating = "" if self.evaluated is None else f", evaluating {self.evaluated:.0%}"
        return f"{word}{self.step}/{self.steps}{evaluating}"

    @classmethod
    def read(cls, folder: Path) -> "RunState":
        """Read the state last written in `folder`; step 0 of 0 if there is none."""
        saved = read_json(folder / FILE) or {}
        try:
            share = saved["episodes"] / saved["of"] if saved.get("kind") == "evaluating" else None
            return cls(int(saved["step"]), int(saved["steps"]), share)
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            return cls()


class Bar:
    """One bar for all runs of a sweep: those running, their steps, the time left. A context manager.

    Without a terminal it prints a line at every start and end of a run, and one per minute.
    """

    def __init__(self, total: int, console: Console, noun: str = "runs") -> None:
        self.total, self.console, self.noun = total, console, noun
        self.printed = time.monotonic()
        self.paces: dict[str, Pace] = {}
        runs = TextColumn(
            "{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=4)
        )
        bar = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6))
        left = TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True))
        columns = (runs, bar, TaskProgressColumn(), left)
        self.bar = Progress(
            *columns, console=console, disable=not console.is_terminal, expand=True, transient=True
        )
        self.task = self.bar.add_task("", total=1.0, left="")

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(line, highlight=False)

    def update(self, finished: int, running: Mapping[str, RunState]) -> None:
        """Draw the bar; `running` maps the names of runs to their states."""
        share = (finished + sum(state.share for state in running.values())) / max(1, self.total)
        whole = self._pace("", share)
        # When the last runs are alone, the slowest of them says more than the pace of all.
        slowest = max((self._pace(name, state.share) for name, state in running.items()), default=whole)
        left = time_left(max(whole, slowest) if slowest < math.inf else whole)
        text = self._describe(finished, running, "step ", f" {self.noun}")
        if len(text) > self.console.width - 26:
            text = self._describe(finished, running, "", "")
        self.bar.update(self.task, completed=share, description=text.replace("[", r"\["), left=left)
        if not self.console.is_terminal and time.monotonic() - self.printed >= QUIET_SECONDS:
            self.printed = time.monotonic()
            self.say(escape(f"{text}: {share:.0%}, {left}"))

    def _pace(self, name: str, share: float) -> float:
        """Estimate the seconds left for the run `name` ('' is all of them) at its pace since it was first seen."""
        pace = self.paces.setdefault(name, Pace(time.monotonic(), share))
        return pace.seconds_left(time.monotonic(), share)

    def _describe(self, finished: int, running: Mapping[str, RunState], step: str, noun: str) -> str:
        states = (f"{name} {state.describe(step)}" for name, state in running.items())
        return f"[{finished}/{self.total}{noun}] " + " · ".join(states)


@dataclass(frozen=True)
class Pace:
    """Time at which a run was first seen, and the share of it that was done then."""

    began: float
    share: float

    def seconds_left(self, now: float, share: float) -> float:
        """Estimate the time of the rest at the pace so far; infinite before any progress."""
        if share >= 1:
            return 0.0
        return (now - self.began) * (1 - share) / (share - self.share) if share > self.share else math.inf


def time_left(seconds: float) -> str:
    """Put the seconds that are left into words."""
    if seconds == 0:
        return "done"
    return "time left: ?" if seconds == math.inf else f"{duration(max(1, seconds))} left"


def duration(seconds: float) -> str:
    """Put a number of seconds into words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
