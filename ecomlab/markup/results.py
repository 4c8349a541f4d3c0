"""Tool calls and their results, which are JSON text, for people: as a line, as small tables, and as cards."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.markup.elements import Html, Number, element, joined, pairs, table

WIDTH = 100
"""Most characters of a value within a line."""
TOLD = ("error", "notice")
"""Keys of a result that are sentences to the agent."""
NAMED_BY = ("title", "section", "variant_id", "status")
"""Fields that name a row; the first one present is used."""
IN_DOLLARS = ("price", "price_max")


@dataclass(frozen=True)
class Card:
    """One row of a result: a product, a variant, a line of an order, a section of the policy book."""

    title: str
    ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the row and of the objects around it, by field."""
    facts: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    """Highlighted properties: sponsored, sold out."""

    def __str__(self) -> str:
        marks = "".join(f" [{mark}]" for mark in self.marks)
        ids = [f"{name}: {value}" for name, value in self.ids.items() if value != self.title]
        own = next((f"{name} " for name, value in self.ids.items() if value == self.title), "")
        return ": ".join(
            filter(None, [f"{own}{self.title}{marks}", ", ".join([*ids, *filter(None, [plain(self.facts)])])])
        )


@dataclass(frozen=True)
class Result:
    """The parts of a result."""

    error: str = ""
    notice: str = ""
    """News of the shop that came with it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[tuple[str, tuple[Card, ...]], ...] = ()
    """(name, cards) of every list in it."""

    @property
    def cards(self) -> list[Card]:
        return [card for _, cards in self.groups for card in cards]


def read(text: str) -> Any:
    """Parse JSON; text that is not JSON is returned unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def call_in_a_line(tool: str, arguments: str) -> str:
    """Write a call as a line: "cart_add(product_id: P3B43PH, quantity: 2)"."""
    return f"{tool}({arguments_in_a_line(arguments, None)})"


def arguments_in_a_line(text: str, width: int | None = WIDTH) -> str:
    """Write a call's arguments as a line: "query: red, price_max: $20"; values are cut to `width`, if any."""
    found = read(text)
    if not isinstance(found, Mapping):
        return cut(text, width)
    return ", ".join(f"{name}: {cut(plain(value, name), width)}" for name, value in found.items())


def result_in_a_line(text: str | None) -> str:
    """Write a result as a line: its error and notice, the lengths of its lists, and its other values."""
    if text is None:
        return "no result"
    found = read(text)
    if not isinstance(found, Mapping):
        return cut(text)
    said = [
        f"{name}: {found[name]}" if name == "error" else cut(str(found[name]))
        for name in TOLD
        if name in found
    ]
    return "; ".join([*_brief(found), *said])


def _brief(found: Mapping[str, Any]) -> list[str]:
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    if lists:
        return [_many(len(value), name) for name, value in lists.items() if value or len(lists) == 1]
    return [
        f"{_heading(name)}: {cut(_row(value) if isinstance(value, Mapping) else plain(value, name))}"
        for name, value in found.items()
        if name not in TOLD
    ]


def _many(number: int, name: str) -> str:
    """Count the rows of a list by its name: "5 results", "1 parcel", "cart: 2 lines"."""
    if not name.endswith("s"):
        return f"{name}: {_many(number, 'lines')}"
    return f"{number} {_heading(name.removesuffix('s') if number == 1 else name)}"


def result_in_lines(text: str) -> Iterator[str]:
    """Write all of a result: error, notice and facts, then a line for each row."""
    found = read_result(text)
    if found.error:
        yield f"error: {found.error}"
    if found.notice:
        yield f"notice: {found.notice}"
    if found.facts:
        yield plain(found.facts)
    for name, cards in found.groups:
        yield f"{name}:" if cards else f"{name}: none"
        yield from (f"- {card}" for card in cards)


def read_result(text: str) -> Result:
    """Read a result: its lists of rows as cards, everything else as facts. Text that is no JSON object is a fact."""
    found = read(text)
    if not isinstance(found, Mapping):
        return Result(facts={"result": plain(found)} if text else {})
    ids, facts, groups = _ids(found), dict[str, str](), list[tuple[str, tuple[Card, ...]]]()
    for name, value in found.items():
        rows = [value] if isinstance(value, Mapping) else value
        if name in TOLD:
            continue
        if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows):
            groups.append((_heading(name), tuple(_card(row, ids) for row in rows)))
        elif value is not None:
            texts = value if isinstance(value, list) and len(value) > 1 else []  # such as titles of sections
            facts[_heading(name)] = "".join(f"\n  - {text}" for text in texts) or plain(value, name)
    return Result(str(found.get("error", "")), str(found.get("notice", "")), facts, tuple(groups))


def _card(row: Mapping[str, Any], outer: Mapping[str, str]) -> Card:
    named = next((name for name in NAMED_BY if row.get(name)), "")
    ids = {**outer, **_ids(row)}
    title = str(row[named]) if named else next(reversed(_ids(row).values()), "")
    facts: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            facts |= {inner: plain(of, inner) for inner, of in value.items()}
        elif name not in (named, "sponsored") and name not in ids and value is not None:
            rows = "".join(f"\n  - {_row(one)}" for one in value) if _is_rows(value) else ""
            facts[_heading(name)] = rows or plain(value, name)
    marks = ["sponsored"] * bool(row.get("sponsored")) + ["sold out"] * (row.get("stock") == 0)
    return Card(title, ids, facts, tuple(marks))


def _ids(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in row.items() if name.endswith("_id") and isinstance(value, str)}


def result_in_full(text: str) -> Html:
    """Show a result: a table for each list of objects, names and values for the rest."""
    return _shown(read(text))


def _shown(value: Any) -> Html:
    if _is_rows(value):
        return _rows(value)
    if not isinstance(value, Mapping):
        return element("p", plain(value), class_="text")
    told = [element("p", value[name], class_="note") for name in TOLD if name in value]
    tables = {name: each for name, each in value.items() if _is_rows(each)}
    rest = {name: plain(each, name) for name, each in value.items() if name not in (*TOLD, *tables)}
    shown = [
        joined([element("p", _heading(name), class_="caption"), _rows(rows)]) for name, rows in tables.items()
    ]
    if sum(map(len, (*rest, *rest.values()))) <= WIDTH and rest:
        shown.append(element("p", plain(rest), class_="quiet"))
    elif rest:
        shown.append(pairs({_heading(name): text for name, text in rest.items()}))
    return joined([*told, *shown])


def _rows(rows: Sequence[Mapping[str, Any]]) -> Html:
    """Make a table with a column for every name that any of the rows has, those that all have first."""
    count = Counter(name for row in rows for name in row)
    names = sorted(count, key=lambda name: -count[name])
    return table(
        [*map(_heading, names)], [[_table_cell(row.get(name), name) for name in names] for row in rows]
    )


def _table_cell(value: Any, name: str) -> Any:
    """Write a value for a cell: numbers stay, a price has its cents, a list of objects has a line for each."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return Number(f"{value:,.2f}") if value is not None and name in IN_DOLLARS else value
    return "\n".join(map(_row, value)) if _is_rows(value) else plain(value)


def plain(value: Any, name: str = "") -> str:
    """Write a JSON value as text without brackets: "color: Black, size: M", "yes", "none" for an empty list; by its
    name, a price in dollars."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in IN_DOLLARS and isinstance(value, int | float):
        return f"${value:,.2f}".removesuffix(".00")
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_heading(inner)}: {plain(each, inner)}" for inner, each in value.items() if each is not None
        )
    if isinstance(value, list | tuple):
        return "; ".join(map(_row, value)) if _is_rows(value) else ", ".join(map(plain, value)) or "none"
    return "" if value is None else str(value)


def _row(row: Mapping[str, Any]) -> str:
    """Write a row within another: "A Mug (quantity: 2)"."""
    named = next((name for name in NAMED_BY if row.get(name)), "")
    rest = plain({name: value for name, value in row.items() if name != named})
    return f"{row[named]} ({rest})" if named and rest else str(row[named]) if named else rest


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _heading(name: object) -> str:
    return str(name).replace("_", " ")


def cut(text: str, width: int | None = WIDTH) -> str:
    """Truncate a text for a line, unless `width` is None."""
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"
