"""Random streams named by keys, and digests of values."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
TRAINING_SEEDS = range(2**31)
EVALUATION_SEEDS = range(2**31, 2**32)
"""Tasks for training and tasks for evaluation never share a seed."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: Any) -> bytes:
    """Encode as JSON bytes that depend on the value alone: keys sorted, no spaces, floats as Python writes them.

    Raises TypeError for what JSON cannot express (sets, arrays, objects) and ValueError for NaN.
    """
    return _ENCODER.encode(value).encode()


def digest(value: Any, size: int = 16) -> str:
    """Digest `value` as hexadecimal text, the same in every process; `size` is the digest's length in bytes."""
    return hashlib.blake2b(canonical(value), digest_size=size).hexdigest()


def package_digest() -> str:
    """Digest the code and data of ecomlab, because results of other code must be recomputed."""
    package = Path(__file__).parent
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".toml", ".json", ".jsonl"))
    return digest([[path.relative_to(package).as_posix(), path.read_text("utf-8")] for path in files])


def rng(*key: Any) -> np.random.Generator:
    """Make the random stream that `key` names: `rng("task", "CART", 1, 7)`.

    Streams of different keys are independent; the same key gives the same stream in every process and
    on every platform. Key parts are JSON values (1 and 1.0 are different keys).
    """
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(hashlib.blake2b(canonical(key), digest_size=16).digest()))
    )


def pick(random: np.random.Generator, options: Sequence[T]) -> T:
    """Pick one of `options`, each with equal probability."""
    return options[int(random.integers(len(options)))]


def shuffled(random: np.random.Generator, items: Iterable[T]) -> list[T]:
    """List `items` in random order."""
    listed = list(items)
    return [listed[i] for i in random.permutation(len(listed)).tolist()]


class Draws:
    """Small draws from a stream, which come in blocks: about ten times as fast as one at a time."""

    _BLOCK = 1_024

    def __init__(self, random: np.random.Generator) -> None:
        self._stream = random
        self._left: list[float] = []

    def random(self) -> float:
        """Draw a number from 0 up to below 1."""
        if not self._left:
            self._left = self._stream.random(self._BLOCK).tolist()
        return self._left.pop()

    def below(self, count: int) -> int:
        """Draw one of the whole numbers from 0 on, each with equal probability."""
        return int(self.random() * count)

    def pick(self, options: Sequence[T]) -> T:
        """Pick one of `options`, each with equal probability."""
        return options[self.below(len(options))]

    def some(self, items: Iterable[T], count: int | None = None) -> list[T]:
        """List so many of `items`, by default all, in random order."""
        listed = list(items)
        most = len(listed) if count is None else min(count, len(listed))
        for at in range(most):
            other = at + self.below(len(listed) - at)
            listed[at], listed[other] = listed[other], listed[at]
        return listed[:most]


def whole_near(random: np.random.Generator, mean: float) -> int:
    """Draw one of the two integers next to `mean`, so that `mean` is the expected value."""
    return math.floor(mean) + bool(random.random() < mean % 1)
