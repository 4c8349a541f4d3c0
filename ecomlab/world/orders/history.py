"""A customer's order history in one task, and what can still be returned of it: public, the same for every job."""

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
from ecomlab.task import TaskKey
from ecomlab.tool import RefusedError
from ecomlab.world.policy_book.terms import Terms, draw_terms
from ecomlab.world.state import World, options_of

FIRST_DAY = date(2026, 2, 1)
DAYS = 320
"""From the first to the last day that an episode may play on."""
KINDS = ("delivered", "split", "shipped", "processing", "delayed", "cancelled")
SHARES = (0.54, 0.1, 0.1, 0.08, 0.1, 0.08)
"""States of an order; a split one is in two parcels, most often of different status."""
SPLITS = (
    ("delivered", "shipped"),
    ("delivered", "delayed"),
    ("delivered", "processing"),
    ("delivered", "delivered"),
    ("shipped", "processing"),
)
LINES = (0.28, 0.3, 0.2, 0.13, 0.09)
"""Shares of orders with 1 to 5 lines."""
STATUSES = (
    "processing", "shipped", "delayed", "delivered", "cancelled", "partly shipped", "partly delivered",
)  # fmt: skip
TRIES = 24
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels: no words

Order = Mapping[str, Any]
Line = Mapping[str, Any]


@lru_cache(maxsize=16)  # the jobs of a journey share one, and none may change it
def draw_history(key: TaskKey, axes: Difficulty, shop: Shop) -> dict[str, Any]:
    """{"today", "orders"}: H past orders, the newest first, and the episode's clock. From public randomness alone.

    As d rises, customers order the same again, more comes in two parcels, and what was delivered lies
    at the edge of the window in which it can be returned: its last day, or the day after.
    """
    random, draws = key.rng("orders"), axes.orders
    terms = draw_terms(key, shop.catalog)
    today = FIRST_DAY + timedelta(days=int(random.integers(DAYS)))
    tokens, split = _tokens(random), draws.p_split
    shares = [
        share * (1 - split) + split * (kind == "split") for kind, share in zip(KINDS, SHARES, strict=True)
    ]
    kinds = [KINDS[i] for i in random.choice(len(KINDS), size=axes.history, p=shares).tolist()]
    kinds[:2] = ["delivered"] * len(kinds[:2])  # something can always be sent back
    orders: list[dict[str, Any]] = []
    bought: dict[str, int] = {}
    used: set[int] = set()
    for kind in kinds:
        lines = _draw_lines(1 if kind == "split" else 0, draws.p_again, bought, tokens, key, shop, random)
        windows = [w for w in (_window(line, shop.catalog, terms) for line in lines) if w]
        for _ in range(TRIES):  # two orders of a day could not be told apart by it
            placed, parcels = _draw_parcels(kind, windows, draws.p_edge, today, random)
            if placed not in used:
                break
        used.add(placed)
        for number, line in enumerate(lines):
            parcel = 1 + number % len(parcels) if parcels else None
            line["parcel"] = parcel
            arrived = parcel is not None and parcels[parcel - 1]["status"] == "delivered"
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
    return {"today": today.isoformat(), "orders": orders}


def _tokens(random: np.random.Generator) -> Iterator[str]:
    """Ids that say nothing, none of them twice."""
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
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> list[dict[str, Any]]:
    """Lines of different product types; types bought before come `again`, now and then as the very product."""
    catalog = shop.catalog
    count = min(len(LINES), 1 + more + int(random.choice(len(LINES), p=LINES)))
    chosen: dict[str, int] = {}
    while len(chosen) < count:
        known = [name for name in bought if name not in chosen]
        if known and random.random() < again:
            name = known[int(random.integers(len(known)))]
            same = random.random() < 0.3
        else:
            name = catalog.types[int(random.integers(len(catalog.types)))].name
            same = False
        rows = catalog.type_rows(name)
        if name not in chosen and rows:
            chosen[name] = bought[name] if same else int(rows[int(random.random() * len(rows))])
    bought |= chosen
    lines = []
    for name, row in chosen.items():
        options = options_of(key, catalog, name)
        variant = options[int(random.integers(len(options)))] if random.random() < 0.6 else None
        quantity = int(random.integers(2, 5)) if random.random() < 0.35 else 1
        price = catalog.price_cents.item(row) * int(random.integers(90, 111)) // 100
        lines.append(
            {
                "line_id": next(tokens),
                "product_id": catalog.ids[row],
                "variant_id": variant,
                "quantity": quantity,
                "price_cents": price,
            }
        )
    return lines


def _draw_parcels(
    kind: str, windows: Sequence[int], at_edge: float, today: date, random: np.random.Generator
) -> tuple[int, list[dict[str, Any]]]:
    """Draw how many days ago an order was placed, and its parcels."""

    def between(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    window = windows[int(random.integers(len(windows)))] if windows else 30
    edge = random.random() < at_edge and bool(windows)
    if kind == "cancelled":
        return between(1, 100), []
    if kind == "delivered":
        age = window + (random.random() < 0.4) if edge else between(1, math.ceil(1.1 * window))
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
    """The status of an order as a whole, one of `STATUSES`."""
    statuses = {parcel["status"] for parcel in order["parcels"]}
    if not statuses:
        return "cancelled"
    if len(statuses) == 1:
        return str(next(iter(statuses)))
    return "partly delivered" if "delivered" in statuses else "partly shipped"


def last_date(order: Order) -> str | None:
    """The day on which the last of an order arrived or is expected; None for a cancelled one."""
    return max((parcel.get("delivered") or parcel["expected"] for parcel in order["parcels"]), default=None)


def find_order(world: World, order_id: str) -> Order:
    """The order of that id. Raises RefusedError when the customer has none."""
    for order in world.given.get("orders", ()):
        if order["order_id"] == order_id:
            return order
    raise RefusedError(f"the customer has no order with id {order_id!r}; see order_list")


def find_line(world: World, order_id: str, line_id: str) -> tuple[Order, Line]:
    """The order and its line. Raises RefusedError when there is no such line."""
    order = find_order(world, order_id)
    for line in order["lines"]:
        if line["line_id"] == line_id:
            return order, line
    raise RefusedError(f"order {order_id!r} has no line with id {line_id!r}; see order_get_status")


@dataclass(frozen=True)
class Eligibility:
    """The store's answer to the question whether units of a line can be sent back today."""

    eligible: bool
    reason: str
    window: int | None
    """Days from delivery; 0: never; None: it has not been delivered."""
    last_day: date | None
    left: int
    """Units that have not been sent back."""


def eligibility(
    order: Order, line: Line, today: date, catalog: Catalog, terms: Terms, returned: int = 0
) -> Eligibility:
    """Judge the return of a line of which `returned` units were sent back in this episode."""
    left = line["quantity"] - line["returned"] - returned
    parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else None
    if parcel is None:
        return Eligibility(False, "the order was cancelled", None, None, left)
    window = _window(line, catalog, terms)
    if window == 0:
        return Eligibility(False, "goods of this kind cannot be returned", 0, None, left)
    if "delivered" not in parcel:
        return Eligibility(False, "it has not been delivered yet", None, None, left)
    last = date.fromisoformat(parcel["delivered"]) + timedelta(days=window)
    if left <= 0:
        return Eligibility(False, "all units of this line have been returned already", window, last, left)
    if today > last:
        return Eligibility(False, "the return window is over", window, last, left)
    return Eligibility(True, "it can be returned", window, last, left)


def eligible_first(
    given: Mapping[str, Any],
    key: Sequence[Any],
    order: Order,
    line: Line,
    catalog: Catalog,
    returned: int = 0,
) -> Eligibility:
    """The same in a task of that key and world; `returned` units were sent back since it began."""
    today = date.fromisoformat(given["today"])
    return eligibility(order, line, today, catalog, draw_terms(key, catalog), returned)


def eligible_now(world: World, order: Order, line: Line, undone: bool = False) -> Eligibility:
    """The same in an episode; `undone`: as if this episode had sent none of it back."""
    done = 0 if undone else world.returns.get((order["order_id"], line["line_id"]), 0)
    return eligible_first(world.given, world.key, order, line, world.catalog, done)


def lines_of(orders: Sequence[Order]) -> list[tuple[Order, Line]]:
    """Every line with its order."""
    return [(order, line) for order in orders for line in order["lines"]]


def delivered_lines(orders: Sequence[Order]) -> list[tuple[Order, Line]]:
    """Every line that has arrived, with its order."""
    return [(order, line) for order, line in lines_of(orders) if delivered(order, line)]


def delivered(order: Order, line: Line) -> str | None:
    """The day a line was delivered, None before."""
    day = order["parcels"][line["parcel"] - 1].get("delivered") if line["parcel"] else None
    return None if day is None else str(day)
