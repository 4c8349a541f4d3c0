"""Results for the terminal: the runs of a sweep."""

import math
from collections.abc import Iterator

import pandas as pd
from rich.table import Table

from ecomlab.analysis.statistics import arm_intervals, arm_names


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
