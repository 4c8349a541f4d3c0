"""Tools are typed functions with docstrings written to the model; their JSON schemas are generated here."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from ecomlab.arguments import read_arguments
from ecomlab.suggest import IN_JSON, mistakes, unknown


class InvalidCallError(Exception):
    """Output that is no message or no call, such as malformed JSON; it ends the episode."""


class FormatError(Exception):
    """A format error: an unknown tool, a missing, unknown or wrong argument. Its text, which names the fact and the way
    out, becomes the call's result; few are forgiven."""


class RefusedError(Exception):
    """A legal call that does not succeed; its text becomes the tool's result and the episode goes on."""


_UNSAID = ("default", "additionalProperties")
MOST_SAID = 500
"""Maximum number of characters of a message about a format error."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True)
class Tool:
    """A tool: a function whose first parameter is what it acts on, and whose others are the model's arguments.

    The other fields are declarations, by which the audit can use a tool that it has never seen. The schema, which is
    what a model sees, does not depend on them.
    """

    function: Callable[..., Any]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Field of the result that holds rows -> fields of a row that are ids, the row's own first. A dot leads into rows
    within rows: "orders.lines". Rows of what the agent itself has put there are not declared."""
    ranked: bool = False
    """Orders its rows as requested: by relevance or a sort. The order of other tools' rows must reveal nothing."""
    acts: bool = False
    """Changes the world where the customer can see it."""
    undoes: "Tool | None" = None
    """The acting tool that this one undoes, called with the same ids."""
    words: str = ""
    """An optional argument for words to look for, which a call that has nothing else to go by must give."""
    tells: str = ""
    """A field of its result that openly shows which rows can be wanted at all, such as the status of an order."""

    @cached_property
    def name(self) -> str:
        return self.function.__name__

    def rows(self, result: Any) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
        """Yield (ids, rows) of every list in one of this tool's results; inner rows have the outer row's fields too."""
        for path, ids in self.lists.items():
            *outer, last = path.split(".")
            holders: list[tuple[dict[str, Any], Any]] = [({}, result)] if isinstance(result, dict) else []
            for name in outer:
                holders = [(dict(plain(row)), row) for _, holder in holders for row in holder.get(name) or ()]
            for about, holder in holders:
                if rows := holder.get(last):
                    yield ids, [{**about, **row} for row in rows]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The pydantic model of the arguments, made from the function's signature."""
        parameters = list(inspect.signature(self.function, eval_str=True).parameters.values())[1:]
        made: dict[str, Any] = {
            p.name: (p.annotation, ... if p.default is inspect.Parameter.empty else p.default)
            for p in parameters
        }
        return create_model(self.name, __base__=_Arguments, **made)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The arguments that a call cannot leave out."""
        return tuple(n for n, argument in self.arguments.model_fields.items() if argument.is_required())

    @cached_property
    def usual(self) -> tuple[str, ...]:
        """The required arguments and the words to look for."""
        return (*self.required, *([self.words] if self.words else ()))

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The OpenAI tool schema that the model sees."""
        parameters = _plain(self.arguments.model_json_schema())
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": inspect.cleandoc(self.function.__doc__ or ""),
                "parameters": parameters,
            },
        }

    @cached_property
    def _schemas(self) -> dict[str, dict[str, Any]]:
        properties: dict[str, dict[str, Any]] = self.schema["function"]["parameters"].get("properties", {})
        return properties

    def check(self, given: Any) -> dict[str, Any]:
        """Check the arguments of a call, after conversions with only one possible meaning.

        An empty optional argument counts as omitted; null or "" for all of them as no arguments. Raises FormatError."""
        if given in (None, ""):
            given = {}
        if not isinstance(given, dict):
            raise FormatError(f"{self.name} takes its arguments as a JSON object: {self._takes()}")
        given = {
            name: value
            for name, value in given.items()
            if name in self.required or not self._empty(name, value)
        }
        try:
            checked = self.arguments.model_validate(read_arguments(given, self._schemas))
        except ValidationError as error:
            raise FormatError(
                f"{self.name}: {mistakes(error, self.arguments, IN_JSON)[0][:MOST_SAID]}"
            ) from None
        return {name: getattr(checked, name) for name in type(checked).model_fields}

    def _empty(self, name: str, value: Any) -> bool:
        """Tell whether a value is empty: null, or "" unless free text is allowed."""
        schema = self._schemas.get(name, {})
        return value is None or (value == "" and (schema.get("type") != "string" or "enum" in schema))

    def _takes(self) -> str:
        names = [f"{n}{'' if n in self.required else ' (optional)'}" for n in self.arguments.model_fields]
        return ", ".join(names) or "it takes none"


@overload
def tool(function: Callable[..., Any]) -> Tool: ...


@overload
def tool(
    *,
    lists: Mapping[str, str | tuple[str, ...]] = ...,
    ranked: bool = ...,
    acts: bool = ...,
    undoes: Tool | None = ...,
    words: str = ...,
    tells: str = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    lists: Mapping[str, str | tuple[str, ...]] = MappingProxyType({}),
    ranked: bool = False,
    acts: bool = False,
    undoes: Tool | None = None,
    words: str = "",
    tells: str = "",
) -> Any:
    """Make a tool of a typed, documented function: `@tool`, or `@tool(lists={"rows": "row_id"})` with declarations."""
    several = {path: (ids,) if isinstance(ids, str) else ids for path, ids in lists.items()}

    def make(function: Callable[..., Any]) -> Tool:
        if not function.__doc__:
            raise TypeError(
                f"tool {function.__name__!r} has no docstring; it is the model's prompt, write one"
            )
        return Tool(function, several, ranked, acts or undoes is not None, undoes, words, tells)

    return make(function) if function else make


def load_arguments(name: str, arguments: str) -> Any:
    """Parse the arguments of a call to the tool `name` as JSON, empty ones as null. Raises InvalidCallError, also for
    text, such as an object encoded twice: servers that parse the history refuse it."""
    try:
        given = json.loads(arguments, parse_constant=_no_constant) if arguments.strip() else None
    except (ValueError, RecursionError) as error:
        raise InvalidCallError(f"the arguments of {name} are not JSON: {error}") from None
    if given and isinstance(given, str):
        raise InvalidCallError(f"the arguments of {name} are text in JSON, not an object: {arguments[:80]}")
    return given


def find(tools: dict[str, Tool], name: str) -> Tool:
    """Look up a tool by name. Raises FormatError with a suggestion."""
    try:
        return tools[name]
    except KeyError:
        raise FormatError(unknown("tool", name, tools)) from None


def plain(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record that hold a single value."""
    return ((name, value) for name, value in record.items() if not isinstance(value, dict | list))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _plain(schema: Any) -> Any:
    """Drop what a model has no use for: titles, defaults of null and false, `anyOf: [X, null]` around optionals, and
    that there are no further arguments, which an error tells when it matters."""
    if isinstance(schema, list):
        return [_plain(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            schema = {**{k: v for k, v in schema.items() if k != "anyOf"}, **options[0]}
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: _plain(entry) for name, entry in value.items()}
        elif key == "title" or (key in _UNSAID and (value is None or value is False)):
            continue
        else:
            kept[key] = _plain(value)
    return kept
