"""The figures of error cascades: where players go wrong, what follows, what becomes of it, and whether they recover;
and episodes with their labels."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis.cascades import (
    LOW,
    PAIRS,
    Cells,
    check_low,
    first_mistakes,
    follows,
    hard_levels,
    kinds_of,
)
from ecomlab.analysis.plots import COLUMN_WIDTH, PAGE_WIDTH, laid_out, lettered, look, paper_style, places_of
from ecomlab.evaluate.cascade.mistakes import WORLD
from ecomlab.evaluate.cascade.tables import fates, survival

ORDER = ("perturbed", "base", "novice")
"""Players before the schedules, in figures."""
_OTHERS: dict[str, tuple[int, str]] = {"perturbed": (7, "X"), "base": (9, "p"), "novice": (5, "P")}
_FATES: dict[str, str] = {
    "mended alone": "mended alone",
    "mended after a correction": "after a correction",
    "overtaken": "overtaken",
    "given up": "given up",
    "persisted": "persisted",
}


def looks_of(players: Sequence[str]) -> dict[str, Any]:
    """Choose colour and marker per player: schedules as in every figure."""
    palette = sns.color_palette("colorblind", 10)
    schedules = [name for name in players if name not in _OTHERS]
    found = {name: (palette[i], marker) for name, (i, marker) in _OTHERS.items() if name in players}
    return {**found, **look(pd.DataFrame({"schedule": schedules}))}


def in_order(players: Sequence[str]) -> list[str]:
    """Sort players: those that were not trained here first, then the schedules in the order of every figure."""
    schedules = list(look(pd.DataFrame({"schedule": [name for name in players if name not in ORDER]})))
    return [name for name in (*ORDER, *schedules) if name in players]


@laid_out
def error_cascade(cells: Cells, effects: pd.DataFrame, width: float = PAGE_WIDTH) -> Figure:
    """Draw where players go wrong at d = 1 and at their hard level (`cascades.hard_levels`).

    First mistakes by kind; the share of episodes without a mistake over turns; which kinds follow which more often than
    by chance; what becomes of mistakes in the world; and the effect of a planted wrong act: the share that the player
    mends, and its success less that of the untouched twin. As wide as a column without the third and fourth. Raises
    ValueError for effects in several environments, and where a player lacks d = 1.
    """
    check_low(cells)
    if len(envs := sorted(set(effects.env))) > 1:
        raise ValueError(
            f"the effects are of {', '.join(envs)}; choose one: effects[effects.env == '{envs[0]}']"
        )
    page, players = width > COLUMN_WIDTH, in_order([player for player, _ in cells])
    hard, looks = hard_levels(cells), looks_of(players)
    shown = {key: some for key, some in cells.items() if key[1] in (LOW, hard[key[0]])}
    kinds = kinds_of(shown)
    with paper_style():
        figure = plt.figure(figsize=(width, 8.4 if page else 8.2), layout="constrained")
        rows = figure.add_gridspec(3, 1, height_ratios=(1.25, 1.05, 0.9) if page else (1.5, 0.9, 1.1))
        if page:
            top, middle = rows[0].subgridspec(1, 3, width_ratios=(1.5, 1, 1)), rows[1].subgridspec(1, 2)
            first, early, late = (figure.add_subplot(place) for place in places_of(top))
        else:
            first = figure.add_subplot(rows[0])
            early, late = (figure.add_subplot(place) for place in places_of(rows[1].subgridspec(1, 2)))
        _first(first, shown, players, hard, kinds)
        _survival(early, cells, dict.fromkeys(players, LOW), looks)
        _survival(late, cells, hard, looks)
        early.set(title=f"d = {LOW}", ylabel="episodes without\na mistake")
        late.set(title="hard level")
        late.tick_params(labelleft=False)
        panels = [first, early]
        if page:
            heat, ends = (figure.add_subplot(place) for place in places_of(middle))
            _follows(heat, {key: some for key, some in cells.items() if key[1] == hard[key[0]]}, kinds)
            _fates(ends, cells, hard)
            panels += [heat, ends]
        mended, lost = (figure.add_subplot(place) for place in places_of(rows[2].subgridspec(1, 2)))
        _planted(mended, effects, players, hard, looks, "mended")
        _planted(lost, effects, players, hard, looks, "effect")
        lost.tick_params(labelleft=False)
        lettered([*panels, mended, lost])
        handles = [
            Line2D([], [], color=looks[n][0], marker=looks[n][1], markersize=3.5, label=n) for n in players
        ]
        figure.legend(
            handles=handles, loc="outside upper center", ncols=len(players) if page else 3, frameon=False,
            handlelength=1.6, columnspacing=1.2,
        )  # fmt: skip
        for ax in figure.axes:
            sns.despine(ax=ax)
    plt.close(figure)
    return figure


def _first(
    ax: Axes, cells: Cells, players: Sequence[str], hard: Mapping[str, int], kinds: Sequence[str]
) -> None:
    """Draw a bar per player and level: the shares of first mistakes by kind."""
    keys = [(player, d) for player in players for d in dict.fromkeys((LOW, hard[player]))]
    shades = sns.color_palette("colorblind", 10)
    hatches = ("", "", "", "", "////", "....", "xxxx", "")
    for row, key in enumerate(keys):
        begin = 0.0
        for i, share in enumerate(first_mistakes(cells[key], kinds).values()):
            ax.barh(
                row, share, left=begin, color=shades[i], hatch=hatches[i], edgecolor="white", linewidth=0.4
            )
            begin += share
    ax.set_yticks(range(len(keys)), [f"{player}, d = {d}" for player, d in keys])
    ax.set(xlabel="episodes, by first mistake", xlim=(0, 1), ylim=(len(keys) - 0.4, -0.6))
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(axis="y", visible=False)
    handles = [
        Patch(facecolor=shades[i], hatch=hatches[i], edgecolor="white", label=kind)
        for i, kind in enumerate(kinds)
    ]
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.3, -0.16), ncols=2, frameon=False, fontsize=7,
        handlelength=1.2, columnspacing=0.8, labelspacing=0.2,
    )  # fmt: skip


def _survival(ax: Axes, cells: Cells, levels: Mapping[str, int], looks: Mapping[str, Any]) -> None:
    """Draw the share of episodes in which no mistake was made yet, over turns as shares of those needed."""
    for player, d in levels.items():
        rows = pd.DataFrame(survival(cells[player, d]))
        rows = rows[rows.at_risk > 0]
        ax.plot(
            rows.share, rows.surviving, color=looks[player][0], marker=looks[player][1], markersize=3, linewidth=1.1,
            markevery=2, markeredgewidth=0,
        )  # fmt: skip
    ax.set(ylim=(-0.02, 1.02), xlim=(0, 2), xlabel="turns / needed")
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.xaxis.set_major_locator(MaxNLocator(2))


def _follows(ax: Axes, cells: Cells, kinds: Sequence[str]) -> None:
    """Draw which kind of new mistake follows which in the next turn, beyond what independent turns would give."""
    kinds = [kind for kind in kinds if kind != "other"]
    surplus = follows(cells, kinds)
    most = abs(surplus).max(initial=1.0)
    if kinds:
        ax.imshow(surplus, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
    for row, values in enumerate(surplus):
        for column, value in enumerate(values):
            colour = "white" if abs(value) > 0.6 * most else ".15"
            text = f"{value:.0f}".replace("-0", "0") if abs(value) < 99.5 else f"{value:.0f}"
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(range(len(kinds)), kinds, rotation=45, ha="right")
    ax.set_yticks(range(len(kinds)), kinds)
    ax.set(xlabel="next turn", ylabel="a turn")
    ax.grid(visible=False)


def _fates(ax: Axes, cells: Cells, hard: Mapping[str, int]) -> None:
    """Draw what became of mistakes in the world at the hard level, a bar per kind, over all players."""
    found = fates([one for player, d in hard.items() for one in cells[player, d]])
    rows = [row for row in found if row["kind"] in WORLD and row["kind"] != "missed item"][
        :7
    ]  # made at the end
    shades = sns.color_palette("viridis", len(_FATES))
    for place, row in enumerate(rows):
        begin = 0.0
        for shade, fate in zip(shades, _FATES, strict=True):
            share = row[fate] / row["mistakes"]
            ax.barh(place, share, left=begin, color=shade, edgecolor="white", linewidth=0.4)
            begin += share
    ax.set_yticks(range(len(rows)), [f"{row['kind']} ({row['mistakes']})" for row in rows])
    ax.set(xlabel="what became of it, hard level", xlim=(0, 1), ylim=(len(rows) - 0.4, -0.6))
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(axis="y", visible=False)
    handles = [
        Patch(facecolor=shade, label=name) for shade, name in zip(shades, _FATES.values(), strict=True)
    ]
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.35, -0.2), ncols=2, frameon=False, fontsize=7,
        handlelength=1.2, columnspacing=0.8, labelspacing=0.2,
    )  # fmt: skip


def _planted(
    ax: Axes,
    effects: pd.DataFrame,
    players: Sequence[str],
    hard: Mapping[str, int],
    looks: Mapping[str, Any],
    value: str,
) -> None:
    """Draw a value of the effects of planted acts over all kinds, with 95% intervals, at both levels of each player:
    filled at d = 1, hollow at the hard one."""
    rows = effects[effects.kind == "all"].set_index(["player", "d"])
    there = [player for player in players if player in rows.index.get_level_values(0)]
    for row, player in enumerate(there):
        colour, marker = looks[player]
        for d, up in ((LOW, -0.17), (hard[player], 0.17)):
            if (player, d) not in rows.index or (d == LOW and up > 0):
                continue
            one = rows.loc[(player, d)]
            if one["mendable" if value == "mended" else "pairs"] < PAIRS:
                continue
            bars = [[one[value] - one[f"{value}_low"]], [one[f"{value}_high"] - one[value]]]
            ax.errorbar(
                [one[value]], [row + up], xerr=bars, fmt=marker, color=colour, markersize=4, linewidth=1.1,
                markerfacecolor=colour if up < 0 else "white",
            )  # fmt: skip
    if value == "effect":
        ax.axvline(0, color=".3", linewidth=0.8)
    ax.set_yticks(range(len(there)), there)
    ax.set(ylim=(len(there) - 0.4, -0.6))
    ax.set_xlabel(
        "planted mistakes\nthat are mended" if value == "mended" else "success less\nthe untouched twin's"
    )
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    ax.grid(axis="y", visible=False)


@laid_out
def traces(shown: Sequence[Mapping[str, Any]], width: float = PAGE_WIDTH) -> Figure:
    """Draw episodes of experiments/cascade/traces.py as text, beside each other, or as wide as a column below each
    other: each turn's words and calls, what the customer said, and the mistakes, by kind and number of times."""
    page = width > COLUMN_WIDTH
    wide = (width / len(shown) if page else width) - 0.2
    told = [list(_told(one, int(wide * CHARACTERS))) for one in shown]
    lines = [len(one) for one in told]
    high = 0.25 + LINE * (max(lines) if page else sum(lines) + 1)
    with paper_style():
        figure = plt.figure(figsize=(width, high))
        for number, one in enumerate(told):
            x = 0.1 + number * width / len(shown) if page else 0.1
            y = high - 0.2 - (0 if page else LINE * (sum(lines[:number]) + number))
            for line, (text, style) in enumerate(one):
                at = (x / width, (y - LINE * line) / high)
                figure.text(*at, text, fontsize=7, family="monospace", va="center", **_STYLES[style])
    plt.close(figure)
    return figure


LINE, CHARACTERS = 0.118, 16.4
"""Height of a line of traces in inches, and its characters an inch."""
MOST = 4
"""Lines of what is said in a turn that are shown."""
_STYLES: dict[str, dict[str, Any]] = {
    "head": {"fontweight": "bold", "color": ".1"},
    "agent": {"color": sns.color_palette("colorblind")[0]},
    "customer": {"color": ".25"},
    "mistake": {"fontweight": "bold", "color": sns.color_palette("colorblind")[3]},
}


def _told(trace: Mapping[str, Any], wide: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of an episode with their styles."""
    end = "correct" if trace["correct"] else f"not correct, end: {trace['end']}"
    yield f"{trace['env']}, d = {trace['d']}: {end}", "head"
    yield from _wrapped(trace["opening"], "customer: ", wide, "customer")
    for number, turn in enumerate(trace["turns"], 1):
        yield "", "head"
        asked = [one["arguments"]["question"] for one in turn["calls"] if one["name"] == "ask_user"]
        said = " / ".join(part.strip() for part in (*turn["said"].split("\n"), *asked) if part.strip())
        if said:
            yield from _wrapped(said, f"{number} agent: ", wide, "agent")
        calls = Counter(one["name"] for one in turn["calls"] if one["name"] != "ask_user")
        if calls:
            listed = ", ".join(_times(name, count) for name, count in calls.items())
            yield from _wrapped(listed, "  calls: " if said else f"{number} calls: ", wide, "agent")
        answers = [result["customer"] for result in turn["results"] if "customer" in result]
        for words in (*answers, *turn["customer"]):
            yield from _wrapped(words, "  customer: ", wide, "customer")
        kinds = Counter(_mistake(one) for one in turn["mistakes"])
        for kind, count in kinds.items():
            yield from _wrapped(_times(kind, count), "  ! ", wide, "mistake")


def _mistake(one: Mapping[str, Any]) -> str:
    more = ", ".join(word for word in (one["cause"], one["fate"].replace("passed", "")) if word)
    return f"{one['kind']} ({more})" if more else str(one["kind"])


def _times(name: str, count: int) -> str:
    return f"{count} x {name}" if count > 1 else name


def _wrapped(text: str, before: str, wide: int, style: str) -> Iterator[tuple[str, str]]:
    """Break a text into lines of at most `wide` characters, at most `MOST` of them."""
    for line in textwrap.wrap(
        text, wide, initial_indent=before, subsequent_indent="    ", max_lines=MOST, placeholder=" ..."
    ):
        yield line, style
