"""The nearest of many vectors: exact in half precision, and above a size by a compressed index held to its recall."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ecomlab.seeding import rng

# A full scan in half precision costs 0.5 ms at 20,000 vectors and 6 to 18 ms at EXACT_UP_TO. Above that, inverted lists
# of bytes propose candidates, whose exact scores decide; up to SCAN_UP_TO vectors left by filters are still scanned.
EXACT_UP_TO: Final = 200_000
SCAN_UP_TO: Final = 20_000
RECALL_WANTED: Final = 0.95
"""Least share of the true best 20 that an index must find, over all products and under filters."""
SHARES: Final = (1.0, 0.5, 0.2)
"""Shares of the vectors left by a filter at which recall is measured, where that is more than SCAN_UP_TO."""
TRAINED_ON: Final = 40
"""Vectors per list that its centre is trained on."""


class Effort(NamedTuple):
    """How thoroughly the lists are searched."""

    lists: int
    """Lists that are read for a query over all vectors; more under a filter, in proportion to what it leaves out."""
    factor: int
    """Candidates per vector asked for, which are then scored exactly."""


SCAN: Final = Effort(0, 0)
EFFORTS: Final = tuple(Effort(*one) for one in ((16, 4), (32, 4), (64, 8), (128, 8), (256, 16), (512, 16)))


class LowRecallError(ValueError):
    """An approximate index that misses too much at every effort."""


class Index:
    """Nearest vectors by inner product, immutable and thread-safe.

    `exact` holds the vectors in half precision. `lists`, where there is one, is an inverted file over the same vectors.
    Both are FAISS indexes, in memory or memory-mapped.
    """

    def __init__(self, exact: Any, lists: Any = None, effort: Effort = SCAN) -> None:
        self.exact, self.lists, self.effort = exact, lists, effort
        self._refined = None if lists is None else _faiss().IndexRefine(lists, exact)

    @property
    def count(self) -> int:
        return int(self.exact.ntotal)

    @property
    def kind(self) -> str:
        """ "exact", or the name of the lists by FAISS's factory."""
        return "exact" if self.lists is None else f"IVF{self.lists.nlist},SQ8"

    def approximates(self, among: np.ndarray | None) -> bool:
        """Tell whether a search among these vectors (None: all) is approximate."""
        return self.lists is not None and (among is None or len(among) > SCAN_UP_TO)

    def scan(self, query: np.ndarray, among: np.ndarray | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the `k` best of the vectors `among` (None: all) exactly: scores and numbers, best first."""
        faiss = _faiss()
        options = faiss.SearchParameters(sel=self._selector(among)) if among is not None else None
        return _found(self.exact.search(query, k, params=options))

    def propose(self, query: np.ndarray, among: np.ndarray | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find `k` good ones through the lists, with their exact scores, best first; fewer where lists run out."""
        assert self._refined is not None
        faiss = _faiss()
        left = 1.0 if among is None else max(len(among), 1) / self.count
        options = {} if among is None else {"sel": self._selector(among)}
        lists = faiss.SearchParametersIVF(
            nprobe=min(self.lists.nlist, round(self.effort.lists / left)), **options
        )
        refine = faiss.IndexRefineSearchParameters(k_factor=self.effort.factor, base_index_params=lists)
        return _found(self._refined.search(query, k, params=refine))

    def _selector(self, among: np.ndarray) -> Any:
        keep = np.zeros(self.count, bool)
        keep[among] = True
        return _faiss().IDSelectorBitmap(np.packbits(keep, bitorder="little"))

    def digest(self, vectors: bool) -> str:
        """Digest the lists, and the `vectors` if asked; empty where there is neither."""
        parts = [self.exact] if vectors else []
        parts += [] if self.lists is None else [self.lists]
        return digest_of([_faiss().serialize_index(part) for part in parts])

    def with_enough_effort(
        self, queries: np.ndarray, tell: Callable[[str], None] = lambda line: None
    ) -> tuple["Index", dict[float, float]]:
        """Raise the effort until recall@20 on `queries` is RECALL_WANTED under every filter: the index, and its recall
        by the share of vectors that a drawn filter leaves. Hits score as the true 20th or better.

        Raises LowRecallError when no effort suffices.
        """
        if self.lists is None:
            return self, {}
        k = min(20, self.count)
        asked = {}  # by the share of vectors left: which are left, and of each query the score of the k-th
        for share in SHARES:
            left = rng("recall", "filter", share).random(self.count) < share
            among = None if share == 1 else np.flatnonzero(left)
            if self.approximates(among):  # else what is left is scanned
                asked[share] = among, [self.scan(query, among, k)[0][-1] for query in queries[:, None]]
        for effort in EFFORTS:
            index = Index(self.exact, self.lists, effort)
            recall = {}
            for share, (among, cuts) in asked.items():
                scores = [index.propose(query, among, k)[0] for query in queries[:, None]]
                hits = [np.count_nonzero(own >= cut) for own, cut in zip(scores, cuts, strict=True)]
                recall[share] = float(np.mean(hits)) / k
            worst = min(recall.values())
            tell(f"recall@20 {recall[1.0]:.3f}, {worst:.3f} under filters, reading {effort.lists} lists")
            if worst >= RECALL_WANTED:
                return index, recall
        raise LowRecallError(
            f"the index finds {worst:.1%} of the best 20, less than {RECALL_WANTED:.0%}, at the highest effort; use "
            "another embedder, whose vectors lie less close together"
        )


def digest_of(parts: Sequence[np.ndarray]) -> str:
    """Digest the bytes of indexes, one after the other; empty for none."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(part.data)
    return state.hexdigest() if parts else ""


def build_exact(shards: Iterable[np.ndarray], dim: int) -> Any:
    """Make the flat inner-product index in half precision, lossless for vectors on the grid."""
    faiss = _faiss()
    index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    for shard in shards:
        _add(index, shard)
    return index


def build_lists(vectors: np.ndarray) -> Any:
    """Train inverted lists of bytes on a sample of the float16 vectors, and fill them with all."""
    faiss = _faiss()
    count, dim = vectors.shape
    lists = 2 ** round(np.log2(4 * np.sqrt(count)))
    index = faiss.index_factory(dim, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.cp.min_points_per_centroid = 8, 1
    some = np.sort(rng("lists", count).choice(count, min(count, TRAINED_ON * lists), replace=False))
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # so that every build adds up in the same order
    try:
        index.train(vectors[some].astype(np.float32))
        _add(index, vectors)
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def build(vectors: np.ndarray) -> Index:
    """Index float16 vectors in memory, by their number."""
    exact = build_exact([vectors], vectors.shape[1])
    if len(vectors) <= EXACT_UP_TO:
        return Index(exact)
    return Index(exact, build_lists(vectors))


def vectors_of(exact: Any) -> np.ndarray:
    """View the vectors of an exact index, without a copy: float16 (count, dim). Keep the index while it is used."""
    codes = _faiss().rev_swig_ptr(exact.codes.data(), exact.codes.size())
    return codes.view(np.float16).reshape(exact.ntotal, exact.d)


def write(index: Any, path: Path) -> None:
    """Write a FAISS index to a file."""
    _faiss().write_index(index, str(path))


def read_exact(path: Path) -> Any:
    """Memory-map an exact index. Raises ValueError for a file that holds none."""
    return _read(path, _faiss().IO_FLAG_MMAP_IFC)


def read_lists(path: Path) -> Any:
    """Memory-map inverted lists. Raises ValueError for a file that holds none."""
    faiss = _faiss()
    lists = _read(path, faiss.IO_FLAG_MMAP)
    # 32 threads started at each search take longer than it, and a forked process that frees the lists crashes
    faiss.downcast_InvertedLists(lists.invlists).prefetch_nthread = 0
    return lists


def _read(path: Path, flags: int) -> Any:
    try:
        return _faiss().read_index(str(path), flags)
    except RuntimeError as error:
        raise ValueError(f"{path.name} is no index ({str(error).splitlines()[-1]})") from None


def _add(index: Any, vectors: np.ndarray, chunk: int = 20_000) -> None:
    for start in range(0, len(vectors), chunk):
        index.add(vectors[start : start + chunk].astype(np.float32))


def _found(answer: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    scores, numbers = answer[0][0], answer[1][0]
    return scores[numbers >= 0], numbers[numbers >= 0]


def _faiss() -> Any:
    import faiss  # costs half a second, which `import ecomlab` should not pay

    return faiss
