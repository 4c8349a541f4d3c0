"""How often the reference player, who sees what a model sees, is right on a real catalog: a row per cell.

    python experiments/catalog_ingest/fair.py CATALOG_FOLDER --seeds 25

CATALOG_FOLDER is what `ecomlab catalog build` wrote. It can be interrupted: rows that are there are kept where shop,
version of the environment and number of seeds are the same, and the others are dropped and played again.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from ecomlab import ENVIRONMENTS, TaskError, make_task, play
from ecomlab.audit.retrieval import WITHOUT
from ecomlab.catalog import LexicalEmbedder, SearchEngine, Shop
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.catalog.support import unsupported
from ecomlab.files import replacing

MADE_WITH = ("shop", "version", "seeds")
COLUMNS = ("env", "d", *MADE_WITH, "correct", "unscored", "refused", "why")
HERE = Path(__file__).parent


def shop_of(folder: Path) -> Shop:
    """Open a product table as a shop with a lexical index."""
    catalog, embedder = catalog_of(open_products(folder)), LexicalEmbedder()
    return Shop(catalog, SearchEngine(catalog, embedder))


def measure(env: str, d: int, seeds: int, shop: Shop) -> dict[str, object]:
    """Play the first `seeds` tasks of a level."""
    correct = unscored = refused = 0
    missed = []
    for seed in range(seeds):
        try:
            trajectory = play(ENVIRONMENTS[env].reference_player(shop), make_task(env, d, seed, shop), shop)
        except TaskError:
            refused += 1
            continue
        correct += trajectory.score.correct
        unscored += trajectory.score.value != trajectory.score.value
        missed += [] if trajectory.score.correct else [f"{seed}: {trajectory.score.why.partition(';')[0]}"]
    return {"correct": correct, "unscored": unscored, "refused": refused, "why": " / ".join(missed)}


def made_with(env: str, seeds: int, shop: Shop) -> dict[str, object]:
    """Say what a row depends on."""
    return {"shop": shop.fingerprint, "version": ENVIRONMENTS[env].version, "seeds": seeds}


def kept(rows: Sequence[Mapping[str, str]], seeds: int, shop: Shop) -> list[Mapping[str, str]]:
    """Return the rows that would be made with the same today."""

    def is_of_today(row: Mapping[str, str]) -> bool:
        env = row["env"]
        now = made_with(env, seeds, shop) if env in ENVIRONMENTS else {"env": None}
        return all(row.get(name) == str(value) for name, value in now.items())

    return [row for row in rows if is_of_today(row)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--seeds", type=int, default=25)
    options.add_argument("--out", type=Path, default=HERE / "fair.csv")
    asked = options.parse_args()
    if asked.folder is None:
        options.error(f"name the folder of a catalog, built from amazon.csv, say: {WITHOUT}")
    shop = shop_of(asked.folder)
    off = unsupported(shop.catalog)
    rows = list(csv.DictReader(asked.out.open(encoding="utf-8"))) if asked.out.exists() else []
    done = kept(rows, asked.seeds, shop)
    print(
        f"{len(done)} rows kept; {len(rows) - len(done)} of another shop, version or number of seeds dropped"
    )
    with replacing(asked.out) as draft:
        write(draft, done, "w")
    there = {(row["env"], int(row["d"])) for row in done}
    for d in range(13):
        for env in ENVIRONMENTS:
            if (env, d) not in there:
                found = {"why": off[env]} if env in off else measure(env, d, asked.seeds, shop)
                write(asked.out, [{"env": env, "d": d, **made_with(env, asked.seeds, shop), **found}], "a")


def write(path: Path, rows: Sequence[Mapping[str, object]], mode: str) -> None:
    """Write rows as CSV, with the header where the file is begun; `mode` is "w" or "a"."""
    with path.open(mode, encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if mode == "w":
            table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
