"""Base of the reference players: reads new messages, writes tool calls and remembers what each was for."""

import json
from typing import Any

import numpy as np

from ecomlab.task import Message
from ecomlab.world.tools.catalog import catalog_search, whole


class Perturbation:
    """Seeded mistakes at a fixed rate per decision."""

    def __init__(self, random: np.random.Generator, rate: float) -> None:
        self.random = random
        self.rate = rate
        self.count = 0
        """Mistakes so far."""

    def slip(self) -> bool:
        """Draw whether this decision goes wrong."""
        wrong = bool(self.random.random() < self.rate)
        self.count += wrong
        return wrong


class Shown(dict[str, Any]):
    """An object that a tool has shown. No player changes it, so that copies of a player share it."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Shown":
        return self


class Planner:
    """A player that reads each message once and plans one turn at a time."""

    lacks: frozenset[str] = frozenset()
    """Kinds of steps of thought that it cannot take."""
    contrary: frozenset[str] = frozenset()
    """Kinds of steps of thought in which it believes, without a look, that the plain choice is the wrong one."""

    def __init__(self, perturbation: Perturbation | None = None) -> None:
        self.perturbation = perturbation
        self._asked_for: dict[str, Any] = {}
        self._given: dict[str, dict[str, Any]] = {}
        """Arguments of calls whose results are awaited."""
        self._read = 0
        self._calls = 0

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        for message in messages[self._read :]:
            if message["role"] == "tool":
                about = self._asked_for.pop(message["tool_call_id"], None)
                given = self._given.pop(message["tool_call_id"], {})
                result = json.loads(message["content"], object_hook=Shown)
                if message["name"] == catalog_search.name and "results" in result:
                    result["results"] = [Shown(whole(row, given)) for row in result["results"]]
                if "notice" in result:
                    self.notice(result["notice"])
                if "customer" in result:
                    self.hear(result["customer"], opening=False)
                else:
                    self.result(about, result)
            elif message["role"] == "user":
                self.hear(message["content"], opening=self._read == 0)
        self._read = len(messages)
        return self.planned()

    def planned(self) -> Message:
        """Plan the next message after everything new is read."""
        return self.plan()

    def hear(self, text: str, opening: bool) -> None:
        """Process a customer's message."""

    def notice(self, text: str) -> None:
        """Process a notice that came with a tool's result, before the result itself."""

    def result(self, about: Any, result: dict[str, Any]) -> None:
        """Process a tool's result; `about` is the purpose given with the call."""

    def plan(self) -> Message:
        """Make the next message."""
        raise NotImplementedError

    def call(self, name: str, about: Any, /, **arguments: Any) -> dict[str, Any]:
        """Make a tool call and remember what it is for; arguments that are None are left out."""
        self._calls += 1
        call_id = f"c{self._calls}"
        self._asked_for[call_id] = about
        arguments = {key: value for key, value in arguments.items() if value is not None}
        self._given[call_id] = arguments
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }

    def turn(self, *calls: dict[str, Any]) -> Message:
        """Make a message of these calls."""
        return {"role": "assistant", "content": "", "tool_calls": list(calls)}

    def slip(self) -> bool:
        """Draw whether this decision goes wrong; never without a perturbation."""
        return self.perturbation is not None and self.perturbation.slip()
