"""An environment as the audit meets it: its tools by what they declare, and its reference players."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.players.base import Perturbation
from ecomlab.task import Message, Player
from ecomlab.tool import Tool, plain


def calls(*named: tuple[str, Mapping[str, Any]]) -> Message:
    """A message of tool calls."""
    made = [
        {"id": f"b{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def reference_player(env: str, shop: Shop, slips: Perturbation | None = None) -> Any:
    """The reference player, which sees what a model sees; with `slips` the noisy one."""
    return ENVIRONMENTS[env].reference_player(shop, slips)


def solver(episode: Episode) -> Player:
    """The player that knows the truth and acts through the tools."""
    return ENVIRONMENTS[episode.task.env].oracle(episode)


def tools_of(env: Environment) -> dict[str, Tool]:
    """The tools for the job by name: the channel to the customer and `submit` are not among them."""
    tools: Any = env.tools
    return dict(tools) if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}


def looks(env: Environment) -> list[Tool]:
    """The tools that change nothing."""
    return [tool for tool in tools_of(env).values() if not tool.acts]


def acts(env: Environment) -> list[Tool]:
    """The tools that do something that another look does not, and take back nothing."""
    return [tool for tool in tools_of(env).values() if tool.acts and not tool.undoes]


def ids_of(env: Environment) -> frozenset[str]:
    """Every field that is declared to be an id."""
    return frozenset(i for tool in tools_of(env).values() for ids in tool.lists.values() for i in ids)


def taken(tool: Tool, env: Environment) -> dict[str, str]:
    """Arguments that take an id -> which: those of its name, or of its plural for several of them."""
    ids = ids_of(env)
    found = {name: next((i for i in (name, name.removesuffix("s")) if i in ids), "") for name in fields(tool)}
    return {name: i for name, i in found.items() if i}


def fields(tool: Tool) -> dict[str, dict[str, Any]]:
    """The schema of each argument."""
    properties: dict[str, dict[str, Any]] = tool.schema["function"]["parameters"].get("properties", {})
    return properties


def kinds(field: Mapping[str, Any]) -> set[Any]:
    """The JSON types that an argument may have."""
    return {kind.get("type") for kind in (field, *field.get("anyOf", ()))}


def wants_words(tool: Tool, env: Environment) -> bool:
    """True of a tool that requires something else than ids."""
    return not set(tool.required) <= taken(tool, env).keys()


def sources(env: Environment) -> list[Tool]:
    """The tools that list something for the asking: whatever they require is text."""
    ids = ids_of(env)
    return [
        tool
        for tool in looks(env)
        if tool.lists
        and all(kinds(fields(tool)[name]) == {"string"} and name not in ids for name in tool.required)
    ]


def listed(tool: Tool) -> frozenset[str]:
    """The ids of the rows that a tool lists."""
    return frozenset(i for ids in tool.lists.values() for i in ids)


def follows(tool: Tool, known: Collection[str]) -> bool:
    """True of a tool that looks and requires ids, all of them among these."""
    return not tool.acts and bool(tool.required) and set(tool.required) <= set(known)


def look_at(source: Tool, words: str = "") -> tuple[str, dict[str, str]]:
    """A call of a source; where it wants text, these words, or what it says that it lists."""
    ((first, *_), *_) = source.lists.values()
    noun = first.removesuffix("_id") if first.endswith("_id") else source.name.partition("_")[0]
    return source.name, dict.fromkeys(source.required, words or noun)


def results(messages: Iterable[Message]) -> Iterator[tuple[str, Any]]:
    """(tool, result) of every tool result."""
    for message in messages:
        if message["role"] == "tool":
            yield message["name"], json.loads(message["content"])


def records(result: Any, within: Mapping[str, Any] = MappingProxyType({})) -> Iterator[dict[str, Any]]:
    """Every object in a result, whatever its depth, with the single values of those that it stands in."""
    if isinstance(result, dict):
        yield (found := {**within, **result})
        within = dict(plain(found))
    if isinstance(result, dict | list):
        for value in result.values() if isinstance(result, dict) else result:
            yield from records(value, within)
