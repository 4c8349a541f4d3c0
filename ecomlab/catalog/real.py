"""A catalog made from a table of real products: names that people say, closed vocabularies, types for tasks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ecomlab.catalog.columns import ENOUGH, Catalog
from ecomlab.catalog.ingest import attributes, types
from ecomlab.catalog.names import Packed
from ecomlab.catalog.products import Products, rows_at
from ecomlab.catalog.schema import NO_OPTION, Attribute, ProductType
from ecomlab.slots import NO_PRICE, NO_RATING

RARE: Final = 4
"""Products of a type that must share a value for it to be in the type's vocabulary."""
FEWEST: Final = {"rating_tenths": 0.5, "price_cents": 0.1}
"""Share of products that must have a number for those without to be left out; with fewer, nobody's is used.

A rating is one limit that customers may set: for its sake a shop should not lose more products than it keeps. Without
prices several environments are off: they are given up where nearly no product has one.
"""
KINDS: Final = (
    'a mapping file names their column, [columns] category = ["..."], and kinds by the category\'s name or number, '
    '[kinds] "..." = "Tent"'
)
MOST_VALUES: Final = 40
LONGEST: Final = 24
"""Letters of a brand or short name that a customer will say."""
_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9'-]*[A-Za-z0-9]")
_SHOUTED = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{6,}|[A-Z]{5}(?=-[A-Z]{5})|(?<=[A-Z]{5}-)[A-Z]{5})(?![A-Za-z0-9])"
)
"""Words in capitals that are too long to be abbreviations, alone or two in a row: "ELECTRIFIED", "SUPER-SPEED"."""
_PLAIN: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
)
"""Latin letters that are no plain one with a mark."""
_VALUE = re.compile(r"(?!(?i:yes|no|true|false|any|none|other|more)$)[A-Za-z0-9][\w.'+/&% -]*")
"""A value that can be said: "no" is a word of any sentence."""


def catalog_of(products: Products) -> Catalog:
    """Make the catalog of what can be sold of a product table, in the order of its rows.

    Sold is what has a brand and a short name that can be said, and a price and a rating where enough products have one
    (`FEWEST`); `left_out` counts the rest, `unused` the numbers that too few have. Types with at least `ENOUGH`
    products are drawable. Raises ValueError where none has so many.
    """
    sold = np.flatnonzero(_reasons(products) == "")
    read_by_people = ["text", *(name for name in products.rows.column_names if name.startswith("from."))]
    rows = rows_at(_without_rare(products.rows).drop_columns(read_by_people), sold)
    names = rows["type"].to_pylist()
    departments = rows["department"].to_pylist()
    order = list(dict.fromkeys(names))
    codes = {name: code for code, name in enumerate(order)}
    type_code = np.array([codes[name] for name in names], _code_type(len(order)))
    spans = np.searchsorted(type_code, np.arange(len(order) + 1))
    brands, brand_code = _coded([_said(name) for name in rows["brand"].to_pylist()])
    features, feature_code = _coded([_said(name) for name in rows["feature"].to_pylist()])
    said = {name: rows[f"attr.{name}"].to_pylist() for name in products.attribute_names}
    values = {name: [v if v and _VALUE.fullmatch(v) else None for v in own] for name, own in said.items()}
    options, option_bits = _options(rows, values, spans)
    parts = [slice(first, last) for first, last in pairwise(spans.tolist())]
    own: list[list[Attribute]] = [[] for _ in order]
    attr_values, attr = {}, {}
    for name, known in values.items():
        often = [_often(filter(None, known[part])) for part in parts]
        listed = tuple(sorted({value for some in often for value in some}))
        places = {value: place for place, value in enumerate(listed)}
        column = np.full(len(type_code), -1, _code_type(len(listed)))
        for code, part in enumerate(parts):
            if len(often[code]) > 1 and name != options[code].name:
                own[code].append(Attribute(name, often[code], attributes.phrases([name])[name]))
                column[part] = [places[value] if value in often[code] else -1 for value in known[part]]
        if (column >= 0).any():
            attr_values[name], attr[name] = listed, column
    kinds = [
        ProductType(name, types.plural(name), departments[part.start], option, tuple(mine))
        for name, part, option, mine in zip(order, parts, options, own, strict=True)
    ]
    return Catalog(
        types=tuple(kinds),
        brands=brands,
        features=features,
        attr_values=attr_values,
        packed_ids=np.array([one.encode() for one in rows["id"].to_pylist()]),
        type_code=type_code,
        brand_code=brand_code,
        feature_code=feature_code,
        price_cents=_numbers(rows["price_cents"], NO_PRICE, np.int32),
        rating_tenths=_numbers(rows["rating_tenths"], NO_RATING, np.int8),
        reviews=_numbers(rows["reviews"], 0, np.int32),
        days=_numbers(rows["days"], 1, np.int8),
        stock=_numbers(rows["stock"], 0, np.int16),
        option_bits=option_bits,
        attr=attr,
        titles=Packed.of(rows["title"].to_pylist()),
        drawable=_drawable(order, np.diff(spans), products),
    )


def _code_type(count: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type of a column that holds codes of so many names."""
    return np.int16 if count <= np.iinfo(np.int16).max else np.int32


def left_out(products: Products) -> dict[str, int]:
    """Count the products that `catalog_of` leaves out, by reason."""
    return dict(Counter(reason for reason in _reasons(products).tolist() if reason).most_common())


def unused(products: Products) -> dict[str, int]:
    """Count the products that have a number which is not used, because too few have one: of "rating" and "price"."""
    return {name.partition("_")[0]: count for name, count in _rare(products.rows).items() if count}


def _rare(rows: Any) -> dict[str, int]:
    """Count the products that have a number, for those numbers that too few of them have."""
    counts = {name: len(rows) - rows[name].null_count for name in FEWEST}
    return {name: count for name, count in counts.items() if count < FEWEST[name] * len(rows)}


def _without_rare(rows: Any) -> Any:
    """Return the products as if nothing were known where only a few have a number."""
    import pyarrow as pa

    for name in _rare(rows):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pa.nulls(len(rows), rows.schema.field(name).type))
    return rows


def _reasons(products: Products) -> np.ndarray:
    """Say why each product cannot be sold, "" where it can."""
    rows = _without_rare(products.rows)
    found = np.full(len(rows), "", object)
    brands = {(_said(brand) or "").lower() for brand in rows["brand"].unique().to_pylist()}
    kinds = rows["type"].unique().to_pylist()
    taken = brands | {form.lower() for name in kinds for form in (name, types.plural(name))}
    names = zip(map(_said, rows["feature"].to_pylist()), rows["type"].to_pylist(), strict=True)
    columns = (Counter(rows[f"attr.{name}"].to_pylist()) for name in products.attribute_names)
    values = {
        value.lower() for column in columns for value, count in column.items() if value and count >= RARE
    }
    unnamed = [name is None or _is_taken(name, kind, taken) for name, kind in names]
    # "the Green Lamp" of a brand Green would be one of that colour
    no_brand = [_said(name) is None or name.lower() in values for name in rows["brand"].to_pylist()]
    for reason, lacks in (
        ("no short name", np.array(unnamed, bool)),
        ("no brand", np.array(no_brand, bool)),
        ("no rating", _missing(rows["rating_tenths"])),
        ("no price", _missing(rows["price_cents"])),
    ):
        found[lacks] = reason
    if not (found == "").any():
        counts = ", ".join(f"{count} {reason}" for reason, count in Counter(found.tolist()).most_common())
        raise ValueError(
            f"no product of {products.facts.get('source')} can be sold ({counts}); a brand comes from the column that "
            'a mapping file names, [columns] brand = "...", or is one for all, brand = "..." before its tables; '
            "a short name comes from what a title says beside brand and type; "
            f"customers say both in at most {LONGEST} Latin letters"
        )
    return found


def _is_taken(name: str, kind: str, taken: Collection[str]) -> bool:
    """Tell whether a short name is that of something else, alone or read on: "Cell" of a Phone Mount is a phone."""
    words = f"{name} {kind}".lower().split()
    return any(
        " ".join(words[:end]) in taken for end in range(len(words) - len(kind.split()), len(words) + 1)
    )


def _missing(column: Any) -> np.ndarray:
    """Tell which rows lack a value that others have; none where the source gives no such value at all."""
    return np.asarray(column.is_null()) & (column.null_count < len(column))


def _drawable(order: Sequence[str], counts: np.ndarray, products: Products) -> tuple[str, ...]:
    """List the types that tasks are about; none that is called as an attribute is, as "the connector" may be one."""
    able = zip(order, counts.tolist(), strict=True)
    no_names = {types.OTHER.name, *(name.replace("_", " ").title() for name in products.attribute_names)}
    found = tuple(n for n, count in able if count >= ENOUGH and types.is_speakable(n) and n not in no_names)
    if not found:
        lacks = ", ".join(f"{reason} ({count:,})" for reason, count in left_out(products).items())
        sizes = Counter(dict(zip(order, counts.tolist(), strict=True)))
        untyped = sizes.pop(types.OTHER.name, 0)
        most = ", ".join(f"{count} ({name})" for name, count in sizes.most_common(3))
        raise ValueError(
            f"no type of {products.facts.get('source')} has {ENOUGH} products with brand, name and price, as tasks need"
            + (f"; those with most have {most}" if most else "")
            + (f"; of {untyped:,} products no type was found: {KINDS}" if untyped else "")
            + (f"; left out of {len(products):,} products: {lacks}" if lacks else "")
        )
    return found


def _options(
    rows: Any, values: Mapping[str, Sequence[str | None]], spans: np.ndarray
) -> tuple[list[Attribute], np.ndarray]:
    """Take each type's option from the variants of its products: the one in which most of them differ, its commonest
    values, and those in which each product comes, as bits, 0 where it comes in fewer than two of them.

    A type has no option that few of its products have, or fewer than have it as an attribute.
    """
    sets = [[one["option"] for one in own or ()] for own in rows["variants"].to_pylist()]
    names = [attributes.name_of(name or "option") for name in rows["option"].to_pylist()]
    kinds, bits = [], np.zeros(len(rows), np.int64)
    for first, last in pairwise(spans.tolist()):
        kinds.append(NO_OPTION)
        varied = [row for row in range(first, last) if len(sets[row]) > 1]
        name, _ = max(Counter(names[row] for row in varied).items(), key=lambda one: one[1], default=("", 0))
        varied = [row for row in varied if names[row] == name]
        shared = _often(v for row in varied for v in set(sets[row]) if _VALUE.fullmatch(v))
        places = {value: at for at, value in enumerate(sorted(shared, key=_size))}
        own = {row: {places[value] for value in sets[row] if value in places} for row in varied}
        own = {row: mine for row, mine in own.items() if len(mine) > 1}
        others = sum(value is not None for value in values.get(name, ())[first:last])
        if len(own) >= max(RARE, others):
            kinds[-1] = Attribute(name, tuple(places), attributes.phrases([name])[name])
            bits[[*own]] = [sum(1 << at for at in mine) for mine in own.values()]
    return kinds, bits


def _size(value: str) -> tuple[float, str]:
    """Return what values of an option are ordered by: numbers by size."""
    number = re.match(r"\d+(?:\.\d+)?", value)
    return float(number[0]) if number else 0, value


def _said(name: str | None) -> str | None:
    """Write a name as one word with a capital, as the customer's grammar knows names: "case logic" is "Case-logic", and
    "Müller" is "Muller"."""
    plain = unicodedata.normalize("NFKD", (name or "").translate(_PLAIN))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    word = re.sub(r"[^A-Za-z0-9']+", "-", plain).strip("-'")
    word = _SHOUTED.sub(lambda shout: shout.group().capitalize(), word[:1].upper() + word[1:])
    return word if len(word) <= LONGEST and _NAME.fullmatch(word) else None


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


def _often(values: Iterable[str]) -> tuple[str, ...]:
    """List the values that enough products share, the commonest, in order."""
    ordered = sorted(Counter(values).items(), key=lambda one: (-one[1], one[0]))
    return tuple(sorted(value for value, count in ordered[:MOST_VALUES] if count >= RARE))
