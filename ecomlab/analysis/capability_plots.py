"""Figures of capability: the highest difficulty that players solve, and the questions that customers understand."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator, PercentFormatter

from ecomlab.analysis.plots import UNTRAINED, UNTRAINED_LOOK, arms, lettered, look, places_of
from ecomlab.analysis.tables import chosen, in_order
from ecomlab.evaluation.frontier import TOP
from ecomlab.laws.laws import UNDERSTOOD, UNDERSTOOD_GROUP
from ecomlab.style import MARKERS, Width, canvas, current, laid_out

FORMS = {
    "wh": "what is wanted",
    "yesno": "yes or no",
    "either": "either, or",
    "which": "which of these",
    "count": "how many",
    "scope": "what matters",
    "open": "open",
    "nothing": "about no slot",
    "nonsense": "nonsense",
    "all": "all",
}
"""Forms of questions, in words short enough for an axis."""


@laid_out
def capability(players: pd.DataFrame, runs: pd.DataFrame, env: str = "CART", width: Width = "page") -> Figure:
    """Draw the highest level that players pass in each environment, with 95% intervals, and that runs of an ablation
    pass in one environment before and after training, a mark each.

    `players` has rows of `statistics.frontiers` and of `tables.load_frontier`, `runs` is `statistics.run_frontiers`.
    Filled marks pass in half of the tasks, hollow ones in nine of ten. Raises TableError where no run was
    evaluated in `env`.
    """
    figure, page = canvas(width, 2.9, 4.9)
    grid = figure.add_gridspec(1, 2) if page else figure.add_gridspec(2, 1, height_ratios=(1.5, 1))
    left, right = (figure.add_subplot(place) for place in places_of(grid))
    _by_environment(left, players)
    _by_run(right, chosen(runs, "eval.csv", env=env), env)
    lettered([left, right])
    return figure


def _by_environment(ax: Axes, table: pd.DataFrame) -> None:
    envs, players = in_order(set(table.env)), list(dict.fromkeys(table.player))
    shares = sorted(set(table.share))
    for i, player in enumerate(players):
        colour, marker = current().colour(i + 1), MARKERS[i + 2]
        for j, share in enumerate(shares):
            mine = table[(table.player == player) & (table.share == share)].set_index("env").reindex(envs)
            place = (i * len(shares) + j) - (len(players) * len(shares) - 1) / 2
            ax.errorbar(
                mine.level, [row + 0.19 * place for row in range(len(envs))],
                xerr=[mine.level - mine.low, mine.high - mine.level], fmt=marker, color=colour, markersize=3.5,
                linewidth=1.0, markerfacecolor=colour if share == min(shares) else "white",
                label=f"{player}, {share:.0%}",
            )  # fmt: skip
    ax.set_yticks(range(len(envs)), envs)
    ax.set(xlabel="highest difficulty passed", xlim=(-1.6, TOP + 0.6), ylim=(len(envs) - 0.5, -0.5))
    ax.set_xticks([-1, 0, 3, 6, 9, TOP], ["<0", "0", "3", "6", "9", f"{TOP}"])
    ax.grid(axis="y", visible=False)
    ax.legend(frameon=False, loc="lower right", handletextpad=0.2)


def _by_run(ax: Axes, runs: pd.DataFrame, env: str) -> None:
    """Draw a row per schedule and one for the untrained policy; runs at the same level stand side by side."""
    first, last = runs.step.min(), runs.step.max()
    rows = runs.assign(schedule=runs.schedule.where(runs.step == last, UNTRAINED))
    rows = rows[(rows.step == last) | (rows.step == first)]
    looks = {**look(runs), **UNTRAINED_LOOK}
    names = [UNTRAINED, *arms(runs)]
    most = max(1, int(rows.level.max()))
    for row, name in enumerate(names):
        colour, marker = looks[name]
        mine = rows[rows.schedule == name].drop_duplicates(["seed", "share"] if name == UNTRAINED else None)
        for share, up in ((min(rows.share), -0.16), (max(rows.share), 0.16)):
            for level, some in mine[mine.share == share].groupby("level"):
                x = [level + 0.12 * (i - (len(some) - 1) / 2) for i in range(len(some))]
                face = colour if up < 0 else "white"
                ax.plot(x, [row + up] * len(x), marker, color=colour, markersize=3.5, markerfacecolor=face)
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(range(-1, most + 1), ["<0", *map(str, range(most + 1))])
    ax.set(
        xlabel=f"highest difficulty passed in {env}, {runs.seed.nunique()} runs each", xlim=(-1.6, most + 0.6),
        ylim=(len(names) - 0.5, -0.5),
    )  # fmt: skip
    ax.grid(axis="y", visible=False)


@laid_out
def understanding(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw the share of questions that are understood exactly, by environment and by form, with exact 95% intervals: a
    mark per bank of questions, where it has questions, and the thresholds of the law as lines. `table` is that of
    `statistics.understood`.
    """
    banks = list(dict.fromkeys(table.bank))
    figure, page = canvas(width, 3.2, 6.0)
    grid = figure.add_gridspec(*((1, 2) if page else (2, 1)))
    left, right = (figure.add_subplot(place) for place in places_of(grid))
    _understood(
        left, table[(table.form == "all")], "env", [*in_order(set(table.env) - {"all"}), "all"], banks
    )
    forms = [form for form in FORMS if form in set(table.form)]
    _understood(right, table[table.env == "all"], "form", forms, banks)
    right.set_yticks(range(len(forms)), [FORMS[form] for form in forms])
    lettered([left, right])
    handles = [
        Line2D([], [], color=current().colour(i), marker=MARKERS[i], linestyle="", label=bank)
        for i, bank in enumerate(banks)
    ]
    figure.legend(
        handles=handles, title="bank of questions", loc="outside upper center", ncols=len(banks), frameon=False,
        handletextpad=0.2,
    )  # fmt: skip
    return figure


def _understood(ax: Axes, table: pd.DataFrame, by: str, order: Sequence[str], banks: Sequence[str]) -> None:
    for i, bank in enumerate(banks):
        there = table[table.bank == bank].set_index(by)
        mine = there.reindex([one for one in order if one in there.index])
        bars = [mine.exact - mine.low, mine.high - mine.exact]
        places = [order.index(one) + 0.19 * (i - (len(banks) - 1) / 2) for one in mine.index]
        ax.errorbar(
            mine.exact, places, xerr=bars, fmt=MARKERS[i], color=current().colour(i), markersize=3,
            linewidth=0.9,
        )  # fmt: skip
    last = len(order) - 1
    ax.plot([UNDERSTOOD_GROUP, UNDERSTOOD_GROUP], [-0.5, last - 0.5], color=".3", linewidth=0.8)
    ax.plot([UNDERSTOOD, UNDERSTOOD], [last - 0.5, last + 0.5], color=".3", linewidth=0.8)
    ax.set_yticks(range(len(order)), order)
    ax.set(xlabel="understood exactly", ylim=(last + 0.5, -0.5), xlim=(None, 1.005))
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.xaxis.set_major_locator(MultipleLocator(0.05))
    ax.grid(axis="y", visible=False)
