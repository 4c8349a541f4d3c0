"""Readers of what product files write in a field: money, stars, counts, paths, lists and tables in text."""

import ast
import json
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from ecomlab.catalog.ingest.text import is_nothing

MOST_CENTS: Final = 10_000_000 * 100
"""A price from here on is a mistake."""
PRICE_TEXT, PRICE_RANGE, PRICE_CURRENCY, PRICE_UNREAD, PRICE_SIZE = (
    "price written as text",
    "price range: the lowest taken",
    "price in another currency left out",
    "unreadable price left out",
    "impossible price left out",
)
RATING_TEXT, RATING_UNREAD = "rating written as text", "unreadable rating left out"
COUNT_UNREAD, STOCK_NONE = "unreadable count left out", "stock below zero or in words: sold out"
LITERAL, BROKEN_JSON, UNREAD_TABLE = (
    "Python literal in place of JSON",
    "broken JSON mended",
    "unreadable details left out",
)
"""Names of repairs."""
DEEPEST: Final = 40
"""Brackets that may be open at once in JSON; parsers recurse."""
_NO_COMMA = re.compile(r"(['\"])\s+(['\"])")
"""Between the elements of a list as NumPy prints it."""
_SOLD_OUT = re.compile(
    r"-\s*\d+(?:\.\d+)?|out[ _-]?of[ _-]?stock|sold[ _-]?out|unavailable|discontinued", re.IGNORECASE
)
"""How exports say that nothing is left: oversold units count below zero."""
_SHORTENED = re.compile(r"(\d+(?:\.\d+)?)([kKM])\b")
"""A count in thousands or millions, as shops show them: "1.2K", "2M+"."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_RANGE = re.compile(r"\d\s*(?:-|–|—|\bto\b|\bbis\b)\s*\D{0,4}\d")
_BLANKS = re.compile(r"[^\S\n]+")
_BULLET = re.compile(r"\s*(?:[•●▪◦‣·*]|\n\s*[-–]?\s*)\s*")
_SIGNS: Final = {
    "$": "USD",
    "US$": "USD",
    "USD": "USD",
    "€": "EUR",
    "EUR": "EUR",
    "£": "GBP",
    "GBP": "GBP",
    "¥": "JPY",
}


@lru_cache(maxsize=65_536, typed=True)  # True is no price, though it equals 1
def read_price(value: Any, currency: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a price in cents, with the repairs it took; None where there is none, or none in `currency`."""
    if is_nothing(value):
        return None, ()
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _cents(Decimal(str(value)), ())
    text = str(value).strip()[:200]
    try:
        return _cents(Decimal(text), ()) if text[0].isdigit() else _priced(text, currency)
    except ArithmeticError:
        return _priced(text, currency)


def _priced(text: str, currency: str) -> tuple[int | None, tuple[str, ...]]:
    from price_parser import Price

    repairs = [PRICE_TEXT]
    if _RANGE.search(text):
        text = re.split(r"(?<=\d)\s*(?:-|–|—|\bto\b|\bbis\b)", text)[0] + (
            text[-1] if text[-1] in "€£" else ""
        )
        repairs.append(PRICE_RANGE)
    try:
        read = Price.fromstring(text)
    except (ArithmeticError, ValueError):
        return None, (PRICE_UNREAD,)
    if read.amount is None:
        return None, (PRICE_UNREAD,)
    if re.match(r"\s*[-−(]\s*\D?\d", text):
        return None, (PRICE_SIZE,)
    sign = read.currency or ""
    if sign and currency and _SIGNS.get(sign, sign.upper()) != currency:
        return None, (PRICE_CURRENCY,)
    return _cents(read.amount, tuple(repairs))


def _cents(amount: Decimal | None, repairs: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    if amount is None or not amount.is_finite() or not 0 < amount * 100 < MOST_CENTS or amount * 100 < 1:
        return None, (PRICE_SIZE,)
    return int((amount * 100).to_integral_value()), repairs


@lru_cache(maxsize=8_192)
def currency_of(text: str) -> str | None:
    """Tell the currency that a price names ("EUR"); None where it names none."""
    from price_parser import Price

    sign = Price.fromstring(text[:200]).currency
    return _SIGNS.get(sign, sign.upper()) if sign else None


@lru_cache(maxsize=65_536, typed=True)
def read_rating(value: Any) -> tuple[int | None, tuple[str, ...]]:
    """Read a rating of 1 to 5 stars in tenths: 4.5, "4,5", "4.5 out of 5 stars"; 0 stands for not rated."""
    if is_nothing(value) or isinstance(value, bool):
        return None, ()
    found = _NUMBER.search(str(value)[:100])
    stars = float(found.group().replace(",", ".")) if found else math.nan
    if stars == 0:
        return None, ()
    if not 1 <= stars <= 5 or str(value).strip().startswith("-"):
        return None, (RATING_UNREAD,)
    return round(10 * stars), () if isinstance(value, int | float) or _is_number(value) else (RATING_TEXT,)


@lru_cache(maxsize=65_536, typed=True)
def read_count(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read a whole number of at least 0, at most `most`: 1234, "1,234 ratings", "1.2k", "12.0"."""
    if is_nothing(value) or isinstance(value, bool):
        return None, ()
    text = str(value).strip()[:100]
    if _is_number(text):
        number = float(text)
    elif short := _SHORTENED.match(text):
        number = round(float(short[1]) * (1e3 if short[2] in "kK" else 1e6))
    else:
        found = re.match(r"\d{1,3}(?:[,. ]\d{3})+(?!\d)|\d+", text)
        number = float(re.sub(r"[,. ]", "", found.group())) if found else math.nan
    if not number >= 0 or math.isinf(number):
        return None, (COUNT_UNREAD,)
    return int(min(number, most)), ()


def read_stock(value: Any, most: int = 2**31 - 1) -> tuple[int | None, tuple[str, ...]]:
    """Read the units in stock, at most `most`: a count, or 0 where it is below zero or in words: "sold out"."""
    if _SOLD_OUT.fullmatch(str(value)[:100].strip()):
        return 0, (STOCK_NONE,)
    return read_count(value, most)


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def read_path(value: Any) -> tuple[str, ...]:
    """Read a category path, the broadest first, in any of the usual notations.

    A list, a list of lists, JSON or a Python literal in text, or parts separated by ">", "|", ";", "::", " / ",
    "/a/b/c", or dots without spaces ("electronics.audio.headphone").
    """
    if is_nothing(value):
        return ()
    if isinstance(value, str) and value.lstrip()[:1] in "[(":
        value = read_json(value)[0] or value.strip("[]()")
    if isinstance(value, list | tuple):
        first = value[0] if value else ()
        return read_path(first) if isinstance(first, list | tuple) else _parts(map(_named, value))
    text = str(value)[:1_000]
    for separator in (">", "»", "::", "|", ";", " / ", " \\ "):
        if separator in text:
            return _parts(re.split(rf"{re.escape(separator)}+", text))
    if text.startswith("/") or text.count("/") > 1:
        return _parts(text.split("/"))
    if re.fullmatch(r"[a-z_]+(?:\.[a-z_]+)+", text):
        return _parts(text.replace("_", " ").split("."))
    return _parts([text])


def _named(part: Any) -> str:
    """Return the name of a level: of {"id": 5, "name": "Lamps"}, as shops' interfaces have it, "Lamps"."""
    return str(part.get("name", "")) if isinstance(part, dict) else str(part)


def _parts(parts: Any) -> tuple[str, ...]:
    stripped = (" ".join(part.split()) for part in parts)
    return tuple(part for part in stripped if not is_nothing(part))


def read_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """Read JSON in text, also a Python literal or broken JSON; None, with a reason, where nothing can be read."""
    if _depth(text) > DEEPEST:
        return None, (UNREAD_TABLE,)
    text = _NO_COMMA.sub(r"\1, \2", text)
    try:
        return json.loads(text), ()
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text), (LITERAL,)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    try:
        from json_repair import repair_json

        value = repair_json(text[:20_000], return_objects=True)
    except Exception:  # a library for broken input, and what it meets is unbounded
        value = None
    return (value, (BROKEN_JSON,)) if isinstance(value, dict | list) and value else (None, (UNREAD_TABLE,))


def _depth(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[\[\](){}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def read_table(value: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read names and values: an object, one in text as JSON or not quite, or "Color: Black; Size: M"."""
    repairs: tuple[str, ...] = ()
    if is_nothing(value):
        return {}, ()
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            value, repairs = read_json(value)
        else:
            pairs = (part.partition(":") for part in re.split(r"[;\n|]", value[:20_000]))
            value = {name: said.strip() for name, colon, said in pairs if colon}
    if isinstance(value, list | tuple):  # [{"name": "Color", "value": "Black"}] or [["Color", "Black"]]
        value = dict(filter(None, map(_pair, value)))
    if not isinstance(value, dict):
        return {}, repairs or (UNREAD_TABLE,)
    flat = {str(name)[:100].strip(): said for name, said in value.items() if not is_nothing(said)}
    return {name: str(said)[:500] for name, said in flat.items() if not isinstance(said, dict)}, repairs


def _pair(entry: Any) -> tuple[str, Any] | None:
    if isinstance(entry, dict):
        names = {str(name).lower(): said for name, said in entry.items()}
        name = names.get("name", names.get("key"))
        return (str(name), names["value"]) if name is not None and "value" in names else None
    if isinstance(entry, list | tuple) and len(entry) == 2:
        return str(entry[0]), entry[1]
    return None


def read_list(value: Any) -> list[str]:
    """Read a list of sentences: a list, one in text, or bullets and lines."""
    if is_nothing(value):
        return []
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = read_json(value)[0] or value
    if isinstance(value, dict):
        value = [f"{name}: {said}" for name, said in value.items()]
    if isinstance(value, str):
        value = _BLANKS.sub(" ", value)  # a run of blanks would cost its length squared
        value = _BULLET.split(value) if _BULLET.search(value) else [value]
    if not isinstance(value, list | tuple):
        value = [value]
    return [str(part).strip() for part in value if not is_nothing(part)]
