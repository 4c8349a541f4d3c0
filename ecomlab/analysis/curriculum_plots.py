"""The figures of the registered study: what curricula, environments and schedules are worth to a tiny policy."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter
from scipy import stats

from ecomlab.analysis.plots import UNTRAINED_LOOK, lines
from ecomlab.style import (
    Look,
    Width,
    canvas,
    current,
    dots,
    in_rows,
    laid_out,
    lettered,
    panels_of,
    places_of,
)

ARMS = ("single steps", "static-4-6", "static-0-6", "adaptive", "prefix")
"""Arms of the primary contrasts, in the order of the legend."""
MARKS = ("o", "s")
"""Of the two starters."""


@laid_out
def curriculum(
    curves: pd.DataFrame,
    success: pd.DataFrame,
    contrasts: pd.DataFrame,
    starter: str,
    other: str,
    width: Width = "page",
) -> Figure:
    """Draw five claims: success while `starter` trains (what saturates); groups with non-zero advantage while the
    `other` starter does (what starves); the top of the window (what grows); success of `starter` at levels that none of
    these arms draws (what goes further); and the primary contrasts of both (what does better).

    The tables are those of experiments/frontier/analyse.py.
    """
    figure, page = canvas(width, 4.5, 6.9)
    rows = places_of(figure.add_gridspec(2 if page else 3, 1))
    above = [figure.add_subplot(one) for one in places_of(rows[0].subgridspec(1, 3 if page else 2))]
    grid = places_of(rows[1].subgridspec(1, 2, width_ratios=(1, 1.3) if page else None))
    below = [figure.add_subplot(one) for one in (grid if page else [*grid, rows[2]])]
    panels = above + below
    looks = {arm: current().look(arm) for arm in ARMS}
    runs = curves[curves.arm.isin(looks)].assign(schedule=curves.arm, collection="C1")
    for ax, name, value, label, asked in (
        (panels[0], starter, "success", "success, d = 0, 2, 4, 6", "What saturates?"),
        (panels[1], other, "mixed", "groups with\nnon-zero advantage", "What starves?"),
        (panels[2], starter, "level", "top of the window", "What grows?"),
    ):
        mine = runs[(runs.starter == name) & runs[value].notna()]
        lines(ax, mine if value != "level" else mine[mine.arm == "adaptive"], "step", value, looks)
        ax.set(ylabel=label, title=f"{asked}\n(from {name})")
    far = success[(success.levels == "7-8") & (success.decoding == "sampled") & (success.starter == starter)]
    _by_arm(panels[3], far.set_index("arm"), {"start": next(iter(UNTRAINED_LOOK.values())), **looks})
    panels[3].set(xlabel="success, d = 7 and 8", title=f"What goes further?\n(from {starter})")
    _differences(panels[4], contrasts[contrasts.holm.notna()], (starter, other))
    panels[4].set_title("What does better?\n ")  # the second line is the legend's
    for axis in (panels[0].yaxis, panels[1].yaxis, panels[3].xaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # whole percents
    panels[2].yaxis.set_major_locator(MaxNLocator(integer=True))
    lettered(panels)
    handles = [
        Line2D([], [], color=colour, marker=mark, label=arm, markersize=3.5)
        for arm, (colour, mark) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5 if page else 2, frameon=False)
    return figure


def _by_arm(ax: Axes, rows: pd.DataFrame, looks: dict[str, Look]) -> None:
    """Draw a row for each arm: its success after training, with a 95% interval over seeds."""
    names = [arm for arm in looks if arm in rows.index]
    in_rows(ax, ["before training" if arm == "start" else arm for arm in names])
    for place, arm in enumerate(names):
        dots(ax, [place], rows.loc[arm, ["success", "low", "high"]], looks[arm])
    ax.set_xlim(left=0)


def _differences(ax: Axes, rows: pd.DataFrame, starters: tuple[str, str]) -> None:
    """Draw a row for each contrast: differences from both starters in percentage points, filled if claimed."""
    names = list(dict.fromkeys(rows.contrast))
    in_rows(ax, [" −\n".join(name.split(" - ")) for name in names])
    shades = ((0.1, 0.1, 0.1), (0.5, 0.5, 0.5))
    for side, (starter, shade, mark) in enumerate(zip(starters, shades, MARKS, strict=True)):
        for place, name in enumerate(names):
            for one in rows[(rows.starter == starter) & (rows.contrast == name)].itertuples():
                bounds = [100 * value for value in (one.difference, one.low, one.high)]
                dots(ax, [place + 0.24 * (side - 0.5)], bounds, (shade, mark), full=one.claimed)
    ax.axvline(0, color=".3", linewidth=0.6)
    ax.set_xlabel("difference, d = 0–6, percentage points")
    handles = [
        Line2D([], [], color=shade, marker=mark, linestyle="", markersize=3.5, label=f"from {starter}")
        for starter, shade, mark in zip(starters, shades, MARKS, strict=True)
    ]
    ax.legend(handles=handles, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)


@laid_out
def environments(
    slopes: pd.DataFrame, company: pd.DataFrame, decoding: str = "greedy", width: Width = "page"
) -> Figure:
    """Draw, over the number of environments that are trained, the gain of the one held out and the success of the first
    one: a thin line an order, the mean with Student's 95% interval.

    The tables are those of experiments/frontier/analyse.py.
    """
    figure, page = canvas(width, 2.2, 4.0)
    panels = panels_of(figure, (1, 2) if page else (2, 1))
    for ax, table, label in (
        (panels[0], slopes, "gain of the environment\nheld out, points"),
        (panels[1], company, "success in the\nfirst environment, %"),
    ):
        mine = table[table.decoding == decoding]
        counts = [int(name.removeprefix("k = ")) for name in mine.columns if name.startswith("k = ")]
        values = 100 * mine[[f"k = {count}" for count in counts]].to_numpy()
        colour, marker = current().look("adaptive")
        ax.plot(counts, values.T, color=colour, linewidth=0.6, alpha=0.5)
        reach = stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)
        dots(
            ax,
            counts,
            [values.mean(axis=0) + side for side in (0, -reach, reach)],
            (colour, marker),
            upright=True,
        )
        ax.set(xlabel="environments trained", ylabel=label, xscale="log")
        ax.set_xticks(counts, [str(count) for count in counts], minor=False)
        ax.set_xticks([], minor=True)
    panels[0].axhline(0, color=".3", linewidth=0.6)
    lettered(panels)
    return figure


@laid_out
def mending(mended: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw the contrasts of planted mistakes that were mended, on common pairs, with bootstrap intervals: a panel a
    level. The table is `mended` of experiments/frontier/analyse.py."""
    levels = sorted(mended.level.unique())
    starters = tuple(sorted(mended.starter.unique()))
    figure, page = canvas(width, 2.3, 4.2)
    panels = panels_of(figure, (1, len(levels)) if page else (len(levels), 1))
    for ax, level in zip(panels, levels, strict=True):
        _differences(ax, mended[mended.level == level].assign(claimed=False), starters)
        ax.set(xlabel=f"mended, d = {level}, percentage points")
    lettered(panels)
    return figure
