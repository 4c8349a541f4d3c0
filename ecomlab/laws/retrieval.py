"""How well search finds a product by another shop's title for it: recall and mean reciprocal rank of known matches."""

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ecomlab.catalog.embed import Embedder, on_grid
from ecomlab.catalog.index import Index, build_exact, fill_lists, train_lists

DEPTH: Final = 200
"""Results that are looked at: a match further down counts as not found."""
WITHOUT: Final = (
    "amazon.csv, walmart.csv and gt.csv are the public Walmart-Amazon benchmark, data/ccer/D8 of "
    "https://github.com/AI-team-UoA/pyJedAI"
)
"""What is said where the public data is not at hand."""


@dataclass(frozen=True)
class Matches:
    """Titles of a shop, titles of another, and pairs of the same product."""

    products: tuple[str, ...]
    queries: tuple[str, ...]
    wanted: np.ndarray
    """Product that each query means, as a place in `products`."""


@dataclass(frozen=True)
class Retrieval:
    """Shares of the queries whose product is among the first 1, 10, 20, and the mean of 1/rank."""

    embedder: str
    index: str
    products: int
    queries: int
    recall_at_1: float
    recall_at_10: float
    recall_at_20: float
    mrr: float
    search_ms_p50: float
    """Of the processor: other work on the machine does not stretch it."""


def public_data(folder: Path | None, *names: str) -> Path:
    """Return the folder of the public data. Where it does not hold these files, end the program with a sentence."""
    missing = [name for name in names if folder is None or not (folder / name).is_file()]
    if folder is None or missing:
        where = f"{folder} holds no {' and no '.join(missing)}: " if folder else ""
        raise SystemExit(f"{where}{WITHOUT}; name their folder with --data")
    return folder


def read_matches(folder: Path) -> Matches:
    """Read amazon.csv, walmart.csv and gt.csv: `|` between fields, titles by id, and pairs of walmart and amazon ids.

    Raises ValueError where they are not there.
    """
    tables = {}
    for name in ("amazon", "walmart", "gt"):
        if not (folder / f"{name}.csv").is_file():
            raise ValueError(
                f"there is no {name}.csv in {folder}; the files are data/ccer/D8 of AI-team-UoA/pyJedAI on GitHub "
                "(the public Walmart-Amazon benchmark): copy them and name their folder with --data"
            )
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            tables[name] = list(csv.DictReader(file, delimiter="|"))
    places = {row["id"]: place for place, row in enumerate(tables["amazon"])}
    titles = {row["id"]: row["title"] for row in tables["walmart"]}
    return Matches(
        products=tuple(row["title"] for row in tables["amazon"]),
        queries=tuple(titles[row["D1"]] for row in tables["gt"]),
        wanted=np.array([places[row["D2"]] for row in tables["gt"]]),
    )


def measure(matches: Matches, embedder: Embedder) -> list[Retrieval]:
    """Search for every query exactly, and through lists, at the effort that reaches their recall."""
    vectors = on_grid(embedder.encode(matches.products)).astype(np.float16)
    queries = on_grid(embedder.encode(matches.queries))
    exact = Index(build_exact([vectors], embedder.dim))
    lists = Index(exact.exact, fill_lists(train_lists(vectors), [vectors]))
    lists, _ = lists.with_enough_effort(queries[::4])
    return [_measured(index, embedder.name, queries, matches.wanted) for index in (exact, lists)]


def _measured(index: Index, embedder: str, queries: np.ndarray, wanted: np.ndarray) -> Retrieval:
    search = index.scan if index.lists is None else index.propose
    found, seconds = [], []
    for query in queries[:, None]:
        began = time.process_time()
        scores, numbers = search(query, None, DEPTH)
        seconds.append(time.process_time() - began)
        found.append(numbers[np.lexsort((numbers, -scores))])
    ranks = ranks_of(found, wanted)
    kind = (
        "exact" if index.lists is None else f"IVF{index.lists.nlist},SQ8 reading {index.effort.lists} lists"
    )
    return Retrieval(
        embedder=embedder,
        index=kind,
        products=index.count,
        queries=len(queries),
        recall_at_1=_share(ranks <= 1),
        recall_at_10=_share(ranks <= 10),
        recall_at_20=_share(ranks <= 20),
        mrr=round(float(np.mean(1 / ranks)), 4),
        search_ms_p50=round(1000 * float(np.median(seconds)), 3),
    )


def ranks_of(found: Sequence[np.ndarray], wanted: np.ndarray) -> np.ndarray:
    """Return each query's rank of what it wants, from 1; infinite where it is not found."""
    ranks = np.full(len(wanted), np.inf)
    for query, (numbers, one) in enumerate(zip(found, wanted.tolist(), strict=True)):
        at = np.flatnonzero(numbers == one)
        if len(at):
            ranks[query] = at[0] + 1
    return ranks


def _share(hits: np.ndarray) -> float:
    return round(float(np.mean(hits)), 4)
