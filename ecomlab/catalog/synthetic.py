"""The generated shop: any number of believable products from a seed, in array operations only."""

from functools import cache

import numpy as np

from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.schema import Attribute, ProductType
from ecomlab.catalog.vocabulary import vocabulary
from ecomlab.seeding import rng

VERSION = 1  # goes up when the same (size, seed) would give other products
ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)  # base 32 without I, L, O, U
ID_BITS = 30  # six characters of five bits


@cache
def product_types() -> tuple[ProductType, ...]:
    """List every product type of the vocabulary, in its order."""
    words = vocabulary()
    attributes = {
        key: Attribute(entry.name or key.partition("/")[0], entry.values, entry.phrase)
        for key, entry in words.attributes.items()
    }
    return tuple(
        ProductType(
            name,
            entry.plural or f"{name}s",
            department,
            attributes[entry.option],
            tuple(attributes[key] for key in entry.attributes),
            entry.price,
        )
        for department, sold in words.departments.items()
        for name, entry in sold.types.items()
    )


def too_few(size: int) -> str | None:
    """Say how many products a catalog has at least, if `size` is fewer."""
    types = len(product_types())
    return None if size >= types else f"a catalog has a product of each type; ask for {types} or more"


def generate(size: int = 20_000, seed: int = 0) -> Catalog:
    """Generate a catalog of `size` products: same size and seed, same bytes, in every process.

    Half of the products are spread evenly over the types, half by a long-tailed popularity, so that every type can be
    bought even in a small catalog. Raises ValueError for fewer products than types.
    """
    types = product_types()
    if wrong := too_few(size):
        raise ValueError(f"{wrong}, not {size}")
    draw = rng("catalog", VERSION, size, seed)
    departments = vocabulary().departments
    brands = tuple(sorted({name for department in departments.values() for name in department.brands}))
    features = tuple(sorted({name for department in departments.values() for name in department.features}))

    type_code = np.repeat(np.arange(len(types)), _shares(draw, size, len(types)))
    brand_code = np.empty(size, np.int16)
    feature_code = np.empty(size, np.int16)
    attributes = [attribute for kind in types for attribute in kind.attributes]
    attr_values = {
        name: tuple(sorted({value for a in attributes if a.name == name for value in a.values}))
        for name in sorted({a.name for a in attributes})
    }
    attr = {name: np.full(size, -1, np.int16) for name in attr_values}
    edges = np.searchsorted(type_code, np.arange(len(types) + 1))
    for code, kind in enumerate(types):
        rows = slice(edges[code], edges[code + 1])
        count = edges[code + 1] - edges[code]
        own_brands = [brands.index(name) for name in departments[kind.department].brands]
        own_features = [features.index(name) for name in departments[kind.department].features]
        brand_code[rows] = _popular(draw, own_brands, count, 0.8)
        feature_code[rows] = _popular(draw, own_features, count, 0.4)
        for attribute in kind.attributes:
            codes = [attr_values[attribute.name].index(value) for value in attribute.values]
            attr[attribute.name][rows] = _popular(draw, codes, count, 0.5)

    return Catalog(
        types=types,
        brands=brands,
        features=features,
        attr_values=attr_values,
        packed_ids=_ids(size, seed),
        type_code=type_code.astype(np.int16),
        brand_code=brand_code,
        feature_code=feature_code,
        price_cents=_prices(draw, types, type_code, brand_code, len(brands)),
        rating_tenths=np.round(28 + 22 * draw.beta(6.0, 2.2, size)).astype(np.int8),
        reviews=np.minimum(np.exp(draw.normal(3.8, 1.7, size)), 250_000).astype(np.int32),
        days=draw.choice(np.arange(1, 8), size, p=[0.14, 0.24, 0.21, 0.15, 0.12, 0.08, 0.06]).astype(np.int8),
        stock=_stock(draw, size),
        attr=attr,
    )


def _shares(draw: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Distribute `size` rows over `count` types: at least one each, half of all rows by 1/sqrt(rank)."""
    even = max(1, size // (2 * count))
    popularity = 1 / np.sqrt(1 + draw.permutation(count))
    return even + draw.multinomial(size - even * count, popularity / popularity.sum())


def _popular(draw: np.random.Generator, codes: list[int], count: int, tail: float) -> np.ndarray:
    """Draw `count` of `codes` with popularity rank ** -tail; ranks are drawn anew in each call."""
    popularity = np.arange(1, len(codes) + 1.0) ** -tail
    return draw.choice(draw.permutation(codes), count, p=popularity / popularity.sum()).astype(np.int16)


def _prices(
    draw: np.random.Generator,
    types: tuple[ProductType, ...],
    type_code: np.ndarray,
    brand_code: np.ndarray,
    brands: int,
) -> np.ndarray:
    """Draw cents: lognormal around the type's median, scaled by brand, with the endings of real prices."""
    median, spread = np.array([kind.price for kind in types]).T
    brand_level = draw.normal(0, 0.15, brands)
    noise = draw.normal(0, 1, len(type_code)) * spread[type_code]
    dollars = median[type_code] * np.exp(noise + brand_level[brand_code])
    ending = draw.choice([99, 49, 0, 95], len(type_code), p=[0.55, 0.2, 0.15, 0.1])
    return (np.maximum(np.floor(dollars), 3) * 100 + ending).astype(np.int32)


def _stock(draw: np.random.Generator, size: int) -> np.ndarray:
    """Draw units in stock: long-tailed, about 4% sold out."""
    units = np.minimum(1 + np.exp(draw.normal(3.0, 1.1, size)), 999)
    return np.where(draw.random(size) < 0.04, 0, units).astype(np.int16)


def _ids(size: int, seed: int) -> np.ndarray:
    """Draw distinct ids, "P" and six characters, from a stream of their own, unrelated to row or content."""
    if size > 2 ** (ID_BITS - 4):
        raise ValueError(f"ask for at most {2 ** (ID_BITS - 4):,} products: ids have six characters")
    numbers = rng("catalog ids", VERSION, size, seed).choice(2**ID_BITS, size, replace=False)
    text = np.empty((size, 1 + ID_BITS // 5), np.uint8)
    text[:, 0] = ord("P")
    for place in range(ID_BITS // 5):
        text[:, 1 + place] = ALPHABET[(numbers >> (5 * place)) & 31]
    return text.view(f"S{text.shape[1]}").ravel()
