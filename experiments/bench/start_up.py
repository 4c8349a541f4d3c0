"""Seconds of the processor until a fresh process is ready: median and range of eleven processes for each beginning.

python experiments/bench/start_up.py [--csv FILE]; OMP_NUM_THREADS is left out of their environment.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pandas as pd

COMMAND = str(Path(sys.executable).with_name("ecomlab"))
EPISODE = (
    "import ecomlab; shop = ecomlab.load_shop(); "
    "ecomlab.Episode(ecomlab.make_task('CART', 2, seed=0, shop=shop), shop)"
)
BEGINNINGS = {
    "ecomlab --version": (0.15, [COMMAND, "--version"]),
    "ecomlab --help": (0.35, [COMMAND, "--help"]),
    "from ecomlab import make_task": (0.40, [sys.executable, "-c", "from ecomlab import make_task"]),
    "first episode": (0.60, [sys.executable, "-c", EPISODE]),
}
"""The aim in seconds, and the command."""


def seconds(command: list[str]) -> float:
    """Run a command; return the processor's seconds that it took."""
    kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=kept)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path)
    csv = parser.parse_args().csv
    rows = []
    for name, (aim, command) in BEGINNINGS.items():
        seconds(command)  # fills the disk's caches
        taken = pd.Series([seconds(command) for _ in range(11)])
        rows.append((name, aim, taken.median(), taken.min(), taken.max()))
    table = pd.DataFrame(rows, columns=["beginning", "aim", "median", "lowest", "highest"]).round(3)
    print(table.to_string(index=False))
    if csv:
        table.to_csv(csv, index=False)


if __name__ == "__main__":
    main()
