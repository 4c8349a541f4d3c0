"""Tool calls and their results, which are JSON text, as a line and as small tables."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.markup.elements import Html, element, joined, pairs, table

WIDTH = 100
"""Most characters of a value within a line."""
TOLD = ("error", "notice")
"""Keys of a result that are sentences to the agent."""


def read(text: str) -> Any:
    """Read JSON; a text that is none stays as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def arguments_in_a_line(text: str) -> str:
    """Write a call's arguments as a line: "query: red, price max: 20"."""
    found = read(text)
    if not isinstance(found, Mapping):
        return cut(text)
    return ", ".join(f"{name.replace('_', ' ')}: {cut(plain(value))}" for name, value in found.items())


def result_in_a_line(text: str | None) -> str:
    """Write a result as a line: its error and notice, how long its lists are, and its other values."""
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
        return [f"{len(value)} {name}" for name, value in lists.items() if value or len(lists) == 1]
    return [
        f"{name.replace('_', ' ')}: {cut(plain(value))}" for name, value in found.items() if name not in TOLD
    ]


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
    rest = {name: plain(each) for name, each in value.items() if name not in (*TOLD, *tables)}
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
    return table([*map(_heading, names)], [[_cell(row.get(name)) for name in names] for row in rows])


def _cell(value: Any) -> Any:
    """Write a value for a cell: numbers stay, a list of objects has a line for each."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if _is_rows(value):
        return "\n".join(map(plain, value))
    return plain(value)


def plain(value: Any) -> str:
    """Write a JSON value as text without brackets: "color: Black, size: M", "yes"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_heading(name)}: {plain(each)}" for name, each in value.items() if each is not None
        )
    if isinstance(value, list | tuple):
        between = "; " if _is_rows(value) else ", "
        return between.join(map(plain, value))
    return "" if value is None else str(value)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _heading(name: object) -> str:
    return str(name).replace("_", " ")


def cut(text: str, width: int = WIDTH) -> str:
    """Cut a text for a line; all of it stands below."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
