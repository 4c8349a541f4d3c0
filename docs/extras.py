"""Extend Sphinx: the diagram of packages without a script, the gallery of figures, and the diary as a page."""

import csv
import json
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from ecomlab.lab.figures import as_latex

FIGURES = Path(__file__).resolve().parent.parent / "figures"

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


class Gallery(Directive):
    """Every figure of the folder `figures`, with its caption, alternative text and tables of numbers where it has them,
    and what it was drawn from."""

    def run(self) -> list[nodes.Node]:
        found = list[nodes.Node]()
        for png in sorted(FIGURES.glob("*.png")):
            figure = nodes.section(ids=[nodes.make_id(png.stem)])
            figure += nodes.title(text=png.stem.replace("_", " "))
            self.state.nested_parse(StringList(shown(png).splitlines(), str(png)), 0, figure)
            found.append(figure)
        return found


def shown(png: Path) -> str:
    """Write a figure as Markdown: picture, caption, its tables of numbers, and a line on its files and its source."""
    tex, txt = (png.with_suffix(ending) for ending in (".tex", ".txt"))
    caption = plain(tex.read_text("utf-8")) if tex.is_file() else ""
    alternative = txt.read_text("utf-8").strip() if txt.is_file() else caption
    about = json.loads(png.with_suffix(".json").read_text("utf-8"))
    numbers = sorted(png.parent.glob(f"{png.stem}.*.csv"))
    beside = [png.with_suffix(ending) for ending in (".pdf", ".tex", ".txt", ".json")]
    files = ", ".join(
        f"{{download}}`{file.name.removeprefix(png.stem)[1:]} <../figures/{file.name}>`"
        for file in (*beside, *numbers)
        if file.is_file()
    )
    read = ", ".join(f"`{name}`" for name in about["inputs"]) or "the library alone"
    width = ":width: 50%\n" if png.stem.endswith("_column") else ""  # as beside a whole page's
    picture = f"```{{image}} ../figures/{png.name}\n:alt: {alternative or png.stem}\n{width}```"
    return "\n\n".join(
        [
            picture,
            caption,
            *map(table_of, numbers),
            f"Drawn at {about['commit']} from {read}. Files: {files}.",
        ]
    )


def table_of(file: Path) -> str:
    """Write a CSV as a Markdown table."""
    heading, *rows = csv.reader(file.read_text("utf-8").splitlines())
    lines = ["| " + " | ".join(row) + " |" for row in (heading, ["---"] * len(heading), *rows)]
    return "\n".join([f"`{file.stem}`:", "", *lines])


def plain(latex: str) -> str:
    """Read a caption back that was written by `as_latex`."""
    written = {as_latex(mark): mark for mark in "\\~^&%$#_{}–−±×≤…"}
    pattern = "|".join(map(re.escape, sorted(written, key=len, reverse=True)))
    return re.sub(pattern, lambda found: written[found[0]], latex).strip()


def lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to files that are pages of the site lead to the pages, and those to other Markdown of the repository,
    which Sphinx would take for pages too, to the file."""
    for file, name in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(file)}(#[^)]*)?\)", rf"]({name}\1)", source[0])
    if page.startswith("notebooks/"):  # these stand a folder deeper than the notebooks, whose links they have
        source[0] = re.sub(r"\]\(\.\./(?!docs/)", "](../../", source[0]).replace("](../docs/", "](../")
    source[0] = re.sub(r"\[([^][]+)\]\((\.\./(?!\w+\.md)[^)#]+\.md)\)", r"{download}`\1 <\2>`", source[0])


FETCH = """
/* The search fetches pages for its excerpts, which a browser refuses to a page from disk: here are their texts. */
const fetched = window.fetch;
window.fetch = (address, ...more) => {
  const found = TEXTS[String(address).replace(/^(\\.\\/)?/, "").replace(/\\.html$/, "")];
  if (location.protocol !== "file:" || found === undefined) return fetched(address, ...more);
  const page = document.createElement("div");
  page.setAttribute("role", "main");
  page.textContent = found;
  return Promise.resolve({ text: () => Promise.resolve(page.outerHTML) });
};
"""


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Put the texts of all pages beside the search, so that its results have excerpts from disk too."""
    if error is not None or app.builder.format != "html":
        return
    out, texts = Path(app.outdir), dict[str, str]()
    for page in sorted(out.rglob("*.html")):
        found = re.search(r'<article role="main"[^>]*>(.*?)</article>', page.read_text("utf-8"), re.DOTALL)
        if found and page.name not in ("search.html", "genindex.html"):
            words = unescape(re.sub(r"<(script|style).*?</\\1>|<[^>]+>", " ", found[1], flags=re.DOTALL))
            texts[page.relative_to(out).with_suffix("").as_posix()] = " ".join(words.split())
    written = f"const TEXTS = {json.dumps(texts, ensure_ascii=False)};{FETCH}"
    (out / "_static" / "texts.js").write_text(written, "utf-8")
    search = out / "search.html"
    head, body = search.read_text("utf-8").split('<script src="_static/searchtools.js', 1)
    search.write_text(
        f'{head}<script src="_static/texts.js"></script>\n<script src="_static/searchtools.js{body}', "utf-8"
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is here."""
    app.add_directive("mermaid", Layers)
    app.add_directive("gallery", Gallery)
    app.connect("source-read", lead_to_pages)
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
