"""The shop: a catalog and its search engine, generated or opened from a folder."""

import os
import shutil
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ecomlab.catalog import store
from ecomlab.catalog.build import build_shop
from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.embed import LexicalEmbedder
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.search import SearchEngine
from ecomlab.catalog.synthetic import generate
from ecomlab.files import cache_folder
from ecomlab.seeding import digest
from ecomlab.suggest import unknown, whole

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Shop:
    """Catalog and search engine, shared by all episodes and never changed."""

    catalog: Catalog
    engine: SearchEngine

    @cached_property
    def fingerprint(self) -> str:
        """Digest of catalog, embedder and index: shops with equal digests answer every search alike."""
        return digest([self.catalog.fingerprint, self.engine.fingerprint])

    def products(self, kind: str | None = None) -> "pd.DataFrame":
        """Return the products of one type, or all of them, as tools show them: one row per product, with its options.
        Raises ValueError for an unknown type."""
        names = [known.name for known in self.catalog.types]
        if kind is not None and kind not in names:
            raise ValueError(unknown("product type", kind, names))
        return self._table(range(self.catalog.size) if kind is None else self.catalog.type_rows(kind))

    def search(self, query: str, top: int = 10) -> "pd.DataFrame":
        """Return the `top` products most similar to `query`, the best first, in the form of `products`."""
        return self._table(self.engine.search(query, top_k=top))

    def _table(self, rows: Iterable[int]) -> "pd.DataFrame":
        import pandas as pd

        found = pd.DataFrame(
            [{**self.catalog.record(row), "options": ", ".join(self.catalog.options(row))} for row in rows]
        )
        found["attributes"] = [", ".join(f"{k}: {v}" for k, v in one.items()) for one in found["attributes"]]
        return found.set_index("product_id")

    def __repr__(self) -> str:
        return f"<Shop of {self.catalog.size} products, {self.fingerprint[:8]}>"

    def _repr_html_(self) -> str:
        some = np.linspace(0, self.catalog.size - 1, 5).astype(int).tolist()
        counts = f"{self.catalog.size:,} products of {len(self.catalog.types)} types"
        return f"<p>Shop {self.fingerprint[:8]}: {counts}, for example</p>{self._table(some).to_html()}"


_SHOPS: dict[tuple[str | int, int, str | Path | None], Shop] = {}
"""By folder or number of products, seed, and what its files were named by."""
_LOCK = threading.Lock()
BUSY: float = 3600.0
"""Seconds to wait for another process that generates the same shop."""


def load_shop(
    catalog: int | str | os.PathLike[str] = 20_000,
    seed: int = 0,
    cache: bool = True,
    *,
    size: int | None = None,
) -> Shop:
    """Load a shop, once per process: `load_shop("folder")` opens the catalog that `ecomlab catalog build` made there,
    `load_shop(2_000)` or `load_shop(size=2_000)` generates as many products, or reads them from the cache.

    Files are memory-mapped, so that processes share them. `seed` and `cache` concern generated products: `cache=False`
    neither reads nor writes files; a damaged cache is made again and an unwritable one is skipped, each with a warning.
    Raises CatalogError for a folder without a whole catalog, ValueError for too few products, or a size or seed that is
    no whole number.
    """
    catalog = catalog if size is None else size
    key: tuple[str | int, int, str | Path | None]
    if isinstance(catalog, str | os.PathLike):
        folder = Path(catalog)
        key, load = (str(folder.absolute()), 0, store.read_manifest(folder).data), partial(open_shop, folder)
    else:
        count, seed = whole(catalog, "the number of products"), whole(seed, "a catalog's seed")
        place = cache_folder() if cache else None
        key, load = (count, seed, place), partial(_read_or_make, count, seed, place)
    with _LOCK:
        if key not in _SHOPS:
            _SHOPS[key] = load()
        return _SHOPS[key]


def loaded_shops() -> list[tuple[tuple[str | int, int], Shop]]:
    """List the shops that this process has loaded, each with what `load_shop` was given: a folder or a number, and the
    seed."""
    return [(key[:2], shop) for key, shop in _SHOPS.items()]


def open_shop(folder: Path, whole: bool = False) -> Shop:
    """Open the catalog in `folder`; to check the `whole`, read all of its files. Raises CatalogError unless they are
    those that were written, and its embedder is here."""
    manifest, catalog, texts, index = store.open_files(folder, whole)
    try:
        embedder = embedder_named(manifest.embedder)
        fingerprint = embedder.fingerprint
    except (OSError, ValueError) as error:
        raise store.CatalogError(
            f"the catalog in {folder} was embedded by {manifest.embedder!r}, which cannot be used here: {error}; "
            "build it there again with another embedder"
        ) from None
    if fingerprint != manifest.embedder_fingerprint:
        raise store.CatalogError(
            f"the catalog in {folder} was embedded by another version of {manifest.embedder}; build it there again"
        )
    return Shop(catalog, SearchEngine(catalog, embedder, texts, index, manifest.index.digest))


def _read_or_make(size: int, seed: int, cache: Path | None) -> Shop:
    """Build a generated catalog in the cache, unless it is there, and open it; in memory, with a warning, if it cannot
    be written."""
    if cache is not None:
        name = f"{size}-{seed}-{store.cache_key(size, seed, LexicalEmbedder().fingerprint)}"
        folder = cache / "shops" / name
        try:
            if (folder / store.MANIFEST).exists():
                return open_shop(folder)
        except store.CatalogError as error:
            warnings.warn(
                f"the cached catalog in {folder} is damaged ({error.__cause__ or error}); it is made again",
                stacklevel=4,
            )
        try:
            build_shop(generate(size, seed), folder, wait=BUSY)
            return open_shop(folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            warnings.warn(
                f"the catalog was made but not cached: cannot write {folder.parent} ({error.strerror or error}). "
                "Everything works, but each process makes its own; set ECOMLAB_CACHE to a writable folder with room.",
                stacklevel=4,
            )
    catalog = generate(size, seed)
    return Shop(catalog, SearchEngine(catalog, LexicalEmbedder()))
