"""A catalog's products as columns, and the rows that satisfy constraints."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Final, TypeVar, cast

import numpy as np

from ecomlab.catalog.names import Packed, packed
from ecomlab.catalog.schema import OPTION, Constraint, ProductType, type_from_json, type_to_json
from ecomlab.seeding import canonical
from ecomlab.slots import NO_PRICE, NO_RATING, SlotType, slot_type

_MISSING: Final = -2  # code of a value outside the vocabulary; -1 marks a product without the attribute
PLENTY: Final = 8  # units of a product that may be wanted: more than any quantity that is asked for
ENOUGH: Final = 12  # products that make a type of a real catalog one that tasks are about
CHEAPEST: Final = 64  # of a type: so many that one of them is in stock as good as always, whatever sells out
_COLUMNS: Final = (
    *("packed_ids", "type_code", "brand_code", "feature_code", "price_cents"),
    *("rating_tenths", "reviews", "days", "stock", "option_bits"),
)

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _remembered(method: _Method) -> _Method:
    """Remember the last 4,096 answers of a method, for each object apart."""
    return cast(_Method, cached_property(lambda self: lru_cache(4_096)(partial(method, self))))


class Ids(Sequence[str]):
    """Product ids as a sequence of strings over a packed byte array: 2M of them take 14 MB."""

    def __init__(self, packed: np.ndarray) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]  # no slices
        return self._packed.item(row).decode()


@dataclass(frozen=True, eq=False, repr=False)
class Catalog:
    """`size` products, one row each, rows of a type contiguous; its arrays are read-only.

    Codes index `types`, `brands`, `features` and `attr_values[name]`; -1 marks a product without that attribute. Bit i
    of `option_bits` is set where a product comes in value i of its type's option; 0: it has no variants. A real catalog
    has `titles` of its source and may lack prices (`NO_PRICE`) and ratings (`NO_RATING`). Raises ValueError when
    columns differ in length or rows of a type are scattered.
    """

    types: tuple[ProductType, ...]
    brands: Sequence[str]  # a tuple; packed where there are many, as are features
    features: Sequence[str]
    attr_values: Mapping[str, tuple[str, ...]]
    packed_ids: np.ndarray  # ASCII bytes
    type_code: np.ndarray  # int16; int32 in real catalogs with more than 32,767 types
    brand_code: np.ndarray  # int16; int32 in real catalogs, as are features
    feature_code: np.ndarray  # int16
    price_cents: np.ndarray  # int32
    rating_tenths: np.ndarray  # int8
    reviews: np.ndarray  # int32
    days: np.ndarray  # int8
    stock: np.ndarray  # int16
    option_bits: np.ndarray  # int64
    attr: Mapping[str, np.ndarray] = field(default_factory=dict)  # name -> int16 or int32
    titles: Packed | None = None  # None where titles are composed of brand, feature and type
    drawable: tuple[str, ...] | None = None  # types that tasks may be about; None for all

    def __post_init__(self) -> None:
        for name in ("brands", "features"):
            object.__setattr__(self, name, packed(getattr(self, name)))
        for name, column in self.columns().items():
            if len(column) != self.size:
                raise ValueError(f"column {name} has {len(column)} rows, type_code has {self.size}")
            column.setflags(write=False)
        if np.any(np.diff(self.type_code) < 0):
            raise ValueError("rows are not sorted by type; sort every column by type_code first")
        if self.titles is not None and len(self.titles) != self.size:
            raise ValueError(f"there are {len(self.titles)} titles for {self.size} products")

    def columns(self) -> dict[str, np.ndarray]:
        """Return every column by name, as stored and as covered by the fingerprint."""
        fixed = {name: getattr(self, name) for name in _COLUMNS}
        return fixed | {f"attr.{name}": column for name, column in sorted(self.attr.items())}

    @property
    def size(self) -> int:
        return len(self.type_code)

    @cached_property
    def ids(self) -> Ids:
        """Product ids by row."""
        return Ids(self.packed_ids)

    @cached_property
    def id_order(self) -> np.ndarray:
        """Rows in the order of their ids: int64 (size,). Raises ValueError where two products share an id."""
        order = np.argsort(self.packed_ids)
        if np.any(self.packed_ids[order[1:]] == self.packed_ids[order[:-1]]):
            raise ValueError("two products share an id")
        return order

    @_remembered
    def row(self, product_id: str) -> int | None:
        """Find the row of a product id; None for an unknown id."""
        if not product_id.isascii():
            return None
        wanted = product_id.encode()
        at = int(self.packed_ids.searchsorted(wanted, sorter=self.id_order))
        row = int(self.id_order[min(at, self.size - 1)])
        return row if self.packed_ids.item(row) == wanted else None

    def rows_of(self, product_ids: Iterable[str]) -> np.ndarray:
        """Find the rows of product ids in their order, without unknown ones."""
        return self._rows_of(tuple(product_ids))

    @_remembered
    def _rows_of(self, product_ids: tuple[str, ...]) -> np.ndarray:
        return np.array([row for row in map(self.row, product_ids) if row is not None], np.int64)

    @cached_property
    def type_codes(self) -> dict[str, int]:
        """Indices in `types` by type name."""
        return {kind.name: code for code, kind in enumerate(self.types)}

    def type_rows(self, name: str) -> range:
        """Return the rows of a type; empty for an unknown name."""
        first, last = self._type_span.get(name, (0, 0))
        return range(first, last)

    @_remembered
    def cheapest_of(self, name: str) -> np.ndarray:
        """List the rows of a type's `CHEAPEST` cheapest products in stock, from the cheapest on; ties in any order."""
        of_type = self.type_rows(name)
        there = slice(of_type.start, of_type.stop)
        prices = np.where(self.stock[there] > 0, self.price_cents[there], NO_PRICE)
        # values first: numpy selects them faster than their places
        most = np.partition(prices, CHEAPEST)[CHEAPEST] if len(prices) > CHEAPEST else NO_PRICE
        rows = np.flatnonzero(prices <= most)
        rows = of_type.start + rows[np.argsort(prices[rows])][:CHEAPEST]
        rows = rows[self.stock[rows] > 0]
        rows.flags.writeable = False
        return rows

    def type_of(self, row: int) -> ProductType:
        return self.types[self.type_code.item(row)]

    @_remembered
    def title(self, row: int) -> str:
        """Compose "{brand} {feature} {type}": "GreenLeaf Eco-Friendly Phone Charger". Products may share a title.

        Of a real product this is its short name, as people call it; what its source calls it is its `listing`.
        """
        kind = self.types[self.type_code.item(row)].name
        return " ".join(filter(None, (self.brand(row), self.feature(row), kind)))

    def listing(self, row: int) -> str | None:
        """Return the title that a real product has in its source; None for a generated one."""
        return None if self.titles is None else self.titles[row]

    def brand(self, row: int) -> str | None:
        """Return a product's brand; None where it has none."""
        code = self.brand_code.item(row)
        return self.brands[code] if code >= 0 else None

    def feature(self, row: int) -> str | None:
        """Return what tells a product from others of its brand and type, as people say it; None where nothing does."""
        code = self.feature_code.item(row)
        return self.features[code] if code >= 0 else None

    def options(self, row: int) -> tuple[str, ...]:
        """List the option values in which a product comes, in their type's order; none where it has no variants."""
        return self.options_in(self.type_of(row).name, self.option_bits.item(row))

    def options_in(self, name: str, bits: int) -> tuple[str, ...]:
        """List the values of a type's option whose bits are set."""
        values = self.types[self.type_codes[name]].option.values
        return tuple(value for at, value in enumerate(values) if bits >> at & 1)

    def shared_options(self, rows: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """List the option values in which each of these products of one type comes."""
        if not len(rows):
            return ()
        bits = int(np.bitwise_and.reduce(self.option_bits[np.asarray(rows)]))
        return self.options_in(self.type_of(int(rows[0])).name, bits)

    @_remembered
    def _bits_of(self, option: str) -> np.ndarray:
        """Return the bit of an option value by type, 0 where a type has no such value: int64 (types,)."""
        return np.array(
            [
                sum(1 << at for at, value in enumerate(kind.option.values) if value == option)
                for kind in self.types
            ],
            np.int64,
        )

    @cached_property
    def drawable_types(self) -> tuple[ProductType, ...]:
        """Types that tasks may be about: all of them, or those that a real catalog knows well enough."""
        if self.drawable is None:
            return self.types
        return tuple(self.types[self.type_codes[name]] for name in self.drawable)

    @cached_property
    def stocked_types(self) -> tuple[ProductType, ...]:
        """Those of which enough is in stock for tasks about what can be bought: all in a generated catalog."""
        if self.drawable is None:
            return self.types
        return tuple(one for one in self.drawable_types if self.stocked(one.name) >= ENOUGH)

    def stocked(self, name: str, units: int = 1) -> int:
        """Count the products of a type of which so many units are in stock."""
        rows = self.type_rows(name)
        return int((self.stock[rows.start : rows.stop] >= units).sum())

    def least_stock(self, name: str) -> int:
        """Return the least units of a product of a type that may be wanted: `PLENTY`, or one where too few products of
        a real catalog have so many; quantities then go up to what there is."""
        return PLENTY if self.drawable is None or self.stocked(name, PLENTY) >= ENOUGH else 1

    def has(self, limit: SlotType) -> bool:
        """Tell whether any product has the number that a customer may limit."""
        return self._has(limit.column, limit.missing)

    @_remembered
    def _has(self, column: str, missing: int | None) -> bool:
        return missing is None or bool((getattr(self, column) != missing).any())

    def column(self, limit: SlotType) -> np.ndarray:
        """Return the numbers of products that a customer may limit, by row."""
        column: np.ndarray = getattr(self, limit.column)
        return column

    def attributes(self, row: int) -> dict[str, str]:
        """Return a product's attributes by name, in its type's order, without the option of its variants."""
        values = {}
        for name, code_at, names in self._attributes_of[self.type_code.item(row)]:
            code = code_at(row)
            if code >= 0:
                values[name] = names[code]
        return values

    def record(self, row: int) -> dict[str, Any]:
        """Return a product as a tool shows it: dollars, stars, plain JSON values, null for what is not known."""
        cents, tenths = self.price_cents.item(row), self.rating_tenths.item(row)
        listing = self.listing(row)
        return {
            "product_id": self.packed_ids.item(row).decode(),
            "title": self.title(row),
            **({} if listing is None else {"listing": listing}),
            "brand": self.brand(row),
            "type": self.types[self.type_code.item(row)].name,
            "price": None if cents == NO_PRICE else cents / 100,
            "rating": None if tenths == NO_RATING else tenths / 10,
            "ship_days": self.days.item(row),
            "stock": self.stock.item(row),
            "attributes": self.attributes(row),
        }

    @cached_property
    def _type_span(self) -> dict[str, tuple[int, int]]:
        edges = np.searchsorted(self.type_code, np.arange(len(self.types) + 1)).tolist()
        return {kind.name: (edges[code], edges[code + 1]) for code, kind in enumerate(self.types)}

    @cached_property
    def _attributes_of(self) -> list[list[tuple[str, Any, tuple[str, ...]]]]:
        return [
            [
                (name, self.attr[name].item, self.attr_values[name])
                for name in (a.name for a in kind.attributes)
            ]
            for kind in self.types
        ]

    @_remembered
    def _field(self, name: str) -> tuple[np.ndarray, Mapping[str, int] | Packed | None] | None:
        """Look up the column of a field and the codes of its names (None: it holds numbers); None for no such field."""
        coded: dict[str, tuple[np.ndarray, Sequence[str]]] = {
            "type": (self.type_code, [kind.name for kind in self.types]),
            "brand": (self.brand_code, self.brands),
            "feature": (self.feature_code, self.features),
        } | {f"attr:{name}": (column, self.attr_values[name]) for name, column in self.attr.items()}
        if name in coded:
            column, names = coded[name]
            return column, names if isinstance(names, Packed) else {n: code for code, n in enumerate(names)}
        limit = slot_type(name)
        return (self.column(limit), None) if limit.column else None

    def satisfies(self, row: int, constraints: Iterable[Constraint]) -> bool:
        """Tell whether a product satisfies every constraint, in O(len(constraints))."""
        for constraint in constraints:  # noqa: SIM110  `all` of a generator takes half as long again
            if not self._holds(constraint, row):
                return False
        return True

    def select(
        self, constraints: Iterable[Constraint], rows: Iterable[int] | np.ndarray | None = None
    ) -> np.ndarray:
        """Select the rows that satisfy every constraint, in their order, of `rows` (default: all, ascending)."""
        conditions = list(constraints)
        if rows is None:
            spans = [self.type_rows(str(c.value)) for c in conditions if c.field == "type"]
            rows = min(spans, key=len, default=range(self.size))
        if isinstance(rows, range) and rows.step == 1 and rows.start >= 0:
            return rows.start + np.flatnonzero(
                self._kept(conditions, slice(rows.start, rows.stop), len(rows))
            )
        chosen = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows), np.int64)
        return chosen[self._kept(conditions, chosen, len(chosen))]

    def _kept(self, conditions: Sequence[Constraint], where: slice | np.ndarray, count: int) -> np.ndarray:
        """Tell which of `count` rows satisfy every condition: bool (count,)."""
        keep = np.ones(count, bool)
        for constraint in conditions:
            keep &= self._holds(constraint, where)
        return keep

    def _holds(self, constraint: Constraint, where: int | slice | np.ndarray) -> Any:
        """Tell whether a constraint holds of one row, or of which rows: a bool, or bool (rows,)."""
        wanted: Any = constraint.value
        if constraint.field == OPTION:
            return (self.option_bits[where] & self._bits_of(str(wanted))[self.type_code[where]]) != 0
        known = self._field(constraint.field)
        if known is None:
            return False
        column, codes = known
        values: Any = (
            column.item(where) if isinstance(where, int) else column[where]
        )  # an item is compared faster
        if codes is None:
            return values <= wanted if constraint.op == "<=" else values >= wanted
        if constraint.op == "==":
            return values == codes.get(wanted, _MISSING)
        among = [codes.get(name, _MISSING) for name in wanted]
        return (values in among if isinstance(values, int) else np.isin(values, among)) == (
            constraint.op == "in"
        )

    @cached_property
    def vocabulary(self) -> dict[str, Any]:
        """Everything but columns and titles, as JSON, with the digest of the titles."""
        own = {} if self.titles is None else {"titles": _digest(self.titles)}
        limited = {} if self.drawable is None else {"drawable": list(self.drawable)}
        return {
            "types": [type_to_json(kind) for kind in self.types],
            "brands": list(self.brands),
            "features": list(self.features),
            "attr_values": {name: list(values) for name, values in self.attr_values.items()},
            **own,
            **limited,
        }

    @cached_property
    def fingerprint(self) -> str:
        """Digest of vocabulary and columns, equal for equal content in every process and on every machine."""
        state = hashlib.blake2b(canonical(self.vocabulary), digest_size=16)
        for name, column in self.columns().items():
            state.update(canonical([name, column.dtype.newbyteorder("<").str, len(column)]))
            state.update(np.ascontiguousarray(column.astype(column.dtype.newbyteorder("<"), copy=False)).data)
        return state.hexdigest()

    @staticmethod
    def from_columns(
        vocabulary: Mapping[str, Any],
        columns: Mapping[str, np.ndarray],
        titles: Packed | None = None,
    ) -> "Catalog":
        """Restore a catalog from its `vocabulary`, `columns()` and titles."""
        fixed = {name: columns[name] for name in _COLUMNS}
        attr = {name[5:]: column for name, column in columns.items() if name.startswith("attr.")}
        return Catalog(
            types=tuple(type_from_json(kind) for kind in vocabulary["types"]),
            brands=vocabulary["brands"],
            features=vocabulary["features"],
            attr_values={name: tuple(values) for name, values in vocabulary["attr_values"].items()},
            attr=attr,
            titles=titles,
            drawable=tuple(vocabulary["drawable"]) if "drawable" in vocabulary else None,
            **fixed,
        )

    def __repr__(self) -> str:
        return f"<Catalog of {self.size} products, {len(self.types)} types, {self.fingerprint[:8]}>"


def _digest(titles: Iterable[str]) -> str:
    """Digest titles in their order."""
    state = hashlib.blake2b(digest_size=16)
    for title in titles:
        state.update(title.encode() + b"\0")
    return state.hexdigest()
