"""What a search gains when several are made together, or fewer results are asked for: measured, and left as it is.

    python experiments/bench/search_batches.py [--products 20000 200000]

Prints, per size of the shop, milliseconds of one thread's processor time a query: of an exact scan for 10 and for 232
results, alone and 32 queries together, and of embedding a query, alone and 400 together, each word seen before.
"""

import argparse
import time
from collections.abc import Callable

import faiss
import numpy as np

from ecomlab import load_shop
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
        shop = load_shop(products)
        titles = [title_of(shop.catalog, 37 * at % products) for at in range(400)]
        words = [" ".join(title.split()[:3]) for title in titles]
        index, embedder = shop.engine.index, shop.engine.embedder
        queries = embedder.encode(words[:TOGETHER])
        lines = {
            "embedding": (lambda: [embedder.encode([one]) for one in words], lambda: embedder.encode(words))
        }
        for k in (10, 232):
            lines[f"scan for {k}"] = (
                lambda k=k, q=queries: [index.scan(one, None, k) for one in q[:, None]],
                lambda k=k, q=queries: index.exact.search(q, k),
            )
        for what, (alone, together) in lines.items():
            count = len(words) if what == "embedding" else TOGETHER
            one, all_ = milliseconds(alone, count), milliseconds(together, count)
            print(f"{products:>8}  {what:24} {one:8.3f} {all_:8.3f}  {all_ / one:.2f}", flush=True)


if __name__ == "__main__":
    main()
