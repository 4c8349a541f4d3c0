"""Clean rows on disk, in shards that are written whole, so that a build which was killed goes on where it was."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final

from ecomlab.catalog.ingest.rows import RowCleaner, SetAside, excerpt
from ecomlab.catalog.ingest.sources import Source, SourceRow
from ecomlab.files import read_json, replacing, write_json

SHARD: Final = 20_000
"""Source rows of a shard."""
EXAMPLES: Final = 5
"""Rows shown for each reason."""


def write_shards(source: Source, cleaner: RowCleaner, folder: Path, progress: Any) -> int:
    """Clean every row of `source` into shards in `folder`, skipping those that are there; return how many rows it has.

    `progress(rows)` is called after each shard.
    """
    rows = source.rows()
    total = 0
    for at in count():
        if (first := next(rows, None)) is None:
            break
        batch = chain([first], islice(rows, SHARD - 1))  # no list: raw rows may be a million characters each
        place = folder / f"{at:05d}"
        there = read_json(place.with_suffix(".json")) is not None
        total += sum(1 for _ in batch) if there else _write(batch, cleaner, place)
        progress(total)
    return total


def _write(batch: Iterable[SourceRow], cleaner: RowCleaner, place: Path) -> int:
    """Clean the rows of a shard and write it; return how many there were."""
    import pyarrow as pa

    kept: list[dict[str, Any]] = []
    aside: list[SetAside] = []
    examples: dict[str, list[list[Any]]] = {}
    for row in batch:
        one = cleaner.clean(row)
        if isinstance(one, SetAside):
            aside.append(one)
            continue
        kept.append(one)
        for reason in filter(None, one["repairs"].split("\n")):
            shown = examples.setdefault(reason, [])
            if len(shown) < EXAMPLES:
                shown.append([one["number"], excerpt(row.values, 300)])
    with replacing(place.with_suffix(".arrow")) as draft, pa.OSFile(str(draft), "wb") as file:
        columns = {name: [one[name] for one in kept] for name in schema().names}
        with pa.ipc.new_file(file, schema()) as writer:
            writer.write_table(pa.Table.from_pydict(columns, schema=schema()))
    facts = {
        "examples": examples,
        "attributes": sorted({name for one in kept for name in json.loads(one["attributes"])}),
        "dropped": Counter(said for one in kept for said in one["dropped"]),
        "set_aside": aside,
    }
    write_json(place.with_suffix(".json"), facts)
    return len(kept) + len(aside)


def schema() -> Any:
    """Columns of a shard."""
    import pyarrow as pa

    text, small = pa.string(), pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("number", pa.int64()),
            *(
                (name, text)
                for name in (
                    "source_id",
                    "other_id",
                    "parent",
                    "title",
                    "feature",
                    "text",
                    "attributes",
                    "options",
                )
            ),
            *((name, small) for name in ("brand", "kind", "department", "said", "path", "repairs")),
            ("content", pa.int64()),
            ("hidden", pa.bool_()),
            ("price_cents", pa.int32()),
            ("surcharge_cents", pa.int32()),
            ("rating_tenths", pa.int8()),
            ("reviews", pa.int32()),
            ("stock", pa.int16()),
            ("days", pa.int8()),
            ("children", text),
        ]
    )


def read_shards(folder: Path) -> Any:
    """Open all shards as one memory-mapped table."""
    import pyarrow as pa

    files = sorted(folder.glob("*.arrow"))
    tables = [pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in files]
    return pa.concat_tables(tables) if tables else schema().empty_table()


def facts_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield each shard's examples and rows that were set aside."""
    for path in sorted(folder.glob("*.json")):
        yield read_json(path) or {}
