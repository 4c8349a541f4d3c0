"""Search with FAISS over product embeddings: filters apply before the cut, and every process gets the same answer."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.embed import Embedder, on_grid
from ecomlab.catalog.index import SCAN_UP_TO, Index, build
from ecomlab.catalog.schema import Constraint
from ecomlab.catalog.texts import TITLE_WEIGHT, VALUES_WEIGHT, Texts, embed_rows, texts_of, title_of
from ecomlab.seeding import digest, rng
from ecomlab.suggest import unknown

SORTS: Final = ("price", "-price", "rating", "delivery")


class SearchEngine:
    """Search for products by the similarity of title and attribute values to a query; immutable, thread-safe.

    Products that share a text share a vector. Up to `index.EXACT_UP_TO` texts every answer is exact. Beyond that an
    approximate index answers where filters leave more than `index.SCAN_UP_TO`; `build_shop` measures it. `texts` and
    `index` save computing them again; `index_digest` is of what machines make differently: a model's vectors, lists.
    """

    def __init__(
        self,
        catalog: Catalog,
        embedder: Embedder,
        texts: Texts | None = None,
        index: Index | None = None,
        index_digest: str = "",
    ) -> None:
        self.catalog = catalog
        self.embedder = embedder
        self.texts = texts or texts_of(catalog)
        self._index_digest = index_digest
        self.index = index or self._built()
        # bounded: a query vector is 2 kB, an answer of 200 rows about 8 kB
        self._embed = lru_cache(8192)(self._embed_now)
        self._search = lru_cache(4096)(self._search_now)

    def _built(self) -> Index:
        """Build the index in memory, as `build_shop` does in a folder."""
        built = build(embed_rows(self.catalog, self.embedder, self.texts.first_rows))
        built, _ = built.with_enough_effort(self.shopper_queries())
        self._index_digest = built.digest(vectors=not self.embedder.reproducible)
        return built

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the catalog that answers depend on: embedding, text, index and its settings."""
        index: list[str | int] = ["exact fp16"]
        if self.index.lists is not None:
            effort = self.index.effort
            index = ["lists", effort.lists, effort.factor, SCAN_UP_TO]
        if self._index_digest:
            index.append(self._index_digest)
        return digest([1, self.embedder.fingerprint, [TITLE_WEIGHT, VALUES_WEIGHT], index], 8)

    def search(
        self,
        query: str,
        filters: Sequence[Constraint] = (),
        sort: Sequence[str] = (),
        top_k: int = 200,
        among: np.ndarray | None = None,
    ) -> tuple[int, ...]:
        """Find the `top_k` rows most similar to `query` among those that satisfy `filters`, reordered by `sort`.

        `sort` names keys, the most important first: "price" (cheapest first), "-price" (most expensive first), "rating"
        (best first), "delivery" (soonest first); without keys rows are ordered by similarity. Where a filter names a
        type, the keys order all of its rows before the cut. Ties go to the lower row; a query without words finds the
        first rows. `among` restricts the filtered rows further (ascending). Raises ValueError for an unknown key or a
        top_k below 1.
        """
        for key in sort:
            if key not in SORTS:
                raise ValueError(unknown("sort", key, SORTS))
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}; ask for at least one result")
        if among is None:
            return self._search(query, tuple(filters), tuple(sort), int(top_k))
        return self._search_now(query, tuple(filters), tuple(sort), int(top_k), among)

    def _search_now(
        self,
        query: str,
        filters: tuple[Constraint, ...],
        sort: tuple[str, ...],
        top_k: int,
        among: np.ndarray | None = None,
    ) -> tuple[int, ...]:
        allowed = self.catalog.select(filters, among) if filters else among
        if sort and allowed is not None and any(c.field == "type" for c in filters):
            return tuple(self.ordered(allowed, sort)[:top_k].tolist())
        rows = self.nearest(self._embed(query), allowed, top_k)
        return tuple((self.ordered(rows, sort) if sort else rows).tolist())

    def ordered(self, rows: np.ndarray, sort: Sequence[str]) -> np.ndarray:
        """Order rows by these keys, the most important first; ties go to the lower row."""
        return rows[np.lexsort((rows, *(self.rank_key(rows, key) for key in reversed(sort))))]

    def rank_key(self, rows: np.ndarray, key: str) -> np.ndarray:
        """Return an integer per row, smaller for a better row by `key`."""
        catalog = self.catalog
        if key == "rating":
            return -catalog.rating_tenths[rows].astype(int)
        if key == "delivery":
            return catalog.days[rows].astype(int)
        price = catalog.price_cents[rows].astype(int)
        return -price if key == "-price" else price

    def _embed_now(self, query: str) -> np.ndarray:
        vector = on_grid(self.embedder.encode([query]))
        vector.setflags(write=False)
        return vector

    def nearest(self, vector: np.ndarray, allowed: np.ndarray | None, top_k: int) -> np.ndarray:
        """Find the `top_k` rows nearest to a (1, dim) vector, best first, among `allowed` (ascending; None: all)."""
        top_k = min(top_k, self.catalog.size if allowed is None else len(allowed))
        if top_k == 0 or not vector.any():
            return np.arange(top_k) if allowed is None else allowed[:top_k]
        among = None if allowed is None else self.texts.among(allowed)
        if self.index.approximates(among):
            rows, _ = self._rows_of(*self.index.propose(vector, among, top_k), allowed)
            if len(rows) >= top_k:
                return rows[:top_k]
        # Equal scores tie exactly, and FAISS keeps any of them at the cut: ask until all of them are there.
        count, wide = self.texts.count if among is None else len(among), top_k
        while True:
            wide = min(wide + 32 if wide == top_k else 4 * wide, count)
            scores, texts = self.index.scan(vector, among, wide)
            rows, row_scores = self._rows_of(scores, texts, allowed)
            # fewer are found where a vector is none: NaN is nearer than nothing to no query
            if wide == count or (len(rows) >= top_k and scores[-1] < row_scores[top_k - 1]):
                return rows[:top_k]

    def _rows_of(
        self, scores: np.ndarray, texts: np.ndarray, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """List the allowed rows of some texts with their scores, best first; ties go to the lower row."""
        rows, places = self.texts.rows_of(texts)
        if allowed is not None:
            at = np.minimum(allowed.searchsorted(rows), len(allowed) - 1)
            here = allowed[at] == rows
            rows, places = rows[here], places[here]
        order = np.lexsort((rows, -scores[places]))
        return rows[order], scores[places[order]]

    def shopper_queries(self, count: int = 100) -> np.ndarray:
        """Embed what shoppers might type, to measure recall with: titles of random products, and their first words and
        type without the rest. float32 (count, dim)."""
        queries = []
        for row in rng("recall", count).integers(0, self.catalog.size, (count + 1) // 2).tolist():
            title = title_of(self.catalog, row)
            queries += [title, f"{' '.join(title.split()[:2])} {self.catalog.type_of(row).name}"]
        return on_grid(self.embedder.encode(queries[:count]))
