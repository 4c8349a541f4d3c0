"""Titles of real products: one Arrow column, memory-mapped, read a title at a time."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, overload

from ecomlab.catalog.ingest.text import inert, printable
from ecomlab.files import replacing

BATCH: Final = 50_000
"""Rows of a record batch."""


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
            file = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
            if file.schema != _schema():
                raise ValueError(f"{path.name} has other columns than one of titles")
            column = file.read_all().column("title")
            # offsets that lead out of the file would be followed, so all of them are looked at, and the letters too
            column.validate(full=True)
        except (pyarrow.ArrowException, OSError, EOFError) as error:
            raise ValueError(f"{path.name} is no table of titles ({str(error).splitlines()[0]})") from None
        if column.null_count or column.nbytes > path.stat().st_size:
            raise ValueError(f"{path.name} lacks a title, or is packed")
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
