"""Tools and calls as text, for servers that read no calls: schemas in the system prompt, calls read from the answer,
results written back."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecomlab.episode.messages import invalid, parse_output, without_thinking
from ecomlab.task import Message

MARKERS = re.compile(r"<(?=/?(?:tool_call|tool_response|tools|think)>|\|[^<>|\s]{1,40}\|>)")
"""The first letter of what structures a conversation in a common format; words of a message must not write it."""

HERMES_PROMPT = """

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

JSON_PROMPT = """

# Tools

These tools can be called, one JSON schema a line:
{tools}

To call tools, reply with one JSON list of all calls and nothing else; nothing may stand behind it:
[{{"name": "a tool's name", "arguments": {{"an argument's name": "its value"}}}}]
The results come back as {{"tool_results": [...]}}. A reply without such a list is read by the customer as it stands."""


@dataclass(frozen=True)
class Template:
    """A way to write tools and calls as text."""

    prompt: str
    """What is added to the system prompt, with the schemas, one a line, as `tools`."""
    read: Callable[[str], Message]
    """Parses an answer's text; malformed output is marked `invalid`, never raised."""
    said: Callable[[Message], str]
    """Writes an assistant message as text, calls included."""
    results: Callable[[Sequence[Message]], str]
    """Writes consecutive tool results as one user message."""
    joined: bool
    """Whether a customer's words behind results share their message, for models whose roles must alternate."""

    def write(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
        """Write a conversation without tools, for a request."""
        written: list[Message] = []
        pending: list[Message] = []
        for message in messages:
            if message["role"] == "tool":
                pending.append(message)
                continue
            if pending:
                written.append({"role": "user", "content": self.results(pending)})
            text = self._text(message, tools)
            if pending and self.joined and message["role"] == "user":
                written[-1]["content"] += f"\n\n{text}"
            else:
                written.append({"role": message["role"], "content": text})
            pending = []
        if pending:
            written.append({"role": "user", "content": self.results(pending)})
        return written

    def _text(self, message: Message, tools: Sequence[Mapping[str, Any]]) -> str:
        if message["role"] == "system":
            return str(message["content"]) + self.prompt.format(tools="\n".join(map(_json, tools)))
        return self.said(message) if message["role"] == "assistant" else defused(message["content"])


def defused(text: str) -> str:
    """Write the markers in somebody's words so that they read alike and structure nothing."""
    return MARKERS.sub("&lt;", text)


def _defused_json(text: str) -> str:
    """Write the markers within JSON so that it means the same."""
    return MARKERS.sub(r"\\u003c", text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _calls(message: Message) -> list[dict[str, Any]]:
    """List an assistant message's calls, as models write them."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [{"name": f["name"], "arguments": _value(f["arguments"])} for f in functions]


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _hermes_said(message: Message) -> str:
    blocks = [f"<tool_call>\n{_defused_json(_json(call))}\n</tool_call>" for call in _calls(message)]
    return "\n".join([text for text in (defused(message["content"]),) if text] + blocks)


def _hermes_results(results: Sequence[Message]) -> str:
    return "\n".join(
        f"<tool_response>\n{_defused_json(result['content'])}\n</tool_response>" for result in results
    )


def _json_said(message: Message) -> str:
    calls = _calls(message)
    return _defused_json(_json(calls)) if calls else defused(message["content"])


def _json_results(results: Sequence[Message]) -> str:
    told = [{"name": result.get("name", ""), "result": _value(result["content"])} for result in results]
    return _defused_json(_json({"tool_results": told}))


_CALL = re.compile(
    r"""(?:\A|```(?:json)?\s*)(?=(?:\[\s*)?\{\s*["'])"""
    r"""|(?=(?:\[\s*)?\{\s*["']name["']\s*:[^{}]*["'](?:arguments|parameters)["'])"""
)
"""The place before calls in JSON: where an answer or a fenced block begins, or behind words if there are arguments."""


def read_json_calls(text: str) -> Message:
    """Parse an answer that is a call, or a list of calls, as JSON, bare or in a fenced block, behind a remark if any.

    Some models write `parameters` for `arguments`. Braces in other words are words. JSON that is no call, and text
    behind calls, make the message invalid.
    """
    said = without_thinking(text).strip()
    if not (found := _CALL.search(said)):
        return {"role": "assistant", "content": said}
    try:
        value, end = json.JSONDecoder().raw_decode(said, found.end())
    except (ValueError, RecursionError) as error:
        return invalid(text, f"bad JSON in a tool call: {error}")
    if said[end:].strip() not in ("", "```"):
        return invalid(text, "text behind a tool call")
    calls = []
    for number, call in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return invalid(text, "a tool call has no name")
        arguments = call.get("arguments", call.get("parameters", {}))
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": call["name"], "arguments": written}
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
    return {"role": "assistant", "content": said[: found.start()].strip(), "tool_calls": calls}


TEMPLATES: dict[str, Template] = {
    "hermes": Template(HERMES_PROMPT, parse_output, _hermes_said, _hermes_results, joined=False),
    "json": Template(JSON_PROMPT, read_json_calls, _json_said, _json_results, joined=True),
}
"""Templates by name: "hermes", as Qwen's models have it; "json", for any model that follows instructions."""
