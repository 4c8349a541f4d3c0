"""Each invariant of the training loop fails when it should: a fault is injected, and the test that guards it must fail.

The faults are the ways in which multi-turn RL goes wrong in public trackers, each as small as it would be in
a careless change. `test_without_a_fault_every_guard_passes` keeps the guards honest the other way round.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_rollouts as collecting
import test_tiny_qwen3 as rendering
import test_training as training
import torch

from ecomlab import Shop
from ecomlab.models import batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers import cached
from ecomlab.starters.compact_renderer import ShortLines
from ecomlab.training import loop, objective, rollouts, trl_trainer
from ecomlab.training.schedule import Adaptive

pytestmark = pytest.mark.slow  # each fault runs the tests that guard against it


@dataclass(frozen=True)
class Fault:
    """What goes wrong, how, and the test that must notice."""

    name: str
    inject: Callable[[pytest.MonkeyPatch], None]
    guard: Callable[..., None]
    claim: str
    """Of the assertion that must fail, as it is written there."""


def re_encoded(patch: pytest.MonkeyPatch) -> None:
    real = batch._append

    def append(play: Any, ids: Any, mask: int, logprobs: Any) -> None:
        renderer = play.dialogue._renderer
        if mask:  # decoded and encoded again, as a chat API would do
            ids = renderer.encode(renderer.decode(ids).replace("\n", " "))
            logprobs = [*logprobs, *[0.0] * len(ids)][: len(ids)]
        real(play, ids, mask, logprobs)

    patch.setattr(batch, "_append", append)


def newline_lost(patch: pytest.MonkeyPatch) -> None:
    real = ShortLines.answer
    patch.setattr(ShortLines, "answer", lambda self, messages: real(self, messages)[1:])


def tool_tokens_trained(patch: pytest.MonkeyPatch) -> None:
    real = trl_trainer.DapoTrainer._compute_loss

    def loss(self: Any, model: Any, inputs: Any) -> Any:
        return real(self, model, {**inputs, "tool_mask": torch.ones_like(inputs["tool_mask"])})

    patch.setattr(trl_trainer.DapoTrainer, "_compute_loss", loss)


def truncated_masked(patch: pytest.MonkeyPatch) -> None:
    real = objective.loss_mask
    patch.setattr(objective, "loss_mask", lambda rollout, _: real(rollout, True))


def truncated_keep_what_they_earned(patch: pytest.MonkeyPatch) -> None:
    real = objective.shaped_reward
    patch.setattr(
        objective, "shaped_reward", lambda rollout, limit, buffer, *_: real(rollout, limit, buffer, True)
    )


def padding_has_an_advantage(patch: pytest.MonkeyPatch) -> None:
    def advantages(collection: Any, *limits: Any, **_: Any) -> Any:
        return np.stack([objective.group_advantages(group.rewards) for group in collection.batch])

    patch.setattr(objective, "step_advantages", advantages)


def padding_thins_the_loss(patch: pytest.MonkeyPatch) -> None:
    real = trl_trainer.DapoTrainer.roll_out

    def roll_out(self: Any, count: int) -> Any:
        return real(self, count) | {"env_mask": [objective.loss_mask(r, False) for r in self.rollouts]}

    patch.setattr(trl_trainer.DapoTrainer, "roll_out", roll_out)


def momentum_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trl_trainer._Bookkeeping, "on_pre_optimizer_step", lambda *_, **__: None)


def mean_per_micro_batch(patch: pytest.MonkeyPatch) -> None:
    real = trl_trainer.DapoTrainer._compute_loss

    def loss(self: Any, model: Any, inputs: Any) -> Any:
        tokens = (inputs["completion_mask"] * inputs["tool_mask"]).sum()
        share = inputs["num_items_in_batch"] / tokens.clamp(min=1) / self.args.gradient_accumulation_steps
        return real(self, model, inputs) * share

    patch.setattr(trl_trainer.DapoTrainer, "_compute_loss", loss)


def padding_is_read(patch: pytest.MonkeyPatch) -> None:
    real = trl_trainer.DapoTrainer._forward

    def forward(self: Any, model: Any, input_ids: Any, attention_mask: Any, keep: int) -> Any:
        def blind(**inputs: Any) -> Any:
            return model(**{**inputs, "attention_mask": torch.ones_like(inputs["attention_mask"])})

        return real(self, blind, input_ids, attention_mask, keep)

    patch.setattr(trl_trainer.DapoTrainer, "_forward", forward)


def clipped_on_one_side(patch: pytest.MonkeyPatch) -> None:
    def loss(
        logp: Any,
        old: Any,
        advantage: Any,
        mask: Any,
        low: float = 0.2,
        high: float = 0.28,
        tokens: Any = None,
    ) -> Any:
        surrogate = torch.exp(logp - old).clamp(1 - low, 1 + low) * advantage[:, None]
        return -(surrogate * mask).sum() / (mask.sum() if tokens is None else tokens)

    patch.setattr(training, "dapo_loss", loss)


def mask_of_the_next_rollout(patch: pytest.MonkeyPatch) -> None:
    real = trl_trainer.DapoTrainer.roll_out

    def roll_out(self: Any, count: int) -> Any:
        given = real(self, count)
        given["env_mask"] = given["env_mask"][1:] + given["env_mask"][:1]
        return given

    patch.setattr(trl_trainer.DapoTrainer, "roll_out", roll_out)


def copies_of_different_tasks(patch: pytest.MonkeyPatch) -> None:
    real = batch.play_batch

    def play(tasks: Any, *rest: Any) -> Any:
        return real([*tasks[1:], tasks[0]], *rest)

    patch.setattr(rollouts, "play_batch", play)


def one_stream_for_all(patch: pytest.MonkeyPatch) -> None:
    real = cached.CachedSampler.start
    patch.setattr(
        cached.CachedSampler, "start", lambda self, streams: real(self, [streams[0]] * len(streams))
    )


def cache_of_another_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cached._RowCache, "swap", lambda self, a, b, width: None)


def unscored_is_zero(patch: pytest.MonkeyPatch) -> None:
    real = objective.group_advantages
    patch.setattr(training, "group_advantages", lambda rewards: real(np.nan_to_num(rewards, nan=0.0)))


def failure_is_a_reward(patch: pytest.MonkeyPatch) -> None:
    def as_if_the_model_had_ended_it(play: Any, error: Exception) -> None:
        play.end = "submit"
        if play.episode is not None and not play.episode.done:
            play.episode.end_truncated()

    patch.setattr(batch, "_fail", as_if_the_model_had_ended_it)


def overlong_counts_tools(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(batch.Rollout, "sampled", property(lambda self: len(self.mask)))


def schedule_starts_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Adaptive, "from_json", lambda self, state: self)


def draws_follow_the_clock(patch: pytest.MonkeyPatch) -> None:
    count = iter(range(10_000))
    real = rollouts.collect
    patch.setattr(
        loop,
        "collect",
        lambda schedule, sampling, key, *rest: real(schedule, sampling, (*key, next(count)), *rest),
    )


def discarded_groups_unreported(patch: pytest.MonkeyPatch) -> None:
    real = Adaptive.report

    def report(self: Any, draw: Any, outcomes: Any) -> Any:
        outcomes = list(outcomes)
        return real(self, draw, outcomes) if len(set(outcomes)) == 2 else self

    patch.setattr(Adaptive, "report", report)


def steps_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Adaptive, "end_step", lambda self: self)


def each_process_draws_its_own(patch: pytest.MonkeyPatch) -> None:
    real = rollouts.collect

    def collect(
        schedule: Any, sampling: Any, key: Any, shop: Any, sampler: Any, renderer: Any, processes: Any
    ) -> Any:
        return real(schedule, sampling, (*key, processes.rank), shop, sampler, renderer, processes)

    patch.setattr(collecting, "collect", collect)


FAULTS = [
    Fault("what was said is decoded and encoded again", re_encoded,
          collecting.test_the_collector_records_a_demonstration_token_for_token,
          "rollout.prompt_ids + rollout.completion_ids == expected.ids"),
    Fault("a newline is lost between two turns", newline_lost,
          rendering.test_the_text_is_qwen3s_own_format,
          '"<|im_end|>\\n<|im_start|>user\\n<tool_response>\\n" in text'),
    Fault("tool and customer tokens are trained", tool_tokens_trained,
          training.test_only_sampled_tokens_with_an_advantage_move_the_policy, "not (moved & ~trained).any()"),
    Fault("the masks of two rollouts are swapped", mask_of_the_next_rollout,
          training.test_trls_loss_and_gradient_are_the_six_line_ones, "theirs.item() == pytest.approx(ours.item()"),
    Fault("truncated episodes are left out of the loss", truncated_masked,
          training.test_the_trainer_masks_truncated_episodes_where_it_is_told_to,
          "trained == [True, not masked, True, True]"),
    Fault("a truncated episode keeps what it had earned", truncated_keep_what_they_earned,
          training.test_truncated_episodes_are_trained_with_the_lowest_reward,
          "advantages.tolist() == pytest.approx([*group_advantages([0.9, -1.0]), 0.0])"),
    Fault("groups that only fill the batch have an advantage", padding_has_an_advantage,
          training.test_padding_groups_weigh_nothing, "advantages[1].tolist() == [0.0, 0.0]"),
    Fault("groups that only fill the batch are in the loss's denominator", padding_thins_the_loss,
          training.test_groups_that_only_fill_the_batch_do_not_thin_the_gradient,
          "(gradients[1] - gradients[0]).norm() <= 1e-5 * gradients[0].norm()"),
    Fault("momentum moves the weights where nothing was trained", momentum_goes_on,
          training.test_a_step_that_teaches_nothing_leaves_the_weights_alone,
          "torch.equal(before[name], after[name])"),
    Fault("the loss is a mean over each micro-batch", mean_per_micro_batch,
          training.test_the_gradient_does_not_depend_on_the_micro_batch,
          "(other - whole).norm() <= 1e-5 * whole.norm()"),
    Fault("padding is attended to", padding_is_read,
          training.test_trls_loss_and_gradient_are_the_six_line_ones, "theirs.item() == pytest.approx(ours.item()"),
    Fault("the ratio is clipped on one side only", clipped_on_one_side,
          training.test_the_loss_of_three_tokens_by_hand, "loss.item() == pytest.approx("),
    Fault("the copies of a group are different tasks", copies_of_different_tasks,
          collecting.test_a_group_is_copies_of_one_task, "== {group.rollouts[0].task.digest()}"),
    Fault("all rows draw from one stream", one_stream_for_all,
          collecting.test_batching_does_not_matter, "results[0] == results[1]"),
    Fault("a row reads another row's cache", cache_of_another_row,
          collecting.test_batching_does_not_matter, "results[0] == results[1]"),
    Fault("an unscored episode counts as zero", unscored_is_zero,
          training.test_an_unscored_rollout_changes_nothing_for_the_others, "with_it[1] == 0.0"),
    Fault("our own failure is scored", failure_is_a_reward,
          collecting.test_an_exception_costs_one_unscored_episode,
          "[r.score.unscored for r in rollouts] == [False, True, False]"),
    Fault("the overlong penalty counts what tools said", overlong_counts_tools,
          training.test_the_overlong_penalty_counts_sampled_tokens_only,
          "shaped_reward(rollout, said + 5, 10) == pytest.approx(rollout.score.value - 0.5)"),
    Fault("a resumed run forgets the schedule's window", schedule_starts_again,
          training.test_a_killed_run_goes_on_as_if_nothing_had_happened,
          "rows_of(ours / name, *SECONDS) == rows_of(theirs / name, *SECONDS)"),
    Fault("draws depend on how often the process was started", draws_follow_the_clock,
          training.test_a_killed_run_goes_on_as_if_nothing_had_happened,
          "rows_of(ours / name, *SECONDS) == rows_of(theirs / name, *SECONDS)"),
    Fault("the schedule does not hear that a step has ended", steps_never_end,
          collecting.test_a_step_ends_with_one_check_of_all_that_it_played, 'got.schedule.window("CART") == window'),
    Fault("the schedule does not hear of discarded groups", discarded_groups_unreported,
          collecting.test_groups_that_teach_nothing_are_drawn_again_up_to_the_cap, "window.attempts == 8 * 4"),
    Fault("each process draws tasks of its own", each_process_draws_its_own,
          collecting.test_two_processes_collect_what_one_does, "ids[0] == ids[1]"),
]  # fmt: skip


def called(guard: Callable[..., None], available: dict[str, Any]) -> None:
    """Run a test by hand with what it asks for; what it patches is undone before the fault is."""
    with pytest.MonkeyPatch.context() as theirs:
        given = {**available, "monkeypatch": theirs}
        guard(**{name: given[name] for name in inspect.signature(guard).parameters})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return training.run_to_end(
        training.TrainConfig(out=str(tmp_path_factory.mktemp("runs") / "whole"), **training.TINY)
    )


@pytest.fixture
def available(shop: Shop, finished: Path, tmp_path: Path) -> dict[str, Any]:
    novice: Policy = load_policy("novice", shop, ["CART"])
    return {
        "novice": novice,
        "shop": shop,
        "tmp_path": tmp_path,
        "finished": finished,
        "greedy": False,
        "masked": False,
    }


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault: Fault, available: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault.inject(patch)
        with pytest.raises(AssertionError) as caught:
            called(fault.guard, available)
    failed = str(caught.traceback[-1].statement)
    assert fault.claim in failed, f"noticed, but not by what the test claims: {failed}"


@pytest.mark.parametrize("guard", list(dict.fromkeys(fault.guard for fault in FAULTS)))
def test_without_a_fault_every_guard_passes(guard: Callable[..., None], available: dict[str, Any]) -> None:
    called(guard, available)
