"""Index kinds measured on a sentence model's vectors: what each finds, how fast, how large, as index.csv.

    python experiments/catalog_scale/index.py          # 200,000 texts by MiniLM: 13 to 30 minutes of a core
    python experiments/catalog_scale/index.py --texts 3000 --embedder lexical --work /tmp/x --out /tmp/x/index.csv

The texts are different ones of generated products. Queries are what shoppers may type: titles and parts of titles. A
result counts as found if its exact score reaches the twentieth. Vectors are kept in --work, a shard of 2,048 texts at a
time: killed and started again, the script goes on. One thread; milliseconds are of the processor.
"""

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and faiss are imported

import faiss
import numpy as np

from ecomlab.catalog import Catalog, SearchEngine, generate
from ecomlab.catalog.embed import Embedder
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.index import Index, build_exact
from ecomlab.catalog.texts import Texts, embed_rows, texts_of
from ecomlab.files import cache_folder, replacing
from ecomlab.seeding import digest, rng

HERE = Path(__file__).resolve().parent
SHARD, K = 2_048, 20
Search = Callable[[np.ndarray], np.ndarray]
"""Numbers of the K best vectors for a query of shape (1, dim)."""


def products_with(texts: int) -> tuple[Catalog, Texts]:
    """Generate as many products as have that many different texts: one in ten has its own where there are many."""
    size = max(texts, 2_000)
    while True:
        catalog = generate(size)
        found = texts_of(catalog)
        if found.count >= texts:
            return catalog, found
        size *= 2


def embedded(catalog: Catalog, rows: np.ndarray, embedder: Embedder, work: Path) -> np.ndarray:
    """Embed the texts of `rows`, from where an earlier run ended: float16 (len(rows), dim)."""
    key = digest([catalog.fingerprint, embedder.fingerprint, len(rows)], 12)
    files = [work / key / f"{start:08}.npy" for start in range(0, len(rows), SHARD)]
    for number, file in enumerate(files):
        if file.exists():
            continue
        began, some = time.monotonic(), rows[number * SHARD : (number + 1) * SHARD]
        with replacing(file) as draft, draft.open("wb") as opened:
            np.save(opened, embed_rows(catalog, embedder, some), allow_pickle=False)
        rate = len(some) / (time.monotonic() - began)
        print(
            f"embedded {min((number + 1) * SHARD, len(rows)):,} of {len(rows):,}, {rate:.0f} a second",
            flush=True,
        )
    return np.concatenate([np.load(file, allow_pickle=False) for file in files])


def kinds(vectors: np.ndarray) -> Iterator[tuple[str, str, Any, float, Search]]:
    """Build each index and yield its name, its effort, itself, its processor seconds, and how it is searched."""
    count, dim = vectors.shape
    exact, seconds = timed(lambda: build_exact([vectors], dim))
    yield "SQfp16", "all", exact, seconds, lambda query: exact.search(query, K)[1][0]
    lists = 2 ** round(np.log2(4 * np.sqrt(count)))
    parts = max(part for part in range(1, 97) if dim % part == 0)
    for name, graph in (
        (f"IVF{lists},SQ8", False),
        (f"IVF{lists},PQ{parts}x4fs", False),
        ("HNSW32_SQ8", True),
    ):
        made, seconds = timed(partial(filled, name, vectors))
        refined = faiss.IndexRefine(made, exact)
        for effort in (64, 128, 256) if graph else (16, 32, 64, 128):
            effort = effort if graph else min(effort, lists)
            for factor in (1, 4) if name.endswith("SQ8") else (1, 4, 16):
                searched = (
                    faiss.SearchParametersHNSW(efSearch=max(effort, factor * K))
                    if graph
                    else faiss.SearchParametersIVF(nprobe=effort)
                )
                both = faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=searched)

                def search(query: np.ndarray, both: Any = both, refined: Any = refined) -> np.ndarray:
                    return np.asarray(refined.search(query, K, params=both)[1][0])

                yield (
                    name,
                    f"{'ef' if graph else 'lists'} {effort}, candidates {factor}",
                    made,
                    seconds,
                    search,
                )


def filled(name: str, vectors: np.ndarray) -> Any:
    """Train an index on a sample and add all vectors."""
    made = faiss.index_factory(vectors.shape[1], name, faiss.METRIC_INNER_PRODUCT)
    some = np.sort(rng("index", len(vectors)).choice(len(vectors), min(len(vectors), 80_000), replace=False))
    made.train(vectors[some].astype(np.float32))
    for start in range(0, len(vectors), 20_000):
        made.add(vectors[start : start + 20_000].astype(np.float32))
    return made


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Do some work; return what it made and the processor's seconds."""
    began = time.process_time()
    return work(), time.process_time() - began


def measured(vectors: np.ndarray, queries: np.ndarray) -> Iterator[dict[str, Any]]:
    """Measure every kind at every effort."""
    products = vectors.astype(np.float32)
    scores = [products @ query for query in queries]  # exact: vectors are on the grid
    cuts = [float(np.partition(one, -K)[-K]) for one in scores]
    for name, effort, index, build_s, search in kinds(vectors):
        hits, seconds = 0, []
        for query, own, cut in zip(queries[:, None], scores, cuts, strict=True):
            found, spent = timed(partial(search, query))
            seconds.append(spent)
            hits += int((own[found[found >= 0]] >= cut).sum())
        yield {
            "index": name,
            "effort": effort,
            "recall_at_20": round(hits / (K * len(queries)), 4),
            "search_ms_p50": round(1000 * float(np.percentile(seconds, 50)), 3),
            "search_ms_p95": round(1000 * float(np.percentile(seconds, 95)), 3),
            "size_mb": round(faiss.serialize_index(index).nbytes / 1e6, 1),
            "build_cpu_s": round(build_s, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--work", type=Path, default=cache_folder() / "catalog_index")
    parser.add_argument("--out", type=Path, default=HERE / "index.csv")
    asked = parser.parse_args()
    embedder = embedder_named(asked.embedder)
    catalog, texts = products_with(asked.texts)
    rows = texts.first_rows[np.sort(rng("index", "texts").choice(texts.count, asked.texts, replace=False))]
    vectors = embedded(catalog, rows, embedder, asked.work)
    engine = SearchEngine(catalog, embedder, texts, Index(build_exact([vectors], embedder.dim)))
    about = {"embedder": asked.embedder, "texts": len(vectors), "dim": embedder.dim, "queries": asked.queries}
    found = []
    for row in measured(vectors, engine.shopper_queries(asked.queries)):
        found.append(about | row)
        print(found[-1], flush=True)
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(found)


if __name__ == "__main__":
    main()
