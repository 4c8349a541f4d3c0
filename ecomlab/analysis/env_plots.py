"""Figures of environments: certificates, and the axes that difficulty moves."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis.tables import in_order
from ecomlab.style import (
    MARKERS,
    Width,
    canvas,
    current,
    dots,
    in_rows,
    is_page,
    laid_out,
    lettered,
    panels_of,
    room,
    small,
)  # fmt: skip

Looks = Mapping[str, tuple[int | str, str, str]]
"""Colour, marker and line of each player."""
_PLAYERS: Looks = {
    "oracle": (".1", "s", ""),
    "reference": (0, "o", "-"),
    "perturbed": (1, "D", "-"),
    "naive": (2, "^", "-"),
    "best positional": (4, "v", "-"),
    "best blind": (".5", "s", "-"),
    "chance": (".1", "", ":"),
}
_LACKING: Looks = {
    "oracle": (".1", "s", ""),
    "reference": (0, "o", "-"),
    "shortcut": (3, "D", "-"),
    "without one kind of step": (2, "v", ":"),
}
AXIS_WORDS = {
    "constraints": ("demands", "number"),
    "p_missing": ("withheld", "probability"),
    "eps_rank": ("distractors", "share"),
    "p_oos": ("sells out", "probability"),
    "turn_slack": ("spare turns", "turns"),
    "tool_slack": ("spare calls", "calls"),
    "p_noise": ("typos, slang", "probability"),
    "p_switch": ("goal changes", "probability"),
    "top_k": ("search depth", "results"),
    "k_rec": ("list length", "products"),
    "history": ("past orders", "orders"),
    "branches": ("policy clauses", "clauses"),
}
"""Difficulty axes in a word or two, and their units."""


@laid_out
def axes_over_difficulty(table: pd.DataFrame) -> Figure:
    """Draw a panel per axis (row of `table`) over difficulties (its columns)."""
    figure, _ = canvas("page", 4.2, 4.2)
    _axis_panels(figure, figure.add_gridspec(1, 1)[0], table, 4)
    figure.supxlabel("difficulty d")
    return figure


@laid_out
def axes_and_environments(table: pd.DataFrame, matrix: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw rows of panels: each axis (row of `table`) over difficulties (its columns), and below them the axes (columns
    of `matrix`) that move each environment (its rows)."""
    broad = room(width) > 6
    figure, page = canvas(width, 5.0 if broad else 5.8, 7.4)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.6, 1) if page else (2, 1))
    upper, lower = halves
    panels = _axis_panels(upper, upper.add_gridspec(1, 1)[0], table, 6 if broad else 4 if page else 3)
    upper.supxlabel("difficulty d")
    ax = lower.add_subplot()
    moving_axes(ax, matrix, (20 if broad else 40) if page else 90)
    for first, letter in ((panels[0], "a"), (ax, "b")):
        corner: Any = {"xytext": (-4, 8), "xycoords": "axes fraction", "textcoords": "offset points"}
        first.annotate(letter, (0, 1), ha="right", fontweight="bold", **corner)
    return figure


def moving_axes(ax: Axes, matrix: pd.DataFrame, rotation: int = 0) -> None:
    """Draw a dot where an axis (column) moves an environment (row); the columns' names are turned by `rotation`."""
    rows, columns = matrix.to_numpy(dtype=bool).nonzero()
    ax.scatter(columns, rows, s=42, color=current().colour(0), linewidths=0, zorder=2)
    ax.set_xticks(range(matrix.shape[1]), matrix.columns)
    ax.set_yticks(range(matrix.shape[0]), matrix.index)
    ax.set(xlim=(-0.5, matrix.shape[1] - 0.5), ylim=(matrix.shape[0] - 0.5, -0.5))
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    slanted: Any = {"ha": "left", "rotation_mode": "anchor"} if 0 < rotation < 90 else {}
    plt.setp(ax.get_xticklabels(), rotation=rotation, **slanted)
    ax.set_frame_on(False)


@laid_out
def certificate(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw a panel per environment: the share of tasks that each player gets right, over difficulty.

    `table` is that of `tables.load_certificate` with bounds, which are drawn as bands. The best of several attackers is
    chosen by its luck too, so only its upper bound is drawn.
    """
    return _by_environment(table, _PLAYERS, width)


@laid_out
def depth(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw a panel per environment: the share of tasks that each player of `tables.load_depth` gets right, over
    difficulty, with bounds as bands; and of the players that lack one kind of step, the share of all the tasks that
    they were given, with the lowest and the highest kind as a band."""
    kinds = table[table.player.str.startswith("without ")]
    pooled = (
        kinds.assign(share=kinds.share * kinds.n).groupby(["env", "d"], as_index=False)[["share", "n"]].sum()
    )
    ends = kinds.groupby(["env", "d"], as_index=False).agg(low=("share", "min"), high=("share", "max"))
    lacking = pooled.assign(share=pooled.share / pooled.n, player=list(_LACKING)[-1]).merge(ends)
    return _by_environment(pd.concat([table, lacking]), _LACKING, width)


def _by_environment(table: pd.DataFrame, looks: Looks, width: Width) -> Figure:
    """Draw a panel per environment, a line per player, and a legend of the players that there are."""
    looks = {name: look for name, look in looks.items() if name in set(table.player)}
    envs = in_order(set(table.env))
    columns = min(4 if is_page(width) else 2, len(envs))
    rows = math.ceil(len(envs) / columns)
    figure, page = canvas(width, 0.6 + 1.55 * rows, 0.9 + 1.55 * rows)
    grid = figure.add_gridspec(rows, columns)
    for place, env in enumerate(envs):
        ax = figure.add_subplot(grid[place // columns, place % columns])
        _players(ax, table[table.env == env], looks)
        ax.set_title(env)
        ax.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(envs))
    figure.supxlabel("difficulty d")
    figure.supylabel("tasks solved")
    handles = [Line2D([], [], label=name, **_mark(name, looks)) for name in looks]
    side_by_side = 7 if room(width) > 6 else 4 if page else 3 if len(handles) > 4 else 2
    figure.legend(
        handles=handles, loc="outside upper center", ncols=side_by_side, frameon=False,
        handlelength=1.8, columnspacing=1.3,
    )  # fmt: skip
    return figure


def _players(ax: Axes, table: pd.DataFrame, looks: Looks) -> None:
    """Draw a line per player; those that coincide at zero have their marks at different levels."""
    often: dict[str, Any] = {
        name: (i, 3) for i, name in enumerate(("naive", "best positional", "best blind"))
    }
    often["oracle"] = 2
    for name in reversed(list(looks)):
        mine = table[table.player == name].sort_values("d")
        if mine.empty:
            continue
        look = _mark(name, looks)
        if mine.n.any() and name != "oracle":
            low = mine.share if name.startswith("best") else mine.low
            ax.fill_between(mine.d, low, mine.high, color=look["color"], alpha=0.12, linewidth=0)
        every = often.get(name) if len(mine) > 3 else None
        ax.plot(mine.d, mine.share, markevery=every, zorder=4 if name == "chance" else 3, **look)
    ax.set(xlim=(table.d.min() - 0.6, table.d.max() + 0.6), ylim=(-0.04, 1.06))
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 4, 10]))


def _mark(name: str, looks: Looks) -> dict[str, Any]:
    """Choose a player's colour, marker and line; the oracle's squares surround the reference player's dots."""
    colour, marker, line = looks[name]
    shade = current().colour(colour) if isinstance(colour, int) else colour
    size, fill = {"oracle": (5, "none"), "reference": (2.4, shade), "best blind": (2.6, shade)}.get(
        name, (3.4, shade)
    )
    return {
        "color": shade,
        "marker": marker,
        "linestyle": line,
        "linewidth": 1.1,
        "markersize": size,
        "markerfacecolor": fill,
        "markeredgewidth": 0.6 if fill == "none" else 0,
    }


def _axis_panels(figure: Any, place: SubplotSpec, table: pd.DataFrame, columns: int) -> list[Axes]:
    """Draw each row of `table` over its columns, `columns` panels side by side, in a figure or subfigure."""
    grid = place.subgridspec(math.ceil(len(table) / columns), columns)
    levels = [int(str(name).removeprefix("d = ")) for name in table.columns]
    between = [(low + high) / 2 for low, high in pairwise(levels)]
    edges = [levels[0] - 0.5, *between, levels[-1] + 0.5]
    made = []
    for number, (name, values) in enumerate(table.iterrows()):
        ax = figure.add_subplot(grid[number // columns, number % columns])
        ax.stairs(values, edges, baseline=None, color=current().colour(0), linewidth=1.5)
        words, unit = AXIS_WORDS.get(str(name), ("", ""))
        ax.set_title(words, pad=13, fontsize=small() + (columns > 3))
        ax.set_ylabel(unit, fontsize=small(), color=".4", labelpad=2)
        above: Any = {"xytext": (0, 4), "xycoords": "axes fraction", "textcoords": "offset points"}
        ax.annotate(str(name), (0.5, 1), ha="center", fontsize=small(), color=".4", **above)
        ax.set_ylim(bottom=0)
        whole = bool((values % 1 == 0).all())
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=whole))
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        made.append(ax)
    return made


@laid_out
def alone(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw what moving one axis, or adding one kind of step of thought, does to each player's success.

    `table` has a row per player, axis and value, with `difference`, `low` and `high`; players are drawn in the order in
    which they come. A cell without a row of a player has no mark.
    """
    steps = table.axis.str.startswith("steps.")
    players = list(dict.fromkeys(table.player))
    panels = [table[~steps], table[steps]]
    rows = [list(dict.fromkeys(zip(panel.axis, panel.value, strict=True))) for panel in panels]
    lines = (max(map(len, rows)), sum(map(len, rows)) + 5)
    figure, page = canvas(width, *(0.5 + 0.17 * count for count in lines))
    axes = panels_of(figure, (1, 2)) if page else panels_of(figure, (2, 1), height_ratios=[*map(len, rows)])
    looks = {player: (current().colour(i), MARKERS[i % len(MARKERS)]) for i, player in enumerate(players)}
    for ax, panel, cells in zip(axes, panels, rows, strict=True):
        in_rows(ax, [f"{axis.removeprefix('steps.')}, {value}" for axis, value in cells])
        for i, player in enumerate(players):
            mine = panel[panel.player == player]
            shift = 0.7 * (i / max(1, len(players) - 1) - 0.5)
            where = [cells.index(cell) + shift for cell in zip(mine.axis, mine.value, strict=True)]
            bounds = [100 * mine[one] for one in ("difference", "low", "high")]
            dots(ax, where, bounds, looks[player])
        ax.axvline(0, color=".3", linewidth=0.6)
        ax.set_xlabel("change of success,\npercentage points")
    lettered(axes)
    handles = [
        Line2D([], [], label=player, color=colour, marker=marker, linestyle="", markersize=3.5)
        for player, (colour, marker) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5 if page else 2, frameon=False)
    return figure
