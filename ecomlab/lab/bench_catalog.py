"""What generated catalogs cost by their size: building, opening, searching, episodes, memory, on one thread.

Each size is built, measured and opened a second time in processes of its own. What is built is kept, so that a killed
build goes on and a finished one is measured again. Times are the processor's: the least of repeated measurements;
memory is the most. docs/catalogs.md names the columns.
"""

import csv
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ecomlab.catalog import Catalog, Constraint, Shop, build_shop, generate
from ecomlab.catalog.embedders import embedder_named
from ecomlab.catalog.shop import open_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.files import read_json, replacing, write_json
from ecomlab.lab.bench import timed_episode
from ecomlab.lab.evaluation_tables import widened
from ecomlab.seeding import digest, rng

LEVELS, WARM_UP = (0, 6), 5
SEARCHES, TOP_K = 100, 200
SPENT = "bench.json"
"""What building took, beside a catalog."""
Row = dict[str, Any]


def update(file: Path, rows: Sequence[Row], key: Sequence[str]) -> None:
    """Write rows into a table, in place of those with the same key, in the key's order."""
    kept: list[Row] = []
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as opened:
            kept = list(csv.DictReader(opened))
    new = {tuple(str(row[name]) for name in key) for row in rows}
    kept = [row for row in kept if tuple(row[name] for name in key) not in new]
    ordered = sorted(
        [*kept, *rows], key=lambda row: (int(row["products"]), *(str(row[name]) for name in key))
    )
    with replacing(file) as draft, draft.open("w", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(ordered)


def best(measured: Sequence[Row]) -> Row:
    """Keep the least of repeated times and the most of memory; what is no number is the same in all."""
    return {
        name: value
        if isinstance(value, str)
        else (max if name.endswith("_mb") else min)(one[name] for one in measured)
        for name, value in measured[0].items()
    }


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run `work` in a new process, so that its memory and its caches are its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def build(size: int, place: Path, embedder: str) -> Row:
    """Build a catalog, or go on with it. What it took, over all calls, is kept beside it once it is whole."""
    record, began = place / SPENT, (time.perf_counter(), time.process_time())
    before = read_json(record) or {}

    def keep(line: str, data: str = "") -> None:
        spent = {
            name: round(before.get(name, 0.0) + now - start, 1)
            for name, start, now in zip(
                ("build_s", "build_cpu_s"), began, (time.perf_counter(), time.process_time()), strict=True
            )
        }
        write_json(record, {"data": data, **spent})

    manifest = build_shop(generate(size), place, embedder_named(embedder), tell=keep)
    if before.get("data") != manifest.data:  # else it was whole before this call
        keep("", manifest.data)
    made = read_json(record) or {}
    return {
        "products": size,
        "recall_at_20": round(min(manifest.index.recall_at_20.values(), default=1.0), 4),
        "build_s": made["build_s"],
        "build_cpu_s": made["build_cpu_s"],
        "texts": manifest.texts,
        "index": manifest.index.kind,
        "embedder": manifest.embedder,
    }


def measure(place: Path, embedder: str, episodes: int) -> tuple[Row, list[Row]]:
    """Open and search a catalog, play in it, and return the row of the catalog and those of environments."""
    shop = open_shop(place)  # libraries are loaded now
    found: Row = {}
    for name, prepare in (("open_cold_s", evict), ("open_s", warm)):
        prepare(place)
        began = time.process_time()
        shop = open_shop(place)
        found[name] = round(time.process_time() - began, 3)
    found |= searches(shop) | {"constraints_ms": constraints(shop.catalog)}
    environments, played = [], []
    for env in ENVIRONMENTS:
        seconds = []
        for d in LEVELS:
            seconds += [timed_episode(env, d, seed, shop) for seed in range(WARM_UP + episodes)][WARM_UP:]
        played += seconds
        head = {"products": shop.catalog.size, "embedder": embedder, "env": env}
        environments.append(head | percentiles(seconds))
    return found | percentiles(played) | memory(), environments


def second(place: Path) -> float:
    """Open and search a catalog that another process has opened too, and return private megabytes."""
    shop = open_shop(place)
    for row in range(20):
        shop.engine.search(shop.catalog.title(row))
    return memory()["private_mb"]


def searches(shop: Shop) -> Row:
    """Time searches of what shoppers type, over everything and under filters that leave much, less and little."""
    catalog, embeds, found = shop.catalog, [], []
    half = int(np.median(catalog.price_cents[:: max(1, catalog.size // 10_000)]))
    for row in rng("bench", "searches").integers(0, catalog.size, SEARCHES).tolist():
        kind, query = catalog.type_of(row).name, f"{catalog.title(row)} number {row}"  # never asked before
        began = time.process_time()
        shop.engine._embed(query)
        embeds.append(time.process_time() - began)
        price, rating = Constraint("price", "<=", half), Constraint("rating", ">=", 46)
        for filters in ((), (price,), (price, rating), (Constraint("type", "==", kind),)):
            began = time.process_time()
            shop.engine.search(query, filters, top_k=TOP_K)
            found.append(time.process_time() - began)
    return {
        "embed_ms_p50": ms(embeds, 50),
        "search_ms_p50": ms(found, 50),
        "search_ms_p95": ms(found, 95),
    }


def constraints(catalog: Catalog) -> float:
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
    seconds = []
    for _ in range(21):
        began = time.process_time()
        catalog.select(wanted)
        seconds.append(time.process_time() - began)
    return ms(seconds, 50)


def percentiles(seconds: Sequence[tuple[float, float, float]]) -> Row:
    reset, verify, episode = zip(*seconds, strict=True)
    found = {"reset_ms_p50": ms(reset, 50), "reset_ms_p95": ms(reset, 95), "verify_ms_p95": ms(verify, 95)}
    return found | {"episode_ms_p50": ms(episode, 50)}


def ms(seconds: Sequence[float], percentile: float) -> float:
    return round(1000 * float(np.percentile(seconds, percentile)), 3)


def memory() -> dict[str, float]:
    """Return this process's own and all its resident megabytes, as Linux counts them. Pages of mapped files are not its
    own."""
    lines = Path("/proc/self/smaps_rollup").read_text("utf-8").splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
    own, whole = (round(kilobytes[name] / 1024, 1) for name in ("Anonymous", "Rss"))
    return {"private_mb": own, "rss_mb": whole}


def warm(place: Path) -> None:
    """Read every file into the page cache."""
    for path in filter(Path.is_file, place.rglob("*")):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def evict(place: Path) -> None:
    """Ask the system to drop the files from the page cache."""
    os.sync()
    for path in filter(Path.is_file, place.rglob("*")):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_sizes(
    sizes: Sequence[int], work: Path, out: Path, embedder: str, episodes: int, repeats: int
) -> Iterator[Row]:
    """Build catalogs in `work`, measure them and yield a row of each; write it into `out`/results.csv, and one of each
    environment into environments.csv. Rows of other sizes and embedders stay."""
    name = embedder_named(embedder).name
    for size in sizes:
        place = work / f"{size}-{digest(name, 6)}"
        built = apart(build, size, place, embedder)
        measured = [apart(measure, place, name, episodes) for _ in range(repeats)]
        times = best([one for one, _ in measured])
        times["second_private_mb"] = max(apart(second, place) for _ in range(repeats))
        row = {**built, **times, "clock": "cpu", "repeats": repeats}
        update(out / "results.csv", [row], ("products", "embedder"))
        rows = [best(same) for same in zip(*(some for _, some in measured), strict=True)]
        update(out / "environments.csv", rows, ("products", "embedder", "env"))
        yield row


def show_sizes(rows: Iterable[Row], console: Console) -> None:
    """Print the main columns of the table."""
    shown = {
        "products": "products",
        "open s": "open_s",
        "search ms (p95)": "search_ms_p95",
        "reset ms (p95)": "reset_ms_p95",
        "episode ms (p50)": "episode_ms_p50",
        "own MB": "private_mb",
        "a second process's": "second_private_mb",
        "build s": "build_cpu_s",
    }
    table = Table(*shown)
    for row in rows:
        table.add_row(*(f"{row[name]:,}" for name in shown.values()))
    widened(console, table).print(table)
