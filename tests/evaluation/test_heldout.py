"""Held-out episodes of a policy: a row for each, the summary of them, tasks that are the same for every policy."""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ecomlab import Shop
from ecomlab.evaluation import local, tasks
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.heldout import EPISODE, play_held_out, summarize
from ecomlab.models.batch import Rollout
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.reward import Score


class Scripted:
    """Stands in for a policy: every third episode is right, every fourth fails on our side."""

    renderer: Any = None

    def sampler(self, *_: Any, **__: Any) -> Any:
        return None


POLICY: Any = Scripted()


def rollout_of(task: Any) -> Rollout:
    place = task.seed % tasks.TASKS_A_BLOCK
    asking = {"questions": 2, "learned": 3, "absent": 0}
    parts = {"task": 0.5, "efficiency": -1.0, "hallucination": 0.0}
    score, end = Score(0.25, place % 3 == 0, "x", parts, asking=asking), "submit"
    if place % 4 == 3:
        score, end = Score.failed_by_us("x"), "failed"
    if place % 4 == 2:
        score, end = Score(-1.0, False, "x", {"invalid": -1.0}), "invalid"
    return Rollout(task, [1, 1, 1], [2] * 5, [1, 1, 0, 0, 1], [0.0] * 5, score, end, turns=2)


@pytest.fixture
def played(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that are played, last first in each batch; each has an outcome by its seed."""
    seen: list[Any] = []

    def play(given: Any, *_: Any) -> Iterator[tuple[int, Rollout]]:
        tasks = [named.draw(shop).task for named in given]
        seen.extend(tasks)
        return ((number, rollout_of(tasks[number])) for number in reversed(range(len(tasks))))

    monkeypatch.setattr(local, "play_each", play)
    return seen


def test_a_row_says_everything_about_its_episode(shop: Shop, played: list[Any]) -> None:
    axes = {"cart.items": 2, "p_missing": 0}
    jobs = Cells(("CART",), (2, 0), 4, block=1, axes=axes).jobs()
    rows = play_held_out(POLICY, jobs, shop, decodings=("greedy",))
    assert [(row["d"], row["task_seed"]) for row in rows] == [
        (d, seed) for d in (2, 0) for seed in tasks.held_out_seeds(1, 4)
    ]
    assert all(set(row) == set(EPISODE) for row in rows)
    first, second, invalid, lost = rows[:4]
    assert first == {
        "env": "CART", "d": 2, "axes": "cart.items=2 p_missing=0", "block": 1, "decoding": "greedy",
        "task_seed": 2**31 + tasks.TASKS_A_BLOCK, "correct": 1, "end": "submit", "reward": 0.25, "reward_task": 0.5,
        "reward_efficiency": -1.0, "reward_hallucination": 0.0, "turns": 2, "questions": 2, "learned": 3, "tokens": 3,
        "context_tokens": 8,
    }  # fmt: skip
    assert (second["correct"], invalid["correct"], invalid["reward"]) == (0, 0, -1.0)
    assert math.isnan(lost["correct"]) and math.isnan(lost["reward"]) and math.isnan(lost["questions"])
    assert math.isnan(invalid["reward_task"]) and lost["end"] == "failed"


def test_rows_come_by_environment_block_decoding_and_level(shop: Shop, played: list[Any]) -> None:
    """However they were played: in batches of three, over everything."""
    blocks = [Cells((env,), (1, 0), 2, block).jobs() for env in ("PD", "CART") for block in (0, 1)]
    jobs = [job for block in blocks for job in block]
    rows = play_held_out(POLICY, jobs, shop, decodings=("sampled", "greedy"), batch=3)
    assert [(row["env"], row["block"], row["decoding"], row["d"]) for row in rows[::2]] == [
        (env, block, decoding, d)
        for env in ("PD", "CART") for block in (0, 1) for decoding in ("sampled", "greedy") for d in (1, 0)
    ]  # fmt: skip


def test_processes_share_the_jobs_and_have_all_rows(shop: Shop, played: list[Any]) -> None:
    jobs = Cells(("CART",), (0,), 5).jobs()
    shares: list[Any] = []

    def gather(value: Any) -> list[Any]:
        shares.append(value)
        return list(shares)

    def process(rank: int) -> Any:
        return SimpleNamespace(rank=rank, workers=2, all_gather=gather)

    kept: list[int] = []
    play_held_out(POLICY, jobs, shop, processes=process(1))
    rows = play_held_out(
        POLICY, jobs, shop, processes=process(0), keep=lambda job, rollout, decoding: kept.append(job.seed)
    )
    assert [row["task_seed"] for row in rows] == [job.seed for job in jobs]
    assert sorted(kept) == [job.seed for job in jobs[::2]]


def test_the_summary_is_drawn_from_the_episodes_by_hand(shop: Shop, played: list[Any]) -> None:
    """Of places 0 to 7, 0 and 6 are multiples of three and scored (6 is invalid), 3 and 7 are unscored."""
    rows = play_held_out(POLICY, Cells(("CART",), (1, 3), 8).jobs(), shop)
    rows += play_held_out(POLICY, Cells(("CART",), (1,), 4).jobs(), shop, decodings=("greedy",))
    found = summarize(rows)
    assert [(row["d"], row["decoding"], row["episodes"], row["unscored"]) for row in found] == [
        (1, "sampled", 8, 2), (3, "sampled", 8, 2), (1, "greedy", 4, 1),
    ]  # fmt: skip
    assert [row["success"] for row in found] == pytest.approx([1 / 6, 1 / 6, 1 / 3])
    assert [row["reward"] for row in found] == pytest.approx([-1 / 6, -1 / 6, -1 / 6])
    (none,) = summarize([row for row in rows if row["end"] == "failed"][:1])
    assert math.isnan(none["success"]) and none["unscored"] == none["episodes"] == 1


def test_evaluation_is_the_same_for_everyone(shop: Shop) -> None:
    """Paired tasks and streams: the same rows again, whatever the batch size."""
    novice: Policy = load_policy("novice", shop, ["CART"])
    jobs = Cells(("CART",), (0, 2), 12).jobs()
    one, two = (
        play_held_out(novice, jobs, shop, decodings=("sampled", "greedy"), batch=size) for size in (64, 5)
    )
    assert [{k: str(v) for k, v in row.items()} for row in one] == [
        {k: str(v) for k, v in row.items()} for row in two
    ]
