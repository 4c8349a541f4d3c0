"""The figures of error cascades: where players go wrong, what follows, and whether they recover; and episodes with
their labels."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from ecomlab.analysis.cascades import LOW, ORDER, OTHER, PAIRS
from ecomlab.analysis.plots import COLUMN_WIDTH, PAGE_WIDTH, laid_out, lettered, look, places_of
from ecomlab.evaluation.mistakes import WORLD

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
    palette = sns.color_palette("colorblind", 10)
    schedules = [name for name in players if name not in _OTHERS]
    found = {name: (palette[i], marker) for name, (i, marker) in _OTHERS.items() if name in players}
    return {**found, **look(pd.DataFrame({"schedule": schedules}))}


def in_order(players: Sequence[str]) -> list[str]:
    """Sort players: those that no schedule trained first, then the schedules in the order of every figure."""
    schedules = list(look(pd.DataFrame({"schedule": [name for name in players if name not in ORDER]})))
    return [name for name in (*ORDER, *schedules) if name in players]


@laid_out
def error_cascade(
    played: pd.DataFrame, effects: pd.DataFrame, gained: pd.DataFrame, width: float = PAGE_WIDTH
) -> Figure:
    """Draw where players go wrong at d = 1, and beside it at their hard level (`cascades.hard_levels`).

    First mistakes by kind; the share of episodes without a mistake over turns; kinds that follow each other; fates of
    mistakes in the world; and for each kind of planted mistake the share that the player mends and the success that it
    loses, with what training adds to either. Players that play alike are drawn once. Raises ValueError for effects in
    several environments, and TableError where a player lacks d = 1.
    """
    cascades.check_low(played)
    if len(envs := sorted(set(effects.env))) > 1:
        raise ValueError(
            f"the effects are of {', '.join(envs)}; choose one: effects[effects.env == '{envs[0]}']"
        )
    played, page = cascades.distinct(played), width > COLUMN_WIDTH
    players = in_order(list(played.player.unique()))
    levels, looks = cascades.hard_levels(played), looks_of(players)
    hard = {player: levels[player] for player in players}
    sides = [cascades.at_levels(played, some) for some in (dict.fromkeys(players, LOW), hard)]
    kinds = cascades.kinds_of(pd.concat(sides))
    heights = PAGE_HEIGHTS if page else COLUMN_HEIGHTS
    close = ConstrainedLayoutEngine(h_pad=0.02, w_pad=0.03, hspace=0.01, wspace=0.02)
    figure = plt.figure(figsize=(width, sum(heights)), layout=close)
    legend, *rows = places_of(figure.add_gridspec(len(heights), 1, height_ratios=heights))
    blocks = [one for row in rows for one in (places_of(row.subgridspec(1, 2)) if page else [row])]
    panels = [
        _first(figure, blocks[0], sides, kinds),
        _survival(figure, blocks[1], sides, looks),
        _follows(figure, blocks[2], sides, [kind for kind in kinds if kind != OTHER]),
        _fates(figure, blocks[3], sides),
        _planted(figure, blocks[4], effects, gained, hard, looks, "mended"),
        _planted(figure, blocks[5], effects, gained, hard, looks, "effect"),
    ]
    lettered(panels)
    handles = [
        Line2D([], [], color=looks[n][0], marker=looks[n][1], markersize=3.5, label=n) for n in players
    ]
    _legend(figure.add_subplot(legend), handles, len(players) if page else 3, "center")
    return figure


PAGE_HEIGHTS = (0.25, 2.0, 1.9, 2.2)
COLUMN_HEIGHTS = (0.35, 1.6, 1.2, 1.4, 1.4, 1.6, 1.75)
"""Of the figure's legend and of each row of panels, in inches."""


Side = Literal["center", "center right"]


def _legend(ax: Axes, handles: Sequence[Any], columns: int, loc: Side = "center right") -> None:
    """Draw a legend in a place of its own: below panels to the right, so that it may begin under their labels."""
    ax.axis("off")
    ax.legend(
        handles=handles, loc=loc, ncols=columns, frameon=False, fontsize=7,
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
    shades, hatches = sns.color_palette("colorblind", 10), ("", "", "", "", "////", "....", "xxxx", "")
    looks = {kind: {"facecolor": shades[i], "hatch": hatches[i]} for i, kind in enumerate(kinds)}
    for ax, side in zip((left, right), sides, strict=True):
        players = side.groupby("player", sort=False)
        for row, (_, mine) in enumerate(players):
            _bar(ax, row, cascades.first_mistakes(mine, kinds), looks)
        _shares(ax, list(players.groups))
    for row, d in enumerate(sides[1].groupby("player", sort=False).d.first()):
        right.text(1.04, row, f"{d}", fontsize=7, va="center", ha="left")
    right.text(1.04, -1, "d", fontsize=7, va="center", ha="left", style="italic")
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


def _follows(figure: Figure, place: SubplotSpec, sides: Sequence[pd.DataFrame], kinds: Sequence[str]) -> Axes:
    """Draw which kind of new mistake follows which in the next turn, beyond what independent turns would give. Columns
    have the numbers of the rows."""
    left, right, _ = _beside(figure, place)
    found = [cascades.follows(side, kinds) for side in sides]
    most = max(abs(surplus).max(initial=1.0) for surplus in found)
    for ax, surplus in zip((left, right), found, strict=True):
        if kinds:
            ax.imshow(surplus, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
        for row, values in enumerate(surplus):
            for column, value in enumerate(values):
                colour = "white" if abs(value) > 0.6 * most else ".15"
                text = f"{round(value):d}"  # never "-0"
                ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
        numbers = range(len(kinds))
        ax.set_xticks(numbers, [f"{n + 1}" for n in numbers])
        ax.set_yticks(numbers, [f"{kind} {n + 1}" for n, kind in enumerate(kinds)])
        ax.tick_params(length=2, pad=2)
        ax.grid(visible=False)
    _under(left, right, "mistake in the next turn")
    left.set_ylabel("in a turn")
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
            ax.text(1.04, place_, f"{count}", fontsize=7, va="center", ha="left")
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
def traces(shown: Sequence[Mapping[str, Any]], width: float = PAGE_WIDTH) -> Figure:
    """Draw episodes of experiments/cascade/traces.py as text, beside each other, or as wide as a column below each
    other: each turn's words and calls, what the customer said, and the mistakes, by kind and number of times."""
    page = width > COLUMN_WIDTH
    wide = (width / len(shown) if page else width) - 0.2
    told = [list(_told(one, int(wide * CHARACTERS))) for one in shown]
    lines = [len(one) for one in told]
    high = 0.25 + LINE * (max(lines) if page else sum(lines) + 1)
    figure = plt.figure(figsize=(width, high))
    for number, one in enumerate(told):
        x = 0.1 + number * width / len(shown) if page else 0.1
        y = high - 0.2 - (0 if page else LINE * (sum(lines[:number]) + number))
        for line, (text, style) in enumerate(one):
            at = (x / width, (y - LINE * line) / high)
            figure.text(*at, text, fontsize=7, family="monospace", va="center", **_STYLES[style])
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
