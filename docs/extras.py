"""What the site needs beyond Sphinx's own: the diagram of packages without a script, and the diary as a page."""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

PAGES = {"../experiments/README.md": "diary.md", "../README.md": "index.md"}
"""Files outside of docs/ that are pages of the site."""


class Layers(Directive):
    """The layers of a mermaid flowchart, one box below the other; its arrows are in the table that follows it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        rows, boxes = [], list[str]()
        for line in self.content:
            word = line.strip()
            if opened := re.fullmatch(r'subgraph \w+\["(.+)"\]', word):
                rows.append((opened[1], boxes := []))
            elif re.fullmatch(r"\w+", word) and word != "end":
                boxes.append(word)
        drawn = ""
        for name, found in rows:
            boxes = [f"<code>{escape(box)}</code>" for box in found]
            drawn += f'<div class="layer"><span>{escape(name)}</span>{"".join(boxes)}</div>'
        return [nodes.raw("", f'<div class="layers">{drawn}</div>', format="html")]


def lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to files that are pages of the site lead to the pages."""
    for file, name in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(file)}(#[^)]*)?\)", rf"]({name}\1)", source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is here."""
    app.add_directive("mermaid", Layers)
    app.connect("source-read", lead_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
