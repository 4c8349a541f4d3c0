"""Make runs of the study again, with the code of this clone, and compare their tables with the committed ones.

    python experiments/frontier/again.py S1/adaptive-novice-0 [...] [--work FOLDER]

Prints, for each run, which tables are equal to the byte. The policies stay in WORK/policies, as what any command takes
for weights. Of config.json and provenance.json the folder, the commit and the versions may differ.
"""

import argparse
import os
from pathlib import Path

from study import FRESH, RECOVERY, RUNS
from trials import HERE, Run, imitated, keep

from ecomlab.catalog import Shop, load_shop
from ecomlab.starters.policy import save_policy
from ecomlab.training.config import TrainConfig
from ecomlab.training.run import train

OTHERWISE = ("config.json", "provenance.json", "seconds.json")


def again(run: Run, work: Path, shop: Shop) -> dict[str, bool]:
    """Make a run again, keep its policy, and tell of each committed table whether the new one is the same."""
    folder, results = work / "runs" / run.name, work / "results"
    if run.imitate:
        policy = imitated(run, folder, shop)
    else:
        policy = train(TrainConfig(out=str(folder), **run.config), lambda event: None).policy()
    save_policy(work / "policies" / Path(run.name).name, policy)
    keep(run, policy, folder, results, shop)
    tables = [file for file in sorted((HERE / "results" / run.name).iterdir()) if file.name not in OTHERWISE]
    return {file.name: file.read_bytes() == (results / run.name / file.name).read_bytes() for file in tables}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="+")
    parser.add_argument("--work", type=Path, default=HERE / "runs" / "again")
    asked = parser.parse_args()
    known = {run.name: run for run in (*RUNS, *FRESH, *RECOVERY)}
    if unknown := [name for name in asked.run if name not in known]:
        parser.error(
            f"no run {', '.join(unknown)}; `make study ARGS=--dry-run` lists arms, results/ has runs"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    shop = load_shop()
    for name in asked.run:
        same = again(known[name], asked.work, shop)
        differ = [table for table, equal in same.items() if not equal]
        print(
            f"{name}: {', '.join(differ) + ' differ' if differ else f'{len(same)} tables equal to the byte'}"
        )


if __name__ == "__main__":
    main()
