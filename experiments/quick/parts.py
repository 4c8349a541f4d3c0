"""Means of the reward's parts in the evaluations of a sweep's finished runs, whose episodes.csv are too large to keep.

    python experiments/quick/parts.py [RUNS] [--out FOLDER]     # by default of `make ablation`, beside this file

Writes parts.csv, a row per run, step, environment, level and decoding, over all blocks of held-out tasks (unscored
episodes are left out), and parts.json, the record of each run. The figure is notebooks/fig_reward_parts.
"""

import argparse
from pathlib import Path

import pandas as pd

from ecomlab.analysis.tables import RUN, load_episodes
from ecomlab.files import read_json, replacing, write_json
from ecomlab.lab.paths import project_root
from ecomlab.lab.provenance import RECORD, merged

PARTS = ["reward", "reward_task", "reward_efficiency", "reward_hallucination", "correct"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="?", default=project_root() / "experiments/runs/laptop")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    asked = parser.parse_args()
    finished = [path.parent for path in sorted(asked.runs.glob("*-seed*/finished.json"))]
    if not finished:
        raise SystemExit(f"no finished run in {asked.runs}; `make ablation` makes those of the quick one")
    found = []
    for run in finished:
        episodes = load_episodes(run / "episodes.csv")
        scored = episodes[episodes.correct.notna()]
        cells = scored.groupby([*RUN, "step", "env", "d", "decoding"])
        found.append(cells[PARTS].mean().join(cells.size().rename("episodes")).reset_index())
    out = asked.out / "parts.csv"
    with replacing(out) as draft:
        pd.concat(found).round(5).to_csv(draft, index=False, lineterminator="\n")
    write_json(
        out.with_suffix(".json"), merged({run.name: read_json(run / RECORD) or {} for run in finished})
    )
    print(f"{out}: {len(finished)} runs: {', '.join(run.name for run in finished)}")


if __name__ == "__main__":
    main()
