"""What all bridges share: text that is read back as the message it was, scores through JSON, the twenty tasks."""

import json
import math

import pytest

from bridges.twenty import COUNT, sample_jobs, sample_player, write_message
from ecomlab import ENVIRONMENTS, play
from ecomlab.bridges.common import play_reference, read_message, score_from_json, score_to_json, task_of
from ecomlab.reward import Score
from ecomlab.seeding import EVALUATION_SEEDS


def test_the_twenty_tasks_are_held_out_and_of_all_environments_and_several_levels():
    jobs = sample_jobs()
    assert len(jobs) == len({job.seed for job in jobs}) == COUNT
    assert {job.env for job in jobs} >= set(ENVIRONMENTS)
    assert len({job.d for job in jobs}) >= 3
    assert all(job.seed in EVALUATION_SEEDS for job in jobs)


def test_the_players_of_the_twenty_tasks_earn_many_different_scores(shop):
    scores = [play(sample_player(job, shop), task_of(job, shop), shop).score for job in sample_jobs()]
    assert len({score.value for score in scores}) >= 5
    assert {score.correct for score in scores} == {True, False} and not any(
        score.unscored for score in scores
    )


def test_what_the_reference_player_says_is_read_back_from_its_text(shop):
    messages = [m for m in play_reference(sample_jobs()[0], shop).messages if m["role"] == "assistant"]
    assert messages
    assert [read_message(write_message(message)) for message in messages] == messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Which size?", {"role": "assistant", "content": "Which size?"}),
        ('{"content": "Which size?"}', {"role": "assistant", "content": "Which size?"}),
        ("[1, 2]", {"role": "assistant", "content": "[1, 2]"}),
    ],
)
def test_text_that_is_no_json_message_is_said_to_the_customer(text, message):
    assert read_message(text) == message


@pytest.mark.parametrize(
    "text", ['{"content": ', "{}", '{"name": "cart_view"}', "{" * 100_000, "<tool_call>{"]
)
def test_broken_text_becomes_an_invalid_message_and_never_an_exception(text):
    assert read_message(text)["invalid"]


@pytest.mark.parametrize(
    "score",
    [Score(0.1 + 0.2, True, "right", {"task": 1.0}, asking={"questions": 2}), Score(-1.0, False, "no")],
)
def test_a_score_comes_back_from_json_to_the_last_digit(score):
    assert score_from_json(json.loads(json.dumps(score_to_json(score), allow_nan=False))) == score


def test_an_unscored_episode_stays_unscored_in_json():
    back = score_from_json(json.loads(json.dumps(score_to_json(Score.failed_by_us("ours")), allow_nan=False)))
    assert math.isnan(back.value) and back.unscored and not back.correct
