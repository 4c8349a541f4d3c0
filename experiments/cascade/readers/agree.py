"""How far two readers of the sixty trajectories agree, with each other and with the labels.

    python experiments/cascade/readers/agree.py           # label, compare, write the tables
    python experiments/cascade/readers/agree.py --draw    # only put the table into docs/cascade.md

Reads reader_a.jsonl and reader_b.jsonl, which must be committed: nothing is labelled before both readers are through.
Writes agreement.csv (Cohen's kappa of each two, `ecomlab.evaluation.cascade.agreement`), disagreements.csv (every
mistake that not all three note), labels.jsonl (what the code found) and agreement.json (what they were made with).
"""

import argparse
import csv
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from places import HERE, SIZE, TRANSCRIPTS, places

from ecomlab.catalog import load_shop
from ecomlab.evaluation.cascade.agreement import (
    agreements,
    as_markdown,
    differences_as_markdown,
    disagreements,
    of_labels,
    read_answers,
)
from ecomlab.evaluation.cascade.labels import label
from ecomlab.evaluation.cascade.mistakes import Labelled
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.evaluation.transcripts import read
from ecomlab.files import replace_between, write_json, write_text
from ecomlab.lab.provenance import provenance

ANSWERS = {"reader A": HERE / "reader_a.jsonl", "reader B": HERE / "reader_b.jsonl"}
TABLE, LIST, LABELS = HERE / "agreement.csv", HERE / "disagreements.csv", HERE / "labels.jsonl"
PAGE = HERE.parents[2] / "docs" / "cascade.md"
MARKS = ("<!-- drawn by experiments/cascade/readers/agree.py: begin -->", "<!-- agreement: end -->")
CODE = "code"


def commit_of(path: Path) -> str:
    """Name the commit that last changed a file. Raises SystemExit for one that is missing or not committed as it is."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments, "--", path.name], cwd=path.parent, capture_output=True, text=True
        )
        return done.stdout.strip()

    if not path.exists():
        raise SystemExit(f"{path} is missing; nothing is labelled before both readers are through")
    commit = git("log", "-1", "--format=%h")
    if not commit or git("status", "--porcelain"):
        raise SystemExit(f"{path} is not committed as it is; commit it first, so that the order shows")
    return commit


def turns_of(transcript: Transcript) -> int:
    """Count the turns of an episode; a last message that was cut off is one, though it is not recorded."""
    said = sum(message["role"] == "assistant" for message in transcript.messages)
    return said + (transcript.end == "truncated")


def labels_of(transcripts: Mapping[str, Transcript]) -> dict[str, Labelled]:
    """Label every trajectory, and keep what was found."""
    shop = load_shop(SIZE)
    found = {name: label(trajectory_of(one, shop), shop) for name, one in transcripts.items()}
    lines = (json.dumps({"trajectory": name, **one.to_json()}) + "\n" for name, one in found.items())
    write_text(LABELS, "".join(lines))
    return found


def reasons_of(labels: Mapping[str, Labelled]) -> dict[tuple[str, int, str], list[str]]:
    """List the words of the labels by trajectory, turn and kind, as `read_answers` lists a reader's reasons."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for name, labelled in labels.items():
        for m in labelled.mistakes:
            found.setdefault((name, m.turn, m.kind), []).append(m.words or m.place)
    return found


def compare() -> None:
    """Label, compare with both readers, and write the tables."""
    commits = {reader: commit_of(path) for reader, path in ANSWERS.items()}
    drawn = {place.name: place for place in places()}
    transcripts = {f"{one.notes['place']:02}": one for one in read(TRANSCRIPTS)}
    if missing := [name for name in drawn if name not in transcripts]:
        raise SystemExit(f"trajectories {', '.join(missing)} are not played; see draw.py --seats")
    turns = {name: turns_of(transcripts[name]) for name in drawn}
    answers = {reader: read_answers(path, turns) for reader, path in ANSWERS.items()}
    labels = labels_of(transcripts)
    readings = {reader: marks for reader, (marks, _) in answers.items()}
    readings[CODE] = {name: of_labels(labels[name]) for name in drawn}
    why = {**{reader: reasons for reader, (_, reasons) in answers.items()}, CODE: reasons_of(labels)}
    write_table(TABLE, [one.row() for one in agreements(readings, turns)])
    differ = list(disagreements(readings, why))
    of_places = [drawn[row["trajectory"]] for row in differ]
    extra = [{"env": place.job.env, "d": place.job.d, "player": place.player} for place in of_places]
    write_table(LIST, [{**row, **more} for row, more in zip(differ, extra, strict=True)])
    record = provenance(
        {"trajectories": len(turns), "turns": sum(turns.values()), "catalog_size": SIZE},
        catalog=load_shop(SIZE).fingerprint,
        inputs=[TRANSCRIPTS, *ANSWERS.values()],
        answers_committed=commits,
    )
    write_json(TABLE.with_suffix(".json"), record)


def rows_of(path: Path) -> list[dict[str, str]]:
    """Read a table; no rows where there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; without any, an empty file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true")
    if not parser.parse_args().draw:
        compare()
    drawn = [as_markdown(rows_of(TABLE)), differences_as_markdown(rows_of(LIST))]
    replace_between(PAGE, MARKS, "\n\n".join(filter(None, drawn)))


if __name__ == "__main__":
    main()
