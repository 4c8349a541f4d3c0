"""Titles of real products: one Arrow column, memory-mapped, read a title at a time."""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, overload

from ecomlab.catalog.ingest.text import inert, printable
from ecomlab.files import replacing

_MAGIC: Final = b"ARROW1\0\0"
BATCH: Final = 50_000
"""Rows of a record batch."""


def _is_packed(message: Any) -> bool:
    """Tell whether a record batch is compressed: Arrow would unpack it to whatever length it claims.

    pyarrow does not say, but its flatbuffer does: field 3 of the record batch, which is field 2 of the message.
    """
    raw = message.metadata.to_pybytes()

    def place(table: int, field: int) -> int:
        start = table - struct.unpack_from("<i", raw, table)[0]
        there = 4 + 2 * field < struct.unpack_from("<H", raw, start)[0]
        offset = struct.unpack_from("<H", raw, start + 4 + 2 * field)[0] if there else 0
        return table + offset if offset else 0

    header = place(struct.unpack_from("<I", raw, 0)[0], 2)
    return message.type == "record batch" and place(header + struct.unpack_from("<I", raw, header)[0], 3) != 0


def _schema() -> Any:
    import pyarrow

    return pyarrow.schema([("title", pyarrow.string())])


class Titles(Sequence[str]):
    """Titles by row over an Arrow column of strings, which may lie in a memory-mapped file.

    A built folder may be someone else's too: whatever its file says, no title that is read holds a chat marker or
    a character that a terminal would obey.
    """

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [inert(printable(str(title))) for title in self._column[row].to_pylist()]
        return inert(printable(str(self._column[row].as_py())))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BATCH):
            yield from self[start : start + BATCH]

    @cached_property
    def digest(self) -> str:
        """Digest of all titles in their order, however they are batched."""
        state = hashlib.blake2b(digest_size=16)
        for title in self:
            state.update(title.encode("utf-8", "surrogatepass") + b"\0")
        return state.hexdigest()

    @staticmethod
    def of(titles: Iterable[str]) -> "Titles":
        """Make the column of some titles in memory."""
        import pyarrow  # 40 MB, which a generated shop does without

        return Titles(pyarrow.chunked_array([pyarrow.array(titles, pyarrow.string())]))

    @staticmethod
    def open(path: Path, longest: int | None = None) -> "Titles":
        """Memory-map what `save` wrote. Raises ValueError for another file, and for a title of more bytes than
        `longest`."""
        import pyarrow
        import pyarrow.compute

        try:
            mapped = pyarrow.memory_map(str(path)).read_buffer()
            if mapped[: len(_MAGIC)].to_pybytes() != _MAGIC:
                raise ValueError(f"{path.name} is no table of titles (it begins otherwise)")
            stream = mapped.slice(
                len(_MAGIC)
            )  # what a file holds before its list of contents, which is not needed
            if any(_is_packed(message) for message in pyarrow.ipc.MessageReader.open_stream(stream)):
                raise ValueError(
                    f"{path.name} is packed, and a small file may unpack to more than there is memory"
                )
            file = pyarrow.ipc.open_stream(stream)
            if file.schema != _schema():
                raise ValueError(f"{path.name} has other columns than one of titles")
            column = file.read_all().column("title")
            # offsets that lead out of the file would be followed, so all of them are looked at, and the letters too
            column.validate(full=True)
        except (pyarrow.ArrowException, OSError, EOFError, struct.error) as error:
            fact = str(error).partition("\n")[0]
            raise ValueError(f"{path.name} is no table of titles ({fact})") from None
        if column.null_count:
            raise ValueError(f"{path.name} lacks a title")
        length = pyarrow.compute.max(pyarrow.compute.binary_length(column)).as_py() or 0
        if longest is not None and length > longest:
            raise ValueError(f"{path.name} has a title of {length:,} bytes, more than {longest:,}")
        return Titles(column)

    def save(self, path: Path) -> None:
        """Write an Arrow file with the column "title", whole or not at all."""
        import pyarrow

        schema = _schema()
        with replacing(path) as draft, pyarrow.ipc.new_file(str(draft), schema) as file:
            for start in range(0, len(self), BATCH):
                titles = pyarrow.array(self[start : start + BATCH], pyarrow.string())
                file.write_batch(pyarrow.record_batch([titles], schema=schema))
