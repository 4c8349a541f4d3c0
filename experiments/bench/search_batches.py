"""What a search gains when several are made together, or fewer results are asked for: measured, and left as it is.

    python experiments/bench/search_batches.py [--products 20000 200000]

Prints, per size of the shop, milliseconds of one thread's processor time a query: of an exact scan for 10 and for 232
results, alone and 32 queries together, and of embedding a query, alone and 400 together, each word seen before.
"""

import argparse
import time
from collections.abc import Callable

import faiss

from ecomlab import Shop, load_shop
from ecomlab.catalog.texts import title_of

TOGETHER, ROUNDS = 32, 5


def milliseconds(made: Callable[[], object], queries: int) -> float:
    """Time a query: the least of some rounds."""
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        made()
        took.append(time.process_time() - start)
    return 1000 * min(took) / queries


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--products", type=int, nargs="+", default=[20_000, 200_000])
    faiss.omp_set_num_threads(1)
    print(f"{'products':>8}  {'what':24} {'alone':>8} {'together':>8}  ratio")
    for products in parser.parse_args().products:
        for what, (alone, together) in timed(load_shop(products)).items():
            print(f"{products:>8}  {what:24} {alone:8.3f} {together:8.3f}  {together / alone:.2f}")


def timed(shop: Shop) -> dict[str, tuple[float, float]]:
    """Time embedding and scans: milliseconds a query, alone and together."""
    size, index, embedder = shop.catalog.size, shop.engine.index, shop.engine.embedder
    titles = [title_of(shop.catalog, 37 * at % size) for at in range(400)]
    words = [" ".join(title.split()[:3]) for title in titles]
    alone = milliseconds(lambda: [embedder.encode([one]) for one in words], len(words))
    found = {"embedding": (alone, milliseconds(lambda: embedder.encode(words), len(words)))}
    queries = embedder.encode(words[:TOGETHER])

    def scans(k: int) -> tuple[float, float]:
        alone = milliseconds(lambda: [index.scan(one, None, k) for one in queries[:, None]], TOGETHER)
        return alone, milliseconds(lambda: index.exact.search(queries, k), TOGETHER)

    return found | {f"scan for {k}": scans(k) for k in (10, 232)}


if __name__ == "__main__":
    main()
