"""Loggers: what a run's figures are called, and what is said when a package is missing."""

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from runs import Killed, kill_at

from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.transcript import Transcript
from ecomlab.reward import Score
from ecomlab.training import config, loop, run
from ecomlab.training.config import ConfigError, TrainConfig
from ecomlab.training.loggers import MOST_EPISODES, Log, logger

ROWS = [
    {"env": "CART", "seed": 0, "step": step, "success": step / 4, "schedule": "adaptive"} for step in (1, 2)
]
SAID = [{"role": "user", "content": "a mug, please"}, {"role": "assistant", "content": "sold out"}]
EPISODES = [
    Transcript(Job("CART", 3, 7), "", SAID, "submit", Score(-0.9, False, "no mug", {}), 1, 0),
    Transcript(Job("CART", 3, 8), "", SAID, None, Score.failed_by_us("late"), 1, 0, unscored="timeout"),
]


def test_tensorboard_has_the_figures_by_environment(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with logger("tensorboard", tmp_path / "run", {"lr": 3e-4, "eval_difficulties": (0, 1)}) as log:
        for step, row in enumerate(ROWS, 1):
            log.metrics([row])
            log.transcripts("groups", step, EPISODES)
    (events,) = {path.parent for path in (tmp_path / "run").rglob("events*") if path.parent.name == "run"}
    read = EventAccumulator(str(events)).Reload()
    assert read.Tags()["scalars"] == ["CART/success"]
    (tag,) = [name for name in read.Tags()["tensors"] if "transcripts/groups" in name]
    told = [event.tensor_proto.string_val[0].decode() for event in read.Tensors(tag)]
    assert len(told) == 2 and "env CART, d 3" in told[0] and "    customer  a mug, please" in told[0]
    assert [(e.step, e.value) for e in read.Scalars("CART/success")] == [(1, 0.25), (2, 0.5)]


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_the_others_are_asked_in_their_own_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a fake of the package: neither is installed with the tests."""
    importlib.import_module("accelerate.tracking")  # looks for the real packages as it is imported
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
    fake.Table = lambda dataframe: dataframe  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, fake)
    with logger(name, tmp_path / "run", {"lr": 3e-4}) as log:
        log.transcripts("groups", 1, EPISODES * MOST_EPISODES)
        log.transcripts("groups", 1, [])
        log.metrics([ROWS[0]])
    (_, episodes), (step, figures) = heard
    table = episodes["transcripts/groups"]
    assert (step, figures["CART/success"], closed) == (1, 0.25, [name])
    assert len(table) == MOST_EPISODES and list(table.correct[:2]) == [False, None]
    assert table.conversation[0].splitlines() == ["customer  a mug, please", "   agent  sold out"]
    assert table.why[1] == "timeout" and table.d[0] == 3


def test_a_run_closes_its_logger_also_when_it_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    told: list[tuple[str, int, str]] = []

    class Spy:  # no generator, which would be closed when it is forgotten
        def __init__(self, *_: Any) -> None: ...

        def __enter__(self) -> Log:
            log = Log()
            log.metrics = lambda rows: heard.append(rows[0]["step"])  # type: ignore[method-assign]
            log.transcripts = lambda name, step, episodes: told.extend(  # type: ignore[method-assign]
                (name, step, episode.job.env) for episode in episodes
            )
            return log

        def __exit__(self, *_: Any) -> None:
            heard.append("closed")

    monkeypatch.setattr(loop, "logger", Spy)
    small: dict[str, Any] = {
        "prompts_per_step": 2,
        "group_size": 2,
        "rounds": 1,
        "eval_every": 1,
        "transcripts_every": 1,
    }
    small |= {"eval_difficulties": (0,), "eval_episodes": 1, "catalog_size": 1_000, "schedule": "static-0-1"}
    run.train(TrainConfig(out=str(tmp_path / "run"), steps=1, **small))
    assert heard == [1, "closed"]
    assert ("groups", 1, "CART") in told and {name for name, *_ in told} <= {"groups", "held-out failures"}
    with pytest.raises(Killed):
        run.train(TrainConfig(out=str(tmp_path / "run"), steps=2, **small), kill_at(2))
    assert heard == [1, "closed", "closed"]


@pytest.mark.parametrize("name", ["tensorboard", "trackio", "wandb"])
def test_a_missing_package_is_named_before_anything_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(config, "find_spec", asked.append)  # nothing is installed
    with pytest.raises(ConfigError, match=rf"{name}.*\[loggers\]"):
        run.train(TrainConfig(out=str(tmp_path / "run"), logger=name))
    assert asked == [name] and not (tmp_path / "run").exists()
    run._check_setting(TrainConfig())
    assert asked == [name], "no logger needs no package"
