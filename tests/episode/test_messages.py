"""Raw model text into messages: strict, classified, never an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecomlab.episode.messages import parse_output


def block(value: object) -> str:
    return f"<tool_call>\n{json.dumps(value)}\n</tool_call>"


def test_text_and_calls_are_told_apart() -> None:
    text = (
        "Let me look.\n"
        + block({"name": "a", "arguments": {"x": 1}})
        + "\n"
        + block({"name": "b", "arguments": {}})
    )
    message = parse_output(text)
    assert message["content"] == "Let me look."
    assert [c["function"] for c in message["tool_calls"]] == [
        {"name": "a", "arguments": '{"x": 1}'},
        {"name": "b", "arguments": "{}"},
    ]
    assert len({c["id"] for c in message["tool_calls"]}) == 2


def test_text_alone_has_no_calls_and_thinking_is_left_out() -> None:
    assert parse_output("Which size?") == {"role": "assistant", "content": "Which size?"}
    assert parse_output("<think>\nhm <tool_call>\n</think>\n\nWhich size?")["content"] == "Which size?"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>\n{", "not closed"),
        ("<tool_call>\n{\n</tool_call>", "bad JSON"),
        ("</tool_call>", "without"),
        ("<tool_call>\n[1]\n</tool_call>", "no name"),
        (block({"name": 1}), "no name"),
        (block({"name": "a", "arguments": "x"}), "not an object"),
        (block({"name": "a"}) + " and so on", "behind"),
    ],
)
def test_what_went_wrong_is_said(text: str, reason: str) -> None:
    message = parse_output(text)
    assert reason in message["invalid"]
    assert message["content"] == text


@given(
    st.lists(
        st.sampled_from(["<tool_call>", "</tool_call>", "{", "}", '"name"', ":", "a", "<think>", "</think>"])
    ).map("".join)
)
def test_no_text_raises(text: str) -> None:
    assert parse_output(text)["role"] == "assistant"
