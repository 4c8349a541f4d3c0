"""Hands for a seat: the reference player's calls, for a person to follow by whatever the seat is seen through."""

import json
from collections.abc import Iterator
from typing import Any

from ecomlab import ENVIRONMENTS
from ecomlab.lab.play.seat import Seat
from ecomlab.task import Message

Calls = list[tuple[str, dict[str, Any]]]
WORDS = "words"
"""In the place of a tool: a message to the customer without calls, {"question": its text}."""


def moves(seat: Seat) -> Iterator[Calls]:
    """The calls of each message of the reference player, who reads what has come in the seat; to be sent in between.

    A question alone may also be written to the customer as a message.
    """
    player = ENVIRONMENTS[seat.choice.env].reference_player(seat.episode.shop)
    ids: list[str] = []
    while not seat.done:
        before = _results(seat.episode.messages)
        message = player(_under(ids, seat.episode.messages), seat.episode.tools)
        calls = message.get("tool_calls") or []
        if not calls:
            yield [(WORDS, {"question": message["content"]})]
            continue
        yield [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        if _results(seat.episode.messages) > before:
            ids += [call["id"] for call in calls]


def entries_of(arguments: dict[str, Any]) -> dict[str, str]:
    """The texts that a person enters in a form for these arguments."""
    return {
        n: one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
        for n, one in arguments.items()
    }


def _results(messages: list[Message]) -> int:
    return sum(message["role"] == "tool" for message in messages)


def _under(ids: list[str], messages: list[Message]) -> list[Message]:
    """The messages with the player's own ids of its calls, by which it knows what each result is for."""
    mine = iter(ids)
    return [{**m, "tool_call_id": next(mine)} if m["role"] == "tool" else m for m in messages]
