"""Loggers for a run's metrics, through accelerate's trackers: TensorBoard, trackio, Weights & Biases, or none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOGGERS = ("none", "tensorboard", "trackio", "wandb")

Rows = Sequence[Mapping[str, Any]]


@contextmanager
def logger(name: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[Callable[[Rows], None]]:
    """Provide a function that logs a step's metrics, rows with `env` and `step`, as `env/column`.

    All loggers write under `folder`; wandb stays offline unless WANDB_MODE says otherwise.
    """
    if name == "none":
        yield lambda rows: None
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

    def log(rows: Rows) -> None:
        metrics = {
            f"{row['env']}/{name}": value
            for row in rows
            for name, value in row.items()
            if isinstance(value, int | float) and name not in ("seed", "step")
        }
        tracker.log(metrics, step=rows[0]["step"])

    try:
        yield log
    finally:
        tracker.finish()
