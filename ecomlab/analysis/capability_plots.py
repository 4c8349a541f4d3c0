"""Figures of capability: the highest difficulty that players solve, and the questions that customers understand."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis.plots import UNTRAINED, UNTRAINED_LOOK, look
from ecomlab.analysis.tables import chosen, in_order
from ecomlab.evaluation.frontier import SHARES, TOP
from ecomlab.evaluation.report_plots import levels_passed
from ecomlab.laws.laws import UNDERSTOOD, UNDERSTOOD_GROUP
from ecomlab.style import MARKERS, Width, canvas, current, dots, in_rows, laid_out, lettered, panels_of

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
    left, right = panels_of(figure, (1, 2)) if page else panels_of(figure, (2, 1), height_ratios=(1.5, 1))
    levels_passed(left, players, in_order(set(players.env)), TOP)
    _by_run(right, chosen(runs, "eval.csv", env=env), env)
    lettered([left, right])
    return figure


def _by_run(ax: Axes, runs: pd.DataFrame, env: str) -> None:
    """Draw a row per schedule and one for the untrained policy; runs at the same level stand side by side."""
    first, last = runs.step.min(), runs.step.max()
    rows = runs.assign(schedule=runs.schedule.where(runs.step == last, UNTRAINED))
    rows = rows[(rows.step == last) | (rows.step == first)]
    looks = {**UNTRAINED_LOOK, **look(runs)}
    most = max(1, int(rows.level.max()))
    for row, name in enumerate(looks):
        mine = rows[rows.schedule == name].drop_duplicates(["seed", "share"] if name == UNTRAINED else None)
        for share, up in ((min(SHARES), -0.16), (max(SHARES), 0.16)):
            for level, some in mine[mine.share == share].groupby("level"):
                x = [level + 0.12 * (i - (len(some) - 1) / 2) for i in range(len(some))]
                dots(ax, [row + up] * len(x), [x, x, x], looks[name], full=up < 0)
    in_rows(ax, list(looks))
    ax.set_xticks(range(-1, most + 1), ["<0", *map(str, range(most + 1))])
    ax.set(xlabel=f"highest difficulty passed in {env},\na mark per run", xlim=(-1.6, most + 0.6))


@laid_out
def understanding(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw the share of questions that are understood exactly, by environment and by form, with exact 95% intervals: a
    mark per bank of questions, where it has questions, and the thresholds of the law as lines. `table` is that of
    `statistics.understood`.
    """
    banks = list(dict.fromkeys(table.bank))
    figure, page = canvas(width, 3.2, 6.0)
    left, right = panels_of(figure, (1, 2) if page else (2, 1))
    envs = [*in_order(set(table.env) - {"all"}), "all"]
    _understood(left, table[table.form == "all"], "env", envs, banks)
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
    in_rows(ax, order)
    for i, bank in enumerate(banks):
        mine = table[(table.bank == bank) & table[by].isin(order)]
        places = [order.index(one) + 0.19 * (i - (len(banks) - 1) / 2) for one in mine[by]]
        dots(ax, places, [mine.exact, mine.low, mine.high], (current().colour(i), MARKERS[i]))
    last = len(order) - 1
    ax.plot([UNDERSTOOD_GROUP, UNDERSTOOD_GROUP], [-0.5, last - 0.5], color=".3", linewidth=0.8)
    ax.plot([UNDERSTOOD, UNDERSTOOD], [last - 0.5, last + 0.5], color=".3", linewidth=0.8)
    ax.set(xlabel="understood exactly", xlim=(None, 1.005))
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
