"""Benchmarks of catalogs by size: what opening, searching and an episode cost, each size in processes of its own."""

import csv
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ecomlab.catalog import Catalog, Constraint, Shop, build_shop, generate
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.shop import open_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.files import cache_folder, read_json, replacing, write_json
from ecomlab.laws.benchmark import CLOCKS, Clock, timed_episode
from ecomlab.seeding import digest, rng
from ecomlab.suggest import unknown

LEVELS: Final = (0, 6)
WARM_UP: Final = 5
SEARCHES: Final = 100
"""Queries, each asked without a filter and under three."""
TOP_K: Final = 200
CONSTRAINTS: Final = 8
SPENT: Final = "bench.json"
"""What building took, beside a catalog that is kept."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class CatalogTiming:
    """One catalog: seconds and milliseconds by `clock`, megabytes. Episodes are of all environments."""

    products: int
    open_s: float
    """With the files in the page cache."""
    open_cold_s: float
    """Without."""
    reset_ms_p50: float
    reset_ms_p95: float
    verify_ms_p95: float
    episode_ms_p50: float
    search_ms_p50: float
    """The query's embedding apart."""
    search_ms_p95: float
    embed_ms_p50: float
    recall_at_20: float
    """The worst over all products and under filters; 1 where every answer is exact."""
    constraints_ms: float
    """Eight constraints over every row."""
    private_mb: float
    """Memory of the process alone, after everything above."""
    rss_mb: float
    """With what it shares: the files that it has mapped."""
    second_private_mb: float
    """Of a second process, once it has opened and searched."""
    build_s: float
    build_cpu_s: float
    texts: int
    index: str
    embedder: str
    clock: str
    repeats: int
    """Of the measurement, in processes of their own: of times the least is kept, of memory the most."""


@dataclass(frozen=True)
class EnvironmentTiming:
    """One environment on one catalog, in milliseconds."""

    products: int
    embedder: str
    env: str
    reset_ms_p50: float
    reset_ms_p95: float
    verify_ms_p95: float
    episode_ms_p50: float


def bench(
    sizes: Sequence[int],
    episodes: int,
    embedder: str,
    folder: Path,
    clock: str = "wall",
    tell: Tell = lambda line: None,
    *,
    work: Path | None = None,
    repeats: int = 1,
) -> list[CatalogTiming]:
    """Measure generated catalogs of these sizes and write results.csv and environments.csv into `folder`.

    `episodes` are per environment and level. Rows of other sizes and embedders that the files hold stay. What is built
    is kept in `work`, if it is named: a build that was killed goes on there, and a finished one is measured again.
    Raises ValueError for an unknown clock or embedder.
    """
    if clock not in CLOCKS:
        raise ValueError(unknown("clock", clock, CLOCKS))
    name = embedder_named(embedder).name
    found = []
    for size in sizes:
        parent = _made(cache_folder() if work is None else work)
        kept = parent / f"{size}-{digest(name, 6)}"
        place = Path(tempfile.mkdtemp(prefix="bench.", dir=parent)) if work is None else kept
        try:
            tell(f"{size:,} products, {name}")
            built = _apart(_build, size, place, embedder)
            measured = []
            for turn in range(repeats):
                tell(f"measured {turn} of {repeats} times")
                measured.append(_apart(_measure, place, name, episodes, clock))
            second = max(_apart(_second, place) for _ in range(repeats))
        finally:
            if work is None:
                shutil.rmtree(place, ignore_errors=True)
        times = best([one for one, _ in measured])
        found.append(CatalogTiming(**built, **times, second_private_mb=second, clock=clock, repeats=repeats))
        update(folder / "results.csv", [asdict(found[-1])], ("products", "embedder"))
        rows = [
            best(some) for some in zip(*([asdict(row) for row in rows] for _, rows in measured), strict=True)
        ]
        update(folder / "environments.csv", rows, ("products", "embedder", "env"))
    return found


def best(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Keep the least of repeated times and the most of memory; what is no number is the same in all."""
    return {
        name: value
        if isinstance(value, str)
        else (max if name.endswith("_mb") else min)(one[name] for one in measured)
        for name, value in measured[0].items()
    }


def update(file: Path, rows: Sequence[dict[str, Any]], key: Sequence[str]) -> None:
    """Write rows into a table, in place of those with the same key, in the key's order."""
    kept: list[dict[str, Any]] = []
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as opened:
            kept = list(csv.DictReader(opened))
    new = {tuple(str(row[name]) for name in key) for row in rows}
    kept = [
        row for row in kept if tuple(row[name] for name in key) not in new and row.keys() == rows[0].keys()
    ]
    ordered = sorted(
        [*kept, *rows], key=lambda row: (int(row["products"]), *(str(row[name]) for name in key))
    )
    with replacing(file) as draft, draft.open("w", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(ordered)


def _apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run `work` in a new process, so that its memory and its caches are its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _build(size: int, place: Path, embedder: str) -> dict[str, Any]:
    """Build a catalog, or go on with it: what it took, over all calls, is kept beside it once it is whole."""
    record, spent = place / SPENT, {"build_s": 0.0, "build_cpu_s": 0.0}
    began = (time.perf_counter(), time.process_time())
    before = read_json(record) or {}

    def keep(line: str) -> None:
        for name, start, now in zip(spent, began, (time.perf_counter(), time.process_time()), strict=True):
            spent[name] = round(before.get(name, 0.0) + now - start, 1)
        write_json(record, {"data": before.get("data", "")} | spent)

    manifest = build_shop(generate(size), place, embedder_named(embedder), tell=keep)
    if (
        before.get("data") != manifest.data
    ):  # else it was whole, and generating it again is no part of its build
        keep("")
        write_json(record, {"data": manifest.data} | spent)
    made = read_json(record) or {}
    recall = round(min(manifest.index.recall_at_20.values(), default=1.0), 4)
    about = {
        "products": size,
        "texts": manifest.texts,
        "index": manifest.index.kind,
        "embedder": manifest.embedder,
    }
    return {name: made[name] for name in spent} | about | {"recall_at_20": recall}


def _measure(
    place: Path, embedder: str, episodes: int, by: str
) -> tuple[dict[str, float], list[EnvironmentTiming]]:
    clock = CLOCKS[by]
    shop = open_shop(place)  # libraries are loaded now
    found: dict[str, float] = {}
    for name, cold in (("open_cold_s", True), ("open_s", False)):
        _evict(place) if cold else _warm(place)
        began = clock()
        shop = open_shop(place)
        found[name] = round(clock() - began, 3)
    found |= _searches(shop, clock)
    found["constraints_ms"] = _constraints(shop.catalog, clock)
    environments, played = [], []
    for env in ENVIRONMENTS:
        seconds = []
        for d in LEVELS:
            seconds += [timed_episode(env, d, seed, shop, clock) for seed in range(WARM_UP + episodes)][
                WARM_UP:
            ]
        played += seconds
        environments.append(EnvironmentTiming(shop.catalog.size, embedder, env, **_percentiles(seconds)))
    return found | _percentiles(played) | memory(), environments


def _second(place: Path) -> float:
    """Open a catalog that another process has opened too, search it, and return private megabytes."""
    shop = open_shop(place)
    for row in range(20):
        shop.engine.search(shop.catalog.title(row))
    return memory()["private_mb"]


def _searches(shop: Shop, clock: Clock) -> dict[str, float]:
    """Time searches of what shoppers type, over everything and under filters that leave much, less and little."""
    catalog, embeds, searches = shop.catalog, [], []
    half = int(np.median(catalog.price_cents[:: max(1, catalog.size // 10_000)]))
    for row in rng("bench", "searches").integers(0, catalog.size, SEARCHES).tolist():
        kind, query = catalog.type_of(row).name, f"{catalog.title(row)} number {row}"  # never asked before
        began = clock()
        shop.engine._embed(query)
        embeds.append(clock() - began)
        price, rating = Constraint("price", "<=", half), Constraint("rating", ">=", 46)
        for filters in ((), (price,), (price, rating), (Constraint("type", "==", kind),)):
            began = clock()
            shop.engine.search(query, filters, top_k=TOP_K)
            searches.append(clock() - began)
    return {
        "embed_ms_p50": _ms(embeds, 50),
        "search_ms_p50": _ms(searches, 50),
        "search_ms_p95": _ms(searches, 95),
    }


def _constraints(catalog: Catalog, clock: Clock) -> float:
    """Time eight constraints over every row: the median of 21 runs."""
    name = max(catalog.attr, key=lambda name: int((catalog.attr[name][:1_000] >= 0).sum()))
    wanted = [
        Constraint("price", "<=", 9_000),
        Constraint("price", ">=", 500),
        Constraint("rating", ">=", 40),
        Constraint("rating", "<=", 49),
        Constraint("days", "<=", 5),
        Constraint("brand", "==", catalog.brands[0]),
        Constraint("feature", "==", catalog.features[0]),
        Constraint(f"attr:{name}", "==", catalog.attr_values[name][0]),
    ]
    assert len(wanted) == CONSTRAINTS
    seconds = []
    for _ in range(21):
        began = clock()
        catalog.select(wanted)
        seconds.append(clock() - began)
    return _ms(seconds, 50)


def _percentiles(seconds: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    reset, verify, episode = zip(*seconds, strict=True)
    return {
        "reset_ms_p50": _ms(reset, 50),
        "reset_ms_p95": _ms(reset, 95),
        "verify_ms_p95": _ms(verify, 95),
        "episode_ms_p50": _ms(episode, 50),
    }


def _ms(seconds: Sequence[float], percentile: float) -> float:
    return round(1000 * float(np.percentile(seconds, percentile)), 3)


def memory() -> dict[str, float]:
    """Return this process's own and all its resident megabytes, from Linux' account of them.

    Pages of mapped files are not its own, even while no other process reads them: the system takes them back at will.
    """
    lines = Path("/proc/self/smaps_rollup").read_text("utf-8").splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
    return {
        "private_mb": round(kilobytes["Anonymous"] / 1024, 1),
        "rss_mb": round(kilobytes["Rss"] / 1024, 1),
    }


def _warm(place: Path) -> None:
    """Read every file, so that it is in the page cache."""
    for path in place.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


def _evict(place: Path) -> None:
    """Ask the system to drop the files from the page cache."""
    os.sync()
    for path in place.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)
