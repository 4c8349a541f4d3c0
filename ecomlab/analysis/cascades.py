"""Statistics of `fig_error_cascade`, from the tables of experiments/cascade: first mistakes, survival, what follows
what, fates, and the effects of planted mistakes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ecomlab.evaluation.compare import paired_interval
from ecomlab.evaluation.planting import LEFT_OUT, PLANTABLE, Pair, effects

LOW = 1
"""The easy level of every comparison."""
ENOUGH = 0.1
"""Least success at the hard level of a comparison."""
PAIRS = 5
"""Fewest pairs of episodes of which an effect is drawn."""
ORDER = ("perturbed", "base", "novice")
"""Players that no schedule has trained, in the order of figures."""
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


# --- planted mistakes ---


def pairs_of(effect: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of effect.csv that hold a pair, with numbers as numbers."""
    flags = dict.fromkeys(("final", "twin_correct", "planted_correct", "mended"), int)
    counts = dict.fromkeys(("turn", "twin_later", "planted_later"), int)
    return effect[effect.why == ""].astype(flags | counts)


def planted(effect: pd.DataFrame) -> pd.DataFrame:
    """Summarize effect.csv: for each player, environment, level and kind, and over all kinds, the columns of
    `planting.effects`."""
    names = [name for name in Pair.__dataclass_fields__ if name != "turn"]
    return pd.DataFrame(
        [
            {"player": player, **row}
            for player, mine in pairs_of(effect).groupby("player", sort=False)
            for row in effects([Pair(**row) for row in mine[names].to_dict("records")])
        ]
    )


def gained(effect: pd.DataFrame, against: str = "novice") -> pd.DataFrame:
    """Compare every other player with one of them, by the pairs of the same tasks and kinds that both have.

    For each environment, level and kind, and over all kinds, whose differences are averaged within the task: `mended`,
    the difference in the share of planted mistakes that did not last, and `effect`, the difference in the loss of
    success, each with 95% bounds over `tasks`. No rows where that player is not in the table.
    """
    pairs = pairs_of(effect)
    pairs = pairs.assign(effect=pairs.planted_correct - pairs.twin_correct)
    theirs = pairs[pairs.player == against]
    both = pairs[pairs.player != against].merge(
        theirs, on=["env", "d", "seed", "kind"], suffixes=("", "_other")
    )
    both["mended"] = (both.mended - both.mended_other).where((both.final == 0) & (both.final_other == 0))
    both["effect"] = both.effect - both.effect_other
    every = pd.concat([both.assign(kind="all"), both])
    rows = []
    for player in pairs.player.unique():
        for (env, d, kind), mine in every[every.player == player].groupby(["env", "d", "kind"]):
            tasks = mine.groupby("seed", sort=False)[["mended", "effect"]].mean()
            rows.append(
                {
                    "player": player, "env": env, "d": d, "kind": kind, "tasks": len(tasks),
                    "mendable": int(tasks.mended.count()),
                    **_bounded("mended", tasks.mended.dropna(), 1), **_bounded("effect", tasks.effect, 2),
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=None if rows else ["player", "env", "d", "kind"])


def _bounded(name: str, values: pd.Series, most: int) -> dict[str, float]:
    """Compute the mean of differences in [-most, most], with its bounds."""
    found = paired_interval(values.to_numpy() / most)[:3] if len(values) else (np.nan,) * 3
    return dict(zip((name, f"{name}_low", f"{name}_high"), (most * one for one in found), strict=True))


def unpaired(effect: pd.DataFrame) -> pd.DataFrame:
    """Count the tasks of each player, environment, level and kind that have a pair, and those that have none by the
    reason (`planting.LEFT_OUT`)."""
    by = ["player", "env", "d", "kind"]
    named = effect.assign(why=effect.why.replace("", "pair"))
    counts = named.groupby([*by, "why"], sort=False).size().unstack(fill_value=0)
    return (
        counts[[why for why in ("pair", *LEFT_OUT) if why in counts]].reset_index().rename_axis(columns=None)
    )


def kinds_planted(table: pd.DataFrame) -> list[str]:
    """List the kinds of planted mistakes in a table, in their order."""
    return [kind for kind in PLANTABLE if (table.kind == kind).any()]
