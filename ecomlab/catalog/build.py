"""Builds a catalog's folder step by step: after a kill at any moment the same call goes on where it ended."""

import shutil
import time
from collections.abc import Callable, Sequence
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
from ecomlab.files import lock, replacing, write_json
from ecomlab.seeding import digest

SHARD: Final = 65_536
"""Texts that are embedded between two savings."""
SHARDS: Final = "shards"
Tell = Callable[[str], None]
Gather = Callable[[Any], list[Any]]
"""Collects what every process of a launcher passes, in order of rank, once all of them have called it."""


def alone(mine: Any) -> list[Any]:
    """Gather from this process, the only one."""
    return [mine]


def build_shop(
    catalog: Catalog,
    out: Path,
    embedder: Embedder | None = None,
    *,
    tell: Tell = lambda line: None,
    wait: float = 0.0,
    gather: Gather = alone,
) -> store.Manifest:
    """Build the folder `out`, which `load_shop(out)` opens, from a catalog: columns, vectors, index, manifest.

    The manifest is replaced last: until then `out` holds the catalog it held before, or a build that goes on with the
    same arguments. `tell` gets lines on what is done and how long it takes. Without an embedder texts are embedded
    lexically. Raises CatalogError while another process builds there (after `wait` seconds), LowRecallError when the
    index finds too little, and OSError where the folder cannot be written.

    `gather` shares the embedding with the processes that call `help_build`. They are not needed after that, and what
    one that ends early leaves is embedded here. Raises CatalogError where one has another catalog, model or faiss.
    """
    embedder = embedder or LexicalEmbedder()
    busy = store.CatalogError(f"another process builds the catalog in {out}; wait for it, or build elsewhere")
    out.mkdir(parents=True, exist_ok=True)
    key = _key(catalog, embedder)
    with lock(out / store.LOCK, busy, wait):
        if finished := _finished(out, key):
            gather(None)  # nothing is left to embed
            return finished
        data = out / key
        data.mkdir(exist_ok=True)
        began = time.monotonic()
        texts = texts_of(catalog)
        store.write_columns(catalog, texts, data)
        tell(f"{catalog.size:,} products, {texts.count:,} texts: columns in {time.monotonic() - began:.0f} s")
        exact = _exact(catalog, texts, embedder, data, tell, gather)
        found = Index(exact, _lists(exact, data, tell) if texts.count > index.EXACT_UP_TO else None)
        queries = SearchEngine(catalog, embedder, texts, found).shopper_queries()
        found, recall = found.with_enough_effort(queries, tell)
        for draft in data.glob(".*.*"):  # of a build that was killed
            draft.unlink()
        manifest = store.Manifest(
            format=store.FORMAT,
            data=key,
            products=catalog.size,
            texts=texts.count,
            fingerprint=catalog.fingerprint,
            embedder=embedder.name,
            embedder_fingerprint=embedder.fingerprint,
            index=store.IndexFacts(
                kind=found.kind,
                digest=_index_digest(data, embedder, found),
                lists=found.effort.lists,
                factor=found.effort.factor,
                recall_at_20={f"{share:g}": round(value, 4) for share, value in recall.items()},
            ),
            versions={name: version(name) for name in ("numpy", "faiss-cpu")},
            files=store.digests(data),
        )
        write_json(out / store.MANIFEST, manifest.model_dump(mode="json"))
        _clear(out, data)
    return manifest


def help_build(
    open_catalog: Callable[[], Catalog], out: Path, embedder: Embedder, rank: int, gather: Gather
) -> None:
    """Embed this process's share of the texts for the process of rank 0, which builds in `out`.

    The catalog is opened when there is something to embed. Raises CatalogError where it, the model or faiss is not what
    rank 0 has, which then embeds without this process.
    """
    busy = store.CatalogError(f"another process of rank {rank} helps to build the catalog in {out}")
    with lock(_helping(out, rank), busy):
        everyone = gather(None)
        if everyone[0] is None:
            return
        key, missing = everyone[0]
        catalog = open_catalog()
        if _key(catalog, embedder) != key:
            raise store.CatalogError(
                f"process {rank} has another catalog, model or faiss than process 0, which builds in {out}; "
                "give all of them one folder and one installation"
            )
        _embed(catalog, texts_of(catalog), embedder, out / key, missing[rank :: len(everyone)])


def _key(catalog: Catalog, embedder: Embedder) -> str:
    """Name a build's folder of files by what they are made of."""
    return digest([store.FORMAT, catalog.fingerprint, embedder.fingerprint, version("faiss-cpu")], 12)


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


def _exact(catalog: Catalog, texts: Texts, embedder: Embedder, data: Path, tell: Tell, gather: Gather) -> Any:
    """Embed all texts and write the exact index, unless it is there; return it memory-mapped."""
    exact, files = data / store.EXACT, _shards(texts, data)
    missing = [] if exact.exists() else [at for at, file in enumerate(files) if not file.exists()]
    processes = len(gather((data.name, missing) if missing else None))
    _embed(catalog, texts, embedder, data, missing[::processes], tell)
    for rank in range(1, processes):
        with lock(_helping(data.parent, rank), RuntimeError(), wait=-1):  # until it ends, however it ends
            pass
    _embed(catalog, texts, embedder, data, missing, tell)  # what one that ended early has left
    if not exact.exists():
        with replacing(exact) as draft:
            vectors = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
            index.write(index.build_exact(vectors, embedder.dim), draft)
    shutil.rmtree(data / SHARDS, ignore_errors=True)
    return index.read_exact(exact)


def _shards(texts: Texts, data: Path) -> list[Path]:
    """Name the files of embedded texts, SHARD texts each, in order."""
    return [data / SHARDS / f"{number:05}.npy" for number in range(-(-texts.count // SHARD))]


def _helping(out: Path, rank: int) -> Path:
    """Name the lock that a helper holds from before it is asked until it ends."""
    return out / f".helper-{rank}.lock"


def _embed(
    catalog: Catalog,
    texts: Texts,
    embedder: Embedder,
    data: Path,
    numbers: Sequence[int],
    tell: Tell = lambda line: None,
) -> None:
    """Embed those of some shards that are not there yet."""
    files, began = _shards(texts, data), time.monotonic()
    missing = [number for number in numbers if not files[number].exists()]
    for count, number in enumerate(missing, 1):
        rows = texts.first_rows[SHARD * number : SHARD * (number + 1)]
        with replacing(files[number]) as draft, draft.open("wb") as opened:
            np.save(opened, embed_rows(catalog, embedder, rows), allow_pickle=False)
        left = (len(missing) - count) * (time.monotonic() - began) / count / 60
        tell(f"embedded {count} of {len(missing)} shards of {SHARD:,} texts, {left:.0f} minutes left")


def _lists(exact: Any, data: Path, tell: Tell) -> Any:
    """Build inverted lists over the vectors, unless they are there; return them memory-mapped."""
    began, vectors = time.monotonic(), index.vectors_of(exact)
    if not (data / store.LISTS).exists():
        with replacing(data / store.LISTS) as draft:
            index.write(index.build_lists(vectors), draft)
        tell(f"{len(vectors):,} vectors indexed in {time.monotonic() - began:.0f} s")
    return index.read_lists(data / store.LISTS)


def _index_digest(data: Path, embedder: Embedder, found: Index) -> str:
    """Digest what another machine would make otherwise: vectors of a model, lists; empty without either."""
    files = [] if embedder.reproducible else [data / store.EXACT]
    files += [] if found.lists is None else [data / store.LISTS]
    return index.digest_of([np.memmap(path, np.uint8, "r") for path in files])


def _clear(out: Path, data: Path) -> None:
    """Remove the folders of earlier builds; who has them open keeps them."""
    for path in out.iterdir():
        if path.is_dir() and path != data and (path / store.VOCABULARY).exists():
            shutil.rmtree(path, ignore_errors=True)
