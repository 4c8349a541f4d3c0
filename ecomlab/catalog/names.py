"""The names of a catalog's brands or features: where there are many, packed, and looked up in mapped tables.

Text and tables lie in files whose pages all processes share, so that a process's own memory hardly grows with them.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final, overload

import numpy as np

from ecomlab.files import cache_folder, replacing
from ecomlab.seeding import digest

MANY: Final = 20_000
"""Names from which on they are packed and their tables kept in the cache; fewer are a tuple, looked up in dicts."""
WORD, PART, SPOKEN = "word", "part", "spoken"
SPLIT: Final = {
    WORD: re.compile(r"[a-z][a-z'-]*"),
    PART: re.compile(r"[a-z]+"),
    SPOKEN: re.compile(r"[a-z0-9]+(?:[.,][0-9]+)*"),
}
"""How names in lower case are split into words: with hyphens and apostrophes, letters alone, and as people say them."""


class Table:
    """Numbers by key, several of which may share one: uint64 (2, rows), keys in order."""

    def __init__(self, rows: np.ndarray) -> None:
        self._keys, self._values = rows

    def found(self, *parts: str) -> list[int]:
        """List the numbers of a key, ascending."""
        wanted = np.uint64(key(*parts))
        start, end = (int(np.searchsorted(self._keys, wanted, side)) for side in ("left", "right"))
        return sorted(self._values[start:end].tolist())


def key(*parts: str) -> int:
    return int.from_bytes(hashlib.blake2b("\n".join(parts).encode(), digest_size=8).digest(), "little")


def rows_of(pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """Make a table's rows of keys and numbers."""
    table = np.fromiter(pairs, np.dtype((np.uint64, 2))).T
    return np.ascontiguousarray(table[:, np.argsort(table[0], kind="stable")])


def kept(
    names: "Packed", made_of: Sequence[object], make: Callable[[Sequence[str]], np.ndarray]
) -> np.ndarray:
    """Memory-map the rows made of many names from the cache; make them, and keep them if it can be written."""
    file = cache_folder() / "names" / f"{digest([names.digest, *made_of])}.npy"
    if not file.is_file():
        rows = make(names)
        try:
            with replacing(file) as draft, draft.open("wb") as opened:
                np.save(opened, rows)
        except OSError:
            return rows
    return np.load(file, mmap_mode="r", allow_pickle=False)


class Packed(Sequence[str]):
    """Names by code: lines of UTF-8, uint8 (bytes,), and where each begins, int64 (count + 1,).

    Looked up are names that differ by more than case.
    """

    def __init__(self, text: np.ndarray, starts: np.ndarray) -> None:
        self.text, self.starts = text, starts

    @staticmethod
    def of(names: Iterable[str]) -> "Packed":
        """Pack names, which hold no line breaks, unless they are packed."""
        if isinstance(names, Packed):
            return names
        lines = [f"{name}\n".encode() for name in names]
        starts = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
        return Packed(np.frombuffer(b"".join(lines), np.uint8), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            return [self[one] for one in range(*code.indices(len(self)))]
        at = range(len(self))[code]
        return self.text[self.starts[at] : self.starts[at + 1] - 1].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            yield from block.text.tobytes().decode().split("\n")[:-1]

    def blocks(self) -> Iterator["Packed"]:
        """Yield the names in pieces: what is computed of all at once would stay with the process."""
        for start in range(0, len(self), MANY):
            starts = self.starts[start : start + MANY + 1]
            yield Packed(self.text[starts[0] : starts[-1]], starts - starts[0])

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(np.ascontiguousarray(self.text).data, digest_size=16).hexdigest()

    def code(self, lower: str) -> int | None:
        """Return the code of the name that is this in lower case."""
        return next((code for code in self._table.found("", lower) if self[code].lower() == lower), None)

    def get(self, name: str, otherwise: int) -> int:
        """Return a name's code, as a dict of them would."""
        code = self.code(name.lower())
        return otherwise if code is None or self[code] != name else code

    def has(self, split: str, word: str) -> bool:
        """Tell whether a name holds a word, as `SPLIT` splits them."""
        return bool(self._table.found(split, word))

    @cached_property
    def _table(self) -> Table:
        return Table(kept(self, [Path(__file__).read_text("utf-8")], rows_by_name))

    def near(self, word: str, least: float, codes: np.ndarray | None = None) -> list[str]:
        """List in lower case the names that share enough letters with a word for their similarity (`fuzz.ratio`) to
        reach `least`, of 100; only those with these codes if given."""
        if codes is None and len(self) > MANY:
            return [name for block in self.blocks() for name in block.near(word, least)]
        text, starts, ends = self.text, self.starts[:-1], self.starts[1:]
        if codes is not None:
            starts, ends = starts[codes], ends[codes]
            after = np.cumsum(ends - starts)
            text = text[np.arange(after[-1]) + np.repeat(ends - after, ends - starts)]
            starts, ends = after - (ends - starts), after
        letters = np.zeros(256, bool)
        letters[[*f"{word}{word.upper()}".encode()]] = letters[128:] = True
        shared = np.add.reduceat(letters[text], starts, dtype=np.int32)
        most = np.minimum(shared, len(word))
        able = 200 * most >= least * (len(word) + (ends - starts - 1 - shared) + most)
        pairs = zip(starts[able].tolist(), ends[able].tolist(), strict=True)
        return [text[start : end - 1].tobytes().decode().lower() for start, end in pairs]


def rows_by_name(names: Sequence[str]) -> np.ndarray:
    """Compute the rows of the table of names: their codes by lower case, and a 1 by each of their words."""
    lower = [name.lower() for name in names]
    codes = ((key("", name), code) for code, name in enumerate(lower))
    words = (
        (key(how, word), 1)
        for how, pattern in SPLIT.items()
        for word in {word for name in lower for word in pattern.findall(name)}
    )
    return rows_of(chain(codes, words))


class Names(Mapping[str, str]):
    """Many names by their lower case, all or those with `codes`."""

    def __init__(self, packed: Packed, codes: np.ndarray | None = None) -> None:
        self._packed, self._codes = packed, codes

    def __getitem__(self, lower: str) -> str:
        code = self._packed.code(lower)
        if code is None or (self._codes is not None and code not in self._codes):
            raise KeyError(lower)
        return self._packed[code]

    def __iter__(self) -> Iterator[str]:
        names = self._packed if self._codes is None else map(self._packed.__getitem__, self._codes.tolist())
        return (name.lower() for name in names)

    def __len__(self) -> int:
        return len(self._packed if self._codes is None else self._codes)

    def near(self, word: str, least: float) -> list[str]:
        """List the names, in lower case, whose similarity to a word may reach `least`."""
        some = self._codes is None or len(self._codes)
        return self._packed.near(word, least, self._codes) if some else []


def by_lower_case(names: Sequence[str], codes: np.ndarray | None = None) -> Mapping[str, str]:
    """Return names by their lower case: all, or those with `codes`."""
    if isinstance(names, Packed):
        return Names(names, codes)
    some = names if codes is None else [names[code] for code in codes.tolist()]
    return {name.lower(): name for name in some}


def packed(names: Sequence[str]) -> Sequence[str]:
    """Return names as a tuple, or packed where there are many."""
    return tuple(names) if len(names) < MANY else Packed.of(names)
