"""The figure of costs over catalog size: times of episodes, searches, opening and building, and memory."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ecomlab.style import MARKERS, Width, canvas, current, laid_out, lettered, panels_of, small

PANELS: Final[tuple[tuple[str, Mapping[str, str]], ...]] = (
    (
        "milliseconds",
        {
            "reset_ms_p95": "reset, p95",
            "verify_ms_p95": "verify, p95",
            "search_ms_p95": "search, p95",
            "embed_ms_p50": "embed a query, p50",
            "constraints_ms": "8 constraints",
        },
    ),
    ("seconds", {"open_s": "open", "open_cold_s": "open, cold", "build_cpu_s": "build, processor"}),
    (
        "megabytes",
        {"rss_mb": "resident", "private_mb": "private", "second_private_mb": "a second process's own"},
    ),
)
"""Unit of each panel, and names of the columns that it shows."""


@laid_out
def catalog_scale(table: pd.DataFrame, width: Width = "page") -> Figure:
    """Draw the table of `tables.load_catalog_scale` over the number of products: lexical search as lines, sentence
    models as hollow marks."""
    figure, page = canvas(width, 3.1, 8.0)
    panels = panels_of(figure, (1, 3) if page else (3, 1))
    for ax, (unit, columns) in zip(panels, PANELS, strict=True):
        _panel(ax, table, unit, columns, 1 if page else 2)
    lettered(panels)
    return figure


def _panel(ax: Axes, table: pd.DataFrame, unit: str, columns: Mapping[str, str], side_by_side: int) -> None:
    handles = []
    for number, (column, name) in enumerate(columns.items()):
        look: dict[str, Any] = {"color": current().colour(number), "marker": MARKERS[number], "markersize": 4}
        for embedder, rows in table.groupby("embedder"):
            lexical = embedder == "lexical"
            hollow: dict[str, Any] = {} if lexical else {"markerfacecolor": "none"}
            line = "-" if lexical else ""
            ax.plot(rows["products"], rows[column], linestyle=line, linewidth=1.2, **look, **hollow)
        handles.append(Line2D([], [], linewidth=1.2, label=name, **look))
    if (table.embedder != "lexical").any():
        ring: dict[str, Any] = {"color": ".3", "marker": "o", "markersize": 4, "markerfacecolor": "none"}
        handles.append(Line2D([], [], linestyle="", label="sentence model", **ring))
    ax.set(xscale="log", yscale="log", xlabel="products", ylabel=unit)
    ax.xaxis.set_major_locator(LogLocator(numticks=9))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    ax.yaxis.set_minor_locator(NullLocator())
    below: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22), "ncols": side_by_side}
    ax.legend(handles=handles, frameon=False, fontsize=small(), handlelength=1.6, columnspacing=0.8, **below)
