"""The world of one episode: stock, variants, cart and visits over the shared shop, which never changes (ISOLATED)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Constraint, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import digest, rng
from ecomlab.tool import RefusedError

PAGE = 5
"""Search results per page, not counting distractors."""
VARIANTS = 3
"""Variants that an episode offers of a product: one that may be wanted and two plausible others."""
MOST = 99
"""Maximum units of a cart line."""
MOST_GONE = 0.9
"""Largest share of a type that sells out, so that something is left even at p_oos = 1."""


@dataclass(frozen=True)
class Shortage:
    """A limit of `total` units in the cart on products that satisfy `constraints`, in `option` (None: in any)."""

    constraints: tuple[Constraint, ...]
    option: str | None
    total: int


class World:
    """Everything that the agent's tools read and change. `key` names the task's public randomness."""

    def __init__(
        self, shop: Shop, axes: Difficulty, key: Sequence[Any], given: Mapping[str, Any], calls: int
    ) -> None:
        self.shop = shop
        self.catalog = shop.catalog
        self.axes = axes
        self.key = tuple(key)
        self.given = given
        """The task's public part: visits, today's date, orders and whatever else tools read."""
        self.visits = tuple(given.get("visits", ()))
        self.call_budget = calls
        self.calls = 0
        self.cart: dict[tuple[str, str | None], int] = {}
        self.returns: dict[tuple[str, str], int] = {}
        """Units returned in this episode, by (order id, line id)."""
        self.changes = 0
        """Number of changes by the agent; the customer looks at the world after a turn that made one."""
        self.gone = {self.row(product_id) for product_id in given.get("gone", ())}
        """Rows that cannot be bought, including those sold out from the start."""
        self.sold_out: dict[int, np.ndarray] = {}
        """Rows that have sold out in this episode: by type code, a mask over the type's rows."""
        self.shortages: list[Shortage] = []
        self.shown: set[str] = set()
        """Product ids that a tool has shown in this episode."""
        self.shown_pairs: set[tuple[str, str]] = set()
        """(product id, variant id) pairs that a tool has shown in this episode."""
        self.touched: list[tuple[int, str | None]] = []
        """(row, option) pairs whose stock the agent has seen or run into since the turn began."""

    def spend_call(self) -> None:
        """Count a tool call. Raises RefusedError when the budget is spent."""
        if self.calls >= self.call_budget:
            raise RefusedError("the budget of tool calls is spent; finish with submit")
        self.calls += 1

    def row(self, product_id: str) -> int:
        """Find the catalog row of a product id. Raises RefusedError for an unknown id."""
        row = self.catalog.row(product_id)
        if row is None:
            raise RefusedError(f"there is no product with id {product_id!r}")
        return row

    def options(self, row: int) -> tuple[str, ...]:
        """List the variant ids of a product: three values of its type's option, the same for all products of the type.

        They are drawn from public randomness alone, so they say nothing about which one is wanted.
        """
        return options_of(self.key, self.catalog, self.catalog.type_of(row).name)

    def stock(self, row: int, option: str | None = None) -> int:
        """Count the units of a product, or of one option, that can be bought beyond those in the cart."""
        product_id = self.catalog.ids[row]
        left = int(self.catalog.stock[row]) - sum(
            n for (held, _), n in self.cart.items() if held == product_id
        )
        for shortage in self.shortages:
            if shortage.option in (None, option) and self.catalog.satisfies(row, shortage.constraints):
                left = min(left, shortage.total - self.held(shortage.constraints, shortage.option))
        return 0 if row in self.gone or self._sold_out(row) else max(0, left)

    def _sold_out(self, row: int) -> bool:
        if not self.sold_out:
            return False
        kind = self.catalog.type_of(row).name
        gone = self.sold_out.get(self.catalog.type_codes[kind])
        return gone is not None and bool(gone[row - self.catalog.type_rows(kind).start])

    def sell_out(self, type_name: str, share: float) -> None:
        """Mark a share of a type's products as sold out, drawn from public randomness whatever the customer wants."""
        self.sold_out[self.catalog.type_codes[type_name]] = sold_out_rows(
            self.key, self.catalog, type_name, share
        )

    def in_stock(self, rows: np.ndarray) -> np.ndarray:
        """Keep the rows (ascending) of which a unit can be bought; only a few need a look of their own."""
        keep = self.catalog.stock[rows] > 0
        for code, gone in self.sold_out.items():
            mine = self.catalog.type_code[rows] == code
            keep[mine] &= ~gone[rows[mine] - self.catalog.type_rows(self.catalog.types[code].name).start]
        special = set(self.gone) | {self.row(product_id) for product_id, _ in self.cart}
        for shortage in self.shortages:
            special.update(self.catalog.select(shortage.constraints).tolist())
        for row in special:
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                keep[at] = self.stock(row) > 0
        return rows[keep]

    def held(self, constraints: tuple[Constraint, ...], option: str | None) -> int:
        """Count the units in the cart of products that satisfy `constraints`, in `option` if given."""
        return sum(
            units
            for (product_id, variant), units in self.cart.items()
            if option in (None, variant) and self.catalog.satisfies(self.row(product_id), constraints)
        )

    def run_short(self, constraints: tuple[Constraint, ...], option: str | None, left: int) -> None:
        """Limit further purchases of these products to `left` units; units in the cart stay valid."""
        self.shortages.append(Shortage(constraints, option, left + self.held(constraints, option)))

    def search(
        self,
        query: str,
        filters: tuple[Constraint, ...],
        sort: Sequence[str],
        page: int,
        in_stock: bool = False,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of results, with distractors inserted, and the number of pages."""
        among = self.in_stock(self.catalog.select(filters)) if in_stock else None
        rows = self.shop.engine.search(query, filters, sort, self.axes.top_k, among)
        pages = max(1, -(-len(rows) // PAGE))
        wanted = rows[(page - 1) * PAGE : page * PAGE]
        key = [query, [c.to_list() for c in filters], ",".join(sort) or "relevance", page]
        shown = self._with_distractors(wanted, rows, [*key, "in stock"] if in_stock else key)
        return [self.show(row) for row in shown], pages

    def show(self, row: int) -> dict[str, Any]:
        """Return a product's record as tools show it, with its stock in this episode."""
        record = self.catalog.record(row)
        record["stock"] = self.stock(row)
        self.shown.add(record["product_id"])
        self.touched.append((row, None))
        return record

    def _with_distractors(self, wanted: Sequence[int], rows: Sequence[int], key: Any) -> list[int]:
        """Insert products that the search did not find, without dropping a result or moving it to another page."""
        share = self.axes.eps_rank
        if share <= 0 or not wanted:
            return list(wanted)
        random = rng("distractors", *self.key, digest(key))
        found = set(rows)
        shown: list[int] = []
        for row in wanted:
            while random.random() < share:
                decoy = self._decoy(row, found, random)
                if decoy is None:
                    break
                shown.append(decoy)
            shown.append(row)
        return shown

    def _decoy(self, row: int, found: set[int], random: Any) -> int | None:
        """Draw a product outside `found`, of the same type if possible; None in a tiny shop."""
        for pool in (self.catalog.type_rows(self.catalog.type_of(row).name), range(self.catalog.size)):
            for _ in range(8):
                decoy = pool[int(random.integers(len(pool)))]
                if decoy not in found:
                    found.add(decoy)
                    return int(decoy)
        return None

    def add(self, product_id: str, variant_id: str | None, quantity: int) -> None:
        """Put units into the cart. Raises RefusedError, changing nothing, when that cannot be done."""
        line = self._line(product_id, variant_id)
        self._set(line, self.cart.get(line, 0) + _units(quantity))

    def set_quantity(self, product_id: str, variant_id: str | None, quantity: int) -> None:
        """Change a line's quantity. Raises RefusedError when there is no such line or stock is short."""
        line = (product_id, variant_id)
        if line not in self.cart:
            raise RefusedError(_no_line(line))
        self._set(line, _units(quantity))

    def remove(self, product_id: str, variant_id: str | None) -> None:
        """Take a line out of the cart. Raises RefusedError when there is no such line."""
        if self.cart.pop((product_id, variant_id), None) is None:
            raise RefusedError(_no_line((product_id, variant_id)))
        self.changes += 1

    def _line(self, product_id: str, variant_id: str | None) -> tuple[str, str | None]:
        row = self.row(product_id)
        if variant_id is not None and variant_id not in self.options(row):
            raise RefusedError(
                f"product {product_id!r} has no variant {variant_id!r}; see catalog_get_variants"
            )
        return product_id, variant_id

    def _set(self, line: tuple[str, str | None], quantity: int) -> None:
        row = self.row(line[0])
        self.touched.append((row, line[1]))
        left, more = self.stock(row, line[1]), quantity - self.cart.get(line, 0)
        if more > left:
            raise RefusedError(
                f"{self.catalog.title(row)}{f' ({line[1]})' if line[1] else ''} is sold out"
                if left == 0
                else f"only {left} more of {self.catalog.title(row)} can be had, {more} asked for"
            )
        self.cart[line] = quantity
        self.changes += 1


def draw_sell_out(p_oos: float, wanted: int, random: np.random.Generator) -> float:
    """Draw the share of a type that sells out, so that each of `wanted` products does with probability `p_oos`."""
    return sell_out_share(p_oos, wanted) if random.random() < 1 - (1 - p_oos) ** wanted else 0.0


def sell_out_share(p_oos: float, wanted: int) -> float:
    """Return the share of a type that sells out where something does."""
    return min(MOST_GONE, p_oos / (1 - (1 - p_oos) ** wanted)) if p_oos else 0.0


def sold_out_rows(key: Sequence[Any], catalog: Catalog, type_name: str, share: float) -> np.ndarray:
    """Draw a mask of a type's rows that sell out, each with probability `share` whether it is wanted or not."""
    return rng("rush", *key, type_name).random(len(catalog.type_rows(type_name))) < share


def options_of(key: tuple[Any, ...], catalog: Catalog, type_name: str) -> tuple[str, ...]:
    """Draw three of a type's option values, in a meaningless order, from the task's public randomness."""
    code = catalog.type_codes[type_name]
    left, number = list(catalog.types[code].option.values), _order_numbers(key, len(catalog.types))[code]
    chosen = []
    for _ in range(min(VARIANTS, len(left))):
        number *= len(left)
        chosen.append(left.pop(int(number)))
        number %= 1
    return tuple(chosen)


@lru_cache(maxsize=1_024)
def _order_numbers(key: tuple[Any, ...], types: int) -> list[float]:
    """Draw a number in [0, 1) per type that encodes an order of its options, once per task."""
    return rng("options", *key).random(types).tolist()


def _units(quantity: int) -> int:
    if not 1 <= quantity <= MOST:
        raise RefusedError(f"a quantity is a whole number from 1 to {MOST}, not {quantity}")
    return quantity


def _no_line(line: tuple[str, str | None]) -> str:
    return f"the cart has no line for product {line[0]!r}" + (
        f" in variant {line[1]!r}" if line[1] else " without a variant"
    )
