"""Search for one shop's titles among the real products of another, whose matches people have checked, as results.csv.

    python experiments/catalog_retrieval/measure.py --data FOLDER         # lexical and MiniLM; 5 minutes on one core
    python experiments/catalog_retrieval/measure.py --data FOLDER --embedder lexical

FOLDER holds amazon.csv, walmart.csv and gt.csv, the public Walmart-Amazon benchmark (data/ccer/D8 of
AI-team-UoA/pyJedAI on GitHub). Each pair of gt.csv is a query; the table counts them. Titles alone are embedded and
compared. So small a catalog is searched exactly; the rows of an approximate index show what one costs where it is
needed.
"""

import argparse
import csv
from dataclasses import asdict
from pathlib import Path

from ecomlab.audit.retrieval import measure, read_matches
from ecomlab.catalog.embedders import embedder_named
from ecomlab.files import replacing

HERE = Path(__file__).resolve().parent
EMBEDDERS = ("lexical", "minilm")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the three files")
    parser.add_argument("--embedder", nargs="+", default=EMBEDDERS, help="default: lexical minilm")
    parser.add_argument("--out", type=Path, default=HERE / "results.csv")
    arguments = parser.parse_args()
    matches = read_matches(arguments.data)
    rows = [asdict(row) for name in arguments.embedder for row in measure(matches, embedder_named(name))]
    with replacing(arguments.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
