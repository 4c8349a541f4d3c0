"""The player of JOURNEY: gives each subtask a player of its own, who sees only its own messages."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.envs.journey.chain import NO_LIMIT
from ecomlab.task import Message, Place
from ecomlab.values import money
from ecomlab.wishes import AMOUNT, DELIVERY, Earlier, read_amount, read_delivery

AMOUNTS = re.compile(AMOUNT, re.IGNORECASE)
DELIVERIES = re.compile(f"no later than ({DELIVERY})")
OWN = "journey"
"""Id of this player's own call, of which those of the subtasks know nothing."""


class JourneyPlayer:
    """Plays each subtask with a player of its own.

    `intros` are the sentences with which customers begin a subtask of each environment; `make` makes its player. What a
    customer says of earlier subtasks is worked out from what these submitted, before a player reads it; who `lacks`
    chain assumes that there is no limit.
    """

    def __init__(
        self,
        intros: Mapping[str, Sequence[str]],
        make: Callable[[str], Any],
        lacks: Collection[str] = (),
    ) -> None:
        self.intros = intros
        self.make = make
        self.lacks = frozenset(lacks)
        self._under_way: list[tuple[Any, list[Message]]] = []
        self._read = 0
        self._today: date | None = None
        self._submitted: dict[Any, dict[str, Any]] = {}
        """Arguments of the last submit, by player."""

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
            shown = json.loads(message["content"]).get("today") if message["role"] == "tool" else None
            self._today = date.fromisoformat(shown) if shown else self._today
        for at, message in enumerate(messages[self._read :], self._read):
            if self._today is None and self._counts_from_today(message):
                self._read = at
                call = {
                    "id": OWN,
                    "type": "function",
                    "function": {"name": "datetime_now", "arguments": "{}"},
                }
                return {"role": "assistant", "content": "", "tool_calls": [call]}
            if message.get("tool_call_id") == OWN:
                continue
            message = self._settled(message)
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
        reply: Message = player(list(own), tools)
        for call in reply.get("tool_calls") or ():
            if call["function"]["name"] == "submit":
                self._submitted[player] = json.loads(call["function"]["arguments"])
        return reply

    def _tell_of_stock(self, message: Message) -> None:
        """Pass a notice on to the players of interrupted subtasks, who do not see the message that carries it."""
        notice = json.loads(message["content"]).get("notice") if message["role"] == "tool" else None
        for player, _ in self._under_way[:-1] if notice else ():
            player.notice(notice)

    def _counts_from_today(self, message: Message) -> bool:
        """Tell whether a customer says a day that the arrival of an order sets."""
        said = message["role"] in ("user", "tool") and DELIVERIES.search(message["content"])
        return bool(said) and "chain" not in self.lacks

    def _settled(self, message: Message) -> Message:
        """Put amounts in the place of the words for what earlier subtasks came to."""
        if message["role"] not in ("user", "tool"):
            return message
        outcomes: dict[str, int | None] = {}
        for player, given in self._submitted.items():
            outcomes |= player.comes_to(given, self._today)

        def amount(wish: Earlier, unit: str) -> int:
            found = None if "chain" in self.lacks else wish.of(outcomes)
            return NO_LIMIT[unit] if found is None else max(0, found)

        def cents(match: re.Match[str]) -> str:
            return money(amount(read_amount(match.group()), "money"))

        def days(match: re.Match[str]) -> str:
            return f"within {amount(read_delivery(match[1]), 'days')} days"

        return {**message, "content": DELIVERIES.sub(days, AMOUNTS.sub(cents, message["content"]))}
