"""The figure of the registered study: what curricula are worth to a tiny policy that composes steps."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from ecomlab.analysis.plots import UNTRAINED_LOOK, lines
from ecomlab.style import Look, Width, canvas, current, dots, in_rows, laid_out, lettered, places_of

ARMS = ("single steps", "static-4-6", "static-0-6", "adaptive", "prefix")
"""Arms of the primary contrasts, in the order of the legend."""
SAID = {"singles": "single steps"}
"""What an arm is called, where a starter has its name."""
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
    `other` starter does (what starves); the highest level drawn (what grows); success of `starter` at levels that no
    arm draws (what composes further); and the primary contrasts of both (what does better).

    The tables are those of experiments/frontier/analyse.py.
    """
    curves, success = (table.assign(arm=table.arm.replace(SAID)) for table in (curves, success))
    figure, page = canvas(width, 4.3, 6.6)
    rows = places_of(figure.add_gridspec(2 if page else 3, 1))
    above = [figure.add_subplot(one) for one in places_of(rows[0].subgridspec(1, 3 if page else 2))]
    grid = places_of(rows[1].subgridspec(1, 2, width_ratios=(1, 1.3) if page else None))
    below = [figure.add_subplot(one) for one in (grid if page else [*grid, rows[2]])]
    panels = above + below
    looks = {arm: current().look(arm) for arm in ARMS}
    runs = curves[curves.arm.isin(looks)].assign(schedule=curves.arm, collection="C1")
    for ax, name, value, label in (
        (panels[0], starter, "success", "success, d = 0–6"),
        (panels[1], other, "mixed", "groups with\nnon-zero advantage"),
        (panels[2], starter, "level", "highest level drawn"),
    ):
        mine = runs[(runs.starter == name) & runs[value].notna()]
        lines(ax, mine if value != "level" else mine[mine.arm == "adaptive"], "step", value, looks)
        ax.set(ylabel=label, title=f"from {name}")
    far = success[(success.levels == "7-8") & (success.decoding == "sampled") & (success.starter == starter)]
    _by_arm(panels[3], far.set_index("arm"), {"start": next(iter(UNTRAINED_LOOK.values())), **looks})
    panels[3].set(xlabel="success, d = 7–8,\nnever drawn", title=f"from {starter}")
    _differences(panels[4], contrasts[contrasts.holm.notna()], (starter, other))
    for axis in (panels[0].yaxis, panels[1].yaxis, panels[3].xaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
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
    """Draw a row for each contrast: differences from both starters in percentage points, filled where p is below .05
    after Holm's correction."""
    names = list(dict.fromkeys(rows.contrast))
    in_rows(ax, [" −\n".join(SAID.get(arm, arm) for arm in name.split(" - ")) for name in names])
    shades = ((0.1, 0.1, 0.1), (0.5, 0.5, 0.5))
    for side, (starter, shade, mark) in enumerate(zip(starters, shades, MARKS, strict=True)):
        for place, name in enumerate(names):
            for one in rows[(rows.starter == starter) & (rows.contrast == name)].itertuples():
                bounds = [100 * value for value in (one.difference, one.low, one.high)]
                dots(ax, [place + 0.24 * (side - 0.5)], bounds, (shade, mark), full=one.holm < 0.05)
    ax.axvline(0, color=".3", linewidth=0.6)
    ax.set_xlabel("difference, d = 0–6,\npercentage points")
    handles = [
        Line2D([], [], color=shade, marker=mark, linestyle="", markersize=3.5, label=f"from {starter}")
        for starter, shade, mark in zip(starters, shades, MARKS, strict=True)
    ]
    ax.legend(handles=handles, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)
