"""Statistics of the error cascade, worked out by hand."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from ecomlab.analysis import cascades

Made = Sequence[tuple[int, str]]
"""(turn, kind) of the mistakes of an episode."""


def played(
    cells: Mapping[tuple[str, int], Sequence[tuple[Made, bool]]], turns: int = 4, env: str = "CART"
) -> pd.DataFrame:
    """Rows of played.csv: for each player and level the mistakes of each episode, and whether it is correct."""
    rows = []
    for (player, d), episodes in cells.items():
        for seed, (made, correct) in enumerate(episodes):
            head = {
                "player": player,
                "env": env,
                "d": d,
                "seed": seed,
                "turns": turns,
                "needed": 4,
                "end": "submit",
            }
            for number, (turn, kind) in enumerate(made):
                rows.append({**head, "correct": int(correct), "number": number, "turn": turn, "kind": kind})
            if not made:
                rows.append({**head, "correct": int(correct), "kind": "none"})
    return pd.DataFrame(rows).assign(cause="", fate="persisted", until=np.nan, parent=np.nan)


LOST: tuple[Made, bool] = ([(1, "wrong product")], False)
WON: tuple[Made, bool] = ([], True)


def test_hard_is_eight_or_the_highest_level_with_a_tenth() -> None:
    cells = {("a", 1): [WON] * 10, ("a", 3): [WON] + [LOST] * 9, ("a", 8): [LOST] * 10, ("b", 8): [WON]}
    assert cascades.hard_levels(played({**cells, ("c", 3): [LOST]})) == {"a": 3, "b": 8, "c": 1}


def test_first_mistakes_are_shares_of_all_episodes() -> None:
    table = played({("a", 1): [LOST, WON, ([(2, "cut off"), (3, "wrong product")], False), WON]})
    assert cascades.first_mistakes(table, ["wrong product", "other"]) == {
        "wrong product": 0.25,
        "other": 0.25,
    }
    assert cascades.kinds_of(table, most=1) == ["wrong product", "other"]


def test_survival_is_kaplan_and_meiers() -> None:
    """Of four episodes one errs in turn 2, one stops in turn 2, one errs in turn 4: 3/4, then half of that."""
    errs = [([(2, "wrong product")], False), ([(4, "wrong product")], False), WON]
    table = pd.concat([played({("a", 1): errs}), played({("a", 1): [WON]}, turns=2).assign(seed=9)])
    found = cascades.survival(table).set_index("share")
    assert found.surviving[0.25] == 1
    assert found.surviving[[0.5, 0.75]].tolist() == pytest.approx([3 / 4, 3 / 4])
    assert (found.surviving[1.0], found.at_risk[1.0]) == (pytest.approx(3 / 8), 2)


def test_players_that_play_alike_are_drawn_once() -> None:
    table = played({("a", 1): [LOST, WON], ("b", 1): [LOST, WON], ("c", 1): [WON, LOST]})
    assert set(cascades.distinct(table).player) == {"a", "c"}


def test_a_table_has_success_and_first_mistakes_of_each_player_and_level() -> None:
    table = cascades.first_table(played({("a", 1): [LOST, WON, WON, WON], ("b", 8): [LOST]})).set_index(
        "player"
    )
    assert table.episodes.tolist() == [4, 1] and table.success.tolist() == [0.75, 0]
    assert table["wrong product"].tolist() == [0.25, 1] and table["none"].tolist() == [0.75, 0]
