"""Figures of ablations (a thin line per run, a thick one for their mean, colour and marker per schedule) and of
environments (what a certificate found, what difficulty moves).

Nothing here reads files or computes statistics; `ecomlab.analysis.tables` and `statistics` do.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis.statistics import generated, held_out
from ecomlab.analysis.tables import RUN

COLUMN_WIDTH, PAGE_WIDTH = 3.3, 6.9  # inches: one column and the whole width of a two-column paper
MARKERS = "osDv^P"
AXES = {"step": "training steps", "rollouts": "rollouts, thousands"}
_ORDER = ("static-low", "static-high", "adaptive")  # these always have the same colours
_PLAYERS: dict[str, tuple[int | str, str, str]] = {  # colour, marker, line
    "solver": (".1", "s", ""),
    "fair": (0, "o", "-"),
    "noisy": (1, "D", "-"),
    "naive": (2, "^", "-"),
    "worst positional": (4, "v", "-"),
    "worst blind": (".5", "s", "-"),
    "chance": (".1", "", ":"),
}
AXIS_WORDS = {
    "constraints": "wishes",
    "p_missing": "left unsaid",
    "eps_rank": "distractors",
    "p_oos": "sells out",
    "turn_slack": "spare turns",
    "tool_slack": "spare calls",
    "p_noise": "typos, slang",
    "p_switch": "changed mind",
    "top_k": "search depth",
    "k_rec": "list length",
    "history": "past orders",
    "branches": "policy clauses",
}
"""What each difficulty axis is, in a word or two."""


@contextmanager
def paper_style() -> Iterator[None]:
    """Text of 8 points at print size, no frames, thin grid."""
    small: dict[Any, Any] = {"font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 8}
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
    _lines(ax, _with_x(steps, train, x), x, "d_high")
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def success(ax: Axes, train: pd.DataFrame, rows: pd.DataFrame, x: str = "step") -> None:
    """Held-out success over steps or generated rollouts; `rows` has one `success` per run and step."""
    _lines(ax, _with_x(rows, train, x), x, "success", marked=True)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def difficulty_growth(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Figure:
    """The ablation of one collection in one figure, as wide as a page.

    Above: the frontier and the mean held-out success, each over steps and over generated rollouts. Below:
    held-out success at each evaluated difficulty, over steps. Raises ValueError for tables of several
    collections.
    """
    if len(collections := sorted(set(train.collection))) > 1:
        raise ValueError(
            f"the tables hold {', '.join(collections)}; choose one: train[train.collection == 'C1']"
        )
    means, levels = held_out(evaluation, decoding), sorted(evaluation.d.unique())
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 4.1), layout="constrained")
        rows = figure.add_gridspec(2, 1, height_ratios=(1.15, 1))
        upper = _row(figure, rows[0], 4)
        frontier(upper[0], train)
        frontier(upper[1], train, "rollouts")
        success(upper[2], train, means)
        success(upper[3], train, means, "rollouts")
        upper[0].set_ylabel("highest difficulty trained on")
        upper[2].set_ylabel(f"success, mean of d = {levels[0]}–{levels[-1]}")
        lower = _row(figure, rows[1], len(levels))
        for ax, d in zip(lower, levels, strict=True):
            at_d = evaluation[(evaluation.d == d) & (evaluation.decoding == decoding)]
            success(ax, train, at_d.groupby([*RUN, "step"], as_index=False)["success"].mean())
            ax.set_title(f"d = {d}")
            ax.set_xlabel("steps")
        lower[0].set_ylabel("held-out success")
        for ax in lower[1:]:
            ax.tick_params(labelleft=False)
        for ax, letter in zip([*upper, lower[0]], "abcde", strict=True):
            ax.set_title(letter, loc="left", fontweight="bold")
        _legend(figure, train)
        sns.despine(figure)
    plt.close(figure)  # shown by the notebook's last expression, once
    return figure


def effective_ratio(train: pd.DataFrame, window: int = 10) -> Figure:
    """Which share of groups teaches something, by correctness and by reward, and which share of tokens is used.

    Over steps, means of `window` steps; environments of a step are pooled by their counts.
    """
    counts = train.assign(
        correct=train.effective_correct * train.groups,
        rewarded=train.effective_reward * train.groups,
    )
    sums = counts.groupby([*RUN, "step"], as_index=False)[
        ["correct", "rewarded", "groups", "tokens_used", "tokens_generated"]
    ].sum()
    rolled = (
        sums.sort_values("step")
        .groupby(RUN, as_index=False)[list(sums.columns)]
        .apply(
            lambda run: run.assign(**run[sums.columns[len(RUN) + 1 :]].rolling(window, min_periods=1).sum())
        )
    )
    panels = (
        ("correct", "groups", "groups that teach, by correctness"),
        ("rewarded", "groups", "groups that teach, by reward"),
        ("tokens_used", "tokens_generated", "generated tokens that are used"),
    )
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 2.3), layout="constrained")
        for ax, (part, whole, label), letter in zip(
            _row(figure, figure.add_gridspec(1, 1)[0], 3), panels, "abc", strict=True
        ):
            rows = rolled.assign(share=rolled[part] / rolled[whole].clip(lower=1))
            _lines(ax, rows, "step", "share")
            ax.set(ylabel=label, ylim=(0, 1))
            ax.yaxis.set_major_formatter(PercentFormatter(1))
            ax.set_title(letter, loc="left", fontweight="bold")
        _legend(figure, train)
        sns.despine(figure)
    plt.close(figure)
    return figure


def one_run(train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled") -> Figure:
    """One run while it trains: its window with the success on it, and held-out success per difficulty."""
    steps = train.groupby("step").agg(
        low=("d_low", "min"), high=("d_high", "max"), success=("success", "mean")
    )
    rows = evaluation[evaluation.decoding == decoding]
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 2.2), layout="constrained")
        window, training, held = _row(figure, figure.add_gridspec(1, 1)[0], 3)
        window.fill_between(steps.index, steps.low, steps.high, step="mid", alpha=0.3)
        window.plot(steps.index, steps.high, drawstyle="steps-mid")
        window.set(ylabel="difficulty trained on", ylim=(0, max(1, steps.high.max())))
        window.yaxis.set_major_locator(MaxNLocator(integer=True))
        training.plot(steps.index, steps.success)
        training.set(ylabel="success in training")
        shades = sns.color_palette("viridis", rows.d.nunique())
        for shade, (d, level) in zip(shades, rows.groupby("d"), strict=True):
            means = level.groupby("step").success.mean()
            held.plot(means.index, means, marker="o", markersize=3, color=shade, label=f"d = {d}")
        held.set(ylabel=f"held-out success, {decoding}")
        if len(rows):
            held.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for ax in (training, held):
            ax.set_ylim(0, 1)
            ax.yaxis.set_major_formatter(PercentFormatter(1))
        for ax in (window, training, held):
            ax.set(xlabel="training steps", xlim=(0, None))
            ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        sns.despine(figure)
    plt.close(figure)
    return figure


def axes_over_difficulty(table: pd.DataFrame) -> Figure:
    """Small multiples: each row of `table` (an axis) over its columns (difficulties)."""
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 4.2), layout="constrained")
        _axis_panels(figure, figure.add_gridspec(1, 1)[0], table, 4)
        figure.supxlabel("difficulty d", fontsize=8)
        sns.despine(figure)
    plt.close(figure)
    return figure


def axes_and_environments(table: pd.DataFrame, matrix: pd.DataFrame) -> Figure:
    """Above: each axis (a row of `table`) over difficulties (its columns). Below: which environments (rows of
    `matrix`) consume which axes (its columns)."""
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 5.0), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.6, 1))
        upper, lower = halves
        panels = _axis_panels(upper, upper.add_gridspec(1, 1)[0], table, 6)
        upper.supxlabel("difficulty d", fontsize=8)
        ax = lower.add_subplot()
        consumed_axes(ax, matrix)
        for first, letter in ((panels[0], "a"), (ax, "b")):
            first.annotate(
                letter,
                (0, 1),
                xytext=(-4, 8),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
                fontweight="bold",
            )
        for panel in panels:
            sns.despine(ax=panel)
    plt.close(figure)
    return figure


def consumed_axes(ax: Axes, matrix: pd.DataFrame) -> None:
    """A dot where an environment (row) consumes an axis (column)."""
    rows, columns = matrix.to_numpy(dtype=bool).nonzero()
    ax.scatter(columns, rows, s=42, color=sns.color_palette("colorblind")[0], linewidths=0, zorder=2)
    ax.set_xticks(range(matrix.shape[1]), matrix.columns)
    ax.set_yticks(range(matrix.shape[0]), matrix.index)
    ax.set(xlim=(-0.5, matrix.shape[1] - 0.5), ylim=(matrix.shape[0] - 0.5, -0.5))
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.tick_params(axis="x", labelsize=6.5)
    ax.spines[:].set_visible(False)


def certificate(table: pd.DataFrame) -> Figure:
    """A panel per environment: the share of tasks that each player gets right, over difficulty.

    `table` is `tables.load_certificate`'s with bounds. They are shown as bands: both of a single player's; the upper
    one of the worst of several, which is chosen by its luck too.
    """
    envs = list(dict.fromkeys(table.env))
    columns = min(4, len(envs))
    rows = math.ceil(len(envs) / columns)
    with paper_style():
        figure = plt.figure(figsize=(PAGE_WIDTH, 0.6 + 1.55 * rows), layout="constrained")
        grid = figure.add_gridspec(rows, columns)
        for place, env in enumerate(envs):
            ax = figure.add_subplot(grid[place // columns, place % columns])
            _players(ax, table[table.env == env])
            ax.set_title(env)
            ax.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(envs))
        figure.supxlabel("difficulty d", fontsize=8)
        figure.supylabel("tasks solved", fontsize=8)
        handles = [Line2D([], [], label=name, **_mark(name)) for name in _PLAYERS]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=len(handles),
            frameon=False,
            handlelength=1.8,
            columnspacing=1.3,
        )
        sns.despine(figure)
    plt.close(figure)
    return figure


def _players(ax: Axes, table: pd.DataFrame) -> None:
    """Everybody's line; those that lie on zero together have their marks at levels of their own."""
    often = {name: (i, 3) for i, name in enumerate(("naive", "worst positional", "worst blind"))}
    for name in reversed(_PLAYERS):
        mine = table[table.player == name].sort_values("d")
        if mine.empty:
            continue
        look = _mark(name)
        if mine.n.any() and name != "solver":
            low = mine.share if name.startswith("worst") else mine.low
            ax.fill_between(mine.d, low, mine.high, color=look["color"], alpha=0.18, linewidth=0)
        every = often.get(name) if len(mine) > 3 else None
        ax.plot(mine.d, mine.share, markevery=every, zorder=4 if name == "chance" else 3, **look)
    ax.set(xlim=(table.d.min() - 0.6, table.d.max() + 0.6), ylim=(-0.04, 1.06))
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 4, 10]))


def _mark(name: str) -> dict[str, Any]:
    """How a player is drawn; the solver as squares around the fair player's dots."""
    colour, marker, line = _PLAYERS[name]
    shade = sns.color_palette("colorblind", 10)[colour] if isinstance(colour, int) else colour
    size, fill = {"solver": (5, "none"), "fair": (2.4, shade), "worst blind": (2.6, shade)}.get(
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
    """Each row of `table` over its columns, `columns` panels a row, of a figure or subfigure."""
    grid = place.subgridspec(math.ceil(len(table) / columns), columns)
    levels = [int(str(name).removeprefix("d = ")) for name in table.columns]
    made = []
    for number, (name, values) in enumerate(table.iterrows()):
        ax = figure.add_subplot(grid[number // columns, number % columns])
        ax.plot(levels, values.to_numpy(), drawstyle="steps-mid", color=sns.color_palette("colorblind")[0])
        ax.set_title(AXIS_WORDS.get(str(name), ""), pad=13)
        ax.annotate(
            str(name),
            (0.5, 1),
            xytext=(0, 4),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=".4",
        )
        ax.set_ylim(bottom=0)
        whole = bool((values % 1 == 0).all())
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=whole))
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        made.append(ax)
    return made


def _row(figure: Figure, place: SubplotSpec, count: int) -> list[Axes]:
    """`count` axes side by side."""
    grid = place.subgridspec(1, count)
    return [figure.add_subplot(grid[0, i]) for i in range(count)]


def _with_x(rows: pd.DataFrame, train: pd.DataFrame, x: str) -> pd.DataFrame:
    """`rows` with a column `rollouts` in thousands when that is the x axis."""
    if x not in AXES:
        raise ValueError(f"x is one of {', '.join(AXES)}, not {x!r}")
    if x == "step":
        return rows
    so_far = generated(train)
    return rows.merge(so_far.assign(rollouts=so_far.rollouts / 1000), on=[*RUN, "step"])


def _lines(ax: Axes, rows: pd.DataFrame, x: str, y: str, marked: bool = False) -> None:
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
        shape = marker if marked else ""
        ax.plot(mean.x, mean.y, color=colour, linewidth=1.8, marker=shape, markersize=3.5, markeredgewidth=0)
    ax.set_xlabel(AXES[x])
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=x == "step"))


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
