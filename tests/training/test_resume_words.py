"""What a resumed run says, and does not say, of what it finds."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ecomlab.lab.live import train_from_file
from ecomlab.training import checkpoints, run
from ecomlab.training.config import ConfigError, TrainConfig


def test_a_damaged_config_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="config.json is damaged"):
        run._same_run(tmp_path, TrainConfig().to_json())
    assert (tmp_path / "config.json").read_text() == "{"


def test_a_warning_of_ours_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(config: TrainConfig, progress: Any) -> run.Run:
        warnings.warn_explicit("a checkpoint is damaged", UserWarning, checkpoints.__file__, 1)
        return run.Run(tmp_path)

    monkeypatch.setattr(run, "train", train)
    (tmp_path / "train.toml").write_text("steps = 1")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        train_from_file(tmp_path / "train.toml", {"out": str(tmp_path / "run")}, Console())
    assert capsys.readouterr().err == "warning  a checkpoint is damaged\n"
