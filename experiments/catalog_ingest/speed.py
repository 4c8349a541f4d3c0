"""How fast product files are read, and in how much memory: a row per file, as speed.csv.

    python experiments/catalog_ingest/speed.py                  # files that this script makes: some minutes
    python experiments/catalog_ingest/speed.py --large 1000     # a thousand MB as well: half an hour of a core
    python experiments/catalog_ingest/speed.py --data FOLDER    # amazon.csv as well

FOLDER holds amazon.csv, the Amazon half of the public Walmart-Amazon benchmark (data/ccer/D8 of AI-team-UoA/pyJedAI on
GitHub). The files that are made have the columns of owlgebra-ai/Amazebay-catalog-2M, with titles, bullets, descriptions
and details of which no two are equal, and the mess of real ones: tags and entities, letters encoded twice, prices as
text and ranges, broken JSON, rows that come again; one field in ten is a mess, in the file `clean` none. Each build has
a process of its own and one thread. Seconds are of the processor, from opening the source to the report; `private_mb`
is the most memory that the process had for itself, without pages of files, looked at ten times a second. Of several
runs (--repeats) the fastest counts, and the slowest is named. Rows of files that are not measured stay.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, generate
from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.files import replacing
from ecomlab.seeding import rng

HERE = Path(__file__).resolve().parent
COLUMNS = (
    *("file", "mb", "rows", "set_aside", "repaired", "runs", "cpu_s", "rows_per_cpu_s"),
    *("slowest_rows_per_cpu_s", "private_mb"),
)
SENTENCES = (
    "Designed by {brand} for everyday use, the {feature} {kind} keeps working when others give up after {n} weeks",
    "Comes in {value} and measures {n} x {m} cm, with a tolerance of {k} percent on either side",
    "What's in the box: one {kind}, a manual in {k} languages, {m} screws and a warranty card",
    "Compatible with most {kind}s made after 20{k}, including the {feature} {n} and the {feature} {m} series",
    "Tested for {n}{m} hours at {k} degrees; {brand} answers questions within {k} hours",
    "Wipe with a damp cloth. Do not use near open flames. Keep away from children under {k} years",
    "Our customers rate {brand} {n} of 100 for durability, and {m} of 100 say they would buy a {kind} again",
)
DETAILS = (
    "Item Weight",
    "Color",
    "Material",
    "Item model number",
    "Manufacturer",
    "Country of Origin",
    "Date First Available",
)
MESS = 10
"""One in so many fields of a messy file is a mess."""


def rows(mb: float, messy: bool, catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Make rows, in JSON about `mb` million characters; any two differ in title, text and details."""
    random, written, number = rng("speed", messy), 0, 0
    while written < mb * 1e6:
        row = _row(number, catalog, random)
        if messy:
            _spoil(row, random)
        yield row
        written += len(json.dumps(row)) + 1
        number += int(not messy or random.random() > 1 / 200)  # else it comes again


def _row(number: int, catalog: Catalog, random: np.random.Generator) -> dict[str, Any]:
    at = number % catalog.size
    record = catalog.record(at)
    brand, feature, kind = str(catalog.brand(at)), str(catalog.feature(at)), str(record["type"])
    value = str(next(iter(record["attributes"].values()), "Black"))
    drawn = random.integers(2, 97, (9, 3)).tolist()
    said = [
        sentence.format(brand=brand, feature=feature, kind=kind.lower(), value=value, n=n, m=m, k=k)
        for sentence, (n, m, k) in zip(SENTENCES, drawn)
    ]
    n, m, k = drawn[-1]
    given = (
        f"{n / 10} pounds",
        value,
        "Cotton",
        f"{brand[:3].upper()}-{number}",
        brand,
        "Somewhere",
        f"May {k % 28 + 1}, 20{k}",
    )
    return {
        "main_category": "All",
        "title": f"{brand} {feature} {kind} {brand[:2].upper()}{number} - {value}, {n} Inch, Pack of {m} (20{k} Line)",
        "average_rating": round(1 + (n * m) % 40 / 10, 1),
        "rating_number": n * m * k,
        "features": said[:5],
        "description": [f"{' '.join(said[5:])}. No. {number}."],
        "price": f"{n}.{m:02d}",
        "store": brand,
        "categories": ["All", kind + "s", kind],
        "details": json.dumps(dict(zip(DETAILS, given))),
        "parent_asin": f"B{number:09d}",
    }


def _spoil(row: dict[str, Any], random: np.random.Generator) -> None:
    n = int(random.integers(0, 2**20))
    for place, spoil in enumerate(
        (
            lambda: row.update(title=row["title"].replace(" - ", " &amp; ").replace("Pack", "<b>Pack</b>")),
            lambda: row.update(title=row["title"].replace("Inch", "Inch\u00c2\u00ae \u2013 caf\u00c3\u00a9")),
            lambda: row.update(features=[f"<p>{one}<br>&bull; and</p>" for one in row["features"]]),
            lambda: row.update(
                description=[row["description"][0].replace("flames", "fl\u00e2\u0080\u0099mes \U0001f525")]
            ),
            lambda: row.update(
                price=("None", f"${row['price']}", f"{row['price']} - 99.00", f"from ${row['price']}")[n % 4]
            ),
            lambda: row.update(details=(row["details"][:-9], row["details"].replace('"', "'"))[n % 2]),
            lambda: row.update(store=f"Visit the {row['store']} Store"),
            lambda: row.update(average_rating=(None, "4.1 out of 5 stars")[n % 2]),
        )
    ):
        if (n >> place) % 2 and random.random() < 2 / MESS:
            spoil()


def private_mb() -> float:
    """Memory that this process shares with nobody and no file, in MB."""
    kinds = ("Anonymous:", "Swap:")
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(kinds)) / 1024


def build(path: Path) -> dict[str, Any]:
    """Build the products of a file, in this process."""
    seen = [private_mb()]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            seen[0] = max(seen[0], private_mb())

    threading.Thread(target=watch, daemon=True).start()
    began = time.process_time()
    with tempfile.TemporaryDirectory(dir=path.parent) as out:
        source = open_source(str(path))
        report = build_products(source, Path(out) / "out", guess(source.sample()))
    seconds = time.process_time() - began
    done.set()
    return {
        "file": path.name,
        "mb": round(path.stat().st_size / 1e6),
        "rows": report.rows,
        "set_aside": report.set_aside,
        "repaired": report.repaired,
        "cpu_s": round(seconds, 1),
        "rows_per_cpu_s": round(report.rows / seconds),
        "private_mb": round(seen[0]),
    }


def written(name: str, mb: float, work: Path) -> Path:
    """Write a file, unless it is there."""
    path = work / f"{name}_{mb:g}mb.jsonl"
    if not path.exists():
        with replacing(path) as draft, draft.open("w", encoding="utf-8") as file:
            for row in rows(mb, name == "messy", generate(50_000)):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def repeated(path: Path, runs: int) -> dict[str, Any]:
    """Build the products of a file in so many processes, one after the other: the fastest, and how slow the slowest
    was."""
    command = [sys.executable, __file__, "--only", str(path)]
    one_thread = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    found = []
    for _ in range(runs):
        run = subprocess.run(command, env=one_thread, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(run.stdout))
    by_speed = sorted(found, key=lambda one: -one["rows_per_cpu_s"])
    slowest, most = by_speed[-1]["rows_per_cpu_s"], max(one["private_mb"] for one in found)
    return by_speed[0] | {"runs": runs, "slowest_rows_per_cpu_s": slowest, "private_mb": most}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, help="folder of amazon.csv")
    options.add_argument(
        "--mb", type=float, default=50, help="size of the clean and the messy file; 0 leaves them out"
    )
    options.add_argument("--large", type=float, help="size of a further messy file")
    options.add_argument("--repeats", type=int, default=1, help="runs of each file; the fastest counts")
    options.add_argument("--work", type=Path, default=HERE.parents[1] / "build" / "catalog_ingest_speed")
    options.add_argument("--out", type=Path, default=HERE / "speed.csv")
    options.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.only:
        print(json.dumps(build(asked.only)))
        return
    asked.work.mkdir(parents=True, exist_ok=True)
    files = [written(name, asked.mb, asked.work) for name in ("clean", "messy") if asked.mb]
    if asked.large:
        files.append(written("messy", asked.large, asked.work))
    if asked.data:
        link = asked.work / "amazon.csv"
        link.unlink(missing_ok=True)
        link.symlink_to((asked.data / "amazon.csv").resolve(strict=True))
        files.append(link)
    else:
        print(
            "without --data FOLDER amazon.csv is left out; it is data/ccer/D8 of AI-team-UoA/pyJedAI on GitHub"
        )
    made: dict[str, dict[str, Any]] = {}
    if asked.out.is_file():
        with asked.out.open(encoding="utf-8", newline="") as file:
            made = {row["file"]: row for row in csv.DictReader(file)}
    for path in files:
        made[path.name] = repeated(path, asked.repeats)
        print(made[path.name], flush=True)
        with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(made.values())


if __name__ == "__main__":
    main()
