"""Goals of a return (RETURN): the units that go back and the replacement for them, drawn and worded, and the products
that fit."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.goals import draw_row
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import shuffled
from ecomlab.slots import PRICE, RATING, slot_type
from ecomlab.task import LOOK, SellOut
from ecomlab.values import NAME, Format
from ecomlab.world.cart import constraints_of
from ecomlab.world.orders.history import Line
from ecomlab.world.sell_outs import MOST_SOLD, draw_sold, sell_out_of, sold_rows
from ecomlab.world.state import World

Wanted = Sequence[Sequence[Any]]
"""Constraints on another product of the type as [name, value] pairs; none: the customer wants their money back."""

MONEY_BACK = "my money back"
_OTHER = "another one "
_FORMS = {
    "price": "for at most {}",
    "rating": "with at least {}",
    "brand": "by {}",
    "attr:color": "in {}",
    "attr:material": "made of {}",
    "attr:age": "for ages {}",
    "attr:hair": "for {} hair",
    "attr:skin": "for {} skin",
    "attr:terrain": "for {} terrain",
    "attr:active": "with {} in it",
    "attr:note": "with {} notes",
    "attr:wattage": "with {} of power",
    "attr:playtime": "with {} of playtime",
    "attr:weight": "weighing {}",
    "attr:season": "for {}",  # last, for other forms begin so, too
}
"""Forms that ask for a slot; for other attributes it is "with {value} {name}"."""
_COUNTED = frozenset(
    "barrel base bin bulb cable closure collar cover filter finish fit formula frame handle jar lens lid "
    "lining microphone mount pattern picture shape strap surface tail theme tire tray".split()
)
"""Attributes that take an article: "with a Zipper closure"."""


def _write(wanted: Wanted) -> str:
    """Word the replacement: "another one by HomeNest, in Black, for at most $30"."""
    said = []
    for name, value in wanted:
        text, own = (slot_type(name).format or NAME).write(value), name.removeprefix("attr:")
        article = ("an " if text[:1] in "AEIO" else "a ") if own in _COUNTED else ""
        said.append(_FORMS.get(name, f"with {article}{{}} {own}").replace("{}", text))
    return _OTHER + ", ".join(said) if said else MONEY_BACK


def _read(text: str) -> list[list[Any]]:
    parts = [] if text == MONEY_BACK else text.removeprefix(_OTHER).split(", ")
    return [_read_wish(part) for part in parts]


def _read_wish(part: str) -> list[Any]:
    for name, form in _FORMS.items():
        before, after = form.split("{}")
        if part.startswith(before) and part.endswith(after):
            return [
                name,
                (slot_type(name).format or NAME).read(part.removeprefix(before).removesuffix(after)),
            ]
    value, _, name = part.removeprefix("with ").rpartition(" ")
    return [f"attr:{name}", value.partition(" ")[2] if name in _COUNTED else value]


REPLACEMENT = Format(_write, rf"{MONEY_BACK}|{_OTHER}[^!?\n]+?(?=\.(?:\s|$))", _read)
"""Format of the slot that says what is wanted for the units that go back."""


def draw_replacement(
    line: Line, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> list[list[Any]]:
    """Draw what another product of the type should be like, after one in stock; nothing if the type has no other."""
    catalog = shop.catalog
    own = catalog.row(line["product_id"])
    for _ in range(4):
        row = None if own is None else draw_row(catalog.type_rows(catalog.type_of(own).name), shop, random)
        if row is not None and row != own:
            break
    else:
        return []
    assert row is not None
    values: dict[str, Any] = {
        "price": PRICE.drawn_beyond(catalog.price_cents.item(row), random),
        "rating": RATING.rounded(catalog.rating_tenths.item(row)),
        "brand": catalog.brands[catalog.brand_code.item(row)],
    }
    # "with Foam wheels" reads well, "with Laptops works_with" does not
    named = {n: v for n, v in catalog.attributes(row).items() if n.isalpha() and not n.endswith("s")}
    values |= {f"attr:{n}": v for n, v in named.items()}
    values = {n: v for n, v in values.items() if not re.search(r"[.!?] |, ", str(v))}
    values = {n: v for n, v in values.items() if not slot_type(n).is_limit or catalog.has(slot_type(n))}
    chosen = shuffled(random, values)[: min(3, max(1, axes.constraints // 2))]
    # In the order of speech: the brand first, the bounds last.
    chosen.sort(key=lambda name: {"brand": 0, "rating": 2, "price": 3}.get(name, 1))
    return [[name, values[name]] for name in chosen]


def rows_of(wanted: Wanted, line: Line, shop: Shop) -> np.ndarray:
    """Find the rows of the line's type that are as wanted, except the line's own product."""
    own = shop.catalog.row(line["product_id"])
    kind = shop.catalog.type_of(own or 0).name
    rows = shop.catalog.select(constraints_of(kind, {str(n): v for n, v in wanted}))
    return rows[(shop.catalog.stock[rows] > 0) & (rows != own)]


def is_as_wanted(product_id: str, wanted: Wanted, line: Line, world: World) -> bool:
    """Tell whether a product is as wanted, was shown by a tool, and can be bought."""
    row = world.catalog.row(product_id)
    if row is None or product_id not in world.shown:
        return False
    return row in world.in_stock(rows_of(wanted, line, world.shop))


def can_be_had(wanted: Wanted, line: Line, shop: Shop, sold: SellOut | None) -> bool:
    """Tell whether a product as wanted is left after a sell-out."""
    return not np.isin(rows_of(wanted, line, shop), sold_rows(sold, shop.catalog)).all()


def draw_sell_out(
    kind: str, wishes: Sequence[tuple[Wanted, Line]], share: float, shop: Shop, random: np.random.Generator
) -> SellOut:
    """Draw a sell-out among the products of a type that a shopper would look at first, and of those as wanted, if any
    are."""
    of_type = shop.catalog.type_rows(kind)
    pools = [np.arange(of_type.start, of_type.stop), *(rows_of(*wish, shop) for wish in wishes if wish[0])]
    choices = (pool[random.permutation(len(pool))[: MOST_SOLD // 2]] for pool in pools)
    return sell_out_of(draw_sold(choices, share, random), shop.catalog, LOOK)
