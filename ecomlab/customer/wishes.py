"""Drawing what a customer wants: products, described in slots, and the visits that hide them among decoys."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.core import TaskError
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import rng
from ecomlab.world.overlay import options_of
from ecomlab.world.wants import constraints_of

PLENTY = 8
"""Stock from which a product may be wanted: more than any quantity asked for."""
TRIES = 64
VISITS = 5
"""Visits per past order of the history axis."""
CLUSTER = 6
"""Visits per product type in the history: of wanted and unwanted types alike."""

Pairs = list[list[Any]]
"""Slots as [name, value] pairs: their order is the customer's, and survives any JSON."""


def draw_row(
    rows: Sequence[int], shop: Shop, random: np.random.Generator, avoid: tuple[Constraint, ...] | None = None
) -> int | None:
    """A product of these rows that is well in stock and does not satisfy `avoid`. None if tries run out."""
    for _ in range(TRIES if rows else 0):
        row = rows[int(random.integers(len(rows)))]
        if shop.catalog.stock.item(row) >= PLENTY and not (avoid and shop.catalog.satisfies(row, avoid)):
            return int(row)
    return None


def draw_item(
    type_name: str,
    axes: Difficulty,
    level: int,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> dict[str, Any]:
    """A product to be wanted, as slots: m constraints (its type is the first), an option, a quantity."""
    row = draw_row(shop.catalog.type_rows(type_name), shop, random)
    if row is None:
        raise TaskError(
            f"no {type_name} of this shop of {shop.catalog.size} products is well in stock; load a larger shop"
        )
    slots = describe(shop, row, axes.constraints, random)
    if level > 1 and random.random() < 1 / (1 + math.exp(-(level - 2) / 1.5)):
        slots["option"] = other_option(type_name, key, shop, random)
    if random.random() < min(0.5, 0.1 * level):
        slots["quantity"] = int(random.integers(2, 5))
    return {"slots": slots, "row": row}


def describe(shop: Shop, row: int, constraints: int, random: np.random.Generator) -> dict[str, Any]:
    """A product in a customer's slots: type, brand, feature, then its other properties in random order."""
    catalog = shop.catalog
    values: dict[str, Any] = {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    values["price"] = 500 * math.ceil(catalog.price_cents.item(row) * 1.1 / 500)
    values["rating"] = catalog.rating_tenths.item(row) // 5 * 5
    values["days"] = catalog.days.item(row)
    names = list(values)
    order = random.permutation(len(names)).tolist()
    first = {
        "type": catalog.type_of(row).name,
        "brand": catalog.brands[catalog.brand_code.item(row)],
        "feature": catalog.features[catalog.feature_code.item(row)],
    }
    if constraints <= len(first):
        return dict(list(first.items())[: max(1, constraints)])
    return first | {names[i]: values[names[i]] for i in order[: constraints - len(first)]}


def slot_values(shop: Shop, row: int, names: Sequence[str], like: Mapping[str, Any]) -> dict[str, Any] | None:
    """These slots as another product has them; None where it lacks one. Bounds stay: they hold or they do not."""
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
    type_name: str, key: tuple[Any, ...], shop: Shop, random: np.random.Generator, than: str | None = None
) -> str:
    values = next(t for t in shop.catalog.types if t.name == type_name).option.values
    options = [option for option in options_of(key, values, type_name) if option != than]
    return options[int(random.integers(len(options)))]


def alternative(slots: Mapping[str, Any], shop: Shop, random: np.random.Generator) -> Pairs | None:
    """A named alternative: a product of the type that is not what was wanted, by brand and feature."""
    avoid = constraints_of(slots["type"], {"brand": slots["brand"]} if "brand" in slots else slots)
    row = draw_row(shop.catalog.type_rows(slots["type"]), shop, random, avoid)
    return None if row is None else pairs(describe(shop, row, 3, random))


def pairs(slots: Mapping[str, Any]) -> Pairs:
    """Slots as they are stored in a task."""
    return [[name, value] for name, value in slots.items()]


def draw_visits(
    items: Sequence[Mapping[str, Any]],
    told: Sequence[Mapping[str, Any]],
    unwanted: Sequence[str],
    axes: Difficulty,
    key: tuple[Any, ...],
    shop: Shop,
) -> list[str]:
    """What the customer looked at lately, shuffled: six products of each wanted type and of as many others as fit.

    The list must not tell wanted from unwanted (laws 3 and 8). So the unwanted types' clusters are made in the same way
    from a phantom wish, all products are well in stock, and where something that identifies a product is withheld,
    another one that fits all that was stated is in its cluster if the shop has one.
    """
    random = rng("visits", *key)
    catalog = shop.catalog
    rows: list[int] = []
    for item, stated in zip(items, told, strict=True):
        rows += _cluster(item["row"], item["slots"], stated, shop, random)
    clusters = max(len(items) + 1, VISITS * axes.history // CLUSTER)
    for name in unwanted[: clusters - len(items)]:
        row = draw_row(catalog.type_rows(name), shop, random)
        if row is not None:
            slots = describe(shop, row, axes.constraints, random)
            hidden = random.random(len(slots)) < axes.p_missing
            phantom = {
                n: v for (n, v), gone in zip(slots.items(), hidden, strict=True) if n == "type" or not gone
            }
            rows += _cluster(row, slots, phantom, shop, random)
    shuffled = np.asarray(rows)[random.permutation(len(rows))]
    return [packed.decode() for packed in catalog.packed_ids[shuffled].tolist()]


def _cluster(
    row: int,
    slots: Mapping[str, Any],
    stated: Mapping[str, Any],
    shop: Shop,
    random: np.random.Generator,
) -> list[int]:
    """A product and others of its type that are not what was meant; one fits all that was stated, if not all was."""
    catalog = shop.catalog
    pool = catalog.type_rows(slots["type"])
    meant = constraints_of(slots["type"], slots)
    found = [row]
    if any(name not in stated for name in slots if name not in ("option", "quantity")):
        fitting = catalog.select(constraints_of(stated["type"], stated), pool)
        other = draw_row(fitting.tolist(), shop, random, avoid=meant)
        if other is not None:
            found.append(other)
    for _ in range(3 * CLUSTER):  # a small shop may not have as many; then the cluster stays smaller
        if len(found) == CLUSTER:
            break
        other = pool[int(random.integers(len(pool)))]
        usable = other not in found and catalog.stock.item(other) >= PLENTY
        if usable and not catalog.satisfies(other, meant):
            found.append(other)
    return found
