"""Results in words: nothing that a model reads is lost, and nobody has to read JSON."""

import json
from html import unescape
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, make_task, play
from ecomlab.catalog import Shop
from ecomlab.lab.play import markup, terminal
from ecomlab.lab.play.results import Card, Entry, conversation, read_result
from ecomlab.task import Message

HOSTILE = "<script>alert(1)</script> & $5 of $9 </details> \"'`"


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
    shown = "\n".join(unescape(markup.conversation([entry])) for entry in conversation(played.messages))
    told = "\n".join(
        line
        for entry in conversation(played.messages)
        if entry.result
        for line in terminal._result(entry.result)
    )
    for message in played.messages:
        if message["role"] != "tool" or message["name"] == "ask_user":
            continue
        for leaf in leaves(json.loads(message["content"])):
            if leaf is None:
                continue
            text = ("yes" if leaf else "no") if isinstance(leaf, bool) else str(leaf)
            priced = f"${leaf:,.2f}".removesuffix(".00") if isinstance(leaf, float) else text
            assert text in shown or priced in shown, (message["name"], leaf)
            assert text in told or priced in told or leaf is True, (message["name"], leaf)


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
    found = [(one.number, one.who, one.text or one.call) for one in conversation(messages)]
    assert found == [
        (0, "customer", "a mug, please"),
        (1, "agent", "which?"),
        (1, "customer", "a red one"),
        (1, "tool", "cart_view()"),
        (2, "tool", "datetime_now()"),
        (2, "customer", "hurry"),
    ]


def test_rows_become_cards_with_the_ids_that_they_lie_in() -> None:
    found = read_result(
        {
            "order_id": "O1",
            "status": "shipped",
            "notice": "Two tool calls are left.",
            "lines": [
                {"line_id": "L1", "product_id": "P1", "title": "A Mug", "variant_id": None, "price": 12.5,
                 "attributes": {"color": "Red"}, "stock": 0, "sponsored": True},
            ],
        }
    )  # fmt: skip
    assert (
        found.facts == {"order id": "O1", "status": "shipped"} and found.notice == "Two tool calls are left."
    )
    assert found.cards == [
        Card(
            "A Mug",
            {"order_id": "O1", "line_id": "L1", "product_id": "P1"},
            {"price": "$12.50", "color": "Red", "stock": "0"},
            ("sponsored", "sold out"),
        )
    ]


def test_what_products_and_customers_say_is_text() -> None:
    """No markup of theirs reaches the page, and two dollar signs are no formula."""
    result = read_result(
        {"results": [{"product_id": HOSTILE, "title": HOSTILE, HOSTILE: HOSTILE}], HOSTILE: HOSTILE}
    )
    entries = [
        Entry(0, "customer", HOSTILE),
        Entry(1, "agent", HOSTILE),
        Entry(1, "tool", tool=HOSTILE, arguments={HOSTILE: HOSTILE}, result=result),
        Entry(2, "tool", tool="x", result=read_result({"error": HOSTILE, "notice": HOSTILE})),
    ]
    page = markup.conversation(entries, HOSTILE)
    assert "<script" not in page and page.count("</details>") == 2
    assert page.startswith('<div class="ecomlab-seat ecomlab-talk mathjax_ignore')
    assert "<script" not in markup.problem(HOSTILE) + markup.bug(HOSTILE) + markup.card(result.cards[0])


def test_a_broken_call_is_shown_as_it_was_written() -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "cart_view", "arguments": "{broken"}}
    (entry,) = conversation([{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert entry.call == "cart_view(arguments {broken)"
