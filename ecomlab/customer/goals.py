"""Drawing what a customer wants: products, described by slots, and the visits that hide them among decoys."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng
from ecomlab.task import Goal, TaskError, TaskKey
from ecomlab.world.cart import constraints_of
from ecomlab.world.state import options_of

PLENTY = 8
"""Least stock of a product that may be wanted: more than any quantity that is asked for."""
TRIES = 64
POOL = 512
"""Most rows of a type among which a similar product is sought."""
VISITS = 5
"""Visits per past order of the history axis."""
CLUSTER = 8
"""Visits per product type in the history, for wanted and unwanted types alike."""


def draw_row(
    rows: Sequence[int] | np.ndarray,
    shop: Shop,
    random: np.random.Generator,
    avoid: Sequence[Constraint] = (),
) -> int | None:
    """Draw a product of these rows that is well in stock and does not satisfy `avoid`; None after `TRIES` failures."""
    catalog = shop.catalog
    if len(rows) <= TRIES:  # then each is looked at once
        tried = random.permutation(len(rows)).tolist()
    else:
        tried = (random.random(TRIES) * len(rows)).astype(int).tolist()
    for i in tried:
        row = int(rows[i])
        if catalog.stock.item(row) >= PLENTY and not (avoid and catalog.satisfies(row, avoid)):
            return row
    return None


def bounded(rows: range, random: np.random.Generator) -> range:
    """Draw at most `POOL` consecutive ones of these rows, so that a large catalog costs no more than a small one."""
    start = int(random.random() * max(1, len(rows) - POOL + 1))
    return rows[start : start + POOL]


def draw_item(
    type_name: str,
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Draw a wanted product and its slots: m constraints (the type is the first), an option, a quantity."""
    row = draw_row(shop.catalog.type_rows(type_name), shop, random)
    if row is None:
        raise TaskError(
            f"no {type_name} of this shop of {shop.catalog.size} products is well in stock; load a larger shop"
        )
    slots = describe(shop, row, axes.constraints, random)
    if axes.cart.p_option and random.random() < axes.cart.p_option:
        slots["option"] = other_option(type_name, key, shop, random)
    if random.random() < axes.cart.p_quantity:
        slots["quantity"] = int(random.integers(2, 5))
    return {"slots": slots, "row": row}


def describe(shop: Shop, row: int, constraints: int, random: np.random.Generator) -> dict[str, Any]:
    """Describe a product by slots: type, brand, feature, then its other properties in random order."""
    catalog = shop.catalog
    slots: dict[str, Any] = {
        "type": catalog.type_of(row).name,
        "brand": catalog.brands[catalog.brand_code.item(row)],
        "feature": catalog.features[catalog.feature_code.item(row)],
    }
    if constraints <= len(slots):
        return dict(list(slots.items())[: max(1, constraints)])
    values: dict[str, Any] = {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    values["price"] = 500 * math.ceil(catalog.price_cents.item(row) * 1.1 / 500)
    values["rating"] = catalog.rating_tenths.item(row) // 5 * 5
    values["days"] = catalog.days.item(row)
    names = list(values)
    for i in random.permutation(len(names))[: constraints - len(slots)].tolist():
        slots[names[i]] = values[names[i]]
    return slots


def that_fit(product_ids: Sequence[str], slots: Mapping[str, Any], shop: Shop) -> list[int]:
    """List the rows of those of these products that satisfy the slots."""
    rows = [row for row in map(shop.catalog.row, product_ids) if row is not None]
    return [row for row in rows if shop.catalog.satisfies(row, constraints_of(slots["type"], slots))]


def slot_values(shop: Shop, row: int, names: Sequence[str], like: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return these slots with another product's values; None where it lacks one. Bounds keep their values."""
    record = shop.catalog.record(row)
    values: dict[str, Any] = {}
    for name in names:
        if name == "brand":
            values[name] = record["brand"]
        elif name == "feature":
            values[name] = shop.catalog.features[shop.catalog.feature_code[row]]
        elif name.startswith("attr:"):
            if name[5:] not in record["attributes"]:
                return None
            values[name] = record["attributes"][name[5:]]
        else:
            values[name] = like[name]
    return values


def other_option(
    type_name: str, key: TaskKey, shop: Shop, random: np.random.Generator, than: str | None = None
) -> str:
    """Pick one of the options that products of the type come in during this task, not `than`."""
    options = [option for option in options_of(key, shop.catalog, type_name) if option != than]
    return pick(random, options)


def alternative(slots: Mapping[str, Any], shop: Shop, random: np.random.Generator) -> dict[str, Any] | None:
    """Draw another product of the type, described by brand and feature, that is not what was wanted."""
    avoid = constraints_of(slots["type"], {"brand": slots["brand"]} if "brand" in slots else slots)
    row = draw_row(shop.catalog.type_rows(slots["type"]), shop, random, avoid)
    return None if row is None else describe(shop, row, 3, random)


def draw_visits(
    items: Sequence[Mapping[str, Any]],
    told: Sequence[Collection[str]],
    unwanted: Sequence[str],
    axes: Difficulty,
    key: Sequence[Any],
    shop: Shop,
) -> list[str]:
    """Draw products that the customer looked at lately, shuffled: up to eight of each wanted type, as many of others.

    The list must not tell wanted from unwanted (NOT GAMEABLE, SILENT). So the clusters of unwanted types are made in
    the same way, around an invented wish, and all products are well in stock. Where a slot that identifies a product is
    withheld, its cluster holds another that fits everything stated, if there is one among `POOL` rows.
    """
    random = rng("visits", *key)
    catalog = shop.catalog
    wanted = [
        _cluster(item["row"], item["slots"], stated, shop, random)
        for item, stated in zip(items, told, strict=True)
    ]
    size = min(map(len, wanted))  # of one size, so that the number of visits to a type tells nothing
    clusters = [found[:size] for found in wanted]
    count = max(len(items) + 1, VISITS * axes.history // CLUSTER)
    for name in unwanted:
        if len(clusters) == count:
            break
        row = draw_row(catalog.type_rows(name), shop, random)
        if row is not None:
            slots = describe(shop, row, axes.constraints, random)
            kept = (random.random(len(slots)) >= axes.p_missing).tolist()
            stated = [n for n, keep in zip(slots, kept, strict=True) if keep or n == "type"]
            found = _cluster(row, slots, stated, shop, random)
            if len(found) >= size:
                clusters.append(found[:size])
    rows = [row for found in clusters for row in found]
    shuffled = np.asarray(rows)[random.permutation(len(rows))]
    return [packed.decode() for packed in catalog.packed_ids[shuffled].tolist()]


def half_gone(
    visits: Sequence[str], key: Sequence[Any], shop: Shop, rank: Callable[[int], Any] = lambda row: 0
) -> list[str]:
    """Draw which of these visits are sold out: half of each type's, those of least rank first, ties at random."""
    catalog = shop.catalog
    rows = [row for row in map(catalog.row, visits) if row is not None]
    # Shuffled again: if the first of the list sold out, those that can replace them would come late in it (SILENT).
    rows = [rows[i] for i in rng("gone", *key).permutation(len(rows)).tolist()]
    gone: list[str] = []
    for code in dict.fromkeys(catalog.type_code[rows].tolist()):
        mine = sorted((row for row in rows if catalog.type_code.item(row) == code), key=rank)
        gone += [catalog.ids[row] for row in mine[: math.ceil(len(mine) / 2)]]
    return sorted(gone)


def _cluster(
    row: int, slots: Mapping[str, Any], stated: Collection[str], shop: Shop, random: np.random.Generator
) -> list[int]:
    """Draw others of a product's type that are not meant; one fits everything stated, where a slot is withheld."""
    catalog = shop.catalog
    pool = bounded(catalog.type_rows(slots["type"]), random)
    meant = constraints_of(slots["type"], slots)[1:]  # every row of the pool is of the right type
    withheld = [c for c in meant if c.field not in stated]
    found = [row]
    if withheld:
        fitting = catalog.select([c for c in meant if c.field in stated], pool)
        other = draw_row(fitting, shop, random, avoid=withheld)
        if other is not None:
            found.append(other)
    # Drawn all at once: a call of the generator costs more than judging a row. A small shop may not have enough.
    for other in random.integers(pool.start, pool.stop, 3 * CLUSTER).tolist():
        if len(found) == CLUSTER:
            break
        usable = other not in found and catalog.stock.item(other) >= PLENTY
        if usable and not catalog.satisfies(other, meant):
            found.append(other)
    return found


def withhold(goal: Goal, axes: Difficulty, random: np.random.Generator, never: Collection[str] = ()) -> Goal:
    """Draw the slots that the opening leaves out, each with probability p_missing, but never a type or those named."""
    drawn = (random.random(len(goal.slots)) < axes.p_missing).tolist()
    left_out = {
        place
        for place, hit in zip(goal.slots, drawn, strict=True)
        if hit and place[1] not in ("type", *never)
    }
    return replace(goal, withheld=goal.withheld | left_out)
