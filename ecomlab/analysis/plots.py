"""Figures of an ablation: every run a thin line, the mean over runs a thick one, a colour and a marker per schedule.

Nothing here reads files or computes statistics; `ecomlab.analysis.tables` and `statistics` do.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis.statistics import generated, held_out
from ecomlab.analysis.tables import RUN

COLUMN_WIDTH, PAGE_WIDTH = 3.3, 6.9  # inches: one column and the whole width of a two-column paper
MARKERS = "osDv^P"
AXES = {"step": "training steps", "rollouts": "rollouts generated, thousands"}
_ORDER = ("static-low", "static-high", "adaptive")  # these always have the same colours


@contextmanager
def paper_style() -> Iterator[None]:
    """Text of 8 points at print size, no frames, thin grid."""
    small = {"font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 8}
    small |= {"xtick.labelsize": 7, "ytick.labelsize": 7, "axes.linewidth": 0.6, "grid.linewidth": 0.4}
    with sns.axes_style("ticks", {"axes.grid": True, "grid.color": ".9"}), plt.rc_context(small):
        yield


def arms(table: pd.DataFrame) -> list[str]:
    """The schedules in the order of legends: the three of the ablation, then others by name."""
    there = set(table.schedule)
    return [name for name in _ORDER if name in there] + sorted(there - set(_ORDER))


def look(table: pd.DataFrame) -> dict[str, tuple[tuple[float, float, float], str]]:
    """Colour and marker per schedule, from a palette that colour-blind readers can tell apart."""
    palette = sns.color_palette("colorblind", 10)
    names = [*_ORDER, *(name for name in arms(table) if name not in _ORDER)]
    return {name: (palette[i % 10], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}


def frontier(ax: Axes, train: pd.DataFrame, x: str = "step") -> None:
    """The highest difficulty of each run's window, over steps or over rollouts generated so far."""
    steps = train.groupby([*RUN, "step"], as_index=False)["d_high"].max()
    _lines(ax, _with_x(steps, train, x), x, "d_high", markers=False)
    ax.set_ylabel("highest difficulty trained on")
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def success(ax: Axes, train: pd.DataFrame, rows: pd.DataFrame, x: str = "step") -> None:
    """Held-out success, over steps or over rollouts generated so far. `rows` has one `success` per run and step."""
    _lines(ax, _with_x(rows, train, x), x, "success", markers=True)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def difficulty_growth(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Figure:
    """The ablation in one figure, as wide as a page.

    Top: the frontier over steps. Beside it and below: mean held-out success over steps and over generated rollouts.
    Bottom: held-out success at each evaluated difficulty, over steps.
    """
    means = held_out(evaluation, decoding)
    levels = sorted(evaluation.d.unique())
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 4.4), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.25, 1), hspace=0.04)
        a, b, c = top.subplots(1, 3)
        frontier(a, train)
        success(b, train, means)
        success(c, train, means, "rollouts")
        b.set_ylabel(f"held-out success, mean of d = {levels[0]} to {levels[-1]}")
        below = bottom.subplots(1, len(levels), sharey=True, squeeze=False)[0]
        for ax, d in zip(below, levels, strict=True):
            at_d = evaluation[(evaluation.d == d) & (evaluation.decoding == decoding)]
            rows = at_d.groupby([*RUN, "step"], as_index=False)["success"].mean()
            success(ax, train, rows)
            ax.set_title(f"d = {d}")
        below[0].set_ylabel("held-out success")
        for ax, letter in zip((a, b, c, below[0]), "abcd", strict=True):
            ax.set_title(letter, loc="left", fontweight="bold")
        _legend(figure, train)
        sns.despine(figure)
    plt.close(figure)  # shown by the notebook's last expression, once
    return figure


def _with_x(rows: pd.DataFrame, train: pd.DataFrame, x: str) -> pd.DataFrame:
    """`rows` with a column `rollouts` in thousands when that is the x axis."""
    if x not in AXES:
        raise ValueError(f"x is one of {', '.join(AXES)}, not {x!r}")
    if x == "step":
        return rows
    so_far = generated(train)
    return rows.merge(so_far.assign(rollouts=so_far.rollouts / 1000), on=[*RUN, "step"])


def _lines(ax: Axes, rows: pd.DataFrame, x: str, y: str, markers: bool) -> None:
    """A thin line per run and the mean of x and y over runs, step by step, as a thick one."""
    looks = look(rows)
    for name in arms(rows):
        colour, marker = looks[name]
        mine = rows[rows.schedule == name].sort_values("step")
        for _, run in mine.groupby(RUN):
            ax.plot(run[x], run[y], color=colour, linewidth=0.7, alpha=0.55)
        # Only steps that every run has reached: a mean over fewer runs would jump.
        steps = mine.groupby("step").agg(x=(x, "mean"), y=(y, "mean"), runs=(y, "count"))
        mean = steps[steps.runs == steps.runs.max()]
        shape = {"marker": marker, "markersize": 3.5, "markeredgewidth": 0} if markers else {}
        ax.plot(mean.x, mean.y, color=colour, linewidth=1.8, **shape)
    ax.set_xlabel(AXES[x])
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=x == "step"))


def _legend(figure: Figure, train: pd.DataFrame) -> None:
    """One legend above everything: schedules, and what thick and thin mean."""
    looks, grey = look(train), ".35"
    entries = [
        Line2D([], [], color=looks[n][0], marker=looks[n][1], markersize=3.5, linewidth=1.8, label=n)
        for n in arms(train)
    ]
    runs = train.groupby(RUN).ngroups
    entries += [Line2D([], [], color=grey, linewidth=0.7, label=f"one run ({runs} in all)")]
    entries += [Line2D([], [], color=grey, linewidth=1.8, label="mean of runs")]
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries), frameon=False)
