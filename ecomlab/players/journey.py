"""The player of JOURNEY: a player for each subtask, each with its own messages."""

from collections.abc import Callable
from typing import Any

from ecomlab.task import Message, Player


class Traveller:
    """Goes through a journey with a player for each part, who sees its own messages, and goes on when it is done."""

    def __init__(self, make: Callable[[str], Player]) -> None:
        self.make = make
        self._under_way: list[tuple[Player, list[Message]]] = []
        self._read = 0

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        from ecomlab.envs.journey import _recognised

        for message in messages[self._read :]:
            found = _recognised(message["content"]) if message["role"] == "user" else None
            if found:
                opening = {"role": "user", "content": found[1]}
                self._under_way.append((self.make(found[0]), [messages[0], opening]))
            elif message["role"] == "tool" and '"submitted": true' in message["content"]:
                self._under_way.pop()
            elif self._under_way and message["role"] != "system":
                self._under_way[-1][1].append(message)
        self._read = len(messages)
        player, own = self._under_way[-1]
        return player(list(own), tools)
