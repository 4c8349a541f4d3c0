"""Small product files with one oddity each, as shops: which environments are on, and how the players that listen do.

python experiments/catalog_ingest/cases.py [FOLDER ...]; writes cases.csv. By default the files are those of the tests.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd

import ecomlab
from ecomlab.catalog import build_shop
from ecomlab.catalog.embedders import usual_embedder
from ecomlab.catalog.ingest import build_products, open_source
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of
from ecomlab.catalog.support import unsupported

FILES = "tests/catalog/ingest/cases"
PLAYERS = ("oracle", "reference", "courteous")
LEVELS, TASKS = (0, 1, 4), 4
"""Levels, and tasks of each environment at each."""


def main() -> None:
    folders = sys.argv[1:] or [FILES]
    rows = []
    for file in sorted(file for folder in folders for file in Path(folder).rglob("*.csv")):
        with tempfile.TemporaryDirectory() as temporary:
            report = build_products(open_source(str(file)), Path(temporary))
            row = {"file": file.stem, "rows": report.rows, "products": report.products}
            try:
                build_shop(
                    catalog_of(open_products(Path(temporary))), Path(temporary), usual_embedder("lexical")
                )
            except ValueError as error:
                rows.append({**row, "reason": str(error)})
                continue
            shop = ecomlab.load_shop(temporary)
            on = [env for env in ecomlab.ENVIRONMENTS if env not in unsupported(shop.catalog)]
            for player in PLAYERS:
                found = ecomlab.evaluate(player, env=on, difficulty=LEVELS, tasks=TASKS, shop=temporary)
                row[player] = found.cells.success_of_all.min()
            rows.append({**row, "environments": len(on), "sold": shop.catalog.size})
            print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(Path(__file__).with_suffix(".csv"), index=False)


if __name__ == "__main__":
    main()
