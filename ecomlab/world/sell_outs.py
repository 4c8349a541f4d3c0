"""Sell-outs during an episode: a few products that a shopper would compare.

A sell-out is drawn with the task, among the products that several customers would want whose openings are the same, one
of whom exists: what is gone does not tell what is wanted (NOT GAMEABLE, SILENT).
"""

from collections.abc import Iterable

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.task import SellOut

MOST_SOLD = 10
"""Most products that sell out at once: about as many as a shopper compares."""
ALIKE = 3
"""Number of customers, the real one among them, whose choices may sell out."""
MOST_GONE = 0.9
"""Largest share of them that sells out, so that something is left even at p_oos = 1."""


def draw_sell_out(p_oos: float, wanted: int, random: np.random.Generator) -> float:
    """Draw the share that sells out of the products that may be wanted, so that each of `wanted` ones does with
    probability `p_oos`; 0 if nothing sells out."""
    return sell_out_share(p_oos, wanted) if random.random() < 1 - (1 - p_oos) ** wanted else 0.0


def sell_out_share(p_oos: float, wanted: int) -> float:
    """Return the share that sells out if something does."""
    return min(MOST_GONE, p_oos / (1 - (1 - p_oos) ** wanted)) if p_oos else 0.0


def draw_sold(choices: Iterable[Iterable[int]], share: float, random: np.random.Generator) -> list[int]:
    """Draw the rows that sell out, each with probability `share` and at most `MOST_SOLD`, of all that these customers
    would choose."""
    pool = np.array(sorted({int(row) for rows in choices for row in rows}), int)
    hit = pool[random.random(len(pool)) < share]
    return sorted(hit[random.permutation(len(hit))[:MOST_SOLD]].tolist())


def sell_out_of(rows: Iterable[int], catalog: Catalog, moment: str = "") -> SellOut:
    """Make the sell-out of all units of these rows."""
    rows = list(rows)
    types = tuple(dict.fromkeys(catalog.type_of(row).name for row in rows))
    left = tuple((catalog.ids[row], None, 0) for row in rows)
    return SellOut(types=types, left=left, moment=moment, about=types)


def sold_rows(sold: SellOut | None, catalog: Catalog) -> np.ndarray:
    """List the rows of which a sell-out leaves nothing."""
    left = sold.left if sold else ()
    return catalog.rows_of(token for token, option, units in left if option is None and not units)
