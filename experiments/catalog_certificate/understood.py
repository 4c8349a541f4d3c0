"""How many questions of the banks the customers of a real catalog understand, as understood.csv: a row per bank.

    python experiments/catalog_certificate/understood.py NAME=FOLDER --times 1     # two minutes of a core

FOLDER is what `ecomlab catalog build` wrote, or a number of generated products. Rows of other names stay. The
certificate asks the same questions of twice as many customers, and counts them by environment.
"""

import argparse
import csv
from pathlib import Path

from ecomlab import load_shop
from ecomlab.audit import understanding
from ecomlab.files import replacing

HERE = Path(__file__).resolve().parent
COLUMNS = ("catalog", "shop", "bank", "times", "asks", "exact", "denied")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("catalogs", nargs="+", metavar="NAME=FOLDER")
    options.add_argument("--times", type=int, default=1)
    options.add_argument("--out", type=Path, default=HERE / "understood.csv")
    asked = options.parse_args()
    for catalog in asked.catalogs:
        name, _, where = catalog.partition("=")
        shop = load_shop(size=int(where)) if where.isdigit() else load_shop(where)
        made = [
            {
                "catalog": name,
                "shop": shop.fingerprint,
                "bank": one.bank,
                "times": asked.times,
                "asks": one.asks,
                "exact": f"{one.exact:.4f}",
                "denied": one.denied,
            }
            for one in understanding.measure(shop, asked.times)
            if one.group == "all"
        ]
        old = list(csv.DictReader(asked.out.open(encoding="utf-8"))) if asked.out.exists() else []
        rows = [row for row in old if row["catalog"] != name] + made
        with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main()
