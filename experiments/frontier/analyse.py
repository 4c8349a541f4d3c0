"""The registered analyses, from results/: primary and secondary contrasts, success by steps, environments, cascades.

    python experiments/frontier/gates.py planted           # before: the starters on the tasks of S4,
    python experiments/frontier/gates.py levels            # and on the final tasks of S1
    python experiments/frontier/analyse.py                 # writes TABLE.csv beside this file

| table | rows |
|---|---|
| `contrasts` | S1's differences between arms, paired by seed (`of` so many registered); `holm` is of primary ones |
| `fresh` | the primary contrasts on seeds that no gate had |
| `success` | S1's success after training, by starter and arm |
| `health` | what S1's runs drew, which steps had an update, truncation, alarms |
| `curves` | S1's runs by evaluation: success, tokens, groups with non-zero advantage, the highest level drawn |
| `growth` | what an arm gains in either half of the training, by its curve |
| `by_steps` | S1's success by starter, arm and the exact number of composed steps |
| `alone` | S1's success in carts of one or two kinds of steps |
| `slopes`, `company` | S2's gain of the environment held out, and success in the first one, by order and k |
| `environments` | S2's means over the orders: the slope, and the values at each k |
| `mended` | S4's shares of mended mistakes on common pairs, and their differences; recovery and its control too |
| `mended_arms` | the same of every arm of S1 and its starter; exploratory |
| `recovery` | success of recovery minus its control, which were registered later |
| `predictions` | every prediction, what was found, and how it came out (`predictions.py`) |
| `runs` | how many of the registered runs of an arm these tables are of |

TABLES.md shows the main ones (`shown.py`); docs/curriculum.md includes it. analysis.json has the commit of this
analysis, and what all runs have in common: their commit, catalog and versions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from predictions import outcomes
from scipy import stats
from shown import as_markdown, said
from study import (
    CONTRASTS,
    FRESH,
    FRESH_SEEDS,
    IMITATION,
    RECOVERY,
    RECOVERY_ARMS,
    RUNS,
    S1_ARMS,
    STARTERS,
    environments,
)
from trials import Run

from ecomlab.files import read_json, write_json
from ecomlab.lab.provenance import merged, provenance
from ecomlab.seeding import rng

HERE = Path(__file__).resolve().parent
RANGES = {"0-6": range(7), "7-8": (7, 8)}
DECODINGS = ("sampled", "greedy")
BOUNDS = ("low", "high")
BOOTSTRAPS = 10_000
OTHERS = (
    *(
        (arm, "adaptive")
        for arm in (*S1_ARMS, *IMITATION)
        if not {("adaptive", arm), (arm, "adaptive")} & set(CONTRASTS) and arm != "adaptive"
    ),
    ("skill-wise", "skill-wise-shuffled"),
    ("prefix", "static-0-6"),
)
"""Secondary contrasts: all other arms, imitation too, against adaptive; and two arms against their controls."""

MENDED = (("adaptive", "static-4-6"), ("adaptive", "start"), ("prefix", "adaptive"))
"""Contrasts of S4; the first is primary, at level 1."""


def done(results: Path, runs: Iterable[Run] = RUNS, file: str = "end.csv") -> Iterator[tuple[Run, Path]]:
    """Yield the runs that have this file, with its place."""
    for run in runs:
        if (path := results / run.name / file).exists():
            yield run, path


def ends(results: Path, part: str = "S1", runs: Iterable[Run] = RUNS) -> pd.DataFrame:
    """Read the final measurements of a part's finished runs: a row per arm, starter, seed, block and cell."""
    found = [
        pd.read_csv(path).assign(arm=run.arm, starter=run.starter, seed=run.seed)
        for run, path in done(results, runs)
        if run.part == part
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def finished(results: Path) -> pd.DataFrame:
    """Count the registered runs of each part, starter and arm, and those of which the tables are."""
    rows = [
        {
            "part": run.part,
            "starter": run.starter,
            "arm": run.arm,
            "done": (results / run.name / "end.csv").is_file(),
        }
        for run in RUNS
    ]
    counts = pd.DataFrame(rows).groupby(["part", "starter", "arm"], sort=False).done
    return counts.agg(registered="size", finished="sum").reset_index()


def by_seed(table: pd.DataFrame, decoding: str, levels: Sequence[int]) -> pd.DataFrame:
    """Compute each run's success, mean over blocks and levels: seeds by (starter, arm)."""
    chosen = table[table.cell.isin([f"d = {d}" for d in levels])]
    return chosen.pivot_table(index="seed", columns=["starter", "arm"], values=decoding, aggfunc="mean")


def compared(one: pd.Series, other: pd.Series) -> dict[str, float]:
    """Compare two arms over the seeds that both have: mean difference, 95% interval and p of a paired t test."""
    difference = (one - other).dropna().round(12)
    n = len(difference)
    if n < 2:
        return {"seeds": n, "difference": difference.mean(), "low": np.nan, "high": np.nan, "p": np.nan}
    mean, spread = difference.mean(), difference.std(ddof=1)
    half = stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n)
    p = stats.ttest_1samp(difference, 0).pvalue if spread else float(mean == 0)
    return {"seeds": n, "difference": mean, "low": mean - half, "high": mean + half, "p": float(p)}


def holm(p: pd.Series) -> pd.Series:
    """Correct p-values by Holm's method."""
    order = p.sort_values().index
    factors = pd.Series(range(len(p), 0, -1), index=order)
    return (p[order] * factors).cummax().clip(upper=1)[p.index]


def success(results: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Tabulate each arm's success after training, mean over seeds with Student's 95% interval; *start* is before."""
    starts = [
        pd.read_csv(results / f"start-levels-{starter}.csv").assign(arm="start", starter=starter, seed=0)
        for starter in STARTERS
    ]
    rows = []
    for decoding in DECODINGS:
        for name, levels in RANGES.items():
            seeds = by_seed(pd.concat([table, *starts]), decoding, levels)
            for starter, arm in seeds.columns:
                found = compared(seeds[starter, arm], 0 * seeds[starter, arm])
                found = {
                    "seeds": found["seeds"],
                    "success": found["difference"],
                    **{b: found[b] for b in BOUNDS},
                }
                rows.append({"starter": starter, "arm": arm, "decoding": decoding, "levels": name, **found})
    return pd.DataFrame(rows)


def contrasts(table: pd.DataFrame, followed: pd.DataFrame) -> pd.DataFrame:
    """Make the primary contrasts (sampled, levels 0 to 6; Holm within a starter), and uncorrected secondary ones. `of`
    counts the seeds for which both arms are registered."""
    registered = Counter((run.starter, run.arm) for run in RUNS if run.part == "S1")
    sides = {
        (decoding, levels): by_seed(table, decoding, RANGES[levels])
        for decoding in DECODINGS
        for levels in RANGES
    }
    rows = []
    for starter in STARTERS:
        for one, other in (*CONTRASTS, *OTHERS):
            of = min(registered[starter, arm] for arm in (one, other))
            said = {"starter": starter, "contrast": f"{one} - {other}", "of": of}
            for (decoding, levels), success in sides.items():
                if {(starter, one), (starter, other)} <= set(success.columns):
                    found = compared(success[starter, one], success[starter, other])
                    rows.append({**said, "decoding": decoding, "levels": levels, **found})
            if len(pair := at_equal_tokens(followed, starter, one, other)):
                for name, ends in (
                    ("equal tokens", ["one", "other"]),
                    ("equal steps", ["one_end", "other_end"]),
                ):
                    found = compared(*(pair[side] for side in ends))
                    rows.append({**said, "decoding": "sampled", "levels": f"0, 2, 4, 6, {name}", **found})
    made = pd.DataFrame(rows)
    primary = (made.decoding == "sampled") & (made.levels == "0-6")
    primary &= made.contrast.isin([f"{one} - {other}" for one, other in CONTRASTS])
    made.loc[primary, "holm"] = made[primary].groupby("starter").p.transform(holm)
    return made


def fresh(results: Path) -> pd.DataFrame:
    """Make the primary contrasts on the seeds that no gate had: those of S1, and the runs of part *fresh*."""
    table = pd.concat([ends(results), ends(results, "fresh", FRESH)])
    nothing = pd.DataFrame(columns=["starter", "contrast", "of", "seeds", "difference", *BOUNDS, "p", "holm"])
    if table.empty or (table := table[table.seed.isin(FRESH_SEEDS)]).empty:
        return nothing
    success = by_seed(table, "sampled", RANGES["0-6"])
    rows = [
        {"starter": starter, "contrast": f"{one} - {other}", "of": len(FRESH_SEEDS),
         **compared(success[starter, one], success[starter, other])}
        for starter in STARTERS for one, other in CONTRASTS if {(starter, one), (starter, other)} <= {*success}
    ]  # fmt: skip
    made = pd.DataFrame(rows)
    return made.assign(holm=made.groupby("starter").p.transform(holm)) if rows else nothing


def claimed(contrasts: pd.DataFrame, fresh: pd.DataFrame) -> "pd.Series[bool]":
    """Tell which contrasts are claimed: p is below .05 after Holm's correction, of all registered runs and, with
    the same sign, of fresh seeds."""
    again = contrasts[["starter", "contrast"]].merge(fresh, "left", ["starter", "contrast"])
    same = contrasts.difference.to_numpy() * again.difference.to_numpy() > 0
    whole = contrasts.seeds == contrasts.of
    return whole & (contrasts.holm < 0.05) & (again.holm.to_numpy() < 0.05) & same


def health(results: Path) -> pd.DataFrame:
    """Tabulate what the runs of reinforcement learning did, mean over an arm's seeds: the highest level drawn and the
    window's last; shares of groups with non-zero advantage, of steps without any, of rollouts cut off; alarms."""
    rows = []
    for run, path in done(results, file="train.csv"):
        if run.part != "S1":
            continue
        train = pd.read_csv(path)
        steps = train.groupby("step").agg(kept=("kept", "sum"), high=("d", "max"))
        alarms = path.with_name("alarms.txt")
        rows.append(
            {"starter": run.starter, "arm": run.arm, "seed": run.seed, "highest": steps.high.max(),
             "window": train.d_high.iloc[-1], "above_6": int((steps.high > 6).sum()),
             "mixed": train.kept.sum() / train.groups.sum(), "without": float((steps.kept == 0).mean()),
             "truncated": train.truncated.sum() / train.rollouts.sum(),
             "alarms": len(alarms.read_text("utf-8").splitlines()) if alarms.exists() else 0}
        )  # fmt: skip
    values = {name: (name, "mean") for name in ("window", "mixed", "without", "truncated", "alarms")}
    groups = pd.DataFrame(rows).groupby(["starter", "arm"], sort=False)
    return groups.agg(
        seeds=("seed", "size"), highest=("highest", "max"), above_6=("above_6", "sum"), **values
    ).reset_index()


def curves(results: Path) -> pd.DataFrame:
    """Follow S1's runs of reinforcement learning: a row for each run and evaluation.

    `success` is sampled, over levels 0, 2, 4 and 6; `mixed` the share of groups with non-zero advantage since the
    evaluation before, and `level` the highest that the window held at the last step. `tokens` were sampled so far.
    """
    found = []
    for run, file in done(results, file="train.csv"):
        if run.part != "S1":
            continue
        train = pd.read_csv(file).groupby("step").agg(
            tokens=("tokens_generated", "sum"), groups=("groups", "sum"), kept=("kept", "sum"), level=("d_high", "max")
        )  # fmt: skip
        measured = pd.read_csv(file.with_name("eval.csv")).query("decoding == 'sampled' and d <= 6")
        success = measured.groupby("step").success.mean()
        until = pd.cut(train.index, [-1, *success.index], labels=success.index)
        sums = train.groupby(until, observed=False)[["tokens", "groups", "kept"]].sum()
        curve = pd.DataFrame(
            {
                "success": success,
                "tokens": sums.tokens.cumsum(),
                "mixed": sums.kept / sums.groups,
                "level": train.level,
            }
        ).loc[success.index]
        found.append(
            curve.rename_axis("step").reset_index().assign(arm=run.arm, starter=run.starter, seed=run.seed)
        )
    return pd.concat(found, ignore_index=True)


def growth(followed: pd.DataFrame) -> pd.DataFrame:
    """Compute what an arm gains on the tasks of its curve until the middle of the training, and from there on."""
    success = followed.pivot_table(index=["starter", "arm", "seed"], columns="step", values="success")
    first, middle, last = 0, success.columns.max() // 2, success.columns.max()
    rows = []
    for (starter, arm), runs in success.groupby(level=["starter", "arm"]):
        for half, (since, until) in {"first": (first, middle), "second": (middle, last)}.items():
            found = compared(runs[until], runs[since])
            rows.append({"starter": starter, "arm": arm, "half": half, **found})
    return pd.DataFrame(rows)


def at_equal_tokens(followed: pd.DataFrame, starter: str, one: str, other: str) -> pd.DataFrame:
    """Read two arms' curves, linearly, at the tokens that the thriftier of them sampled in all, and at their ends: a
    row for each seed that both have. Imitation has no curve."""
    runs = followed[followed.starter == starter].groupby(["arm", "seed"])
    known = dict(iter(runs))
    found = []
    for seed in sorted(followed.seed.unique()):
        if (one, seed) in known and (other, seed) in known:
            pair = [known[arm, seed] for arm in (one, other)]
            tokens = min(run.tokens.max() for run in pair)
            equal = [float(np.interp(tokens, run.tokens, run.success)) for run in pair]
            found.append([*equal, *(run.success.iloc[-1] for run in pair)])
    return pd.DataFrame(found, columns=["one", "other", "one_end", "other_end"])


def by_steps(results: Path) -> pd.DataFrame:
    """Compute success by the exact number of composed steps: mean and standard deviation over seeds of an arm."""
    runs = []
    files = [(run.arm, run.starter, run.seed, path) for run, path in done(results, file="steps.csv")]
    files += [("start", starter, 0, results / f"start-steps-{starter}.csv") for starter in STARTERS]
    for arm, starter, seed, file in files:
        counts = pd.read_csv(file).groupby("steps")[["tasks", *DECODINGS]].sum()
        shares = counts[list(DECODINGS)].div(counts.tasks, axis=0).assign(tasks=counts.tasks)
        runs.append(shares.reset_index().assign(arm=arm, starter=starter, seed=seed))
    groups = pd.concat(runs).groupby(["starter", "arm", "steps"])
    return groups.agg(
        seeds=("seed", "size"), tasks=("tasks", "mean"), sampled=("sampled", "mean"), sampled_sd=("sampled", "std"),
        greedy=("greedy", "mean"), greedy_sd=("greedy", "std"),
    ).reset_index()  # fmt: skip


def alone(table: pd.DataFrame) -> pd.DataFrame:
    """Compute success in carts of one or two kinds of steps, sampled, 192 tasks a cell: mean over seeds of an arm."""
    starts = [
        pd.read_csv(HERE / f"skills_{starter}.csv").assign(arm="start", starter=starter, seed=0)
        for starter in STARTERS
    ]
    both = pd.concat([table, *starts])
    cells = both[~both.cell.str.startswith("d = ")]
    groups = cells.groupby(["starter", "arm", "cell"], sort=False)
    return groups.agg(
        seeds=("seed", "size"), sampled=("sampled", "mean"), sd=("sampled", "std")
    ).reset_index()


def gains(table: pd.DataFrame, before: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tabulate, for each run of S2, the gain of the environment held out, and success in the order's first one."""
    held_out, first = [], []
    for run in environments():
        mine = table[(table.arm == run.arm) & (table.seed == run.seed)]
        own = run.settings["collection"].split(",")[0]
        for decoding in DECODINGS if len(mine) else ():
            said = {"order": run.seed, "k": int(run.arm.split("-")[0]), "decoding": decoding}
            after, start = (
                side[(side.env == run.held_out) & (side.decoding == decoding)].success.mean()
                for side in (mine, before)
            )
            held_out.append({**said, "env": run.held_out, "gain": after - start})
            success = mine[(mine.env == own) & (mine.decoding == decoding)].success.mean()
            first.append({**said, "env": own, "success": success})
    return pd.DataFrame(held_out), pd.DataFrame(first)


def slopes(values: pd.DataFrame, what: str) -> pd.DataFrame:
    """Fit each order's values to log2 of the number of environments that were trained: a row for each whole order."""
    found = []
    for (order, env, decoding), mine in values.groupby(["order", "env", "decoding"]):
        if len(mine) == 4:
            slope = np.polyfit(np.log2(mine.k), mine[what], 1)[0]
            at = {f"k = {k}": value for k, value in zip(mine.k, mine[what], strict=True)}
            found.append({"order": order, "env": env, "decoding": decoding, "slope": slope, **at})
    return pd.DataFrame(found)


def over_orders(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Test the mean slope of the orders against nothing; the primary one is of gains, greedy. Beside it stand the means
    at each number of environments (`k`)."""
    rows = []
    for name, table in tables.items():
        for decoding, mine in table.groupby("decoding") if len(table) else ():
            for what in ("slope", *(column for column in mine if column.startswith("k = "))):
                found = compared(mine[what], mine[what] * 0)
                said = {"table": name, "decoding": decoding, "what": what, "orders": found.pop("seeds")}
                rows.append({**said, **found})
    return pd.DataFrame(rows)


def pairs_of(results: Path, runs: Sequence[Run], arm: str, starter: str) -> pd.DataFrame | None:
    """Read an arm's pairs that can be mended, those of the starter itself, the same for all seeds, or None without."""
    if arm == "start":
        tables = [pd.read_csv(results / f"start-planted-{starter}.csv")]
    else:
        tables = [
            pd.read_csv(path).assign(run=run.seed)
            for run, path in done(results, runs, "planted.csv")
            if (run.arm, run.starter) == (arm, starter)
        ]
    return pd.concat(tables).query("not final") if tables else None


def mended(
    results: Path, runs: Sequence[Run] = RUNS, arms: Sequence[tuple[str, str]] = MENDED
) -> pd.DataFrame:
    """Compare shares mended on common pairs (task, turn, kind): a 95% bootstrap over seeds and tasks, by level; and,
    because that is narrow with few seeds, a two-sided t over the seeds' own differences (`p_seeds`)."""
    rows = []
    for starter in STARTERS:
        for one, other in arms:
            sides = [
                side for arm in (one, other) if (side := pairs_of(results, runs, arm, starter)) is not None
            ]
            if len(sides) < 2:
                continue
            same = [
                name for name in ("d", "seed", "turn", "kind", "run") if all(name in side for side in sides)
            ]
            common = sides[0].merge(sides[1], on=same, suffixes=("", "_other"))
            for level, pairs in common.groupby("d"):
                low, high = bootstrap(pairs.run, pairs.seed, pairs.mended * 1.0 - pairs.mended_other)
                shares = [float(pairs[name].mean()) for name in ("mended", "mended_other")]
                seeds = pairs.groupby("run")[["mended", "mended_other"]].mean()
                p_seeds = compared(seeds.mended, seeds.mended_other)["p"]
                rows.append(
                    {"starter": starter, "contrast": f"{one} - {other}", "level": level, "seeds": pairs.run.nunique(),
                     "pairs": len(pairs), "one": shares[0], "other": shares[1], "difference": shares[0] - shares[1],
                     "low": low, "high": high, "p_seeds": p_seeds}
                )  # fmt: skip
    return pd.DataFrame(rows)


def recovery(results: Path) -> pd.DataFrame:
    """Compare success over levels 0 to 6 of given turns that end in a mistake with their control."""
    one, other = RECOVERY_ARMS
    table = ends(results, "recovery", RECOVERY)
    rows = []
    for decoding in DECODINGS if len(table) else ():
        success = by_seed(table, decoding, RANGES["0-6"])
        rows += [
            {
                "starter": starter,
                "decoding": decoding,
                **compared(success[starter, one], success[starter, other]),
            }
            for starter in STARTERS
            if {(starter, one), (starter, other)} <= {*success}
        ]
    return pd.DataFrame(rows)


def bootstrap(runs: pd.Series, tasks: pd.Series, values: pd.Series) -> tuple[float, float]:
    """Bound a mean by resampling runs and tasks, each with replacement and independently of the other."""
    random = rng("bootstrap of S4")
    weights = np.ones((BOOTSTRAPS, len(values)))
    for names in (runs, tasks):
        codes, distinct = pd.factorize(names)
        counts = random.multinomial(len(distinct), np.full(len(distinct), 1 / len(distinct)), BOOTSTRAPS)
        weights *= counts[:, codes]
    totals = weights.sum(axis=1)
    means = (weights @ values.to_numpy())[totals > 0] / totals[totals > 0]
    low, high = np.quantile(means, (0.025, 0.975)).tolist()
    return low, high


def renamed(table: pd.DataFrame) -> pd.DataFrame:
    """Call the arm *singles* otherwise than the starter of that name."""
    return table.assign(**{name: table[name].map(said) for name in ("arm", "contrast") if name in table})


def main() -> None:
    results = HERE / "results"
    table, second = ends(results), ends(results, "S2")
    if table.empty:
        print("no run of S1 is done yet")
        return
    followed = curves(results)
    made = {
        "runs": finished(results),
        "fresh": fresh(results),
        "health": health(results),
        "success": success(results, table),
        "contrasts": contrasts(table, followed),
        "mended": pd.concat([mended(results), mended(results, RECOVERY, [tuple(RECOVERY_ARMS)])]),
        "mended_arms": mended(results, arms=[(arm, "start") for arm in (*S1_ARMS, *IMITATION)]),
        "alone": alone(table),
    }
    made["contrasts"]["claimed"] = claimed(made["contrasts"], made["fresh"])
    made |= {"by_steps": by_steps(results), "curves": followed, "growth": growth(followed)}
    if len(second):
        held_out, first = gains(second, pd.read_csv(results / "start-environments.csv"))
        made |= {"slopes": slopes(held_out, "gain"), "company": slopes(first, "success")}
        made["environments"] = over_orders({name: made[name] for name in ("slopes", "company")})
    if len(again := recovery(results)):
        made["recovery"] = again
    made = {name: renamed(one) for name, one in made.items()}
    made["predictions"] = outcomes(made)
    for name, one in made.items():
        one.round(4).to_csv(HERE / f"{name}.csv", index=False, lineterminator="\n")
    (HERE / "TABLES.md").write_text(as_markdown(made), "utf-8")
    records = {run.name: read_json(results / run.name / "provenance.json") for run in RUNS}
    common = merged({name: record for name, record in records.items() if record})["common"]
    write_json(HERE / "analysis.json", {**provenance({}), "data": common})


if __name__ == "__main__":
    main()
