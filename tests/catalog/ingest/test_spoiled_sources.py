"""Product files spoiled at random, of every format, in children: read with every row accounted for, or refused."""

import gzip
import io
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import spoiling
from ingested import MESSY, VARIANTS, amazebay_rows
from spoiling import REFUSED, SPICES, WORKED, Random

from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.catalog.products import open_products

CASES = 140
ROWS = amazebay_rows()[:8]


def table(rows: list[dict[str, Any]], kind: str) -> bytes:
    """Write rows as Parquet or Arrow; columns of mixed values as JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
            pq.write_table(pa.table({name: columns[name]}), io.BytesIO())
        except (pa.ArrowException, UnicodeError, OverflowError):
            said = [json.dumps(value, default=str) for value in values]
            columns[name] = pa.array([one.encode("utf-8", "replace").decode() for one in said])
    made, file = pa.table(columns), io.BytesIO()
    if kind == "parquet":
        pq.write_table(made, file)
    else:
        with pa.ipc.new_file(file, made.schema) as writer:
            writer.write_table(made)
    return file.getvalue()


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode("utf-8", "replace")


FORMATS = "messy.csv variants.csv rows.jsonl rows.json rows.parquet rows.arrow packed.csv.gz".split()


def written(name: str, rows: list[dict[str, Any]]) -> bytes:
    match name:
        case "messy.csv":
            return MESSY
        case "variants.csv" | "packed.csv.gz":
            return VARIANTS.encode()
        case "rows.jsonl":
            return lines(rows)
        case "rows.json":
            return json.dumps(rows).encode("utf-8", "replace")
    return table(rows, name.split(".")[1])


def spoil(number: int, place: Path) -> tuple[str, bool]:
    """Write a product file whose values or bytes are spoiled, sometimes both."""
    random = Random(number)
    name, rows = FORMATS[number % len(FORMATS)], json.loads(json.dumps(ROWS))
    values = name.startswith("rows") and random.below(3) > 0
    for _ in range(random.below(6) if values else 0):
        spoiling.change_in(rows, random)
    rows = [row for row in rows if isinstance(row, dict)] if name.endswith(("parquet", "arrow")) else rows
    raw = bytearray(written(name, rows) if rows else b"")
    if not values or not random.below(4):
        for _ in range(1 + random.below(11)):
            at = random.below(len(raw) + 1)
            match random.below(4):
                case 0:
                    del raw[at : at + random.below(40)]
                case 1:
                    raw[at:at] = raw[at : at + 60]
                case 2:
                    raw[at:at] = random.one(SPICES)
                case _:
                    raw[at : at + 1] = random.bytes(1)
    whole = bytes(raw)
    if name.endswith(".gz"):
        packed = gzip.compress(whole, mtime=0)
        whole = packed[: random.below(len(packed)) + 1] if not random.below(3) else packed
    place.mkdir()
    (place / name).write_bytes(whole)
    return f"{'values' if values else 'bytes'} of {name}", False


def attempt(place: Path, number: int) -> tuple[str, str]:
    """Ingest a file: REFUSED and the sentence, or WORKED with every row accounted for and nothing unsafe."""
    (file,) = place.iterdir()
    try:
        source = open_source(str(file))
        report = build_products(source, place / "out", guess(source.sample()))
    except (UnicodeError, pa.ArrowException):  # are ValueErrors too, and no sentences of ours
        raise
    except ValueError as error:
        return REFUSED, str(error)
    assert report.rows == report.kept + report.repaired + report.set_aside
    assert report.set_aside == sum(report.reasons.values()) and all(report.reasons)
    rows = open_products(place / "out").rows.to_pylist()
    assert len(rows) == report.products
    assert len({row["id"] for row in rows}) == len(rows)
    said = json.dumps(rows, ensure_ascii=False)
    assert not set("<>\x00") & set(said)
    assert all(row["title"] and row["stock"] >= 0 and row["days"] >= 0 for row in rows)
    assert {path.name for path in place.iterdir()} == {file.name, "out"}, "something is written elsewhere"
    return WORKED, ""


def test_spoiled_files_are_read_or_refused_in_children(tmp_path: Path) -> None:
    found = list(spoiling.outcomes(range(CASES), spoil, attempt, tmp_path))
    assert [one.number for one in found] == list(range(CASES))
    wrong = [one for one in found if one.what not in (REFUSED, WORKED)]
    assert not wrong, "\n".join(map(str, wrong[:5]))
    refused = [one.said for one in found if one.what == REFUSED]
    assert all(20 < len(said) < 1_500 and "\x1b" not in said for said in refused)
    worked = [one.way.split(" of ")[1] for one in found if one.what == WORKED]
    assert set(worked) == set(FORMATS) and len(worked) > CASES // 3


def test_an_arrow_file_with_offsets_out_of_it_is_refused(tmp_path: Path) -> None:
    def prepare(number: int, place: Path) -> tuple[str, bool]:
        raw = bytearray(table([{"title": f"Blue Lamp {row:03}"} for row in range(200)], "arrow"))
        at = raw.index(struct.pack("<3i", 0, 13, 26)) + 4 * 100
        struct.pack_into("<i", raw, at, 2**31 - 9)
        place.mkdir()
        (place / "rows.arrow").write_bytes(raw)
        return "offsets", False

    (found,) = spoiling.outcomes([0], prepare, attempt, tmp_path)
    assert found.what == REFUSED, found
