"""Strict parsing of a model's raw text into an assistant message, and of a message into its calls.

Qwen3's format: text, then any number of `<tool_call>` blocks, each one JSON object with `name` and `arguments`. This is
syntax alone: the episode checks that the tool exists and its arguments fit.
"""

import json
import re
import reprlib
from collections.abc import Sequence
from typing import Any

from ecomlab.tool import InvalidCallError

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MOST_CALLS = 64
"""Maximum number of tool calls in one message."""
MOST_TEXT = 20_000
"""Maximum number of characters in one message, and in one call's arguments."""
NONE = ("", "null", '""')
"""How servers write that a call has no arguments."""
MOST_NAME = 200
"""Maximum number of characters in a tool's name, and in a call's id."""
_CALL = r"(<tool_call>(?:(?!<tool_call>).)*?</tool_call>)"
_THINKING = re.compile(_CALL + r"|<think>.*?(?:</think>\s*|\Z)", re.DOTALL)
_THOUGHT = re.compile(_CALL + r"|</think>\s*", re.DOTALL)


def parse_output(text: str) -> dict[str, Any]:
    """Parse the assistant message in `text`, leaving out thinking.

    Malformed output never raises: it gives a message whose `invalid` holds the reason, which ends the episode as
    invalid. Reasons: a call that is not closed, text between or behind calls, JSON that does not parse, a call that is
    not an object with a name. The check of the arguments is left to the tool to say.
    """
    said = without_thinking(text)
    if CLOSE in said.partition(OPEN)[0]:
        return invalid(text, f"{CLOSE} without {OPEN}")
    content, *blocks = said.split(OPEN)
    calls: list[dict[str, Any]] = []
    for block in blocks:
        body, closed, rest = block.partition(CLOSE)
        if not closed:
            return invalid(text, f"a tool call is not closed by {CLOSE}")
        if rest.strip():
            return invalid(text, "text behind a tool call")
        try:
            call = json.loads(body)
        except (ValueError, RecursionError) as error:
            return invalid(text, f"bad JSON in a tool call: {error}")
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return invalid(text, "a tool call has no name")
        arguments = call.get("arguments", {})
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": call["name"], "arguments": written}
        calls.append({"id": f"call_{len(calls)}", "type": "function", "function": function})
    message: dict[str, Any] = {"role": "assistant", "content": content.strip()}
    if calls:
        message["tool_calls"] = calls
    return message


def without_thinking(text: str) -> str:
    """Remove all thinking: blocks, an unclosed one at the end, and the text before a `</think>` that the prompt has
    opened. What a whole call quotes is no thinking."""
    said = _THINKING.sub(lambda found: found[1] or "", text)
    ends = [found.end() for found in _THOUGHT.finditer(said) if not found[1]]
    return said[ends[-1] :] if ends else said


def invalid(text: str, reason: str) -> dict[str, Any]:
    """Make an invalid message, which ends the episode, from output that is no message."""
    return {"role": "assistant", "content": text, "invalid": reason}


def read_calls(message: Any) -> list[tuple[str, str]]:
    """Read (tool name, arguments) of each call. Raises InvalidCallError for anything but an assistant message.

    Only what JSON can be is looked at, dict, list and str themselves: a subclass may do anything when it is read.
    """
    if type(message) is not dict or message.get("role") != "assistant":
        raise InvalidCallError("not an assistant message")
    if message.get("invalid"):
        raise InvalidCallError(str(message["invalid"]))
    if not isinstance(message.get("content") or "", str):
        raise InvalidCallError("content is not text")
    if len(message.get("content") or "") > MOST_TEXT:
        raise InvalidCallError(f"the message is longer than {MOST_TEXT} characters")
    calls = message.get("tool_calls") or []
    if type(calls) is not list:
        raise InvalidCallError("tool_calls is not a list")
    if len(calls) > MOST_CALLS:
        raise InvalidCallError(f"{len(calls)} tool calls in one message; {MOST_CALLS} are allowed")
    return [_read_call(call) for call in calls]


def _read_call(call: Any) -> tuple[str, str]:
    function = call.get("function") if type(call) is dict else None
    if type(function) is not dict or "name" not in function:
        raise InvalidCallError("a tool call is not an object with a function's name and arguments")
    name, arguments = function["name"], function.get("arguments")
    if type(name) is not str:
        raise InvalidCallError("a tool call's name is not text")
    if len(name) > MOST_NAME:
        raise InvalidCallError(f"a tool's name is longer than {MOST_NAME} characters: {name[:40]}")
    if arguments is None or type(arguments) is dict:
        try:
            arguments = json.dumps(arguments)
        except (TypeError, ValueError, RecursionError):
            raise InvalidCallError(f"the arguments of {name} are not JSON") from None
    if type(arguments) is not str:
        raise InvalidCallError(f"the arguments of {name} are not text")
    if len(arguments) > MOST_TEXT:
        raise InvalidCallError(f"the arguments of {name} are longer than {MOST_TEXT} characters")
    return name, arguments


def text_of(message: Any) -> str:
    """Extract text for the record from something that is not a valid message."""
    if type(message) is dict and type(message.get("content") or "") is str:
        return (message.get("content") or "")[:MOST_TEXT]
    try:
        return reprlib.repr(message)
    except Exception:  # it is not ours, and may raise anything
        return "a message that cannot be written down"


def recorded(message: dict[str, Any], calls: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Make the record's copy of an assistant message: its content and numbered calls, and nothing else. Arguments that
    are "" or null are written as {}, because servers parse them when the history is sent back."""
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content") or ""}
    if calls:
        given = message["tool_calls"]
        kept["tool_calls"] = [
            {
                "id": _id(given[i].get("id"), i),
                "type": "function",
                "function": {"name": name, "arguments": "{}" if arguments.strip() in NONE else arguments},
            }
            for i, (name, arguments) in enumerate(calls)
        ]
    return kept


def _id(given: Any, number: int) -> str:
    """Return a call's id if it is one, else one made of its number."""
    return given if type(given) is str and 0 < len(given) <= MOST_NAME else f"call_{number}"


def written(result: dict[str, Any]) -> str:
    """Write a tool's result as JSON without spaces, which saves a quarter of its tokens."""
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))
