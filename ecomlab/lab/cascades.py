"""The command `cascade`: label every mistake in a folder of transcripts, print a summary, write the tables."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ecomlab.episode.play import ReplayError
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import check_conditions, trajectory_of
from ecomlab.evaluation.mistakes import FATES, Labelled, label
from ecomlab.evaluation.result import without_nan
from ecomlab.evaluation.transcripts import path_of, read, read_header
from ecomlab.files import replacing, write_json
from ecomlab.lab.evaluation_tables import widened
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import Bar
from ecomlab.lab.shops import recorded_shop

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

FILE = "cascade.csv"
SHOWN = 12
"""Kinds that are printed; the files hold all."""
CLEAN, UNSCORED, NOT_REPLAYED = "none", "unscored", "not replayed"
"""Entries in the column `kind` of an episode without mistakes, and of one without labels."""
EPISODE = ("env", "d", "seed", "trial", "step", "turns", "needed", "end", "correct", "doubtful")
MISTAKE = (
    "number", "turn", "kind", "cause", "fate", "until", "parent", "job", "place", "thing", "slots", "words",
)  # fmt: skip
COLUMNS = (*EPISODE, *MISTAKE)
"""Columns of the table: those of the episode, then those of the mistake, empty where there is none."""


@dataclass(frozen=True)
class LabelledEpisode:
    """An episode of a run and its labels; `why` says why it has none."""

    job: Job
    step: int | None
    labelled: Labelled | None
    why: str = ""


def label_run(
    folder: Path,
    console: Console,
    csv_file: Path | None = None,
    json_file: Path | None = None,
    catalog: str | None = None,
) -> None:
    """Label the episodes of `folder`; write a row per mistake to `csv_file`, by default beside the transcripts, and the
    summary by environment and level to `json_file`. `catalog` is where the recorded catalog is now, if it moved.

    Raises TranscriptError for no transcripts, or if what they were made with has changed since, CatalogError where
    their catalog is not there.
    """
    header = read_header(folder)
    shop = recorded_shop(header["conditions"]["catalog"], catalog)
    check_conditions(header, shop)
    episodes, file = list[LabelledEpisode](), csv_file or path_of(folder).parent / FILE
    with (
        Bar(console) as bar,
        replacing(file) as draft,
        draft.open("w", newline="", encoding="utf-8") as out,
    ):
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for episode in label_folder(folder, shop):
            episodes.append(episode)
            bar.update(f"{len(episodes)} episodes labelled")
            writer.writerows(rows_of(episode))
    labelled = [episode.labelled for episode in episodes if episode.labelled is not None]
    by_cell: dict[tuple[str, int], list[Labelled]] = defaultdict(list)
    for one in labelled:
        by_cell[one.env, one.d].append(one)
    cells = [{"env": env, "d": d, **summary(cell)} for (env, d), cell in sorted(by_cell.items())]
    found = summary(labelled)
    _show(found, len(episodes) - len(labelled), console)
    if json_file:
        write_json(json_file, without_nan({"header": header, "all": found, "cells": cells}))
    console.print(
        f"written to {' and '.join(shown(one) for one in (file, json_file) if one)}", soft_wrap=True
    )


def label_folder(folder: Path, shop: "Shop") -> Iterator[LabelledEpisode]:
    """Label every episode of a folder or file of transcripts, in the order in which they were played.

    Unscored episodes, and those that cannot be replayed, have no labels. Raises TranscriptError for no transcripts.
    """
    for transcript in read(folder):
        job, step = transcript.job, transcript.step
        if transcript.unscored:
            yield LabelledEpisode(job, step, None, f"{UNSCORED}: {transcript.unscored}")
            continue
        try:
            yield LabelledEpisode(job, step, label(trajectory_of(transcript, shop), shop))
        except ReplayError as error:
            yield LabelledEpisode(job, step, None, f"{NOT_REPLAYED}: {error}")


def rows_of(episode: LabelledEpisode) -> Iterator[dict[str, Any]]:
    """Yield a row for each mistake of an episode, or one row that says that it has none, or why it has no labels."""
    job, found = episode.job, episode.labelled
    head = {"env": job.env, "d": job.d, "seed": job.seed, "trial": job.trial, "step": episode.step}
    made: list[dict[str, Any]] = [{"kind": CLEAN}]
    if found is None:
        kind, _, why = episode.why.partition(": ")
        made = [{"kind": kind, "words": why}]
    else:
        head |= {name: getattr(found, name) for name in ("turns", "needed", "end")}
        head |= {"correct": int(found.correct), "doubtful": len(found.doubtful)}
        if found.mistakes:
            made = [{"number": number, **asdict(one)} for number, one in enumerate(found.mistakes)]
    for values in made:
        values = {**head, **values, "slots": " ".join(values.get("slots", ()))}
        yield {name: "" if values.get(name) is None else values[name] for name in COLUMNS}


def summary(labelled: Sequence[Labelled]) -> dict[str, Any]:
    """Count the episodes with mistakes and those of them that end correct, the kinds of first mistakes, the causes, and
    the fates by kind; `turns` is the mean number of turns until a mistake was mended."""
    erring = [one for one in labelled if one.mistakes]
    mistakes = [mistake for one in labelled for mistake in one.mistakes]
    fates = []
    for kind, count in Counter(mistake.kind for mistake in mistakes).most_common():
        mine = [mistake for mistake in mistakes if mistake.kind == kind]
        waits = [m.until - m.turn for m in mine if m.until is not None and m.fate.startswith("mended")]
        made = Counter(mistake.fate for mistake in mine)
        turns = sum(waits) / len(waits) if waits else float("nan")
        fates.append(
            {"kind": kind, "mistakes": count, **{fate: made[fate] for fate in FATES}, "turns": turns}
        )
    return {
        "episodes": len(labelled),
        "with_mistakes": len(erring),
        "correct_after_mistakes": sum(one.correct for one in erring),
        "first": dict(Counter(one.mistakes[0].kind for one in erring).most_common()),
        "causes": dict(Counter(mistake.cause for mistake in mistakes if mistake.cause).most_common()),
        "fates": fates,
    }


def _show(found: dict[str, Any], left_out: int, console: Console) -> None:
    title = "Mistakes by kind and fate (turns: until mended)"
    table = Table("kind", "mistakes", *FATES, "turns", title=title, box=None)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify, column.min_width = "right", max(map(len, str(column.header).split()))
    for row in found["fates"][:SHOWN]:
        turns = "" if row["turns"] != row["turns"] else f"{row['turns']:.1f}"
        table.add_row(row["kind"], str(row["mistakes"]), *(str(row[fate] or "") for fate in FATES), turns)
    if found["fates"]:
        widened(console).print(table)
    console.print(
        f"{found['episodes']} episodes, {found['with_mistakes']} with mistakes, of which "
        f"{found['correct_after_mistakes']} are correct in the end; {left_out} left out: unscored, or not replayable",
        soft_wrap=True,
    )
