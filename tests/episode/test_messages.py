"""Raw model text into messages: strict, classified, never an exception."""

import json
from typing import Any

import pytest
from counted import calls_in
from hypothesis import given
from hypothesis import strategies as st

from ecomlab import Episode, Shop, make_task
from ecomlab.episode.messages import parse_output
from ecomlab.episode.play import record, replay


def block(value: object) -> str:
    return f"<tool_call>\n{json.dumps(value)}\n</tool_call>"


def test_text_and_calls_are_told_apart_and_thinking_is_left_out() -> None:
    both = f"Let me look.\n{block({'name': 'a', 'arguments': {'x': 1}})}\n{block({'name': 'b'})}"
    message = parse_output(both)
    assert message["content"] == "Let me look."
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"x": 1}', "{}"]
    assert len({call["id"] for call in message["tool_calls"]}) == 2
    assert parse_output("Which size?") == {"role": "assistant", "content": "Which size?"}
    assert parse_output("<think>\nhm <tool_call>\n</think>\n\nWhich size?")["content"] == "Which size?"


QUOTED = block({"name": "a", "arguments": {"q": "<think>x</think>"}})


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("<think>a</think>Which <think>b</think>size?", "Which size?", 0),
        ("<think>a</think><think></think>\n\nWhich size?<think>is that so", "Which size?", 0),
        ("Which size? <think>", "Which size?", 0),
        ("<think>I should ask", "", 0),
        ("I should ask.\n</think>\n\nWhich size?", "Which size?", 0),
        ("One.</think>Two.</think>Which size?", "Which size?", 0),
        (f"I try {block({'name': 'b'})} no.</think>Which size?", "Which size?", 0),
        ("I write <tool_call> then.</think>" + block({"name": "a"}), "", 1),
        ("<think>a</think>" + block({"name": "a"}) + "<think>b</think>" + block({"name": "b"}), "", 2),
        (QUOTED, "", 1),
        ("<think>a</think>" + QUOTED + "<think>now wait", "", 1),
    ],
)
def test_all_thinking_is_left_out_but_what_calls_quote(text: str, said: str, calls: int) -> None:
    message = parse_output(text)
    assert "invalid" not in message
    assert (message["content"], len(message.get("tool_calls", ()))) == (said, calls)
    if QUOTED in text:
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"q": "<think>x</think>"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>\n{", "not closed"),
        ("<tool_call>\n{\n</tool_call>", "bad JSON"),
        ("</tool_call>", "without"),
        ("<tool_call>\n[1]\n</tool_call>", "no name"),
        (block({"name": 1}), "no name"),
        (block({"name": "a"}) + " and so on", "behind"),
    ],
)
def test_what_went_wrong_is_said(text: str, reason: str) -> None:
    message = parse_output(text)
    assert reason in message["invalid"]
    assert message["content"] == text


@pytest.mark.parametrize(
    ("arguments", "written"),
    [(None, "null"), ("", ""), ('{"x": 1}', '{"x": 1}'), ([1], "[1]"), ({"x": 1}, '{"x": 1}')],
)
def test_what_the_arguments_are_is_for_the_tool_to_judge(arguments: object, written: str) -> None:
    (call,) = parse_output(block({"name": "a", "arguments": arguments}))["tool_calls"]
    assert call["function"]["arguments"] == written


class Loud(dict[str, Any]):
    """A dict that answers by raising."""

    def get(self, key: str, default: Any = None) -> Any:
        raise ZeroDivisionError


def call(**function: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}


HOSTILE: dict[str, Any] = {
    "a name without end": call(name="x" * 10_000_000, arguments="{}"),
    "arguments without end": call(name="submit", arguments=" " * 10_000_000),
    "a million calls": {"role": "assistant", "content": None, "tool_calls": [{"function": {}}] * 1_000_000},
    "a generator": {"role": "assistant", "tool_calls": (c for c in [{"function": {"name": "submit"}}])},
    "a tuple": {"role": "assistant", "tool_calls": ({"function": {"name": "submit"}},)},
    "a loud message": Loud(role="assistant", content="hello"),
    "a loud call": {"role": "assistant", "tool_calls": [Loud(function={"name": "submit"})]},
    "a loud function": {"role": "assistant", "tool_calls": [{"function": Loud(name="submit")}]},
    "a number for a name": call(name=7, arguments="{}"),
    "a list of arguments": call(name="submit", arguments=[]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_is_invalid_at_once_and_cheaply(name: str, shop: Shop) -> None:
    episode = Episode(make_task("CART", 0, 0, shop), shop)
    assert calls_in(lambda: episode.act(HOSTILE[name])) < 100
    assert episode.end == "invalid"
    assert len(json.dumps(episode.messages)) < 100_000
    assert replay(record(episode), shop) == episode.score()


@pytest.mark.parametrize("arguments", [None, "", "null", '""', "{}"])
def test_a_call_without_arguments_is_sent_back_with_an_empty_object(arguments: Any, shop: Shop) -> None:
    """A server parses the history, and refuses text that is no JSON object."""
    episode = Episode(make_task("CART", 0, 0, shop), shop)
    turn = episode.act(call(name="cart_view", arguments=arguments))
    assert "error" not in json.loads(turn.messages[0]["content"])
    (made,) = episode.messages[-2]["tool_calls"]
    assert made["function"]["arguments"] == "{}"


def test_an_id_that_is_none_gets_one(shop: Shop) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for made in (nested, "", None, 7, "y" * 1_000):
        episode = Episode(make_task("CART", 0, 0, shop), shop)
        function = {"name": "cart_view", "arguments": None}
        message = {"role": "assistant", "tool_calls": [{"id": made, "function": function}]}
        assert episode.act(message).messages[0]["tool_call_id"] == "call_0"


@given(
    st.lists(
        st.sampled_from(["<tool_call>", "</tool_call>", "{", "}", '"name"', ":", "a", "<think>", "</think>"])
    ).map("".join)
)
def test_no_text_raises(text: str) -> None:
    assert parse_output(text)["role"] == "assistant"
