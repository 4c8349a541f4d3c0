"""Progress of eval and frontier: episodes, success, cost and the time left."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from ecomlab.evaluation.evaluation import OnProgress
from ecomlab.evaluation.result import gap
from ecomlab.evaluation.summary import Ledger, smallest_difference
from ecomlab.evaluation.transcripts import FILE
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import Bar


def watching(console: Console) -> Callable[..., AbstractContextManager[OnProgress]]:
    """Watch a run on a console."""
    return lambda folder, prices: progress_of(folder, prices, console)


@contextmanager
def progress_of(folder: Path, prices: Mapping[str, Any], console: Console) -> Iterator[OnProgress]:
    """Make an `on_progress` that shows episodes, success, cost and the time left in a `Bar`. `prices` are those of a
    `Ledger`."""
    console.print(f"transcripts: {shown(folder / FILE)}", soft_wrap=True)
    with Bar(console) as bar:
        bar.update("waiting for the first episode")  # an endpoint that hangs may take minutes
        yield _Watch(bar, Ledger(prices), console)


class _Watch:
    def __init__(self, bar: Bar, ledger: Ledger, console: Console) -> None:
        self.bar, self.ledger, self.console = bar, ledger, console
        self.scored = self.won = self.unscored = 0
        self.before, self.most = 0, 0
        """In a search for a frontier: episodes of earlier rounds, and the maximum of all rounds."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        match event["kind"]:
            case "episode":
                self.episode(event)
            case "plan":
                tasks, cells = event["tasks"], event["cells"]
                shows = gap(smallest_difference(tasks * cells))
                self.console.print(
                    f"tasks per cell: {tasks}, cells: {cells}; smallest difference between two players that these show "
                    f"(80% power): {shows}",
                    soft_wrap=True,
                )
            case "round":
                self.before, self.most = event["episodes"], event["most"]

    def episode(self, event: Mapping[str, Any]) -> None:
        """Count an episode and update the bar."""
        transcript = event["transcript"]
        self.ledger.add(transcript)
        self.unscored += bool(transcript.unscored)
        self.scored += not transcript.unscored
        self.won += transcript.score.correct
        done, most = self.before + event["total"] - event["left"], self.most or event["total"]
        told = [
            f"{done} of at most {most} episodes" if self.most else f"{done}/{most} episodes",
            f"success {self.won / self.scored:.3f}" if self.scored else "",
            f"{self.unscored} unscored" if self.unscored else "",
            str(self.ledger.cost or ""),
        ]
        self.bar.update(", ".join(filter(None, told)), done / most)
