"""Values inside the objects that a column of JSON holds, which a mapping names with a dot: "offers.price"."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ecomlab.catalog.ingest.text import is_nothing, printable
from ecomlab.catalog.ingest.values import single

MOST: Final = 200
"""Names inside a column from which no more are looked for: a table of details has no end of them."""


def value_at(row: Mapping[str, Any], column: str) -> Any:
    """Return what a row says in a column, which may be inside another one's objects."""
    if "." not in column or column in row:
        return row.get(column)
    value: Any = row
    for name in column.split("."):
        value = (_object(value) or {}).get(name)
    return value


def _object(value: Any) -> dict[Any, Any] | None:
    """Return an object, also as the only one of a list: a page's offers are often one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def columns_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the columns of rows, in the order in which they come."""
    return list(dict.fromkeys(column for row in rows for column in row))


def inside(rows: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    """List the columns inside the objects of a column; a name with a dot of its own cannot be told."""
    if "." in column and any(column in row for row in rows):
        return []
    objects = (value for row in rows if (value := _object(value_at(row, column))))
    names = dict.fromkeys(str(name) for value in objects for name in value)
    return [f"{column}.{name}" for name in names if name and "." not in name and printable(name) == name][
        :MOST
    ]


def is_unread(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Tell whether most values of a column are objects, of which none says which of its values is meant."""
    given = [value for row in rows if not is_nothing(value := value_at(row, column))]
    unread = sum(_object(value) is not None and is_nothing(single(value)[0]) for value in given)
    return 2 * unread > len(given)
