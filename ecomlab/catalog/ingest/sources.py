"""Rows of a catalog in any format, streamed: what cannot be read comes as a row with a fault, not as an error."""

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from ecomlab.catalog.ingest.attributes import is_attribute
from ecomlab.catalog.ingest.profiles import is_known, plain
from ecomlab.catalog.ingest.text import ENCODING, printable
from ecomlab.catalog.ingest.variants import Spread, objects_in

MOST_LINES: Final = 500
"""Lines that one record may take: a quote that is never closed would swallow the rest of the file."""
MOST_COLUMNS: Final = 1_000
"""Columns from which no more are looked for: ids or values that stand in the place of names have no end."""
DELIMITERS: Final = (",", ";", "\t", "|")
BATCH: Final = 1_000
SAMPLE: Final = 200
"""Rows by which columns are guessed."""
HEADER_LINES, HEADER_NAMES = 5, 3
"""Lines among which that of the names is looked for below others, and usual names that make it one."""
WHOLE_JSON: Final = 256 << 20
"""Characters of a JSON array that is read whole, unpacked: a compressed file says little about what is in it."""
SHORT, LONG_ROW, UNCLOSED, NOT_JSON, NOT_OBJECT, UNREADABLE = (
    "row cut short",
    "row with more fields than the header",
    "quote that is never closed",
    "line that is no JSON",
    "line that is no JSON object",
    "rest of the file unreadable",
)
JSON, ARROW = (".jsonl", ".ndjson", ".json"), (".parquet", ".arrow")
SUFFIXES: Final = (".csv", ".tsv", ".txt", *JSON, *ARROW)
BUILDERS: Final = ("parquet", "json", "csv", "arrow", "text")
"""Readers of `datasets` that decode plain data; others unpickle or unpack archives."""
BROKEN: Final = (OSError, EOFError, UnicodeError, zlib.error)
"""What reading a damaged file raises, compressed or not."""
_EXCEL = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""First line of a CSV that names its delimiter, as Excel writes it."""
_DECIMAL = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_ESCAPED = re.compile("[\ud800-\udfff]")
"""What stands for a byte that is no UTF-8."""
ENCODINGS: Final = tuple("cp1252 cp1250 cp1251 cp1253 cp1254 shift_jis gb18030 big5 euc_kr".split())
"""Encodings of lines that are no UTF-8, the usual one first."""
FEWEST, CLEARLY = 10, 0.03
"""Such lines from which on their encoding is asked for, and by how much another one must read better."""
_HUB = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?:@([\w./-]+))?")


class SourceRow(NamedTuple):
    """One row as it came: its number from 0, its values by column, and what is wrong with it."""

    number: int
    values: dict[str, Any]
    fault: str = ""
    """Why nothing can be read from it; then `values` holds the raw text under ""."""
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """Someone's catalog: one file, a folder of files, or a dataset of the Hugging Face hub."""

    name: str
    """As it was asked for; of a dataset "owner/name@commit", so that the hub's next revision is another source."""
    files: tuple[Path, ...] = ()
    delimiter: str = ""
    split: str = "train"
    header: bool = True
    """Whether a line of a CSV names its columns, one of the first; else they are "column 1", "column 2", ..."""

    def rows(self) -> Iterator[SourceRow]:
        """Yield every row, numbered from 0 over all files."""
        readers = map(self._read, self.files) if self.files else [_spread(_hub_rows(self.name, self.split))]
        for number, row in enumerate(chain.from_iterable(readers)):
            yield SourceRow(number, row.values, row.fault, row.repairs)

    def sample(self) -> list[dict[str, Any]]:
        """Return the values of the first rows that can be read, then of those that bring a column none before them had.

        Columns may begin anywhere in JSON, which is read to its end, and with each file of a folder. Raises ValueError
        where no row can be read.
        """
        return self._sample

    @cached_property  # JSON is read to its end for it
    def _sample(self) -> list[dict[str, Any]]:
        rows = [row.values for row in islice(self.rows(), 5 * SAMPLE) if not row.fault][:SAMPLE]
        if not rows:
            raise ValueError(
                f"{self.name} has no row that can be read; is it a product file ({', '.join(SUFFIXES)})?"
            )
        known = {column for row in rows for column in row}
        for path in self.files:
            readable = (row.values for row in self._read(path) if not row.fault)
            for values in readable if _suffix(path) in JSON else islice(readable, 1):
                if not known.issuperset(values) and len(known) < MOST_COLUMNS:
                    rows.append(values)
                    known.update(values)
        return rows

    def _read(self, path: Path) -> Iterator[SourceRow]:
        try:
            if (suffix := _suffix(path)) in ARROW:
                yield from _spread(_arrow_rows(path, suffix))
            elif suffix in JSON:
                yield from _spread(_json_rows(path))
            else:
                yield from _spread(_csv_rows(path, self.delimiter, self.header))
        except BROKEN as error:
            yield SourceRow(0, {"": f"{path.name}: {error}"[:2_000]}, UNREADABLE)


def _spread(rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """Yield rows, of one that lists its variants one for each."""
    spread = Spread()
    for row in rows:
        for values in [row.values] if row.fault else spread(row.values):
            yield row if values is row.values else row._replace(values=values)


def open_source(name: str, split: str = "train") -> Source:
    """Find the source `name`: a file, a folder (of files, or saved by `datasets`), or the id of a dataset on the hub.

    A dataset is pinned to the commit that "owner/name@revision" is now, without "@revision" its newest. Raises
    ValueError when there is no such source, or nothing in it that can be read.
    """
    path = Path(name).expanduser()
    if path.is_file():
        if _suffix(path) not in SUFFIXES:
            raise ValueError(
                f"{path} is in no format that can be read; there are {', '.join(SUFFIXES)}, or these with .gz; "
                "save a spreadsheet's sheet of products as CSV"
            )
        return Source(name, (path,), split=split)
    if path.is_dir():
        return Source(name, tuple(_files_of(path, split)), split=split)
    if (on_hub := _HUB.fullmatch(name)) and path.suffix.lower() not in SUFFIXES:
        return Source(f"{on_hub[1]}@{_commit(on_hub[1], on_hub[2])}", split=split)
    raise ValueError(f"there is no file or folder {name}; a dataset of the hub is named owner/name")


def _suffix(path: Path) -> str:
    """Return what a file's name says of its format, in lower case: ".csv" of "a.CSV.gz"."""
    return (Path(path.stem) if path.suffix.lower() == ".gz" else path).suffix.lower()


def _files_of(folder: Path, split: str) -> list[Path]:
    """List the data files of a folder; where `datasets` saved several splits there, those of one."""
    if (folder / "dataset_dict.json").is_file():
        folder /= split
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    found = sorted(path for path in files if _suffix(path) in SUFFIXES)
    if not found:
        raise ValueError(f"{folder} holds no product file; there are {', '.join(SUFFIXES)}")
    return found


def _open_text(path: Path) -> IO[str]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    raw: Any = gzip.open(path) if zipped else path.open("rb")  # noqa: SIM115  closed with its wrapper
    try:
        utf_16 = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")
        raw.seek(0)
    except BROKEN:
        utf_16 = False
    return io.TextIOWrapper(raw, "utf-16" if utf_16 else "utf-8-sig", "surrogateescape", newline=None)


def _lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a file, and whether they were of another encoding: in bytes that are no UTF-8 they are in the
    one that such lines look like."""
    encoding = ""
    with _open_text(path) as file:
        for line in file:
            odd = not line.isascii() and _ESCAPED.search(line) is not None
            if odd:
                encoding = encoding or _encoding(path)
                line = line.encode("utf-8", "surrogateescape").decode(encoding, "replace")
            yield line, odd


def _encoding(path: Path) -> str:
    """Tell the encoding of the first lines that are no UTF-8: Windows-1252, unless another clearly fits better."""
    from charset_normalizer import from_bytes

    sample: list[str] = []
    with _open_text(path) as file, suppress(*BROKEN):
        sample.extend(line for line in islice(file, 5_000) if _ESCAPED.search(line))
    odd = "".join(sample[:200]).encode("utf-8", "surrogateescape")[:100_000]
    found = from_bytes(odd, cp_isolation=list(ENCODINGS)) if len(sample) >= FEWEST else ()
    usual = max((one.coherence for one in found if ENCODINGS[0] in one.could_be_from_charset), default=0.0)
    best = max(found, key=lambda one: one.coherence, default=None)
    return best.encoding if best and best.coherence > usual + CLEARLY else ENCODINGS[0]


def _csv_rows(path: Path, delimiter: str, header: bool) -> Iterator[SourceRow]:
    delimiter, above, names = _form(path, delimiter, header)
    for fields, raw, repairs, fault in islice(_records(_lines(path), delimiter), above, None):
        if not names:
            names = _header(fields)
        elif fault or (len(fields) > len(names) and any(fields[len(names) :])):
            yield SourceRow(0, {"": raw[:2_000]}, fault or LONG_ROW)
        else:
            short = (SHORT,) if len(fields) < len(names) else ()
            yield SourceRow(0, dict(zip(names, fields)), "", repairs + short)


def _form(path: Path, delimiter: str, header: bool) -> tuple[str, int, list[str]]:
    """Tell a CSV's delimiter, how many records stand above its names, as in marketplaces' templates, and the names of
    its columns where no line gives them."""
    held: list[tuple[str, bool]] = []
    with suppress(*BROKEN):
        held.extend(islice(_lines(path), 50))
    excel = _EXCEL.fullmatch(held[0][0]) if held else None
    held = held[bool(excel) :]
    delimiter = delimiter or (excel[1] if excel else _delimiter([line for line, _ in held]))
    records = [[] if fault else fields for fields, _, _, fault in _records(held, delimiter)]
    if not header:
        width = max(map(len, records), default=0)
        return delimiter, int(bool(excel)), [f"column {at + 1}" for at in range(width)]
    known = [sum(map(_is_name, record)) for record in records[:HEADER_LINES]]
    named = [at for at, count in enumerate(known) if count >= HEADER_NAMES and not known[0]]
    above = max(named, default=0)  # of two lines of names, the later is for programs
    return delimiter, above + bool(excel), []


def _is_name(said: str) -> bool:
    return is_known(said.strip()) or is_attribute(said.strip())


def _header(fields: list[str]) -> list[str]:
    names: list[str] = []
    for at, name in enumerate(fields):
        name = " ".join(printable(name).split()) or f"column {at + 1}"
        names.append(name if name not in names else f"{name} ({at + 1})")
    return names


def _records(
    lines: Iterable[tuple[str, bool]], delimiter: str
) -> Iterator[tuple[list[str], str, tuple[str, ...], str]]:
    """Yield (fields, raw text, repairs, fault) of CSV records.

    Of a quote that is never closed, or by one of a later row, the first line is set aside and the others read again.
    """
    csv.field_size_limit(sys.maxsize)
    rest, held, width = iter(lines), deque[tuple[str, bool]](), 0
    while True:
        held.extend(islice(rest, MOST_LINES - len(held)))
        if not held:
            return
        reader = csv.reader(chain((text for text, _ in held), [""]), delimiter=delimiter)
        fields = next(reader)
        unclosed = reader.line_num > len(held)
        taken = [held.popleft() for _ in range(1 if unclosed else reader.line_num)]
        if len(taken) > 1 and width and _swallows([line for line, _ in taken], fields, delimiter, width):
            held.extendleft(taken[:0:-1])
            taken, unclosed = taken[:1], True
        text = "".join(text for text, _ in taken)
        if unclosed:
            yield [text[:200]], text, (), UNCLOSED
        elif not text.isspace():
            width = width or len(fields)
            yield fields, text, (ENCODING,) if any(odd for _, odd in taken) else (), ""


def _swallows(lines: Sequence[str], fields: Sequence[str], delimiter: str, width: int) -> bool:
    """Tell whether a record over several lines holds others: it has too many fields, or most of its lines are rows."""

    def is_row(line: str) -> bool:
        with suppress(csv.Error):
            own = next(csv.reader([line], delimiter=delimiter, strict=True), [])
            return len(own) == width and '"' not in "".join(own)
        return False

    return len(fields) > width or (width > 2 and 2 * sum(map(is_row, lines[1:])) >= len(lines))


def _delimiter(lines: list[str]) -> str:
    """Choose the delimiter that splits the first lines most evenly into most fields."""

    def evenness(mark: str, lines: list[str]) -> tuple[int, int]:
        counts = Counter(len(fields) for fields, *_ in _records(((line, False) for line in lines), mark))
        fields, often = counts.most_common(1)[0] if counts else (1, 0)
        return (often, fields) if fields > 1 else (0, 1)

    comma, *others = (evenness(mark, lines) for mark in DELIMITERS)
    best = max(others)
    if comma[0] <= best[0] and evenness(",", [_DECIMAL.sub(".", line) for line in lines])[1] < best[1]:
        comma = (0, 1)  # nearly all of them are in numbers: 12,90
    return DELIMITERS[[comma, *others].index(max(comma, best))]


def _json_rows(path: Path) -> Iterator[SourceRow]:
    """Read one object a line, or a file that is one array of objects, or one object around such an array."""
    if _suffix(path) == ".json":
        with _open_text(path) as file, suppress(RecursionError, UnicodeError, json.JSONDecodeError):
            text = file.read(WHOLE_JSON)
            if file.read(1) and text.lstrip().startswith("["):
                raise ValueError(
                    f"{path} is one JSON array of more than 256 MB; write it with one object a line (.jsonl)"
                )
            values = json.loads(text)
            yield from map(_object_row, values if isinstance(values, list) else _listed(values))
            return
    for text, odd in _lines(path):
        if line := text.strip(" ,\r\n\t"):
            yield _json_row(line, (ENCODING,) if odd else ())


def _listed(whole: Any) -> list[Any]:
    """Return the one list of objects in the object that a file is; a product by itself is its only one."""
    if not isinstance(whole, dict):
        return [whole]
    lists = [name for name, one in whole.items() if objects_in(one)]
    return whole[lists[0]] if len(lists) == 1 and not whole.keys() & {"title", *plain().variants} else [whole]


def _json_row(line: str, repairs: tuple[str, ...]) -> SourceRow:
    try:
        return _object_row(json.loads(line), line, repairs)
    except (ValueError, RecursionError):
        return SourceRow(0, {"": line[:2_000]}, NOT_JSON)


def _object_row(value: Any, said: str = "", repairs: tuple[str, ...] = ()) -> SourceRow:
    if not isinstance(value, dict) or not value:
        return SourceRow(0, {"": (said or str(value))[:2_000]}, NOT_OBJECT)
    return SourceRow(0, {printable(str(name)): one for name, one in value.items()}, "", repairs)


def _arrow_rows(path: Path, suffix: str) -> Iterator[SourceRow]:
    import pyarrow as pa

    try:
        for batch in _batches(path, suffix):
            batch.validate(full=True)  # offsets that lead out of the file would be followed
            yield from (SourceRow(0, values) for values in _in_text(batch).to_pylist())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise OSError(str(error)) from None


def _in_text(batch: Any) -> Any:
    """Write bytes as the text that they are, where a writer did not say so, and times, which Python cannot always
    hold."""
    import pyarrow as pa

    def text_of(column: Any) -> Any:
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return pa.array(
                [raw and raw.decode("utf-8", "replace") for raw in column.to_pylist()], pa.string()
            )
        return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column

    names = [printable(name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays([text_of(column) for column in batch.columns], names)


def _batches(path: Path, suffix: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH)
        return
    with pa.memory_map(str(path)) as file:
        try:
            whole = pa.ipc.open_file(file)
            batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
        except pa.ArrowInvalid:
            file.seek(0)
            batches = iter(pa.ipc.open_stream(file))
        for batch in batches:
            for at in range(0, batch.num_rows, BATCH):
                yield batch.slice(at, BATCH)


def _commit(name: str, revision: str | None) -> str:
    """Return the commit that a revision of a dataset is now. Raises ValueError when the hub cannot say."""
    import huggingface_hub

    try:
        return str(huggingface_hub.HfApi().dataset_info(name, revision=revision).sha)
    except Exception as error:  # of any of the libraries between the network and here
        raise _unread(f"{name}@{revision}" if revision else name, 0, error) from None


def _hub_rows(name: str, split: str) -> Iterator[SourceRow]:
    """Stream a dataset of the hub through `datasets`. Raises ValueError where it cannot be read, or not safely."""
    import datasets

    repository, _, commit = name.partition("@")
    count = 0
    try:
        builder = datasets.load_dataset_builder(repository, revision=commit or None)
        if type(builder).__module__.split(".")[-2] not in BUILDERS:
            raise ValueError(f"no plain data: {', '.join(BUILDERS)} are read, not {type(builder).__name__}")
        for values in builder.as_streaming_dataset(split=split):
            yield SourceRow(0, values)
            count += 1
    except Exception as error:  # of any of the libraries between the network and the file's format
        raise _unread(name, count, error) from None


def _unread(name: str, count: int, error: Exception) -> ValueError:
    return ValueError(
        f"the dataset {name} cannot be read, after {count:,} rows ({error}). With a network, set HF_HUB_OFFLINE=0; "
        "otherwise name a file or a folder that was downloaded"
    )
