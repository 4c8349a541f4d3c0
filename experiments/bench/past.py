"""What episodes cost now and at an earlier commit, in one run: `ecomlab bench env` of both versions, in turn.

    python experiments/bench/past.py COMMIT OUT.csv [--difficulty 0 4 8 12] [--size 20000] [--episodes 20] [--rounds 3]

The commit is checked out beside the repository for as long as it takes; both versions run in this Python. Seconds are
the processor's in both. A row holds the milliseconds of an environment at a level, medians over the rounds, and the
ratios of now to then with the lowest and highest of a round. Tasks need not be alike: since then they have changed.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("reset_ms", "verify_ms", "episode_ms")
RUN = "import runpy, time; time.perf_counter = time.process_time; runpy.run_module('ecomlab', run_name='__main__')"
"""Both versions by the processor's clock: older ones read the wall's."""
Cell = tuple[str, int, str]


def measured(folder: Path, arguments: list[str], out: Path) -> dict[Cell, float]:
    """Time the version in a folder: milliseconds by environment, level and phase."""
    here = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, "bench", "env", *arguments, "--json", str(out)]
    subprocess.run(command, cwd=folder, env=here, check=True, stdout=subprocess.DEVNULL)
    timings = json.loads(out.read_text())["timings"]
    return {(one["env"], one["d"], phase): one[phase][1] for one in timings for phase in PHASES}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("out", type=Path)
    parser.add_argument("--difficulty", nargs="+", default=["0", "4", "8", "12"])
    parser.add_argument("--size", default="20000")
    parser.add_argument("--episodes", default="20")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    arguments = ["--size", given.size, "--episodes", given.episodes]
    arguments += [word for d in given.difficulty for word in ("--difficulty", d)]
    now, then = defaultdict[Cell, list[float]](list), defaultdict[Cell, list[float]](list)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "then"
        subprocess.run(["git", "worktree", "add", "--detach", folder, given.commit], cwd=ROOT, check=True)
        try:
            for _ in range(given.rounds):
                for found, where in ((then, folder), (now, ROOT)):
                    for cell, value in measured(where, arguments, Path(scratch) / "out.json").items():
                        found[cell].append(value)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["env", "d", "phase", "then", "now", "ratio", "lowest", "highest"])
        for cell in sorted(set(now) & set(then)):
            ratios = [after / before for after, before in zip(now[cell], then[cell], strict=True)]
            values = [*map(statistics.median, (then[cell], now[cell], ratios)), min(ratios), max(ratios)]
            writer.writerow(
                [cell[0], cell[1], cell[2].removesuffix("_ms"), *(f"{one:.3g}" for one in values)]
            )


if __name__ == "__main__":
    main()
