"""The shop: a catalog and its search engine, generated or read from the cache with the same bytes."""

import logging
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ecomlab.catalog import store
from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.embed import LexicalEmbedder
from ecomlab.catalog.search import SearchEngine, embed_catalog
from ecomlab.catalog.synthetic import generate
from ecomlab.seeding import digest
from ecomlab.suggest import whole


@dataclass(frozen=True, eq=False)
class Shop:
    """Catalog and search engine, shared by all episodes and never changed."""

    catalog: Catalog
    engine: SearchEngine

    @cached_property
    def fingerprint(self) -> str:
        """Digest of catalog, embedder and index: shops with equal digests answer every search alike."""
        return digest([self.catalog.fingerprint, self.engine.fingerprint])

    def __repr__(self) -> str:
        return f"<Shop of {self.catalog.size} products, {self.fingerprint[:8]}>"


_SHOPS: dict[tuple[int, int, Path | None], Shop] = {}
_LOCK = threading.Lock()
_LOG = logging.getLogger(__name__)


def load_shop(size: int = 20_000, seed: int = 0, cache: bool = True) -> Shop:
    """Load the generated shop of `size` products, once per process, with arrays memory-mapped from the cache.

    `cache=False` neither reads nor writes files. A damaged cache is made again and an unwritable one is skipped, each
    with a warning. Raises ValueError for too few products, or a size or seed that is no whole number.
    """
    size, seed = whole(size, "the number of products"), whole(seed, "a catalog's seed")
    key = (size, seed, store.cache_folder() if cache else None)
    with _LOCK:
        if key not in _SHOPS:
            _SHOPS[key] = _read_or_make(size, seed, key[2])
        return _SHOPS[key]


def _read_or_make(size: int, seed: int, folder: Path | None) -> Shop:
    embedder = LexicalEmbedder()
    name = f"{size}-{seed}-{store.cache_key(size, seed, embedder.fingerprint)}"
    place = folder / "shops" / name if folder else None
    found = store.load(place) if place else None
    if place and found:
        arrays, facts = found
        try:
            vectors, graph = arrays.pop("vectors"), arrays.pop("graph", None)
            catalog = Catalog.from_columns(facts["vocabulary"], arrays)
            if catalog.fingerprint != facts["fingerprint"] or vectors.shape != (catalog.size, embedder.dim):
                raise ValueError("its content does not match its fingerprint")
            return Shop(catalog, SearchEngine(catalog, embedder, vectors, graph))
        except (ValueError, KeyError, TypeError) as error:
            store.warn_damaged(place, error)
    catalog = generate(size, seed)
    vectors = embed_catalog(catalog, embedder)
    engine = SearchEngine(catalog, embedder, vectors)
    graph = engine.graph_bytes()
    if graph is not None:
        _LOG.info("%d products: the search index is approximate, recall@20 %.3f", size, engine.recall_at(20))
    if place:
        arrays = catalog.columns() | {"vectors": vectors} | ({} if graph is None else {"graph": graph})
        store.save(place, arrays, {"vocabulary": catalog.vocabulary, "fingerprint": catalog.fingerprint})
    return Shop(catalog, engine)
