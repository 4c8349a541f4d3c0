"""Progress: of a run, in progress.json; of a command, as a bar, or as a line a minute where there is no terminal."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
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


class Pace:
    """Estimates the time left from the pace since the first share that it was given."""

    def __init__(self) -> None:
        self.began, self.first, self.last = 0.0, 0.0, 2.0

    def left(self, share: float) -> str:
        """Return "0:12:00 left", or "" before any progress. A share below the last one begins anew."""
        now = time.monotonic()
        if share < self.last:
            self.began, self.first = now, share
        self.last = share
        if share == self.first:
            return ""
        return f"{timedelta(seconds=round((now - self.began) * (1 - share) / (share - self.first)))} left"


class Bar(AbstractContextManager["Bar"]):
    """A bar with a text and the time left.

    Where `console` has no terminal, the last text is printed on standard error every `QUIET_SECONDS`, also while
    nothing new comes. A quiet console stays quiet.
    """

    def __init__(self, console: Console) -> None:
        text = TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=4),
        )
        bar = BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6))
        left = TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True))
        self.bar = Progress(
            text, bar, left, console=console, disable=not console.is_terminal, expand=True, transient=True
        )
        self.task = self.bar.add_task("at work", total=None, left="")
        self.pace, self.line = Pace(), "at work"
        self.over, self.began = threading.Event(), time.monotonic()
        speaks = not (console.is_terminal or console.quiet)
        self.thread = threading.Thread(target=self._repeat, daemon=True) if speaks else None

    def __enter__(self) -> "Bar":
        self.bar.start()
        if self.thread:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        if self.thread:
            self.thread.join()
        self.bar.stop()

    def update(self, text: str, share: float | None = None) -> None:
        """Show a text and the share that is done, if it is known."""
        left = "" if share is None else self.pace.left(share)
        self.line = ", ".join(filter(None, [text, left]))
        total = None if share is None else 1.0
        self.bar.update(self.task, description=text, completed=share, total=total, left=left)

    def _repeat(self) -> None:
        console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        while not self.over.wait(QUIET_SECONDS):
            console.print(f"{(time.monotonic() - self.began) / 60:.0f} min: {self.line}")
