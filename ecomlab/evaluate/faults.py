"""A model's own mistakes of form, read off what it said: malformed calls, empty answers, refusals, being cut off."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Trajectory, ask_user
from ecomlab.task import Message
from ecomlab.tool import InvalidCallError, SlipError, Tool, find, load_arguments

if TYPE_CHECKING:
    from ecomlab.models.batch import Rollout

FAULTS = ("malformed call", "empty answer", "refusal", "length", "context")
"""Classes of mistakes."""
_REFUSAL = re.compile(
    r"\b(?:can(?:no|['’])t|can not|unable to|won['’]t|not able to) "
    r"(?:(?:help|assist)(?: you)?(?: with (?:that|this)\b|[.!]|$)|(?:comply|fulfil))",
    re.IGNORECASE,
)


def faults_of(trajectory: Trajectory, cut: str = "", refused: Collection[int] = ()) -> tuple[str, ...]:
    """List the classes of a trajectory's mistakes in order, one a message.

    `cut`: "length" or "context", where a limit of tokens ended the episode; `refused`: numbers of the assistant
    messages that the endpoint marks as refusals, beside those that read like one.
    """
    env = ENVIRONMENTS[trajectory.task.env]
    tools: dict[str, Tool] = {**env.offered, "ask_user": ask_user, "submit": env.submit}
    said = [message for message in trajectory.messages if message["role"] == "assistant"]
    found = [
        _fault(message, tools, number in refused, trajectory.end == "invalid" and number == len(said) - 1)
        for number, message in enumerate(said)
    ]
    return tuple(fault for fault in (*found, cut) if fault)


def faults_of_rollout(rollout: "Rollout", context: int) -> tuple[str, ...]:
    """List the classes of a rollout's mistakes as `faults_of` does; `context` is the limit of tokens of a whole
    episode. Empty where no episode could be opened."""
    if rollout.trajectory is None:
        return ()
    full = len(rollout.prompt_ids) + len(rollout.completion_ids) >= context
    cut = ("context" if full else "length") if rollout.end == "truncated" else ""
    return faults_of(rollout.trajectory, cut)


def _fault(message: Message, tools: dict[str, Tool], refused: bool, invalid: bool) -> str:
    calls = message.get("tool_calls") or []
    content = message.get("content") or ""
    if invalid or any(_is_malformed(call["function"], tools) for call in calls):
        return "malformed call"
    if calls:
        return ""
    if refused or _REFUSAL.search(content):
        return "refusal"
    return "" if content.strip() else "empty answer"


def _is_malformed(function: Message, tools: dict[str, Tool]) -> bool:
    try:
        given = load_arguments(function["name"], function["arguments"])
        find(tools, function["name"]).check(given)
    except (InvalidCallError, SlipError):
        return True
    return False
