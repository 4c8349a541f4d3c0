"""The command `ecomlab view`: it writes the page, shows progress, and says what is in it."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.lab.paths import shown
from ecomlab.lab.progress import Bar
from ecomlab.lab.view.page import LARGEST, Written, write_page
from ecomlab.lab.view.sources import Source, sources_of

PAUSE = 5.0
"""Seconds between looks at runs that grow."""
FILE = "view.html"
"""Name of a page that was not told where to go; it lies in the first folder."""


def write_view(
    folders: Sequence[Path],
    out: Path | None,
    limit: int,
    plain: bool,
    console: Console,
    catalog: str | None = None,
    live: bool = False,
) -> Written:
    """Write the page of some folders, with a bar; `catalog` is as for `sources_of`. With `live` write it again whenever
    a run has grown, until Ctrl-C. Raises TranscriptError, OSError, and ValueError for a limit that leaves nothing of
    one of them."""
    sources = sources_of(folders, plain, catalog)
    if limit < len(sources):
        raise ValueError(f"--limit {limit} leaves nothing of one of the runs; give at least {len(sources)}")
    for source in sources:
        if source.note:
            console.print(
                f"[yellow]warning[/yellow]  {escape(f'{shown(source.path)}: {source.note}')}", soft_wrap=True
            )
    with Bar(console) as bar:

        def on_progress(done: int, total: int) -> None:
            bar.update(f"{done}/{total} episodes", done / total)

        target = out or (folders[0] if folders[0].is_dir() else folders[0].parent) / FILE
        written = write_page(target, sources, limit, on_progress=on_progress, live=live)
    _report(written, plain, console)
    if live:
        console.print("it is written again as the run grows; Ctrl-C ends that")
    size = _size(sources)
    while live:
        time.sleep(PAUSE)
        if (now := _size(sources)) != size:
            size, written = now, write_page(target, sources, limit, live=True)
    return written


def _size(sources: Sequence[Source]) -> int:
    return sum(source.path.stat().st_size for source in sources)


def _report(written: Written, plain: bool, console: Console) -> None:
    console.print(
        f"episodes: {written.episodes}, written to {shown(written.path)} ({written.bytes / 1e6:.1f} MB); open it in a "
        "browser",
        soft_wrap=True,
    )
    if written.episodes < written.of:
        console.print(f"{written.of - written.episodes} more were left out; a higher --limit takes them")
    if not written.together:
        console.print(
            "the runs have no task in common, so that none can be read side by side; evaluate them with the same "
            "--env, --difficulty, --episodes and --block",
            soft_wrap=True,
        )
    if written.not_acted_out and not plain:
        console.print(f"{written.not_acted_out} of them are without cart and reward by turn, and say why")
    if written.bytes > LARGEST:
        console.print(
            f"that is more than {LARGEST / 1e6:.0f} MB, which opens slowly; a lower --limit makes it smaller"
        )
