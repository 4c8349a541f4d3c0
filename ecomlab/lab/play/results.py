"""What a conversation holds, for people: who said what, and the results of tools as cards instead of JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.task import Message

NAMED_BY = ("title", "section", "variant_id", "status")
"""Fields that name a row, the first that it has."""


@dataclass(frozen=True)
class Card:
    """One row of a tool's result: a product, a variant, a line of an order, a section of the policy book."""

    title: str
    ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the row, and of what it lies in, by the names that tools have for them."""
    facts: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    """What catches the eye: sponsored, sold out."""


@dataclass(frozen=True)
class Result:
    """A tool's result in words."""

    error: str = ""
    notice: str = ""
    """News of the shop that came with it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[tuple[str, tuple[Card, ...]], ...] = ()
    """(name, cards) of every list in it."""

    @property
    def cards(self) -> list[Card]:
        return [card for _, cards in self.groups for card in cards]


@dataclass(frozen=True)
class Entry:
    """One thing that happened: words of the customer or of the agent, or a call with its result."""

    number: int
    """Number of the agent's message that it belongs to; 0 is the customer's opening."""
    who: str
    """customer, agent or tool."""
    text: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Result | None = None

    @property
    def call(self) -> str:
        """The call as a line."""
        return call_in_a_line(self.tool, self.arguments)


def conversation(messages: Sequence[Message]) -> list[Entry]:
    """List what happened, in order, without the system prompt. Questions by `ask_user` are the agent's words, and what
    came back the customer's."""
    found, number = list[Entry](), 0
    for position, message in enumerate(messages):
        if message["role"] == "assistant":
            number += 1
            found += _said(message, number, _answers(messages[position + 1 :]))
        elif message["role"] == "user":
            found.append(Entry(number, "customer", message["content"]))
    return found


def _answers(following: Sequence[Message]) -> dict[str, str]:
    """Collect the results of one message's calls, by call. Ids count within a message alone."""
    found: dict[str, str] = {}
    for message in following:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            found[message["tool_call_id"]] = message["content"]
    return found


def _said(message: Message, number: int, answers: Mapping[str, str]) -> Iterator[Entry]:
    if message.get("content"):
        yield Entry(number, "agent", message["content"])
    for call in message.get("tool_calls") or ():
        name, given = call["function"]["name"], _given(call["function"]["arguments"])
        result = _loaded(answers.get(call["id"], "{}"))
        if name == "ask_user" and "customer" in result:
            yield Entry(number, "agent", str(given.get("question", "")))
            yield Entry(number, "customer", result.pop("customer"))
            if not result:
                continue
            yield Entry(number, "tool", tool=name, result=read_result(result))
        else:
            yield Entry(number, "tool", tool=name, arguments=given, result=read_result(result))


def read_result(result: Mapping[str, Any]) -> Result:
    """Read a tool's result: its lists of rows as cards, everything else as facts."""
    ids = _ids(result)
    facts, groups = dict[str, str](), list[tuple[str, tuple[Card, ...]]]()
    for name, value in result.items():
        rows = [value] if isinstance(value, dict) else value
        if name in ("error", "notice"):
            continue
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            groups.append((name.replace("_", " "), tuple(_card(row, ids) for row in rows)))
        elif value is not None:
            facts[name.replace("_", " ")] = worded(value, name)
    return Result(str(result.get("error", "")), str(result.get("notice", "")), facts, tuple(groups))


def _card(row: Mapping[str, Any], outer: Mapping[str, str]) -> Card:
    named = next((name for name in NAMED_BY if row.get(name)), "")
    ids = {**outer, **_ids(row)}
    title = str(row[named]) if named else next(reversed(_ids(row).values()), "")
    facts: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            facts |= {inner: worded(of) for inner, of in value.items()}
        elif name not in (named, "sponsored") and name not in ids and value is not None:
            facts[name.replace("_", " ")] = worded(value, name)
    marks = ["sponsored"] * bool(row.get("sponsored")) + ["sold out"] * (row.get("stock") == 0)
    return Card(title, ids, facts, tuple(marks))


def _ids(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name.endswith("_id") and isinstance(value, str)}


def call_in_a_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """Write a call for reading: `cart_add(product_id P3B43PH, quantity 2)`."""
    return f"{tool}({', '.join(f'{name} {worded(value)}' for name, value in arguments.items())})"


def worded(value: Any, name: str = "") -> str:
    """Write a value for reading: prices in dollars, yes and no, lists and rows without brackets."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("price", "price_max") and isinstance(value, int | float):
        return f"${value:,.2f}".removesuffix(".00")
    if isinstance(value, list | tuple):
        return "; ".join(map(worded, value)) or "none"
    if isinstance(value, Mapping):
        first = next((value[n] for n in NAMED_BY if n in value), None)
        rest = ", ".join(f"{n} {worded(v, n)}" for n, v in value.items() if v is not first)
        return rest if first is None else f"{first} ({rest})" if rest else str(first)
    return "none" if value is None else str(value)


def _given(text: str) -> dict[str, Any]:
    found = _loaded(text)
    return found if found or text.strip() in ("", "{}", "null") else {"arguments": text}


def _loaded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
