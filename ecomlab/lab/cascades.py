"""The command cascade: label every mistake in a folder of transcripts, print what they come to, write the tables."""

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ecomlab.evaluation.cascade.mistakes import FATES, Labelled
from ecomlab.evaluation.cascade.tables import COLUMNS, Episode, label_folder, rows_of, summary
from ecomlab.evaluation.evaluation import check_conditions
from ecomlab.evaluation.result import without_nan
from ecomlab.evaluation.transcripts import path_of, read_header
from ecomlab.files import replacing, write_json
from ecomlab.lab.evaluation_tables import widened
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import each_minute
from ecomlab.lab.shops import recorded_shop

FILE = "cascade.csv"
SHOWN = 12
"""Kinds that are printed; the files hold all."""


def label_run(
    folder: Path,
    console: Console,
    csv_file: Path | None = None,
    json_file: Path | None = None,
    catalog: str | None = None,
) -> None:
    """Label the episodes of `folder`; write a row per mistake to `csv_file`, by default beside the transcripts, and the
    summary by environment and level to `json_file`. `catalog` is the folder where the recorded catalog is now, if it is
    another.

    Raises TranscriptError for no transcripts, or if what they were made with has changed since, CatalogError where
    their catalog is not there.
    """
    header = read_header(folder)
    shop = recorded_shop(header["conditions"]["catalog"], catalog)
    check_conditions(header, shop)
    episodes, file = list[Episode](), csv_file or path_of(folder).parent / FILE
    with (
        each_minute(console) as tell,
        replacing(file) as draft,
        draft.open("w", newline="", encoding="utf-8") as out,
    ):
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for episode in label_folder(folder, shop):
            episodes.append(episode)
            tell(f"{len(episodes)} episodes labelled")
            writer.writerows(rows_of(episode))
    labelled = [episode.labelled for episode in episodes if episode.labelled is not None]
    found = summary(labelled)
    _show(found, len(episodes) - len(labelled), console)
    if json_file:
        write_json(json_file, without_nan({"header": header, "all": found, "cells": _by_cell(labelled)}))
    console.print(
        f"written to {' and '.join(shown(one) for one in (file, json_file) if one)}", soft_wrap=True
    )


def _by_cell(labelled: list[Labelled]) -> list[dict[str, Any]]:
    """Summarize each environment and level."""
    cells: dict[tuple[str, int], list[Labelled]] = defaultdict(list)
    for one in labelled:
        cells[one.env, one.d].append(one)
    return [{"env": env, "d": d, **summary(cell)} for (env, d), cell in sorted(cells.items())]


def _show(found: dict[str, Any], left_out: int, console: Console) -> None:
    table = Table(
        "kind", "mistakes", *FATES, "turns until mended", title="Mistakes by kind and fate", box=None
    )
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
    ratio = found["more_likely"]
    if ratio["ratio"] == ratio["ratio"]:
        console.print(
            f"a turn brings a new mistake in {ratio['before']:.3f} of turns before the first and {ratio['after']:.3f} "
            f"after one: {ratio['ratio']:.2f} times as often [{ratio['low']:.2f}, {ratio['high']:.2f}] within "
            "environment, level and turn, which is no proof that one leads to the other",
            soft_wrap=True,
        )
