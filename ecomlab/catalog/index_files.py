"""Bytes of index files, compared with what a build writes before FAISS reads them: it trusts every length in a file."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

LEAST_DIM, MOST_DIM = 16, 8_192
_DUMMY: Final = 1 << 20  # written twice in every header, and read by nothing
_INNER_PRODUCT, _BYTES, _HALVES = 0, 0, 4  # METRIC_INNER_PRODUCT, QT_8bit, QT_fp16
_HEADER: Final = "<4siqqqBi"
"""Kind, dimension, vectors, two dummies, whether trained, metric."""
_QUANTIZER: Final = "<iifQQ"
"""Type, two settings of ranges, dimension, bytes a vector."""


@dataclass(frozen=True)
class IndexFile:
    """What a checked file holds."""

    dim: int
    count: int
    lists: int = 0


def check_exact(path: Path) -> IndexFile:
    """Check a file of vectors in half precision. Raises ValueError unless it has the layout that a build writes."""
    with path.open("rb") as file:
        start = file.read(struct.calcsize(_HEADER))
    dim, count = _shape(path, start, b"IxSQ")
    expected = _header(b"IxSQ", dim, count) + _quantizer(_HALVES, dim, 2 * dim) + _length(0)
    expected += _length(2 * dim * count)
    with path.open("rb") as file:
        same = file.read(len(expected)) == expected
    if not same or path.stat().st_size != len(expected) + 2 * dim * count:
        raise ValueError(f"{path.name} has not the layout of {count} vectors of {dim} numbers")
    return IndexFile(dim, count)


def check_lists(path: Path) -> IndexFile:
    """Check a file of inverted lists of bytes: its layout, that its numbers are finite, and that each vector is in one
    list. Raises ValueError."""
    file = _Reader(path)
    dim, count = _shape(path, file.data[: struct.calcsize(_HEADER)].tobytes(), b"IwSq")
    file.expect(_header(b"IwSq", dim, count))
    lists = file.length(most=count)
    file.expect(_length(1), _header(b"IxFI", dim, lists), _length(dim * lists))
    centres = file.take(4 * dim * lists).view("<f4")
    file.expect(b"\0", _length(0), _quantizer(_BYTES, dim, dim), _length(2 * dim))
    ranges = file.take(8 * dim).view("<f4")
    if not (np.isfinite(centres).all() and np.isfinite(ranges).all()):
        raise ValueError(f"{path.name} holds a number that is endless or none at all")
    file.expect(_length(dim), b"\1", b"ilar", _length(lists), _length(dim))
    sizes = _sizes(file, lists)
    if int(sizes.sum()) != count or file.at + count * (dim + 8) != len(file.data):
        raise file.wrong
    seen = np.zeros(count, bool)
    for size in sizes[sizes > 0].tolist():
        file.take(size * dim)
        numbers = file.take(size * 8).view("<i8")
        if int(numbers.min()) < 0 or int(numbers.max()) >= count:
            raise ValueError(f"{path.name} names a vector that is not there")
        seen[numbers] = True
    if not seen.all():
        raise ValueError(f"{path.name} has a vector in two lists, and another in none")
    return IndexFile(dim, count, lists)


class _Reader:
    """Bytes of a mapped file, taken from its start on. Raises ValueError where they are not what they must be."""

    def __init__(self, path: Path) -> None:
        if not path.stat().st_size:
            raise ValueError(f"{path.name} is empty")
        self.data, self.at = np.memmap(path, np.uint8, "r").view(np.ndarray), 0
        self.wrong = ValueError(f"{path.name} has not the layout of inverted lists")

    def take(self, size: int) -> np.ndarray:
        if self.at + size > len(self.data):
            raise self.wrong
        self.at += size
        return self.data[self.at - size : self.at]

    def expect(self, *parts: bytes) -> None:
        for part in parts:
            if self.take(len(part)).tobytes() != part:
                raise self.wrong

    def length(self, most: int) -> int:
        found = int.from_bytes(self.take(8).tobytes(), "little")
        if not 1 <= found <= most:
            raise self.wrong
        return found


def _sizes(file: _Reader, lists: int) -> np.ndarray:
    """Read how many vectors each list has: all of them in a row, or pairs of list and size where most are empty."""
    kind = file.take(4).tobytes()
    length = file.length(most=2 * lists)
    sizes = file.take(8 * length).view("<i8")
    if (sizes < 0).any() or (sizes > file.data.size).any():
        raise file.wrong
    if kind == b"full" and length == lists:
        return sizes
    pairs = sizes.reshape(-1, 2) if length % 2 == 0 else sizes[:0].reshape(0, 2)
    if kind != b"sprs" or (np.diff(pairs[:, 0]) <= 0).any() or (pairs[:, 0] >= lists).any():
        raise file.wrong
    return pairs[:, 1]


def _shape(path: Path, start: bytes, kind: bytes) -> tuple[int, int]:
    """Read dimension and number of vectors."""
    if len(start) < struct.calcsize(_HEADER) or start[:4] != kind:
        raise ValueError(f"{path.name} is no index of the kind that a build writes")
    _, dim, count, *_ = struct.unpack(_HEADER, start)
    if not LEAST_DIM <= dim <= MOST_DIM or not 1 <= count < 2**31:
        raise ValueError(f"{path.name} says that it has {count} vectors of {dim} numbers")
    return dim, count


def _header(kind: bytes, dim: int, count: int) -> bytes:
    return struct.pack(_HEADER, kind, dim, count, _DUMMY, _DUMMY, 1, _INNER_PRODUCT)


def _quantizer(kind: int, dim: int, size: int) -> bytes:
    return struct.pack(_QUANTIZER, kind, 0, 0.0, dim, size)


def _length(count: int) -> bytes:
    return struct.pack("<Q", count)
