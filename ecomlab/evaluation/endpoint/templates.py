"""Tools and calls as text, for servers that parse no calls: schemas in the system prompt, calls and results in the
Hermes format, as Qwen's models have it. `episode.messages.parse_output` reads the answers."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ecomlab.task import Message

MARKERS = re.compile(r"<(?=/?(?:tool_call|tool_response|tools|think)>|\|[^<>|\s]{1,40}\|>)")
"""First letter of a marker that structures a conversation; the text of a message must not contain one."""

PROMPT = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""Addition to the system prompt, with a schema per line."""


def write(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Write a conversation without tools, for a request. Consecutive tool results are one user message."""
    written: list[Message] = []
    for is_result, group in groupby(messages, lambda message: message["role"] == "tool"):
        if is_result:
            written.append({"role": "user", "content": "\n".join(map(_result, group))})
        else:
            written += [{"role": message["role"], "content": _text(message, tools)} for message in group]
    return written


def write_answer(message: Message) -> str:
    """Write an assistant message as text, calls included."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = [{"name": one["name"], "arguments": _arguments(one["arguments"])} for one in functions]
    blocks = [f"<tool_call>\n{_escape_json(_json(call))}\n</tool_call>" for call in calls]
    return "\n".join([text for text in (escape(message["content"]),) if text] + blocks)


def escape(text: str) -> str:
    """Escape the markers in a text, so that it reads alike and structures nothing."""
    return MARKERS.sub("&lt;", text)


def _escape_json(text: str) -> str:
    """Escape the markers within JSON without changing its meaning."""
    return MARKERS.sub(r"\\u003c", text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(message: Message, tools: Sequence[Mapping[str, Any]]) -> str:
    if message["role"] == "system":
        return str(message["content"]) + PROMPT.format(tools="\n".join(map(_json, tools)))
    return write_answer(message) if message["role"] == "assistant" else escape(message["content"])


def _result(message: Message) -> str:
    return f"<tool_response>\n{_escape_json(message['content'])}\n</tool_response>"


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
