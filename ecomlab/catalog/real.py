"""A catalog made from a table of real products: names that people say, closed vocabularies, and what tasks can be about."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ecomlab.catalog.columns import NO_PRICE, NO_RATING, Catalog
from ecomlab.catalog.ingest import attributes, types
from ecomlab.catalog.products import Products
from ecomlab.catalog.schema import Attribute, ProductType
from ecomlab.catalog.titles import Titles

ENOUGH: Final = 12
"""Whole products that make a type that tasks are about."""
RARE: Final = 4
"""Products of a type that must share a value for it to be in the type's vocabulary."""
MOST_VALUES: Final = 40
WRAPPING: Final = Attribute(
    "wrapping", ("Gift Box", "Plain Carton", "Paper Wrap", "Padded Mailer"), "in a {}"
)
"""Option of products whose source knows no variants: drawn, not read, and of a kind that no title contradicts."""
LONGEST: Final = 24
"""Letters of a brand or short name that a customer will say."""
_NAME = re.compile(r"(?=.*[A-Za-z]{2})[A-Za-z0-9][A-Za-z0-9'-]*[A-Za-z0-9]")
_VALUE = re.compile(r"[A-Za-z0-9][\w.'+/&% -]*")


def catalog_of(products: Products) -> Catalog:
    """Make the catalog of a product table, in the order of its rows.

    A product is *whole* when it has all that the catalog knows of products: a brand and a short name that can be said,
    and a price and a rating where the source gives any. One that is not is shown, and never in stock. Types with at
    least `ENOUGH` whole products are drawable.
    """
    rows = products.rows
    names = rows["type"].to_pylist()
    departments = rows["department"].to_pylist()
    order = list(dict.fromkeys(names))
    codes = {name: code for code, name in enumerate(order)}
    type_code = np.array([codes[name] for name in names], np.int16)
    spans = np.searchsorted(type_code, np.arange(len(order) + 1))
    brands, brand_code = _coded([_said(name) for name in rows["brand"].to_pylist()])
    features, feature_code = _coded(_features(rows, names))
    price = _numbers(rows["price_cents"], NO_PRICE, np.int32)
    rating = _numbers(rows["rating_tenths"], NO_RATING, np.int8)
    values = {name: _values(rows[f"attr.{name}"].to_pylist()) for name in products.attribute_names}
    option = _options(rows, products.facts, type_code, len(order))
    whole = (brand_code >= 0) & (feature_code >= 0) & option.whole
    whole &= (price != NO_PRICE) | ~np.any(price != NO_PRICE)
    whole &= (rating != NO_RATING) | ~np.any(rating != NO_RATING)
    kinds, kept = [], {name: np.full(len(type_code), -1, np.int16) for name in values}
    vocabulary = {name: _common(column, spans) for name, column in values.items()}
    listed = {
        name: tuple(sorted({v for of_type in known for v in of_type})) for name, known in vocabulary.items()
    }
    for code, name in enumerate(order):
        span = slice(int(spans[code]), int(spans[code + 1]))
        own = []
        for attribute, known in vocabulary.items():
            if len(known[code]) < 2 or attribute == option.name:
                continue
            own.append(Attribute(attribute, known[code], attributes.phrases([attribute])[attribute]))
            at = {value: listed[attribute].index(value) for value in known[code]}
            kept[attribute][span] = [at.get(value, -1) for value in values[attribute][span]]
        kinds.append(
            ProductType(
                name=name,
                plural=types.plural(name),
                department=departments[span.start],
                option=option.of[code],
                attributes=tuple(own),
                price=_spread(price[span]),
            )
        )
    stock = np.where(whole, _numbers(rows["stock"], 0, np.int16), 0).astype(np.int16)
    counts = np.bincount(type_code[stock > 0], minlength=len(order))
    drawable = tuple(
        name
        for code, name in enumerate(order)
        if counts[code] >= ENOUGH and types.is_speakable(name) and name != types.OTHER.name
    )
    if not drawable:
        raise ValueError(
            f"no type of {products.facts.get('source')} has {ENOUGH} products with a brand, a name and a price; tasks need one"
        )
    used = {name for name, column in kept.items() if (column >= 0).any()}
    return Catalog(
        types=tuple(kinds),
        brands=brands,
        features=features,
        attr_values={name: known for name, known in listed.items() if name in used},
        packed_ids=np.array([one.encode() for one in rows["id"].to_pylist()]),
        type_code=type_code,
        brand_code=brand_code,
        feature_code=feature_code,
        price_cents=price,
        rating_tenths=rating,
        reviews=_numbers(rows["reviews"], 0, np.int32),
        days=_numbers(rows["days"], 1, np.int8),
        stock=stock,
        attr={name: column for name, column in kept.items() if name in used},
        titles=Titles(rows["title"]),
        drawable=drawable,
    )


class _Options:
    """The option of each type, and which products come in all of its values."""

    def __init__(self, of: Sequence[Attribute], whole: np.ndarray, name: str) -> None:
        self.of, self.whole, self.name = of, whole, name


def _options(rows: Any, facts: Mapping[str, Any], type_code: np.ndarray, count: int) -> _Options:
    """Take each type's option from the variants of its products: the values in which most of them come together.

    Where no product of a type has variants it is their wrapping, which is drawn.
    """
    variants = rows["variants"].to_pylist() if rows["variants"].null_count < len(rows) else [None] * len(rows)
    sets = [tuple(one["option"] for one in of_one) if of_one else () for of_one in variants]
    name = attributes.name_of(str(facts.get("option") or "option"))
    chosen: list[Attribute] = []
    whole = np.ones(len(sets), bool)
    by_type: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(count)]
    for code, own in zip(type_code.tolist(), sets):
        by_type[code][own] += 1
    for code in range(count):
        best = _best(by_type[code])
        if len(best) < 2:
            chosen.append(WRAPPING)
            continue
        chosen.append(Attribute(name, best, attributes.phrases([name])[name]))
        of_type = np.flatnonzero(type_code == code)
        whole[of_type] = [set(best) <= set(sets[row]) for row in of_type.tolist()]
    return _Options(chosen, whole, name if any(one is not WRAPPING for one in chosen) else "")


def _best(sets: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """Choose the set of options that most products come in, the larger of two alike; () where none has variants."""

    def worth(own: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        return sum(n for other, n in sets.items() if set(own) <= set(other)) * min(len(own), 3), own

    able = [own for own in sets if len(own) >= 2 and all(_VALUE.fullmatch(value) for value in own)]
    return max(able, key=worth, default=())


def _said(name: str | None) -> str | None:
    """Write a name as one word, which is how the customer's grammar knows names: "Case Logic" is "Case-Logic"."""
    word = re.sub(r"[^A-Za-z0-9']+", "-", name or "").strip("-'")
    return word if len(word) <= LONGEST and _NAME.fullmatch(word) else None


def _features(rows: Any, names: Sequence[str]) -> list[str | None]:
    """Return each product's short name beside brand and type, without one that could be taken for another name."""
    brands = {(_said(brand) or "").lower() for brand in rows["brand"].unique().to_pylist()}
    kinds = {form.lower() for name in dict.fromkeys(names) for form in (name, types.plural(name))}
    taken = brands | kinds
    given = (_said(name) for name in rows["feature"].to_pylist())
    return [one if one and one.lower() not in taken else None for one in given]


def _coded(names: Sequence[str | None]) -> tuple[tuple[str, ...], np.ndarray]:
    """Number names, those that differ only in case alike: (names in order, int32 codes with -1 for none)."""
    spelled: dict[str, Counter[str]] = {}
    for name in names:
        if name:
            spelled.setdefault(name.lower(), Counter())[name] += 1
    chosen = {folded: min(forms, key=lambda form: (-forms[form], form)) for folded, forms in spelled.items()}
    ordered = sorted(chosen)
    codes = {folded: code for code, folded in enumerate(ordered)}
    found = np.array([codes[name.lower()] if name else -1 for name in names], np.int32)
    return tuple(chosen[folded] for folded in ordered), found


def _numbers(column: Any, missing: int, kind: Any) -> np.ndarray:
    """Return an Arrow column as numbers, `missing` where it has none."""
    import pyarrow.compute as pc

    return np.array(pc.fill_null(column, missing).to_numpy(), kind)


def _values(column: Sequence[str | None]) -> list[str | None]:
    return [value if value and _VALUE.fullmatch(value) else None for value in column]


def _common(column: Sequence[str | None], spans: np.ndarray) -> list[tuple[str, ...]]:
    """List, per type, the values that enough of its products share."""
    listed = []
    for first, last in zip(spans[:-1].tolist(), spans[1:].tolist(), strict=True):
        counts = Counter(value for value in column[first:last] if value)
        often = [value for value, count in counts.most_common(MOST_VALUES) if count >= RARE]
        listed.append(tuple(sorted(often)))
    return listed


def _spread(cents: np.ndarray) -> tuple[float, float]:
    """Return the median price in dollars and the standard deviation of its logarithm; zeros without prices."""
    known = cents[cents != NO_PRICE]
    if not len(known):
        return 0.0, 0.0
    logs = np.log(known / 100)
    return round(math.exp(float(np.median(logs))), 2), round(float(np.std(logs)), 3)
