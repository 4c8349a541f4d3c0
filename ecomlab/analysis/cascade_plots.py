"""The figure of error cascades: where players go wrong, when, and what becomes of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis import cascades
from ecomlab.analysis.cascades import LOW
from ecomlab.analysis.plots import look
from ecomlab.evaluation.mistakes import WORLD
from ecomlab.style import (
    Look,
    Width,
    canvas,
    current,
    in_rows,
    is_page,
    laid_out,
    lettered,
    places_of,
    small,
)

_OTHERS: dict[str, tuple[int, str]] = {
    "perturbed": (7, "X"),
    "base": (9, "p"),
    "singles": (8, "v"),
    "novice": (5, "P"),
}
"""Colours and markers of players that no schedule has trained."""
_FATES: dict[str, str] = {
    "mended alone": "mended alone",
    "mended after a correction": "after a correction",
    "overtaken": "overtaken",
    "given up": "given up",
    "persisted": "persisted",
}


def looks_of(players: Iterable[str]) -> dict[str, Look]:
    """Choose colour and marker of each player, in the order of figures: those that no schedule trained, then schedules,
    which look as in every figure."""
    there = set(players)
    found = {name: (current().colour(i), marker) for name, (i, marker) in _OTHERS.items() if name in there}
    return {**found, **look(pd.DataFrame({"schedule": sorted(there - set(_OTHERS))}))}


@laid_out
def error_cascade(played: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw where players go wrong at d = 1, and beside it at their hard level (`cascades.hard_levels`): first mistakes
    by kind, the share of episodes without a mistake over turns, and fates of mistakes in the world.

    Players that play alike are drawn once.
    """
    played = cascades.distinct(played)
    looks = looks_of(played.player)
    sides = [cascades.at_levels(played, some) for some in (dict.fromkeys(looks, LOW), _hard(played, looks))]
    heights = (2.1, 2.1) if is_page(width) else (2.1, 1.8, 1.8)
    figure, page = canvas(width, sum(heights), layout=_close())
    rows = places_of(figure.add_gridspec(len(heights), 1, height_ratios=heights))
    below = places_of(rows[1].subgridspec(1, 2)) if page else rows[1:]
    panels = [
        _first(figure, rows[0], sides, cascades.kinds_of(pd.concat(sides)), 4 if page else 3),
        _survival(figure, below[0], sides, looks),
        _fates(figure, below[1], sides),
    ]
    lettered(panels)
    return figure


def _hard(played: pd.DataFrame, players: Iterable[str]) -> dict[str, int]:
    levels = cascades.hard_levels(played)
    return {player: levels[player] for player in players}


def _close() -> ConstrainedLayoutEngine:
    return ConstrainedLayoutEngine(h_pad=0.02, w_pad=0.03, hspace=0.01, wspace=0.02)


def _handles(looks: Mapping[str, Look]) -> list[Line2D]:
    return [
        Line2D([], [], color=colour, marker=marker, markersize=3.5, label=name)
        for name, (colour, marker) in looks.items()
    ]


def _legend(ax: Axes, handles: Sequence[Any], columns: int, loc: Any = "center right") -> None:
    """Draw a legend in a place of its own: below panels to the right, so that it may begin under their labels."""
    ax.axis("off")
    ax.legend(
        handles=handles, loc=loc, ncols=columns, frameon=False, fontsize=small(),
        handlelength=1.2, columnspacing=0.9, labelspacing=0.2, borderpad=0, borderaxespad=0,
    )  # fmt: skip


def _patches(
    ax: Axes, names: Mapping[str, str], looks: Mapping[str, Mapping[str, Any]], columns: int
) -> None:
    _legend(ax, [Patch(**look, edgecolor="white", label=names[one]) for one, look in looks.items()], columns)


def _beside(figure: Figure, place: SubplotSpec, legend: float = 0.35) -> tuple[Axes, Axes, Axes]:
    """Add a panel for each level, and below both a place for a legend, of this share of their height."""
    grid = place.subgridspec(2, 2, height_ratios=(1, legend))
    left, right = (figure.add_subplot(grid[0, column]) for column in (0, 1))
    left.set_title(f"d = {LOW}")
    right.set_title("hard level")
    right.tick_params(labelleft=False)
    return left, right, figure.add_subplot(grid[1, :])


def _under(left: Axes, right: Axes, label: str) -> None:
    """Name the x axis that two panels have alike, once, between them."""
    left.set_xlabel(label, x=1.05)
    right.set_xlabel(" ")


def _shares(ax: Axes, names: Sequence[str]) -> None:
    """Make the axes of horizontal bars of shares, one for each name."""
    in_rows(ax, names)
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1))
    ax.xaxis.set_major_formatter(PercentFormatter(1))


def _bar(ax: Axes, row: int, shares: Mapping[str, float], looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw shares beside each other as one bar."""
    begin = 0.0
    for name, share in shares.items():
        ax.barh(row, share, left=begin, edgecolor="white", linewidth=0.4, **looks[name])
        begin += share


def _first(
    figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame], kinds: Sequence[str], columns: int
) -> Axes:
    """Draw a bar per player and level: the shares of first mistakes by kind."""
    left, right, below = _beside(figure, place, 0.4 if columns > 3 else 0.5)
    hatches = ("", "", "", "", "////", "....", "xxxx", "")
    looks: dict[str, dict[str, Any]] = {
        kind: {"facecolor": current().colour(i), "hatch": hatches[i]} for i, kind in enumerate(kinds)
    }
    for ax, side in zip((left, right), sides, strict=True):
        players = side.groupby("player", sort=False)
        for row, (_, mine) in enumerate(players):
            _bar(ax, row, cascades.first_mistakes(mine, kinds), looks)
        _shares(ax, list(players.groups))
    for row, d in enumerate(sides[1].groupby("player", sort=False).d.first()):
        right.text(1.04, row, f"{d}", fontsize=small(), va="center", ha="left")
    right.text(1.04, -1, "d", fontsize=small(), va="center", ha="left", style="italic")
    _under(left, right, "episodes, by first mistake")
    _patches(below, {kind: kind for kind in kinds}, looks, columns)
    return left


def _survival(
    figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame], looks: Mapping[str, Any]
) -> Axes:
    """Draw the share of episodes in which no mistake was made yet, over turns as shares of those needed."""
    left, right, below = _beside(figure, place)
    for ax, side in zip((left, right), sides, strict=True):
        for player, mine in side.groupby("player", sort=False):
            rows = cascades.survival(mine)
            rows = rows[rows.at_risk > 0]
            ax.plot(
                rows.share, rows.surviving, color=looks[player][0], marker=looks[player][1], markersize=3,
                linewidth=1.1, markevery=2, markeredgewidth=0,
            )  # fmt: skip
        ax.set(ylim=(-0.02, 1.02), xlim=(0, 2))
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        ax.xaxis.set_major_locator(MaxNLocator(2))
    left.set_ylabel("no mistake yet")
    _under(left, right, "turns, as shares of those needed")
    _legend(below, _handles(looks), 3)
    return left


def _fates(figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame]) -> Axes:
    """Draw the fates of mistakes in the world, a bar per kind, over all players, and how many there were."""
    left, right, below = _beside(figure, place)
    at_work = [kind for kind in WORLD if kind != "missed item"]  # that one is made at the end
    often = cascades.fates(pd.concat(sides)).sum(axis=1).reindex(at_work).dropna()
    kinds = list(often.nlargest(7).index)
    shades = sns.color_palette("viridis", len(_FATES))
    looks = {fate: {"facecolor": shade} for fate, shade in zip(_FATES, shades, strict=True)}
    for ax, side in zip((left, right), sides, strict=True):
        _shares(ax, kinds)
        table = cascades.fates(side).reindex(index=kinds, columns=list(_FATES), fill_value=0)
        for row, counts in enumerate(table.to_dict("records")):
            count = sum(counts.values())
            _bar(ax, row, {str(fate): some / max(1, count) for fate, some in counts.items()}, looks)
            ax.text(1.04, row, f"{count}", fontsize=small(), va="center", ha="left")
    _under(left, right, "what became of it, and how many")
    _patches(below, _FATES, looks, 3)
    return left
