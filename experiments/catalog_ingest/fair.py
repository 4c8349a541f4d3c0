"""How often the reference player, who sees what a model sees, is right on a real catalog: a row per cell.

    python experiments/catalog_ingest/fair.py CATALOG_FOLDER --seeds 25

CATALOG_FOLDER is what `ecomlab catalog build` wrote. Rows that are there are kept, so that it can be interrupted.
"""

import argparse
import csv
from pathlib import Path

from ecomlab import ENVIRONMENTS, TaskError, make_task, play
from ecomlab.catalog import LexicalEmbedder, SearchEngine, Shop
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.catalog.support import unsupported

COLUMNS = ("env", "d", "seeds", "correct", "unscored", "refused", "why")
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
    row = {"env": env, "d": d, "seeds": seeds, "correct": correct, "unscored": unscored, "refused": refused}
    return row | {"why": " / ".join(missed)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, default=25)
    options.add_argument("--out", type=Path, default=HERE / "fair.csv")
    asked = options.parse_args()
    shop = shop_of(asked.folder)
    off = unsupported(shop.catalog)
    done = list(csv.DictReader(asked.out.open())) if asked.out.exists() else []
    there = {(row["env"], int(row["d"])) for row in done}
    for d in range(13):
        for env in ENVIRONMENTS:
            if (env, d) not in there:
                row = (
                    {"env": env, "d": d, "why": off[env]}
                    if env in off
                    else measure(env, d, asked.seeds, shop)
                )
                with asked.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if file.tell() == 0:
                        writer.writeheader()
                    writer.writerow(row)


if __name__ == "__main__":
    main()
