"""Gymnasium: the twenty tasks through its loop give our scores; its own checker has nothing to say."""

import json
import warnings

import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env

import ecomlab.bridges.gymnasium as bridge
from bridges.twenty import SHOP, sample_jobs, sample_player, write_message
from ecomlab import ENVIRONMENTS
from ecomlab.bridges.common import score_from_json
from ecomlab.reward import INVALID

IDS = bridge.register()
CART = f"ecomlab/CART-v{ENVIRONMENTS['CART'].version}"


def played(job):
    """Play a job by Gymnasium's loop: the total reward, the last info, the number of steps."""
    env = gymnasium.make(f"ecomlab/{job.env}-v{ENVIRONMENTS[job.env].version}", difficulty=job.d, size=SHOP)
    player = sample_player(job, env.unwrapped.shop)
    observation, info = env.reset(seed=job.seed)
    first, total, done, steps = json.loads(observation), 0.0, False, 0
    messages, tools = first["messages"], first["tools"]
    while not done:
        message = player(list(messages), tools)
        observation, reward, done, truncated, info = env.step(write_message(message))
        messages += [message, *json.loads(observation)]
        total, steps = total + reward, steps + 1
        assert not truncated
    return total, info, steps


def test_the_twenty_tasks_score_as_in_our_own_loop(same, ours, log, tell_versions):
    tell_versions("gymnasium", "numpy")
    for job in sample_jobs():
        total, info, steps = played(job)
        same(job, score_from_json(info["score"]))
        assert total == ours(job).score.value
        assert (info["end"], info["turns"], info["calls"]) == (
            ours(job).end,
            ours(job).turns,
            ours(job).calls,
        )
        assert steps == sum(message["role"] == "assistant" for message in ours(job).messages)


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_passes(name, log):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, size=SHOP).unwrapped)
    log.setdefault("check_env", []).append(name)


def test_the_version_in_the_id_is_the_environments():
    assert sorted(IDS) == [f"ecomlab/{name}-v{ENVIRONMENTS[name].version}" for name in sorted(ENVIRONMENTS)]


def test_a_seed_names_a_task_and_none_draws_another_each_time():
    env = gymnasium.make(f"ecomlab.bridges.gymnasium:{CART}", size=SHOP)
    named, again = env.reset(seed=5), env.reset(seed=5)
    assert named == again
    drawn = [env.reset()[1]["task"]["seed"] for _ in range(3)]
    assert len({*drawn, 5}) == 4
    env.reset(seed=5)
    assert [env.reset()[1]["task"]["seed"] for _ in range(3)] == drawn


def test_options_choose_the_level_and_axes():
    env = gymnasium.make(CART, size=SHOP)
    assert env.reset(seed=5, options={"difficulty": 4})[1]["task"]["level"] == 4
    with pytest.raises(ValueError, match="axis"):
        env.reset(seed=5, options={"overrides": {"p_mising": 1}})
    with pytest.raises(ValueError, match="dificulty"):
        env.reset(seed=5, options={"dificulty": 4})


def test_raw_output_of_a_model_is_an_action_and_broken_json_is_invalid():
    env = gymnasium.make(CART, size=SHOP, render_mode="ansi")
    env.reset(seed=5)
    answer = json.loads(env.step('<tool_call>{"name": "cart_view", "arguments": {}}</tool_call>')[0])
    assert [message["role"] for message in answer] == ["tool"]
    answer = json.loads(env.step("Which colour 🎨 would you like?")[0])
    assert answer[-1]["role"] == "user"
    assert "cart_view({})" in env.render() and "🎨" in env.render()
    _, reward, terminated, _, info = env.step('{"tool_calls": [')
    assert (reward, terminated, info["end"]) == (INVALID, True, "invalid")


def test_stepping_before_the_first_reset_is_told():
    env = bridge.ShoppingEnv("CART", size=SHOP)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step("Hello?")


def test_several_environments_step_together():
    envs = gymnasium.make_vec(CART, num_envs=3, vectorization_mode="sync", size=SHOP)
    envs.reset(seed=[1, 2, 3])
    messages, rewards, *_ = envs.step(("Any other details?",) * 3)
    assert all(json.loads(text)[-1]["role"] == "user" for text in messages) and list(rewards) == [0.0] * 3
