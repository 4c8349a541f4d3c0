"""The world of one episode: stock, variants, cart and visits over the shared shop, which never changes (ISOLATED)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Constraint, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import digest, rng
from ecomlab.slots import SHIPPED, SlotType
from ecomlab.task import SellOut
from ecomlab.tool import RefusedError
from ecomlab.world.policy_book.search import BookSearch

PAGE = 5
"""Search results per page, not counting sponsored ones."""
MOST = 99
"""Maximum units of a cart line."""
OUT_OF_CALLS = "the budget of tool calls is spent; finish with submit"
LAST_CALLS = 2
"""Numbers of tool calls left at which the agent is reminded."""


class World:
    """Everything that the agent's tools read and change. `key` names the task's public randomness; records show the
    numbers of `limits`, beside the usual ones."""

    def __init__(
        self,
        shop: Shop,
        axes: Difficulty,
        key: Sequence[Any],
        given: Mapping[str, Any],
        calls: int,
        limits: Sequence[SlotType] = (),
    ) -> None:
        self.shop = shop
        self.catalog = shop.catalog
        self.axes = axes
        self.key = tuple(key)
        self.given = given
        """The task's public part: visits, today's date, orders and whatever else tools read."""
        self.limits = [limit for limit in limits if limit.name not in SHIPPED]
        self.visits = tuple(given.get("visits", ()))
        self.call_budget = calls
        self.calls = 0
        self._calls_told = False
        self.cart: dict[tuple[str, str | None], int] = {}
        self.returns: dict[tuple[str, str], int] = {}
        """Units returned in this episode, by (order id, line id)."""
        self.changes = 0
        """Number of changes by the agent; the customer looks at the world after a turn that made one."""
        self.gone = {self.row(product_id) for product_id in given.get("gone", ())}
        """Rows that cannot be bought, including those sold out from the start."""
        self.left: dict[tuple[int, str | None], int] = {}
        """Units left of what has sold out in this episode, by row and option (None: all of the product)."""
        self.kept: dict[tuple[str, str | None], int] = {}
        """Units in the cart when their product sold out, by line: they stay valid."""
        self.news: list[SellOut] = []
        """Sell-outs of which no tool has given notice."""
        self.shown: set[str] = set()
        """Product ids that a tool has shown in this episode."""
        self.told: dict[str, Any] = {}
        """Last clear answers of the agent to questions of the customer, by the slots of these."""
        self.agreed: list[Any] = []
        """What the customer has agreed to, as `ecomlab.customer.agreeing` reads it."""
        self.agreed_before: dict[tuple[str, str], tuple[Any, ...]] = {}
        """What they had agreed to before a return was started, by (order id, line id)."""
        self.shown_pairs: set[tuple[str, str]] = set()
        """(product id, variant id) pairs that a tool has shown in this episode."""
        self.touched: list[tuple[int, str | None]] = []
        """(row, option) pairs whose stock the agent has seen or run into since the turn began."""
        self.short: list[str] = []
        """Ids of products of which the agent tried to take more than there are since the turn began."""
        book = self.given.get("policies")
        self.book = BookSearch(book, self.catalog) if book else None
        """The search of the store's policy book; None where there is none."""

    def spend_call(self) -> None:
        """Count a tool call. Raises RefusedError when the budget is spent."""
        if self.calls >= self.call_budget:
            raise RefusedError(OUT_OF_CALLS)
        self.calls += 1

    def row(self, product_id: str) -> int:
        """Find the catalog row of a product id. Raises RefusedError for an unknown id."""
        row = self.catalog.row(product_id)
        if row is None:
            raise RefusedError(f"there is no product with id {product_id!r}")
        return row

    def options(self, row: int) -> tuple[str, ...]:
        """List the variant ids of a product: the option values in which it comes, in their type's order; none where it
        has no variants."""
        return self.catalog.options(row)

    def stock(self, row: int, option: str | None = None) -> int:
        """Count the units of a product, or of one option, that can be bought beyond those in the cart."""
        if row in self.gone or (option is not None and option not in self.options(row)):
            return 0
        product_id = self.catalog.ids[row]
        held = _units_of(product_id, self.cart)
        left = int(self.catalog.stock[row]) - held
        if (row, None) in self.left:
            left = min(left, self.left[row, None] + _units_of(product_id, self.kept) - held)
        if option is not None and (row, option) in self.left:
            line = (product_id, option)
            left = min(left, self.left[row, option] + self.kept.get(line, 0) - self.cart.get(line, 0))
        return max(0, left)

    def sell_out(self, sold: SellOut) -> None:
        """Let a sell-out happen, whatever the customer wants, and give notice of it."""
        ids = {product_id for product_id, _, _ in sold.left}
        self.left |= {(self.row(product_id), option): units for product_id, option, units in sold.left}
        self.kept |= {line: units for line, units in self.cart.items() if line[0] in ids}
        self.news.append(sold)

    def notice(self) -> str:
        """Write the news about stock and budget that the agent has not been told; empty if there is none."""
        said = [_stock_notice(self.news, self.catalog)]
        self.news = []
        if not self._calls_told and self.calls and self.call_budget - self.calls == LAST_CALLS:
            self._calls_told = True
            said.append("Two tool calls are left.")
        return " ".join(filter(None, said))

    def in_stock(self, rows: np.ndarray, option: str | None = None) -> np.ndarray:
        """Keep the rows (ascending) of which a unit can be bought, in `option` if given. Only a few need a look of
        their own."""
        keep = self.catalog.stock[rows] > 0
        held = {self.row(product_id) for product_id, _ in self.cart}
        for row in {*self.gone, *held, *(row for row, _ in self.left)}:
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                keep[at] = self.stock(row, option) > 0
        return rows[keep]

    def search(
        self,
        query: str,
        filters: tuple[Constraint, ...],
        sort: Sequence[str],
        page: int,
        in_stock: bool = False,
        option: str | None = None,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of results, with sponsored ones inserted, and the number of pages.

        With an `option`, which every found product must come in, stock is that of the variant.
        """
        among = self.in_stock(self.catalog.select(filters), option) if in_stock else None
        rows = self.shop.engine.search(query, filters, sort, self.axes.top_k, among)
        pages = max(1, -(-len(rows) // PAGE))
        wanted = rows[(page - 1) * PAGE : page * PAGE]
        key = [query, [c.to_list() for c in filters], ",".join(sort) or "relevance", page]
        key += ["in stock"] * in_stock + [option] * (option is not None)
        shown = self._with_distractors(wanted, rows, key)
        return [_marked(self.show(row, option), sponsored) for row, sponsored in shown], pages

    def show(self, row: int, option: str | None = None) -> dict[str, Any]:
        """Return a product's record as tools show it, with its stock in this episode: of the variant `option`, where it
        comes in that."""
        record = self.catalog.record(row)
        for limit in self.limits:
            record[limit.shown] = limit.as_shown(self.catalog.column(limit).item(row))
        option = option if option is not None and option in self.options(row) else None
        if option is not None:
            record["variant_id"] = option
            self.shown_pairs.add((record["product_id"], option))
        record["stock"] = self.stock(row, option)
        self.shown.add(record["product_id"])
        self.touched.append((row, option))
        return record

    def _with_distractors(
        self, wanted: Sequence[int], rows: Sequence[int], key: Any
    ) -> list[tuple[int, bool]]:
        """Insert products that the search did not find, marked True, without dropping a result or moving it to another
        page."""
        share = self.axes.eps_rank
        if share <= 0 or not wanted:
            return [(row, False) for row in wanted]
        random = rng("distractors", *self.key, digest(key))
        found = set(rows)
        shown: list[tuple[int, bool]] = []
        for row in wanted:
            while random.random() < share:
                decoy = self._decoy(row, found, random)
                if decoy is None:
                    break
                shown.append((decoy, True))
            shown.append((row, False))
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
            self.short.append(line[0])
            raise RefusedError(
                f"{self.catalog.title(row)}{f' ({line[1]})' if line[1] else ''} is sold out"
                if left == 0
                else f"only {left} more of {self.catalog.title(row)} can be had, {more} asked for"
            )
        self.cart[line] = quantity
        self.changes += 1


def _units_of(product_id: str, cart: Mapping[tuple[str, str | None], int]) -> int:
    return sum(units for (held, _), units in cart.items() if held == product_id)


def _stock_notice(news: Sequence[SellOut], catalog: Catalog) -> str:
    """Write the news of sell-outs; empty if there is none."""
    names = dict.fromkeys(
        catalog.types[catalog.type_codes[name]].plural for sold in news for name in sold.types
    )
    if not names:
        return ""
    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    few = any(units for sold in news for _, _, units in sold.left)
    return f"Some {listed} have sold out{' or are down to the last few' if few else ''}."


def _marked(record: dict[str, Any], sponsored: bool) -> dict[str, Any]:
    return {"sponsored": True, **record} if sponsored else record


def _units(quantity: int) -> int:
    if not 1 <= quantity <= MOST:
        raise RefusedError(f"a quantity is a whole number from 1 to {MOST}, not {quantity}")
    return quantity


def _no_line(line: tuple[str, str | None]) -> str:
    return f"the cart has no line for product {line[0]!r}" + (
        f" in variant {line[1]!r}" if line[1] else " without a variant"
    )
