"""Transcripts of a training run: its held-out failures and a few groups, each once, whatever kills it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from runs import run_to_end
from test_training import SMALL

from ecomlab import Shop
from ecomlab.evaluation.compare import compare
from ecomlab.evaluation.evaluation import rescored
from ecomlab.evaluation.transcripts import FILE, TranscriptError, read, read_header, trim
from ecomlab.training import loop
from ecomlab.training.config import TrainConfig

SETTINGS: dict[str, Any] = {
    **SMALL,
    "steps": 2,
    "eval_difficulties": (0, 4),
    "eval_decodings": ("sampled", "greedy"),  # a task is played twice at a step
    "transcripts_every": 2,
    "turn_tokens": 64,  # who fails may ramble
    "episode_tokens": 80,
    "overlong_buffer": 20,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_to_end(TrainConfig(out=str(tmp_path_factory.mktemp("runs") / "whole"), **SETTINGS))


def test_held_out_failures_and_some_groups_are_written(run: Path) -> None:
    found = list(read(run))
    held_out = [t for t in found if "decoding" in t.notes]
    episodes = pd.read_csv(run / "episodes.csv")
    failed = episodes[episodes.correct != 1]
    assert len(failed) and sorted((t.step, t.job.d, t.job.seed) for t in held_out) == sorted(
        zip(failed.step, failed.d, failed.task_seed, strict=True)
    )
    groups = [t for t in found if "group" in t.notes]
    assert {t.step for t in groups} == {2} and len(groups) == 2 * SETTINGS["group_size"]
    assert all(
        len({t.job.seed for t in groups if t.notes["group"] == n}) == 1
        for n in {t.notes["group"] for t in groups}
    )


def test_they_replay_to_their_scores(run: Path, shop: Shop) -> None:
    assert [rescored(t, shop) for t in read(run) if not t.unscored] == [None] * len(list(read(run)))


def test_what_was_cut_off_says_by_which_limit(run: Path) -> None:
    """As an evaluation says it."""
    cut = [t for t in read(run) if t.end == "truncated"]
    assert cut and {t.faults[-1] for t in cut} == {"length"}
    assert not any({"length", "context"} & set(t.faults) for t in read(run) if t.end != "truncated")


def test_they_are_not_compared(run: Path) -> None:
    assert read_header(run)["kind"] == "training"
    with pytest.raises(TranscriptError, match="training run"):
        compare(run, run)


def test_a_run_that_goes_on_writes_each_once(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after the transcripts of step 2 and before its checkpoint: that step is played again."""
    out = run.with_name(tmp_path.name)  # beside the other, so that step 0 is played once
    config = TrainConfig(out=str(out), **SETTINGS)
    save = loop.Loop._save

    def stop(self: Any, folder: Path) -> None:
        if (
            self.config.out == config.out
            and int(folder.name.rpartition("-")[2]) == 2 * self.config.minibatches
        ):
            raise KeyboardInterrupt
        save(self, folder)

    monkeypatch.setattr(loop.Loop, "_save", stop)
    with pytest.raises(KeyboardInterrupt):
        run_to_end(config)
    with (out / FILE).open("a") as file:
        file.write('{"episode": {"job"')
    monkeypatch.undo()
    run_to_end(config)
    told = [[(t.step, t.key, t.messages, repr(t.score)) for t in read(path)] for path in (run, out)]
    assert told[0] == told[1]


def test_trimming_keeps_what_was_before(run: Path, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes((run / FILE).read_bytes())
    before = [t.key for t in read(path) if t.step == 0]
    trim(path, 0)
    assert [t.key for t in read(path)] == before and before
    trim(path, -1)
    assert list(read(path)) == [] and read_header(path) == read_header(run)
