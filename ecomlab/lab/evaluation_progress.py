"""Progress of eval and frontier: episodes, success, cost and the time left."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ecomlab.evaluation.evaluation import OnProgress
from ecomlab.evaluation.result import gap
from ecomlab.evaluation.summary import Ledger, smallest_difference
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import FILE
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import Pace, duration, each_minute, time_left


def watching(console: Console) -> Callable[..., AbstractContextManager[OnProgress]]:
    """Watch a run on a console."""
    return lambda folder, prices: progress_of(folder, prices, console)


@contextmanager
def progress_of(
    folder: Path, prices: Mapping[str, Any], console: Console
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give an `on_progress` that draws a bar with episodes, success, cost and the time left; without a terminal, a line
    a minute on standard error. `prices` are those of a `Ledger`."""
    console.print(f"transcripts: {shown(folder / FILE)}", soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TextColumn("{task.fields[left]}"))
    with (
        Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar,
        each_minute(console) as say,
    ):
        yield _Watch(bar, Ledger(prices), console, say)


class _Watch:
    def __init__(self, bar: Progress, ledger: Ledger, console: Console, say: Callable[[str], None]) -> None:
        self.bar, self.ledger, self.console, self.say = bar, ledger, console, say
        # an endpoint that hangs may take minutes until the first is over
        said = "waiting for the first episode"
        self.task = bar.add_task(said, total=1.0, left="")
        say(said)
        self.scored = self.won = self.unscored = 0
        self.pace: Pace | None = None
        self.before = self.most = 0  # of a search in rounds: episodes of earlier ones, and the most of all

    def __call__(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "episode":
            self.episode(event["transcript"], event["total"] - event["left"], event["total"])
        elif kind == "measured":
            self.console.print(
                f"{event['episodes']} episodes took {event['seconds']:.1f} s; all: about {duration(event['all'])}",
                soft_wrap=True,
            )
        elif kind == "plan":
            self.pace = None
            self.plan(event)
        elif kind == "round":
            self.pace, self.before, self.most = None, event["episodes"], event["most"]

    def plan(self, event: Mapping[str, Any]) -> None:
        """Say how many tasks are played, and which difference they can show."""
        fewer = f" (of {event['of']}, for the budget)" if event["tasks"] < event["of"] else ""
        whole = event["tasks"] * event["cells"]
        self.console.print(
            f"tasks: {event['tasks']} a cell{fewer}, {event['cells']} cells, {whole} in all; difference between two "
            f"players that so many show (80% power, success about one half): {gap(smallest_difference(whole))}",
            soft_wrap=True,
        )

    def episode(self, transcript: Transcript, done: int, total: int) -> None:
        """Count an episode and draw the bar."""
        self.ledger.add(transcript)
        self.unscored += bool(transcript.unscored)
        self.scored += not transcript.unscored
        self.won += transcript.score.correct
        now = time.monotonic()
        self.pace = self.pace or Pace(now, (done - 1) / total)
        left = time_left(self.pace.seconds_left(now, done / total))
        success = f", success {self.won / self.scored:.3f}" if self.scored else ""
        lost = f", {self.unscored} unscored" if self.unscored else ""
        cost = f", {self.ledger.cost}" if self.ledger.cost else ""
        count = (
            f"{self.before + done} episodes of at most {self.most}"
            if self.most
            else f"{done}/{total} episodes"
        )
        text = f"{count}{success}{lost}{cost}"
        left += " in this round" if self.most and done < total else ""
        self.bar.update(self.task, completed=done / total, description=text, left=left)
        self.say(f"{text}, {left}")
