"""Captions of figures and their alternative texts, with the numbers that the tables have."""

import math
from dataclasses import dataclass

import pandas as pd

from ecomlab.analysis.statistics import differences, held_out, learned


@dataclass(frozen=True)
class Caption:
    """What stands below a figure, and what is read to somebody who cannot see it."""

    text: str
    alternative: str


def difficulty_growth(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Caption:
    """Say what `plots.difficulty_growth` shows, and by how much the adaptive arm exceeds the others."""
    levels, seeds, steps = sorted(set(evaluation.d)), train.seed.nunique(), train.step.max()
    over = f"d = {levels[0]} to {levels[-1]}"
    found = differences(train, evaluation, "adaptive", decoding)
    means = found[(found.equal == "steps") & (found.d == "mean")]
    means = means[means.against.isin(learned(evaluation, decoding))]
    said = "; ".join(f"{row.against} by {_with_interval(row)}" for row in means.itertuples())
    runs = held_out(evaluation, decoding)
    last = runs[runs.step == runs.step.max()].groupby("schedule").success.mean()
    ends = ", ".join(f"{name} {share:.2f}" for name, share in last.items())
    first = runs[runs.step == 0].success.mean()
    interval = ", with Student's 95% intervals" if seeds > 2 else "; fewer than three seeds have no interval"
    still = sorted(set(evaluation.schedule) - {"adaptive", *learned(evaluation, decoding)})
    left_out = f" Left out there, for it has learned nothing: {', '.join(still)}." if still else ""
    lead = f" After equally many steps adaptive exceeds {said}." if said else ""
    return Caption(
        f"Training on {', '.join(sorted(set(train.env)))} under schedules of difficulty: {seeds} seeds, {steps} steps, "
        f"{decoding} held-out success. The highest difficulty trained on; mean success over {over}; the lead of the "
        f"adaptive schedule at each difficulty, paired by seed{interval}.{lead}{left_out}",
        f"Line plots of {seeds} runs each. Mean held-out success over {over} rises from {first:.2f} to: {ends}.",
    )


def _with_interval(row: object) -> str:
    mean, low, high = (getattr(row, name) for name in ("mean", "low", "high"))
    return f"{mean:.3f}" if math.isnan(low) else f"{mean:.3f} [{low:.3f}, {high:.3f}]"
