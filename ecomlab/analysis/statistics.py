"""Statistics over runs (t intervals of per-run means, arms paired by seed) and of certificates (exact binomial ones).

The unit is the run, and at least three are needed: in simulation the intervals covered .94, .95 and .94 at 3, 5 and 10
runs, while bootstraps over episodes covered only .50 to .60, because episodes of one run share its luck.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ecomlab.analysis.tables import RUN, chosen
from ecomlab.evaluation.frontier import SHARES, TOP, Counts, passed
from ecomlab.laws.laws import UNDERSTOOD, UNDERSTOOD_GROUP, at_least

MIN_RUNS = 3
"""Fewest runs of an arm that have an interval."""


def t_bounds(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Bound the mean of per-run values by Student's 95% interval; NaN below three runs. Raises ValueError for NaN."""
    runs = np.asarray(values, dtype=float)
    if np.isnan(runs).any():
        raise ValueError("a run without a value has no place in an interval; drop it and say so")
    if len(runs) < MIN_RUNS:
        return math.nan, math.nan
    from scipy import stats

    half = stats.t.ppf(0.975, len(runs) - 1) * runs.std(ddof=1) / math.sqrt(len(runs))
    return float(runs.mean() - half), float(runs.mean() + half)


def with_bounds(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Add columns low and high, the exact (Clopper-Pearson) two-sided bounds of each `share` of `n` tasks.

    If n is 0, the share was computed, not measured: it is both bounds.
    """
    from scipy.stats import binomtest

    bounds = [
        tuple(binomtest(round(share * n), n).proportion_ci(confidence, method="exact"))
        if n
        else (share, share)
        for share, n in zip(table.share, table.n, strict=True)
    ]
    return table.assign(low=[low for low, _ in bounds], high=[high for _, high in bounds])


def pooled(table: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Pool all levels of each environment: the shares of tasks that the single players get right, with exact bounds.
    (The best of several attackers is another one at each level: it is not pooled.)"""
    one = table[table.player.isin(["oracle", "reference", "perturbed", "naive"])]
    sums = (
        one.assign(won=(one.share * one.n).round()).groupby(["env", "player"], sort=False)[["won", "n"]].sum()
    )
    shares = sums.assign(share=sums.won / sums.n)[["share", "n"]]
    return with_bounds(shares, confidence)


def understood(table: pd.DataFrame) -> pd.DataFrame:
    """Add to a table of `tables.load_understanding` exact 95% bounds (low, high), the share that the law asks for
    (least), and the law's state."""
    bounded = with_bounds(table.assign(share=table.exact, n=table.asks)).drop(columns=["share", "n"])
    whole = (table.env == "all") & (table.form == "all")
    least = whole.map({True: UNDERSTOOD, False: UNDERSTOOD_GROUP})
    judged = zip(table.exact, table.asks, least, strict=True)
    return bounded.assign(least=least, law=[str(at_least(*one)) for one in judged])


def frontiers(table: pd.DataFrame, players: Sequence[str]) -> pd.DataFrame:
    """Find the highest level that each player passes in each environment of a certificate, as `ecomlab frontier` does.

    `table` is that of `tables.load_certificate`, of which levels beyond `TOP` are left out. Columns: env, player, share
    (of tasks that is asked for), level, low, high (95% interval); -1 stands for below 0.
    """
    rows = []
    table = table[table.player.isin(players) & (table.d <= TOP)]
    for (env, player), mine in table.groupby(["env", "player"], sort=False):
        counts = Counts()
        for one in mine.itertuples():
            won = round(one.share * one.n)
            counts = counts.add(one.d, [True] * won + [False] * (one.n - won))
        for share in SHARES:
            found = passed(counts, share)
            rows.append((env, player, share, found.level, found.low, found.high))
    return pd.DataFrame(rows, columns=["env", "player", "share", "level", "low", "high"])


def run_frontiers(evaluation: pd.DataFrame, decoding: str = "sampled") -> pd.DataFrame:
    """Find the highest level that each run passes at its first and last evaluation, in each of its environments.

    Columns: schedule, collection, seed, step, env, share, level; -1 stands for below the lowest that was evaluated.
    A level that was not evaluated counts as passed below one that is, and as not passed above the highest. Raises
    TableError where `decoding` was not evaluated.
    """
    mine = chosen(evaluation, "eval.csv", decoding=decoding)
    mine = mine[mine.success.notna()]
    ends = mine.groupby(RUN).step.transform(lambda steps: steps.isin((steps.min(), steps.max())))
    rows = []
    for key, cells in mine[ends].groupby([*RUN, "step", "env"]):
        shares = cells.groupby("d")[["success", "episodes"]].apply(
            lambda level: (level.success * level.episodes).sum() / level.episodes.sum()
        )
        for share in SHARES:
            unbroken = shares.index[(shares >= share).cummin()]
            rows.append((*key, share, int(max(unbroken, default=-1))))
    return pd.DataFrame(rows, columns=[*RUN, "step", "env", "share", "level"])


def held_out(evaluation: pd.DataFrame, decoding: str = "sampled") -> pd.DataFrame:
    """Average held-out success per run and step over difficulties (and environments), with equal weights.

    Columns: schedule, collection, seed, step, success. Steps that lack a difficulty are left out, so that all means are
    over the same ones.
    """
    rows = evaluation[(evaluation.decoding == decoding) & evaluation.success.notna()]
    cells = rows.groupby([*RUN, "step"]).agg(success=("success", "mean"), cells=("d", "size")).reset_index()
    return cells[cells.cells == cells.cells.max()].drop(columns="cells").reset_index(drop=True)


def learned(evaluation: pd.DataFrame, decoding: str) -> list[str]:
    """List the schedules whose held-out success has risen by .02 or more from each run's first evaluation to its last,
    on average; the others have nothing to compare."""
    curves = held_out(evaluation, decoding).sort_values("step").groupby(RUN).success
    rise = (curves.last() - curves.first()).groupby("schedule").mean()
    return [str(name) for name in rise.index[rise >= 0.02]]


def generated(train: pd.DataFrame, env: str | None = None) -> pd.DataFrame:
    """Add up the rollouts and tokens generated so far, per run and step, discarded ones included; of one environment
    or of all.

    Columns: schedule, collection, seed, step, rollouts, tokens. Every run begins with 0 at step 0.
    """
    train = train if env is None else train[train.env == env]
    train = train.rename(columns={"tokens_generated": "tokens"})
    steps = train.groupby([*RUN, "step"], as_index=False)[["rollouts", "tokens"]].sum()
    steps[["rollouts", "tokens"]] = steps.groupby(RUN)[["rollouts", "tokens"]].cumsum()
    start = steps[RUN].drop_duplicates().assign(step=0, rollouts=0, tokens=0)
    return pd.concat([start, steps[steps.step > 0]]).sort_values([*RUN, "step"]).reset_index(drop=True)


def summary(train: pd.DataFrame, evaluation: pd.DataFrame) -> pd.DataFrame:
    """Summarize each run in a row: its results and costs.

    Columns: schedule, collection, seed, steps, d_low, d_high (the last window, of the most advanced environment),
    {sampled,greedy}_{first,last} (mean held-out success at the first and last evaluation, NaN where that decoding was
    not evaluated), rollouts, tokens (generated), minutes (of the steps).
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
            # each of a step's rows has the seconds of the whole step
            minutes=steps.groupby("step").seconds.first().sum() / 60,
        )
        rows.append(row)
    return pd.DataFrame(rows)


def effective(train: pd.DataFrame, ends: float = 0.2) -> pd.DataFrame:
    """Summarize each run in a row: the share of groups with non-zero advantage, by correctness and by reward, in the
    whole run and in its first and last share `ends` of steps; and the share of generated tokens in the loss."""
    rows = []
    for run, steps in train.groupby(RUN, sort=False):
        last = steps.step.max()
        spans = {
            "": steps,
            "_first": steps[steps.step <= ends * last],
            "_last": steps[steps.step > (1 - ends) * last],
        }
        row = dict(zip(RUN, run, strict=True))
        for name, span in spans.items():
            for by in ("correct", "reward"):
                share = (span[f"effective_{by}"] * span.groups).sum() / max(1, span.groups.sum())
                row[f"by_{by}{name}"] = share
        row["tokens_used"] = steps.tokens_used.sum() / max(1, steps.tokens_generated.sum())
        rows.append(row)
    return pd.DataFrame(rows)


def effective_differences(train: pd.DataFrame, arm: str = "adaptive") -> pd.DataFrame:
    """Compute `arm` minus each other schedule in the effective prompt ratio and in the share of tokens in the loss,
    over whole runs, paired by collection and seed.

    Columns: of ("reward", "correct", "tokens"), against, mean, low, high, pairs; the bounds of
    Student's interval are NaN below three pairs. Empty without `arm`.
    """
    runs = effective(train).set_index(RUN)
    measures = {"reward": "by_reward", "correct": "by_correct", "tokens": "tokens_used"}
    found = []
    for name, column in measures.items():
        values = runs[column].unstack("schedule")
        for against in sorted(set(values) - {arm}) if arm in values else ():
            gain = (values[arm] - values[against]).dropna().to_numpy()
            if len(gain):
                found.append((name, against, gain.mean(), *t_bounds(gain), len(gain)))
    return pd.DataFrame(found, columns=["of", "against", "mean", "low", "high", "pairs"]).round(3)


def by_level(train: pd.DataFrame) -> pd.DataFrame:
    """Summarize training in a row per run, environment and level, over all steps.

    Columns: schedule, collection, seed, env, d, groups, by_correct and by_reward (shares of groups with non-zero
    advantage), rollouts, success (of scored rollouts), failed, invalid, truncated (numbers of rollouts), cut_off (the
    share of failed ones that were truncated; NaN if none failed), tokens (sampled by the policy), tokens_used (the
    share in the loss). Levels without draws are left out.
    """
    rows = train[train.groups > 0]
    scored = rows.rollouts - rows.unscored
    counted = rows.assign(
        by_correct=rows.effective_correct * rows.groups,
        by_reward=rows.effective_reward * rows.groups,
        success=scored - rows.failed,
        cut_off=rows.truncated,
        scored=scored,
        tokens=rows.tokens_generated,
    )
    wholes = {"by_correct": "groups", "by_reward": "groups", "success": "scored", "cut_off": "failed"}
    wholes["tokens_used"] = "tokens"
    shown = [
        "groups", "by_correct", "by_reward", "rollouts", "success", "failed", "invalid", "truncated", "cut_off",
        "tokens", "tokens_used",
    ]  # fmt: skip
    sums = counted.groupby([*RUN, "env", "d"])[[*shown, "scored"]].sum()
    shares = {part: sums[part] / sums[whole].where(sums[whole] > 0) for part, whole in wholes.items()}
    return sums.assign(**shares)[shown].reset_index()


def gains(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> pd.DataFrame:
    """Compute each environment's held-out success after training minus the better of the starter's decodings, by
    collection: the mean over runs of the mean over difficulties. (Sharpening alone, which moves samples toward the
    starter's most probable outputs, gains over its samples, but not over its greedy decoding.)

    Runs that lack an evaluation, as in an unfinished sweep, are left out. Columns: collection, env, starter (the better
    of its decodings), first, middle (the evaluation after a third of the steps), last, mean, low, high (of last -
    starter, Student's 95%), runs, d_high (the highest difficulty that any run's window reached; NaN for an environment
    that was not trained). Raises TableError where no run was evaluated at step 0.
    """
    rows = []
    reached = train.groupby(["collection", "env"]).d_high.max()
    for (collection, env), mine in evaluation[evaluation.success.notna()].groupby(["collection", "env"]):
        if decoding not in set(mine.decoding):
            continue
        chosen(mine, f"eval.csv, {collection}, {env}", step=0)  # what the starter can do
        starter = max(held_out(mine, way).query("step == 0").success.mean() for way in set(mine.decoding))
        curves = held_out(mine, decoding).pivot(index=["schedule", "seed"], columns="step", values="success")
        steps, curves = curves.columns, curves.dropna()
        if curves.empty:
            continue
        middle = steps[abs(steps - steps[-1] / 3).argmin()]
        gain = (curves[steps[-1]] - starter).to_numpy()
        low, high = t_bounds(gain)
        levels = [curves[step].mean() for step in (steps[0], middle, steps[-1])]
        highest = reached.get((collection, env), math.nan)
        rows.append((collection, env, starter, *levels, gain.mean(), low, high, len(gain), highest))
    names = [
        "collection", "env", "starter", "first", "middle", "last", "mean", "low", "high", "runs", "d_high",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=names).round(3)


def arm_names(runs: pd.DataFrame) -> pd.Series:
    """Name each row's arm: its schedule, and its collection if there are several."""
    several = runs.collection.nunique() > 1
    return runs.schedule + ", " + runs.collection if several else runs.schedule


def arm_intervals(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Average `value`, a column of `summary`, per arm (the index), with 95% intervals, NaN below three runs."""
    arms = runs[value].dropna().groupby(arm_names(runs).rename("arm"))
    rows = {name: (len(values), values.mean(), *t_bounds(values)) for name, values in arms}
    found = pd.DataFrame.from_dict(rows, orient="index", columns=["runs", "mean", "low", "high"])
    return found.rename_axis("arm").round(3)


def differences(
    train: pd.DataFrame, evaluation: pd.DataFrame, arm: str = "adaptive", decoding: str = "sampled"
) -> pd.DataFrame:
    """Compute the held-out success of `arm` minus that of each other schedule, after equal numbers of steps and of
    generated tokens, paired by collection and seed, at each difficulty and in their mean (d = "mean").

    A pair is compared at the highest number that both of its runs have reached; between two evaluations success is
    interpolated linearly. Columns: equal ("steps" or "tokens"), against, d, at (steps or tokens, mean over pairs),
    mean, low, high, pairs; the bounds of Student's interval are NaN below three pairs. Runs without a partner are left
    out, as in an unfinished sweep: see `pairs`. Empty without `arm`.
    """
    scored = evaluation[(evaluation.decoding == decoding) & evaluation.success.notna()]
    cells = scored.pivot_table(index=[*RUN, "step"], columns="d", values="success").dropna()
    levels = [*cells.columns, "mean"]
    points = cells.assign(mean=cells.mean(axis=1)).reset_index().merge(generated(train), on=[*RUN, "step"])
    curves = {run: curve.sort_values("step") for run, curve in points.groupby(RUN)}
    arms = sorted({schedule for schedule, *_ in curves} - {arm})
    found = []
    for equal, x in (("steps", "step"), ("tokens", "tokens")):
        for against in arms:
            pairs = [
                _difference(one, curves[against, *key], x, levels)
                for (schedule, *key), one in curves.items()
                if schedule == arm and (against, *key) in curves
            ]
            for i, d in enumerate(levels if pairs else ()):
                at, gain = (
                    np.array(values) for values in zip(*((at, gain[i]) for at, gain in pairs), strict=True)
                )
                found.append((equal, against, d, at.mean(), gain.mean(), *t_bounds(gain), len(gain)))
    names = ["equal", "against", "d", "at", "mean", "low", "high", "pairs"]
    return pd.DataFrame(found, columns=names).round(3)


def _difference(
    one: pd.DataFrame, two: pd.DataFrame, x: str, levels: Sequence[int | str]
) -> tuple[float, list[float]]:
    """Subtract two runs' success at each level, at the highest `x` that both have reached."""
    most = min(one[x].max(), two[x].max())
    return most, [float(np.interp(most, one[x], one[d]) - np.interp(most, two[x], two[d])) for d in levels]


def collections_compared(
    train: pd.DataFrame,
    evaluation: pd.DataFrame,
    env: str = "CART",
    against: str = "",
    decoding: str = "sampled",
) -> pd.DataFrame:
    """Compute the held-out success in `env` of each other collection minus that of `against` (default: the collection
    of fewest environments), after equal numbers of rollouts of all environments, and of `env` alone; paired by schedule
    and seed.

    The number of rollouts is the highest that both runs of a pair have reached; between two evaluations success is
    interpolated linearly. A concave curve lies above that line, which favours the run that is not interpolated. The
    difference is therefore also taken with `against` read at its next evaluation, after at least as many rollouts.
    Columns: collection, equal (the rollouts counted), rollouts (mean over pairs), success, against (their means), mean,
    low, high (of the difference, Student's 95%), next, next_low, next_high (with the next evaluation), pairs. Empty
    without `against`.
    """
    against = against or str(train.groupby("collection").env.nunique().idxmin())
    means = held_out(evaluation[evaluation.env == env], decoding)
    rows = []
    for equal, counted in (("all rollouts", generated(train)), (f"{env} rollouts", generated(train, env))):
        points = means.merge(counted, on=[*RUN, "step"]).groupby(["collection", "schedule", "seed"])
        curves = {run: (curve.rollouts.to_numpy(), curve.success.to_numpy()) for run, curve in points}
        for name in sorted({name for name, *_ in curves} - {against}):
            pairs = [
                _at_equal_rollouts(one, curves[against, *key])
                for (other, *key), one in curves.items()
                if other == name and (against, *key) in curves
            ]
            if not pairs:
                continue
            rollouts, reached, between, later = np.array(pairs, dtype=float).T
            rows.append((
                name, equal, rollouts.mean(), reached.mean(), between.mean(),
                (reached - between).mean(), *t_bounds(reached - between),
                (reached - later).mean(), *t_bounds(reached - later), len(pairs),
            ))  # fmt: skip
    names = [
        "collection", "equal", "rollouts", "success", "against", "mean", "low", "high", "next", "next_low", "next_high",
        "pairs",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=names).round(3)


def _at_equal_rollouts(
    one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float, float, float]:
    """Read two curves of (rollouts, success) at the highest number that both have reached: that number, the success of
    each there, and that of the second at its next evaluation."""
    most = min(one[0].max(), two[0].max())
    later = two[1][np.searchsorted(two[0], most)]
    return most, float(np.interp(most, *one)), float(np.interp(most, *two)), later
