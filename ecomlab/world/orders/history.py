"""A task's public order history, and which of its lines can still be returned."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.answers.dates import before
from ecomlab.catalog import Catalog, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.slots import NO_PRICE
from ecomlab.steps import may_hold
from ecomlab.task import TaskKey, frozen
from ecomlab.tool import RefusedError
from ecomlab.world.policy_book.terms import Terms, draw_terms
from ecomlab.world.state import World

FIRST_DAY = date(2026, 2, 1)
DAYS = 320
"""Number of days, from the first, on which an episode may take place."""
KINDS = ("delivered", "split", "shipped", "processing", "delayed", "cancelled")
SHARES = (0.54, 0.1, 0.1, 0.08, 0.1, 0.08)
"""Shares of the kinds of order; a split one has two parcels, usually of different status."""
SPLITS = (
    ("delivered", "shipped"),
    ("delivered", "delayed"),
    ("delivered", "processing"),
    ("delivered", "delivered"),
    ("shipped", "processing"),
)
LINES = (0.28, 0.3, 0.2, 0.13, 0.09)
"""Shares of orders with 1 to 5 lines."""
P_SEVERAL, DEAR = 0.6, 5000
"""Chance that several units were bought, of what costs fewer cents than this: nobody buys four cat trees."""
TRIES = 24
SPREAD, SPREAD_BY_RULES = 1.3, 1.7
"""The latest delivery, in standard return windows: as many again are over where exceptions may lengthen them."""
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels: no words

Order = Mapping[str, Any]
Line = Mapping[str, Any]


@lru_cache(maxsize=16)  # the subtasks of a journey share one history
def draw_history(key: TaskKey, axes: Difficulty, shop: Shop) -> Mapping[str, Any]:
    """Draw {"today", "orders"}: the episode's date and past orders, the newest first, from public randomness alone.

    As d rises, customers reorder more, more orders come in two parcels, and more deliveries lie on the last day of
    their return window or the day after.
    """
    random, draws = key.rng("orders"), axes.orders
    terms = draw_terms(key, shop.catalog)
    today = _draw_today(random)
    tokens, split = _tokens(random), draws.p_split
    spread = SPREAD_BY_RULES if may_hold(axes, "rules") else SPREAD
    shares = [
        share * (1 - split) + split * (kind == "split") for kind, share in zip(KINDS, SHARES, strict=True)
    ]
    kinds = [KINDS[i] for i in random.choice(len(KINDS), size=axes.history, p=shares).tolist()]
    kinds[:2] = ["delivered"] * len(kinds[:2])
    orders: list[dict[str, Any]] = []
    bought: dict[str, int] = {}
    used: set[int] = set()
    for kind in kinds:
        lines = _draw_lines(1 if kind == "split" else 0, draws.p_again, bought, tokens, shop, random)
        windows = [w for w in (_window(line, shop.catalog, terms) for line in lines) if w]
        for _ in range(TRIES):  # the date could not tell two orders of one day apart
            placed, parcels = _draw_parcels(kind, windows, spread, draws.p_edge, today, random)
            if placed not in used:
                break
        used.add(placed)
        for number, line in enumerate(lines):
            parcel = 1 + number % len(parcels) if parcels else None
            line["parcel"] = parcel
            arrived = parcel is not None and parcels[parcel - 1]["status"] == "delivered"
            arrived = arrived and _window(line, shop.catalog, terms) > 0
            sent_back = arrived and random.random() < 0.09
            part = int(random.integers(1, line["quantity"] + 1))
            line["returned"] = (line["quantity"] if random.random() < 0.6 else part) if sent_back else 0
        shuffled = [lines[i] for i in random.permutation(len(lines)).tolist()]
        orders.append(
            {
                "order_id": next(tokens),
                "placed": before(today, placed),
                "parcels": parcels,
                "lines": shuffled,
            }
        )
    orders.sort(key=lambda order: (order["placed"], order["order_id"]), reverse=True)
    arrived_lines: list[Any] = [line for _, line in delivered_lines(orders)]
    if arrived_lines and all(line["returned"] == line["quantity"] for line in arrived_lines):
        arrived_lines[0]["returned"] = 0  # something can always be returned
    history: Mapping[str, Any] = frozen({"today": today.isoformat(), "orders": orders})
    return history


def today_of(key: TaskKey) -> date:
    """Draw the episode's date, that of its order history."""
    return _draw_today(key.rng("orders"))


def _draw_today(random: np.random.Generator) -> date:
    return FIRST_DAY + timedelta(days=int(random.integers(DAYS)))


def _tokens(random: np.random.Generator) -> Iterator[str]:
    """Yield distinct ids that carry no meaning."""
    seen: set[str] = set()
    while True:
        token = "".join(_LETTERS[i] for i in random.integers(len(_LETTERS), size=6).tolist())
        if token not in seen:
            seen.add(token)
            yield token


def _draw_lines(
    more: int,
    again: float,
    bought: dict[str, int],
    tokens: Iterator[str],
    shop: Shop,
    random: np.random.Generator,
) -> list[dict[str, Any]]:
    """Draw lines of different types; with chance `again` a type bought before, at times the very same product."""
    catalog = shop.catalog
    count = min(len(LINES), 1 + more + int(random.choice(len(LINES), p=LINES)), len(catalog.drawable_types))
    chosen: dict[str, int] = {}
    while len(chosen) < count:
        known = [name for name in bought if name not in chosen]
        if known and random.random() < again:
            name = known[int(random.integers(len(known)))]
            same = random.random() < 0.3
        else:
            name = catalog.drawable_types[int(random.integers(len(catalog.drawable_types)))].name
            same = False
        rows = catalog.type_rows(name)
        if name not in chosen and rows:
            chosen[name] = bought[name] if same else int(rows[int(random.random() * len(rows))])
    bought |= chosen
    lines = []
    for row in chosen.values():
        options = catalog.options(row)
        variant = options[int(random.integers(len(options)))] if options else None
        percent, listed = int(random.integers(90, 111)), catalog.price_cents.item(row)
        several = int(random.integers(2, 5)) if random.random() < P_SEVERAL else 1
        quantity = several if listed == NO_PRICE or listed < DEAR else 1
        lines.append(
            {
                "line_id": next(tokens),
                "product_id": catalog.ids[row],
                "variant_id": variant,
                "quantity": quantity,
                "price_cents": None if listed == NO_PRICE else listed * percent // 100,
            }
        )
    return lines


def _draw_parcels(
    kind: str, windows: Sequence[int], spread: float, at_edge: float, today: date, random: np.random.Generator
) -> tuple[int, list[dict[str, Any]]]:
    """Draw how many days ago an order was placed, and its parcels; the latest delivery lies `spread` windows ago."""

    def between(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    window = windows[int(random.integers(len(windows)))] if windows else 30
    edge = random.random() < at_edge and bool(windows)
    if kind == "cancelled":
        return between(1, 100), []
    if kind == "delivered":
        age = window + (random.random() < 0.4) if edge else between(1, math.ceil(spread * window))
        shipped = age + between(1, 5)
        parcel = {
            "status": kind,
            "shipped": before(today, shipped),
            "delivered": before(today, age),
        }
        return shipped + between(0, 3), [parcel]
    if kind == "split":
        placed = between(6, 24)
        kinds = SPLITS[int(random.integers(len(SPLITS)))]
        later = between(1, placed - 4)
        days = (between(later + 1, placed - 2) if kinds[1] == "delivered" else later, later)
        return placed, [_parcel(k, placed, day, today, between) for k, day in zip(kinds, days, strict=True)]
    placed = {"shipped": between(2, 9), "processing": between(0, 4), "delayed": between(6, 22)}[kind]
    return placed, [_parcel(kind, placed, 0, today, between)]


def _parcel(kind: str, placed: int, delivered: int, today: date, between: Any) -> dict[str, Any]:
    if kind == "delivered":
        shipped = between(delivered + 1, placed)
        return {
            "status": kind,
            "shipped": before(today, shipped),
            "delivered": before(today, delivered),
        }
    if kind == "shipped":
        shipped = before(today, between(1, max(1, placed - 1)))
        return {"status": kind, "shipped": shipped, "expected": before(today, -between(1, 6))}
    if kind == "delayed":
        first, then = between(1, placed - 3), -between(2, 14)
        return {
            "status": kind,
            "first_expected": before(today, first),
            "expected": before(today, then),
        }
    return {"status": kind, "expected": before(today, -between(3, 12))}


def _window(line: Line, catalog: Catalog, terms: Terms) -> int:
    row = catalog.row(line["product_id"])
    return 0 if row is None else terms.return_days[catalog.type_of(row).department]


def status_of(order: Order) -> str:
    """Summarise an order's parcels as one of `STATUSES`."""
    statuses = {parcel["status"] for parcel in order["parcels"]}
    if not statuses:
        return "cancelled"
    if len(statuses) == 1:
        return str(next(iter(statuses)))
    return "partly delivered" if "delivered" in statuses else "partly shipped"


def last_date(order: Order) -> str | None:
    """Find the day on which an order's last parcel arrived or is expected; None for a cancelled order."""
    return max((parcel.get("delivered") or parcel["expected"] for parcel in order["parcels"]), default=None)


def find_order(world: World, order_id: str) -> Order:
    """Find an order by id. Raises RefusedError when the customer has no such order."""
    for order in world.given.get("orders", ()):
        if order["order_id"] == order_id:
            return order
    raise RefusedError(f"the customer has no order with id {order_id!r}; see order_list")


def find_line(world: World, order_id: str, line_id: str) -> tuple[Order, Line]:
    """Find an order and its line by id. Raises RefusedError when there is no such line."""
    order = find_order(world, order_id)
    for line in order["lines"]:
        if line["line_id"] == line_id:
            return order, line
    raise RefusedError(f"order {order_id!r} has no line with id {line_id!r}; see order_get_status")


@dataclass(frozen=True)
class Standing:
    """Facts about the return of a line, by the standard window of its department."""

    delivered: date | None
    window: int
    """Days from delivery; 0: goods of the department are not returnable."""
    last_day: date | None
    is_open: bool
    returned: int
    left: int
    """Units that have not been returned."""


def standing(
    order: Order, line: Line, today: date, catalog: Catalog, terms: Terms, returned: int = 0
) -> Standing:
    """Tell where a line stands of which `returned` units were returned in this episode."""
    back = line["returned"] + returned
    window, day = _window(line, catalog, terms), delivered(order, line)
    arrived = None if day is None else date.fromisoformat(day)
    last = arrived + timedelta(days=window) if arrived and window else None
    is_open = last is not None and today <= last
    return Standing(arrived, window, last, is_open, back, line["quantity"] - back)


def standing_now(world: World, order: Order, line: Line) -> Standing:
    """Tell where a line stands in an episode."""
    done = world.returns.get((order["order_id"], line["line_id"]), 0)
    today = date.fromisoformat(world.given["today"])
    return standing(order, line, today, world.catalog, draw_terms(world.key, world.catalog), done)


def lines_of(orders: Sequence[Order]) -> list[tuple[Order, Line]]:
    """List every line with its order."""
    return [(order, line) for order in orders for line in order["lines"]]


def delivered_lines(orders: Sequence[Order]) -> list[tuple[Order, Line]]:
    """List every line that has arrived, with its order."""
    return [(order, line) for order, line in lines_of(orders) if delivered(order, line)]


def delivered(order: Order, line: Line) -> str | None:
    """Find the day on which a line was delivered; None if it has not been."""
    day = order["parcels"][line["parcel"] - 1].get("delivered") if line["parcel"] else None
    return None if day is None else str(day)
