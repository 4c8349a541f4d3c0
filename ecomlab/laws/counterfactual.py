"""Counterfactuals, which differ from a task only in a withheld slot: no agent may distinguish them without asking."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.llm import Answered, Chat, Wording
from ecomlab.envs.base import Environment
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.laws.tool_introspection import (
    calls,
    drawn,
    fields,
    looks,
    records,
    results,
    sources,
    taken,
)
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.task import Goal, Message, Place, Task
from ecomlab.world.plain import with_amounts

OPTIONAL = 0.25
"""Chance that a prober gives an optional argument."""


class Prober:
    """A player that calls every tool that does not act, with ids, values and words it has met, and never asks.

    Tools that list something come first, for their ids; each tool is used once before any is used again.
    """

    def __init__(self, env: Environment, random: np.random.Generator, at_once: int = 2) -> None:
        self.env, self.random, self.at_once = env, random, at_once
        self.left = [tool.name for tool in reversed(sources(env))]
        self.met: list[dict[str, Any]] = []
        """Records found in results."""
        self.words: list[str] = []
        self.read = 0
        """Number of messages that were looked at."""

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        self.words = messages[1]["content"].split()
        self.met += [one for _, result in results(messages[self.read :]) for one in records(result)]
        self.read = len(messages)
        return calls(*(self._call() for _ in range(self.at_once)))

    def _call(self) -> tuple[str, dict[str, Any]]:
        if not self.left:
            names = [tool.name for tool in looks(self.env)]
            self.left = [names[i] for i in self.random.permutation(len(names)).tolist()]
        tool = self.env.offered[self.left.pop()]
        takes = taken(tool, self.env)
        names = [n for n in fields(tool) if n in tool.usual or (self.met and self.random.random() < OPTIONAL)]
        whole = [record for record in self.met if all(record.get(takes[n]) for n in names if n in takes)]
        about = pick(self.random, whole) if whole else {}
        given = {n: self._value(takes.get(n, n), fields(tool)[n], about, n in takes) for n in names}
        return tool.name, {n: value for n, value in given.items() if value is not None or n in tool.usual}

    def _value(self, name: str, schema: Mapping[str, Any], about: Mapping[str, Any], is_id: bool) -> Any:
        """Draw a value that the schema allows: for an id that of `about`, else often one shown under that name."""
        schema = {**schema, **next((k for k in schema.get("anyOf", ()) if k.get("type") != "null"), {})}
        kind, shown = schema.get("type"), [record[name] for record in self.met if record.get(name)]
        if "enum" in schema:
            return pick(self.random, schema["enum"])
        if kind == "array":
            return [self._value(name, schema["items"], about, is_id), *shown[-1:]][: 1 + is_id]
        if kind == "boolean":
            return bool(self.random.random() < 0.5)
        if kind == "integer":
            return int(self.random.integers(1, 4))
        if kind == "number":
            numbers = [v for record in self.met for v in record.values() if isinstance(v, float)]
            return pick(self.random, numbers or [10.0])
        if kind == "object":
            return dict([pick(self.random, list(pick(self.random, shown).items()))]) if shown else None
        if is_id:
            return about.get(name, "made up")
        if shown and self.random.random() < 0.5:
            return str(pick(self.random, shown))
        start = int(self.random.integers(len(self.words)))
        return " ".join(self.words[start : start + 3])


def first_difference(
    task: Task, other: Task, shop: Shop, random: np.random.Generator, customer: Chat | None = None
) -> str:
    """Describe the first difference that an agent sees between two tasks without asking; empty if there is none.
    Neither may an endpoint that rewords the `customer`."""
    sent: list[list[list[Message]]] = [[], []]
    one, two = (
        Episode(each, shop, wording=Wording(_noted(customer, seen)) if customer else None)
        for each, seen in zip((task, other), sent, strict=True)
    )
    if found := _differ(one.tools, two.tools):
        return f"the tools offered: {found}"
    if found := _differ(one.messages, two.messages):
        return f"the opening: {found}"
    prober = Prober(one.env, random)
    while not one.done and not two.done:
        message = prober(one.messages, one.tools)
        asked = [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
        turns = [one.act(message).messages, two.act(message).messages]
        shown = ([result for _, result in results(turn)] for turn in turns)
        for (name, arguments), a, b in zip(asked, *shown, strict=False):
            if found := _differ(a, b):
                return f"turn {one.turn}: {name}({arguments}): {found}"
        if found := _differ(turns[0], turns[1]):
            return f"turn {one.turn}: what comes after the tools' results: {found}"
    if found := _differ(sent[0], sent[1]):
        return f"what the customer's endpoint is sent: {found}"
    return _differ(one.end, two.end)


def _noted(chat: Chat, sent: list[list[Message]]) -> Chat:
    def noted(messages: list[Message]) -> str | Answered:
        sent.append(messages)
        return chat(messages)

    return noted


def _differ(one: Any, two: Any, where: str = "") -> str:
    """Describe the first place at which two JSON values differ; empty if they are equal."""
    if isinstance(one, dict) and isinstance(two, dict) and list(one) == list(two):
        inner: Iterable[tuple[Any, Any, str]] = ((one[n], two[n], f"{where}.{n}") for n in one)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        inner = ((a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, two, strict=True)))
    else:
        differs = json.dumps(one) != json.dumps(two)
        return f"{where.lstrip('.') or 'it'} is {one!r} and {two!r}" if differs else ""
    return next((found for a, b, at in inner if (found := _differ(a, b, at))), "")


@dataclass(frozen=True)
class Comparison:
    """The number of tasks compared with a counterfactual, and the differences seen."""

    env: str
    d: int
    pairs: int
    differences: list[str]


def draw(task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
    """Draw a solvable task that differs only in a withheld slot; None if no withheld slot can differ.

    In a journey, one subtask is replaced by its counterfactual.
    """
    for number in shuffled(random, range(len(task.subtasks))):
        other = draw(task.subtasks[number], shop, random)
        if other is not None:
            subtasks = [*task.subtasks[:number], other, *task.subtasks[number + 1 :]]
            return replace(task, subtasks=tuple(subtasks))
    environment, said = ENVIRONMENTS[task.env], task.goal
    goal = with_amounts(said)
    task = replace(task, goal=goal)
    for place in shuffled(random, [place for place in goal.slots if place in goal.withheld]):
        for value in shuffled(random, environment.audit.alternatives(place, goal, task, shop)):
            other = _with(task, place, value)
            if other.goal != goal and environment.audit.possible(other.goal, task, shop):
                kept = {p: v for p, v in said.slots.items() if other.goal.slots.get(p) == goal.slots[p]}
                return replace(other, goal=replace(other.goal, slots={**other.goal.slots, **kept}))
    return None


def _with(task: Task, place: Place, value: Any) -> Task:
    """Put another value in a slot of a task's goal; `value` may also be the whole goal or task."""
    if isinstance(value, Task):
        return value
    goal = value if isinstance(value, Goal) else task.goal.set_slots({place[1]: value}, place[0])
    return replace(task, goal=goal)


def pairs(env: str, d: int, seeds: Iterable[int], shop: Shop) -> Iterator[tuple[Task, Task]]:
    """Yield the tasks of these seeds that have a counterfactual, each with one."""
    for task in drawn(env, d, seeds, shop)[0]:
        other = draw(task, shop, rng("counterfactual", task.seed))
        if other is not None:
            yield task, other


def compare(
    env: str, d: int, seeds: Iterable[int], shop: Shop, customer: Callable[[int], Chat] | None = None
) -> Comparison:
    """Compare the tasks of these seeds with their counterfactuals; `customer` makes the endpoint that rewords the
    customers of both, by the seed."""
    found = []
    for task, other in pairs(env, d, seeds, shop):
        chat = customer(task.seed) if customer else None
        found.append((task.seed, first_difference(task, other, shop, rng("prober", task.seed), chat)))
    return Comparison(env, d, len(found), [f"seed {seed}: {words}" for seed, words in found if words])
