"""Results of evaluate, compare and frontier: a table with lines under it, for notebooks, as Markdown, as JSON."""

import base64
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.files import write_text
from ecomlab.markup.elements import Html, Number, element, in_notebook, joined, page, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Headings, and rows of text."""


class Result(ABC):
    """A result with its representations."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The measured quantity and the player."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The table as text, for a terminal."""

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by title; `table` is the last."""
        return {self.title: self.table}

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """Facts and warnings under the table."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object, which may contain NaN."""

    def markdown(self) -> str:
        """Write all tables as Markdown, the lines under the last."""
        *above, (title, last) = self.tables.items()
        written = [as_markdown(name, table, ()) for name, table in above]
        return "\n".join([*written, as_markdown(title, last, self.lines)])

    def __repr__(self) -> str:
        headings, rows = self.table
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        drawn = [
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (headings, *rows)
        ]
        return "\n".join([self.title, *drawn, *self.lines])

    def more(self) -> Iterator[Html]:
        """Yield what a notebook shows between the table and the lines: pictures, and what opens."""
        yield from ()

    def html(self) -> Html:
        """Write as HTML, to be framed by `in_notebook` or a page with its style."""
        headings, rows = self.table
        lines = element("ul", *(element("li", line) for line in self.lines), class_="facts")
        return joined([element("h4", self.title), table(headings, numbered(rows)), *self.more(), lines])

    def _repr_html_(self) -> str:
        return in_notebook(self.html())

    def save_page(self, path: str | Path) -> Path:
        """Write the result as an HTML page, which loads nothing, and return its path."""
        write_text(Path(path), page(self.title, self.html()))
        return Path(path)


def picture(figure: "Figure", alternative: str) -> Html:
    """Embed a figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144)
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    width = round(figure.get_figwidth() * 96)
    return Html(f'<img src="{source}" alt="{escape(alternative)}" width="{width}" class="picture">')


def numbered(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Mark the cells that are numbers, which a table aligns to the right."""
    return [
        [Number(cell) if cell[:1].isdigit() or cell[:1] in "+-." else cell for cell in row] for row in rows
    ]


def as_markdown(title: str, drawn: Table, lines: Sequence[str]) -> str:
    """Write a table with lines under it as Markdown."""
    headings, rows = drawn
    ruled = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    written = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in ruled)
    said = "\n".join(f"- {line}" for line in lines)
    return f"# {title}\n\n{written}\n\n{said}\n"


def without_nan(value: Any) -> Any:
    """Copy a JSON value with null for NaN and infinite numbers, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: float | None, digits: int = 3) -> str:
    """Write a number; "" for NaN and None."""
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def gap(value: float | None) -> str:
    """Write the smallest difference that a sample detects; "none" if it is not below 1."""
    return "none" if value is None or not value < 1 else number(value)


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Write an interval; "" for NaN and None."""
    return "" if low is None or math.isnan(low) else f"{number(low, digits)}–{number(high, digits)}"


def counts(found: Mapping[str, int]) -> str:
    """Write counts by name: "submit 2, turns 1"."""
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "none"
