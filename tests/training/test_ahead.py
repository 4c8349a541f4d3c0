"""Rollouts one step ahead: who sampled what is known, promotions keep the order of drawing, a kill loses little."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Killed, assert_same_run, kill_at, kill_minus_nine, rows_of, train_in_two
from test_training import TINY, assert_same_steps, batch_of, gradient_of, plain_logps, trainer_of

from ecomlab import Shop
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.seeding import rng
from ecomlab.training import checkpoints, loop
from ecomlab.training.ahead import Ahead, StoppedError, mirror
from ecomlab.training.config import ConfigError, TrainConfig, check_split
from ecomlab.training.loop import train
from ecomlab.training.objective import capped_ratio, loss_mask
from ecomlab.training.rollouts import Collection
from ecomlab.training.trl_trainer import DapoTrainer

SETTINGS: dict[str, Any] = {
    **TINY,
    "steps": 3,
    "ahead": True,
    "lr": 1e-3,
    "eval_every": 0,
    "eval_episodes": 2,
}


@dataclass
class Record:
    """What a run did: what it was asked to collect and found, and its weights by how many steps they were trained."""

    out: Path
    schedules: list[Any] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    weights: dict[int, dict[str, torch.Tensor]] = field(default_factory=dict)


def recorded(out: Path, patch: pytest.MonkeyPatch, progress: Any = None, **settings: Any) -> Record:
    record = Record(out)
    collect, end_step = vars(loop)["collect"], DapoTrainer.end_step

    def spy(schedule: Any, *args: Any) -> Collection:
        assert threading.current_thread() is not threading.main_thread()
        record.schedules.append(schedule)
        record.collections.append(collect(schedule, *args))
        return record.collections[-1]

    def keep(self: Any, number: int, broken: str = "") -> None:
        record.weights[number] = {k: v.clone() for k, v in self.model.state_dict().items()}
        end_step(self, number, broken)

    with patch.context() as patched:
        patched.setattr(loop, "collect", spy)
        patched.setattr(DapoTrainer, "end_step", keep)
        train(TrainConfig(out=str(out), **{**SETTINGS, **settings}), progress)
    return record


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """An uninterrupted run of three steps."""
    with pytest.MonkeyPatch.context() as patch:
        yield recorded(tmp_path_factory.mktemp("ahead") / "whole", patch)


def test_every_token_has_the_version_of_the_weights_that_sampled_it(whole: Record, shop: Shop) -> None:
    """Its recorded log-probability is theirs, and not that of the weights which it trains."""
    assert [c.version for c in whole.collections] == [0, 0, 1]
    assert [row["version"] for row in rows_of(whole.out / "ahead.csv")] == ["0", "0", "1"]
    policy = load_policy("novice", shop, ["CART"])
    whole.weights[0] = {k: v.clone() for k, v in policy.model.state_dict().items()}
    apart = []
    for step, collection in enumerate(whole.collections):
        rollouts = [r for g in collection.groups[:2] for r in g.rollouts[:2]]
        assert {r.version for g in collection.groups for r in g.rollouts} == {collection.version}
        for version in (collection.version, step):
            assert version is not None
            policy.model.load_state_dict(whole.weights[version])
            with torch.no_grad():
                gaps = [
                    ((plain_logps(policy.model, r) - torch.tensor(r.logprobs)) * torch.tensor(r.mask))
                    .abs()
                    .max()
                    for r in rollouts
                ]
            if version == collection.version:
                assert max(gaps) < 1e-4
            else:
                apart.append(float(max(gaps)))
    assert max(apart) > 1e-2, "the weights had moved"


def test_promotions_are_applied_in_the_order_of_drawing(whole: Record) -> None:
    """Every step draws by the schedule that has heard of all groups of the steps before it."""
    after = [c.schedule for c in whole.collections]
    assert whole.schedules[1:] == after[:-1]
    windows = [schedule.window("CART") for schedule in whole.schedules]
    assert len(set(windows)) > 1, "it moves"
    for (low, high), collection in zip(windows, whole.collections, strict=True):
        assert all(low <= group.difficulty <= high for group in collection.groups)
    by_step = {
        row["step"]: (int(row["d_low"]), int(row["d_high"])) for row in rows_of(whole.out / "train.csv")
    }
    assert list(by_step.values()) == windows


def test_the_ratio_is_told_and_the_gap_is_to_the_weights_that_sampled(whole: Record) -> None:
    told = rows_of(whole.out / "ahead.csv")
    gaps = {row["step"]: row["logp_gap"] for row in rows_of(whole.out / "train.csv")}
    assert any(int(row["tokens"]) for row in told)
    assert float(told[0]["ratio_max"]) == 1.0 and float(gaps["1"]) < 1e-4
    for row in told[1:]:
        if int(row["tokens"]):
            assert float(row["ratio_max"]) > 1.01 and 1 > float(row["capped"]) >= 0, "the weights have moved"
            assert 0 < float(gaps[row["step"]]) < 1e-4, "those that sampled agree with the sampler"
    assert any(gaps[row["step"]] != "nan" for row in told[1:])


def test_a_player_that_keeps_its_first_weights_shows_in_the_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 2 is sampled by the first weights either way, step 3 should not be."""
    monkeypatch.setattr(loop, "mirror", lambda model, copy: None)
    run = recorded(tmp_path / "run", monkeypatch)
    gaps = {row["step"]: float(row["logp_gap"]) for row in rows_of(run.out / "train.csv")}
    assert gaps["2"] < 1e-4 < 1e-2 < gaps["3"]


def test_comparing_with_older_weights_changes_none_of_todays(
    whole: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DapoTrainer, "_compare", lambda *args, **given: None)
    without = recorded(tmp_path / "run", monkeypatch)
    assert without.weights.keys() == {
        1,
        2,
        3,
    }  # another test adds those from before the first step to the whole run's
    for number, weights in without.weights.items():
        assert all(torch.equal(weights[n], whole.weights[number][n]) for n in weights), number


def test_the_copy_that_plays_is_on_the_device_of_the_model() -> None:
    model, copy = torch.nn.Linear(2, 3, device="meta"), torch.nn.Linear(2, 3)
    mirror(model, copy)
    assert {p.device.type for p in copy.parameters()} == {"meta"}, "a GPU's stand-in"
    model = torch.nn.Linear(2, 3)
    copy = torch.nn.Linear(2, 3)
    mirror(model, copy)
    assert torch.equal(copy.weight, model.weight) and copy.weight is not model.weight


def test_a_run_does_not_depend_on_when_its_rollouts_come(
    whole: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here they come before the update begins."""
    monkeypatch.setattr(
        Ahead, "begin", lambda self, play, begin=Ahead.begin: (begin(self, play), self.land())
    )
    again = recorded(tmp_path / "again", monkeypatch)
    assert_same_run(again.out, whole.out)
    assert rows_of(again.out / "ahead.csv") == rows_of(whole.out / "ahead.csv")


def test_a_kill_loses_the_rollouts_in_flight_and_nothing_else(
    whole: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is drawn stays, and what was in flight is sampled anew, by newer weights."""
    out = tmp_path / "run"
    with pytest.raises(Killed):
        recorded(out, monkeypatch, kill_at(2))
    assert not [t for t in threading.enumerate() if t.name == "ecomlab-ahead"]
    rest = recorded(out, monkeypatch)
    assert [row["version"] for row in rows_of(out / "ahead.csv")] == ["0", "1", "1"]
    for name in ("train.csv", "ahead.csv"):
        one, two = ([row for row in rows_of(run / name) if int(row["step"]) <= 1] for run in (out, whole.out))
        assert [{k: v for k, v in row.items() if "seconds" not in k} for row in one] == [
            {k: v for k, v in row.items() if "seconds" not in k} for row in two
        ]
    assert rest.schedules[0] == whole.schedules[1]
    assert first_tasks(rest.collections[0]) == first_tasks(whole.collections[1])


@pytest.mark.slow
def test_a_kill_minus_nine_loses_no_step_that_has_a_checkpoint(tmp_path: Path) -> None:
    """With every switch that a laptop has on. What was in flight is sampled anew, by the checkpoint's weights."""
    switches = {"early_refill": True, "micro_tokens": 2_000, "checkpoint_every": 2, "steps": 6}
    config = TrainConfig(out=str(tmp_path / "run"), **{**SETTINGS, **switches})
    kill_minus_nine(config, 2)
    out = Path(config.out)
    before = [rows_of(out / name) for name in ("train.csv", "ahead.csv")]
    last = checkpoints.newest(out / "checkpoints")
    assert last is not None and last.step >= 2
    train(config)
    kept = [[row for row in rows if int(row["step"]) <= last.step] for rows in before]
    after = [rows_of(out / name) for name in ("train.csv", "ahead.csv")]
    assert [rows[: len(old)] for rows, old in zip(after, kept, strict=True)] == kept
    versions = {int(row["step"]): int(row["version"]) for row in after[1]}
    assert versions == {step: max(step - 2, 0) + (step == last.step + 1) for step in range(1, 7)}


FIRST_PLAYS = """
from ecomlab.training import loop
from ecomlab.training.distributed import OneWorker
join = loop.join_processes
loop.join_processes, loop.check_split = lambda: OneWorker(join()), lambda *_: None
"""
"""Lets the first process play alone, as it does with a vLLM server, without one."""


@pytest.mark.slow
def test_two_processes_train_on_what_the_first_has_played_ahead(tmp_path: Path) -> None:
    """They take the steps of one process, by rollouts of the same weights."""
    settings = {**SETTINGS, "prompts_per_step": 4, "rounds": 1, "schedule": "static-0-5", "lr": 3e-4}
    alone = train(TrainConfig(out=str(tmp_path / "alone"), **settings))
    together = train_in_two(TrainConfig(out=str(tmp_path / "together"), **settings), before=FIRST_PLAYS)
    assert_same_steps(alone, together)
    told = [rows_of(run / "ahead.csv") for run in (alone, together)]
    assert [row["version"] for row in told[1]] == ["0", "0", "1"]
    assert [row["tokens"] for row in told[0]] == [row["tokens"] for row in told[1]]
    assert any(float(row["ratio_max"]) > 1 for row in told[1] if int(row["tokens"]))
    for one, two in zip(*told, strict=True):
        assert float(one["ratio_mean"]) == pytest.approx(float(two["ratio_mean"]), rel=1e-3, nan_ok=True)


def first_tasks(collection: Collection) -> list[str]:
    """The tasks of the first round, which hang on the schedule alone."""
    tasks = [g.rollouts[0].task for g in collection.groups if g.round == 0]
    return [task.digest() for task in tasks if task]


def test_the_loss_begins_at_the_policy_as_it_is_and_weighs_what_an_older_one_sampled(
    shop: Shop, tmp_path: Path
) -> None:
    """Against three lines of torch on each row alone, with a policy that moves after sampling and before the loss."""
    policy = load_policy("novice", shop, ["CART"])
    trainer = trainer_of(policy, tmp_path, ahead=True, ratio_cap=1.1)
    gather = trainer.collect

    def older(number: int) -> Collection:
        found = replace(gather(number), version=-1)
        move(policy, "after sampling")
        return found

    trainer.collect = older
    batch = batch_of(trainer)
    began = [plain_logps(policy.model, r).detach() for r in trainer.rollouts]
    move(policy, "before the loss")
    theirs = gradient_of(policy.model, trainer._compute_loss(policy.model, batch))

    kept = {id(r) for group in trainer.collection.kept for r in group.rollouts}
    tokens = sum(sum(loss_mask(r)) for r in trainer.rollouts if id(r) in kept)
    parts, capped = [], 0
    for r, old, advantages in zip(trainer.rollouts, began, batch["advantages"], strict=True):
        ratio, sampled = plain_logps(policy.model, r).sub(old).exp(), torch.tensor(r.logprobs)
        weight = (old - sampled).exp().clamp(max=1.1)
        mask = torch.tensor(loss_mask(r))
        plain = advantages[: len(mask)][mask.bool()] / weight[mask.bool()]
        if not plain.any():
            continue
        advantage = plain.mean()
        assert torch.allclose(plain, advantage, rtol=1e-3), "one advantage for an episode, weighed by token"
        surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage) * weight
        parts.append(-(surrogate * mask).sum() / tokens)
        capped += int((((old - sampled).exp() > 1.1) & mask.bool()).sum())
    ours = gradient_of(policy.model, torch.stack(parts).sum())
    assert (theirs - ours).norm() <= 1e-4 * ours.norm()
    assert capped and trainer.ratio["capped"] == pytest.approx(capped / trainer.ratio["tokens"])


def move(policy: Policy, name: str) -> None:
    noise = rng("moved", name)
    with torch.no_grad():
        for p in policy.model.parameters():
            p.add_(torch.tensor(noise.normal(0, 2e-2, tuple(p.shape)), dtype=p.dtype))


def test_the_capped_ratio_by_hand() -> None:
    now, then = torch.tensor([0.5, 0.9, 0.2]).log(), torch.tensor([0.4, 0.3, 0.4]).log()
    assert capped_ratio(now, then, 2.0).tolist() == pytest.approx([1.25, 2.0, 0.5])


def test_an_error_in_flight_is_raised_where_its_rollouts_are_wanted() -> None:
    def fail() -> Collection:
        raise ZeroDivisionError("ours")

    ahead = Ahead()
    ahead.begin(fail)
    ahead.land()
    assert ahead.busy
    with pytest.raises(ZeroDivisionError, match="ours"):
        ahead.take()
    assert not ahead.busy


def test_a_run_that_stops_ends_its_flight_after_a_turn() -> None:
    """Not after its episodes, which may take many minutes."""

    class Endless:
        def turn(self, rows: Any, inputs: Any) -> Any:
            begun.set()
            return [None for _ in rows]

    begun, ahead = threading.Event(), Ahead()
    sampler = ahead.watched(Endless())  # type: ignore[arg-type]

    def play() -> Any:
        while True:
            sampler.turn([0], [[]])

    ahead.begin(play)
    begun.wait()
    ahead.stop()
    with pytest.raises(StoppedError):
        ahead.take()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"starter": "Qwen/Qwen3-8B"}, "ahead needs a second copy of the weights"),
        ({"starter": "Qwen/Qwen3-8B", "generation": "vllm-colocate"}, "choose generation = 'vllm-server'"),
    ],
)
def test_ahead_is_refused_where_the_weights_that_sample_would_change(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(ahead=True, **settings)
    with pytest.raises(ConfigError, match="ahead is for one process"):
        check_split(TrainConfig(ahead=True), 2)
