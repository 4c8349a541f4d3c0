"""A model's own chat template as the format of its conversations, which is found out by rendering one at load.

Native tools where the template writes tools, calls and results, and its calls can be read back; otherwise the
convention "json" of `endpoint.templates`, in the system text. Every turn the whole conversation is rendered anew, since
templates may change what came before.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from ecomlab.episode.messages import invalid
from ecomlab.evaluation.endpoint.templates import TEMPLATES
from ecomlab.models.policy import PolicyError
from ecomlab.models.renderer import TAGS
from ecomlab.seeding import digest
from ecomlab.task import Message

DAY = date(2024, 7, 26)
"""What templates take for today, for an episode must be the same tomorrow; Llama 3.1's own default."""
_NOW = re.compile(r"""strftime_now\(\s*(["'])(.*?)\1\s*\)""")

SYSTEM, ASKED, FOUND, ADDED, SPOKEN = (
    "You probe.",
    "Find the probe.",
    "in the drawer",
    "And the lid?",
    "It is there.",
)
TOOL = {
    "type": "function",
    "function": {
        "name": "probe_find",
        "description": "Find a thing.",
        "parameters": {
            "type": "object",
            "properties": {"thing": {"type": "string", "description": "Which thing."}},
            "required": ["thing"],
        },
    },
}
ARGUMENTS = {"thing": "green probe"}


def _called(count: int) -> list[Message]:
    """Make an assistant message with so many calls, and their results."""
    function = {"name": "probe_find", "arguments": json.dumps(ARGUMENTS)}
    calls = [{"id": f"call_{i}", "type": "function", "function": function} for i in range(count)]
    results = [
        {
            "role": "tool",
            "tool_call_id": f"call_{i}",
            "name": "probe_find",
            "content": json.dumps({"found": FOUND}),
        }
        for i in range(count)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


BEFORE: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]
AFTER: list[Message] = [{"role": "user", "content": ADDED}]
"""The conversation that is rendered at load, before and after a call and its result."""


@dataclass(frozen=True)
class Style:
    """How a conversation is put into messages that a template takes."""

    tools: str
    """A reader in TEMPLATES for calls as the template writes them; "" where they are words, in the "json" convention.
    """
    system: bool
    """Whether the system text has a message of its own; otherwise it stands above the customer's first words."""
    apart: bool
    """Whether a customer's words may follow a tool's result; otherwise they stand below it, in the same message."""
    several: bool
    """Whether a message may have several calls; otherwise each has one of its own, with its result behind it."""


class ChatFormat:
    """A tokenizer with its chat template: conversations to token ids, and a turn's ids to a message."""

    def __init__(
        self, tokenizer: Any, stops: Iterable[int] = (), thinking: bool = False, name: str = ""
    ) -> None:
        """`stops` are token ids that end a turn beside the tokenizer's own and the template's; `name` is for errors.

        Raises PolicyError for a template that does not write a conversation with a tool in any way.
        """
        self.tokenizer, self.thinking = tokenizer, thinking
        self._template = _dated(tokenizer.chat_template)
        added = tokenizer.added_tokens_decoder
        self._special = {*tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}
        self._dropped: frozenset[int] = frozenset()
        self._opening: list[int] = []
        ends = {*stops, *([tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else [])}
        self.stop_ids = frozenset(ends)
        self.style = self._probe(name)

    @property
    def pad_id(self) -> int:
        """Token id for padding, which no model reads."""
        known = self.tokenizer.pad_token_id
        return int(known if known is not None else min(self.stop_ids, default=0))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides how a conversation is written: the template, and how it is used."""
        prompt = {} if self.style.tools else {"prompt": digest(TEMPLATES["json"].prompt)}
        style = asdict(self.style) | {"tools": self.style.tools or "in words", **prompt}
        return {
            "renderer": "chat template",
            "template": digest(self._template),
            "thinking": self.thinking,
            **style,
        }

    def prompt(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Render a conversation up to the model's turn. What messages hold is text, whatever it reads like: it makes no
        special token."""
        written = written_as(self.style, messages, tools)
        ids = self._apply(
            written, tools if self.style.tools else None, tokenize=True, sanitize_control_tokens=True
        )
        return [int(i) for i in ids]

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        """Parse the message in one turn's sampled ids, the one that ended it included; malformed output is marked
        `invalid`, never raised. A special token inside a turn is such: it would look like somebody else's turn. Where
        the template opens what is said by tokens of its own, all before them is thinking."""
        said, opened = list(ids[:-1]), len(self._opening)
        starts = [n for n in range(len(said)) if opened and said[n : n + opened] == self._opening]
        said = [i for i in said[starts[-1] + opened if starts else 0 :] if i not in self._dropped]
        text = self.text(said)
        for i in said:
            if i in self._special and (marker := self.text([i])) not in TAGS:
                return invalid(text, f"{marker} inside a turn")
        return TEMPLATES[self.style.tools or "json"].read(text)

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids to text, special tokens included."""
        return str(
            self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    def _apply(
        self,
        written: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        speak: bool = True,
        **how: Any,
    ) -> Any:
        return self.tokenizer.apply_chat_template(
            list(written),
            tools=list(tools) if tools else None,
            chat_template=self._template_for(tools),
            add_generation_prompt=speak,
            enable_thinking=self.thinking,
            return_dict=False,
            **how,
        )

    def _template_for(self, tools: Any) -> str:
        """Choose among named templates as transformers does."""
        if isinstance(self._template, str):
            return self._template
        return self._template.get("tool_use" if tools else "default") or self._template["default"]

    # --- finding out ---

    def _probe(self, name: str) -> Style:
        """Find the first style in which the template writes everything; note the tokens that end a turn and that go
        with a call. Raises PolicyError."""
        refused = ""
        for native in (True, False):
            for system in (True, False):
                for apart in (True, False) if native else (False,):
                    style = Style("hermes" if native else "", system, apart, True)
                    try:
                        found = self._native(style) if native else self._in_words(style)
                    except Exception as error:  # a template may raise anything
                        refused = str(error) or type(error).__name__
                        continue
                    if found:
                        return found
        raise PolicyError(
            f"{name or 'this model'} cannot be evaluated: its chat template does not write a conversation of system, "
            f"user and assistant ({refused or 'some of the messages are missing'}); put another one beside its files "
            "as chat_template.jinja"
        )

    def _in_words(self, style: Style) -> Style | None:
        """Return the style if the template writes every message of it."""
        conversation = [*BEFORE, *_called(1), *AFTER]
        text = self._text(style, conversation)
        self._note_turn(style)
        parts = (SYSTEM, ASKED, FOUND, ADDED, *ARGUMENTS.values(), *_words_of(TOOL))
        return style if all(part in text for part in parts) else None

    def _native(self, style: Style) -> Style | None:
        """Return the style, with a reader, if the template writes every message and tool, and its calls can be read."""
        conversation = [*BEFORE, *_called(1), *AFTER]
        text = self._text(style, conversation)
        parts = (SYSTEM, ASKED, FOUND, ADDED, *ARGUMENTS.values(), *_words_of(TOOL))
        if not all(part in text for part in parts):
            return None
        self._note_turn(style)
        reader = self._reader(style)
        return Style(reader, style.system, style.apart, self._takes_several(style)) if reader else None

    def _text(self, style: Style, messages: Sequence[Message], speak: bool = True) -> str:
        written = written_as(style, messages, [TOOL])
        return str(self._apply(written, [TOOL] if style.tools else None, speak, tokenize=False))

    def _reader(self, style: Style) -> str:
        """Find who reads a call as the template writes it; "" if nobody. Its special tokens go with calls, and are left
        out of what is read."""
        ids = self._encode(self._turn(style, _called(1)[0]))
        end = next((n for n, i in enumerate(ids) if i in self.stop_ids), len(ids))
        marks = {i for i in ids[:end] if i in self._special and self.text([i]) not in TAGS}
        text = self.text([i for i in ids[:end] if i not in marks])
        for reader in ("hermes", "json"):
            message = TEMPLATES[reader].read(text)
            read = [call["function"] for call in message.get("tool_calls") or ()]
            if [(one["name"], json.loads(one["arguments"])) for one in read] == [("probe_find", ARGUMENTS)]:
                self._dropped = frozenset(marks)
                return reader
        return ""

    def _takes_several(self, style: Style) -> bool:
        """Tell whether the template writes two calls in one message."""
        try:
            text = self._text(style, [*BEFORE, *_called(2), *AFTER])
        except Exception:
            return False
        return text.count(ARGUMENTS["thing"]) == 2 and text.count(FOUND) == 2

    def _note_turn(self, style: Style) -> None:
        """Note the token with which the template ends the assistant's turn, and those with which it opens the words of
        one, behind what every turn begins with."""
        said = self._turn(style, {"role": "assistant", "content": SPOKEN})
        before, _, behind = said.rpartition(SPOKEN)
        ends = [i for i in self._encode(behind) if i in self._special]
        self.stop_ids = self.stop_ids | frozenset(ends[:1])
        opening = self._encode(before)
        marks = [n for n, i in enumerate(opening) if i in self._special and self.text([i]) not in TAGS]
        self._opening = opening[marks[0] : marks[-1] + 1] if marks else []

    def _turn(self, style: Style, message: Message) -> str:
        """Write an assistant's message, without what the prompt for it ends with."""
        asked, whole = self._text(style, BEFORE), self._text(style, [*BEFORE, message], speak=False)
        differ = (n for n, (a, b) in enumerate(zip(asked, whole, strict=False)) if a != b)
        return whole[next(differ, len(asked)) :]

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def written_as(
    style: Style, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Put an episode's messages into those that a template takes in this style."""
    if not style.tools:
        plain = [dict(message) for message in TEMPLATES["json"].write(messages, tools)]
    else:
        plain = _with_calls(style, messages)
    if not style.system:
        first, *rest = plain
        plain = [{"role": "user", "content": first["content"]}, *rest]
    written: list[dict[str, Any]] = []
    for message in plain:
        before = written[-1] if written else {"role": ""}
        same = message["role"] == before["role"] and message["role"] != "tool"
        below = not style.apart and before["role"] == "tool" and message["role"] == "user"
        # roles must alternate in many templates
        if (same and not (message.get("tool_calls") or before.get("tool_calls"))) or below:
            written[-1] = {**before, "content": f"{before['content']}\n\n{message['content']}".strip()}
        else:
            written.append(message)
    return written


def _with_calls(style: Style, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Write calls as templates have them: arguments are objects, and ids are nine letters and digits, as Mistral's
    demand. Where a message may have one call only, its others follow behind the first one's result."""
    written: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    held: dict[str, dict[str, Any]] = {}
    count = 0
    for message in messages:
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if call_id in held:
                written.append({"role": "assistant", "content": "", "tool_calls": [held.pop(call_id)]})
            written.append({**message, "tool_call_id": ids[call_id]})
            continue
        message = dict(message)
        if calls := message.pop("tool_calls", None):
            copied = []
            for call in calls:
                ids[call["id"]] = f"{count:09d}"
                function = {**call["function"], "arguments": _object(call["function"]["arguments"])}
                copied.append({**call, "id": ids[call["id"]], "function": function})
                count += 1
            message["tool_calls"] = copied
            if not style.several:
                message["tool_calls"] = copied[:1]
                held = {call["id"]: one for call, one in zip(calls[1:], copied[1:], strict=True)}
        written.append(message)
    return written


def _object(arguments: str) -> dict[str, Any]:
    """Read arguments as an object, for templates go through its items; whatever else a model wrote stands in one."""
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = arguments
    return found if isinstance(found, dict) else {"arguments": found}


def _words_of(tool: Mapping[str, Any]) -> list[str]:
    function = tool["function"]
    return [function["name"], function["description"], *function["parameters"]["properties"]]


def _dated(template: Any) -> Any:
    """Write a fixed day into a template, or into each of several."""
    if isinstance(template, Mapping):
        return {name: _dated(text) for name, text in template.items()}
    return _NOW.sub(lambda found: json.dumps(DAY.strftime(found[2])), template)
