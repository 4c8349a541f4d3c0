"""The viewer's page: one HTML file that asks nothing of any network, with every episode deflated in it.

A light index feeds the table; an episode is inflated by the browser when it is opened or searched. What products and
models wrote was escaped where the markup was made (`ecomlab.markup`), and the page's policy runs no script but its own.
"""

import base64
import hashlib
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from ecomlab.evaluation.transcript import Transcript
from ecomlab.files import replacing
from ecomlab.lab.view.acting import record_of
from ecomlab.lab.view.overview import overview
from ecomlab.lab.view.sources import Source, episodes_of, select
from ecomlab.markup.conversation import episode
from ecomlab.markup.elements import Html, element, joined, style
from ecomlab.markup.record import Label, Record

LARGEST = 60_000_000
"""Bytes up to which a page opens well."""
FORM = "format errors"
FILTERS = ("player", "env", "d", "step", "decoding", "correct", "end", "labels", FORM, "unscored")
"""Columns by which the table is filtered, where their values differ."""
LONG = ("why",)
DIGITS = dict.fromkeys(("d", "seed", "trial", "step", "group", "turns", "calls", "tokens"), 0) | {
    "reward": 3,
    "seconds": 1,
}
"""Columns of numbers, with the digits shown behind the point."""
Labels = Callable[[Transcript], Sequence[Label]]


@dataclass(frozen=True)
class Written:
    """A page that was written."""

    path: Path
    episodes: int
    of: int
    """Episodes that there are; those beyond the limit were left out."""
    not_acted_out: int
    """Episodes that are shown without cart and reward by turn."""
    together: bool
    """True if the sources have a task in common, so that some episodes can be read side by side."""
    bytes: int


def write_page(
    path: Path,
    sources: Sequence[Source],
    limit: int = 5_000,
    labels: Labels | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    live: bool = False,
) -> Written:
    """Write the page of these sources' episodes, whole or not at all. `labels` gives others than the mistakes that code
    finds; `on_progress` is called with the number of episodes done and that of all; `live` is as for `write_episodes`.

    Raises TranscriptError for damaged transcripts and for a source without an episode, OSError where nothing can be
    written.
    """
    chosen, missed = select(sources, limit), 0

    def episodes() -> Iterator[tuple[dict[str, Any], Record]]:
        nonlocal missed
        for number, (source, transcript) in enumerate(episodes_of(sources, chosen), 1):
            named = labels(transcript) if labels else None
            record = record_of(transcript, source.shop, source.player, named)
            missed += source.shop is None or bool(record.note)
            yield row_of(source.player, transcript, record), record
            on_progress(number, len(chosen))

    about = joined([overview(sources), _about(sources, len(chosen), chosen.of)])
    write_episodes(path, episodes(), about, live=live)
    return Written(path, len(chosen), chosen.of, missed, chosen.together, path.stat().st_size)


def write_episodes(
    path: Path, episodes: Iterable[tuple[Mapping[str, Any], Record]], about: Html, live: bool = False
) -> None:
    """Write a page of these episodes, each with its row of the table, holding no more than one of them in memory.
    `about` stands above the table. A `live` page loads itself again every ten seconds while its table is shown."""
    rows = []
    with tempfile.TemporaryFile("w+", encoding="ascii") as written:
        for number, (row, record) in enumerate(episodes):
            written.write(f'<script type="text/plain" id="e{number}">{packed(record)}</script>\n')
            rows.append(row)
        written.seek(0)
        with (
            replacing(path) as draft,
            draft.open("w", encoding="utf-8", errors="replace", newline="\n") as page,
        ):
            _write(page, about, index_of(rows, live), written)


def packed(record: Record) -> str:
    """Deflate a record's markup and, after a null character, its JSON, and write both as base64. Half a character that
    a model wrote becomes a question mark."""
    whole = f"{episode(record)}\0{json.dumps(record.to_json(), ensure_ascii=False)}"
    return base64.b64encode(zlib.compress(whole.encode("utf-8", "replace"), 9)).decode("ascii")


def row_of(player: str, transcript: Transcript, record: Record) -> dict[str, Any]:
    """Say in a row what the table shows of an episode."""
    job, score, used = transcript.job, transcript.score, transcript.usage.get("agent")
    return {
        "player": player,
        "env": job.env,
        "d": job.d,
        "seed": job.seed,
        "trial": job.trial,
        "step": transcript.step,
        "decoding": str(transcript.notes.get("decoding", "")),
        "group": transcript.notes.get("group"),
        "axes": record.facts["axes"],
        "correct": "unscored" if record.correct is None else "yes" if record.correct else "no",
        "end": transcript.end,
        "reward": None if record.reward is None else round(record.reward, 3),
        "turns": transcript.turns,
        "calls": transcript.calls,
        "tokens": used.completion_tokens if used and used.completion_tokens else None,
        "seconds": round(used.seconds, 1) if used and used.seconds >= 0.1 else None,
        "labels": list(dict.fromkeys(label.kind for label in record.labels)),
        FORM: list(dict.fromkeys(transcript.faults)),
        "unscored": transcript.unscored,
        "why": score.why,
    }


def index_of(rows: Sequence[Mapping[str, Any]], live: bool = False) -> str:
    """Write the table's columns and rows as JSON that can stand within a script element."""
    columns = [
        {
            "name": name,
            "filter": name in FILTERS,
            "long": name in LONG,
            "digits": DIGITS.get(name),
            "empty": all(row[name] in ((0,) if name == "trial" else (None, "", [])) for row in rows),
        }
        for name in rows[0]
    ]
    index = {"columns": columns, "rows": [list(row.values()) for row in rows], "live": live}
    return json.dumps(index, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )


def _about(sources: Sequence[Source], shown: int, of: int) -> Html:
    """Say above the table whose episodes these are, and what is missing."""
    said = [f"{source.player}: {source.note}" for source in sources if source.note]
    said += [f"{shown} of {of} episodes; the others were beyond the limit"] if shown < of else []
    return element("ul", *(element("li", line) for line in said))


def _write(page: IO[str], about: Html, index: str, episodes: IO[str]) -> None:
    """Fill in the template; the episodes come last, and are copied."""
    folder = files(__package__)
    sheet = style() + folder.joinpath("page.css").read_text("utf-8")
    script = folder.joinpath("page.js").read_text("utf-8")
    values = {
        "title": "ecomlab: episodes",
        "about": about,
        "style": sheet,
        "style digest": _digest(sheet),
        "script": script,
        "script digest": _digest(script),
        "index": index,
    }
    before, after = folder.joinpath("page.html").read_text("utf-8").split("{{episodes}}")
    page.writelines(_filled(before, values))
    shutil.copyfileobj(episodes, page)
    page.write(after)


def _filled(template: str, values: Mapping[str, str]) -> Iterable[str]:
    """Put values for their names in a template; nothing within a value is taken for a name."""
    first, *rest = template.split("{{")
    yield first
    for part in rest:
        name, text = part.split("}}", 1)
        yield values[name]
        yield text


def _digest(text: str) -> str:
    """Name a script or style sheet as a content security policy does."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
