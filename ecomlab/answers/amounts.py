"""Lenient readers of amounts with units, yes or no, names and clause ids."""

import re
from collections.abc import Collection, Mapping
from decimal import Decimal

from ecomlab.other_words import ONES, TENS

LONGEST = 500
"""Most characters of an answer; a longer text counts as none."""
MEASURES: Mapping[str, Mapping[str, int]] = {
    "days": {"day": 1, "week": 7},
    "hours": {"hour": 1, "hr": 1, "h": 1, "day": 24},
    "months": {"month": 1, "year": 12},
    "points": {"point": 1, "pt": 1},
    "percent": {"%": 10, "percent": 10, "pct": 10},
    "cents": {"$": 100, "dollar": 100, "usd": 100, "cent": 1, "¢": 1},
}
"""Words for each unit, the plainest first, with their size in that unit; percent counts tenths."""
FOREIGN = (
    "minute", "min", "second", "sec", "quarter", "decade", "century", "fortnight", "business", "working",
    "euro", "eur", "pound", "gbp", "yen", "franc", "kg", "kilo", "gram", "g", "lb", "mile", "km",
    "per mille", "permille", "€", "£", "‰",
)  # fmt: skip
"""Units that no policy book uses: an amount of these is no answer."""

_ALL = {*FOREIGN, *(word for measures in MEASURES.values() for word in measures)}
_GLOSS = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(
    r"([$€£]\s*)?(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|-?\.\d+)(?:\s|-)*(per mille|[a-z]+|%|¢|€|£|‰)?"
)
_SPELT = {
    **{word: number for number, word in enumerate(("zero", *ONES))},
    **{word: 20 + 10 * number for number, word in enumerate(TENS)},
}
_SPELLING = re.compile(rf"\b(?:({'|'.join(TENS)})[ -])?({'|'.join(_SPELT)})\b")
_HUNDREDS = re.compile(r"\b(?:(\d)|an?)[ -]hundred\b(?:(?: and)?[ -](\d{1,2})\b)?")
_NONE = re.compile(r"\b(?:no|not|none|never|cannot|nothing|free|can't)\b")
_YES, _NO = re.compile(r"\b(?:yes|yeah|y|true)\b"), re.compile(r"\b(?:no|nope|n|false)\b")
_NO_SUCH = re.compile(r"\bno (?!or\b|and\b|yes\b|yeah\b)[a-z]+")
"""A "no" that is not the answer: "yes, no signature is needed"."""
_CLAUSE = re.compile(r"(?<![a-z0-9])([a-z])\s?[-\u2010-\u2013]\s?(\d{1,9})(?![0-9])")


def read_answer(answer: object, unit: str, names: Collection[object]) -> int | str | None:
    """Read an answer as a number of `unit`, as "yes" or "no" where that is the unit, else as one of `names`."""
    if unit in MEASURES:
        return read_amount(answer, unit)
    return read_yes(answer) if unit == "yes" else read_name(answer, [str(name) for name in names])


def read_amount(answer: object, unit: str) -> int | None:
    """Read a whole number of `unit`, a key of MEASURES: 15, "15 days" and "fifteen" are 15 days, "$7.99" is 799 cents.
    The id of a clause beside it is not a number. Brackets after an amount must repeat it, to the precision given:
    "11 hours (0.5 days)", "38 months (3 years and 2 months)".

    Returns None for anything else: no number, several, one of another unit, a fraction of the unit.
    """
    if isinstance(answer, bool) or not isinstance(answer, int | float | str):
        return None
    text = _plain(answer if isinstance(answer, str) else repr(answer))
    glosses: list[str] = []
    if isinstance(answer, str):
        text = _CLAUSE.sub(" ", text)
        bare = _in_figures(_GLOSS.sub(" ", text))
        if _NUMBER.search(bare):
            text, glosses = bare, [_in_figures(gloss) for gloss in _GLOSS.findall(text)]
        else:
            text = _in_figures(text)
    amounts = {_whole(_amount(match, unit)) for match in _NUMBER.finditer(text)}
    if not amounts:
        return 0 if _NONE.search(text) else None
    amount = amounts.pop() if len(amounts) == 1 else None
    return amount if amount is not None and all(_agrees(gloss, amount, unit) for gloss in glosses) else None


def _in_figures(text: str) -> str:
    """Put spelt numbers in figures; beside figures "one" may be a pronoun: "one has 3 days to claim it"."""
    pronoun = any(character.isdigit() for character in text)
    text = _SPELLING.sub(
        lambda m: m[0] if pronoun and m[0] == "one" else str(_SPELT.get(m[1], 0) + _SPELT[m[2]]), text
    )
    return _HUNDREDS.sub(lambda m: str(100 * int(m[1] or 1) + int(m[2] or 0)), text)


def _amount(match: re.Match[str], unit: str) -> Decimal | None:
    """Convert a number with its unit to `unit`; None for a unit that measures something else."""
    sign, number, word = match.groups()
    word = sign.strip() if sign else word if word in _ALL else (word or "").removesuffix("s")
    measures = MEASURES[unit]
    if word in _ALL and word not in measures:
        return None
    return Decimal(number.replace(",", "")) * measures.get(word, next(iter(measures.values())))


def _whole(amount: Decimal | None) -> int | None:
    return int(amount) if amount is not None and amount == amount.to_integral_value() else None


def _agrees(gloss: str, amount: int, unit: str) -> bool:
    """Compare what a gloss adds up to with an amount, rounded as the gloss is; other units are not judged."""
    total = slack = Decimal(0)
    for match in _NUMBER.finditer(gloss):
        part = _amount(match, unit)
        if part is None:
            return True
        total += part
        number = Decimal(match[2].replace(",", ""))
        digit = Decimal(1).scaleb(int(number.as_tuple().exponent))
        slack = max(slack, digit * (part / number if number else 1) / 2)
    return slack == 0 or abs(total - amount) <= slack


def read_name(answer: object, names: Collection[str]) -> str | None:
    """Find the one of `names` that the answer holds; None when it holds none or several."""
    text = _plain(answer)
    found = [name for name in names if re.search(rf"\b{re.escape(name.lower())}\b", text)]
    return found[0] if len(found) == 1 else None


def read_yes(answer: object) -> str | None:
    """Read "yes" or "no"; None when the answer is neither or both."""
    text = _plain(answer)
    yes = _YES.search(text)
    no = _NO.search(_NO_SUCH.sub(" ", text) if yes else text)
    return None if bool(yes) == bool(no) else "yes" if yes else "no"


def read_clause_id(clause: object) -> str | None:
    """Find the one clause id that the text holds, however it is written: "[C-12]", "clause c-12", with any hyphen or
    dash; None for several."""
    found = {f"{letter.upper()}-{int(number)}" for letter, number in _CLAUSE.findall(_plain(clause))}
    return found.pop() if len(found) == 1 else None


def _plain(answer: object) -> str:
    text = answer if isinstance(answer, str) else ""
    return text.lower() if len(text) <= LONGEST else ""
