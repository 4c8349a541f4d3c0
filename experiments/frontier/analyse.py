"""The registered analyses of S1 and S2, from results/.

python experiments/frontier/analyse.py                 # writes contrasts.csv and slopes.csv beside this file
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from study import CONTRASTS, STARTERS, environments

HERE = Path(__file__).resolve().parent
RANGES = {"0-6": range(7), "7-8": (7, 8)}


def ends(results: Path, part: str = "S1") -> pd.DataFrame:
    """Read the final measurements of a part's finished runs: a row per arm, starter, seed, block and cell."""
    found = []
    for file in sorted((results / part).glob("*/end.csv")):
        arm, starter, seed = file.parent.name.rsplit("-", 2)
        found.append(pd.read_csv(file).assign(arm=arm, starter=starter, seed=int(seed)))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def by_seed(table: pd.DataFrame, decoding: str, levels: Sequence[int]) -> pd.DataFrame:
    """Compute each run's success, mean over blocks and levels: seeds by (starter, arm)."""
    chosen = table[table.cell.isin([f"d = {d}" for d in levels])]
    return chosen.pivot_table(index="seed", columns=["starter", "arm"], values=decoding, aggfunc="mean")


def compared(one: pd.Series, other: pd.Series) -> dict[str, float]:
    """Compare two arms over the seeds that both have: mean difference, 95% interval and p of a paired t test."""
    difference = (one - other).dropna()
    n = len(difference)
    if n < 2:
        return {"seeds": n, "difference": difference.mean(), "low": np.nan, "high": np.nan, "p": np.nan}
    half = stats.t.ppf(0.975, n - 1) * difference.std(ddof=1) / np.sqrt(n)
    p = stats.ttest_1samp(difference, 0).pvalue
    mean = difference.mean()
    return {"seeds": n, "difference": mean, "low": mean - half, "high": mean + half, "p": float(p)}


def holm(p: pd.Series) -> pd.Series:
    """Correct p-values by Holm's method."""
    order = p.sort_values().index
    factors = pd.Series(range(len(p), 0, -1), index=order)
    return (p[order] * factors).cummax().clip(upper=1)[p.index]


def contrasts(table: pd.DataFrame) -> pd.DataFrame:
    """Make the primary contrasts (sampled, levels 0 to 6; Holm within a starter), and uncorrected secondary ones."""
    rows = []
    for decoding in ("sampled", "greedy"):
        for name, levels in RANGES.items():
            success = by_seed(table, decoding, levels)
            for starter in STARTERS:
                for one, other in CONTRASTS:
                    if {(starter, one), (starter, other)} <= set(success.columns):
                        found = compared(success[starter, one], success[starter, other])
                        place = {"starter": starter, "contrast": f"{one} - {other}", "decoding": decoding}
                        rows.append({**place, "levels": name, **found})
    made = pd.DataFrame(rows)
    if len(made):
        primary = (made.decoding == "sampled") & (made.levels == "0-6")
        made.loc[primary, "holm"] = made[primary].groupby("starter").p.transform(holm)
    return made


def slopes(table: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Fit, for each order, the held-out environment's gain to log2 of the number of environments that were trained."""
    rows = []
    for run in environments():
        mine = table[(table.arm == run.arm) & (table.seed == run.seed) & (table.env == run.held_out)]
        start = before[before.env == run.held_out]
        for decoding in ("greedy", "sampled"):
            gain = [side[side.decoding == decoding].success.mean() for side in (mine, start)]
            count = int(run.arm.split("-")[0])
            rows.append({"order": run.seed, "k": count, "decoding": decoding, "gain": gain[0] - gain[1]})
    gains = pd.DataFrame(rows).dropna()
    found = []
    for (order, decoding), mine in gains.groupby(["order", "decoding"]):
        if len(mine) == 4:
            slope = np.polyfit(np.log2(mine.k), mine.gain, 1)[0]
            found.append(
                {
                    "order": order,
                    "decoding": decoding,
                    "slope": slope,
                    **dict(zip(mine.k, mine.gain, strict=True)),
                }
            )
    return pd.DataFrame(found)


def main() -> None:
    results = HERE / "results"
    table = ends(results)
    if table.empty:
        print("no run of S1 is done yet")
        return
    found = contrasts(table).round(4)
    found.to_csv(HERE / "contrasts.csv", index=False, lineterminator="\n")
    print(found.to_string(index=False))
    second, before = ends(results, "S2"), results / "start-environments.csv"
    if len(second) and before.exists():
        made = slopes(second, pd.read_csv(before)).round(4)
        made.to_csv(HERE / "slopes.csv", index=False, lineterminator="\n")
        print(made.to_string(index=False))


if __name__ == "__main__":
    main()
