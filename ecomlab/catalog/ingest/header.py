"""Whether the first line of a CSV names its columns, or is a row already."""

import re
from collections.abc import Sequence
from typing import Final

from ecomlab.catalog.ingest.attributes import is_attribute
from ecomlab.catalog.ingest.profiles import is_known
from ecomlab.catalog.ingest.text import is_nothing

_KINDS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:https?://|www\.)\S+",
        r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d{1,2}([./-])\d{1,2}\1(?:\d\d|\d{4})",
        r"(?:{0}) ?\d[\d.,]*|\d[\d.,]* ?(?:{0})|\d+[.,]\d+".format("[$€£¥₹]|EUR|USD|GBP|CHF|CAD|AUD|INR"),
        r"\d{5,}",
    )
)
"""What hardly names a column: addresses, dates, prices, long numbers. Short numbers do: years, sizes, places."""
_WORD = re.compile(r"[^\W\d_]{2,}")
LINES: Final = 5
"""Lines among which that of the names is looked for."""
FEWEST: Final = 3
"""Usual names of a line that is one of names wherever it stands."""


def lines_above(records: Sequence[Sequence[str]]) -> int:
    """Count the first records of a CSV that stand above the names of its columns, as in marketplaces' templates.

    Nothing there is a usual name; of two lines of names, one for people and one for programs, the later counts.
    """
    known = [sum(_is_name(said.strip()) for said in record) for record in records[:LINES]]
    if not known or known[0] or max(known) < FEWEST:
        return 0
    at = next(at for at, count in enumerate(known) if count >= FEWEST)
    while at + 1 < len(known) and known[at + 1] >= FEWEST:
        at += 1
    return at


def _is_name(said: str) -> bool:
    return is_known(said) or is_attribute(said)


def is_row(records: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first of a CSV's first records is a row like the others; in doubt it is a header.

    A row has a title, no cell that is a usual name of a column, and one cell like the others of its column: of one kind
    with half of them, or one of the values that they repeat.
    """
    if len(records) < 3:
        return False
    first, others = [said.strip() for said in records[0]], records[1:]
    if any(map(_is_name, first)):
        return False
    if not any(len(_WORD.findall(said)) > 1 and not _kind(said) for said in first):
        return False
    rest = [
        row for row in others if [said.strip() for said in row] != first
    ]  # files joined repeat their header
    return any(
        _is_like(said, [row[at].strip() for row in rest if at < len(row) and not is_nothing(row[at])])
        for at, said in enumerate(first)
        if not is_nothing(said)
    )


def _is_like(said: str, column: Sequence[str]) -> bool:
    if kind := _kind(said):
        alike = sum(_kind(other) == kind for other in column)
        return 0 < len(column) <= 2 * alike
    # a column "New" of flags holds "New" and nothing else
    return bool(_WORD.search(said)) and said in column and len(set(column)) > 2


def _kind(said: str) -> int:
    return next((at for at, kind in enumerate(_KINDS, 1) if kind.fullmatch(said)), 0)
