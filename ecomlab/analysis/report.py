"""Results for the terminal: the runs of a sweep, a policy's held-out success."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from ecomlab.analysis.statistics import arm_intervals, arm_names, share_bounds
from ecomlab.evaluate.heldout import EPISODE, summarize
from ecomlab.files import write_json, write_text


def table_of_runs(runs: pd.DataFrame, title: str) -> Table:
    """Tabulate `statistics.summary`, a row per run."""
    title = f"{title}: held-out success, mean over difficulties, first → last evaluation"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("arm", "seed", "steps", "window", "sampled", "greedy", "rollouts", "minutes"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for run in runs.assign(arm=arm_names(runs)).itertuples():
        success = [
            f"{first:.2f} → {last:.2f}".replace("nan → nan", "–")
            for first, last in ((run.sampled_first, run.sampled_last), (run.greedy_first, run.greedy_last))
        ]
        window = f"{run.d_low}–{run.d_high}"
        costs = (f"{run.rollouts:,}", f"{run.minutes:.1f}")
        table.add_row(run.arm, str(run.seed), str(run.steps), window, *success, *costs)
    return table


def intervals_of_arms(runs: pd.DataFrame) -> Iterator[str]:
    """Write the interval of each arm that has enough runs for one."""
    for name, arm in arm_intervals(runs, "sampled_last").iterrows():
        if not math.isnan(arm.low):
            spread = f"{arm['mean']:.2f} [{arm.low:.2f}, {arm.high:.2f}]"
            yield f"{name}: {spread}, 95% t interval over {arm.runs:.0f} runs"


def show_evaluations(
    policy: str,
    episodes: Sequence[Mapping[str, Any]],
    console: Console,
    json_file: Path | None = None,
    csv_file: Path | None = None,
) -> None:
    """Print held-out success by environment, difficulty and decoding, drawn from the rows of `play_held_out`.

    Writes what is printed to `json_file`, and the episodes to `csv_file`, where they are given.
    """
    rows = summarize(episodes)
    table = Table("env", "d", "decoding", "success", "95% interval", "reward", "unscored")
    for row in rows:
        scored = row["episodes"] - row["unscored"]
        low, high = share_bounds(row["success"], scored)
        within = f"{low:.3f}-{high:.3f}" if scored else ""
        shares = (f"{row['success']:.3f}", within, f"{row['reward']:.3f}")
        table.add_row(row["env"], str(row["d"]), row["decoding"], *shares, str(row["unscored"]))
    console.print(table)
    console.print("the interval is binomial, over episodes: for this policy, not for others trained like it")
    if json_file is not None:
        write_json(json_file, {"policy": policy, "rows": rows})
        console.print(f"written to {json_file}")
    if csv_file is not None:
        write_text(csv_file, pd.DataFrame(episodes, columns=EPISODE).to_csv(index=False, lineterminator="\n"))
        console.print(f"{len(episodes)} episodes written to {csv_file}")
