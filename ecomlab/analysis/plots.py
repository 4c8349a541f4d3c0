"""Figures of ablations: a thin line per run, a thick one for their mean, a colour per schedule or collection."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from scipy.stats import t

from ecomlab.analysis.statistics import (
    MIN_RUNS,
    collections_compared,
    differences,
    effective_differences,
    gains,
    generated,
    held_out,
    learned,
)
from ecomlab.analysis.tables import RUN, chosen, in_order
from ecomlab.style import Look, Width, canvas, current, dots, laid_out, lettered, panels_of, places_of, small

AXES = {"step": "training steps", "rollouts": "rollouts, thousands", "tokens": "generated tokens, millions"}
UNITS = {"rollouts": 1e3, "tokens": 1e6}
UNTRAINED = "untrained"
UNTRAINED_LOOK: dict[str, Look] = {UNTRAINED: ((0.35, 0.35, 0.35), "o")}
SHARED = "CART"  # the environment that every collection has
_ORDER = ("static-low", "static-high", "adaptive")  # come first in legends


def arms(table: pd.DataFrame) -> list[str]:
    """List a table's schedules in the order of legends: the three of the ablation, then others by name."""
    there = set(table.schedule)
    return [name for name in _ORDER if name in there] + sorted(there - set(_ORDER))


def look(table: pd.DataFrame) -> dict[str, Look]:
    """Return the colour and marker of each of a table's schedules."""
    return {name: current().look(name) for name in arms(table)}


def frontier(ax: Axes, train: pd.DataFrame) -> None:
    """Draw the highest difficulty of each run's window, over steps.

    Fixed ranges are dashed, and only named where they would press the others into a corner.
    """
    steps = train.groupby([*RUN, "step"], as_index=False)["d_high"].max()
    fixed = steps.schedule.str.startswith("static-")
    looks, moving = look(train), steps[~fixed]
    most = 2 * max(1, moving.d_high.max()) + 1 if len(moving) else math.inf
    lines(ax, moving, "step", "d_high", looks)
    beyond = 0
    for name, level in steps[fixed].groupby("schedule").d_high.max().items():
        if level <= most:
            ax.axhline(level, color=looks[name][0], linewidth=1.2, linestyle=(0, (4, 2)))
            continue
        ax.annotate(
            f"{name}: {level:g}", (1, 1), (0, 4 + 9 * beyond), xycoords="axes fraction",
            textcoords="offset points", ha="right", color=looks[name][0], fontsize=small(),
        )  # fmt: skip
        beyond += 1
    ax.set(xlabel=AXES["step"], xlim=(0, max(1, train.step.max())))
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, -0.08 * max(high, 1)), high + 0.1 * max(high, 1))  # a line at 0 is seen
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def success(ax: Axes, train: pd.DataFrame, rows: pd.DataFrame, x: str = "step") -> None:
    """Draw held-out success over steps, rollouts or generated tokens; `rows` has a `success` per run and step. The axis
    spans what there is."""
    lines(ax, _with_x(rows, train, x), x, "success", look(train), marked=True)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def compared(table: pd.DataFrame) -> str:
    """Choose the arm that figures compare with the others: the adaptive one, or else the last in their order."""
    names = arms(table)
    return "adaptive" if "adaptive" in names else names[-1]


def lead(ax: Axes, train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str) -> None:
    """Draw the success of the arm `compared` minus that of each other schedule that has learned (of every one, if none
    has), at each difficulty and in their mean: paired differences after equal numbers of steps, with 95% intervals from
    three pairs on."""
    arm = compared(train)
    rows = differences(train, evaluation, arm, decoding)
    rows = rows[rows.equal == "steps"]
    taught = rows[rows.against.isin(learned(evaluation, decoding))]
    rows = taught if len(taught) else rows
    order = ["mean", *sorted(set(rows.d) - {"mean"})]
    _differences(ax, rows, look(train), "d", order)
    if len(rows):
        ax.set_xticks(range(len(order)), ["all", *map(str, order[1:])])
    ax.set(xlabel="difficulty", ylabel=_minus(arm))


def _minus(arm: str) -> str:
    return f"{arm} minus the\nother schedule,\npercentage points"


def _differences(
    ax: Axes, rows: pd.DataFrame, looks: Mapping[str, Look], by: str, order: Sequence[Any] | None = None
) -> None:
    """Draw differences in percentage points: a place for each value of the column `by`, in it a mark for each arm of
    the column `against`, with 95% intervals where there are any. Without rows the panel is left empty."""
    if rows.empty:
        ax.set_visible(False)
        return
    order = list(dict.fromkeys(rows[by])) if order is None else order
    names = [name for name in looks if name in set(rows.against)]
    ax.axhline(0, color=".3", linewidth=0.8)
    for i, name in enumerate(names):
        mine = rows[rows.against == name].set_index(by).reindex(order)
        x = [place + 0.22 * (i - (len(names) - 1) / 2) for place in range(len(order))]
        dots(ax, x, [100 * mine[one] for one in ("mean", "low", "high")], looks[name], upright=True)
    ax.set_xticks(range(len(order)), [str(one) for one in order])
    low, high = ax.get_ylim()
    ax.set(xlim=(-0.5, len(order) - 0.5), ylim=(min(low, -1), max(high, 1)))
    ax.grid(axis="x", visible=False)


@laid_out
def difficulty_growth(
    train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled", width: Width = "page"
) -> Figure:
    """Draw the ablation of one collection.

    The highest difficulty trained on; mean held-out success over steps; one arm minus the others (`lead`); held-out
    success at the lowest, the middle and the highest level; and, as wide as a page, over generated tokens. Raises
    ValueError for tables of several collections, and of none evaluated with `decoding`.
    """
    chosen(evaluation, "eval.csv", decoding=decoding)
    if len(collections := sorted(set(train.collection))) > 1:
        raise ValueError(
            f"the tables hold {', '.join(collections)}; choose one: train[train.collection == 'C1']"
        )
    means, levels = held_out(evaluation, decoding), sorted(evaluation.d.unique())
    figure, page = canvas(width, 4.4, 5.6)
    rows = places_of(figure.add_gridspec(2 if page else 3, 1))
    window, steps, *third = _row(figure, rows[0], (1, 1, 1.6) if page else (1, 1))
    ahead = third[0] if page else figure.add_subplot(rows[1])
    single = _row(figure, rows[-1], (1, 1, 1, 1.4) if page else (1, 1, 1))
    tokens = single[3:]
    frontier(window, train)
    window.set_ylabel("highest difficulty\ntrained on")
    label = f"held-out success,\n{decoding}, d = {levels[0]}–{levels[-1]}"
    success(steps, train, means)
    lead(ahead, train, evaluation, decoding)
    _levels(single[:3], train, evaluation, decoding, levels)
    for ax in tokens:
        success(ax, train, means, "tokens")
    for ax in (steps, *tokens):
        ax.set_ylabel(label)
    lettered([window, steps, ahead, single[0], *tokens])
    _legend(figure, train, 6 if page else 3)
    return figure


def _levels(
    axes: Sequence[Axes], train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str, levels: Sequence[int]
) -> None:
    """Draw success over steps at three levels: the lowest, the middle and the highest. Panels without a level are
    left empty."""
    shown = list(dict.fromkeys([levels[0], levels[len(levels) // 2], levels[-1]]))
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    axes = axes[: len(shown)]
    for ax, d in zip(axes, shown, strict=True):
        at_d = evaluation[(evaluation.d == d) & (evaluation.decoding == decoding)]
        success(ax, train, at_d.groupby([*RUN, "step"], as_index=False)["success"].mean())
        ax.set_title(f"d = {d}")
        ax.set_xlabel(AXES["step"] if ax is axes[len(axes) // 2] else "")
        ax.set_ylim(0, 1)
        ax.tick_params(labelleft=ax is axes[0])
    axes[0].set_ylabel("held-out success")


@laid_out
def effective_ratio(train: pd.DataFrame, window: int = 10, width: Width = "page") -> Figure:
    """Draw the effective prompt ratio over steps: the share of groups whose rewards differ, and the share in which some
    rollouts are correct and some are not; the share of tokens in the loss; and the adaptive arm minus the others in
    each, over whole runs.

    Shares are taken over the last `window` steps; environments of a step are pooled by their counts.
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
    figure, page = canvas(width, 2.2, 3.9)
    places = panels_of(figure, (1, 4) if page else (2, 2))
    panels = (("rewarded", "groups"), ("correct", "groups"), ("tokens_used", "tokens_generated"))
    for ax, (part, whole) in zip(places, panels, strict=False):
        rows = rolled.assign(share=rolled[part] / rolled[whole].clip(lower=1))
        lines(ax, rows, "step", "share", look(train), marked=True, marks=6)
        ax.set(ylim=(0, 1.02))
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    by_reward, by_correct, used, ahead = places
    by_reward.set(title="reward", ylabel="effective prompt ratio")
    by_correct.set(title="correct")
    by_correct.tick_params(labelleft=False)
    used.set(title="tokens", ylabel="generated tokens\nin the loss")
    _differences(ahead, effective_differences(train, compared(train)), look(train), "of")
    ahead.set(ylabel=_minus(compared(train)))
    ahead.tick_params(axis="x", labelrotation=30)
    lettered(places)
    _legend(figure, train, 6 if page else 3)
    return figure


@laid_out
def environment_scaling(
    train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled", width: Width = "page"
) -> Figure:
    """Draw a comparison of collections of environments.

    Above: success in the environment that all of them have, over the rollouts of all environments and over its own, and
    the other collections minus the smallest after equal numbers of them, paired by seed. Below: what training adds to
    success in each environment of the largest collection, trained on it or not. Colour and marker per collection.
    Raises ValueError for tables of several schedules, and of none in that environment with `decoding`.
    """
    if len(schedules := sorted(set(train.schedule))) > 1:
        raise ValueError(
            f"the tables hold {', '.join(schedules)}; choose one: train[train.schedule == 'adaptive']"
        )
    chosen(train, "train.csv", env=SHARED)
    chosen(evaluation, "eval.csv", env=SHARED, decoding=decoding)
    sizes = train.groupby("collection").env.nunique()
    envs = in_order(set(train.env[train.collection == sizes.idxmax()]))
    gap = collections_compared(train, evaluation, SHARED, decoding=decoding)
    gap = gap.assign(against=gap.collection, of=gap.equal.str.replace(" rollouts", "\nrollouts"))
    gained = gains(train, evaluation, decoding)
    # An arm is a collection here: it takes the schedule's place.
    train, evaluation = (t.assign(schedule=t.collection) for t in (train, evaluation))
    shared, looks = held_out(evaluation[evaluation.env == SHARED], decoding), look(train)
    figure, page = canvas(width, 4.4, 6.0)
    heights = (1.3, 1) if page else (1.6, 1, 1)
    rows = places_of(figure.add_gridspec(len(heights), 1, height_ratios=heights))
    every, alone, *third = _row(figure, rows[0], (1, 1, 0.8) if page else (1, 1))
    success(every, train, shared, "rollouts")
    success(alone, train[train.env == SHARED], shared, "rollouts")
    every.set(
        ylabel=f"held-out success,\n{SHARED}, {decoding}", xlabel="rollouts of all\nenvironments, thousands"
    )
    alone.set(xlabel=f"rollouts of {SHARED}\nalone, thousands")
    alone.tick_params(labelleft=False)
    reached = generated(train, SHARED).groupby("collection").rollouts.max() / 1000
    alone.set_xlim(right=1.5 * reached.min())  # a collection of one environment has many more
    _mark_cut(alone, _with_x(shared, train[train.env == SHARED], "rollouts"), "rollouts", looks)
    paired = third[0] if page else figure.add_subplot(rows[1])
    _differences(paired, gap, looks, "of")
    paired.set(xlabel="equal number", ylabel=f"{SHARED}, minus {sizes.idxmin()},\npercentage points")
    below = figure.add_subplot(rows[-1])
    _differences(below, gained.assign(against=gained.collection), looks, "env", envs)
    below.set(ylabel="gain over the starter,\npercentage points")
    below.tick_params(axis="x", labelrotation=0 if page else 30)
    lettered([every, alone, paired, below])
    _legend(figure, train, 6 if page else 3)
    return figure


def _mark_cut(ax: Axes, rows: pd.DataFrame, x: str, looks: Mapping[str, Look]) -> None:
    """Mark the arms whose mean continues beyond the right edge: an arrow, and in the corner its last x."""
    edge, at = ax.get_xlim()[1], ax.get_yaxis_transform()  # of which x is in widths of the panel
    means = {name: mine.groupby("step")[[x, "success"]].mean() for name, mine in rows.groupby("schedule")}
    cut = [name for name in arms(rows) if means[name][x].max() > edge]
    for number, name in enumerate(reversed(cut)):
        mean, colour = means[name], looks[name][0]
        height = float(np.interp(edge, mean[x], mean.success))
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
        ax.annotate("", (1, height), (0.9, height), xycoords=at, textcoords=at, arrowprops=arrow)
        ax.annotate(
            f"{name} continues to {mean[x].max():.0f}", (1, 0), (-2, 4 + 9 * number), xycoords="axes fraction",
            textcoords="offset points", ha="right", color=colour, fontsize=small(),
        )  # fmt: skip


@laid_out
def reward_parts(parts: pd.DataFrame, decoding: str = "sampled", width: Width = "page") -> Figure:
    """Draw the mean reward of held-out episodes, and its parts for the task and for efficiency, over difficulty: of
    each schedule after its last step, and before the first, which all schedules share. Raises ValueError where
    `decoding` was not evaluated."""
    rows = chosen(parts, "the table of parts", decoding=decoding)
    last = rows[rows.step == rows.groupby(RUN).step.transform("max")]
    before = rows[rows.step == 0].assign(schedule=UNTRAINED)
    looks = {**look(last), **UNTRAINED_LOOK}
    shown = {
        "reward": f"reward, {decoding}",
        "reward_task": "for the task",
        "reward_efficiency": "for efficiency",
    }
    figure, page = canvas(width, 2.2, 3.9)
    panels = panels_of(figure, (1, 4) if page else (2, 2))
    means = pd.concat([last, before]).groupby([*RUN, "d"], as_index=False)[list(shown)].mean()
    ends = (means.d.min() - 0.35, means.d.max() + 0.35)
    for ax, (name, label) in zip(panels, shown.items(), strict=False):
        lines(ax, means.rename(columns={"d": "step"}), "step", name, looks, marked=True)
        ax.axhline(0, color=".3", linewidth=0.8)
        ax.set(xlabel="difficulty", ylabel=label, ylim=(-1.08, 1.08), xlim=ends)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    lettered(panels[:3])
    panels[3].set_axis_off()
    panels[3].legend(handles=_entries(last, looks), loc="center", frameon=False)
    return figure


def _mark(arm: str) -> dict[str, Any]:
    """Choose how an arm's mean is drawn: of what is untrained with rings, through which an arm that learned nothing is
    seen."""
    ring = {
        "markersize": 6,
        "markerfacecolor": "none",
        "markeredgewidth": 0.8,
        "linestyle": "--",
        "linewidth": 1.0,
    }
    return ring if arm == UNTRAINED else {"markersize": 3.5, "markeredgewidth": 0, "linewidth": 1.8}


@laid_out
def one_run(
    train: pd.DataFrame, evaluation: pd.DataFrame, decoding: str = "sampled", steps: int | None = None
) -> Figure:
    """Draw one run, finished or not: its window, success in training, and held-out success per difficulty.

    `steps` is the number of all its steps; without it the time axis ends at the last one that was taken.
    """
    scored = train.rollouts - (train.unscored if "unscored" in train else 0)
    done = (
        train.assign(scored=scored, won=(train.success * scored).fillna(0))
        .groupby("step")
        .agg(low=("d_low", "min"), high=("d_high", "max"), won=("won", "sum"), scored=("scored", "sum"))
    )
    done["success"] = done.won / done.scored.where(done.scored > 0)
    rows = evaluation[evaluation.decoding == decoding]
    figure, _ = canvas("page", 2.2, 2.2)
    window, training, held = panels_of(figure, (1, 3))
    window.fill_between(done.index, done.low, done.high, step="mid", alpha=0.3)
    window.plot(done.index, done.high, drawstyle="steps-mid")
    window.set(ylabel="difficulty trained on", ylim=(0, max(1, done.high.max())))
    window.yaxis.set_major_locator(MaxNLocator(integer=True))
    training.plot(done.index, done.success)
    training.set(ylabel="success in training")
    shades = sns.color_palette("viridis", rows.d.nunique())
    for shade, (d, level) in zip(shades, rows.groupby("d"), strict=True):
        means = level.groupby("step").success.mean()
        held.plot(means.index, means, marker="o", markersize=3, color=shade, label=f"d = {d}", clip_on=False)
    held.set(ylabel=f"held-out success, {decoding}")
    if len(rows):
        held.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for ax in (training, held):
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for ax in (window, training, held):
        ax.set(xlabel="training steps", xlim=(0, max(steps or train.step.max(), 1)))
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return figure


def _row(figure: Figure, place: SubplotSpec, widths: Sequence[float]) -> list[Axes]:
    """Add panels side by side, of these relative widths."""
    grid = place.subgridspec(1, len(widths), width_ratios=widths)
    return [figure.add_subplot(one) for one in places_of(grid)]


def _with_x(rows: pd.DataFrame, train: pd.DataFrame, x: str) -> pd.DataFrame:
    """Add what was generated so far, in the unit of the x axis, unless that is the step."""
    if x not in AXES:
        raise ValueError(f"x is one of {', '.join(AXES)}, not {x!r}")
    if x == "step":
        return rows
    so_far = generated(train)
    return rows.merge(so_far.assign(**{x: so_far[x] / UNITS[x]}), on=[*RUN, "step"])


def lines(
    ax: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    looks: Mapping[str, Look],
    marked: bool = False,
    marks: int | None = None,
) -> None:
    """Draw a thick line for the mean of x and y over runs at each step, with a marker at each point, or at about as
    many as `marks`; around it Student's 95% interval of y where there are `MIN_RUNS` runs, else a thin line per run."""
    for name in arms(rows):
        colour, marker = looks[name]
        mine = rows[rows.schedule == name].sort_values("step")
        # Only steps that all runs have reached: a mean over fewer runs would jump.
        steps = mine.groupby("step").agg(x=(x, "mean"), y=(y, "mean"), sem=(y, "sem"), runs=(y, "count"))
        mean = steps[steps.runs == steps.runs.max()]
        if mean.runs.max() >= MIN_RUNS:
            reach = mean["sem"].fillna(0) * t.ppf(0.975, mean.runs - 1)
            ax.fill_between(mean.x, mean.y - reach, mean.y + reach, color=colour, alpha=0.2, linewidth=0)
        else:
            for _, run in mine.groupby(RUN):
                ax.plot(run[x], run[y], color=colour, linewidth=0.7, alpha=0.55)
        shape = marker if marked else ""
        every = max(1, len(mean) // marks) if marks else None
        ax.plot(mean.x, mean.y, color=colour, marker=shape, markevery=every, **_mark(name))
    ax.set_xlabel(AXES[x])
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=x == "step"))


def _legend(figure: Figure, train: pd.DataFrame, columns: int = 6) -> None:
    """Draw one legend above all panels."""
    entries = _entries(train, look(train))
    figure.legend(
        handles=entries, loc="outside upper center", ncols=min(columns, len(entries)), frameon=False,
        fontsize=small(), handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


def _entries(runs: pd.DataFrame, looks: Mapping[str, Look]) -> list[Any]:
    """Make the entries of a legend: the arms, and the meaning of bands and thin lines, with the number of an arm's
    runs."""
    entries: list[Any] = [
        Line2D([], [], color=colour, marker=marker, label=name, **_mark(name))
        for name, (colour, marker) in looks.items()
    ]
    each = runs[RUN].drop_duplicates().groupby("schedule").size()
    if len(many := each[each >= MIN_RUNS]):
        label = f"95% interval, {_span(many)} runs"
        entries.append(Patch(color=".35", alpha=0.3, linewidth=0, label=label))
    if len(few := each[each.between(2, MIN_RUNS - 1)]):
        entries.append(Line2D([], [], color=".35", linewidth=0.7, label=f"one of an arm's {_span(few)} runs"))
    return entries


def _span(counts: pd.Series) -> str:
    return "–".join(dict.fromkeys((str(counts.min()), str(counts.max()))))
