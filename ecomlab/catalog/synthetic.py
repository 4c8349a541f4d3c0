"""The generated shop: any number of believable products from a seed, in array operations only."""

from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from ecomlab.catalog.columns import Catalog
from ecomlab.catalog.schema import NO_OPTION, Attribute, ProductType
from ecomlab.seeding import rng
from ecomlab.settings import Strict, read_toml

FILE = Path(__file__).with_name("vocabulary.toml")
VERSION = 2  # goes up when the same (size, seed) would give other products
ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)  # base 32 without I, L, O, U
ID_BITS = 30  # six characters of five bits
PLAIN = 0.08
"""Share of products without variants, of types whose variants are looks."""
LOOKS = ("color", "finish")
"""Options that a product may lack: a nail polish has a shade, a puzzle a picture."""
MOST_VARIANTS = 5
BRANDS, CHANCE = 0.18, 0.08
"""Standard deviations of the logarithm of prices: between brands, and between products that are alike in all else."""
RANGES = 4
"""Sets of option values in which products of a type come: several products share each."""


Names = Annotated[tuple[str, ...], Field(min_length=1)]


class AttributeEntry(Strict):
    """An attribute: a customer's phrase for it, and its values. The name defaults to the key up to a slash.

    Values of an `ordered` one stand from small to large. A product with the last value costs `price` times as much as
    one with the first.
    """

    name: str = ""
    phrase: Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
    values: Names
    ordered: bool = False
    price: Annotated[float, Field(gt=0)] = 1


class TypeEntry(Strict):
    """A product type. Variants differ in `option`, "" for none; it and `attributes` are keys; the plural defaults to an
    added s; an ordinary product costs `price` dollars."""

    plural: str = ""
    option: str = ""
    attributes: Names
    features: Names
    price: Annotated[float, Field(gt=0)]


class DepartmentEntry(Strict):
    """A department: its brands, its product types by name."""

    brands: Names
    types: dict[str, TypeEntry]


class Vocabulary(Strict):
    """Schema of `vocabulary.toml`: features by what they multiply a price by."""

    features: dict[str, Annotated[float, Field(gt=0)]]
    attributes: dict[str, AttributeEntry]
    departments: dict[str, DepartmentEntry]


@cache
def vocabulary() -> Vocabulary:
    """Read the vocabulary of the generated shop, once per process."""
    return read_toml(FILE, Vocabulary)


@cache
def product_types() -> tuple[ProductType, ...]:
    """List every product type of the vocabulary, in its order."""
    words = vocabulary()
    attributes = {
        key: Attribute(entry.name or key.partition("/")[0], entry.values, entry.phrase, entry.ordered)
        for key, entry in words.attributes.items()
    }
    return tuple(
        ProductType(
            name,
            entry.plural or f"{name}s",
            department,
            attributes[entry.option] if entry.option else NO_OPTION,
            tuple(attributes[key] for key in entry.attributes),
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
    words = vocabulary()
    departments = words.departments
    brands = tuple(sorted({name for department in departments.values() for name in department.brands}))
    features = tuple(sorted(words.features))
    feature_level = np.log([words.features[name] for name in features])
    brand_level = draw.normal(0, BRANDS, len(brands))

    type_code = np.repeat(np.arange(len(types)), _shares(draw, size, len(types)))
    brand_code = np.empty(size, np.int16)
    feature_code = np.empty(size, np.int16)
    attributes = [attribute for kind in types for attribute in kind.attributes]
    attr_values = {
        name: tuple(sorted({value for a in attributes if a.name == name for value in a.values}))
        for name in sorted({a.name for a in attributes})
    }
    attr = {name: np.full(size, -1, np.int16) for name in attr_values}
    option_bits = np.empty(size, np.int64)
    level = draw.normal(0, CHANCE, size)
    """Logarithm of what a product costs, in units of an ordinary one of its type."""
    edges = np.searchsorted(type_code, np.arange(len(types) + 1))
    for code, kind in enumerate(types):
        rows = slice(edges[code], edges[code + 1])
        count = edges[code + 1] - edges[code]
        own_brands = [brands.index(name) for name in departments[kind.department].brands]
        entry = departments[kind.department].types[kind.name]
        own_features = [features.index(name) for name in entry.features]
        brand_code[rows] = _popular(draw, own_brands, count, 0.8)
        feature_code[rows] = _popular(draw, own_features, count, 0.4)
        level[rows] += np.log(entry.price) + brand_level[brand_code[rows]] + feature_level[feature_code[rows]]
        for attribute, key in zip(kind.attributes, entry.attributes, strict=True):
            places = _popular(draw, list(range(len(attribute.values))), count, 0.5)
            codes = np.array([attr_values[attribute.name].index(value) for value in attribute.values])
            attr[attribute.name][rows] = codes[places]
            level[rows] += np.log(words.attributes[key].price) * (places / max(1, len(codes) - 1) - 0.5)
        option_bits[rows] = _option_bits(draw, kind.option, count)

    return Catalog(
        types=types,
        brands=brands,
        features=features,
        attr_values=attr_values,
        packed_ids=_ids(size, seed),
        type_code=type_code.astype(np.int16),
        brand_code=brand_code,
        feature_code=feature_code,
        price_cents=_cents(draw, level),
        rating_tenths=_ratings(draw, brand_level[brand_code]),
        reviews=np.minimum(np.exp(draw.normal(3.8, 1.7, size)), 250_000).astype(np.int32),
        days=draw.choice(np.arange(1, 8), size, p=[0.14, 0.24, 0.21, 0.15, 0.12, 0.08, 0.06]).astype(np.int8),
        stock=_stock(draw, size),
        option_bits=option_bits,
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


def _option_bits(draw: np.random.Generator, option: Attribute, count: int) -> np.ndarray:
    """Draw the option values in which `count` products of a type come: one of a few sets each, of sizes a range without
    gaps; 0 where a product has no variants."""
    values = len(option.values)
    if not values:
        return np.zeros(count, np.int64)
    sets = []
    most, least = min(MOST_VARIANTS, values), 3 if option.name == "size" else 2
    for number in range(RANGES):
        several = most if number == 0 else int(draw.integers(least, most + 1))
        first = int(draw.integers(values - several + 1))
        places = (
            range(first, first + several) if option.ordered else draw.permutation(values)[:several].tolist()
        )
        sets.append(sum(1 << place for place in places))
    bits = np.array(sets, np.int64)[_popular(draw, list(range(RANGES)), count, 0.5)]
    return np.where(draw.random(count) < PLAIN, 0, bits) if option.name in LOOKS else bits


def _cents(draw: np.random.Generator, level: np.ndarray) -> np.ndarray:
    """Return prices with the endings of real ones, from the logarithms of dollars."""
    ending = draw.choice([99, 49, 0, 95], len(level), p=[0.55, 0.2, 0.15, 0.1])
    return (np.maximum(np.floor(np.exp(level)), 3) * 100 + ending).astype(np.int32)


def _ratings(draw: np.random.Generator, brand_level: np.ndarray) -> np.ndarray:
    """Draw tenths of stars; dear brands are rated a little better."""
    stars = 28 + 22 * draw.beta(6.0, 2.2, len(brand_level)) + 5 * brand_level
    return np.clip(np.round(stars), 28, 50).astype(np.int8)


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
