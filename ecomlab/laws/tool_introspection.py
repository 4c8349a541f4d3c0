"""An environment as the audit sees it: its tools by their declarations, its reference player, its tasks in a shop."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.support import unsupported
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import make_task
from ecomlab.players.base import Perturbation
from ecomlab.task import Message, Task, TaskError
from ecomlab.tool import Tool, plain


def calls(*named: tuple[str, Mapping[str, Any]]) -> Message:
    made = [
        {"id": f"b{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def reference_player(env: str, shop: Shop, perturbation: Perturbation | None = None) -> Any:
    """Make the reference player, which sees what a model sees, or the perturbed one."""
    return ENVIRONMENTS[env].reference_player(shop, perturbation)


def drawn(env: str, d: int, seeds: Iterable[int], shop: Shop) -> tuple[list[Task], dict[str, int]]:
    """Draw the tasks of a level; return (tasks, number of tasks that the catalog cannot give, by reason). A generated
    catalog gives every task, so there a TaskError is raised."""
    seeds = list(seeds)
    if why := unsupported(shop.catalog).get(env):
        return [], {why: len(seeds)}
    tasks, refused = list[Task](), Counter[str]()
    for seed in seeds:
        try:
            tasks.append(make_task(env, d, seed, shop))
        except TaskError as error:
            if shop.catalog.drawable is None:
                raise
            refused[str(error)] += 1
    return tasks, dict(refused)


def looks(env: Environment) -> list[Tool]:
    """List the tools that do not act."""
    return [tool for tool in env.tools if not tool.acts]


def acts(env: Environment) -> list[Tool]:
    """List the tools that act, without those that undo."""
    return [tool for tool in env.tools if tool.acts and not tool.undoes]


def ids_of(env: Environment) -> frozenset[str]:
    """Collect every field that is declared to be an id."""
    return frozenset(i for tool in env.tools for ids in tool.lists.values() for i in ids)


def taken(tool: Tool, env: Environment) -> dict[str, str]:
    """Map arguments that take an id to the id's field: those of its name, or of its plural for several."""
    ids = ids_of(env)
    found = {name: next((i for i in (name, name.removesuffix("s")) if i in ids), "") for name in fields(tool)}
    return {name: i for name, i in found.items() if i}


def fields(tool: Tool) -> dict[str, dict[str, Any]]:
    """Return the schema of each argument."""
    properties: dict[str, dict[str, Any]] = tool.schema["function"]["parameters"].get("properties", {})
    return properties


def kinds(field: Mapping[str, Any]) -> set[Any]:
    """Collect the JSON types that an argument may have."""
    return {kind.get("type") for kind in (field, *field.get("anyOf", ()))}


def wants_words(tool: Tool, env: Environment) -> bool:
    """Tell whether a tool requires anything but ids."""
    return not set(tool.usual) <= taken(tool, env).keys()


def sources(env: Environment) -> list[Tool]:
    """List the tools that list something and require nothing but text."""
    ids = ids_of(env)
    return [
        tool
        for tool in looks(env)
        if tool.lists
        and all(kinds(fields(tool)[name]) == {"string"} and name not in ids for name in tool.usual)
    ]


def listed(tool: Tool) -> frozenset[str]:
    """Collect the id fields of the rows that a tool lists."""
    return frozenset(i for ids in tool.lists.values() for i in ids)


def follows(tool: Tool, known: Collection[str]) -> bool:
    """Tell whether a tool does not act and requires ids, all of them among `known`."""
    return not tool.acts and bool(tool.required) and set(tool.required) <= set(known)


def look_at(source: Tool, words: str = "") -> tuple[str, dict[str, str]]:
    """Call a source, with `words` or the name of what it lists where it requires text."""
    ((first, *_), *_) = source.lists.values()
    noun = first.removesuffix("_id") if first.endswith("_id") else source.name.partition("_")[0]
    return source.name, dict.fromkeys(source.usual, words or noun)


def results(messages: Iterable[Message]) -> Iterator[tuple[str, Any]]:
    """Yield (tool, result) of every tool result."""
    for message in messages:
        if message["role"] == "tool":
            yield message["name"], json.loads(message["content"])


def records(result: Any, within: Mapping[str, Any] = MappingProxyType({})) -> Iterator[dict[str, Any]]:
    """Yield every object in a result, at any depth, with the scalar values of the objects around it."""
    if isinstance(result, dict):
        yield (found := {**within, **result})
        within = dict(plain(found))
    if isinstance(result, dict | list):
        for value in result.values() if isinstance(result, dict) else result:
            yield from records(value, within)
