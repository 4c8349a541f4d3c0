"""Tools are typed functions with docstrings written to the model; their JSON schemas are generated here."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from ecomlab.suggest import unknown


class InvalidCallError(Exception):
    """An invalid tool call: unknown tool, malformed JSON, missing or wrongly typed arguments."""


class RefusedError(Exception):
    """A legal call that does not succeed; its text becomes the tool's result and the episode goes on."""


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
    """Orders its rows as asked: by relevance or a sort. The order of other tools' rows must tell nothing."""
    acts: bool = False
    """Changes the world where the customer can see it."""
    undoes: "Tool | None" = None
    """The acting tool that this one takes back, called with the same ids."""
    tells: str = ""
    """A field of its result that openly tells what can be wanted at all, such as the status of an order."""

    @property
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

    def parse(self, arguments: str) -> dict[str, Any]:
        """Check the arguments of a call; null for an optional argument counts as left out. Raises InvalidCallError with
        the reason in words."""
        try:
            value = json.loads(arguments, parse_constant=_no_constant) if arguments else {}
        except (ValueError, RecursionError) as error:
            raise InvalidCallError(f"the arguments of {self.name} are not JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidCallError(f"the arguments of {self.name} are not a JSON object")
        value = {name: given for name, given in value.items() if given is not None or name in self.required}
        try:
            checked = self.arguments.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            raise InvalidCallError(f"{self.name}: {where}: {first['msg']}") from None
        return {name: getattr(checked, name) for name in type(checked).model_fields}


@overload
def tool(function: Callable[..., Any]) -> Tool: ...


@overload
def tool(
    *,
    lists: Mapping[str, str | tuple[str, ...]] = ...,
    ranked: bool = ...,
    acts: bool = ...,
    undoes: Tool | None = ...,
    tells: str = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    lists: Mapping[str, str | tuple[str, ...]] = MappingProxyType({}),
    ranked: bool = False,
    acts: bool = False,
    undoes: Tool | None = None,
    tells: str = "",
) -> Any:
    """Make a tool of a typed, documented function: `@tool`, or `@tool(lists={"rows": "row_id"})` with declarations."""
    several = {path: (ids,) if isinstance(ids, str) else ids for path, ids in lists.items()}

    def make(function: Callable[..., Any]) -> Tool:
        if not function.__doc__:
            raise TypeError(
                f"tool {function.__name__!r} has no docstring; it is the model's prompt, write one"
            )
        return Tool(function, several, ranked, acts or undoes is not None, undoes, tells)

    return make(function) if function else make


def find(tools: dict[str, Tool], name: str) -> Tool:
    """Look up a tool by name. Raises InvalidCallError with a suggestion."""
    try:
        return tools[name]
    except KeyError:
        raise InvalidCallError(unknown("tool", name, tools)) from None


def plain(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record that hold a single value."""
    return ((name, value) for name, value in record.items() if not isinstance(value, dict | list))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _plain(schema: Any) -> Any:
    """Drop what a model has no use for: titles, null defaults, and `anyOf: [X, null]` around optionals."""
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
        elif key == "title" or (key == "default" and value is None):
            continue
        else:
            kept[key] = _plain(value)
    return kept
