"""Inspect: the twenty tasks through its solver loop give our scores, in a log that its own reader opens."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

inspect_ai = pytest.importorskip("inspect_ai")

from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import get_model, modelapi
from inspect_ai.tool import ToolCall

from bridges.twenty import SHOP, sample_jobs, sample_player
from ecomlab import load_shop
from ecomlab.bridges import inspect_ai as bridge
from ecomlab.bridges.common import score_from_json, task_of
from ecomlab.reward import INVALID

JOBS = sample_jobs()


def mock(*outputs):
    """Inspect's mock model, which says these outputs."""
    return get_model("mockllm/model", custom_outputs=outputs)


class Players(bridge.ReferenceModel):
    """The players of the twenty tasks as a model."""

    def player_of(self, messages):
        [job] = [job for job in JOBS if task_of(job, load_shop(SHOP)).opening == messages[1]["content"]]
        return sample_player(job, load_shop(SHOP))


@modelapi(name="twenty")
def players():
    return Players


def run(task, model, folder):
    """Evaluate, and read the log back from its file."""
    [log] = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    return read_eval_log(log.location)


def test_the_twenty_tasks_score_as_in_our_own_loop(same, ours, log, tell_versions, tmp_path):
    tell_versions("inspect-ai", "fsspec", "pydantic")
    model = get_model("twenty/players", size=SHOP)
    made = run(bridge.task_for(JOBS, SHOP, "twenty"), model, tmp_path)
    samples = {sample.metadata["seed"]: sample for sample in made.samples}
    for job in JOBS:
        sample, score = samples[job.seed], samples[job.seed].scores["shopping_score"]
        same(job, score_from_json(score.metadata["score"]))
        assert (score.value["reward"], bool(score.value["correct"])) == (
            ours(job).score.value,
            ours(job).score.correct,
        )
        assert {name: score.value[name] for name in bridge.PARTS} == ours(job).score.parts
        assert [bridge.shaped(message) for message in sample.messages] == ours(job).messages
    means = {score.name: score.metrics["mean"].value for score in made.results.scores}
    assert math.isclose(means["reward"], sum(ours(job).score.value for job in JOBS) / len(JOBS))
    log["means in the log"] = means


def test_calls_that_cannot_be_parsed_are_invalid(tmp_path):
    output = bridge.said({"content": ""})
    output.message.tool_calls = [ToolCall("a", "cart_view", {}, parse_error="bad JSON")]
    [sample] = run(bridge.task_for(JOBS[1:2], SHOP, "one"), mock(output), tmp_path).samples
    score = sample.scores["shopping_score"]
    assert score.value["reward"] == INVALID and math.isnan(score.value["task"])
    assert score.metadata["end"] == "invalid"


def test_a_generation_that_was_cut_off_is_truncated_and_never_correct(tmp_path):
    cut = bridge.said({"content": "Which size would"})
    cut.choices[0].stop_reason = "max_tokens"
    [sample] = run(bridge.task_for(JOBS[1:2], SHOP, "one"), mock(cut), tmp_path).samples
    assert sample.scores["shopping_score"].metadata["end"] == "truncated"
    assert sample.scores["shopping_score"].value["correct"] == 0


@pytest.mark.parametrize(
    ("limit", "scored"), [({"message_limit": 4}, True), ({"time_limit": 0}, False)], ids=["messages", "time"]
)
def test_a_limit_of_inspects_own_truncates_or_leaves_unscored(limit, scored, tmp_path):
    [log] = inspect_ai.eval(
        bridge.task_for(JOBS[1:2], SHOP, "one"),
        model=get_model("twenty/players", size=SHOP),
        log_dir=str(tmp_path),
        display="none",
        **limit,
    )
    assert log.status == "success", log.error
    [sample] = read_eval_log(log.location).samples
    score = sample.scores["shopping_score"]
    if scored:
        assert (score.metadata["end"], score.value["correct"]) == ("truncated", 0)
    else:
        assert math.isnan(score.value)


def test_a_model_that_fails_makes_an_error_and_no_score(tmp_path):
    def broken(*given):
        raise OSError("the endpoint is down")

    model = get_model("mockllm/model", custom_outputs=broken)
    [log] = inspect_ai.eval(
        bridge.task_for(JOBS[1:2], SHOP, "one"),
        model=model,
        log_dir=str(tmp_path),
        display="none",
        fail_on_error=False,
    )
    [sample] = read_eval_log(log.location).samples
    assert "the endpoint is down" in sample.error.message and not sample.scores


def test_the_command_line_finds_the_tasks_by_name(tmp_path, log):
    command = [
        str(Path(sys.executable).with_name("inspect")),
        "eval",
        "ecomlab/cart",
        "--model",
        "ecomlab/reference",
    ]
    command += ["-T", "difficulty=0,3", "-T", "episodes=2", "-T", f"size={SHOP}", "-M", f"size={SHOP}"]
    done = subprocess.run(
        [*command, "--log-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = list_eval_logs(str(tmp_path))
    read = read_eval_log(found)
    assert (read.status, read.eval.task_registry_name, len(read.samples)) == ("success", "ecomlab/cart", 4)
    assert {sample.metadata["d"] for sample in read.samples} == {0, 3}
    assert all(sample.scores["shopping_score"].metadata["end"] == "submit" for sample in read.samples)
    log["command"] = " ".join(["inspect", *command[1:]])
