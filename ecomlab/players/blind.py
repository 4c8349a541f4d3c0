"""Attackers of law 3: blind players never use the customer's words or what a tool says; positional ones only where in a
list it says it; the naive shopper takes the customer's words as the query and the first hit."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ecomlab.core import Message, Player
from ecomlab.seeding import rng

Factory = Callable[[int], Player]
"""Makes a player for one episode from its seed."""


def text(words: str) -> Message:
    """A message to the customer."""
    return {"role": "assistant", "content": words}


def calls(*named: tuple[str, dict[str, Any]]) -> Message:
    """A message of tool calls."""
    made = [
        {"id": f"b{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


SUBMIT = calls(("submit", {}))


def _always(message: Message) -> Factory:
    return lambda seed: lambda messages, tools: message


def _then_submit(first: Message) -> Factory:
    """One message, then hand in."""
    return lambda seed: lambda messages, tools: SUBMIT if len(messages) > 2 else first


def _listed(messages: list[Message]) -> list[dict[str, Any]]:
    """Every product that a tool has listed so far."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            result = json.loads(message["content"])
            for value in result.values():
                if isinstance(value, list):
                    found += [entry for entry in value if isinstance(entry, dict) and "title" in entry]
    return found


def _everything(first: Message) -> Factory:
    """Add one of everything that a list shows."""

    def make(seed: int) -> Player:
        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            if len(messages) <= 2:
                return first
            if messages[-1]["role"] == "tool" and "cart" not in messages[-1]["content"][:10]:
                rows = _listed(messages)
                if rows:
                    return calls(*[("cart_add", {"product_id": row["product_id"]}) for row in rows])
            return SUBMIT

        return player

    return make


def _pick(
    first: Message, choose: Callable[[list[dict[str, Any]], np.random.Generator], Any], count: int = 1
) -> Factory:
    """Take what `choose` says of the first list, add it, hand in."""

    def make(seed: int) -> Player:
        random = rng("positional", seed)
        done = False

        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            nonlocal done
            if len(messages) <= 2:
                return first
            rows = _listed(messages)
            if done or not rows:
                return SUBMIT
            done = True
            ids: list[str] = []
            for _ in range(count):
                left = [row for row in rows if row["product_id"] not in ids]
                if left:
                    ids.append(choose(left, random)["product_id"])
            return calls(*[("cart_add", {"product_id": product_id}) for product_id in ids])

        return player

    return make


def _until_silence(order: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Factory:
    """Try the visits one after the other in some order; keep the first after which the customer says nothing."""

    def make(seed: int) -> Player:
        tried: list[str] = []

        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            if len(messages) <= 2:
                return HISTORY
            left = [row["product_id"] for row in order(_listed(messages)) if row["product_id"] not in tried]
            if not left or (tried and messages[-1]["role"] != "user"):
                return SUBMIT
            undo = [("cart_remove", {"product_id": tried[-1]})] if tried else []
            tried.append(left[0])
            return calls(*undo, ("cart_add", {"product_id": left[0]}))

        return player

    return make


def _commonest_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose title's last word is commonest in the list come first."""
    words = Counter(row["title"].split()[-1] for row in rows)
    return sorted(rows, key=lambda row: -words[row["title"].split()[-1]])


HISTORY = calls(("user_get_visit_history", {}))
ANYTHING = calls(("catalog_search", {"query": "product"}))

BLIND: dict[str, Factory] = {
    "hand in at once": _always(SUBMIT),
    "say nothing": _always(text("")),
    "say done": _always(text("Done, everything is in your cart.")),
    "ask for ever": _always(calls(("ask_user", {"question": "Anything else?"}))),
    "refuse": _always(text("I'm sorry, I cannot help with that.")),
    "ask, then hand in": _then_submit(calls(("ask_user", {"question": "Anything else?"}))),
    "broken output": _always({"role": "assistant", "content": "{", "invalid": "malformed JSON"}),
    "made-up id": _then_submit(calls(("cart_add", {"product_id": "P000000"}))),
    "all of the history": _everything(HISTORY),
    "all of a search": _everything(ANYTHING),
}
"""Players that are correct by luck at most: at most 5% (law 3)."""

CHOICES: dict[str, Callable[[list[dict[str, Any]], np.random.Generator], Any]] = {
    "first": lambda rows, random: rows[0],
    "last": lambda rows, random: rows[-1],
    "random": lambda rows, random: rows[int(random.integers(len(rows)))],
    "cheapest": lambda rows, random: min(rows, key=lambda row: row.get("price", 0)),
    "longest": lambda rows, random: max(rows, key=lambda row: len(row["title"])),
}

POSITIONAL: dict[str, Factory] = {
    **{f"{name} of history": _pick(HISTORY, choose) for name, choose in CHOICES.items()},
    "two of history": _pick(HISTORY, CHOICES["random"], count=2),
    "commonest type of history": _pick(HISTORY, lambda rows, random: _commonest_first(rows)[0]),
    "history until silence": _until_silence(lambda rows: rows),
    "commonest until silence": _until_silence(_commonest_first),
    **{f"{name} of search": _pick(ANYTHING, choose) for name, choose in CHOICES.items()},
}
"""Players held to the chance rate that the environment states for itself (law 3)."""


def naive(seed: int) -> Player:
    """The customer's words as the query, the first hit into the cart: shown without a bound."""

    def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        if len(messages) <= 2:
            return calls(("catalog_search", {"query": messages[1]["content"]}))
        rows = _listed(messages)
        if rows and not any('"cart"' in m["content"] for m in messages if m["role"] == "tool"):
            return calls(("cart_add", {"product_id": rows[0]["product_id"]}))
        return SUBMIT

    return player
