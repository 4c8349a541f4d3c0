"""Loggers: what a run's figures are called, and what is said when a package is missing."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ecomlab.train.config import ConfigError, TrainConfig
from ecomlab.train.loggers import check_installed, logger

ROWS = [
    {"env": "CART", "seed": 0, "step": step, "success": step / 4, "schedule": "adaptive"} for step in (1, 2)
]


def test_tensorboard_has_the_figures_by_environment(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with logger("tensorboard", tmp_path / "run", {"lr": 3e-4, "eval_difficulties": (0, 1)}) as log:
        for row in ROWS:
            log([row])
    (events,) = {path.parent for path in (tmp_path / "run").rglob("events*") if path.parent.name == "run"}
    read = EventAccumulator(str(events)).Reload()
    assert read.Tags()["scalars"] == ["CART/success"]
    assert [(e.step, e.value) for e in read.Scalars("CART/success")] == [(1, 0.25), (2, 0.5)]


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_the_others_are_asked_in_their_own_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a fake of the package: neither is installed with the tests."""
    heard: list[Any] = []
    closed: list[str] = []
    run = SimpleNamespace(
        log=lambda figures, step=None, **_: heard.append((step, figures)),
        finish=lambda: closed.append(name),
    )
    run.config = SimpleNamespace(update=lambda *a, **k: None)
    fake = ModuleType(name)
    fake.init = lambda *a, **k: run  # type: ignore[attr-defined]
    fake.config = run.config  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, fake)
    with logger(name, tmp_path / "run", {"lr": 3e-4}) as log:
        log([ROWS[0]])
    assert heard and heard[0][1]["CART/success"] == 0.25 and closed == [name]


def test_a_missing_package_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"needs the package wandb: pip install .*\[loggers\]"):
        check_installed("wandb")
    check_installed("none")


def test_an_unknown_logger_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tensorboard'"):
        TrainConfig(logger="tensorbord")
