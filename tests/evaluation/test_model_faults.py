"""Mistakes of form, read off what a model said: refusals, and calls that arrive as words."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ecomlab import Shop, make_task, play
from ecomlab.evaluation.faults import FAULTS, faults_of, looks_like_call, refuses

REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I can’t help you with your order.",
    "I won't be able to help.",
    "I'm sorry, I cannot assist with this request.",
    "Unfortunately, I'm unable to help you.",
    "Unable to help.",
    "Sorry, can't assist you with that. Is there anything else?",
    "I cannot comply with this.",
    "We can not help you.",
    "I am not able to assist with purchases.",
    "I'm not allowed to help with returns",
    "I don't think I can help you with this.",
    "I won't help with that.",
    "I must decline to assist.",
    "I can't provide assistance with that.",
    "I couldn't fulfill this request.",
    "As an AI language model, I cannot access your orders.",
    "I'm sorry, but as a chatbot, I'm not equipped to provide recommendations.",
    "As a tool-based AI, I don't have the ability to browse.",
    "I found two mugs.\nI'm afraid I can't help you with the second one.",
)
ORDINARY = (
    "I can't find that order, could you tell me when you placed it?",
    "I can help with that. Which size?",
    "How can I help you?",
    "I'm unable to find a red one; would blue do?",
    "The order cannot be returned: the last day was May 2.",
    "I can't help you with that without the order's number. What is it?",
    "Until I know the colour I can't help you.",
    "I cannot help noticing that two of them fit.",
    "I can't help but recommend the first.",
    "The manual won't help with that model.",
    "Can't you see it in your orders?",
    "I won't be able to ship it before Friday. Is that fine?",
    "I could not add more than three, the rest is sold out.",
    "I must decline the return, it is too late.",
    "As a gift it is not able to be exchanged.",
    "We cannot fulfil 5 of them today; 3 are in stock.",
    "Anything else that I can assist you with?",
    "I will help you. I can't see the price yet.",
    "You asked me whether it can't help against rain; it does.",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_one_in_other_words_too(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_what_cannot_be_done_or_found_is_no_refusal(text: str) -> None:
    assert not refuses(text)


CALLS = (
    '<tool_call>\n{"name": "cart_view", "arguments": {}}\n</tool_call>',
    '[{"name": "cart_view", "arguments": {}}]',
    '{\n  "name": "cart_view",\n  "arguments": {\n    "x": 1\n  }\n}',
    'Let me look.\n\n```json\n[\n  {\n    "name": "cart_view",\n    "arguments": {}\n  }\n]\n```',
    'I will call {"name": "cart_view",\n "parameters": {}} now.',
    '{"arguments": {"a": 1}, "name": "cart_view"}',
    '```\n{"name": "cart_view"}\n```',
    "{'name': 'cart_view', 'arguments': {}}",
    '{"type": "function", "function": {"name": "cart_view", "arguments": "{}"}}',
    '{"name": "cart_view", "arguments": {"a": ',
    "[TOOL_CALLS] [cart_view]",
    "<function=cart_view></function>",
    "<|python_tag|>cart_view()",
)
WORDS = (
    "Which size?",
    "The name is {name}, the price {price}.",
    'It is called {"Nova"}.',
    'The label says {"name": "Nova mug", "size": "L"}.',
    "Call me if the arguments are unclear.",
    "```\nsize: 3\n```",
)


@pytest.mark.parametrize("text", CALLS)
def test_words_that_were_meant_as_a_call_are_recognised(text: str) -> None:
    assert looks_like_call(text)


@pytest.mark.parametrize("text", WORDS)
def test_other_braces_and_names_are_words(text: str) -> None:
    assert not looks_like_call(text)


def test_a_call_among_the_words_is_a_mistake_of_its_own(shop: Shop) -> None:
    texts = iter(('[{"name": "cart_view", "arguments": {}}]', "I can't help with that.", ""))

    def player(messages: object, tools: object) -> dict[str, object]:
        return {"role": "assistant", "content": next(texts, "x" * 20_001)}

    found = faults_of(play(player, make_task("CART", 0, 0, shop), shop))
    assert found[:3] == ("call in text", "refusal", "empty answer")
    assert set(found) <= set(FAULTS)


def test_the_page_tells_how_many_messages_of_others_are_recognised() -> None:
    here = Path(__file__).parent
    found = Counter[tuple[str, str]]()
    for line in (here / "messages" / "second.jsonl").read_text("utf-8").splitlines():
        text, label = json.loads(line)["text"], json.loads(line)["label"]
        read = "call" if looks_like_call(text) else "refusal" if refuses(text) else "plain"
        found[label, read] += 1
    page = " ".join((here.parents[1] / "docs" / "players.md").read_text("utf-8").split())
    told = (
        f"{found['call', 'call']} of 60 calls and {found['refusal', 'refusal']} of 60 refusals are recognised"
    )
    assert told in page and found["plain", "plain"] == 60
