"""Statistics of `fig_error_cascade`, from the table of experiments/cascade: first mistakes, survival, fates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

LOW = 1
"""The easy level of every comparison."""
ENOUGH = 0.1
"""Least success at the hard level of a comparison."""
NONE, OTHER = "none", "other"
EPISODE = ["player", "env", "d", "seed"]
"""Columns that name an episode."""
SHARES = tuple(0.25 * n for n in range(13))
"""Turns, as shares of those that the reference player needs, at which survival is given."""


def episodes(played: pd.DataFrame) -> pd.DataFrame:
    """Keep one row an episode: its first mistake, or the row of kind "none"."""
    return played.drop_duplicates(EPISODE)


def hard_levels(played: pd.DataFrame, hardest: int = 8) -> dict[str, int]:
    """Choose the hard level of each player: the highest level up to `hardest` at which at least `ENOUGH` of its
    episodes are correct; `LOW` if there is none."""
    success = episodes(played).groupby(["player", "d"]).correct.mean().reset_index()
    able = success[(success.d <= hardest) & (success.correct >= ENOUGH)].groupby("player").d.max()
    return {player: int(able.get(player, LOW)) for player in played.player.unique()}


def distinct(played: pd.DataFrame) -> pd.DataFrame:
    """Leave out players that made the same mistakes as an earlier one everywhere: they may be the same policy."""
    kept: dict[Any, pd.DataFrame] = {}
    for player, rows in played.groupby("player", sort=False):
        made = rows.drop(columns="player").sort_values([*EPISODE[1:], "number"]).reset_index(drop=True)
        if not any(made.equals(other) for other in kept.values()):
            kept[player] = made
    return played[played.player.isin(kept)]


def at_levels(played: pd.DataFrame, levels: Mapping[str, int]) -> pd.DataFrame:
    """Select each player's rows at its level, in the order of `levels`."""
    return pd.concat([played[(played.player == player) & (played.d == d)] for player, d in levels.items()])


def kinds_of(played: pd.DataFrame, most: int = 7) -> list[str]:
    """List the kinds of first mistakes, the most frequent first; those beyond `most` are `OTHER`."""
    first = Counter(kind for kind in episodes(played).kind if kind != NONE)
    found = [kind for kind, _ in first.most_common(most)]
    return [*found, OTHER] if len(first) > most else found


def first_mistakes(played: pd.DataFrame, kinds: Sequence[str]) -> dict[str, float]:
    """Compute the share of episodes whose first mistake is of each kind; the rest of 1 made none."""
    first = episodes(played).kind
    named = first.where(first.isin([*kinds, NONE]), OTHER)
    return {kind: float((named == kind).mean()) for kind in kinds}


def first_table(played: pd.DataFrame) -> pd.DataFrame:
    """Tabulate, for each player and level, episodes, success and the shares of first mistakes by kind."""
    by = ["player", "d"]
    first = episodes(played).groupby(by, sort=False)
    kinds = first.kind.value_counts(normalize=True).unstack(fill_value=0)
    table = first.correct.agg(episodes="size", success="mean").join(kinds)
    return table.reset_index()


def survival(played: pd.DataFrame) -> pd.DataFrame:
    """Estimate the share of episodes without a mistake at each of `SHARES` (Kaplan and Meier; an episode counts for as
    long as it goes on), and the number of episodes `at_risk`. Time is turns over the turns that the task needs."""
    from scipy.stats import CensoredData, ecdf

    every = episodes(played)
    clean = every.kind == NONE
    times = every.turn.where(~clean, every.turns) / every.needed.clip(lower=1)
    estimate = ecdf(CensoredData(uncensored=times[~clean], right=times[clean])).sf
    surviving = [1.0 if np.isnan(value) else value for value in map(float, map(estimate.evaluate, SHARES))]
    at_risk = [int((times >= share).sum()) for share in SHARES]
    return pd.DataFrame({"share": SHARES, "at_risk": at_risk, "surviving": surviving})


def fates(played: pd.DataFrame) -> pd.DataFrame:
    """Count the fates (columns) of the mistakes of each kind (rows)."""
    return pd.crosstab(played.kind, played.fate).drop(index=NONE, errors="ignore")
