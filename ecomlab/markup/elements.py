"""HTML elements that escape whatever is not HTML yet, and the frame in which a notebook shows them."""

import html
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("style.css")


class Html(str):
    """Text that is already HTML. Any other text is escaped when it becomes part of an element."""


class Number(str):
    """A number that is already formatted, such as "$12.50": tables align it to the right."""


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """Make an element. Children that are not `Html` are escaped; None is omitted.

    `class_` stands for class, any other underscore for a hyphen; True makes an attribute without a value, False and
    None omit it.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    return Html(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(children: Iterable[Any], between: str = "") -> Html:
    """Join children as HTML."""
    return Html(html.escape(between).join(_escaped(child) for child in children if child is not None))


def _escaped(child: Any) -> str:
    return child if isinstance(child, Html) else html.escape(str(child))


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], class_: str = "table") -> Html:
    """Make a table. Numbers are aligned to the right; line breaks are kept."""
    rows = list(rows)
    numbers = {place for row in rows for place, value in enumerate(row) if _is_number(value)}
    kinds = ("number" if place in numbers else None for place in range(len(headings)))
    head = [element("th", name, scope="col", class_=kind) for name, kind in zip(headings, kinds, strict=True)]
    body = [element("tr", *map(_cell, row)) for row in rows]
    return element("table", element("thead", element("tr", *head)), element("tbody", *body), class_=class_)


def _cell(value: Any) -> Html:
    return element("td", "" if value is None else value, class_="number" if _is_number(value) else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Number) and not isinstance(value, bool)


def pairs(facts: Mapping[str, Any]) -> Html:
    """Make a list of names and values."""
    return element(
        "dl", *(joined([element("dt", name), element("dd", value)]) for name, value in facts.items())
    )


@cache
def style() -> str:
    """Read the style sheet, whose rules apply within `.ecomlab` and on the documentation's pages."""
    return STYLE.read_text("utf-8")


def page(title: str, body: Html) -> str:
    """Write a page of its own, with the style sheet, in a light and a dark theme."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{html.escape(title)}</title>"
    framed = element("body", element("main", body), class_="ecomlab page")
    return f'<!doctype html><html lang="en">{head}<style>{style()}</style>{framed}</html>\n'


def in_notebook(*children: Any) -> str:
    """Frame HTML for a notebook: with its style, and ignored by MathJax, which reads two dollar signs as a formula."""
    frame = element("div", *children, class_="ecomlab mathjax_ignore tex2jax_ignore")
    return f"<style>{style()}</style>{frame}"
