"""The figure of a catalog of real products: rows, types, prices, and known properties."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from ecomlab.catalog.columns import ENOUGH, Catalog
from ecomlab.catalog.ingest import Report
from ecomlab.slots import NO_PRICE
from ecomlab.style import canvas, current, in_rows, laid_out, lettered, small

WORDS = {"feature": "short name", "text": "description", "days": "shipping days"}
"""Properties that have another name for readers."""
MOST = 14
"""Bars of a panel; the rarest are left out."""
KEPT, REPAIRED, ASIDE = ".6", 0, 3
"""Colours, as grey or by their place in the palette."""


@laid_out
def contents(report: Report, catalog: Catalog) -> Figure:
    """Draw what became of a source's rows, how many products of each type there are and are sold, their prices by
    department, and of how many each property is known."""
    figure, _ = canvas("page", 5.2, 5.2)
    halves: Any = figure.subfigures(2, 1)  # so that the long names of the upper half do not narrow the lower
    panels = [ax for half in halves for ax in half.subplots(1, 2)]
    _rows(panels[0], report)
    _types(panels[1], report, catalog)
    _prices(panels[2], catalog)
    _known(panels[3], report)
    lettered(panels)
    for ax in panels:
        ax.grid(axis="y", visible=False)
    return figure


def _rows(ax: Axes, report: Report) -> None:
    """Draw the numbers of rows by what became of them."""
    bars: list[tuple[str, int, Any]] = [("unchanged", report.kept, KEPT)]
    bars += [(name, count, current().colour(REPAIRED)) for name, count in _most(report.repairs)]
    bars += [(name, count, current().colour(ASIDE)) for name, count in _most(report.reasons)]
    names, counts, colours = zip(*bars, strict=True)
    drawn = ax.barh(range(len(names)), counts, color=colours)
    in_rows(ax, names)
    ax.set(xscale="symlog", xlabel="rows")
    ax.bar_label(drawn, [f"{count:,}" for count in counts], padding=2, fontsize=small())
    ax.margins(x=0.15)
    handles = [Patch(color=current().colour(REPAIRED), label="repaired")]
    _legend(ax, 2, handles=[*handles, Patch(color=current().colour(ASIDE), label="set aside")])


def _types(ax: Axes, report: Report, catalog: Catalog) -> None:
    """Draw the numbers of products by type, all of them behind those that are sold."""
    counts = _most(report.types)
    codes = catalog.type_codes
    sold = [len(catalog.type_rows(name)) if name in codes else 0 for name, _ in counts]
    names = [name for name, _ in counts]
    ax.barh(names, [count for _, count in counts], color=".85", label="products")
    ax.barh(names, sold, color=current().colour(REPAIRED), label="sold")
    ax.axvline(ENOUGH, color=".2", linestyle=":", linewidth=1, label=f"{ENOUGH}: enough")
    ax.invert_yaxis()
    ax.set_xlabel("products")
    _legend(ax, 3)


def _prices(ax: Axes, catalog: Catalog) -> None:
    """Draw the prices of a department's products as boxes; a sentence where there are none."""
    known = np.asarray(catalog.price_cents) != NO_PRICE
    if not known.any():
        ax.text(0.5, 0.5, "no product has a price", ha="center", va="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    names = np.array([kind.department for kind in catalog.types])[np.asarray(catalog.type_code)]
    frame = {"dollars": np.asarray(catalog.price_cents)[known] / 100, "department": names[known]}
    often = [name for name, _ in _most(dict(zip(*np.unique(names[known], return_counts=True), strict=True)))]
    sns.boxplot(
        frame, x="dollars", y="department", order=often, color=".85", fliersize=1.5, linewidth=0.7, ax=ax
    )
    ax.set(xscale="log", xlabel="price, dollars", ylabel="")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def _known(ax: Axes, report: Report) -> None:
    """Draw each property's share of products with a known value, and name the properties that were drawn."""
    counts = [(WORDS.get(name, name.replace("_", " ")), count) for name, count in _most(report.coverage)]
    shares = [count / max(1, report.products) for _, count in counts]
    ax.barh([name for name, _ in counts], shares, color=current().colour(REPAIRED), label="in the source")
    drawn = [WORDS.get(name, name) for name in report.drawn]
    ax.barh(drawn, [1.0] * len(drawn), color=current().colour(1), label="drawn from the id")
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share of products")
    _legend(ax, 2)


def _legend(ax: Axes, columns: int, **more: Any) -> None:
    """Put a panel's legend below it."""
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=columns, frameon=False, fontsize=small(),
        handlelength=1.2, columnspacing=0.8, borderpad=0, **more,
    )  # fmt: skip


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the largest counts first, names of equal ones in order."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(str(name), int(count)) for name, count in ordered[:MOST]]
