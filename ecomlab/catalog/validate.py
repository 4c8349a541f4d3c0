"""A catalog's folder checked as a whole: opening samples large files, for reading all of them would cost seconds."""

from pathlib import Path
from typing import Final

import numpy as np

from ecomlab.catalog import index, store
from ecomlab.catalog.build import index_digest
from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.names import Packed
from ecomlab.catalog.shop import Shop, open_shop
from ecomlab.catalog.texts import embed_rows, texts_of

CHUNK: Final = 50_000


def validate(folder: Path) -> Shop:
    """Open the catalog in `folder` and check all of it, by making again what follows from its columns. Raises
    CatalogError."""
    shop, manifest = open_shop(folder), store.read_manifest(folder)
    kept, texts, embedder = shop.catalog, shop.engine.texts, shop.engine.embedder
    made = Catalog.from_columns(kept.vocabulary, kept.columns(), kept.titles)
    if made.fingerprint != manifest.fingerprint:
        raise store.damaged(folder, "names, columns or titles are not those of its fingerprint")
    for kind in store.NAMES:
        names, data = Packed.of(getattr(kept, kind)), folder / manifest.data
        starts = np.load(data / f"{kind}.starts.npy", allow_pickle=False)
        if names.text.tobytes() != (data / f"{kind}.txt").read_bytes() or not np.array_equal(
            names.starts, starts
        ):
            raise store.damaged(folder, f"{kind}.txt has no line for each name")
    if not all(map(np.array_equal, made.by_id, kept.by_id)):
        raise store.damaged(folder, "by_id is not the order of the ids")
    again = texts_of(made)
    if not all(np.array_equal(getattr(again, name), getattr(texts, name)) for name in store.TEXTS):
        raise store.damaged(folder, "texts are shared by other products than have the same one")
    if index_digest(folder / manifest.data, embedder, shop.engine.index) != manifest.index.digest:
        raise store.damaged(folder, "vectors or lists are not what was written")
    vectors = index.vectors_of(shop.engine.index.exact)
    if embedder.reproducible:  # else the digest covers them
        for start in range(0, texts.count, CHUNK):
            rows = texts.first_rows[start : start + CHUNK]
            if not np.array_equal(embed_rows(made, embedder, rows), vectors[start : start + CHUNK]):
                raise store.damaged(folder, f"{store.EXACT} holds other vectors than those of the texts")
    return shop
