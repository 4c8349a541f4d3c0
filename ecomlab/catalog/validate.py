"""A catalog's folder checked as a whole: what opening takes on trust, because reading all of it would cost seconds."""

from pathlib import Path
from typing import Final

import numpy as np

from ecomlab.catalog import index, store
from ecomlab.catalog.build import index_digest
from ecomlab.catalog.embed import GRID
from ecomlab.catalog.shop import Shop, open_shop
from ecomlab.catalog.texts import embed_rows, texts_of
from ecomlab.seeding import rng

EMBEDDED_AGAIN: Final = 200
"""Texts whose vectors are made again, of a lexical embedding; of a sentence model a tenth."""
CLOSE: Final = 16 / GRID
"""By how much a sentence model's numbers may differ between machines."""
CHUNK: Final = 50_000
RECALL_SPREAD: Final = 0.02


def validate(folder: Path, full: bool = False) -> Shop:
    """Open the catalog in `folder` and check it; with `full` every byte of it. Raises CatalogError.

    Opening checks files, types, lengths, ranges, order and layout, and samples of large files. The rest is: columns,
    names and titles against the fingerprint, which products share a text, all vectors and lists, and the recall that
    the manifest claims.
    """
    shop = open_shop(folder)
    if full:
        manifest = store.read_manifest(folder)
        try:
            _check_fingerprint(shop, manifest)
            _check_texts(shop)
            _check_vectors(shop)
            if (
                index_digest(folder / manifest.data, shop.engine.embedder, shop.engine.index)
                != manifest.index.digest
            ):
                raise ValueError("vectors or lists are not what was written")
            _check_recall(shop, manifest)
        except (OSError, ValueError) as error:
            raise store.damaged(folder, error) from error
    return shop


def _check_fingerprint(shop: Shop, manifest: store.Manifest) -> None:
    catalog = shop.catalog
    vars(catalog).pop("fingerprint", None)  # what was taken on trust is computed now
    claimed, found = manifest.fingerprint, catalog.fingerprint
    vars(catalog)["fingerprint"] = claimed
    if found != claimed:
        raise ValueError("names, columns or titles are not those of its fingerprint")


def _check_texts(shop: Shop) -> None:
    made, kept = texts_of(shop.catalog), shop.engine.texts
    if not np.array_equal(
        made.text_of, kept.text_of
    ):  # the rest of it follows, and is checked at every opening
        raise ValueError("texts are shared by other products than have the same one")


def _check_vectors(shop: Shop) -> None:
    catalog, texts, embedder = shop.catalog, shop.engine.texts, shop.engine.embedder
    vectors = index.vectors_of(shop.engine.index.exact)
    for start in range(0, len(vectors), CHUNK):
        some = vectors[start : start + CHUNK].astype(np.float32)
        if not np.isfinite(some).all() or (np.abs(some) > 1 + 1 / GRID).any() or (some * GRID % 1).any():
            raise ValueError("a vector has a number that no embedder makes")
    count = min(texts.count, EMBEDDED_AGAIN if embedder.reproducible else EMBEDDED_AGAIN // 10)
    chosen = np.sort(rng("validate", texts.count).choice(texts.count, count, replace=False))
    made = embed_rows(catalog, embedder, texts.first_rows[chosen]).astype(np.float32)
    apart = np.abs(made - vectors[chosen].astype(np.float32)).max(initial=0)
    if apart > (0 if embedder.reproducible else CLOSE):
        raise ValueError("vectors are not those of the products' texts")


def _check_recall(shop: Shop, manifest: store.Manifest) -> None:
    claimed = manifest.index.recall_at_20
    found = shop.engine.index.recall(shop.engine.shopper_queries(), min(20, shop.engine.index.count))
    for share, recall in found.items():
        if recall < claimed.get(f"{share:g}", 1.0) - RECALL_SPREAD:
            raise ValueError(f"its lists find {recall:.1%} of the best 20, and the manifest says more")
