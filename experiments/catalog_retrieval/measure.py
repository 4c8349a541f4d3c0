"""Search for one shop's titles among the real products of another, whose matches people have checked, as results.csv.

    python experiments/catalog_retrieval/measure.py --data FOLDER         # lexical and MiniLM; 5 minutes on one core
    python experiments/catalog_retrieval/measure.py --data FOLDER --embedder lexical

FOLDER holds amazon.csv, walmart.csv and gt.csv, the public Walmart-Amazon benchmark (data/ccer/D8 of
AI-team-UoA/pyJedAI on GitHub). Each pair of gt.csv is a query; the table counts them. Titles alone are embedded and
compared. Rows of embedders that are not asked for stay. So small a catalog is searched exactly; the rows of an
approximate index show what one costs where it is needed.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from ecomlab.catalog.embedders import embedder_named
from ecomlab.laws.catalog_benchmark import update
from ecomlab.laws.retrieval import measure, public_data, read_matches

HERE = Path(__file__).resolve().parent
EMBEDDERS = ("lexical", "minilm")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the three files")
    parser.add_argument("--embedder", nargs="+", default=EMBEDDERS, help="default: lexical minilm")
    parser.add_argument("--out", type=Path, default=HERE / "results.csv")
    arguments = parser.parse_args()
    matches = read_matches(public_data(arguments.data, "amazon.csv", "walmart.csv", "gt.csv"))
    rows = [asdict(row) for name in arguments.embedder for row in measure(matches, embedder_named(name))]
    update(arguments.out, rows, ("products", "embedder"))
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
