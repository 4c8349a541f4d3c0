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


class Titles(Sequence[str]):
    """Titles by row over an Arrow column of strings, which may lie in a memory-mapped file."""

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
            return [str(title) for title in self._column[row].to_pylist()]
        return str(self._column[row].as_py())

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
        """Make the column of some titles in memory, without chat markers and what a terminal would obey."""
        import pyarrow  # 40 MB, which a generated shop does without

        safe = (inert(printable(title)) for title in titles)
        return Titles(pyarrow.chunked_array([pyarrow.array(safe, pyarrow.string())]))

    @staticmethod
    def open(path: Path) -> "Titles":
        """Memory-map what `save` wrote. Raises ValueError or OSError for another file."""
        import pyarrow

        return Titles(pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all().column("title"))

    def save(self, path: Path) -> None:
        """Write an Arrow file with the column "title", whole or not at all."""
        import pyarrow

        schema = pyarrow.schema([("title", pyarrow.string())])
        with replacing(path) as draft, pyarrow.ipc.new_file(str(draft), schema) as file:
            for start in range(0, len(self), BATCH):
                titles = pyarrow.array(self[start : start + BATCH], pyarrow.string())
                file.write_batch(pyarrow.record_batch([titles], schema=schema))
