"""Drawing what a customer wants: products, described in slots, and the visits that hide them among decoys."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import rng
from ecomlab.world.overlay import options_of
from ecomlab.world.wants import constraints_of, want_of

PLENTY = 8
"""Stock from which a product may be wanted: more than any quantity asked for."""
TRIES = 64
LOOKALIKES = 0.2
"""Share of decoys in the visit history that are of a wanted type."""


def draw_row(rows: range, shop: Shop, random: np.random.Generator, other_than: str = "") -> int | None:
    """A product of these rows that is well in stock, of another brand if one is named. None if tries run out."""
    for _ in range(TRIES):
        row = rows[int(random.integers(len(rows)))]
        if (
            shop.catalog.stock[row] >= PLENTY
            and shop.catalog.brands[shop.catalog.brand_code[row]] != other_than
        ):
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
    rows = shop.catalog.type_rows(type_name)
    row = draw_row(rows, shop, random)
    row = rows[int(random.integers(len(rows)))] if row is None else row
    slots = describe(shop, row, axes.constraints, random)
    if level > 1 and random.random() < 1 / (1 + math.exp(-(level - 2) / 1.5)):
        slots["option"] = other_option(type_name, key, shop, random)
    if random.random() < min(0.5, 0.1 * level):
        slots["quantity"] = int(random.integers(2, 5))
    return {"slots": slots, "row": row}


def describe(shop: Shop, row: int, constraints: int, random: np.random.Generator) -> dict[str, Any]:
    """A product in a customer's slots: type, brand, feature, then its other properties in random order."""
    record = shop.catalog.record(row)
    cap = 5 * math.ceil(record["price"] * 1.1 / 5) * 100
    rest: dict[str, Any] = {f"attr:{name}": value for name, value in record["attributes"].items()}
    rest |= {"price": cap, "rating": round(record["rating"] * 10) // 5 * 5, "days": record["ship_days"]}
    names = list(rest)
    shuffled = [names[i] for i in random.permutation(len(names))]
    catalog = shop.catalog
    slots = {"type": record["type"], "brand": record["brand"]}
    slots["feature"] = catalog.features[catalog.feature_code[row]]
    slots |= {name: rest[name] for name in shuffled}
    return dict(list(slots.items())[: max(1, constraints)])


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


def alternative(slots: Mapping[str, Any], shop: Shop, random: np.random.Generator) -> dict[str, Any] | None:
    """A named alternative: another brand's product of the type, by brand and feature."""
    row = draw_row(shop.catalog.type_rows(slots["type"]), shop, random, slots.get("brand", ""))
    return None if row is None else describe(shop, row, 3, random)


def draw_visits(
    items: Sequence[Mapping[str, Any]],
    told: Sequence[Mapping[str, Any]],
    axes: Difficulty,
    key: tuple[Any, ...],
    shop: Shop,
) -> list[str]:
    """Targets among decoys, three times the history's length, shuffled; some decoys are of wanted types.

    Where something that identifies a product is withheld, a decoy that fits all that was stated is among them if
    one is found: the list must not tell them apart (law 8).
    """
    random = rng("visits", *key)
    catalog = shop.catalog
    rows = [item["row"] for item in items]
    for item, stated in zip(items, told, strict=True):
        if len(stated) < len(item["slots"]):
            wanted = constraints_of(stated["type"], want_of(0, stated).slots)
            pool = catalog.type_rows(stated["type"])
            for _ in range(TRIES):
                row = pool[int(random.integers(len(pool)))]
                if row not in rows and catalog.satisfies(row, wanted):
                    rows.append(row)
                    break
    length = min(3 * axes.history, catalog.size)
    for _ in range(10 * length):
        if len(rows) >= length:
            break
        near = random.random() < LOOKALIKES
        pool = (
            catalog.type_rows(items[int(random.integers(len(items)))]["slots"]["type"])
            if near
            else range(catalog.size)
        )
        row = pool[int(random.integers(len(pool)))]
        if row not in rows:
            rows.append(row)
    return [catalog.ids[rows[i]] for i in random.permutation(len(rows))]
