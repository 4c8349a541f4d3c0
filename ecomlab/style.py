"""The look of figures as one value: font, sizes, widths, and the colours of arms. Every plot respects it.

from ecomlab import style
style.use("neurips")                          # a preset, a TOML file of `Style`'s fields, or a Style
plots.difficulty_growth(train, evaluation)    # as wide as a page of it; width="column" or inches
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like, to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase, SubplotSpec
from matplotlib.ticker import FixedLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation
from pydantic import BeforeValidator, Field, PositiveFloat, field_validator

from ecomlab.seeding import digest
from ecomlab.settings import ConfigError, Settings, load_toml
from ecomlab.suggest import unknown

P = ParamSpec("P")
Width = float | Literal["page", "column"]
"""Inches, or one of a style's two widths."""
Look = tuple[tuple[float, float, float], str]
"""Colour and marker of an arm."""
MARKERS = "osDv^PXp*h"
NARROW = 4.0
"""Width in inches below which figures take their layout for a column."""
BASE = 8.0
"""Text size in points for which the heights of figures are made."""
ARMS = {
    "static-low": 0, "static-high": 1, "adaptive": 2, "static-0-3": 3, "C1": 3, "prefix": 4, "C8": 4, "C2": 5,
    "static-0-6": 5, "C4": 6, "static-4-6": 6, "one-step": 8, "single steps": 8, "adaptive-narrow": 9,
}  # fmt: skip
"""Places in the palette of known arms; the others' follow from their names."""


class Style(Settings):
    """The look of figures."""

    font: Annotated[
        tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else tuple(given))
    ] = ("DejaVu Sans",)
    """Font family, or several by preference."""
    size: Annotated[float, Field(ge=8, le=40)] = BASE
    """Points of text; ticks and notes have a point less."""
    page: PositiveFloat = 6.9
    """Inches of a figure over all columns."""
    column: PositiveFloat = 3.3
    """Inches of a figure in a column."""
    palette: str = "colorblind"
    """A palette of seaborn."""
    arms: Mapping[str, str] = Field(default_factory=dict)
    """Colours by arm, which override the palette."""

    @field_validator("font")
    @classmethod
    def _installed(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        there = set(font_manager.get_font_names())
        if not there & set(names):
            raise ValueError(f"no such font here: {', '.join(names)}; add one that is, such as 'DejaVu Sans'")
        return tuple(name for name in names if name in there)

    @field_validator("palette")
    @classmethod
    def _known(cls, name: str) -> str:
        sns.color_palette(name)
        return name

    @field_validator("arms")
    @classmethod
    def _colours(cls, arms: Mapping[str, str]) -> Mapping[str, str]:
        if wrong := [f"{name} = {colour!r}" for name, colour in arms.items() if not is_color_like(colour)]:
            raise ValueError(
                f"not a colour: {', '.join(wrong)}; write '#cc3311' or a name that matplotlib knows"
            )
        return arms

    def inches(self, width: Width) -> float:
        found = {"page": self.page, "column": self.column}.get(str(width), width)
        if isinstance(found, str):
            raise ValueError(f"{unknown('width', found, ['page', 'column'])}, or inches")
        return float(found)

    def colour(self, place: int) -> tuple[float, float, float]:
        """Return a colour of the palette."""
        palette = sns.color_palette(self.palette, 10)
        return to_rgb(palette[place % len(palette)])

    def look(self, arm: str) -> Look:
        """Return the colour and marker of an arm, which follow from its name alone: in every figure it has the same."""
        place = ARMS.get(arm)
        if place is None:
            number = int(digest(["arm", arm])[:8], 16)
            place = (3, 4, 5, 9)[number % 4]  # neither those of the ablation nor pale ones
            marker = MARKERS[number // 4 % len(MARKERS)]
        else:
            marker = MARKERS[place]
        return (to_rgb(self.arms[arm]) if arm in self.arms else self.colour(place)), marker


_TIMES = ("STIXGeneral",)  # Times' look, which comes with matplotlib: the same bytes on every machine
PRESETS = {
    "screen": Style(),
    "neurips": Style(font=_TIMES, page=5.5, column=5.5),
    "iclr": Style(font=_TIMES, page=5.5, column=5.5),
    "icml": Style(font=_TIMES, page=6.75, column=3.25),
    "acl": Style(font=_TIMES, page=6.3, column=3.03),
    "slides": Style(size=16, page=12.0, column=6.0),
}
"""Styles by venue; widths are those of the venues' text blocks and columns."""
_now = PRESETS["screen"]


def style_of(given: "str | Path | Mapping[str, Any] | Style") -> Style:
    """Return a preset by name, a style from a TOML file of its fields (`preset = "icml"` begins with another), from a
    mapping, or itself. A relative file may lie in the working directory or above it. Raises ConfigError."""
    if isinstance(given, Style):
        return given
    if isinstance(given, Mapping):
        fields = dict(given)
        return style_of(fields.pop("preset", "screen")).replace(**fields)
    name = str(given or "screen")
    if name.casefold() in PRESETS:
        return PRESETS[name.casefold()]
    if not name.endswith(".toml"):
        raise ConfigError(f"{unknown('style', name, PRESETS)}, or a TOML file")
    try:
        return style_of(load_toml(file_of(name)))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def file_of(name: str) -> Path:
    """Find a style's file in the working directory or above it, because a notebook runs in a folder of its own."""
    places = (folder / name for folder in (Path.cwd(), *Path.cwd().parents))
    return next((place for place in places if place.is_file()), Path(name))


def use(given: "str | Path | Mapping[str, Any] | Style" = "screen") -> Style:
    """Draw all further figures of this process in a style, and embed TrueType fonts in PDFs, as venues ask for."""
    global _now
    _now = style_of(given)
    plt.rcParams["pdf.fonttype"] = 42
    return _now


@contextmanager
def using(given: "str | Path | Mapping[str, Any] | Style") -> Iterator[Style]:
    """Draw in a style within the context."""
    global _now
    before = _now
    try:
        yield use(given)
    finally:
        _now = before


def current() -> Style:
    """Return the style in which figures are drawn."""
    return _now


def small() -> float:
    """Return the size of ticks and notes, in points."""
    return _now.size - 1


def room(width: Width) -> float:
    """Return a width in inches of text of `BASE` points."""
    return _now.inches(width) * BASE / _now.size


def is_page(width: Width) -> bool:
    """Tell whether a figure of this width takes the layout of a page, not that of a column."""
    return room(width) > NARROW


def canvas(width: Width, page: float, column: float | None = None, **more: Any) -> tuple[Figure, bool]:
    """Make a figure, and tell whether it takes the layout of a page. `page` and `column` are the heights of the two
    layouts in inches, at a text of `BASE` points; `more` is matplotlib's, by default a constrained layout."""
    wide = is_page(width)
    height = (page if wide or column is None else column) * _now.size / BASE
    return plt.figure(figsize=(_now.inches(width), height), **{"layout": "constrained", **more}), wide


@contextmanager
def applied() -> Iterator[None]:
    """Set matplotlib to the current style: thin grid, and twice the usual dots an inch, so that a figure of a page's
    width fills a notebook's window."""
    size, fonts = _now.size, list(_now.font)
    text: dict[Any, Any] = dict.fromkeys(
        ("font.size", "axes.labelsize", "axes.titlesize", "legend.fontsize", "figure.labelsize"), size
    )
    text |= dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), size - 1)
    text |= {"font.family": fonts, "figure.dpi": 144, "axes.linewidth": 0.6, "grid.linewidth": 0.4}
    if fonts != ["DejaVu Sans"]:
        text["mathtext.fontset"] = "stix"
    # The backend is loaded before: a notebook's sets parameters then, which this context would take back at its end, so
    # that no figure of the user's own would be shown.
    plt.draw_if_interactive()
    with sns.axes_style("ticks", {"axes.grid": True, "grid.color": ".9"}), plt.rc_context(text):
        yield


def laid_out(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the current style, without upper and right spines, and fix the layout to a ten-thousandth of the size.

    Otherwise the solver would run again at each drawing, with slightly different results: a figure that a notebook has
    shown would be saved with other bytes than one that it has not. The results also differ in their last bit between
    processes.
    """

    @wraps(draw)
    def drawn(*args: P.args, **more: P.kwargs) -> Figure:
        with applied():
            figure = draw(*args, **more)
            sns.despine(figure)
            _mark_breaks(figure)
        plt.close(figure)  # the notebook's last expression shows it, once
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for ax in figure.axes:
            ax.set_position(np.round(ax.get_position(original=True).bounds, 4))
            ax.set_in_layout(True)  # else what it holds would not count as part of the figure
        return figure

    return drawn


def _mark_breaks(figure: Figure) -> None:
    """Break each axis of shares that does not begin at 0: two strokes across it, before its first tick."""
    cut = [
        (ax, axis, axis.get_view_interval())
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        if isinstance(axis.get_major_formatter(), PercentFormatter) and axis.get_view_interval()[0] > 0
    ]
    if cut:
        figure.draw_without_rendering()  # the number of ticks depends on the sizes of panels
    for ax, axis, (low, high) in cut:
        axis.set_major_locator(
            FixedLocator([tick for tick in axis.get_majorticklocs() if low <= tick <= high])
        )
        upright = axis is ax.yaxis
        (ax.set_ylim if upright else ax.set_xlim)(low - 0.1 * (high - low), high)
        stroke = [(-1, -0.5), (1, 0.5)] if upright else [(-0.5, -1), (0.5, 1)]
        for inches in (4 / 72, 7 / 72):
            x, y = (0, inches) if upright else (inches, 0)
            ax.plot(
                0, 0, marker=stroke, transform=ax.transAxes + ScaledTranslation(x, y, figure.dpi_scale_trans),
                color=".15", markersize=6, markeredgewidth=0.7, clip_on=False,
            )  # fmt: skip


def places_of(grid: GridSpecBase) -> list[SubplotSpec]:
    """List the places of a grid, row by row."""
    return [grid[number] for number in range(grid.nrows * grid.ncols)]


def panels_of(figure: Figure, shape: tuple[int, int], **more: Any) -> list[Axes]:
    """Add a grid of panels of this many rows and columns; list them row by row."""
    return [figure.add_subplot(place) for place in places_of(figure.add_gridspec(*shape, **more))]


def lettered(panels: Sequence[Axes]) -> None:
    """Put the letters a, b, c above the panels."""
    for ax, letter in zip(panels, "abcdefgh", strict=False):
        ax.set_title(letter, loc="left", fontweight="bold")


def in_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows 0, 1, ... of a panel, from above, and leave only upright lines of its grid."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)


def dots(
    ax: Axes, places: Any, bounded: Any, look: Look, *, upright: bool = False, full: bool = True, **more: Any
) -> None:
    """Draw marks, filled or hollow, with intervals, in rows at `places`, or upright in columns. `bounded` holds values,
    lower and upper bounds; no interval is drawn where these are NaN."""
    value, low, high = (np.atleast_1d(np.asarray(one, dtype=float)) for one in bounded)
    reach = np.nan_to_num([value - low, high - value])
    x, y, bars = (places, value, {"yerr": reach}) if upright else (value, places, {"xerr": reach})
    colour, marker = look
    ax.errorbar(
        x, y, **bars, color=colour, fmt=marker, markersize=3.5, linewidth=1.0, markeredgewidth=0.7,
        markerfacecolor=colour if full else "white", **more,
    )  # fmt: skip
