"""Statistics of labelled episodes: first mistakes, successions beyond chance, and the levels to compare."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ecomlab.analysis.tables import TableError
from ecomlab.evaluation.cascade.causal import ACTS, LEFT_OUT, Outcome, effects, gains, outcome_of
from ecomlab.evaluation.cascade.mistakes import Labelled, Mistake

LOW = 1
"""The easy level of every comparison."""
ENOUGH = 0.1
"""Minimum success at the hard level of a comparison: below it, too few episodes can recover."""
PAIRS = 5
"""Minimum number of pairs of episodes for drawing an effect."""
ORDER = ("perturbed", "base", "novice")
"""Players that no schedule has trained, in the order of figures."""
CLEAN, OTHER = "none", "other"
LOSS = "success less the twin's"
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


def distinct(cells: Cells) -> Cells:
    """Leave out the players that play as an earlier one does (`alike`)."""
    copies = {one for one, _ in alike(cells)}
    return {key: some for key, some in cells.items() if key[0] not in copies}


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
    pairs = _outcomes(effect)
    return pd.DataFrame([{"player": name, **row} for name, mine in pairs.items() for row in effects(mine)])


def gained(effect: pd.DataFrame, against: str = "novice") -> pd.DataFrame:
    """Compare every other player of the table of experiments/cascade/effect.py with one of them, by the pairs that both
    have: the columns of `causal.gains`. No rows where that one is not in the table."""
    pairs = _outcomes(effect)
    theirs = pairs.pop(against, [])
    return pd.DataFrame(
        [{"player": name, **row} for name, mine in pairs.items() for row in gains(mine, theirs)],
        columns=None if theirs else ["player", "env", "d", "kind"],
    )


def _outcomes(effect: pd.DataFrame) -> dict[str, list[Outcome]]:
    pairs = effect[effect.why == ""]
    return {
        player: [outcome_of(row) for row in mine.to_dict("records")]
        for player, mine in pairs.groupby("player", sort=False)
    }


def unpaired(effect: pd.DataFrame) -> pd.DataFrame:
    """Count the tasks of each player, environment, level and kind that have a pair, and those that have none by the
    reason (`causal.LEFT_OUT`), a column each."""
    by = ["player", "env", "d", "kind"]
    named = effect.assign(why=effect.why.replace("", "pair"))
    counts = named.groupby([*by, "why"], sort=False).size().unstack(fill_value=0)
    reasons = [why for why in ("pair", *LEFT_OUT) if why in counts]
    return counts[reasons].reset_index().rename_axis(columns=None)


def as_markdown(effect: pd.DataFrame, against: str = "novice") -> str:
    """Write what planted acts lead to as Markdown tables: over all kinds; by kind; less what they lead to with another
    player; and why there are no more pairs."""
    found, more, counts = planted(effect), gained(effect, against), unpaired(effect)
    played = effect.groupby(["player", "env", "d"]).seed.nunique()
    every, kinds = found[found.kind == "all"], [kind for kind in ACTS if (effect.kind == kind).any()]
    tables = [
        _table(
            ("player", "env", "d", "tasks", "with a pair", "pairs", "mended", LOSS, "more mistakes"),
            [
                (
                    *(key := (row["player"], row["env"], row["d"])), played[key], row["tasks"], row["pairs"],
                    *(_bounded(row, name) for name in ("mended", "effect", "further")),
                )
                for row in every.to_dict("records")
            ],
        ),
        _table(
            (f"mended, {LOSS} (pairs)", "env", "d", *kinds),
            [
                (*key, *(_short(mine[mine.kind == kind]) for kind in kinds))
                for key, mine in found.groupby(["player", "env", "d"], sort=False)
            ],
        ),
        _table(
            (f"less {against}", "env", "d", "kind", "tasks", "mended", LOSS),
            [
                (
                    row["player"], row["env"], row["d"], row["kind"], row["tasks"],
                    *(_bounded(row, name) for name in ("mended", "effect")),
                )
                for row in more.to_dict("records")
                if row["tasks"] >= PAIRS and row["player"] not in ORDER
            ],
        ),
        _table(
            ("tasks of all players and levels", *(whys := [why for why in ("pair", *LEFT_OUT) if why in counts])),
            [(kind, *mine[whys].sum()) for kind, mine in counts.groupby("kind", sort=False)],
        ),
    ]  # fmt: skip
    return "\n\n".join(filter(None, tables))


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a Markdown table; nothing where it has no rows."""
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _bounded(row: Mapping[str, float], name: str) -> str:
    """Write a value with its interval; a dash for one that is not known."""
    if np.isnan(row[name]):
        return "–"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:.2f}" + ("" if np.isnan(low) else f" ({low:.2f} to {high:.2f})")


def _short(rows: pd.DataFrame) -> str:
    """Write the share repaired, the loss of success, and the number of pairs; a dash for fewer than `PAIRS`."""
    if not len(rows) or rows.pairs.iloc[0] < PAIRS:
        return "–"
    row = rows.iloc[0]
    mended = "–" if np.isnan(row.mended) else f"{row.mended:.2f}"
    return f"{mended}, {row.effect:+.2f} ({row.pairs})"
