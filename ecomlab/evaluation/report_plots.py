"""Plots of reports and boards, in the style of all figures."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.style import MARKERS, canvas, current, dots, in_rows, laid_out


@laid_out
def success_by_level(players: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the success of players by level with 95% intervals, a panel per environment; the tables are `Report.cells`
    by name."""
    return _success(players, "d", "difficulty")


@laid_out
def success_over(players: Mapping[str, pd.DataFrame], column: str, label: str) -> Figure:
    """Draw the success of players over the values in a column of their tables, as `success_by_level` does."""
    return _success(players, column, label)


def _success(players: Mapping[str, pd.DataFrame], column: str, label: str) -> Figure:
    envs = list(dict.fromkeys(env for cells in players.values() for env in cells.env))
    columns = min(4, len(envs))
    rows = math.ceil(len(envs) / columns)
    single = len(envs) == 1
    figure, _ = canvas(4.2 if single else "page", (2.6 if single else 0.5 + 1.5 * rows))
    grid = figure.add_gridspec(rows, columns)
    every = sorted({value for cells in players.values() for value in cells[column]})
    shift = 0.03 * (every[-1] - every[0] or 1) / max(1, len(players) - 1)
    named = current().arms
    looks: list[dict[str, Any]] = [
        {
            "color": named.get(name) or current().colour(place),
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 3.5,
        }
        for place, name in enumerate(players)
    ]
    for place, env in enumerate(envs):
        ax = figure.add_subplot(grid[place // columns, place % columns])
        levels: set[float] = set()
        for number, (cells, look) in enumerate(zip(players.values(), looks, strict=True)):
            mine = cells[cells.env == env].sort_values(column)
            levels |= set(mine[column])
            reach = [mine.success - mine.low, mine.high - mine.success]
            x = mine[column] + shift * (number - (len(players) - 1) / 2)
            ax.errorbar(x, mine.success, yerr=reach, linewidth=1.2, elinewidth=0.8, **look)
        ax.set(title=env, ylim=(-0.03, 1.03))
        ax.set_yticks([0, 0.5, 1])
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        if len(levels) < 8:
            ax.set_xticks(sorted(levels))
        else:
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.tick_params(labelleft=place % columns == 0)
    figure.supxlabel(label)
    figure.supylabel("success")
    if len(players) > 1:
        handles = [Line2D([], [], label=name, **look) for name, look in zip(players, looks, strict=True)]
        figure.legend(handles=handles, loc="outside upper center", ncols=min(4, len(players)), frameon=False)
    return figure


def levels_passed(ax: Axes, table: pd.DataFrame, envs: Sequence[str], top: int) -> None:
    """Draw a row an environment: the level that each player passes in each share of tasks, with its 95% interval;
    filled in the lower share, hollow in the higher one. `table` is that of `Frontier.frame`, with a column `player`;
    `top` is the highest level that can be passed."""
    kinds = [(name, share) for name in dict.fromkeys(table.player) for share in sorted(set(table.share))]
    for number, (player, share) in enumerate(kinds):
        mine = table[(table.player == player) & (table.share == share)].set_index("env").reindex(envs)
        rows = [row + 0.19 * (number - (len(kinds) - 1) / 2) for row in range(len(envs))]
        i = list(dict.fromkeys(table.player)).index(player)
        dots(
            ax, rows, [mine.level, mine.low, mine.high], (current().colour(i + 1), MARKERS[(i + 2) % len(MARKERS)]),
            full=share == table.share.min(), label=f"{player}, {share:.0%}",
        )  # fmt: skip
    in_rows(ax, envs)
    ax.set(xlabel="highest difficulty passed", xlim=(-1.6, top + 0.6))
    ax.set_xticks([-1, *range(0, top + 1, 3)], ["<0", *map(str, range(0, top + 1, 3))])
    ax.legend(frameon=False, loc="lower right", handletextpad=0.2, title="tasks solved")


@laid_out
def frontier(table: pd.DataFrame, top: int) -> Figure:
    """Draw `levels_passed` of one player as a figure."""
    envs = list(dict.fromkeys(table.env))
    figure, _ = canvas(4.8, 0.9 + 0.3 * max(2, len(envs)))
    levels_passed(figure.add_subplot(), table, envs, top)
    return figure
