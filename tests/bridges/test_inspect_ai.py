"""Inspect: the twenty tasks through its solver loop give our scores, in a log that its own reader opens."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

inspect_ai = pytest.importorskip("inspect_ai")

from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageAssistant, ModelOutput, get_model
from inspect_ai.tool import ToolCall

from ecomlab import ENVIRONMENTS, Episode
from ecomlab.bridges import inspect_ai as bridge
from ecomlab.bridges.common import SHOP, sample_jobs, score_from_json, task_of
from ecomlab.reward import INVALID
from ecomlab.tool import load_arguments

JOBS = sample_jobs()


def in_our_shape(message):
    """A message of Inspect's as the reference player reads it."""
    if message.role == "assistant":
        return bridge.read(message)
    told = {"role": message.role, "content": message.text}
    return (
        {**told, "name": message.function, "tool_call_id": message.tool_call_id}
        if message.role == "tool"
        else told
    )


def answered(message, reason="stop"):
    """A mock model's output that says what a message in OpenAI's shape says."""
    calls = [
        ToolCall(call["id"], call["function"]["name"], load_arguments("", call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
    said = ChatMessageAssistant(content=message["content"], tool_calls=calls or None, model="reference")
    return ModelOutput.from_message(said, stop_reason=reason)


def reference_model(jobs, shop):
    """A mock model that is the reference player of whichever task its prompt is of."""
    players = {task_of(job, shop).opening: ENVIRONMENTS[job.env].reference_player(shop) for job in jobs}
    assert len(players) == len(jobs)

    def generate(messages, tools, choice, config):
        heard = [in_our_shape(message) for message in messages]
        return answered(players[heard[1]["content"]](heard, []))

    return get_model("mockllm/model", custom_outputs=generate)


def run(task, model, folder):
    """Evaluate, and read the log back from its file."""
    [log] = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    return read_eval_log(log.location)


def test_the_twenty_tasks_score_as_in_our_own_loop(same, ours, log, tell_versions, bridge_shop, tmp_path):
    tell_versions("inspect-ai", "fsspec", "pydantic")
    made = run(bridge.task_for(JOBS, SHOP, "twenty"), reference_model(JOBS, bridge_shop), tmp_path)
    samples = {sample.metadata["seed"]: sample for sample in made.samples}
    for job in JOBS:
        sample, score = samples[job.seed], samples[job.seed].scores["shopping_score"]
        same(job, score_from_json(score.metadata["score"]))
        assert (score.value["reward"], bool(score.value["correct"])) == (
            ours(job).score.value,
            ours(job).score.correct,
        )
        assert {name: score.value[name] for name in bridge.PARTS} == ours(job).score.parts
        assert [in_our_shape(message) for message in sample.messages] == ours(job).messages
    means = {score.name: score.metrics["mean"].value for score in made.results.scores}
    assert math.isclose(means["reward"], sum(ours(job).score.value for job in JOBS) / len(JOBS))
    log["means in the log"] = means


def test_the_tools_schemas_survive_inspects_own_form(bridge_shop):
    for job in JOBS[: len(ENVIRONMENTS)]:
        for schema in Episode(task_of(job, bridge_shop), bridge_shop).tools:
            ours, theirs = schema["function"]["parameters"], bridge.tool_info(schema).parameters
            assert set(theirs.properties) == set(ours.get("properties", {}))
            assert theirs.required == ours.get("required", [])
            for name, told in theirs.properties.items():
                mine = ours["properties"][name]
                assert (told.type, told.description, told.enum) == (
                    mine.get("type"), mine.get("description"), mine.get("enum"),
                )  # fmt: skip


def test_calls_that_cannot_be_parsed_are_invalid(tmp_path):
    call = ToolCall("a", "cart_view", {}, parse_error="bad JSON")
    said = ChatMessageAssistant(content="", tool_calls=[call])
    model = get_model("mockllm/model", custom_outputs=[ModelOutput.from_message(said)])
    [sample] = run(bridge.task_for(JOBS[1:2], SHOP, "one"), model, tmp_path).samples
    score = sample.scores["shopping_score"]
    assert score.value["reward"] == INVALID and math.isnan(score.value["task"])
    assert score.metadata["end"] == "invalid"


def test_a_generation_that_was_cut_off_is_truncated_and_never_correct(tmp_path):
    cut = answered({"content": "Which size would"}, "max_tokens")
    model = get_model("mockllm/model", custom_outputs=[cut])
    [sample] = run(bridge.task_for(JOBS[1:2], SHOP, "one"), model, tmp_path).samples
    assert sample.scores["shopping_score"].metadata["end"] == "truncated"
    assert sample.scores["shopping_score"].value["correct"] == 0


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
    command = [Path(sys.executable).with_name("inspect"), "eval", "ecomlab/cart", "--model", "mockllm/model"]
    command += ["-T", "difficulty=0,3", "-T", "episodes=2", "-T", f"size={SHOP}", "--display", "none"]
    done = subprocess.run(
        [*command, "--log-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = list_eval_logs(str(tmp_path))
    read = read_eval_log(found)
    assert (read.status, read.eval.task, len(read.samples)) == ("success", "ecomlab/cart", 4)
    assert {sample.metadata["d"] for sample in read.samples} == {0, 3}
    assert all(sample.scores["shopping_score"].metadata["end"] == "patience" for sample in read.samples)
    log["command"] = " ".join(["inspect", *command[1:]])
