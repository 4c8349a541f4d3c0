"""The certificate on real products: every law on three catalogs, a row for each environment and level, refused or not.

    python experiments/catalog_certificate/certify.py --data FOLDER                    # 100 seeds: a night of one core
    python experiments/catalog_certificate/certify.py --seeds 2 --levels 6 --out /tmp/x  # without amazon.csv

FOLDER holds amazon.csv, the Amazon half of the public Walmart-Amazon benchmark (data/ccer/D8 of AI-team-UoA/pyJedAI on
GitHub): 22,074 products without a category column. The others are exports that the tests make: a shop's with a row a
variant (*variants*), and a Shopify export of one vendor's apparel with real stock (*apparel*). Finished cells are kept
in --out by code, catalog and counts, and the same command goes on with the others. Writes NAME.json, the certificate as
`ecomlab certify --catalog` writes it, and cells.csv and laws.csv of all catalogs that are there, but those whose
environments have other versions now.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ecomlab import ENVIRONMENTS
from ecomlab.catalog import build_shop, load_shop
from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.catalog.ingest.build import VERSION
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.files import replacing
from ecomlab.lab.provenance import sha256
from ecomlab.laws import report
from ecomlab.options import levels
from ecomlab.seeding import digest

MAKERS, NAMES = 10, 12
"""Of the export of variants: enough for eight visits of a type by different makers, as in a large shop. Of four makers
a guesser is right so often that it earns more than who fails honestly, which NOT GAMEABLE forbids."""
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHOPS = ("variants", "apparel", "amazon")
SHARES = ("solver", "fair", "courteous", "noisy", "naive", "chance", "turns", "reward")


def sources(data: Path | None, work: Path) -> Iterator[tuple[str, Path]]:
    """Name the files of products: exports that the tests make, and amazon.csv where `data` is given."""
    sys.path.insert(0, str(ROOT / "tests"))
    from ingested import apparel_export, shop_export

    work.mkdir(parents=True, exist_ok=True)
    for name, text in (("variants", shop_export(MAKERS, NAMES)), ("apparel", apparel_export())):
        (work / f"{name}.csv").write_text(text)
        yield name, work / f"{name}.csv"
    if data is None:
        print(
            "without --data FOLDER amazon.csv is left out; it is data/ccer/D8 of AI-team-UoA/pyJedAI on GitHub"
        )
    else:
        yield "amazon", data / "amazon.csv"


def built(file: Path, folder: Path) -> Path:
    """Build a catalog with the mapping that is guessed. One that is there is opened if its file has not changed, and if
    this code makes the same of it; otherwise it is built again."""
    source, state = open_source(str(file)), folder / "certified_from"
    made_of = digest([VERSION, sha256(file)])
    if (folder / "manifest.json").exists() and state.exists() and state.read_text() == made_of:
        if load_shop(folder).catalog.fingerprint == catalog_of(open_products(folder)).fingerprint:
            return folder
        print(f"{folder}: this code makes another catalog of {file}; built again")
    build_products(source, folder, guess(source.sample()))
    build_shop(catalog_of(open_products(folder)), folder)
    state.write_text(made_of)
    return folder


def of_today(name: str, certificate: dict[str, Any]) -> bool:
    """Tell whether a certificate that this run did not make is of these environments; say so where it is not."""
    others = [
        f"{env} {version}"
        for env, version in certificate["environments"].items()
        if env not in ENVIRONMENTS or ENVIRONMENTS[env].version != version
    ]
    if others:
        print(
            f"{name}.json is left out of the tables: it is of other versions ({', '.join(others)}). Make it again"
        )
    return not others


def cells_of(name: str, certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write a certificate's rows as those of a table, refused ones too."""
    for row in certificate["rows"]:
        best = {kind: max(row[kind].values(), default=None) for kind in ("blind", "positional")}
        refused = {"refused": sum(row["refused"].values()), "why": "; ".join(row["refused"])}
        counts = {
            "catalog": name,
            "env": row["env"],
            "d": row["d"],
            "seeds": row["seeds"],
            "others": row["others"],
        }
        yield (
            counts | refused | {share: row[share] for share in SHARES} | best | {"misses": len(row["misses"])}
        )


def laws_of(name: str, certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write what a certificate says of each law and environment as rows of a table."""
    for law, states in certificate["laws"].items():
        for env, state in states.items():
            yield {"catalog": name, "law": law, "env": env, "state": state}


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of amazon.csv")
    parser.add_argument("--shops", nargs="+", choices=SHOPS, default=SHOPS, help="which of them")
    parser.add_argument("--seeds", type=int, default=100, help="tasks a cell, for every player")
    parser.add_argument("--levels", default="0:12")
    parser.add_argument("--env", nargs="+", default=list(ENVIRONMENTS))
    parser.add_argument("--leaks", type=int, default=100, help="tasks a level for the search for leaks")
    parser.add_argument("--questions", type=int, default=1, help="customers each question is asked of")
    parser.add_argument("--truths", type=int, default=6, help="messages with something wrong, of each frame")
    parser.add_argument("--talks", type=int, default=200, help="talkative episodes an environment")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "catalog_certificate")
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, file in sources(asked.data, asked.work):
        if name not in asked.shops:
            continue
        folder = built(file, asked.work / name)
        report.certify(
            asked.env, levels(asked.levels), asked.seeds, asked.seeds, asked.leaks, Console(width=140),
            workers=asked.workers, json_file=asked.out / f"{name}.json", ask=asked.questions,
            truths=asked.truths, talks=asked.talks, catalog=str(folder),
        )  # fmt: skip
    there = {path.stem: json.loads(path.read_text()) for path in sorted(asked.out.glob("*.json"))}
    found = {name: one for name, one in there.items() if of_today(name, one)}
    write(asked.out / "cells.csv", [row for name, one in found.items() for row in cells_of(name, one)])
    write(asked.out / "laws.csv", [row for name, one in found.items() for row in laws_of(name, one)])


if __name__ == "__main__":
    main()
