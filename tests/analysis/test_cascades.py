"""Statistics of the error cascade, worked out by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from ecomlab.analysis import cascade_plots, cascades, tables

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "cascade"
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
    table = tables.load_played(FOLDER / "played.csv")
    assert set(table.player) - set(cascades.distinct(table).player) == {"static-high"}


def pairs(player: str, d: int, count: int, mended: int, kind: str = "wrong product", why: str = "") -> Any:
    """Rows of effect.csv: `count` pairs of a player, the first `mended` of which were mended."""
    head = {
        "player": player,
        "env": "CART",
        "d": d,
        "trial": 0,
        "kind": kind,
        "turn": 2,
        "final": 0,
        "why": why,
    }
    made = {"twin_correct": 1, "twin_later": 0, "planted_later": 0}
    right = [int(seed < mended) for seed in range(count)]
    return [
        {**head, **made, "seed": seed, "planted_correct": won, "mended": won}
        for seed, won in enumerate(right)
    ]


def containers(table: pd.DataFrame, hard: Mapping[str, int], value: str) -> list[Any]:
    """The panels of planted mistakes."""
    figure = Figure()
    place, looks = figure.add_gridspec(1, 1)[0], cascade_plots.looks_of(hard)
    cascade_plots._planted(figure, place, cascades.planted(table), cascades.gained(table), hard, looks, value)
    return figure.axes


def test_the_share_mended_of_few_that_could_be_is_not_drawn() -> None:
    """Of six pairs, one of which could be mended."""
    table = pd.DataFrame(pairs("base", 1, 6, 1))
    table.loc[1:, "final"] = 1
    drawn = {
        value: len(containers(table, {"base": 1}, value)[0].containers) for value in ("mended", "effect")
    }
    assert drawn == {"mended": 0, "effect": 2}, "over all kinds, and of the one kind"


def test_what_a_schedule_gains_is_compared_by_the_pairs_of_the_same_tasks() -> None:
    """The novice mends one of six, the trained one four of the same; what only one of them has does not count."""
    rows = [row for d in (1, 2) for row in (*pairs("novice", d, 6, 1), *pairs("adaptive", d, 6, 4))]
    table = pd.DataFrame([*rows, *pairs("adaptive", 1, 3, 3, "wrong variant")])
    gained = cascades.gained(table)
    assert set(gained.player) == {"adaptive"} and set(gained.kind) == {"all", "wrong product"}
    assert gained.mended.tolist() == gained.effect.tolist() == [0.5] * 4
    assert ((gained.mended_low < 0.5) & (gained.mended_high > 0.5)).all() and set(gained.tasks) == {6}
    low, high, more = containers(table, {"novice": 2, "adaptive": 3}, "mended")
    assert [len(ax.containers) for ax in (low, high, more)] == [4, 2, 4]
    marks = [bars[0].get_markerfacecolor() for bars in more.containers]
    assert [mark == "white" for mark in marks] == [False, True] * 2, "hollow at the hard level of the novice"


def test_a_task_without_a_pair_is_counted_with_its_reason() -> None:
    why = "no act to make wrong so"
    table = pd.DataFrame([*pairs("base", 1, 6, 1), *pairs("base", 1, 2, 0, "wrong variant", why)])
    counts = cascades.unpaired(table).set_index("kind")
    assert counts.pair.to_dict() == {"wrong product": 6, "wrong variant": 0}
    assert counts[why].to_dict() == {"wrong product": 0, "wrong variant": 2}


def test_the_page_has_what_the_committed_pairs_come_to() -> None:
    page = (FOLDER.parents[1] / "docs" / "cascade.md").read_text("utf-8")
    found = cascades.planted(tables.load_effect(FOLDER / "effect.csv"))
    for row in found[found.kind == "all"].itertuples():
        said = f"| {row.player} | {row.d} | {row.tasks} | {row.mended:.2f} | {row.effect:+.2f} ("
        assert said in page, said
