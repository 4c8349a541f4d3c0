"""From the tables of single runs to the tables of an experiment, with their provenance."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from ecomlab.analysis.tables import load_eval, load_experiment, load_train
from ecomlab.lab.paths import read_json, write_json, write_text
from ecomlab.lab.provenance import RECORD
from ecomlab.lab.sweep import FINISHED, Run, Sweep


def gather(plan: Sweep, runs: Sequence[Run]) -> None:
    """Join train.csv and eval.csv of finished `runs`, in their order, into the sweep's folder; check the
    result.

    Each value is copied as it was written. provenance.json says for every run where it comes from. Files
    whose content stays the same are not touched. Raises TableError that names the run's own file when that is
    at fault.
    """
    for name, check in (("train.csv", load_train), ("eval.csv", load_eval)):
        for run in runs:
            check(run.folder / name)
        text = _joined(runs, name)
        target = plan.folder / name
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            write_text(target, text)
    load_experiment(plan.folder)
    record = _provenance(runs)
    if read_json(plan.folder / RECORD) != record:
        write_json(plan.folder / RECORD, record)


def _joined(runs: Sequence[Run], name: str) -> str:
    """The rows of all runs under the columns of the first one, plus any that others have."""
    tables = []
    for run in runs:
        with (run.folder / name).open(encoding="utf-8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    columns = list(dict.fromkeys(column for rows in tables for row in rows for column in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for rows in tables:
        writer.writerows(rows)
    return out.getvalue()


def _provenance(runs: Sequence[Run]) -> dict[str, Any]:
    """What the runs have in common once, and for each run what is its own."""
    records = {}
    for run in runs:
        record = read_json(run.folder / FINISHED) or {}
        records[run.id] = {**record, **(read_json(run.folder / RECORD) or {})}
    common = _common(list(records.values()))
    return {"common": common, "runs": {name: _beyond(record, common) for name, record in records.items()}}


def _common(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What all records say alike, into nested records."""
    found = {}
    for key, value in records[0].items():
        others: list[Any] = [record.get(key) for record in records]
        if all(other == value for other in others):
            found[key] = value
        elif all(isinstance(other, dict) for other in others):
            found[key] = _common(others)
    return found


def _beyond(record: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """What `record` says beyond `common`."""
    own = {}
    for key, value in record.items():
        if key not in common:
            own[key] = value
        elif value != common[key]:
            own[key] = _beyond(value, common[key])
    return own
