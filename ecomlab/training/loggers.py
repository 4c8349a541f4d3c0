"""Loggers of metrics and transcripts, through accelerate's trackers: TensorBoard, trackio or Weights & Biases."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ecomlab.evaluation.transcript import Transcript
from ecomlab.markup.entries import as_text, conversation

LOGGERS = ("none", "tensorboard", "trackio", "wandb")
MOST_EPISODES = 50
"""Maximum number of episodes in a table; transcripts.jsonl has all that a run keeps."""

Rows = Sequence[Mapping[str, Any]]


class Log:
    """A run's log through one of accelerate's trackers, or none; `package` provides tables, if the logger has any."""

    def __init__(self, tracker: Any = None, package: Any = None) -> None:
        self.tracker, self.package = tracker, package

    def metrics(self, rows: Rows) -> None:
        """Log a step's metrics (rows with `env` and `step`) as `env/column`."""
        metrics = {
            f"{row['env']}/{name}": value
            for row in rows
            for name, value in row.items()
            if isinstance(value, int | float) and name not in ("seed", "step")
        }
        if self.tracker:
            self.tracker.log(metrics, step=rows[0]["step"])

    def transcripts(self, name: str, step: int, episodes: Sequence[Transcript]) -> None:
        """Log the first `MOST_EPISODES` episodes as a table of that name, conversations as text."""
        if not self.tracker or not episodes:
            return
        rows = [_row(episode, step) for episode in episodes[:MOST_EPISODES]]
        if self.package is None:  # TensorBoard, which shows text as Markdown
            self.tracker.log({f"transcripts/{name}": "\n\n".join(map(_as_markdown, rows))}, step=step)
            return
        import pandas as pd

        table = self.package.Table(dataframe=pd.DataFrame(rows))
        self.tracker.log({f"transcripts/{name}": table}, step=step)


@contextmanager
def logger(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Provide a run's log. All loggers write under `folder`; wandb stays offline unless WANDB_MODE says otherwise."""
    if name == "none":
        yield Log()
        return
    import os

    from accelerate import PartialState
    from accelerate.tracking import TensorBoardTracker, TrackioTracker, WandBTracker

    PartialState()  # a tracker logs through accelerate, which refuses before its state exists
    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("TRACKIO_DIR", str(folder / "trackio"))
    run = folder.name
    if name == "tensorboard":
        tracker: Any = TensorBoardTracker(run, logging_dir=str(folder / "tensorboard"))
    elif name == "trackio":
        tracker = TrackioTracker("ecomlab", name=run)
    else:
        tracker = WandBTracker("ecomlab", name=run, dir=str(folder))
    tracker.start()
    plain = {
        key: value if isinstance(value, int | float | str | bool) else str(value)
        for key, value in settings.items()
    }
    tracker.store_init_configuration(plain)
    try:
        yield Log(tracker, None if name == "tensorboard" else importlib.import_module(name))
    finally:
        tracker.finish()


def _row(episode: Transcript, step: int) -> dict[str, Any]:
    """Make an episode's row: task, outcome and conversation."""
    job, score = episode.job, episode.score
    return {
        "step": step,
        "env": job.env,
        "d": job.d,
        "seed": job.seed,
        "trial": job.trial,
        "decoding": str(episode.notes.get("decoding", "")),
        "correct": None if episode.unscored else score.correct,
        "reward": None if episode.unscored else score.value,
        "end": episode.end or "",
        "why": episode.unscored or score.why,
        "conversation": as_text(conversation(episode.messages)),
    }


def _as_markdown(row: Mapping[str, Any]) -> str:
    facts = ", ".join(
        f"{name} {value}" for name, value in row.items() if name not in ("step", "conversation")
    )
    said = "\n".join(f"    {line}" for line in row["conversation"].splitlines())
    return f"{facts}\n\n{said}"
