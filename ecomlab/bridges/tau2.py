"""tau2-bench's message format: transcripts converted both ways, as plain JSON values; its package is not needed.

Where it differs from OpenAI's shape: calls are flat and their arguments objects; a call says who requested it; the
results of one message's calls are one message of several; a result does not name its tool, and says if it is an error.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ecomlab.task import Message

REQUESTOR = "assistant"
"""The caller of tools; in tau2-bench users may call tools too, ours never do."""


def to_tau2(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert a transcript of ours, system prompt included.

    Raises ValueError for a call whose arguments are no JSON object, which tau2-bench cannot hold; such a call ends an
    episode of ours as invalid.
    """
    made: list[dict[str, Any]] = []
    for is_tool, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_tool:
            results = [_result(message) for message in group]
            made.append(results[0] if len(results) == 1 else {"role": "tool", "tool_messages": results})
        else:
            made += [_said(message) for message in group]
    return [{**message, "turn_idx": number} if "tool_messages" not in message else message
            for number, message in enumerate(made)]  # fmt: skip


def from_tau2(messages: Sequence[dict[str, Any]]) -> list[Message]:
    """Convert a transcript of tau2-bench; fields that ours lack (cost, usage, times, audio) are left out.

    Raises ValueError for calls that a user made, and for a result without its call.
    """
    made: list[Message] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            for result in message.get("tool_messages") or [message]:
                made.append(_told(result, names))
            continue
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        names |= {call["id"]: call["function"]["name"] for call in calls}
        ours: Message = {"role": message["role"], "content": message.get("content") or ""}
        made.append({**ours, "tool_calls": calls} if calls else ours)
    return made


def _said(message: Message) -> dict[str, Any]:
    """Convert a message of the system, the customer or the agent; one without words has null for content."""
    theirs: dict[str, Any] = {"role": message["role"], "content": message["content"] or None}
    if "tool_calls" not in message:
        return theirs
    calls = []
    for call in message["tool_calls"]:
        name, text = call["function"]["name"], call["function"]["arguments"]
        try:
            arguments = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise ValueError(f"tau2-bench cannot hold the arguments of {name}, {text!r}: {error}") from None
        if not isinstance(arguments, dict):
            raise ValueError(f"tau2-bench cannot hold the arguments of {name}, {text!r}: not a JSON object")
        calls.append({"id": call["id"], "name": name, "arguments": arguments, "requestor": REQUESTOR})
    return {**theirs, "tool_calls": calls}


def _result(message: Message) -> dict[str, Any]:
    """Convert a tool's result."""
    try:
        failed = "error" in json.loads(message["content"])
    except (ValueError, TypeError):
        failed = False
    told = {"id": message["tool_call_id"], "content": message["content"], "error": failed}
    return {"role": "tool", "requestor": REQUESTOR, **told}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if call.get("requestor", REQUESTOR) != REQUESTOR:
        raise ValueError(
            f"{call['name']} was called by the {call['requestor']}; only an agent calls tools here"
        )
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": call.get("id", ""), "type": "function", "function": function}


def _told(result: dict[str, Any], names: dict[str, str]) -> Message:
    if result["id"] not in names:
        raise ValueError(f"there is no call {result['id']!r} before its result")
    told = {"tool_call_id": result["id"], "name": names[result["id"]], "content": result.get("content") or ""}
    return {"role": "tool", **told}
