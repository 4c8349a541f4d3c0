"""Statistics whose unit is the run: t intervals on per-run means, arms paired by seed, nothing from fewer
than three. A certificate's unit is the task: exact binomial intervals.

Intervals over runs held their 95% in simulation (.94, .95, .94 at 3, 5, 10 runs); bootstraps that
resample episodes covered only .50 to .60, because episodes of one run share its luck.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ecomlab.analysis.tables import RUN

MIN_RUNS = 3


@dataclass(frozen=True)
class Interval:
    """A mean over `n` runs with its confidence interval."""

    mean: float
    low: float
    high: float
    n: int


def t_interval(values: Sequence[float] | np.ndarray, confidence: float = 0.95) -> Interval | None:
    """Compute Student's interval for the mean of per-run values; None for fewer than three runs. NaN is an error."""
    runs = np.asarray(values, dtype=float)
    if np.isnan(runs).any():
        raise ValueError("a run without a value has no place in an interval; drop it and say so")
    if len(runs) < MIN_RUNS:
        return None
    from scipy import stats

    half = stats.t.ppf(0.5 + confidence / 2, len(runs) - 1) * runs.std(ddof=1) / math.sqrt(len(runs))
    return Interval(float(runs.mean()), float(runs.mean() - half), float(runs.mean() + half), len(runs))


def share_bounds(share: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Bound a share of `n` tasks by the exact (Clopper-Pearson) two-sided interval.

    Where n is 0 the share was computed, not measured: both bounds are the share.
    """
    from scipy.stats import binomtest

    if n == 0:
        return share, share
    found = binomtest(round(share * n), n).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def with_bounds(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Add the `share_bounds` of a table's shares as columns low and high."""
    bounds = [share_bounds(share, n, confidence) for share, n in zip(table.share, table.n, strict=True)]
    return table.assign(low=[low for low, _ in bounds], high=[high for _, high in bounds])


def pooled(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Pool all levels of each environment: the share of tasks on which solver, fair, noisy and naive player are
    correct, with exact bounds. (The worst of several is another player at each level: it is not pooled.)"""
    one = table[table.player.isin(["solver", "fair", "noisy", "naive"])]
    sums = (
        one.assign(won=(one.share * one.n).round()).groupby(["env", "player"], sort=False)[["won", "n"]].sum()
    )
    shares = sums.assign(share=sums.won / sums.n)[["share", "n"]]
    return with_bounds(shares, confidence)


def held_out(evaluation: pd.DataFrame, decoding: str = "sampled") -> pd.DataFrame:
    """Average held-out success per run and step over difficulties (and environments), each weighing the same.

    Columns: schedule, collection, seed, step, success. A step at which a run lacks a difficulty that it has
    elsewhere is left out, so that means over different difficulties are never compared.
    """
    rows = evaluation[(evaluation.decoding == decoding) & evaluation.success.notna()]
    cells = rows.groupby([*RUN, "step"]).agg(success=("success", "mean"), cells=("d", "size")).reset_index()
    return cells[cells.cells == cells.cells.max()].drop(columns="cells").reset_index(drop=True)


def generated(train: pd.DataFrame, env: str | None = None) -> pd.DataFrame:
    """Add up per run and step the rollouts generated so far, discarded ones too; of one environment or of all. Columns:
    schedule, collection, seed, step, rollouts; step 0 with 0 is there for every run."""
    train = train if env is None else train[train.env == env]
    steps = train.groupby([*RUN, "step"], as_index=False)["rollouts"].sum()
    steps["rollouts"] = steps.groupby(RUN)["rollouts"].cumsum()
    start = steps[RUN].drop_duplicates().assign(step=0, rollouts=0)
    return pd.concat([start, steps[steps.step > 0]]).sort_values([*RUN, "step"]).reset_index(drop=True)


def summary(train: pd.DataFrame, evaluation: pd.DataFrame) -> pd.DataFrame:
    """Sum up each run in a row: what it reached and what that cost.

    Columns: schedule, collection, seed, steps, d_low, d_high (the last window, of the environment that is
    furthest), {sampled,greedy}_{first,last} (mean held-out success at the first and last evaluation, NaN
    where that decoding was not evaluated), rollouts, tokens (generated), minutes (the steps' own seconds).
    """
    rows = []
    for run, steps in train.groupby(RUN, sort=False):
        last = steps[steps.step == steps.step.max()].sort_values("d_high").iloc[-1]
        row = dict(zip(RUN, run, strict=True))
        row.update(steps=steps.step.nunique(), d_low=last.d_low, d_high=last.d_high)
        mine = evaluation[(evaluation[RUN] == list(run)).all(axis=1)]
        for decoding in ("sampled", "greedy"):
            curve = held_out(mine, decoding).sort_values("step").success
            row[f"{decoding}_first"] = curve.iloc[0] if len(curve) else math.nan
            row[f"{decoding}_last"] = curve.iloc[-1] if len(curve) else math.nan
        row.update(
            rollouts=steps.rollouts.sum(),
            tokens=steps.tokens_generated.sum(),
            minutes=steps.groupby("step").seconds.first().sum()
            / 60,  # a step's rows have the whole step's seconds
        )
        rows.append(row)
    return pd.DataFrame(rows)


def effective(train: pd.DataFrame, ends: float = 0.2) -> pd.DataFrame:
    """Sum up each run in a row: the share of groups that teach, by correctness and by reward, in the whole run and
    in its first and last share `ends` of steps; and the share of generated tokens that entered the loss."""
    rows = []
    for run, steps in train.groupby(RUN, sort=False):
        last = steps.step.max()
        parts = {
            "": steps,
            "_first": steps[steps.step <= ends * last],
            "_last": steps[steps.step > (1 - ends) * last],
        }
        row = dict(zip(RUN, run, strict=True))
        for name, part in parts.items():
            for by in ("correct", "reward"):
                share = (part[f"effective_{by}"] * part.groups).sum() / max(1, part.groups.sum())
                row[f"by_{by}{name}"] = share
        row["tokens_used"] = steps.tokens_used.sum() / max(1, steps.tokens_generated.sum())
        rows.append(row)
    return pd.DataFrame(rows)


def gains(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> pd.DataFrame:
    """Measure how much each environment's held-out success rises from the first to the last evaluation, by collection:
    the mean over runs of the mean over difficulties.

    Columns: collection, env, first, middle (the evaluation after a third of the steps), last, mean, low, high (of the
    rise, Student's 95%), runs, d_high (the highest difficulty that any run's window reached).
    """
    rows = []
    reached = train.groupby(["collection", "env"]).d_high.max()
    scored = evaluation[(evaluation.decoding == decoding) & evaluation.success.notna()]
    for (collection, env), mine in scored.groupby(["collection", "env"]):
        curves = held_out(mine, decoding).pivot(index=["schedule", "seed"], columns="step", values="success")
        steps = curves.columns
        middle = steps[abs(steps - steps[-1] / 3).argmin()]
        rise = (curves[steps[-1]] - curves[steps[0]]).to_numpy()
        interval = t_interval(rise)
        low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
        levels = [curves[step].mean() for step in (steps[0], middle, steps[-1])]
        highest = reached.get((collection, env), math.nan)
        rows.append((collection, env, *levels, rise.mean(), low, high, len(rise), highest))
    names = ["collection", "env", "first", "middle", "last", "mean", "low", "high", "runs", "d_high"]
    return pd.DataFrame(rows, columns=names).round(3)


def arm_names(runs: pd.DataFrame) -> pd.Series:
    """Name each row's arm: its schedule, with the collection where there are several."""
    several = runs.collection.nunique() > 1
    return runs.schedule + ", " + runs.collection if several else runs.schedule


def arm_intervals(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Average `value`, a column of `summary`, per arm, with its 95% interval: NaN below three runs."""
    rows = {}
    for name, arm in runs.groupby(arm_names(runs)):
        values = arm[value].dropna().to_numpy()
        interval = t_interval(values)
        low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
        rows[name] = {"runs": len(values), "mean": values.mean(), "low": low, "high": high}
    return pd.DataFrame.from_dict(rows, orient="index").round(3)


def differences(
    evaluation: pd.DataFrame, arm: str = "adaptive", decoding: str = "sampled", confidence: float = 0.95
) -> pd.DataFrame:
    """Measure how much higher held-out success at the last evaluation is in `arm` than in each other schedule, paired
    by collection and seed, at each difficulty and in their mean (d = "mean").

    Columns: against, d, mean, low, high, pairs; the bounds of Student's interval are NaN below three pairs. A run
    without a partner is left out, as in a sweep that is under way: `pairs` tells. Empty without `arm`.
    """
    rows = evaluation[(evaluation.decoding == decoding) & evaluation.success.notna()]
    last = rows[rows.step == rows.groupby(RUN).step.transform("max")]
    index = ["schedule", "collection", "seed"]
    cells = last.pivot_table(index=index, columns="d", values="success", aggfunc="mean")
    cells["mean"] = cells.mean(axis=1)
    arms = cells.index.unique("schedule")
    found = []
    for against in [name for name in arms if arm in arms and name != arm]:
        gain = cells.loc[arm] - cells.loc[against]
        for d in cells.columns:
            gains = gain[d].dropna().to_numpy()
            interval = t_interval(gains, confidence)
            low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
            found.append((against, d, gain[d].mean(), low, high, len(gains)))
    return pd.DataFrame(found, columns=["against", "d", "mean", "low", "high", "pairs"]).round(3)


def collections_compared(
    train: pd.DataFrame,
    evaluation: pd.DataFrame,
    env: str = "CART",
    against: str = "C1",
    decoding: str = "sampled",
) -> pd.DataFrame:
    """Measure how much higher `env`'s held-out success is in runs on each other collection than in those on `against`,
    after as many rollouts of all environments, and after as many of `env` alone; paired by schedule and seed.

    The number of rollouts is the most that both runs of a pair have generated; between two evaluations success is
    interpolated linearly. Columns: collection, equal (what is), rollouts (mean over pairs), success, against (their
    means), mean, low, high (of the difference, Student's 95%), pairs. Empty without `against`.
    """
    means = held_out(evaluation[evaluation.env == env], decoding)
    rows = []
    for equal, counted in (("all rollouts", generated(train)), (f"{env} rollouts", generated(train, env))):
        curves = {
            (name, key): (curve.rollouts.to_numpy(), curve.success.to_numpy())
            for (name, *key), curve in means.merge(counted, on=[*RUN, "step"]).groupby(
                ["collection", "schedule", "seed"]
            )
            for key in [tuple(key)]
        }
        for name in sorted({name for name, _ in curves} - {against}):
            pairs = []
            for other, key in curves:
                if other == name and (against, key) in curves:
                    one, two = curves[name, key], curves[against, key]
                    most = min(one[0].max(), two[0].max())
                    pairs.append((most, np.interp(most, *one), np.interp(most, *two)))
            if not pairs:
                continue
            found = np.array(pairs, dtype=float)
            gains = found[:, 1] - found[:, 2]
            interval = t_interval(gains)
            low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
            rows.append((name, equal, *found.mean(0), gains.mean(), low, high, len(pairs)))
    names = ["collection", "equal", "rollouts", "success", "against", "mean", "low", "high", "pairs"]
    return pd.DataFrame(rows, columns=names).round(3)
