"""datasets: tasks and transcripts survive Parquet, replay to our scores, and tell nothing that is withheld."""

import json
from dataclasses import replace

import pytest

datasets = pytest.importorskip("datasets")

from bridges.twenty import sample_jobs
from ecomlab import ENVIRONMENTS, Episode, TaskError, load_shop, play, replay
from ecomlab.bridges import datasets as bridge
from ecomlab.bridges.common import play_reference, task_of

JOBS = sample_jobs()


def test_the_twenty_tasks_replay_from_parquet_to_our_scores(
    same, ours, log, tell_versions, bridge_shop, tmp_path
):
    tell_versions("datasets", "pyarrow")
    made = bridge.transcript_dataset(map(ours, JOBS), bridge_shop)
    made.to_parquet(tmp_path / "episodes.parquet")
    back = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "episodes.parquet"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert back.features == made.features == bridge.TRANSCRIPTS
    for job, row in zip(JOBS, back, strict=True):
        trajectory = bridge.read_trajectory(row, bridge_shop)
        assert trajectory == ours(job)
        same(job, replay(trajectory, bridge_shop))


def test_arguments_are_objects_and_equal_the_text(ours, bridge_shop):
    rows = bridge.transcript_dataset(map(ours, JOBS[:3]), bridge_shop)
    for job, row in zip(JOBS, rows, strict=False):
        pairs = list(zip(row["messages"], ours(job).messages, strict=True))
        calling = [(new, old) for new, old in pairs if "tool_calls" in old]
        assert calling
        for new, old in calling:
            given = [call["function"]["arguments"] for call in old["tool_calls"]]
            assert [call["function"]["arguments"] for call in new["tool_calls"]] == [
                json.loads(text) for text in given
            ]


def test_an_episode_that_ended_on_broken_arguments_replays_too(bridge_shop):
    call = {"id": "a", "type": "function", "function": {"name": "cart_view", "arguments": "{broken"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    trajectory = play(lambda messages, tools: message, task_of(JOBS[1], bridge_shop), bridge_shop)
    assert trajectory.end == "invalid"
    [row] = bridge.transcript_dataset([trajectory], bridge_shop)
    assert replay(bridge.read_trajectory(row, bridge_shop), bridge_shop) == trajectory.score


def test_an_unscored_episode_has_no_reward(bridge_shop):
    def broken(messages, tools):
        raise OSError("the endpoint is down")

    [row] = bridge.transcript_dataset([play(broken, task_of(JOBS[0], bridge_shop), bridge_shop)], bridge_shop)
    assert row["reward"] is None and not row["correct"]
    assert bridge.read_trajectory(row, bridge_shop).score.unscored


def test_an_episode_whose_customer_an_endpoint_worded_replays_without_it(bridge_shop):
    greeted = lambda messages: "Hi! " + messages[1]["content"].rpartition("words:\n")[2]  # noqa: E731
    job = JOBS[1]
    player = ENVIRONMENTS[job.env].reference_player(bridge_shop)
    trajectory = play(player, task_of(job, bridge_shop), bridge_shop, customer=greeted)
    assert trajectory.messages[1]["content"].startswith("Hi! ")
    [row] = bridge.transcript_dataset([trajectory], bridge_shop)
    assert bridge.read_trajectory(row, bridge_shop) == trajectory
    assert replay(bridge.read_trajectory(row, bridge_shop), bridge_shop) == trajectory.score


def test_tasks_hold_what_an_agent_sees_at_first_and_nothing_else(bridge_shop):
    made = bridge.task_dataset(JOBS, bridge_shop)
    assert made.column_names == list(bridge.TASKS)
    for job, row in zip(JOBS, made, strict=True):
        episode = Episode(task_of(job, bridge_shop), bridge_shop)
        assert (row["prompt"], row["tools"]) == (episode.messages, episode.tools)
        named = {name for name in row if name not in ("prompt", "tools")}
        assert not named & {"goal", "events", "world", "notes", "need"}


def test_demonstrations_are_correct_episodes_of_the_reference_player(bridge_shop):
    made = bridge.demonstration_dataset(JOBS[:8], bridge_shop)
    played = [play_reference(job, bridge_shop).score for job in JOBS[:8]]
    assert made["env"] == [job.env for job, score in zip(JOBS, played, strict=False) if score.correct]
    assert len(made) >= 6 and all(made["correct"])


def test_a_row_of_another_shop_is_refused(ours, bridge_shop):
    [row] = bridge.transcript_dataset([ours(JOBS[0])], bridge_shop)
    with pytest.raises(TaskError, match="catalog"):
        bridge.read_trajectory(row, load_shop(1_500))
    with pytest.raises(TaskError, match="99"):
        bridge.read_trajectory({**row, "version": 99}, bridge_shop)


def test_overridden_axes_keep_every_digit(bridge_shop):
    job = replace(JOBS[1], axes={"p_missing": 0.1 + 0.2 / 3, "cart.items": 2.0})
    [row] = bridge.transcript_dataset([play_reference(job, bridge_shop)], bridge_shop)
    trajectory = bridge.read_trajectory(row, bridge_shop)
    assert trajectory.task.overrides == job.axes
    assert replay(trajectory, bridge_shop) == trajectory.score


def test_every_environment_is_among_them():
    assert {job.env for job in JOBS} == set(ENVIRONMENTS)
