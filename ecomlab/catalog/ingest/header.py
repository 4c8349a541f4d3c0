"""Whether the first line of a CSV names its columns, or is a row already."""

import re
from collections.abc import Sequence
from typing import Final

from ecomlab.catalog.ingest.attributes import is_attribute
from ecomlab.catalog.ingest.profiles import is_known
from ecomlab.catalog.ingest.text import is_nothing

_VALUE = re.compile(
    r"(?:https?://|www\.)\S+|\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d{1,2}([./-])\d{1,2}\1(?:\d\d|\d{4})"
    r"|(?:[$€£¥₹]|[A-Z]{3}) ?\d[\d.,]*|\d[\d.,]* ?(?:[$€£¥₹]|[A-Z]{3})|\d+[.,]\d+|\d{5,}"
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

    A row has a title, no cell that is a usual name of a column, and one that hardly names one, as have half of its
    column.
    """
    if len(records) < 3:
        return False
    first = [said.strip() for said in records[0]]
    if any(map(_is_name, first)) or not any(
        len(_WORD.findall(said)) > 1 and not _VALUE.fullmatch(said) for said in first
    ):
        return False
    for at, said in enumerate(first):
        column = [row[at].strip() for row in records[1:] if at < len(row) and not is_nothing(row[at])]
        alike = sum(other[:1].isdigit() or _VALUE.fullmatch(other) is not None for other in column)
        if _VALUE.fullmatch(said) and 0 < len(column) <= 2 * alike:
            return True
    return False
