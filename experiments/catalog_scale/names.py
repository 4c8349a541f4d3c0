"""What a catalog of very many names costs: opening it, the first episode of a process, the episodes after it, memory.

    python experiments/catalog_scale/names.py --work FOLDER --many 20000 700000 2000000  # a row for each, as names.csv
    python experiments/catalog_scale/names.py --work FOLDER OTHER_FOLDER ...             # catalogs that are there

Generated shops share some hundred names among all products; here, as in real catalogs, nearly every product has its
own, and twenty share a brand. Each catalog is opened in a process of its own, once before it is measured; seconds and
milliseconds are of the processor, memory is the process's own. `index_s` is what making the tables of names takes.
`together_mb` is what processes that have played take together by their share of each page (PSS), one and `PROCESSES`
of them. Rows of the catalogs that are named replace their older ones.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab import ENVIRONMENTS, TaskError, load_shop, make_task, play
from ecomlab.catalog import Catalog, build_shop, generate, names
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.catalog.names import Packed
from ecomlab.customer.reading.catalog_names import table_of
from ecomlab.files import replacing
from ecomlab.lab.bench_catalog import memory
from ecomlab.seeding import rng

HERE = Path(__file__).resolve().parent
LEVEL, TASKS, PROCESSES = 6, 20, 4
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "ix", "or")]


def invented(count: int, random: np.random.Generator) -> tuple[str, ...]:
    """Invent so many different names: "Barenor", "Barenor-4711", "BAREN4711"."""
    found: dict[str, None] = {}
    while len(found) < count:
        drawn = zip(
            *(random.integers(0, most, count).tolist() for most in (126, 126, 126, 9_999, 3)), strict=True
        )
        for one, two, three, number, form in drawn:
            first = SYLLABLES[one] + SYLLABLES[two]
            word = (first + SYLLABLES[three]).capitalize()
            found[(word, f"{word}-{number}", f"{first.upper()}{number}")[form]] = None
    return tuple(found)[:count]


def many(size: int) -> Catalog:
    """Generate a catalog whose products have a name each, and titles as a real one has."""
    random = rng("names", size)
    features, brands = invented(size, random), invented(size // 20, random)
    named = replace(
        generate(size),
        features=features,
        brands=brands,
        feature_code=random.permutation(size).astype(np.int32),
        brand_code=random.integers(0, len(brands), size).astype(np.int32),
    )
    titles = Packed.of([f"{named.title(row)} no. {row}" for row in range(size)])
    return replace(named, titles=titles, drawable=tuple(kind.name for kind in named.types))


def timed(do: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the processor's seconds that something takes, and what it returns."""
    began = time.process_time()
    made = do(*given)
    return time.process_time() - began, made


def measure(folder: Path) -> dict[str, Any]:
    """Open a catalog and play in it, in this process."""
    other = load_shop(size=2_000)  # libraries are loaded with it, and what all shops share is compiled
    for one in ENVIRONMENTS.values():
        play(one.reference_player(other), make_task(one.id, LEVEL, 0, other), other)
    before = memory()["private_mb"]
    opened, shop = timed(load_shop, folder)
    held = memory()["private_mb"]
    episodes: dict[str, list[float]] = {env: [] for env in ENVIRONMENTS}
    resets, correct = [], 0
    for seed in range(TASKS):
        for env in ENVIRONMENTS:
            try:
                spent, task = timed(make_task, env, LEVEL, seed, shop)
            except TaskError:
                continue
            resets.append(spent)
            spent, trajectory = timed(play, ENVIRONMENTS[env].reference_player(shop), task, shop)
            episodes[env].append(spent)
            correct += trajectory.score.correct
    lexicon = lexicon_of(shop.catalog)
    words = [timed(lexicon.looks_like_a_name, f"wrod{n}ly")[0] for n in range(9)]
    played = memory()["private_mb"]
    all_of_them = [spent for some in episodes.values() for spent in some[1:]]
    return {
        "catalog": folder.name,
        "products": shop.catalog.size,
        "names": len(shop.catalog.features),
        "brands": len(shop.catalog.brands),
        "open_s": round(opened, 2),
        "first_episode_s": round(episodes[next(iter(episodes))][0], 2),
        "reset_ms_p50": round(1000 * float(np.median(resets)), 1),
        "episode_ms_p50": round(1000 * float(np.median(all_of_them)), 1),
        "episode_ms_p95": round(1000 * float(np.quantile(all_of_them, 0.95)), 1),
        "new_word_ms": round(1000 * float(np.median(words)), 1),
        "opened_mb": round(held - before),
        "played_mb": round(played - before),
        "private_mb": round(played),
        "episodes": sum(map(len, episodes.values())),
        "correct": correct,
    }


def index(folder: Path) -> float:
    """Return the seconds that making the tables of a catalog's names takes."""
    listed = load_shop(folder).catalog.features
    return round(sum(timed(make, listed)[0] for make in (table_of, names.rows_by_name)), 2)


def together(folder: Path, processes: int) -> int:
    """Return the megabytes that some processes which have played on a catalog take together."""
    command = [sys.executable, __file__, "--only", str(folder)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    kilobytes = 0
    for one in started:
        assert one.stdout and one.stdout.readline()  # it has played, and waits
    for one in started:
        lines = Path(f"/proc/{one.pid}/smaps_rollup").read_text("utf-8").splitlines()
        kilobytes += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    for one in started:
        one.communicate("")
    return round(kilobytes / 1024)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folders", nargs="*", type=Path)
    options.add_argument("--many", nargs="*", type=int, default=[], help="products of catalogs to make")
    options.add_argument("--work", type=Path, default=Path("many-names"), help="keeps what is made")
    options.add_argument("--out", type=Path, default=HERE / "names.csv")
    options.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.only:
        print(json.dumps(measure(asked.folders[0])), flush=True)
        sys.stdin.read()
        return
    rows: dict[str, dict[str, Any]] = {}
    if asked.out.is_file():
        with asked.out.open(encoding="utf-8", newline="") as file:
            rows = {row["catalog"]: row for row in csv.DictReader(file)}
    for size in asked.many:
        build_shop(many(size), asked.work / f"many_{size}", tell=print)
    for folder in [*asked.folders, *(asked.work / f"many_{size}" for size in asked.many)]:
        command = [sys.executable, __file__, "--only", str(folder)]
        for _ in range(2):  # files are in the page cache then, and names are indexed
            run = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True
            )
        sums = {f"together_{count}_mb": together(folder, count) for count in (1, PROCESSES)}
        rows[folder.name] = json.loads(run.stdout) | {"index_s": index(folder)} | sums
        print(rows[folder.name], flush=True)
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, list(next(reversed(rows.values()))), lineterminator="\n")
        table.writeheader()
        table.writerows(rows.values())


if __name__ == "__main__":
    main()
