"""Builds a catalog's folder step by step: after a kill at any moment the same call goes on where it ended."""

import hashlib
import shutil
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from ecomlab.catalog import index, store
from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.embed import Embedder, LexicalEmbedder
from ecomlab.catalog.index import Index
from ecomlab.catalog.search import SearchEngine
from ecomlab.catalog.texts import Texts, embed_rows, texts_of
from ecomlab.files import lock, read_json, replacing, write_json
from ecomlab.seeding import digest

SHARD: Final = 65_536
"""Texts that are embedded between two savings."""
WRITTEN: Final = "written.json"
"""Marks that columns and titles are all there."""
TRAINED: Final = "trained.faiss"
Tell = Callable[[str], None]


def build_shop(
    catalog: Catalog,
    out: Path,
    embedder: Embedder | None = None,
    *,
    allow_low_recall: bool = False,
    tell: Tell = lambda line: None,
    wait: float = 0.0,
) -> store.Manifest:
    """Build the folder `out`, which `load_shop(out)` opens, from a catalog: columns, vectors, index, manifest.

    The manifest is replaced last: until then `out` holds the catalog it held before, or a build that goes on with the
    same arguments. `tell` gets lines on what is done and how long it takes. Without an embedder texts are embedded
    lexically. Raises CatalogError while another process builds there (after `wait` seconds), LowRecallError when the
    index finds too little and that is not allowed, and OSError where the folder cannot be written.
    """
    embedder = embedder or LexicalEmbedder()
    busy = store.CatalogError(f"another process builds the catalog in {out}; wait for it, or build elsewhere")
    out.mkdir(parents=True, exist_ok=True)
    with lock(out / store.LOCK, busy, wait):
        key = digest([store.FORMAT, catalog.fingerprint, embedder.fingerprint, version("faiss-cpu")], 12)
        if finished := _finished(out, key):
            return finished
        data = out / key
        data.mkdir(exist_ok=True)
        texts = _columns(catalog, data, tell)
        exact = _exact(catalog, texts, embedder, data, tell)
        found = Index(exact, _lists(exact, data, tell) if texts.count > index.EXACT_UP_TO else None)
        queries = SearchEngine(catalog, embedder, texts, found).shopper_queries()
        found, recall = found.with_enough_effort(queries, tell, allow_low_recall)
        manifest = store.Manifest(
            format=store.FORMAT,
            data=key,
            products=catalog.size,
            texts=texts.count,
            fingerprint=catalog.fingerprint,
            embedder=embedder.name,
            embedder_fingerprint=embedder.fingerprint,
            index=store.facts_of(found, _digest(data, embedder, found), recall),
            versions=store.versions(),
            files=store.stamps(data),
        )
        write_json(out / store.MANIFEST, manifest.model_dump(mode="json"))
        _clear(out, data)
    return manifest


def _finished(out: Path, key: str) -> store.Manifest | None:
    """Return the manifest of a catalog that is there already, whole; take a damaged one away."""
    try:
        manifest = store.read_manifest(out)
        if manifest.data != key:
            return None
        store.open_files(out)
        return manifest
    except store.CatalogError:
        if (out / store.MANIFEST).exists():
            (out / store.MANIFEST).unlink()
            shutil.rmtree(out / key, ignore_errors=True)
        return None


def _columns(catalog: Catalog, data: Path, tell: Tell) -> Texts:
    """Write columns and titles, unless they are there; return the texts to embed."""
    began = time.monotonic()
    texts = texts_of(catalog)
    if read_json(data / WRITTEN) is None:
        store.write_columns(catalog, texts, data)
        write_json(data / WRITTEN, {"products": catalog.size, "texts": texts.count})
    tell(f"{catalog.size:,} products, {texts.count:,} texts: columns in {time.monotonic() - began:.0f} s")
    return texts


def _exact(catalog: Catalog, texts: Texts, embedder: Embedder, data: Path, tell: Tell) -> Any:
    """Embed all texts and write the exact index, unless it is there; return it memory-mapped."""
    shards = data / "shards"
    if not (data / store.EXACT).exists():
        files = _embed(catalog, texts, embedder, shards, tell)
        with replacing(data / store.EXACT) as draft:
            vectors = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
            index.write(index.build_exact(vectors, embedder.dim), draft)
    shutil.rmtree(shards, ignore_errors=True)
    return index.read_exact(data / store.EXACT)


def _embed(catalog: Catalog, texts: Texts, embedder: Embedder, shards: Path, tell: Tell) -> list[Path]:
    """Embed the texts whose shards are not there yet; return the shards' files in order."""
    firsts = range(0, texts.count, SHARD)
    files = [shards / f"{number:05}.npy" for number in range(len(firsts))]
    missing = [(file, first) for file, first in zip(files, firsts, strict=True) if not file.exists()]
    left = sum(min(SHARD, texts.count - first) for _, first in missing)
    began, embedded = time.monotonic(), 0
    for file, first in missing:
        rows = texts.first_rows[first : first + SHARD]
        with replacing(file) as draft, draft.open("wb") as opened:
            np.save(opened, embed_rows(catalog, embedder, rows), allow_pickle=False)
        embedded += len(rows)
        rate = embedded / max(time.monotonic() - began, 1e-9)
        tell(
            f"embedded {texts.count - left + embedded:,} of {texts.count:,} texts, {rate:,.0f} a second, "
            f"{(left - embedded) / rate / 60:.0f} minutes left"
        )
    return files


def _lists(exact: Any, data: Path, tell: Tell) -> Any:
    """Train and fill inverted lists over the vectors, from where an earlier build ended."""
    began, vectors = time.monotonic(), index.vectors_of(exact)
    if not (data / store.LISTS).exists():
        if not (data / TRAINED).exists():
            with replacing(data / TRAINED) as draft:
                index.write(index.train_lists(vectors), draft)
        with replacing(data / store.LISTS) as draft:
            index.write(index.fill_lists(index.read_lists(data / TRAINED, mapped=False), [vectors]), draft)
        tell(f"{len(vectors):,} vectors indexed in {time.monotonic() - began:.0f} s")
    (data / TRAINED).unlink(missing_ok=True)
    return index.read_lists(data / store.LISTS)


def _digest(data: Path, embedder: Embedder, found: Index) -> str:
    """Digest what another machine would make otherwise: vectors of a model, lists; empty without either."""
    files = [] if embedder.reproducible else [data / store.EXACT]
    files += [] if found.lists is None else [data / store.LISTS]
    state = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                state.update(block)
    return state.hexdigest() if files else ""


def _clear(out: Path, data: Path) -> None:
    """Remove the folders of earlier builds; who has them open keeps them."""
    for path in out.iterdir():
        if path.is_dir() and path != data and (path / WRITTEN).exists():
            shutil.rmtree(path, ignore_errors=True)
