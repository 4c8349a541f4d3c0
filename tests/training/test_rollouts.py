"""Rollouts: what was sampled is what is recorded, and every group is accounted for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from runs import in_two_processes

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.episode.play import replay
from ecomlab.episode.referee import MOST_FORMAT_ERRORS
from ecomlab.evaluation.mistakes import label
from ecomlab.models.batch import Rollout, Start, play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.process_group import SINGLE_PROCESS
from ecomlab.models.samplers.cached import Limits, Sampled
from ecomlab.reward import Score, Weights
from ecomlab.seeding import EVALUATION_SEEDS, TRAINING_SEEDS, rng
from ecomlab.starters.demonstrations import demonstrate
from ecomlab.tool import load_arguments
from ecomlab.training.rollouts import DynamicSampling, Group, collect
from ecomlab.training.schedule import CHECKS, Draw, ScheduleError, make_schedule


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


def tasks_of(shop: Shop, count: int, difficulties: Sequence[int] = (0, 1, 2, 3)) -> list[Task]:
    return [make_task("CART", difficulties[i % len(difficulties)], 900 + i, shop) for i in range(count)]


def streams_of(tasks: Sequence[Task]) -> list[np.random.Generator]:
    return [rng("test", task.difficulty, task.seed) for task in tasks]


class Scripted:
    """A sampler that says given texts, one a turn: rows[i] is row i's script."""

    def __init__(self, policy: Policy, rows: Sequence[Sequence[str]]) -> None:
        self.scripts = [[policy.renderer.encode(text) for text in row] for row in rows]
        self.read: list[list[int]] = [[] for _ in rows]

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        self.turns = [iter(script) for script in self.scripts]

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled]:
        said = []
        for row, new in zip(rows, inputs, strict=True):
            ids = next(self.turns[row])
            self.read[row] += [*new, *ids]
            said.append(Sampled(ids, [-0.5] * len(ids), truncated=False))
        return said


# Sampling: the batch does not matter, and what is reported is what the model says.


@pytest.mark.parametrize("greedy", [pytest.param(True, marks=pytest.mark.slow), False])
def test_batching_does_not_matter(novice: Policy, shop: Shop, greedy: bool) -> None:
    """The same episodes for batch sizes 1, 7 and 20, in float64, so that ties do not flip."""
    novice.model.double()
    try:
        tasks = tasks_of(shop, 20)
        results = []
        for size in (20, 7, 1):
            sampler = novice.sampler(Limits(40, 120), greedy=greedy)
            rollouts: list[Rollout] = []
            some = tasks if size > 1 else tasks[:4]
            for start in range(0, len(some), size):
                part = some[start : start + size]
                rollouts += play_batch(part, streams_of(part), shop, sampler, novice.renderer)
            results.append(
                [(r.prompt_ids, r.completion_ids, r.mask, r.end, r.score.correct) for r in rollouts]
            )
        assert results[0] == results[1]
        assert results[0][:4] == results[2]
        assert len({end for *_, end, _ in results[0]}) > 1
    finally:
        novice.model.float()


def test_recorded_log_probabilities_are_the_models_own(novice: Policy, shop: Shop) -> None:
    tasks = tasks_of(shop, 12)
    rollouts = play_batch(tasks, streams_of(tasks), shop, novice.sampler(), novice.renderer)
    assert max(r.turns for r in rollouts) > 3
    for r in rollouts:
        ids = torch.tensor([r.prompt_ids + r.completion_ids])
        with torch.no_grad():
            logp = torch.log_softmax(novice.model(ids).logits[0, :-1], dim=-1).gather(1, ids[0, 1:, None])[
                :, 0
            ]
        mask = torch.tensor(r.mask)
        gap = (logp[len(r.prompt_ids) - 1 :] - torch.tensor(r.logprobs)) * mask
        assert gap.abs().max() < 1e-4
        assert all(value == 0 for value, m in zip(r.logprobs, r.mask, strict=True) if not m)


def test_limits_cut_turns_and_episodes_counting_sampled_tokens_only(novice: Policy, shop: Shop) -> None:
    task = make_task("CART", 0, 1, shop)
    for limits, most in ((Limits(turn=4), 4), (Limits(episode=11), 11), (Limits(context=40), 39)):
        (cut,) = play_batch([task], [rng("x")], shop, novice.sampler(limits, greedy=True), novice.renderer)
        assert cut.end == "truncated" and cut.sampled <= most and not cut.score.correct
        assert not cut.score.unscored
    (none,) = play_batch([task], [rng("x")], shop, novice.sampler(Limits(context=5)), novice.renderer)
    assert none.end == "truncated" and none.sampled == 0 and none.mask == [0]


def test_a_diverged_policy_stops_the_run_instead_of_babbling(shop: Shop) -> None:
    policy = load_policy("novice", shop, ["CART"])
    with torch.no_grad():
        policy.model.get_decoder().norm.weight.fill_(float("nan"))
    tasks = tasks_of(shop, 2)
    with pytest.raises(FloatingPointError, match="lower lr.*another dtype"):
        play_batch(tasks, streams_of(tasks), shop, policy.sampler(), policy.renderer)


# Tokens: the record is the concatenation of what was read and what was said.


def test_the_collector_records_a_demonstration_token_for_token(novice: Policy, shop: Shop) -> None:
    """Scripted to say what the demonstrator says, the collector's ids and mask are the demonstration's."""
    for seed in range(12):
        task = make_task("CART", seed % 5, seed, shop)
        expected = demonstrate(task, shop, novice.renderer)
        turns = [text + "<|im_end|>" for text in said(novice, expected.ids, expected.mask)]
        sampler = Scripted(novice, [turns])
        (rollout,) = play_batch([task], [rng("x")], shop, sampler, novice.renderer)
        assert rollout.prompt_ids + rollout.completion_ids == expected.ids
        assert [0] * len(rollout.prompt_ids) + rollout.mask == expected.mask
        assert rollout.score.correct == expected.correct
        assert sampler.read[0] == expected.ids, "each turn's input extends the last one's ids"


def said(policy: Policy, ids: Sequence[int], mask: Sequence[int]) -> list[str]:
    """The policy's turns, decoded from the masked tokens."""
    masked = [i for i, m in zip(ids, mask, strict=True) if m]
    return policy.renderer.decode(masked).split("<|im_end|>")[:-1]


# Ends.

SUBMIT = '<tool_call>\n{"name": "submit", "arguments": {"done": true}}\n</tool_call><|im_end|>'


def test_every_kind_of_end_stops_its_row_alone(novice: Policy, shop: Shop) -> None:
    task = make_task("CART", 0, 3, shop)
    more = ["Anything else?<|im_end|>"] * 50
    search = ['<tool_call>\n{"name": "cart_view", "arguments": {}}\n</tool_call><|im_end|>'] * 50
    rows = [[SUBMIT], ["<tool_call>\nnot json\n</tool_call><|im_end|>"], more, search]
    rows += [['<tool_call>\n{"name": "fly", "arguments": {}}\n</tool_call><|im_end|>'] * MOST_FORMAT_ERRORS]
    rollouts = play_batch([task] * 5, [rng("x")] * 5, shop, Scripted(novice, rows), novice.renderer)
    assert [r.end for r in rollouts] == ["submit", "invalid", "patience", "turns", "invalid"]
    assert [r.score.value for r in rollouts][1] == -1.0
    assert all(len(r.completion_ids) == len(r.mask) == len(r.logprobs) for r in rollouts)
    assert all(r.mask[-1] == 1 for r in rollouts), "nothing is recorded that nobody reads"


def test_an_exception_costs_one_unscored_episode(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(shop, 3, [0])
    real = Episode.act

    def broken(self: Episode, message: Any) -> Any:
        if self.task.seed == tasks[1].seed:
            raise ZeroDivisionError("ours")
        return real(self, message)

    monkeypatch.setattr(Episode, "act", broken)
    rollouts = play_batch(
        tasks, streams_of(tasks), shop, Scripted(novice, [[SUBMIT] * 2] * 3), novice.renderer
    )
    assert [r.score.unscored for r in rollouts] == [False, True, False]
    assert rollouts[1].end == "failed" and "ZeroDivisionError: ours" in rollouts[1].score.why
    assert np.isnan(rollouts[1].score.value)


def test_a_task_that_cannot_be_drawn_costs_its_group_alone(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rollouts are unscored, the schedule hears of no outcome, and everything else is as it was."""
    schedule = make_schedule("static-0-2", ["CART"])

    def collected_once() -> Any:
        novice.model.double()  # another batch is rounded otherwise
        try:
            sampling = DynamicSampling(prompts=4, group_size=3, rounds=1)
            return collect(schedule, sampling, ("lost", 1), shop, novice.sampler(), novice.renderer)
        finally:
            novice.model.float()

    before = collected_once()
    lost = before.groups[2].rollouts[0].task
    cart = type(ENVIRONMENTS["CART"])
    real = cart.draw

    def draw(self: Any, key: Any, *rest: Any) -> Any:
        if key == lost.key:
            raise ZeroDivisionError("ours")
        return real(self, key, *rest)

    monkeypatch.setattr(cart, "draw", draw)
    after = collected_once()
    group = after.groups[2]
    assert group.draw == Draw("CART", lost.difficulty) and group.outcomes == [None] * 3
    assert all("ZeroDivisionError: ours" in r.score.why and r.end == "failed" for r in group.rollouts)
    assert not group.effective("correct") and not group.effective("reward") and group not in after.kept
    for i in (0, 1, 3):
        assert [(r.completion_ids, r.score) for r in after.groups[i].rollouts] == [
            (r.completion_ids, r.score) for r in before.groups[i].rollouts
        ]


@pytest.mark.parametrize("given", [0.0, 0.3, 0.7, 0.99])
def test_turns_that_a_demonstrator_gives_are_read_and_never_trained(
    given: float, novice: Policy, shop: Shop
) -> None:
    tasks = tasks_of(shop, 6, (0, 2, 4))
    starts = [Start(task, Weights(task=0.5), given) for task in tasks]
    rollouts = play_batch(starts, streams_of(tasks), shop, novice.sampler(), novice.renderer)
    for task, rollout in zip(tasks, rollouts, strict=True):
        teacher = novice.renderer.dialogue().teacher("CART", shop)
        assert teacher is not None
        whole = [m for m in play(teacher, task, shop).messages if m["role"] == "assistant"]
        turns = min(round(given * len(whole)), len(whole) - 1)
        assert rollout.trajectory is not None and rollout.turns >= 1
        messages = [m for m in rollout.trajectory.messages if m["role"] == "assistant"]
        refused = sum("nothing was handed in" in str(m["content"]) for m in rollout.trajectory.messages)
        cut = rollout.end == "truncated"  # a message that is cut off is no turn
        assert len(messages) == rollout.trajectory.turns + refused == turns + rollout.turns - cut
        assert [calls_of(m) for m in messages[:turns]] == [calls_of(m) for m in whole[:turns]]
        prompt = novice.renderer.decode(rollout.prompt_ids)
        assert prompt.count("<|im_start|>assistant") == turns + 1
        mask = [0] * len(rollout.prompt_ids) + rollout.mask
        begun = sum(now and not before for before, now in pairwise(mask))
        texts = said(novice, rollout.prompt_ids + rollout.completion_ids, mask)
        assert begun == rollout.turns and begun - cut <= len(texts), "only what the policy has said"
        assert replay(rollout.trajectory, shop) == rollout.score
        assert rollout.score.weights["task"] == 0.5


def calls_of(message: Any) -> list[Any]:
    """Names and arguments of a message's calls, however these are written."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return [(call["name"], load_arguments(call["name"], call["arguments"])) for call in calls]


@pytest.mark.parametrize("given", [{"given": 0.5}, {"planted": "wrong quantity"}])
def test_a_schedule_moves_axes_and_gives_turns(novice: Policy, shop: Shop, given: dict[str, Any]) -> None:
    overrides = {"cart.items": 2.0, "cart.p_option": 0.0}

    class Mine:
        def draw(self, rng: np.random.Generator) -> Draw:
            return Draw("CART", int(rng.integers(3)), overrides, **given)

        def report(self, draw: Draw, outcomes: Any) -> "Mine":
            heard.append((draw, list(outcomes)))
            return self

        def to_json(self) -> dict[str, Any]:
            return {}

        def from_json(self, state: Any) -> "Mine":
            return self

    heard: list[Any] = []
    sampling = DynamicSampling(prompts=2, group_size=2, rounds=1, axes={"p_missing": 0.0})
    got = collect(Mine(), sampling, ("mine", 1), shop, novice.sampler(), novice.renderer)
    assert heard == [(group.draw, group.outcomes) for group in got.groups]
    for rollout in (r for group in got.groups for r in group.rollouts):
        assert rollout.task is not None and rollout.trajectory is not None
        assert rollout.task.overrides == {"p_missing": 0.0, **overrides}
        assert rollout.trajectory.turns > rollout.turns
        first = label(rollout.trajectory, shop).first
        wrong = first and (first.kind, first.turn) == (
            "wrong quantity",
            rollout.trajectory.turns - rollout.turns,
        )
        assert wrong or not given.get("planted"), "the last given turn"
    with pytest.raises(ScheduleError, match="CART"):
        collect(Mine(), replace(sampling, envs=("PD",)), ("mine", 1), shop, novice.sampler(), novice.renderer)
    drawless: Any = type("Drawless", (Mine,), {"draw": lambda self, random: None})
    with pytest.raises(ScheduleError, match="returned None"):
        collect(drawless(), sampling, ("mine", 1), shop, novice.sampler(), novice.renderer)


# Groups.


def rollout_of(task: Task, value: float, correct: bool = False, unscored: bool = False) -> Rollout:
    score = Score.failed_by_us("x") if unscored else Score(value, correct, "x")
    return Rollout(task, [1], [2], [1], [-1.0], score, "submit", 1)


def test_what_makes_a_group_effective(shop: Shop) -> None:
    task = make_task("CART", 0, 0, shop)

    def group(*cells: tuple[float, bool] | None) -> Group:
        made = [rollout_of(task, 0, unscored=True) if c is None else rollout_of(task, *c) for c in cells]
        return Group(Draw("CART", 0), tuple(made))

    mixed = group((0.9, True), (-0.5, False), None)
    shaped = group((-0.5, False), (-0.9, False))
    equal = group((0.1 + 0.2, True), (0.3, True), None)
    assert mixed.effective("correct") and mixed.effective("reward")
    assert not shaped.effective("correct") and shaped.effective("reward")
    assert not equal.effective("correct") and not equal.effective("reward")
    assert mixed.outcomes == [True, False, None]
    assert not group((0.9, True), None).effective("correct")
    assert not group(None, None).effective("reward")


class Fated:
    """A sampler whose row succeeds or fails as `fate(group number, copy)` says, by submitting a right or empty cart."""

    def __init__(self, policy: Policy, shop: Shop, fate: Any, size: int) -> None:
        self.policy, self.shop, self.fate, self.size = policy, shop, fate, size
        self.group = 0

    def start(self, streams: Sequence[np.random.Generator]) -> None:
        self.rows = len(streams)
        self.first = self.group
        self.group += self.rows // self.size
        self.turns: list[Iterator[list[int]] | None] = [None] * self.rows

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list[Sampled]:
        said = []
        for row in rows:
            if self.turns[row] is None:
                self.turns[row] = iter(self._script(row))
            ids = next(self.turns[row])  # type: ignore[arg-type]
            said.append(Sampled(ids, [-1.0] * len(ids), truncated=False))
        return said

    def _script(self, row: int) -> list[list[int]]:
        if not self.fate(self.first + row // self.size, row % self.size):
            return [self.policy.renderer.encode(SUBMIT)] * 2  # the first one may be refused with a notice
        played = demonstrate(self.tasks[row // self.size], self.shop, self.policy.renderer)
        return [
            self.policy.renderer.encode(text + "<|im_end|>")
            for text in said(self.policy, played.ids, played.mask)
        ]

    tasks: list[Task]


def collected(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch, fate: Any, rule: Any = None, **settings: Any
) -> Any:
    """A collection in which fate decides, with the draws made visible to the scripted policy."""
    sampling = DynamicSampling(**{"prompts": 3, "group_size": 4, **settings})
    sampler: Any = Fated(novice, shop, fate, sampling.group_size)
    import ecomlab.training.rollouts as module

    real = vars(module)["play_batch"]  # as it is now: a fault may stand in for it

    def spy(tasks: Any, *args: Any) -> Any:
        sampler.tasks = [start.task for start in tasks[:: sampling.group_size]]
        return real(tasks, *args)

    monkeypatch.setattr(module, "play_batch", spy)
    schedule = make_schedule("adaptive", ["CART"], **(rule or {"tau_num": 1_000}))
    return collect(schedule, sampling, ("test", 0), shop, sampler, novice.renderer)


def test_a_group_is_copies_of_one_task(novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    got = collected(novice, shop, monkeypatch, lambda group, copy: copy == 0)
    assert len(got.kept) == 3 and not got.padding and got.rounds == 1
    for group in got.batch:
        assert {r.task.digest() for r in group.rollouts} == {group.rollouts[0].task.digest()}
        assert group.outcomes == [True, False, False, False]
        assert group.draw.level == group.rollouts[0].task.difficulty
        assert group.rollouts[0].task.seed in TRAINING_SEEDS
    assert len({group.rollouts[0].task.digest() for group in got.batch}) == 3


def test_groups_that_teach_nothing_are_drawn_again_up_to_the_cap(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = collected(novice, shop, monkeypatch, lambda group, copy: group == 4 and copy < 2)
    assert got.rounds == 3 and len(got.groups) == 3 + 3 + 2
    assert len(got.kept) == 1 and len(got.padding) == 2 and len(got.batch) == 3
    window = got.schedule.windows[0]
    assert window.attempts == 8 * 4 and window.correct == 2, (
        "the schedule heard of every group, discarded ones too"
    )


def test_a_step_ends_with_one_check_of_all_that_it_played(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds of three groups, all correct: checked by group, the window moves between the rounds already."""
    found = {}
    for check_every in CHECKS:
        rule = {"tau_num": 4, "check_every": check_every}
        with monkeypatch.context() as patch:
            found[check_every] = collected(novice, shop, patch, lambda group, copy: True, rule, rounds=2)
    got, window = found["step"], (0, 1)
    assert {group.draw.level for group in got.groups} == {0} and len(got.groups) == 6
    assert got.schedule.window("CART") == window
    assert found["group"].schedule.window("CART")[1] > 1


def test_two_processes_collect_what_one_does(novice: Policy, shop: Shop) -> None:
    """Groups, order, rounds and schedule; also where one process has a group to play and the other none."""
    novice.model.double()  # another batch is rounded otherwise
    try:
        schedule = make_schedule("adaptive", ["CART"], tau_num=6)
        for prompts in (3, 1):
            sampling = DynamicSampling(prompts=prompts, group_size=3, rounds=3)

            def collected_by(processes: Any, sampling: DynamicSampling = sampling) -> Any:
                return collect(
                    schedule, sampling, ("crew", 2), shop, novice.sampler(), novice.renderer, processes
                )

            alone = collected_by(SINGLE_PROCESS)
            for got in in_two_processes(collected_by):
                for part in ("kept", "padding", "groups"):
                    ids = [
                        [
                            (r.task.digest(), r.completion_ids, r.mask, r.score)
                            for g in groups
                            for r in g.rollouts
                        ]
                        for groups in (getattr(got, part), getattr(alone, part))
                    ]
                    assert ids[0] == ids[1], part
                assert got.rounds == alone.rounds and got.schedule == alone.schedule
                assert got.seconds["waiting"] > 0 and sum(got.seconds.values()) > 0
    finally:
        novice.model.float()


def test_training_and_evaluation_seeds_are_disjoint(shop: Shop) -> None:
    assert not set(TRAINING_SEEDS[:: 2**20]) & set(EVALUATION_SEEDS[:: 2**20])
    assert TRAINING_SEEDS.stop <= EVALUATION_SEEDS.start
    trained = {make_task("CART", 0, TRAINING_SEEDS.start + i, shop).digest() for i in range(200)}
    held_out = {make_task("CART", 0, EVALUATION_SEEDS.start + i, shop).digest() for i in range(200)}
    assert not trained & held_out and len(held_out) == 200
