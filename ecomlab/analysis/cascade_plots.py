"""The figures of error cascades: where players go wrong, what follows, and whether they recover; and episodes with
their labels."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ecomlab.analysis import cascades
from ecomlab.analysis.cascades import LOW, ORDER, PAIRS
from ecomlab.analysis.plots import lettered, look, places_of
from ecomlab.evaluation.mistakes import WORLD
from ecomlab.style import BASE, Width, canvas, current, is_page, laid_out, small

_OTHERS: dict[str, tuple[int, str]] = {"perturbed": (7, "X"), "base": (9, "p"), "novice": (5, "P")}
_FATES: dict[str, str] = {
    "mended alone": "mended alone",
    "mended after a correction": "after a correction",
    "overtaken": "overtaken",
    "given up": "given up",
    "persisted": "persisted",
}


def looks_of(players: Sequence[str]) -> dict[str, Any]:
    """Choose colour and marker of each player; schedules look as in every figure."""
    schedules = [name for name in players if name not in _OTHERS]
    found = {name: (current().colour(i), marker) for name, (i, marker) in _OTHERS.items() if name in players}
    return {**found, **look(pd.DataFrame({"schedule": schedules}))}


def in_order(players: Sequence[str]) -> list[str]:
    """Sort players: those that no schedule trained first, then the schedules in the order of every figure."""
    schedules = list(look(pd.DataFrame({"schedule": [name for name in players if name not in ORDER]})))
    return [name for name in (*ORDER, *schedules) if name in players]


@laid_out
def error_cascade(played: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw where players go wrong at d = 1, and beside it at their hard level (`cascades.hard_levels`): first mistakes
    by kind, the share of episodes without a mistake over turns, and fates of mistakes in the world.

    Players that play alike are drawn once. Raises TableError where a player lacks d = 1.
    """
    cascades.check_low(played)
    played = cascades.distinct(played)
    players = in_order(list(played.player.unique()))
    looks = looks_of(players)
    sides = [
        cascades.at_levels(played, some) for some in (dict.fromkeys(players, LOW), _hard(played, players))
    ]
    heights = (0.25, 2.1, 2.0) if is_page(width) else (0.35, 2.1, 1.4, 1.8)
    figure, page = canvas(width, sum(heights), layout=_close())
    legend, *rows = places_of(figure.add_gridspec(len(heights), 1, height_ratios=heights))
    below = places_of(rows[1].subgridspec(1, 2)) if page else rows[1:]
    panels = [
        _first(figure, rows[0], sides, cascades.kinds_of(pd.concat(sides))),
        _survival(figure, below[0], sides, looks),
        _fates(figure, below[1], sides),
    ]
    lettered(panels)
    _legend(figure.add_subplot(legend), _handles(players), len(players) if page else 3, "center")
    return figure


@laid_out
def error_mending(
    played: pd.DataFrame, effects: pd.DataFrame, gained: pd.DataFrame, width: Width = "page"
) -> Figure:
    """Draw for each kind of planted mistake the share that players mend and the success that they lose, at d = 1 and at
    their hard level, with what training adds to either.

    Raises ValueError for effects in several environments, and TableError where a player lacks d = 1.
    """
    cascades.check_low(played)
    if len(envs := sorted(set(effects.env))) > 1:
        raise ValueError(
            f"the effects are of {', '.join(envs)}; choose one: effects[effects.env == '{envs[0]}']"
        )
    played = cascades.distinct(played)
    players = in_order(list(played.player.unique()))
    looks, hard = looks_of(players), _hard(played, players)
    heights = (0.3, 2.2) if is_page(width) else (0.5, 1.75, 1.75)
    figure, page = canvas(width, sum(heights), layout=_close())
    legend, *rows = places_of(figure.add_gridspec(len(heights), 1, height_ratios=heights))
    blocks = places_of(rows[0].subgridspec(1, 2)) if page else rows
    lettered(
        [
            _planted(figure, place, effects, gained, hard, looks, value)
            for place, value in zip(blocks, ("mended", "effect"), strict=True)
        ]
    )
    levels = [
        Line2D(
            [], [], color=".3", marker="o", linestyle="", markersize=3.5, markerfacecolor=fill, label=label
        )
        for label, fill in ((f"d = {LOW}", ".3"), ("hard level", "white"))
    ]
    handles = [*_handles(players), *levels]
    _legend(figure.add_subplot(legend), handles, len(handles) if page else 3, "center")
    return figure


def _hard(played: pd.DataFrame, players: Sequence[str]) -> dict[str, int]:
    levels = cascades.hard_levels(played)
    return {player: levels[player] for player in players}


def _close() -> ConstrainedLayoutEngine:
    return ConstrainedLayoutEngine(h_pad=0.02, w_pad=0.03, hspace=0.01, wspace=0.02)


def _handles(players: Sequence[str]) -> list[Line2D]:
    looks = looks_of(players)
    return [Line2D([], [], color=looks[n][0], marker=looks[n][1], markersize=3.5, label=n) for n in players]


Side = Literal["center", "center right"]


def _legend(ax: Axes, handles: Sequence[Any], columns: int, loc: Side = "center right") -> None:
    """Draw a legend in a place of its own: below panels to the right, so that it may begin under their labels."""
    ax.axis("off")
    ax.legend(
        handles=handles, loc=loc, ncols=columns, frameon=False, fontsize=small(),
        handlelength=1.2, columnspacing=0.9, labelspacing=0.2, borderpad=0, borderaxespad=0,
    )  # fmt: skip


def _beside(figure: Figure, place: SubplotSpec, legend: float = 0) -> tuple[Axes, Axes, Axes | None]:
    """Add a panel for each level, and below both a place for a legend, of this share of their height."""
    grid = place.subgridspec(2, 2, height_ratios=(1, legend)) if legend else place.subgridspec(1, 2)
    left, right = (figure.add_subplot(grid[0, column]) for column in (0, 1))
    left.set_title(f"d = {LOW}")
    right.set_title("hard level")
    right.tick_params(labelleft=False)
    return left, right, figure.add_subplot(grid[1, :]) if legend else None


def _under(left: Axes, right: Axes, label: str) -> None:
    """Name the x axis that two panels have alike, once, between them."""
    left.set_xlabel(label, x=1.05)
    right.set_xlabel(" ")


def _shares(ax: Axes, names: Sequence[str]) -> None:
    """Make the axes of horizontal bars of shares, one for each name."""
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6), xticks=(0, 0.5, 1))
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(axis="y", visible=False)


def _bar(ax: Axes, row: int, shares: Mapping[str, float], looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw shares beside each other as one bar."""
    begin = 0.0
    for name, share in shares.items():
        ax.barh(row, share, left=begin, edgecolor="white", linewidth=0.4, **looks[name])
        begin += share


def _first(figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame], kinds: Sequence[str]) -> Axes:
    """Draw a bar per player and level: the shares of first mistakes by kind."""
    left, right, below = _beside(figure, place, 0.5)
    hatches = ("", "", "", "", "////", "....", "xxxx", "")
    looks: dict[str, dict[str, Any]] = {
        kind: {"facecolor": current().colour(i), "hatch": hatches[i]} for i, kind in enumerate(kinds)
    }
    for ax, side in zip((left, right), sides, strict=True):
        players = side.groupby("player", sort=False)
        for row, (_, mine) in enumerate(players):
            _bar(ax, row, cascades.first_mistakes(mine, kinds), looks)
        _shares(ax, list(players.groups))
    for row, d in enumerate(sides[1].groupby("player", sort=False).d.first()):
        right.text(1.04, row, f"{d}", fontsize=small(), va="center", ha="left")
    right.text(1.04, -1, "d", fontsize=small(), va="center", ha="left", style="italic")
    _under(left, right, "episodes, by first mistake")
    if below:
        _legend(below, [Patch(**look, edgecolor="white", label=kind) for kind, look in looks.items()], 3)
    return left


def _survival(
    figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame], looks: Mapping[str, Any]
) -> Axes:
    """Draw the share of episodes in which no mistake was made yet, over turns as shares of those needed."""
    left, right, _ = _beside(figure, place)
    for ax, side in zip((left, right), sides, strict=True):
        for player, mine in side.groupby("player", sort=False):
            rows = cascades.survival(mine)
            rows = rows[rows.at_risk > 0]
            ax.plot(
                rows.share, rows.surviving, color=looks[player][0], marker=looks[player][1], markersize=3,
                linewidth=1.1, markevery=2, markeredgewidth=0,
            )  # fmt: skip
        ax.set(ylim=(-0.02, 1.02), xlim=(0, 2))
        ax.yaxis.set_major_formatter(PercentFormatter(1))
        ax.xaxis.set_major_locator(MaxNLocator(2))
    left.set_ylabel("no mistake yet")
    _under(left, right, "turns, as shares of those needed")
    return left


def _fates(figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame]) -> Axes:
    """Draw the fates of mistakes in the world, a bar per kind, over all players, and how many there were."""
    left, right, below = _beside(figure, place, 0.35)
    found = [cascades.fates(side) for side in sides]
    at_work = [kind for kind in WORLD if kind != "missed item"]  # that one is made at the end
    often = Counter(
        {kind: sum(table.loc[kind].sum() for table in found if kind in table.index) for kind in at_work}
    )
    kinds = [kind for kind, count in often.most_common(7) if count]
    looks = dict(
        zip(_FATES, ({"facecolor": one} for one in sns.color_palette("viridis", len(_FATES))), strict=True)
    )
    for ax, table in zip((left, right), found, strict=True):
        _shares(ax, kinds)
        for place_, kind in enumerate(kinds):
            row = table.loc[kind] if kind in table.index else pd.Series(dtype=int)
            if count := int(row.sum()):
                _bar(ax, place_, {fate: row.get(fate, 0) / count for fate in _FATES}, looks)
            ax.text(1.04, place_, f"{count}", fontsize=small(), va="center", ha="left")
    _under(left, right, "what became of it, and how many")
    if below:
        handles = [Patch(**look, edgecolor="white", label=_FATES[fate]) for fate, look in looks.items()]
        _legend(below, handles, 3)
    return left


def _planted(
    figure: Figure,
    place: SubplotSpec,
    effects: pd.DataFrame,
    gained: pd.DataFrame,
    hard: Mapping[str, int],
    looks: Mapping[str, Any],
    value: str,
) -> Axes:
    """Draw a value of the effects of planted acts by kind, with 95% intervals: at d = 1, at each player's hard level,
    and what each schedule has more than the novice, at d = 1 filled and at the novice's hard level hollow."""
    players = in_order(list(hard))
    trained = [player for player in players if player not in ORDER]
    low = [(player, LOW, True) for player in players]
    high = [(player, hard[player], False) for player in players]
    more = [
        (player, d, d == LOW) for player in trained for d in dict.fromkeys((LOW, hard.get("novice", LOW)))
    ]
    panels = [("d = 1", effects, low), ("hard level", effects, high), ("minus novice", gained, more)]
    kinds = ["all", *cascades.kinds_planted(effects)]
    axes = [figure.add_subplot(one) for one in places_of(place.subgridspec(1, len(panels)))]
    for ax, (title, table, marks) in zip(axes, panels, strict=True):
        rows = table.set_index(["player", "d", "kind"])
        count = "mendable" if value == "mended" else "pairs" if table is effects else "tasks"
        for row, kind in enumerate(kinds):
            for place_, (player, d, full) in enumerate(marks):
                if (player, d, kind) in rows.index and rows.loc[(player, d, kind)][count] >= PAIRS:
                    up = 0.8 * ((place_ + 0.5) / len(marks) - 0.5)
                    _interval(ax, row + up, rows.loc[(player, d, kind)], value, looks[player], full)
        ax.axhline(0.5, color=".6", linewidth=0.6)
        if table is gained or value == "effect":
            ax.axvline(0, color=".3", linewidth=0.6)
        ax.set_title(title)
        ax.set_yticks(range(len(kinds)), ["all kinds", *kinds[1:]])
        ax.set(ylim=(len(kinds) - 0.5, -0.5))
        ax.tick_params(labelleft=ax is axes[0])
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=""))
        if table is gained:
            ax.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 5, 10]))
        else:
            ax.set(xlim=(-0.05, 1.05) if value == "mended" else (-1.05, 0.3))
            ax.set_xticks((0, 0.5, 1) if value == "mended" else (-1, -0.5, 0))
        ax.grid(axis="y", visible=False)
    told = {
        "mended": "planted mistakes that are mended, %",
        "effect": "success minus the untouched twin's, %",
    }
    axes[1].set_xlabel(told[value])
    return axes[0]


def _interval(ax: Axes, y: float, row: Any, value: str, look: Any, full: bool) -> None:
    """Draw a value of a row with its interval, the mark filled or hollow."""
    bars = [[row[value] - row[f"{value}_low"]], [row[f"{value}_high"] - row[value]]]
    ax.errorbar(
        [row[value]], [y], xerr=bars, fmt=look[1], color=look[0], markersize=3, linewidth=0.8, markeredgewidth=0.7,
        markerfacecolor=look[0] if full else "white",
    )  # fmt: skip


@laid_out
def traces(shown: Sequence[Mapping[str, Any]], width: Width = "page") -> Figure:
    """Draw episodes of experiments/cascade/traces.py as text, beside each other, or as wide as a column below each
    other: each turn's words and calls, what the customer said, and the mistakes, by kind and number of times."""
    page, inches, line = is_page(width), current().inches(width), LINE * current().size / BASE
    wide = (inches / len(shown) if page else inches) - 0.2
    told = [_cut(_told(one, int(wide * CHARACTERS * BASE / current().size))) for one in shown]
    lines = [len(one) for one in told]
    high = 0.25 + line * (max(lines) if page else sum(lines) + 1)
    figure = plt.figure(figsize=(inches, high))
    for number, one in enumerate(told):
        x = 0.1 + number * inches / len(shown) if page else 0.1
        y = high - 0.2 - (0 if page else line * (sum(lines[:number]) + number))
        for place, (text, kind) in enumerate(one):
            at = (x / inches, (y - line * place) / high)
            figure.text(*at, text, fontsize=small(), family="monospace", va="center", **_STYLES[kind])
    return figure


LINE, CHARACTERS = 0.118, 16.4
"""Height of a line of traces in inches, and its characters an inch."""
MOST = 3
"""Lines of what is said in a turn that are shown."""
LINES = 34
"""Lines of an episode that are shown: two below each other fit a page."""
_STYLES: dict[str, dict[str, Any]] = {
    "head": {"fontweight": "bold", "color": ".1"},
    "agent": {"color": "#0173b2"},
    "customer": {"color": ".25"},
    "mistake": {"fontweight": "bold", "color": "#d55e00"},
}


def _cut(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Keep the beginning and the end of an episode, with the number of lines between them."""
    every = list(lines)
    if len(every) <= LINES:
        return every
    last = LINES // 3
    left_out = len(every) - LINES + 1
    return [*every[: LINES - last - 1], (f"... {left_out} lines ...", "customer"), *every[-last:]]


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
