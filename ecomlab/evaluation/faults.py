"""Format errors of a model, read off its messages: malformed calls, empty answers, refusals, truncation."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import ask_user
from ecomlab.episode.record import Trajectory
from ecomlab.task import Message
from ecomlab.tool import FormatError, InvalidCallError, Tool, find, load_arguments

if TYPE_CHECKING:
    from ecomlab.models.batch import Rollout

FAULTS = ("malformed call", "call in text", "empty answer", "refusal", "length", "context")
"""Classes of format errors."""
_ARGUMENTS = r"[\"'](?:arguments|parameters|args|action_input|tool_input)[\"']\s*:"
_CALL = re.compile(
    r"</?tool_call|<function(?:_calls?)?\b[=>]|<invoke\b|<｜tool▁call|<\|(?:python_tag|tool_|START_ACTION|call\|)"
    r"|\[TOOL_CALLS\]|\[ARGS\]|\bto=functions\.|```tool_|\bAction Input:"
    rf"|\{{[^{{}}]{{0,300}}{_ARGUMENTS}|{_ARGUMENTS}\s*\{{[^{{}}]{{0,2000}}\}}\s*,\s*[\"']name[\"']\s*:"
    r"|^\s*(?:```\w*\s*)?\[?\s*\{\s*[\"']name[\"']\s*:\s*(?:[\"'](?:[\w.-]*(?:[\"']\s*(?:\}|,?\s*$)|$))|$)"
    r"|(?:^\s*|```\w*\s+)\[?\s*(?:print\()?[a-z]\w*[_.]\w+\((?:\s*\)|\s*\w+\s*=)"
)
"""Beginnings of calls in the formats of models and servers: tags and tokens of their own, JSON with arguments, the
keywords of ReAct, and Python at the beginning of a text or a fenced block."""
_WHO = (
    r"(?:^\W*|[,;:—-]\s*(?:but\s+)?|\b(?:i|we)(?:['’](?:m|re|ll)| am| are| will)?\s+"
    r"(?:(?:really|simply|just|also|unfortunately|currently|sorry|afraid)\s+)*)"
)
_CANNOT = (
    r"(?:can(?:no|['’])?t|can not|could(?:n['’]t| not)|won['’]t(?: be able to)?|will not(?: be able to)?"
    r"|unable to|not (?:be )?able to|not (?:allowed|permitted|equipped) to|(?:have to|must) decline to"
    r"|(?:do not|don['’]t) have the (?:ability|capability|means) to)"
)
_HELP = (
    r"(?:(?:help|assist|comply|be of (?:any )?(?:help|assistance)"
    r"|(?:provide|offer)(?: you)?(?: with)?(?: any)? (?:help|assistance|support))\b(?!\s+(?:but|it|\w+ing)\b)"
    r"|do (?:that|this)(?: for you)?(?=\W*(?:$|sorry\b))"
    r"|(?:fulfil+|perform|complete|carry out|engage in|answer) "
    r"(?:that|this|your|such a) (?:kind of )?(?:request|task)\b)"
)
_MACHINE = r"\b(?:AI|chatbot|language model|(?:virtual|digital|conversational|text-based) assistant)\b"
_REFUSAL = re.compile(
    rf"(?:{_WHO}{_CANNOT}|\b(?:do not|don['’]t) think (?:i|we) (?:can|could))\s+{_HELP}"
    rf"|{_MACHINE}[^.!?]{{0,60}}(?:{_CANNOT}|not capable of|(?:do not|don['’]t) have)\b"
    r"|\b(?:isn['’]t|not) something (?:that )?i(?:['’]m| am)?(?: able to| can)? (?:help|assist|do)\b"
    r"|\b(?:beyond|outside(?: of)?) (?:what i can|my (?:abilities|capabilities|scope))\b"
    r"|\bi(?:['’]ll)? (?:(?:have to|must|need to) decline(?: to|[.,!]|$)|decline to|refuse to)"
    r"|\bnot comfortable (?:with|helping)\b"
    r"|\b(?:do not|don['’]t) have the (?:ability|capability|means|tools?|functions?)\b"
    r"|\b(?:no|not) (?:way|possible) for me to (?:help|assist|do|perform|carry out|complete)\b"
    r"|\b(?:functions|tools) (?:provided |given )?(?:are|is) (?:insufficient|not sufficient|not enough)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(r"\b(?:without|until|unless|before|if|as long as|while)\b", re.IGNORECASE)
"""Words that turn a refusal into a condition: "I can't help you without the order's number"."""


def faults_of(trajectory: Trajectory, cut: str = "", refused: Collection[int] = ()) -> tuple[str, ...]:
    """List the classes of a trajectory's format errors in order, one per message.

    `cut` is "length" or "context" if a token limit ended the episode; `refused` are the numbers of the assistant
    messages that the endpoint marks as refusals.
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
    """List the format errors of a rollout as `faults_of` does; `context` is the token limit of a whole episode. Empty
    if the episode could not begin."""
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
    if looks_like_call(content):
        return "call in text"
    if refused or refuses(content):
        return "refusal"
    return "" if content.strip() else "empty answer"


def looks_like_call(text: str) -> bool:
    """Tell whether a text was meant as a call, complete or not, in a format of models and servers."""
    return _CALL.search(text) is not None


def refuses(text: str) -> bool:
    """Tell whether a text refuses to help, which is more than reporting that something cannot be done or found."""
    sentences = re.split(r"(?<=[.!?])\s|\n", text)
    return any(_REFUSAL.search(one) and not _WAITS.search(one) for one in sentences)


def _is_malformed(function: Message, tools: dict[str, Tool]) -> bool:
    try:
        given = load_arguments(function["name"], function["arguments"])
        find(tools, function["name"]).check(given)
    except (InvalidCallError, FormatError):
        return True
    return False
