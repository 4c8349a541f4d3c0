"""Shopping lists: their parts, the products that fit each part, and the least that a list costs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick
from ecomlab.slots import DAYS, RATING, slot_type
from ecomlab.task import LOOK, Goal, GoalChange, Place, SellOut
from ecomlab.world.cart import constraints_of
from ecomlab.world.sell_outs import draw_sold, sell_out_of, sold_rows

Part = tuple[str, dict[str, Any]]
"""A product type that is needed, and the required values by slot name."""


def parts_of(wanted: Mapping[Place, Any]) -> list[Part]:
    """List the parts: those of the opening, those named later and the one added, without the one dropped."""
    parts: dict[str, dict[str, Any]] = {}
    for (item, name), kind in wanted.items():
        if name == "type":
            parts[kind] = {
                n: value for (i, n), value in wanted.items() if i == item and slot_type(n).of == "product"
            }
    later = [*wanted.get((0, "parts"), ()), *filter(None, [wanted.get((0, "added"))])]
    parts |= {kind: {} for kind in later if kind not in parts}
    return [(kind, slots) for kind, slots in parts.items() if kind != wanted.get((0, "dropped"))]


def rows_left(part: Part, catalog: Catalog, sold: SellOut | None = None) -> np.ndarray:
    """Find the rows that fit a part and are in stock, after the sell-out `sold` if given."""
    kind, slots = part
    rows = catalog.select(constraints_of(kind, slots))
    return rows[(catalog.stock[rows] > 0) & ~np.isin(rows, sold_rows(sold, catalog))]


def least_price(part: Part, catalog: Catalog, sold: SellOut | None = None) -> int | None:
    """Find the price of the cheapest of `rows_left`, in cents; None if there is none."""
    kind, slots = part
    if not slots:  # then as good as always one of the few cheapest is left, however many there are
        gone = sold_rows(sold, catalog)
        for row in catalog.cheapest_of(kind).tolist():
            if row not in gone:
                return catalog.price_cents.item(row)
    rows = rows_left(part, catalog, sold)
    return int(catalog.price_cents[rows].min()) if len(rows) else None


def draw_sell_out(
    named: Iterable[Part], usable: Iterable[str], share: float, catalog: Catalog, random: np.random.Generator
) -> SellOut:
    """Draw a sell-out among the cheapest products for what may be on a list: the parts that the opening has `named`,
    and the other `usable` types. A part of which only one product is left keeps it."""
    parts = {**{kind: {} for kind in usable}, **dict(named)}
    cheapest = []
    for kind, slots in parts.items():
        rows = rows_left((kind, slots), catalog) if slots else catalog.cheapest_of(kind)
        if len(rows) > 1:
            cheapest.append(rows[[catalog.price_cents[rows].argmin()]])
    return sell_out_of(draw_sold(cheapest, share, random), catalog, LOOK)


def least_total(parts: Iterable[Part], catalog: Catalog, sold: SellOut | None) -> int | None:
    """Add up the cheapest product left after `sold` for each part, in cents; None if a part is unavailable."""
    total = 0
    for part in parts:
        if (price := least_price(part, catalog, sold)) is None:
            return None
        total += price
    return total


def dearest_total(
    wanted: Mapping[Place, Any],
    later: int,
    usable: Mapping[str, int],
    catalog: Catalog,
    sold: SellOut | None,
) -> int:
    """Add up the cheapest products for the parts of the opening and for `later` others, in cents.

    Of the `usable` types, given with the price of the cheapest left of each, the dearest that the opening does not name
    are counted, whichever will be wanted: a budget made from this does not tell which.
    """
    said = {place: value for place, value in wanted.items() if place != (0, "parts")}
    named = parts_of(said)
    total = least_total(named, catalog, sold) or 0
    if not later:  # then no price of another type counts
        return total
    said_types = {kind for kind, _ in named}
    others = [price for kind, price in usable.items() if kind not in said_types]
    return total + sum(sorted(others, reverse=True)[:later])


def draw_types(catalog: Catalog, least: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Draw one or two adjacent departments, more if they have fewer than `least` types; also return their types."""
    of: dict[str, list[str]] = {}
    for kind in catalog.stocked_types:
        of.setdefault(kind.department, []).append(kind.name)
    names = list(of)
    start, wanted = int(random.integers(len(names))), 2 if random.random() < 0.3 else 1
    chosen: list[str] = []
    for name in names[start:] + names[:start]:
        if len(chosen) >= wanted and sum(len(of[name]) for name in chosen) >= least:
            break
        chosen.append(name)
    return chosen, [kind for name in chosen for kind in of[name]]


def draw_trait(row: int, catalog: Catalog, random: np.random.Generator) -> tuple[str, Any]:
    """Draw a slot that a customer may require of a part and that this product satisfies."""
    traits: dict[str, Any] = {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    traits["brand"] = catalog.brands[catalog.brand_code.item(row)]
    for limit in (RATING, DAYS):
        if catalog.has(limit):
            traits[limit.name] = limit.rounded(catalog.column(limit).item(row))
    name = pick(random, list(traits))
    return name, traits[name]


def draw_change(
    goal: Goal, alone: Sequence[int], spare: Sequence[str], axes: Difficulty, random: np.random.Generator
) -> GoalChange | None:
    """Draw a change of mind: another budget (its value is set later), a part added, or a part dropped that stands
    `alone`. None if nothing can change."""
    changes: list[GoalChange] = []
    if alone:
        item = pick(random, alone)
        dropped = {"dropped": goal.get("type", item=item)}
        changes = [GoalChange(slots=dropped, turns=0, calls=0, forgets=(item,))]
    changes += [GoalChange(slots={"budget": 0}, turns=0, calls=0)] if axes.bundle.slack else []
    changes += [GoalChange(slots={"added": spare[0]})] if spare else []
    return pick(random, changes) if changes else None


def draw_budget(total: int, slack: float, random: np.random.Generator) -> int:
    """Add random slack, `slack` in the mean, to a total and round it up to whole dollars, in cents."""
    return 100 * math.ceil(total * (1 + 2 * slack * random.random()) / 100)
