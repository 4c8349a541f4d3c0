"""One row of a source made clean: every field read and repaired, or the row set aside with its reason."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping as Table
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from ecomlab.catalog.ingest import attributes, prices, short_names, types, values
from ecomlab.catalog.ingest.attributes import Found
from ecomlab.catalog.ingest.mapping import Mapping, slug
from ecomlab.catalog.ingest.profiles import plain
from ecomlab.catalog.ingest.sources import SourceRow
from ecomlab.catalog.ingest.text import LONG, MARKUP, clean, is_nothing, without_markup
from ecomlab.catalog.ingest.values import value_at

TITLE_LIMIT: Final = 300
TEXT_LIMIT: Final = 2_000
NO_FORM, TWO_VALUES = "no normal form", "two values in a title"
"""Why a value of an attribute is dropped."""
NO_TITLE, NO_WORDS = "no title", "title without words"
"""Reasons to set a row aside."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_STORE = re.compile(r"(?:visit the|shop|by|brand:)\s+(.+?)(?:\s+store)?", re.IGNORECASE)
_LEGAL = re.compile(
    r"(?:[\s,]+(?:inc|llc|ltd|corp|corporation|co|gmbh|s\.?a\.?r\.?l|s\.?a\.?s|s\.a|s\.l|sa|and|&)\.?)+$",
    re.IGNORECASE,
)
"""The legal form of a company, which nobody says with its name."""
_COLOR_CODE = re.compile(r"^#[0-9A-Fa-f]{6}:")
_CODE = re.compile(r"(?<![A-Za-z])([A-Za-z]{3})(?![A-Za-z])")


class SetAside(NamedTuple):
    """A row that becomes no product, why, and what it said."""

    number: int
    reason: str
    raw: str


class RowCleaner:
    """Clean rows of one source, as its mapping says, with prices in one currency."""

    def __init__(self, mapping: Mapping, currency: str) -> None:
        self.mapping = mapping
        self.currency = currency
        self.nothing = frozenset(plain().nothing + mapping.nothing)
        columns = mapping.columns
        self.folds = bool(columns.options)
        """Whether rows may be variants of one product."""
        self._hidden = {one: {*map(str.lower, said)} for one, said in mapping.hidden.items()}
        self._nested = tuple(column for column in mapping.named() if "." in column)
        self._names = {column: slug(name) for name, column in mapping.attributes.items()}
        self._above = ""

    def clean(self, row: SourceRow) -> dict[str, Any] | SetAside:
        """Return what a row says, with what was `dropped`, None and "" where it says nothing; or why it is set aside.

        Rows come in the order of their file: one may be of the product above it.
        """
        raw, mapping, columns = row.values, self.mapping, self.mapping.columns
        if row.fault:
            return SetAside(row.number, row.fault, excerpt(raw))
        if self._nested:
            raw = {**raw, **{column: value_at(raw, column) for column in self._nested}}
        repairs = list(row.repairs)

        def line(column: str, limit: int = 200) -> str:
            if not column:
                return ""
            value, unwrapped = values.single(raw.get(column))
            text, mended = clean(value, limit)
            repairs.extend((*unwrapped, *mended))
            return "" if is_nothing(text) or text.lower() in self.nothing else text

        title = line(columns.title, TITLE_LIMIT)
        if not title and not self.folds:
            return SetAside(row.number, NO_TITLE, excerpt(row.values))
        if title and not _LETTERS.search(title):
            return SetAside(row.number, NO_WORDS, excerpt(row.values))
        details, mended = values.read_table(raw.get(columns.details)) if columns.details else ({}, ())
        repairs.extend(mended)
        brand = _brand(line(columns.brand) or line_of(details, "brand", "manufacturer", "brand name"))
        path = self._path(raw, line, repairs)
        kind = types.of_title(title) if title else None
        options = tuple(self._option(line(column, 500)) for column in columns.options)
        nameless = _pattern(brand).sub(" ", title) if brand else title  # Oak & Owl's are not of oak
        found, dropped = self._attributes(raw, nameless, details, line)

        def number(column: str, read: Any, *more: Any) -> int | None:
            if not column:
                return None
            value, unwrapped = values.single(raw.get(column))
            found, mended = read(value, *more)
            repairs.extend((*unwrapped, *mended))
            return found

        price_cents = number(columns.price, prices.read_price, self.currency)
        on_sale = columns.sale and not prices.is_zero(values.single(raw.get(columns.sale))[0])
        lower = number(columns.sale, prices.read_price, self.currency) if on_sale else None
        if lower is not None:
            price_cents = min(lower, lower if price_cents is None else price_cents)
        if price_cents is not None and columns.currency:
            named = prices.currency_of(line(columns.currency))
            if named and named != self.currency:
                price_cents = None
                repairs.append(prices.CURRENCY)
        other_id = line(columns.other_id)
        other_id = f"id:{other_id}" if other_id else ""
        source_id, text = line(columns.id) or other_id, self._text(raw, repairs)
        said = [source_id, title, brand, path, price_cents, text, options]
        content = hashlib.blake2b(json.dumps(said).encode(), digest_size=8).digest()
        surcharge = "" if prices.is_zero(raw.get(columns.surcharge)) else columns.surcharge
        parent = line(columns.parent)
        if mapping.fill_down:
            self._above = parent = parent if parent or title else self._above
        names = [line(mapping.option_names.get(column, "")) for column in columns.options]
        return {
            "number": row.number,
            "source_id": source_id,
            "other_id": other_id,
            "parent": parent,
            "title": title,
            "hidden": any(line(one).lower() in said for one, said in self._hidden.items()),
            "brand": brand,
            "feature": short_names.feature(title, brand or mapping.brand, kind.name if kind else ""),
            "kind": kind.name if kind else "",
            "department": kind.department if kind else "",
            "said": kind.said if kind else None,
            "path": "\n".join(path),
            "content": int.from_bytes(content, "little", signed=True),
            "price_cents": price_cents,
            "surcharge_cents": number(surcharge, prices.read_price, self.currency)
            or (0 if columns.surcharge else None),
            "rating_tenths": number(columns.rating, values.read_rating),
            "reviews": number(columns.reviews, values.read_count),
            "stock": number(columns.stock, values.read_stock, 32_767),
            "days": number(columns.days, values.read_days, 60),
            "text": text,
            "attributes": found,
            "options": options if any(options) else (),
            "option_names": names,
            "children": str(raw.get(columns.children) or "") if columns.children else "",
            "repairs": [*dict.fromkeys(repairs)],
            "dropped": dropped,
        }

    def _option(self, said: str) -> str:
        mark = self.mapping.cells
        listed = [one.strip() for one in said.split(mark)] if mark else [said]
        plain = (_COLOR_CODE.sub("", one) for one in listed)
        return "\n".join(one[:40] for one in dict.fromkeys(plain) if one)

    def _path(self, raw: Table[str, Any], line: Any, repairs: list[str]) -> tuple[str, ...]:
        mapping, columns = self.mapping, self.mapping.columns
        parts: list[str] = []
        for column in columns.category:
            value = raw.get(column)
            if isinstance(value, str):  # a ">" of a tag or an entity's ";" separates no levels
                shown = without_markup(value)
                repairs += [MARKUP] * (shown != value)
                value = shown
            if mapping.several and isinstance(value, str):
                listed = value.split(mapping.several)
                value = next((one for one in listed if not types.is_shelf(one)), value)
            parts += values.read_path(
                value.split(mapping.levels) if mapping.levels and isinstance(value, str) else value
            )
        department = line(columns.department)
        if department and (not parts or parts[0].lower() != department.lower()):
            parts = [department, *parts]
        levels = [clean(part, 80) for part in parts[:8]]
        repairs.extend(reason for _, mended in levels for reason in mended)
        return tuple(dict.fromkeys(name for name, _ in levels if name and name.lower() not in self.nothing))

    def _text(self, raw: Table[str, Any], repairs: list[str]) -> str:
        said: list[str] = []
        for column in self.mapping.columns.text:
            for part in values.read_list(raw.get(column)):
                text, mended = clean(part, TEXT_LIMIT)
                repairs.extend(mended)
                said.append(text)
        whole = " ".join(dict.fromkeys(filter(None, said)))
        if len(whole) <= TEXT_LIMIT:
            return whole
        repairs.append(LONG)
        return whole[:TEXT_LIMIT].rsplit(" ", 1)[0]

    def _attributes(
        self, raw: Table[str, Any], title: str, details: Table[str, str], line: Any
    ) -> tuple[dict[str, Found], tuple[str, ...]]:
        """Read attributes, columns before detail tables before titles, and name those that none could be read of."""
        found, twice = attributes.read_title(title)
        said_of = dict.fromkeys(twice, TWO_VALUES)
        for key, said in details.items():
            if not (names := attributes.names_of(key)):
                continue
            where = clean(f"{self.mapping.columns.details}.{key}", 60)[0]
            given = attributes.of_value(key, clean(said, 200)[0], where)
            found |= given
            said_of |= {} if given else dict.fromkeys(names, NO_FORM)
        for column, name in self._names.items():
            said = line(column)
            if name in attributes.known():
                value = attributes.normal(name, attributes.with_unit(column, said))
            else:
                value = said if len(said) <= 30 and not is_nothing(said) else None
            if value:
                found[name] = value, f"{clean(column, 60)[0]}: {said[:40]}"
            elif said:
                said_of[name] = NO_FORM
        return found, tuple(f"{name}: {why}" for name, why in said_of.items() if name not in found)


def line_of(details: Table[str, str], *keys: str) -> str:
    """Return the first of these entries of a detail table, clean; "" where it has none."""
    folded = {key.lower(): said for key, said in details.items()}
    return next((clean(folded[key], 200)[0] for key in keys if key in folded), "")


def excerpt(raw: Table[str, Any], limit: int = 500) -> str:
    """Return a row's raw values as text, cut to `limit` characters."""
    try:
        text = raw[""] if set(raw) == {""} else json.dumps(raw, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = repr(raw)
    return str(text).encode("utf-8", "replace").decode("utf-8")[:limit]


@lru_cache(maxsize=4_096)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)\b{re.escape(name)}\b")


def _brand(said: str) -> str:
    match = _STORE.fullmatch(said)
    name = (match[1] if match else said)[:60].strip(" -,.")
    return _LEGAL.sub("", name) or name


def currency_of(rows: Iterable[Table[str, Any]], mapping: Mapping) -> tuple[str, str]:
    """Return the currency of the prices and what says so: the mapping, most prices, a column beside them or the name of
    theirs; US dollars where nothing does ("")."""
    if mapping.currency:
        return mapping.currency, "the mapping"
    columns = mapping.columns
    named: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for column in filter(None, (columns.price, columns.sale, columns.currency)):
            said, _ = values.single(value_at(row, column))
            if isinstance(said, str) and (currency := prices.currency_of(said)):
                named[currency, f"what stands in {column}"] += 1
    if named:
        return max(named, key=lambda one: (named[one], one))
    codes = known_currencies()
    for column in (columns.price, columns.sale):
        own = [code for said in _CODE.findall(column.replace("_", " ")) if (code := said.upper()) in codes]
        currency = own[-1] if own else prices.currency_of(column)
        if currency in codes:
            return currency, f"the name of {column}"
    return "USD", ""


@cache
def known_currencies() -> frozenset[str]:
    """Codes of currencies: "INR"."""
    from babel.numbers import list_currencies

    return frozenset(list_currencies())
