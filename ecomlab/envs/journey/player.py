"""The player of JOURNEY: gives each subtask a player of its own, who sees only its own messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ecomlab.task import Message, Place


class JourneyPlayer:
    """Plays each subtask with a player of its own.

    `intros` are the sentences with which customers begin a subtask of each environment; `make` makes its player.
    """

    def __init__(self, intros: Mapping[str, Sequence[str]], make: Callable[[str], Any]) -> None:
        self.intros = intros
        self.make = make
        self._under_way: list[tuple[Any, list[Message]]] = []
        self._read = 0

    def recognised(self, text: str) -> tuple[str, str] | None:
        """Read (environment, opening) where a customer's message begins a subtask; None where it does not."""
        for env, intros in self.intros.items():
            for intro in intros:
                if intro in text:
                    return env, text.partition(intro)[2].strip()
        return None

    def read_opening(self, text: str) -> dict[Place, Any]:
        """Read every slot that the opening of the first subtask states."""
        found = self.recognised(text)
        return self.make(found[0]).read_opening(found[1]) if found else {}

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        for message in messages[self._read :]:
            self._tell_of_stock(message)
            found = self.recognised(message["content"]) if message["role"] == "user" else None
            if found:
                opening = {"role": "user", "content": found[1]}
                self._under_way.append((self.make(found[0]), [messages[0], opening]))
            elif message["role"] == "tool" and json.loads(message["content"]).get("submitted"):
                self._under_way.pop()
            elif self._under_way and message["role"] != "system":
                self._under_way[-1][1].append(message)
        self._read = len(messages)
        player, own = self._under_way[-1]
        return player(list(own), tools)

    def _tell_of_stock(self, message: Message) -> None:
        """Pass a notice on to the players of interrupted subtasks, who do not see the message that carries it."""
        notice = json.loads(message["content"]).get("notice") if message["role"] == "tool" else None
        for player, _ in self._under_way[:-1] if notice else ():
            player.notice(notice)
