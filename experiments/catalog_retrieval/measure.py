"""Search for one shop's titles among the real products of another, whose matches people have checked, as results.csv.

    python experiments/catalog_retrieval/measure.py FOLDER [--embedder lexical minilm]      # 5 minutes on one core

FOLDER holds amazon.csv, walmart.csv and gt.csv, the public Walmart-Amazon benchmark (data/ccer/D8 of
https://github.com/AI-team-UoA/pyJedAI). Each pair of gt.csv is a query; the table has the shares of the queries whose
product is among the first 1, 10 and 20, and the mean of 1/rank. Titles alone are embedded and compared. So small a
catalog is searched exactly; the rows of an approximate index show what one costs where it is needed.
"""

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog.embed import Embedder, on_grid
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.index import Index, build_exact, build_lists
from ecomlab.files import replacing

DEPTH = 200
"""Results that are looked at: a match further down counts as not found."""
Matches = tuple[list[str], list[str], np.ndarray]
"""Titles of a shop, titles of another, and the place of the product that each of these means."""


def read_matches(folder: Path) -> Matches:
    """Read the three tables: `|` between fields, titles by id, and pairs of walmart and amazon ids."""
    tables = {}
    for name in ("amazon", "walmart", "gt"):
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            tables[name] = list(csv.DictReader(file, delimiter="|"))
    places = {row["id"]: place for place, row in enumerate(tables["amazon"])}
    titles = {row["id"]: row["title"] for row in tables["walmart"]}
    wanted = np.array([places[row["D2"]] for row in tables["gt"]])
    return [row["title"] for row in tables["amazon"]], [titles[row["D1"]] for row in tables["gt"]], wanted


def measure(matches: Matches, embedder: Embedder) -> Iterator[dict[str, Any]]:
    """Search for every query exactly, and through lists at the effort that reaches their recall; yield their rows."""
    products, asked, wanted = matches
    vectors, queries = on_grid(embedder.encode(products)).astype(np.float16), on_grid(embedder.encode(asked))
    exact = Index(build_exact([vectors], embedder.dim))
    lists = Index(exact.exact, build_lists(vectors))
    lists, _ = lists.with_enough_effort(queries[::4])
    for index in (exact, lists):
        search = index.scan if index.lists is None else index.propose
        found, seconds = [], []
        for query in queries[:, None]:
            began = time.process_time()
            scores, numbers = search(query, None, DEPTH)
            seconds.append(time.process_time() - began)
            found.append(numbers[np.lexsort((numbers, -scores))])
        ranks = ranks_of(found, wanted)
        nlist, read = (0, 0) if index.lists is None else (index.lists.nlist, index.effort.lists)
        yield {
            "embedder": embedder.name,
            "index": f"IVF{nlist},SQ8 reading {read} lists" if nlist else "exact",
            "products": index.count,
            "queries": len(queries),
            **{f"recall_at_{most}": round(float(np.mean(ranks <= most)), 4) for most in (1, 10, 20)},
            "mrr": round(float(np.mean(1 / ranks)), 4),
            "search_ms_p50": round(1000 * float(np.median(seconds)), 3),
        }


def ranks_of(found: Sequence[np.ndarray], wanted: np.ndarray) -> np.ndarray:
    """Return each query's rank of what it wants, from 1; infinite where it is not found."""
    places = [np.flatnonzero(numbers == one) for numbers, one in zip(found, wanted.tolist(), strict=True)]
    return np.array([at[0] + 1 if len(at) else np.inf for at in places])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", nargs="+", default=("lexical", "minilm"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.csv"))
    asked = parser.parse_args()
    matches = read_matches(asked.folder)
    rows = [row for name in asked.embedder for row in measure(matches, embedder_named(name))]
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=lambda row: str(row["embedder"])))


if __name__ == "__main__":
    main()
