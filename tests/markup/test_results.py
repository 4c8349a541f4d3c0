"""Results in words: nothing that a model reads is lost, and nobody has to read JSON."""

import json
from html import unescape
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, make_task, play
from ecomlab.catalog import Shop
from ecomlab.markup.conversation import alone
from ecomlab.markup.entries import as_text, conversation
from ecomlab.task import Message


def leaves(value: Any) -> list[Any]:
    """Every single value in a result."""
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [value]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_value_of_every_result_can_be_read(env: str, shop: Shop) -> None:
    played = play(ENVIRONMENTS[env].reference_player(shop), make_task(env, 6, 3, shop), shop)
    shown, told = unescape(alone(played.messages)), as_text(conversation(played.messages))
    for message in played.messages:
        if message["role"] != "tool" or message["name"] == "ask_user":
            continue
        for leaf in leaves(json.loads(message["content"])):
            if leaf is None:
                continue
            text = ("yes" if leaf else "no") if isinstance(leaf, bool) else str(leaf)
            priced = f"${leaf:,.2f}".removesuffix(".00") if isinstance(leaf, float) else text
            cents = f"{leaf:,.2f}" if isinstance(leaf, float) else text  # of a price in a table
            assert text in shown or priced in shown or cents in shown, (message["name"], leaf)
            lines = text.splitlines() or [""]  # each is a line of its own
            assert all(line in told for line in lines) or priced in told or leaf is True, (
                message["name"],
                leaf,
            )


def test_a_conversation_is_by_message_and_questions_are_words() -> None:
    def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"call_{number}", "type": "function", "function": function}

    messages: list[Message] = [
        {"role": "system", "content": "work"},
        {"role": "user", "content": "a mug, please"},
        {"role": "assistant", "tool_calls": [call(0, "ask_user", question="which?"), call(1, "cart_view")]},
        {"role": "tool", "tool_call_id": "call_0", "name": "ask_user", "content": '{"customer": "a red one"}'},
        {"role": "tool", "tool_call_id": "call_1", "name": "cart_view", "content": '{"cart": []}'},
        {"role": "assistant", "content": "", "tool_calls": [call(0, "datetime_now")]},
        {"role": "tool", "tool_call_id": "call_0", "name": "datetime_now", "content": '{"today": "2026-03-02"}'},
        {"role": "user", "content": "hurry"},
    ]  # fmt: skip
    found = [(one.number, one.who, str(one)) for one in conversation(messages)]
    assert found == [
        (0, "customer", "a mug, please"),
        (1, "agent", "which?"),
        (1, "customer", "a red one"),
        (1, "tool", "cart_view()"),
        (2, "tool", "datetime_now()"),
        (2, "customer", "hurry"),
    ]
