"""Coverage of the frontier's intervals, by simulation, where the truth is known.

    python experiments/bench/frontier_coverage.py [--searches 1000]

Simulates the search of `ecomlab frontier` for players whose success at each level is given, and writes
frontier_coverage.csv: a row per truth and share, with the level truly passed, the coverage of the interval (nominally
95%), the interval's mean width in levels, how often the estimate is exact, and the episodes that a search takes.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from ecomlab.evaluation.frontier import BATCH, SHARES, TOP, Counts, ask, passed
from ecomlab.seeding import rng

D = np.arange(TOP + 1.0)


def logistic(middle: float, slope: float) -> np.ndarray:
    """Success that falls from 1 to 0 around `middle`, over about 4 `slope` levels."""
    return 1 / (1 + np.exp((D - middle) / slope))


TRUTHS = {
    "logistic, steep": logistic(4.5, 0.5),
    "logistic": logistic(6, 1.2),
    "logistic, late": logistic(10, 1.5),
    "logistic, slow": logistic(7, 4),
    "linear": 1 - D / (TOP + 1),
    "flat at 1": np.ones(TOP + 1),
    "flat at .95": np.full(TOP + 1, 0.95),
    "flat at .9": np.full(TOP + 1, 0.9),
    "flat at .89": np.full(TOP + 1, 0.89),
    "flat at .5": np.full(TOP + 1, 0.5),
    "flat at .49": np.full(TOP + 1, 0.49),
    "flat at .02": np.full(TOP + 1, 0.02),
    "cliff after 3": np.where(D <= 3, 0.99, 0.05),
    "cliff from .9 to .5 after 5": np.where(D <= 5, 0.9, 0.5),
    "cliff from .91 to .49 after 7": np.where(D <= 7, 0.91, 0.49),
    "stairs": np.repeat([0.98, 0.9, 0.7, 0.5, 0.3], [2, 3, 3, 3, 2]),
    "a rise of .06 at 5": np.array([0.99, 0.97, 0.95, 0.9, 0.6, 0.66, 0.5, 0.3, 0.2, 0.1, 0.05, 0, 0]),
}


def search(success: np.ndarray, random: np.random.Generator) -> tuple[Counts, int]:
    """Simulate one search: its counts, and the number of episodes."""
    counts, asked = Counts(), 0
    while levels := ask(counts, asked):
        for level in levels:
            counts = counts.add(level, list(random.random(BATCH) < success[level]))
        asked += BATCH * len(levels)
    return counts, asked


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--searches", type=int, default=1000)
    searches = parser.parse_args().searches
    rows = []
    for name, success in TRUTHS.items():
        found = [search(success, rng("frontier coverage", name, i)) for i in range(searches)]
        for share in SHARES:
            truth = int((success >= share).cumprod().sum()) - 1
            ends = [passed(counts, share) for counts, _ in found]
            rows.append(
                {
                    "truth": name,
                    "share": share,
                    "level": truth,
                    "searches": searches,
                    "coverage": round(float(np.mean([end.low <= truth <= end.high for end in ends])), 4),
                    "width": round(float(np.mean([end.high - end.low for end in ends])), 2),
                    "exact": round(float(np.mean([end.level == truth for end in ends])), 3),
                    "episodes": round(float(np.mean([asked for _, asked in found]))),
                }
            )
            print(rows[-1], flush=True)
    with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
