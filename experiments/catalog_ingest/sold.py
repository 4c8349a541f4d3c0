"""What can be sold of the products of the public catalog, and why the others cannot, as sold.csv.

    python experiments/catalog_ingest/sold.py --data FOLDER     # half a minute

FOLDER holds amazon.csv, the Amazon half of the public Walmart-Amazon benchmark (data/ccer/D8 of AI-team-UoA/pyJedAI on
GitHub). `known` are products of which the source says a thing, `left out` those that cannot be sold, by one reason
each, `dropped` rows that give an attribute of which no value was taken.
"""

import argparse
import csv
import tempfile
from pathlib import Path

from ecomlab.catalog.ingest import build_products, guess, open_source
from ecomlab.catalog.products import open_products
from ecomlab.catalog.real import catalog_of, left_out
from ecomlab.catalog.support import unsupported
from ecomlab.files import replacing

HERE = Path(__file__).resolve().parent
COLUMNS = ("what", "name", "count")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, required=True, help="folder of amazon.csv")
    options.add_argument("--out", type=Path, default=HERE / "sold.csv")
    asked = options.parse_args()
    source = open_source(str(asked.data / "amazon.csv"))
    with tempfile.TemporaryDirectory() as folder:
        report = build_products(source, Path(folder) / "out", guess(source.sample()))
        products = open_products(Path(folder) / "out")
        catalog = catalog_of(products)
        rows = [("products", "", report.products), ("sold", "", catalog.size)]
        rows += [("left out", reason, count) for reason, count in left_out(products).items()]
        rows += [("known", name, count) for name, count in sorted(report.coverage.items())]
        rows += [("dropped", name, count) for name, count in sorted(report.dropped.items())]
    rows.append(("drawable types", "", len(catalog.drawable_types)))
    rows.append(("environments that are off", "", len(unsupported(catalog))))
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
