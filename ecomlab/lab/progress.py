"""Progress: of a run, in progress.json; of a command, as a bar, or as a line a minute where there is no terminal."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from ecomlab.files import read_json, write_json

FILE = "progress.json"
QUIET_SECONDS = 60.0
"""Seconds between two lines where there is no terminal for a bar."""
DAY = 86_400.0
"""Seconds over which the pace is measured; rich's own period is shorter than a training step."""


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
    def read(cls, folder: Path) -> "RunState":
        """Read the state last written in `folder`; step 0 of 0 if there is none."""
        saved = read_json(folder / FILE) or {}
        try:
            share = saved["episodes"] / saved["of"] if saved.get("kind") == "evaluating" else None
            return cls(int(saved["step"]), int(saved["steps"]), share)
        except (TypeError, KeyError, ValueError, ZeroDivisionError):
            return cls()


class Bar(AbstractContextManager["Bar"]):
    """A bar with a text and the time left; where `console` has no terminal, a line on standard error once a minute. A
    quiet console stays quiet."""

    def __init__(self, console: Console) -> None:
        text = TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=4),
        )
        bar = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6))
        self.bar = Progress(
            text, bar, TimeRemainingColumn(), console=console, disable=not console.is_terminal, expand=True,
            transient=True, speed_estimate_period=DAY,
        )  # fmt: skip
        self.task = self.bar.add_task("at work", total=None)
        self.speaks, self.printed = not (console.is_terminal or console.quiet), time.monotonic()

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
