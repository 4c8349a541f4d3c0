"""The visit history: clusters of similar products, each made before one of its products is wanted.

Whatever an agent can read must not tell which visit is wanted, nor which type (NOT GAMEABLE, SILENT). So the order of
the draws is: what will be said of an item, by slot name (`Outline`); a cluster of products that differ in it; the
wanted one, uniformly from the cluster; the bounds, so that every product which fits the rest of what is said satisfies
them. Unwanted types go the same way, with customers who do not exist.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.seeding import rng
from ecomlab.slots import slot_type
from ecomlab.task import Place
from ecomlab.world.cart import column_of, is_exact, keys_of

POOL = 512
"""Most rows of a type that are looked at, so that a large catalog costs no more than a small one."""
VISITS = 5
"""Visits per past order of the history axis."""
CLUSTER = 8
"""Visits per product type in the history, for wanted and unwanted types alike."""
MOST_SHARED = 3
"""Most options that the visits of a type are chosen to share."""
ENOUGH = 3 * CLUSTER
"""Products among which a cluster of different ones is found, as good as always."""
MOST_WITHHELD = 9
"""Most slots that an opening leaves out: more could not be asked for in a conversation."""

Usable = Callable[[np.ndarray], np.ndarray]
"""Function from rows to those of them that may be wanted."""


@dataclass(frozen=True)
class Outline:
    """What a customer will say of an item, before it is known which product it is."""

    type: str
    names: tuple[str, ...]
    """Slots beside the type, in the customer's order."""
    hidden: frozenset[str] = frozenset()
    """Those of them that the opening leaves out."""
    option_bits: int | None = None
    """Options of which all of its products come in the same few, whether one is wanted or not; 0: they have no
    variants. None: any."""

    @property
    def exact(self) -> list[str]:
        """Slots that a product has or has not, stated and hidden."""
        return [name for name in self.names if is_exact(name)]

    @property
    def told(self) -> list[str]:
        """The stated ones of these."""
        return [name for name in self.exact if name not in self.hidden]


@dataclass(frozen=True)
class Cluster:
    """Visits of one type, any two of which differ in what will be said, and the one that is wanted."""

    outline: Outline
    rows: tuple[int, ...]
    row: int

    def alike(self, shop: Shop) -> list[int]:
        """List the visits that fit what is stated but for bounds, the wanted one among them."""
        keys = keys_of(shop.catalog, np.array(self.rows), self.outline.told)
        mine = keys[self.rows.index(self.row)]
        return [row for row, key in zip(self.rows, keys.tolist(), strict=True) if key == mine]


def left_out(
    places: Iterable[Place],
    p_missing: float,
    random: np.random.Generator,
    most: int = MOST_WITHHELD,
    sooner: Callable[[str], bool] = bool,
) -> set[Place]:
    """Draw the slots that an opening leaves out: each with the same probability, at most `most` of them, those with
    `sooner` names before others."""
    listed = list(places)
    hits = [
        place for place, x in zip(listed, random.random(len(listed)).tolist(), strict=True) if x < p_missing
    ]
    mixed = [hits[i] for i in random.permutation(len(hits)).tolist()]
    return set(sorted(mixed, key=lambda place: not sooner(place[1]))[: max(0, most)])


def draw_cluster(
    outline: Outline, shop: Shop, random: np.random.Generator, usable: Usable | None = None
) -> list[int]:
    """Draw up to `CLUSTER` products of a type, all well in stock, any two different in what will be said.

    Where something that tells products apart is hidden, they come in pairs that only this tells apart, as far as there
    are any: whichever is wanted, what is stated will not do.
    """
    pool = _pool(outline, shop, random)
    pool = usable(pool) if usable else pool
    if not len(pool):
        return []
    full = keys_of(shop.catalog, pool, outline.exact).tolist()
    paired = outline.told != outline.exact
    told = keys_of(shop.catalog, pool, outline.told).tolist() if paired else full
    mates: dict[int, list[int]] = {}
    for at, key in enumerate(told if paired else ()):
        mates.setdefault(key, []).append(at)
    chosen: list[int] = []
    alone: list[int] = []
    taken: set[int] = set()
    for at in range(len(pool)):
        if len(chosen) >= CLUSTER:
            break
        if full[at] in taken:
            continue
        others = (o for o in mates.get(told[at], ()) if full[o] != full[at] and full[o] not in taken)
        mate = next(others, None) if paired else at
        if mate is None:
            alone.append(at)
            continue
        taken |= {full[at], full[mate]}
        chosen += [at] if mate == at else [at, mate]
    for at in alone:
        if full[at] not in taken:
            taken.add(full[at])
            chosen.append(at)
    return pool[chosen[:CLUSTER]].tolist()


def visited_types(count: int, history: int, steps: int = 0) -> int:
    """Count the types in the visit history: the wanted ones, at least one other and one for each step of thought that
    may stand on a visit, more with a longer order history."""
    return max(count + 1 + steps, VISITS * history // CLUSTER)


def history_of(
    wanted: Sequence[Sequence[int]], others: Iterable[Sequence[int]], count: int
) -> list[list[int]]:
    """Choose `count` clusters, those of `wanted` types first, all of one size, where the shop has them: how many visits
    a type has tells nothing."""
    size, chosen, smaller = min(map(len, wanted)), list(wanted), list[Sequence[int]]()
    for rows in filter(None, others):
        if len(chosen) >= count:
            break
        (chosen if len(rows) >= size else smaller).append(rows)
    chosen += sorted(smaller, key=len, reverse=True)[: count - len(chosen)]
    return [list(rows[: min(map(len, chosen))]) for rows in chosen]


def visits_of(clusters: Iterable[Sequence[int]], key: Sequence[Any], shop: Shop) -> list[str]:
    """Return the ids of all visits in random order."""
    rows = np.array([row for rows in clusters for row in rows], int)
    mixed = rows[rng("visits", *key).permutation(len(rows))]
    return [packed.decode() for packed in shop.catalog.packed_ids[mixed].tolist()]


def half_gone(cluster: Cluster, shop: Shop, random: np.random.Generator) -> list[int]:
    """Draw the half of a cluster that is sold out: the wanted product, then those that fit what is stated, then any."""
    alike = set(cluster.alike(shop))
    rows = [cluster.rows[i] for i in random.permutation(len(cluster.rows)).tolist()]
    rows.sort(key=lambda row: (row != cluster.row, row not in alike))
    return rows[: math.ceil(len(rows) / 2)]


def values_of(cluster: Cluster, shop: Shop, random: np.random.Generator) -> dict[str, Any]:
    """Draw the values of a wanted product's slots, the type first.

    A bound lies at a random distance from the last product that fits what is stated exactly, whichever of these is
    wanted; from the wanted product it would name it.
    """
    catalog = shop.catalog
    alike = np.array(cluster.alike(shop))
    values: dict[str, Any] = {"type": cluster.outline.type}
    for name in cluster.outline.names:
        if is_exact(name):
            values[name] = exact_value(cluster.row, name, shop)
        elif (limit := slot_type(name)).is_limit:
            values[name] = limit.drawn_beyond(limit.edge(catalog.column(limit)[alike]), random)
    return values


def exact_value(row: int, name: str, shop: Shop) -> str:
    """Look up a product's brand, feature or attribute."""
    catalog = shop.catalog
    if name == "brand":
        return catalog.brands[catalog.brand_code.item(row)]
    if name == "feature":
        return catalog.features[catalog.feature_code.item(row)]
    return catalog.attributes(row)[name.removeprefix("attr:")]


def wanted_rows(kind: str, catalog: Catalog) -> np.ndarray:
    """List the rows of a type among which a wanted one is drawn: all, or those of a real catalog that may be wanted,
    which may be few."""
    span = catalog.type_rows(kind)
    rows = np.arange(span.start, span.stop)
    return rows if catalog.drawable is None else rows[catalog.stock[rows] >= catalog.least_stock(kind)]


def _pool(outline: Outline, shop: Shop, random: np.random.Generator) -> np.ndarray:
    """Draw rows of a type, in random order, that are well in stock and have every attribute that will be said."""
    catalog, able = shop.catalog, wanted_rows(outline.type, shop.catalog)
    rows = able
    if len(able) > POOL:
        at = np.sort(random.integers(0, len(able), POOL))
        rows = able[at[np.append(True, at[1:] != at[:-1])]]  # np.unique takes five times as long
    rows = rows[random.permutation(len(rows))]
    rows = rows[catalog.stock[rows] >= catalog.least_stock(outline.type)]
    for name in outline.exact:
        rows = rows[column_of(catalog, name)[rows] >= 0]
    return rows if outline.option_bits is None else _that_share(rows, outline.option_bits, catalog, random)


def _that_share(rows: np.ndarray, bits: int, catalog: Catalog, random: np.random.Generator) -> np.ndarray:
    """Keep the rows that come in the same few of these options; in fewer where too few products do, and without any in
    those that have none."""
    own = catalog.option_bits[rows]
    if not bits:
        return rows[own == 0] if (own == 0).sum() >= ENOUGH else rows
    left = random.permutation(np.flatnonzero([bits >> at & 1 for at in range(bits.bit_length())])).tolist()
    left = left[:MOST_SHARED]
    while True:
        wanted = sum(1 << at for at in left)
        shared = rows[own & wanted == wanted]
        if len(shared) >= ENOUGH or len(left) == 1:
            return shared
        left.pop()
