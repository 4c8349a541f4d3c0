"""The texts of a catalog that are embedded, each once, and the products that share one."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.embed import Embedder, LexicalEmbedder, on_grid

TITLE_WEIGHT, VALUES_WEIGHT = 3, 2  # of title words and of attribute values in an additive embedding
CHUNK: Final = 20_000


@dataclass(frozen=True, eq=False)
class Texts:
    """The distinct texts of a catalog, numbered by the first row that has each; its arrays are read-only.

    Of two million generated products one in ten has a text of its own: an index over texts is as much smaller, and
    equal products do not fill it up.
    """

    text_of: np.ndarray
    """Text of each row: int32 (size,)."""
    rows: np.ndarray
    """Rows grouped by text, ascending within each: int32 (size,)."""
    starts: np.ndarray
    """Where a text's rows begin in `rows`: int64 (count + 1,)."""

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def first_rows(self) -> np.ndarray:
        """First row of each text: ascending."""
        return self.rows[self.starts[:-1]]

    def among(self, rows: np.ndarray) -> np.ndarray:
        """List the texts of some rows, ascending, each once."""
        has = np.zeros(self.count, bool)
        has[self.text_of[rows]] = True
        return np.flatnonzero(has)

    def rows_of(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """List the rows of some texts, text after text, and for each row the place of its text in `texts`."""
        begin = self.starts[texts]
        lengths = self.starts[texts + 1] - begin
        places = np.repeat(np.arange(len(texts)), lengths)
        before = np.cumsum(lengths) - lengths
        return self.rows[np.arange(len(places)) - before[places] + begin[places]], places


def texts_of(catalog: Catalog) -> Texts:
    """Find out which products share a text."""
    text_of = _text_numbers(catalog)
    rows = np.argsort(text_of, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(text_of))]).astype(np.int64)
    return Texts(text_of, rows, starts)


def _text_numbers(catalog: Catalog) -> np.ndarray:
    """Number each row's text: int32, ascending by first row. Titles that are composed are compared by their codes."""
    if catalog.titles is not None:
        documents = (document(catalog, row).encode() for row in range(catalog.size))
        digests = (hashlib.blake2b(text, digest_size=12).digest() for text in documents)
        found: dict[bytes, int] = {}
        return np.fromiter((found.setdefault(one, len(found)) for one in digests), np.int32, catalog.size)
    numbers = np.empty(catalog.size, np.int32)
    count = 0
    for kind in catalog.types:
        of_type = catalog.type_rows(kind.name)
        rows = slice(of_type.start, of_type.stop)
        columns = [catalog.brand_code, catalog.feature_code, *(catalog.attr[a.name] for a in kind.attributes)]
        same = np.zeros(len(of_type), np.int64)
        for column in columns:
            codes = column[rows].astype(np.int64) + 1
            _, same = np.unique(same * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        _, first, same = np.unique(same, return_index=True, return_inverse=True)
        numbers[rows] = count + np.argsort(np.argsort(first))[same]
        count += len(first)
    return numbers


def title_of(catalog: Catalog, row: int) -> str:
    """Return the title that is embedded: a real product's own, else the composed one."""
    return catalog.title(row) if catalog.titles is None else catalog.titles[row]


def document(catalog: Catalog, row: int) -> str:
    """Compose the text of a product that is embedded: its title and its values."""
    return ", ".join((title_of(catalog, row), *_values(catalog, row)))


def _values(catalog: Catalog, row: int) -> list[str]:
    """List the attribute values of a product that are embedded: all but those that a real title says."""
    values = list(catalog.attributes(row).values())
    if catalog.titles is None:
        return values
    said = title_of(catalog, row).casefold()
    return [value for value in values if value.casefold() not in said]


def embed_rows(catalog: Catalog, embedder: Embedder, rows: np.ndarray | Sequence[int]) -> np.ndarray:
    """Embed the texts of `rows`, a chunk at a time: float16 (len(rows), dim), on the grid."""
    rows = np.asarray(rows)
    vectors = np.empty((len(rows), embedder.dim), np.float16)
    encode = _by_words(catalog, embedder) if isinstance(embedder, LexicalEmbedder) else None
    for start in range(0, len(rows), CHUNK):
        some = rows[start : start + CHUNK]
        vectors[start : start + CHUNK] = (
            on_grid(embedder.encode([document(catalog, row) for row in some.tolist()]))
            if encode is None
            else encode(some)
        )
    return vectors


def _by_words(catalog: Catalog, embedder: LexicalEmbedder) -> Callable[[np.ndarray], np.ndarray]:
    """Return the embedding of rows by weighted counts of words: those of composed titles are added up from the counts
    of the vocabulary, without any text."""
    count = embedder.counts
    if catalog.titles is not None:
        return lambda rows: embedder.finish(
            TITLE_WEIGHT * count([title_of(catalog, row) for row in rows.tolist()])
            + VALUES_WEIGHT * count([" ".join(_values(catalog, row)) for row in rows.tolist()])
        )
    parts = [
        (TITLE_WEIGHT * count([kind.name for kind in catalog.types]), catalog.type_code),
        (TITLE_WEIGHT * count(catalog.brands), catalog.brand_code),
        (TITLE_WEIGHT * count(catalog.features), catalog.feature_code),
        *((VALUES_WEIGHT * count(known), catalog.attr[name]) for name, known in catalog.attr_values.items()),
    ]

    def add_up(rows: np.ndarray) -> np.ndarray:
        counts = np.zeros((len(rows), embedder.dim), np.float32)
        for known, column in parts:
            codes = column[rows]
            has = codes >= 0
            if has.all():  # in place of a copy
                counts += known[codes]
            elif has.any():
                counts[has] += known[codes[has]]
        return embedder.finish(counts)

    return add_up
