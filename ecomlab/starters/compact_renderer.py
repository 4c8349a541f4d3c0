"""The laptop policy's renderer: Qwen3's chat format, shortened.

It leaves out the system prompt and the tool schemas, shows tool results as short lines instead of JSON, and ids as
aliases of one token, which it translates back in tool calls. The environment sees ordinary messages. `compact_results`
holds the lines of results outside plain CART tasks. Nothing is ever tokenised again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ecomlab.episode.messages import invalid, parse_output
from ecomlab.models.renderer import END, START, Message, TextRenderer
from ecomlab.starters.compact_results import KNOWN, Call, Generic, View, without_notices
from ecomlab.starters.id_aliases import Aliases

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.task import Player

    Teacher = Callable[[str, Shop, Callable[[str], bool]], Player]

Row = TypeVar("Row", bound=Mapping[str, Any])
VERSION = 5
"""Goes up when the same messages would give other text; starters trained on other text are then refused."""

ASSISTANT = f"{START}assistant\n"
USER = f"{START}user\n"
TOOLS_OPEN, TOOLS_NEXT, TOOLS_CLOSE = (
    "<tool_response>\n",
    "\n</tool_response>\n<tool_response>\n",
    "\n</tool_response>",
)
RESULTS = OK, NOTHING, EMPTY, SOLD_OUT, ERROR = "ok", "nothing found", "empty", " (sold out)", "error: "
"""Words of results other than names and ids."""
ROWS_SHOWN = 3
"""Rows of a search result that the laptop policy sees."""
IDS = ("product_id", "order_id", "line_id", "clause", "replacement", "product_ids")
"""Arguments that hold ids."""


class ShortRenderer(TextRenderer):
    """The renderer, around the laptop policy's tokenizer."""

    def __init__(self, tokenizer: Any, teacher: "Teacher | None" = None) -> None:
        super().__init__(tokenizer)
        self.teacher = teacher
        """Makes the player whose words the policy imitated."""
        self.stop_ids: Sequence[int] = (tokenizer.convert_tokens_to_ids(END),)
        self.pad_id = int(tokenizer.pad_token_id)

    def dialogue(self) -> "ShortDialogue":
        return ShortDialogue(self)


class ShortLines:
    """One episode as text in short lines; holds the aliases assigned so far."""

    def __init__(self) -> None:
        self.aliases = Aliases()
        self._view: View | None = None
        self._said: list[Call] = []
        """Calls whose results come next."""

    def opening(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> str:
        """Write the customer's opening, without the system prompt and the schemas.

        Plain CART tasks keep an older form of results, which the starters were trained on.
        """
        offered = {tool["function"]["name"] for tool in tools}
        if "cart_add" not in offered or "catalog_get_product" in offered:  # offered everywhere but in CART
            self._view = View(self.aliases)
        return self._text([m for m in messages if m["role"] != "system"])

    def answer(self, messages: Sequence[Message]) -> str:
        """Write the tools' and the customer's reply to a turn."""
        return "\n" + self._text(messages)

    def write(self, content: str, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Write an assistant turn for demonstrations, as text that `read` parses back into the same message."""
        parts = [self.aliases.in_text(content)] if content else []
        for name, arguments in calls:
            spaced = {key: self._spaced(key, value) for key, value in arguments.items()}
            parts.append(call_text(name, spaced))
        self._said = list(calls)
        return "\n".join(parts) + END

    def _spaced(self, key: str, value: Any) -> Any:
        """Write an argument as the policy does: an id as its alias, other strings with a leading space."""
        if isinstance(value, str):
            return self.aliases.of(value) if key in IDS or self.aliases.knows(value) else " " + value
        if isinstance(value, dict):
            return {name: self._spaced(name, entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self._spaced(key, e) if key in IDS or self.aliases.knows(e) else e for e in value]
        return value

    def _text(self, messages: Sequence[Message]) -> str:
        """Write tool results and customer turns with Qwen3's markers and the generation prompt at the end."""
        told, notices = without_notices([m for m in messages if m["role"] == "tool"])
        if self._view is None:
            results = [self._result(m) for m in told]
        else:
            results = self._view.results(self._said, told, self._result)
        text = ""
        if results:
            results[-1] = "\n".join([results[-1], *notices])
            text += USER + TOOLS_OPEN + TOOLS_NEXT.join(results) + TOOLS_CLOSE + END + "\n"
        for message in messages:
            if message["role"] == "user":
                text += USER + str(message["content"]) + END + "\n"
        return text + ASSISTANT

    def _result(self, message: Message) -> str:
        """Write a tool's result as a few short lines."""
        try:
            result = json.loads(message["content"])
        except ValueError:
            return str(message["content"])
        if not isinstance(result, dict):
            return json.dumps(result)
        if "error" in result:
            return ERROR + self.aliases.in_text(str(result["error"]))
        if "customer" in result:
            return str(result["customer"])
        if message.get("name") not in KNOWN:
            return Generic(self.aliases).any_result(result)
        rows = result.get("results", result.get("visits"))
        if rows is not None:
            shown = [f"-{_spaced_title(row)}{self.aliases.of(row['product_id'])}" for row in visible(rows)]
            return "\n".join(shown) or NOTHING
        if "variants" in result:
            return ",".join(f" {v['variant_id']}{'' if v['stock'] else SOLD_OUT}" for v in result["variants"])
        if "line" in result:
            return OK
        if "cart" in result:
            return self._cart(result["cart"])
        return self.aliases.in_text(json.dumps(result))

    def _cart(self, lines: Sequence[Mapping[str, Any]]) -> str:
        shown = [
            f"- {line['quantity']}{_spaced_title(line)}{self.aliases.of(line['product_id'])}"
            + (f" {line['variant_id']}" if line["variant_id"] else "")
            for line in lines
        ]
        return "\n".join(shown) or EMPTY


class ShortDialogue(ShortLines):
    """One episode as token ids."""

    def __init__(self, renderer: ShortRenderer) -> None:
        super().__init__()
        self._renderer = renderer

    def open(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        return self._renderer.encode(self.opening(self._renderer.defused(messages), tools))

    def say(self, message: Message) -> list[int]:
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        content = str(message["content"] or "").strip()
        return self._renderer.encode(self.write(f" {content}" if content and calls else content, calls))

    def follow(self, messages: Sequence[Message]) -> list[int]:
        return self._renderer.encode(self.answer(self._renderer.defused(messages)))

    def read(self, ids: Sequence[int]) -> dict[str, Any]:
        text = self._renderer.decode(ids).removesuffix(END)
        message = dict(parse_output(text))
        try:
            message["tool_calls"] = [self._translated(call) for call in message.get("tool_calls") or []]
        except RecursionError:  # lists within lists that JSON can hold and a function here cannot walk
            return invalid(text, "a tool call is nested too deeply")
        self._said = [_call(call) for call in message["tool_calls"]]
        if not message["tool_calls"]:
            del message["tool_calls"]
        return message

    def teacher(self, env: str, shop: "Shop") -> "Player | None":
        make = self._renderer.teacher
        return make and make(env, shop, self.aliases.knows)

    def _translated(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Strip outer spaces from a tool call's strings and replace aliases by ids."""
        function = call["function"]
        try:
            arguments = json.loads(function["arguments"])
        except (ValueError, RecursionError):
            return dict(call)
        if isinstance(arguments, dict):
            arguments = {key: self.aliases.real(_stripped(value)) for key, value in arguments.items()}
        return {**call, "function": {**function, "arguments": json.dumps(arguments)}}


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """Write a tool call as Qwen3 does."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def visible(rows: Sequence[Row]) -> list[Row]:
    """Select the rows of a result that the laptop policy sees: the first few in stock that are not sponsored."""
    return [row for row in rows if row["stock"] > 0 and "sponsored" not in row][:ROWS_SHOWN]


def _call(call: Mapping[str, Any]) -> Call:
    """Return a parsed call's name and arguments, empty if they are malformed."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except (ValueError, RecursionError):
        arguments = {}
    return call["function"]["name"], arguments if isinstance(arguments, dict) else {}


def _stripped(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_stripped(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _stripped(entry) for key, entry in value.items()}
    return value


def _spaced_title(row: Mapping[str, Any]) -> str:
    return " " + str(row["title"])
