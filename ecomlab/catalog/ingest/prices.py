"""Prices as product files write them: "$1,299.00", "$1.2k", "5 for $10", "was $20, now $15", "50¢"."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from ecomlab.catalog.ingest.text import is_nothing

MOST_CENTS: Final = 10_000_000 * 100
"""A price from here on is a mistake."""
TEXT, RANGE, SEVERAL, CURRENCY, UNREAD, SIZE = (
    "price written as text",
    "price range: the lowest taken",
    "price of several: that of one taken",
    "price in another currency left out",
    "unreadable price left out",
    "impossible price left out",
)
"""Names of repairs."""
_USUAL = re.compile(r"(\$? ?)(\d{1,7}|\d{1,3}(?:,\d{3})+)(\.\d\d)?")
"""What nearly all prices in text look like. The others are read with more care, which takes much longer."""
_SIGNS: Final = {
    "$": "USD", "US$": "USD", "€": "EUR", "EURO": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "R$": "BRL", "A$": "AUD",
    "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD", "SG$": "SGD",
}  # fmt: skip
_MARKS = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "×": "x", "’": "'", "¤": "€", "\xa0": " ", "\u202f": " "}
)
_NATION = re.compile(r"\b(AU|CA|HK|NZ|SG|US) \$")
_CENTS = re.compile(r"(\d+(?:[.,]\d+)?) ?(?:¢|c|cents?)", re.IGNORECASE)
_EURO_POINT = re.compile(r"(\d)€ ?(\d\d)(?!\d)")
"""The sign in the place of the point: "35€99"."""
_SHARE = re.compile(r"\d+(?:[.,]\d+)? ?%")
_MISTYPED = re.compile(r"\d[A-DF-Za-df-wyz][.,]?\d")
"""A letter within a number: "1O.99"."""
_NUMBER = r"(\d+(?:\.\d+)?[eE][+-]?\d+|\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d[\d.,]*(?<![.,])|\.\d+)"
_SCALE = r"(?: ?([kK]|million)\b|(M)\b)?"
_SCALES: Final = {"": 1, "k": 1_000, "m": 1_000_000, "million": 1_000_000}
_BETWEEN = re.compile(r" ?(?:-|to|bis|and|or) ?")
_NOW = re.compile(
    r"\b(?:now|sale|deal|special|offer|today|reduced to)(?: price)?(?: only| for)?[ :]*$", re.IGNORECASE
)
_UNPAID = re.compile(
    r"(?:\b(?:was|reg|regular|list|msrp|rrp|uvp|retail|original|originally|compare at|save|shipping)\.?(?: price)?[ :]*"
    r"|[+(] ?)$",
    re.IGNORECASE,
)
"""What stands before an amount that is not the product's: a former price, a saving, shipping, one of a unit."""
_OFF = re.compile(r" ?off\b", re.IGNORECASE)
_HOLDS = re.compile(r"\b(?:pack|set|box|case|lot) of \d+", re.IGNORECASE)


@dataclass(frozen=True)
class _Amount:
    """A number of a text, and where it stands with its currency's sign."""

    value: Decimal
    start: int
    end: int
    signed: bool
    scale: int = 1


@lru_cache(maxsize=65_536, typed=True)  # True is no price, though it equals 1
def read_price(value: Any, currency: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a price in cents, with the repairs it took; None where there is none, or none in `currency`."""
    if is_nothing(value):
        return None, ()
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _cents(Decimal(str(value)), ())
    text = str(value).strip()[:200]
    usual = _USUAL.fullmatch(text)
    if usual and (not usual[1].strip() or currency in ("", "USD")):
        amount = Decimal(usual[2].replace(",", "") + (usual[3] or ""))
        return _cents(amount, (TEXT,) if usual[1] or "," in text else ())
    try:
        return _cents(Decimal(text), ()) if text[0].isdigit() else _of_text(text, currency)
    except ArithmeticError:
        pass
    try:
        return _of_text(text, currency)
    except (ArithmeticError, ValueError):
        return None, (UNREAD,)


@lru_cache(maxsize=8_192)
def currency_of(text: str) -> str | None:
    """Tell the currency that a price names ("EUR"); None where it names none."""
    return _code(_sign(_plain(text[:200]))) or None


def _of_text(text: str, currency: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a price among words. Raises ArithmeticError or ValueError for what is no number."""
    text = _plain(text)
    if in_cents := _CENTS.fullmatch(text):
        return _cents(Decimal(in_cents[1].replace(",", ".")) / 100, (TEXT,))
    sign = _sign(text)
    if _is_negative(text, sign) or re.fullmatch(r"free\W*", text, re.IGNORECASE):
        return None, (SIZE,)
    text, several = _without_counts(text, sign)
    asked = [] if _MISTYPED.search(text) else _asked(list(_amounts(text, sign)), text)
    if not asked:
        return None, (UNREAD,)
    if sign and currency and _code(sign) != currency:
        return None, (CURRENCY,)
    repairs = (TEXT, *(RANGE,) * (len(asked) > 1), *(SEVERAL,) * (several > 1))
    return _cents(min(one.value for one in asked) / several, repairs)


def _plain(text: str) -> str:
    """Write dashes and blanks in one way, without percentages, which are no money."""
    text = " ".join(text.translate(_MARKS).split())
    return _SHARE.sub("", _EURO_POINT.sub(r"\1.\2 €", _NATION.sub(r"\1$", text)))


def _sign(text: str) -> str:
    """Return the sign of the currency that a text names, as it is written there."""
    from price_parser import Price

    return Price.fromstring(text).currency or ""


def _code(sign: str) -> str:
    return _SIGNS.get(sign.upper(), sign.upper())


def _is_negative(text: str, sign: str) -> bool:
    mark = f"(?:{re.escape(sign)})? ?"
    in_brackets = rf"{mark}\( ?{mark}[\d.,]+ ?{mark}\)"
    return bool(re.match(rf"(?:- ?{mark}|{mark}- ?)[\d.]|(?:{in_brackets}|{mark}[\d.,]*\d-)$", text))


def _without_counts(text: str, sign: str) -> tuple[str, int]:
    """Leave out numbers that count things ("2 x $3", "pack of 2: $10"), and say of how many the amount is the price:
    5 of "5 for $10"."""
    mark = re.escape(sign) or "(?!)"
    text = _HOLDS.sub("", text)
    text = re.sub(rf"(?<!\S)\d+ ?x ?(?={mark})|(?<=\d) ?x ?\d+$", "", text, flags=re.IGNORECASE)
    for pattern in (rf"(?<!\S)(\d+) ?(?:for (?={mark}|\d)|/ ?(?={mark}))", r"(?<=\d) for (\d+)$"):
        if (count := re.search(pattern, text, re.IGNORECASE)) and int(count[1]):
            return text[: count.start()] + text[count.end() :], int(count[1])
    return text, 1


def _amounts(text: str, sign: str) -> Iterator[_Amount]:
    """Yield the numbers of a text. Raises ArithmeticError for what looks like one and is none: "1.2.3"."""
    from price_parser import Price

    mark = re.escape(sign) or "(?!)"
    for match in re.finditer(rf"(?:({mark}) ?|(?<![\w.,])){_NUMBER}{_SCALE}(?: ?({mark})(?! ?\d))?", text):
        number, scale = match[2], _SCALES[(match[3] or match[4] or "").lower()]
        amount = Decimal(number) if "e" in number.lower() else Price.fromstring(number).amount
        if amount is None:
            raise ArithmeticError(number)
        yield _Amount(amount * scale, match.start(), match.end(), bool(match[1] or match[5]), scale)


def _asked(found: Sequence[_Amount], text: str) -> Sequence[_Amount]:
    """Choose the amounts that the text asks for: one, or those of a range; none where it is not clear which."""
    ranges = [
        (one, other) for one, other in pairwise(found) if _BETWEEN.fullmatch(text[one.end : other.start])
    ]
    if any(one.signed for one in found):
        found = [one for one in found if one.signed or any(one in pair for pair in ranges)]
    now = [one for one in found if _NOW.search(text[: one.start])]
    paid = [one for one in found if not _UNPAID.search(text[: one.start]) and not _OFF.match(text, one.end)]
    asked = now or paid or found
    if len(asked) > 1 and not any(one.signed for one in asked) and (asked[0], asked[1]) not in ranges:
        return []  # "12/15"
    if len(asked) > 1 and asked[-1].scale > 1 == asked[0].scale:  # "$2-3k"
        return [replace(asked[0], value=asked[0].value * asked[-1].scale), *asked[1:]]
    return asked


def _cents(amount: Decimal, repairs: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    if not amount.is_finite() or not 0 < amount * 100 < MOST_CENTS or amount * 100 < 1:
        return None, (SIZE,)
    return int((amount * 100).to_integral_value()), repairs
