"""Results of eval, compare and frontier on the command line: printed, and written where files are given."""

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.evaluation.frontier import Frontier
from ecomlab.evaluation.report import Report
from ecomlab.evaluation.result import Result, without_nan
from ecomlab.files import write_json, write_text


def show(
    result: Result,
    console: Console,
    json_file: Path | None = None,
    markdown: Path | None = None,
    html: Path | None = None,
) -> None:
    """Print a result; write it as JSON, Markdown and a page where files are given."""
    for title, (headings, rows) in result.tables.items():
        drawn = Table(*headings, title=escape(title), title_justify="left", box=None, pad_edge=False)
        for column in drawn.columns[1:]:
            column.justify = "right"
        for row in rows:
            drawn.add_row(*map(escape, row))
        widened(console, drawn).print(drawn)
    for line in result.lines:
        console.print(escape(line), soft_wrap=True)
    if json_file is not None:
        write_json(json_file, without_nan(result.to_json()))
        console.print(f"written to {json_file}", soft_wrap=True)
    if markdown is not None:
        write_text(markdown, result.markdown())
        console.print(f"written to {markdown}", soft_wrap=True)
    if html is not None:
        console.print(f"written to {result.save_page(html)}", soft_wrap=True)


def widened(console: Console, whole: Table | None = None) -> Console:
    """Widen a console to 110 columns, or to all that the table `whole` needs, so that no value is cut."""
    width = max(console.width, 110)
    if whole is not None:
        width = max(width, console.measure(whole, options=console.options.update(max_width=1_000)).maximum)
    return Console(file=console.file, highlight=False, width=width, force_terminal=console.is_terminal)


def write_tables(report: Report, csv_file: Path | None, parquet: Path | None, console: Console) -> None:
    """Write a row per episode, as CSV without its messages, as Parquet with them (as JSON)."""
    if csv_file is not None:
        write_text(csv_file, report.episodes.to_csv(index=False, lineterminator="\n"))
        console.print(f"{len(report.episodes)} episodes written to {csv_file}", soft_wrap=True)
    if parquet is not None:
        messages = [json.dumps(one.messages) for one in report.transcripts]
        report.episodes.assign(messages=messages).to_parquet(parquet, index=False)
        console.print(f"{len(report.episodes)} episodes written to {parquet}", soft_wrap=True)


def draw(found: Frontier, figure: Path, console: Console) -> None:
    """Draw a frontier, with its provenance in a file beside the figure."""
    from ecomlab.lab.figures import save

    header = found.header
    catalog = header["conditions"]["catalog"]["fingerprint"]
    known = {"player": header["player"], "identity": header["identity"], "search": header["search"]}
    save(found.plot(), figure.stem, out=figure.resolve().parent, parameters=known, catalog=catalog)
    console.print(f"drawn in {figure.with_suffix('.pdf')}", soft_wrap=True)
