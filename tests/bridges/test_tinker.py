"""tinker-cookbook: its own rollouts and its own data for training, on groups that a stream draws."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("tinker_cookbook")

import tinker
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import trajectory_to_data
from tinker_cookbook.rl.rollouts import do_group_rollout

from ecomlab import Shop, Stream
from ecomlab.bridges.tinker import StreamDataset
from ecomlab.difficulty import COMPOSED
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import Limits
from ecomlab.seeding import rng
from ecomlab.training.schedule import windows as windows_of


@pytest.fixture(scope="module")
def novice(bridge_shop: Shop) -> Policy:
    return load_policy("novice", bridge_shop, ["CART"])


class Completer(TokenCompleter):
    """The policy behind the cookbook's interface: every turn reads the whole conversation."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.asked = policy, 0

    async def __call__(
        self, model_input: tinker.ModelInput, stop: Any, *, max_tokens: int | None = None
    ) -> Any:
        sampler = self.policy.sampler(Limits(64, 64, 1024))
        sampler.start([rng("tinker", self.asked)])
        self.asked += 1
        (said,) = sampler.turn([0], [model_input.to_ints()])
        assert said is not None
        return TokensWithLogprobs(said.ids, said.logprobs, "length" if said.truncated else "stop")


def stream_of(shop: Shop) -> Stream:
    return Stream("adaptive", "CART", groups_per_step=2, axes=COMPOSED, shop=shop, tau_acc=0.7, tau_num=8)


def test_its_rollouts_move_the_window_and_a_restored_stream_draws_alike(
    novice: Policy, bridge_shop: Shop, tell_versions: Any, log: dict[str, Any]
) -> None:
    tell_versions("tinker", "tinker-cookbook")
    stream = stream_of(bridge_shop)
    data = StreamDataset(stream, novice.renderer, batches=6, groups=2, group_size=4)
    completer, windows = Completer(novice), []
    for number in range(len(data)):
        state = json.loads(json.dumps(stream.state()))
        builders = data.get_batch(number)
        again = stream_of(bridge_shop)
        again.restore(state)
        assert [again.next_group() for _ in builders] == [one.ticket for one in builders]
        for builder in builders:
            group = asyncio.run(do_group_rollout(builder, completer))
            rewards = group.get_total_rewards()
            assert len(rewards) == 4 and all(-1 <= value <= 1 for value in rewards)
        windows.append(windows_of(stream.schedule, ["CART"])["CART"])
    log["windows"] = windows
    assert windows[-1][1] >= 2 and stream.state()["waiting"] == []


def test_an_episode_is_one_sequence_whose_mask_is_what_was_sampled(novice: Policy, bridge_shop: Shop) -> None:
    (builder,) = StreamDataset(
        stream_of(bridge_shop), novice.renderer, batches=1, groups=1, group_size=3
    ).get_batch(0)
    envs: list[Any] = []
    made = builder.make_envs

    async def remembered() -> Any:
        envs.extend(await made())
        return envs

    builder.make_envs = remembered
    group = asyncio.run(do_group_rollout(builder, Completer(novice)))
    for trajectory, env in zip(group.trajectories_G, envs, strict=True):
        (datum,) = trajectory_to_data(trajectory, 1.0)
        rollout = env.episode.rollout
        mask = datum.loss_fn_inputs["mask"].to_torch().tolist()
        whole = [0] * len(rollout.prompt_ids) + rollout.mask
        assert [bool(m) for m in mask] == [bool(m) for m in whole[1:]]
        assert sum(t.reward for t in trajectory.transitions) == pytest.approx(rollout.score.value)
