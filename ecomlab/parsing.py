"""A model's raw text into an assistant message: small, strict, and it says what went wrong.

Qwen3's format: text, then any number of `<tool_call>` blocks, each one JSON object with `name` and `arguments`. Whether
the tool exists and its arguments fit is the episode's business (`ecomlab.tooling`); this is syntax.
"""

import json
import re
from typing import Any

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_THINKING = re.compile(r"^\s*<think>.*?</think>\s*", re.DOTALL)


def parse_output(text: str) -> dict[str, Any]:
    """The assistant message in `text`.

    Malformed output never raises: it gives a message whose `invalid` holds the reason, which ends the episode as
    invalid. Reasons: a call that is not closed, text between or behind calls, JSON that does not parse, a call that is
    no object with a name and arguments. Thinking at the start is kept out of the content.
    """
    said = _THINKING.sub("", text, count=1)
    if CLOSE in said.partition(OPEN)[0]:
        return _invalid(text, f"{CLOSE} without {OPEN}")
    content, *blocks = said.split(OPEN)
    calls: list[dict[str, Any]] = []
    for block in blocks:
        body, closed, rest = block.partition(CLOSE)
        if not closed:
            return _invalid(text, f"a tool call is not closed by {CLOSE}")
        if rest.strip():
            return _invalid(text, "text behind a tool call")
        try:
            call = json.loads(body)
        except (ValueError, RecursionError) as error:
            return _invalid(text, f"bad JSON in a tool call: {error}")
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return _invalid(text, "a tool call has no name")
        arguments = call.get("arguments", {})
        if not isinstance(arguments, dict):
            return _invalid(text, "a tool call's arguments are not an object")
        function = {"name": call["name"], "arguments": json.dumps(arguments)}
        calls.append({"id": f"call_{len(calls)}", "type": "function", "function": function})
    message: dict[str, Any] = {"role": "assistant", "content": content.strip()}
    if calls:
        message["tool_calls"] = calls
    return message


def _invalid(text: str, reason: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "invalid": reason}
