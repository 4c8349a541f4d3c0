"""The rules of play: format errors, notices, the gate of submit, and what counts as a turn."""

import json
from collections.abc import Mapping
from typing import Any

from ecomlab.episode.messages import written
from ecomlab.episode.subtask import Subtask
from ecomlab.task import Message, SellOut
from ecomlab.tool import RefusedError
from ecomlab.world.state import World

MOST_FORMAT_ERRORS = 3
"""Format errors that end an episode as invalid; in a journey, those of one subtask."""
LAST = 2
"""Number of messages left at which the agent is reminded."""


class Referee:
    """The rules of one episode. It counts turns, and knows of the turn under way what concerns the rules.

    It does not refer to its episode, so that a finished one is freed at once.
    """

    def __init__(self, world: World, turns: int, strict: bool) -> None:
        self.world, self.turns, self.strict = world, turns, strict
        self.turn = 0
        """Number of assistant messages that count; a submit that is rejected for news does not."""
        self.rejected = False
        """True if submit was rejected for news in this turn."""
        self._had_format_error = False
        self._unread: list[SellOut] = []
        """Sell-outs of which the agent did not know when this turn began."""
        self._changes = 0

    @property
    def changed(self) -> bool:
        """True if the agent acted on the world in this turn."""
        return self.world.changes > self._changes

    @property
    def out_of_turns(self) -> bool:
        """True if the turn budget is used up."""
        return self.turn >= self.turns

    def begin_turn(self) -> None:
        """Begin the turn of one assistant message."""
        self.turn += 1
        self.world.touched.clear()
        self.world.short.clear()
        self._unread, self._changes = list(self.world.news), self.world.changes
        self._had_format_error = self.rejected = False

    def count_turn(self) -> None:
        """Undo a turn in which submit was rejected: the news came too late, so the message does not count."""
        self.turn -= self.rejected

    def count_format_error(self, subtask: Subtask) -> bool:
        """Count a format error, several in one message once; tell whether it ends the episode."""
        subtask.format_errors += not self._had_format_error
        self._had_format_error = True
        return self.strict or subtask.format_errors >= MOST_FORMAT_ERRORS

    def with_notice(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add the shop's notice to the agent to a tool's result."""
        notice = self.world.notice()
        return {**result, "notice": notice} if notice else result

    def remind(self, messages: list[Message], by_tool: bool) -> None:
        """Say when two messages are left: with the last tool's result, or else below what the customer said."""
        if self.turns - self.turn != LAST or self.rejected:
            return
        line = "Two messages are left."
        if by_tool:
            message = next(m for m in reversed(messages) if m["role"] == "tool")
            result = json.loads(message["content"])
            result["notice"] = " ".join([*([result["notice"]] if "notice" in result else []), line])
            message["content"] = written(result)
        else:
            messages[-1]["content"] += f"\n[{line}]"

    def admit(self, subtask: Subtask, answer: Mapping[str, Any]) -> None:
        """Let an answer pass, or raise RefusedError.

        Reject the first submit, so that every agent gets to react, if the customer has something to add, or if
        something in the answer, or that the agent tried to buy in this turn, has sold out without its knowledge.
        """
        customer = subtask.customer
        subtask.progress.handing_in = True
        if subtask.held_back:
            return
        customer.tick(subtask.progress, self.world, quiet=False)  # what happens in the shop shows at once
        gone, news = self._sold_out(answer), []
        if gone:
            news.append(f"stock has changed ({', '.join(gone)} sold out)")
        if customer.expects_more:
            news.append("the customer has something to add")
        if news:
            subtask.held_back = self.rejected = True
            raise RefusedError(
                f"nothing was handed in: {' and '.join(news)}; see to it, then call submit again"
            )

    def _sold_out(self, answer: Mapping[str, Any]) -> list[str]:
        """List the products of an answer, and those that the agent has tried to buy in this turn, that have just sold
        out."""
        values = [one for value in answer.values() for one in (value if isinstance(value, list) else [value])]
        just = {one for event in (*self._unread, *self.world.news) for one, _, _ in event.left}
        named = [one for one in values if isinstance(one, str) and one in just]
        gone = [one for one in named if not self.world.stock(self.world.row(one))]
        return list(dict.fromkeys([*gone, *(one for one in self.world.short if one in just)]))
