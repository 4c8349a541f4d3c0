"""Prices as product files write them: "$1,299.00", "1.299,00 €", "from $5", "10.99 - 15.99", "was $20, now $15"."""

import re
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from ecomlab.catalog.ingest.text import is_nothing

MOST_CENTS: Final = 10_000_000 * 100
"""A price from here on is a mistake."""
TEXT, RANGE, CURRENCY, UNREAD, SIZE = (
    "price written as text",
    "several prices: the lowest taken",
    "price in another currency left out",
    "unreadable price left out",
    "impossible price left out",
)
"""Names of repairs."""
_USUAL = re.compile(r"(\$? ?)(\d{1,7}|\d{1,3}(?:,\d{3})+)(\.\d\d)?")
"""What nearly all prices in text look like. The others are read with more care, which takes much longer."""
_SIGNS: Final = {
    "$": "USD", "US$": "USD", "€": "EUR", "EURO": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "R$": "BRL", "A$": "AUD",
    "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD", "SG$": "SGD", "ZŁ": "PLN",
    "RS": "INR", "RS.": "INR",
}  # fmt: skip
_MARKS = str.maketrans({"−": "-", "–": "-", "—": "-", "’": "'", "¤": "€"})
_NATION = re.compile(r"\b(AU|CA|HK|NZ|SG|US) \$")
_NUMBER = r"\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d[\d.,]*(?<![.,])|\.\d+"
_BETWEEN = re.compile(r"(?=.)[ ,;:(]*(?:-|to|bis|a|and|or|was|now|)[ :]*")
"""What may stand between two prices of one product; of "5 for $10" or "$15 ($1.25 / oz)" none is sure."""
_CENTS = re.compile(r"¢|\bcents?\b", re.IGNORECASE)


@lru_cache(maxsize=65_536, typed=True)  # True is no price, though it equals 1
def read_price(value: Any, currency: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a price in cents, with the repairs it took; None where there is none, or none in `currency`."""
    if is_nothing(value):
        return None, ()
    text = str(value).strip()[:200]
    usual = _USUAL.fullmatch(text)
    if usual and (not usual[1].strip() or currency in ("", "USD")):
        amount = Decimal(usual[2].replace(",", "") + (usual[3] or ""))
        return _cents(amount, (TEXT,) if usual[1] or "," in text else ())
    try:
        return _cents(Decimal(text), ())
    except ArithmeticError:
        return _of_text(_plain(text), currency)


def is_zero(value: Any) -> bool:
    """Tell whether a price is 0, which as that of a sale stands for none."""
    return re.fullmatch(r"\D*0[0.,]*\D*", str(value)) is not None


@lru_cache(maxsize=8_192)
def currency_of(text: str) -> str | None:
    """Tell the currency that a price names ("EUR"); None where it names none."""
    return _code(_sign(_plain(text[:200]))) or None


def _of_text(text: str, currency: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a price among words: the only amount, or the lowest of a range or of a former and a present price."""
    from price_parser import Price

    sign = _sign(text)
    mark = re.escape(sign) or "(?!)"
    pattern = rf"(?:{mark} ?|(?<![\w.,]))({_NUMBER})(?: ?{mark}(?! ?\d)|(?![\d.,]*(?:[A-Za-z]| ?%)))"
    found = [*re.finditer(pattern, text)]
    between = [text[one.end() : other.start()] for one, other in pairwise(found)]
    end = text[found[-1].end() :].lstrip() if found else ""
    if (
        not found
        or _CENTS.search(text)
        or not all(map(_BETWEEN.fullmatch, between))
        or (between and "/" in end)
    ):
        return None, (UNREAD,)
    if sign and currency and _code(sign) != currency:
        return None, (CURRENCY,)
    if re.match(r"\D*-\D*\d", text):
        return None, (SIZE,)
    amounts = [Price.fromstring(one[1]).amount or Decimal(0) for one in found]
    return _cents(min(filter(None, amounts), default=Decimal(0)), (TEXT, *(RANGE,) * bool(between)))


def _plain(text: str) -> str:
    """Write dashes and blanks in one way."""
    return _NATION.sub(r"\1$", " ".join(text.translate(_MARKS).split()))


def _sign(text: str) -> str:
    """Return the sign of the currency that a text names, as it is written there."""
    from price_parser import Price

    return Price.fromstring(text).currency or ""


def _code(sign: str) -> str:
    return _SIGNS.get(sign.upper(), sign.upper())


def _cents(amount: Decimal, repairs: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    if not amount.is_finite() or not 1 <= amount * 100 < MOST_CENTS:
        return None, (SIZE,)
    return int((amount * 100).to_integral_value()), repairs
