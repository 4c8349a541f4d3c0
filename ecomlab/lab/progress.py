"""How far a run is: written by the run as progress.json, shown by the sweep as one bar for all runs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Column

from ecomlab.lab.paths import read_json, write_json

FILE = "progress.json"
QUIET_SECONDS = 60.0  # between two lines where there is no terminal to draw a bar on


def reporter(
    folder: Path, then: Callable[[dict[str, Any]], None] | None = None
) -> Callable[[dict[str, Any]], None]:
    """A callback for `train(config, progress=...)` that keeps `folder`/progress.json up to date, then calls
    `then`.

    The dict needs `step` (steps done) and `steps`; of the rest, plain values are kept in the file.
    """

    def report(state: dict[str, Any]) -> None:
        write_json(folder / FILE, {k: v for k, v in state.items() if isinstance(v, bool | int | float | str)})
        if then is not None:
            then(state)

    return report


@dataclass(frozen=True)
class RunState:
    """One run as the bar shows it."""

    step: int = 0
    steps: int = 0

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 0.0

    @classmethod
    def read(cls, folder: Path) -> "RunState":
        """The state last written in `folder`; nothing done where there is none."""
        saved = read_json(folder / FILE)
        try:
            return cls(int(saved["step"]), int(saved["steps"]))
        except (TypeError, KeyError, ValueError, AttributeError):
            return cls()


class Bar:
    """One bar for all runs of a sweep: which are running, at which step, how long still. A context manager.

    Without a terminal it prints a line at every start and end of a run, and one a minute.
    """

    def __init__(self, total: int, console: Console, noun: str = "runs") -> None:
        self.total, self.console, self.noun = total, console, noun
        self.began = self.printed = time.monotonic()
        self.at_start: float | None = None
        what = TextColumn(
            "{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=4)
        )
        gauge = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8))
        columns = (
            what,
            gauge,
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
        )
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal, expand=True)
        self.task = self.bar.add_task("", total=1.0, left="")

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        """A line above the bar."""
        self.console.print(line, highlight=False)

    def update(self, finished: int, running: Mapping[str, RunState]) -> None:
        """Draw: `finished` runs are through, `running` maps names to states."""
        share = (finished + sum(state.share for state in running.values())) / max(1, self.total)
        if self.at_start is None:
            self.at_start = share
        left = time_left(time.monotonic() - self.began, share - self.at_start, 1 - share)
        parts = [f"{name} {_where(state)}" for name, state in running.items()]
        text = f"[{finished}/{self.total} {self.noun}] " + " · ".join(parts)
        self.bar.update(self.task, completed=share, description=text.replace("[", r"\["), left=left)
        if not self.console.is_terminal and time.monotonic() - self.printed >= QUIET_SECONDS:
            self.printed = time.monotonic()
            self.say(f"{text}: {share:.0%}, {left}")


def time_left(elapsed: float, done: float, remaining: float) -> str:
    """In words, from the pace of this session: `done` and `remaining` are shares of the whole work."""
    if remaining <= 0:
        return "done"
    if done <= 0:
        return "time left: to be seen"
    seconds = elapsed * remaining / done
    if seconds < 90:
        return f"{max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"{round(seconds / 60)} min left"
    return f"{seconds / 3600:.1f} h left"


def _where(state: RunState) -> str:
    if not state.steps:
        return "at work"
    return f"step {state.step}/{state.steps}"
