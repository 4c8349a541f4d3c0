"""Statistics of labelled episodes: first mistakes, what follows what beyond chance, and which levels are compared."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ecomlab.analysis.tables import TableError
from ecomlab.evaluate.cascade.causal import effects, outcome_of
from ecomlab.evaluate.cascade.mistakes import Labelled, Mistake

LOW = 1
"""The easy level of every comparison."""
ENOUGH = 0.1
"""Success at the hard level of a comparison, at least: where hardly anything succeeds, nothing is to be recovered."""
PAIRS = 5
"""Pairs of episodes, at least, of which an effect is drawn."""
CLEAN, OTHER = "none", "other"
Cells = Mapping[tuple[str, int], Sequence[Labelled]]
"""Labelled episodes by player and level."""


def labelled(played: pd.DataFrame) -> Cells:
    """Read the labelled episodes of `tables.load_played`, by player and level."""
    cells: dict[tuple[str, int], list[Labelled]] = defaultdict(list)
    episodes: dict[tuple[str, str, int, int], list[Any]] = defaultdict(list)
    for row in played.itertuples():
        episodes[row.player, row.env, row.d, row.seed].append(row)
    for (player, env, d, seed), rows in episodes.items():
        head = rows[0]
        made = tuple(
            Mistake(
                turn=int(row.turn),
                kind=row.kind,
                cause=row.cause,
                fate=row.fate,
                parent=None if pd.isna(row.parent) else int(row.parent),
                until=None if pd.isna(row.until) else int(row.until),
            )
            for row in rows
            if row.kind != CLEAN
        )
        cells[player, d].append(
            Labelled(
                env, d, seed, int(head.turns), int(head.needed), head.end, bool(head.correct), False, made
            )
        )
    return cells


def success(cells: Cells) -> dict[tuple[str, int], float]:
    """Compute each player's share of correct episodes at each level."""
    return {key: sum(one.correct for one in some) / len(some) for key, some in cells.items()}


def hard_levels(cells: Cells, hardest: int = 8) -> dict[str, int]:
    """Choose the hard level of each player's comparison: `hardest`, or the highest one below it that was played and at
    which at least `ENOUGH` of its episodes are correct; `LOW` if there is none."""
    shares = success(cells)
    return {
        player: max(
            (d for (name, d), share in shares.items() if name == player and d <= hardest and share >= ENOUGH),
            default=LOW,
        )
        for player in dict.fromkeys(name for name, _ in cells)
    }


def check_low(cells: Cells) -> None:
    """Raise TableError for players that were not played at `LOW`, beside which every comparison stands."""
    players = dict.fromkeys(name for name, _ in cells)
    if lacking := [name for name in players if (name, LOW) not in cells]:
        envs = ",".join(sorted({one.env for some in cells.values() for one in some}))
        raise TableError(
            f"played.csv has no rows at d = {LOW} of {', '.join(lacking)}; to add them, a checkpoint as NAME=FOLDER: "
            f"python experiments/cascade/played.py {' '.join(lacking)} --env {envs} --levels {LOW}"
        )


def alike(cells: Cells) -> list[tuple[str, str]]:
    """List the players that made the very same mistakes as an earlier one everywhere: it may be the same policy."""
    players = list(dict.fromkeys(name for name, _ in cells))
    made = {player: {d: some for (name, d), some in cells.items() if name == player} for player in players}
    pairs = ((one, other) for number, one in enumerate(players) for other in players[:number])
    return [(one, other) for one, other in pairs if made[one] == made[other]]


def kinds_of(cells: Cells, most: int = 7) -> list[str]:
    """List the kinds of first mistakes, the most frequent first; all beyond `most` are `OTHER`."""
    first = Counter(one.first.kind for some in cells.values() for one in some if one.first)
    found = [kind for kind, _ in first.most_common(most)]
    return [*found, OTHER] if len(first) > most else found


def first_mistakes(some: Sequence[Labelled], kinds: Sequence[str]) -> dict[str, float]:
    """Compute the share of episodes whose first mistake is of each of these kinds; the rest of 1 made none."""
    found = Counter(one.first.kind if one.first.kind in kinds else OTHER for one in some if one.first)
    return {kind: found[kind] / len(some) for kind in kinds}


def follows(cells: Cells, kinds: Sequence[str]) -> np.ndarray:
    """Compute how many more times a new mistake of one kind (row) is followed by a new one of another (column) in the
    next turn than if the two turns were independent, for each 100 episodes.

    Independence is within player, environment, level and turn. Mistakes that follow from an earlier one by rule are not
    new.
    """
    strata: dict[tuple[str, str, int, int], list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    place = {kind: number for number, kind in enumerate(kinds)}
    for (player, d), some in cells.items():
        for one in some:
            made = np.zeros((one.turns + 2, len(kinds)))
            for mistake in one.roots:
                if mistake.kind in place:
                    made[mistake.turn, place[mistake.kind]] = 1
            for turn in range(1, one.turns):
                strata[player, one.env, d, turn].append((made[turn], made[turn + 1]))
    surplus = np.zeros((len(kinds), len(kinds)))
    for pairs in strata.values():
        now, then = (np.array(side) for side in zip(*pairs, strict=True))
        surplus += now.T @ then - np.outer(now.sum(0), then.sum(0)) / len(pairs)
    return 100 * surplus / max(1, sum(map(len, cells.values())))


def planted(effect: pd.DataFrame) -> pd.DataFrame:
    """Summarize the table of experiments/cascade/effect.py: for each player, environment, level and kind of planted
    act, and over all kinds, the columns of `causal.effects`."""
    pairs = effect[effect.why == ""]
    rows = []
    for player, mine in pairs.groupby("player", sort=False):
        found = effects([outcome_of(row) for row in mine.to_dict("records")])
        rows += [{"player": player, **row} for row in found]
    return pd.DataFrame(rows)
