"""Tables that grow a part at a time, each part whole or not there."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ecomlab.files import replacing


def read(path: Path) -> list[dict[str, str]]:
    """Read the table; no rows where there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows, all of them or after a kill none: the file is written anew and takes the old one's place."""
    there = path.read_bytes() if path.exists() else b""
    with replacing(path) as draft:
        draft.write_bytes(there)
        with draft.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if not there:
                writer.writeheader()
            writer.writerows(rows)
