"""Demonstrations for a warm start."""

import json
from pathlib import Path
from typing import Any

import pytest

from ecomlab import Episode, make_task
from ecomlab.catalog import load_shop
from ecomlab.evaluation import demonstrations
from ecomlab.evaluation.demonstrations import MANIFEST, write_demonstrations
from ecomlab.seeding import TRAINING_SEEDS

SIZE = 1_000
GIVEN: dict[str, Any] = {"envs": ("CART", "STATUS"), "levels": (0, 2), "size": SIZE}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstrations, "PART", 3)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted(folder.glob("part-*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def test_they_are_correct_chats_of_training_tasks_in_turns(tmp_path: Path, small_parts: None) -> None:
    manifest = write_demonstrations(tmp_path, 16, **GIVEN)
    found, shop = rows(tmp_path), load_shop(SIZE)
    assert len(found) == 16 and set(manifest["counts"].values()) == {2} and len(manifest["counts"]) == 8
    for row in found:
        assert row["seed"] in TRAINING_SEEDS and row["reward"] > 0
        episode = Episode(make_task(row["env"], row["difficulty"], row["seed"], shop), shop)
        assert row["tools"] == episode.tools and row["messages"][:2] == episode.messages
        for message in row["messages"]:
            if message["role"] == "assistant":
                episode.act(message)
        assert episode.done and episode.score().value == row["reward"]


def test_an_interrupted_call_goes_on_to_the_same_bytes(tmp_path: Path, small_parts: None) -> None:
    whole = write_demonstrations(tmp_path / "whole", 8, form="prompt-completion", **GIVEN)
    assert all(
        row["prompt"] and row["completion"][0]["role"] == "assistant" for row in rows(tmp_path / "whole")
    )
    part = tmp_path / "part"
    write_demonstrations(part, 8, form="prompt-completion", **GIVEN)
    (part / "part-00001.jsonl").unlink()
    told: list[int] = []
    again = write_demonstrations(part, 8, form="prompt-completion", on_progress=told.append, **GIVEN)
    assert again == whole == json.loads((part / MANIFEST).read_text()) and told == [8]
    with pytest.raises(ValueError, match="other settings"):
        write_demonstrations(part, 9, form="prompt-completion", **GIVEN)
