"""Goals of a return (RETURN): the units that go back and the replacement for them, drawn and worded, and the products
that fit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.goals import draw_row
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import PRICE, RATING, slot_type
from ecomlab.task import LOOK, SellOut
from ecomlab.values import MONTHS, NAME, Format, in_speech
from ecomlab.wishes import SAME, Of, of_phrase
from ecomlab.world.cart import constraints_of
from ecomlab.world.orders.history import Line
from ecomlab.world.plain import AtFirst, View, ordered_then, value_of
from ecomlab.world.sell_outs import MOST_SOLD, draw_sold, sell_out_of, sold_rows
from ecomlab.world.state import World
from ecomlab.world.substitutes import noun

Wanted = Sequence[Sequence[Any]]
"""Constraints on another product of the type as [name, value] pairs; none: the customer wants their money back."""

TRIES = 12
"""Products that are tried for a reference to an earlier order."""
MONEY_BACK = "my money back"
_OTHER = "another one "
_FORMS = {
    "price": "for at most {}",
    "rating": "with at least {}",
    "brand": "by {}",
    "attr:pack": "in a {}",
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
    "attr:charge": "with a {} battery",
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
        if isinstance(value, Of):
            by, own = value.described, noun(name.removeprefix("attr:"))
            said.append(of_phrase(own, in_speech(by["type"]), value, MONTHS[int(by["month"]) - 1]))
            continue
        text, own = (slot_type(name).format or NAME).write(value), name.removeprefix("attr:")
        text = in_speech(text) if name.startswith("attr:") else text
        article = ("an " if text[:1] in "AEIOaeio" else "a ") if own in _COUNTED else ""
        said.append(_FORMS.get(name, f"with {article}{{}} {own}").replace("{}", text))
    return _OTHER + ", ".join(said) if said else MONEY_BACK


def _read(text: str) -> list[list[Any]]:
    parts = [] if text == MONEY_BACK else text.removeprefix(_OTHER).split(", ")
    return [_read_wish(part) for part in parts]


def _read_wish(part: str) -> list[Any]:
    if (same := SAME.fullmatch(part)) and same["when"]:
        month = f"{1 + MONTHS.index(same['when'].strip()):02}"
        return [f"attr:{same['noun']}", Of("orders", (("type", same["thing"]), ("month", month)))]
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
    line: Line, references: int, view: AtFirst, axes: Difficulty, random: np.random.Generator
) -> tuple[list[list[Any]], bool]:
    """Draw what another product of the type should be like, after one in stock, and whether it takes `references` to
    know; nothing if the type has no other. As many of its values as that are those of things ordered earlier."""
    shop, found = view.shop, list[list[Any]]()
    own = shop.catalog.row(line["product_id"])
    earlier = _ordered_once(line, view) if references else {}
    for _ in range(TRIES if references else 4):
        kind = "" if own is None else shop.catalog.type_of(own).name
        row = None if own is None else draw_row(kind, shop, random)
        if row is None or row == own:
            continue
        found = _draw_wanted(row, references, earlier, axes, shop, random)
        if not references or _must_look(found, line, view):
            break
    return found, _must_look(found, line, view)


def _ordered_once(line: Line, view: AtFirst) -> dict[tuple[str, Any], list[Of]]:
    """List, by (slot, value), the other things ordered earlier that have it, of which nothing else of the type was
    ordered in that month."""
    found: dict[tuple[str, Any], list[Of]] = {}
    for order in view.given["orders"]:
        for other in order["lines"]:
            row, month = view.catalog.row(other["product_id"]), order["placed"][5:7]
            if row is None or other["line_id"] == line["line_id"]:
                continue
            kind = view.catalog.type_of(row).name
            if len(ordered_then(kind, month, view)) > 1:
                continue
            values = {f"attr:{n}": v for n, v in view.catalog.attributes(row).items() if noun(n) == n}
            for pair in values.items():
                found.setdefault(pair, []).append(Of("orders", (("type", kind), ("month", month))))
    return found


def _must_look(wanted: Wanted, line: Line, view: AtFirst) -> bool:
    """Tell whether the cheapest product that is as wanted otherwise is not as things ordered earlier are."""
    others = [pair for pair in wanted if not isinstance(pair[1], Of)]
    if len(others) == len(wanted) or not view.catalog.has(PRICE):
        return False
    rows, prices = rows_of(others, line, view), view.catalog.price_cents
    cheapest = rows[prices[rows] == prices[rows].min()]
    return not np.isin(cheapest, rows_of(wanted, line, view)).any()


def _draw_wanted(
    row: int,
    references: int,
    earlier: Mapping[tuple[str, Any], Sequence[Of]],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> list[list[Any]]:
    """Draw how a customer asks for products like this one."""
    catalog = shop.catalog
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
    same = [name for name in shuffled(random, values) if (name, values[name]) in earlier][:references]
    values |= {name: pick(random, earlier[name, values[name]]) for name in same}
    others = [name for name in shuffled(random, values) if name not in same]
    chosen = [*same, *others][: max(len(same), min(3, max(1, axes.constraints // 2)))]
    # In the order of speech: the brand first, the bounds last.
    chosen.sort(key=lambda name: {"brand": 0, "rating": 2, "price": 3}.get(name, 1))
    return [[name, values[name]] for name in chosen]


def resolved(wanted: Wanted, lexicon: Lexicon) -> list[list[Any]]:
    """Name values and types as the shop does in what `REPLACEMENT` has read."""
    return [[name, _resolved(str(name), value, lexicon)] for name, value in wanted]


def _resolved(name: str, value: Any, lexicon: Lexicon) -> Any:
    if isinstance(value, Of):
        kind = value.described["type"]
        return replace(
            value, by=tuple((value.described | {"type": lexicon.exact("type", kind) or kind}).items())
        )
    if not isinstance(value, str):
        return value
    attributes = (
        one for kind in lexicon.types.values() for one in kind.attributes if f"attr:{one.name}" == name
    )
    values = (other for one in attributes for other in one.values)
    return next((other for other in values if other.lower() == value.lower()), value)


def rows_of(wanted: Wanted, line: Line, view: View) -> np.ndarray:
    """Find the rows of the line's type that are as wanted, except the line's own product."""
    own = view.catalog.row(line["product_id"])
    kind = view.catalog.type_of(own or 0).name
    values = {str(n): value_of(v, str(n), view) if isinstance(v, Of) else v for n, v in wanted}
    rows = view.catalog.select(constraints_of(kind, values))
    return rows[(view.catalog.stock[rows] > 0) & (rows != own)]


def is_as_wanted(product_id: str, wanted: Wanted, line: Line, world: World) -> bool:
    """Tell whether a product is as wanted, was shown by a tool, and can be bought."""
    row = world.catalog.row(product_id)
    if row is None or product_id not in world.shown:
        return False
    return row in world.in_stock(rows_of(wanted, line, world))


def can_be_had(wanted: Wanted, line: Line, view: View, sold: SellOut | None) -> bool:
    """Tell whether a product as wanted is left after a sell-out."""
    return not np.isin(rows_of(wanted, line, view), sold_rows(sold, view.catalog)).all()


def draw_sell_out(
    kind: str, wishes: Sequence[tuple[Wanted, Line]], share: float, view: View, random: np.random.Generator
) -> SellOut:
    """Draw a sell-out among the products of a type that a shopper would look at first, and of those as wanted, if any
    are."""
    of_type = view.catalog.type_rows(kind)
    pools = [np.arange(of_type.start, of_type.stop), *(rows_of(*wish, view) for wish in wishes if wish[0])]
    choices = (pool[random.permutation(len(pool))[: MOST_SOLD // 2]] for pool in pools)
    return sell_out_of(draw_sold(choices, share, random), view.catalog, LOOK)
