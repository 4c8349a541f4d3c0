"""Values in other words: numbers and amounts spelled out, and units converted if the result means the same.

The reader knows every spelling that the writer uses, and each spelling denotes one value.
"""

import re
from collections.abc import Sequence

ORDINALS = ("", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
"""Words for places, after the first, which goes without one."""
ONES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
HIGHEST = 999
"""Largest number that is spelled out."""


def spelled(number: int) -> str:
    """Spell a whole number from 1 to `HIGHEST`: "two hundred and forty-five". Raises ValueError for any other."""
    if not 1 <= number <= HIGHEST:
        raise ValueError(f"cannot spell {number}; numbers from 1 to {HIGHEST} can be spelled")
    hundreds, rest = divmod(number, 100)
    said = [f"{ONES[hundreds - 1]} hundred"] if hundreds else []
    if rest:
        tens, ones = divmod(rest, 10)
        if rest < 20:
            said.append(ONES[rest - 1])
        else:
            said.append(TENS[tens - 2] + (f"-{ONES[ones - 1]}" if ones else ""))
    return " and ".join(said)


_NUMBERS = {spelled(number): number for number in range(1, HIGHEST + 1)}


def is_number(text: str) -> bool:
    """Tell whether a text in lower case is a number spelled out."""
    return text in _NUMBERS


_ONE, _TEN = "|".join(ONES[:9]), "|".join(TENS)
_BELOW_100 = rf"(?:(?:{_TEN})(?:-(?:{_ONE}))?|{'|'.join(reversed(ONES))})"
SPELLED = rf"(?:(?:{_ONE}) hundred(?: and {_BELOW_100})?|{_BELOW_100})"
"""Pattern of a spelled number."""
NUMBER = rf"(?:\d+|{SPELLED})"
"""Pattern of a whole number in digits or letters."""


def read_number(text: str) -> int:
    """Read a whole number in digits or letters."""
    return int(text) if text.isdecimal() else _NUMBERS[text.lower()]


def in_letters(number: int) -> tuple[str, ...]:
    """Spell a number if it is one that is spelled out."""
    return (spelled(number),) if 1 <= number <= HIGHEST else ()


WORDS = frozenset(
    (
        *ONES,
        *TENS,
        *"hundred and a half point dollar dollars buck bucks cents star stars day days week weeks".split(),
    )
) | {
    "kilo",
    "kilos",
    "inch",
    "people",
    *(
        f"{u}{s}"
        for u in ("millimeter centimeter meter gram milliliter liter watt gigabyte terabyte").split()
        for s in ("", "s")
    ),
}
"""Every word that other words for values are made of, numbers with a hyphen aside."""

# Amounts of money, in cents.

DOLLARS = rf"{NUMBER} (?:dollars?|bucks)(?: and \d+ cents)?"
"""Pattern of an amount in words."""


def dollars(cents: int) -> tuple[str, ...]:
    """Put an amount in other words: "45 dollars", "forty-five dollars", "45 bucks"."""
    whole, rest = divmod(cents, 100)
    unit = "dollar" if whole == 1 else "dollars"
    if rest:
        return (f"{whole} {unit} and {rest} cents",) if whole else ()
    said = [f"{whole} {unit}", *(f"{words} {unit}" for words in in_letters(whole))]
    return tuple(said if whole == 1 else [*said, f"{whole} bucks"])


def read_dollars(text: str) -> int:
    """Read the cents of an amount in words."""
    amount, _, rest = text.partition(" and ") if text.endswith(" cents") else (text, "", "0")
    return 100 * read_number(amount.rsplit(" ", 1)[0]) + int(rest.split()[0])


# Ratings, in tenths of a star.

_DIGIT = rf"(?:\d|{_ONE})"
STARS = rf"{_DIGIT}(?: and a half| point (?:{_ONE}))? (?-i:stars?)(?!-)"
"""Pattern of a rating in words: "3 Star-Kids raincoats" are three."""


def stars(tenths: int) -> tuple[str, ...]:
    """Put a rating in other words: "four and a half stars", "four point three stars"."""
    whole, rest = divmod(tenths, 10)
    if not whole:
        return ()
    half = {0: "", 5: " and a half"}.get(rest)
    if half is None:
        return (f"{ONES[whole - 1]} point {ONES[rest - 1]} stars",)
    unit = "star" if tenths == 10 else "stars"
    return (f"{ONES[whole - 1]}{half} {unit}", f"{whole}{half} {unit}")


def read_stars(text: str) -> int:
    """Read the tenths of a rating in words."""
    text = text.removesuffix("s").removesuffix(" star")
    if text.endswith(" and a half"):
        return 10 * read_number(text.removesuffix(" and a half")) + 5
    whole, _, tenths = text.partition(" point ")
    return 10 * read_number(whole) + (read_number(tenths) if tenths else 0)


# Numbers of days.

DAYS = rf"{NUMBER} days?|a week|{NUMBER} weeks?"
"""Pattern of a number of days in words."""


def days(count: int) -> tuple[str, ...]:
    """Put a number of days in other words: "three days", "a week"."""
    weeks, rest = divmod(count, 7)
    unit = "day" if count == 1 else "days"
    said = [f"{words} {unit}" for words in in_letters(count)]
    if weeks and not rest:
        said += ["a week"] if weeks == 1 else [f"{weeks} weeks", *(f"{w} weeks" for w in in_letters(weeks))]
    return tuple(said)


def read_days(text: str) -> int:
    """Read a number of days in words."""
    count, _, unit = text.rpartition(" ")
    return (1 if count == "a" else read_number(count)) * (7 if unit.startswith("week") else 1)


# Values of attributes: "20 cm", "4 Cups".

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
_BEFORE_NOUN = re.compile(r"\{\} (?!of )")
_UNITS = {
    "mm": "millimeter", "cm": "centimeter", "m": "meter", "g": "gram", "kg": "kilo", "ml": "milliliter", "L": "liter",
    "W": "watt", "GB": "gigabyte", "TB": "terabyte",
}  # fmt: skip
_LARGER = {"mm": ("cm", 10), "cm": ("m", 100), "g": ("kg", 1000), "ml": ("L", 1000)}
_SMALLER = {large: (small, factor) for small, (large, factor) in _LARGER.items()}
_INCH = {"mm": 25.4, "cm": 2.54}
NEAR = 0.02
"""Tolerance, as a share, between whole inches and the metric value; shops round their metric sizes similarly."""


def of_value(value: str, phrase: str = "{}") -> tuple[str, ...]:
    """Put a value of an attribute, as it stands in a phrase, in other words: "eight kilos" for "8 kg", "four cups" for
    "4 Cups", "10 inch" for "25 cm". None where it is no number of something, or where converting does not come out
    even."""
    found = _QUANTITY.fullmatch(value)
    if found is None:
        return ()
    text, unit = found.groups()
    amount, said = float(text), []
    if unit in _UNITS:
        plural = "" if amount == 1 or _BEFORE_NOUN.search(phrase) else "s"  # "a 2 meter cable"
        said.append(f"{text} {_UNITS[unit]}{plural}")
        if amount == int(amount):
            said += [f"{words} {_UNITS[unit]}{plural}" for words in _short(int(amount))]
        elif text.endswith(".5") and amount > 1:
            said.append(f"{spelled(int(amount))} and a half {_UNITS[unit]}{plural}")
        said += _converted(amount, unit)
    elif unit == "C" and amount * 9 % 5 == 0:
        said.append(f"{int(amount * 9 / 5 + 32)} F")
    elif unit[:1].isupper() and unit[1:].islower() and len(unit) > 2 and amount == int(amount):
        said += [f"{words} {unit.lower()}" for words in _short(int(amount))]
    return tuple(said)


def _short(number: int) -> tuple[str, ...]:
    """Spell a number that people say in one breath: up to a hundred, and whole hundreds."""
    return in_letters(number) if number <= 100 or number % 100 == 0 else ()


def _converted(amount: float, unit: str) -> Sequence[str]:
    said = []
    if unit in _LARGER:
        larger, factor = _LARGER[unit]
        if amount * 2 >= factor and amount * 10 % factor == 0:
            said.append(f"{amount / factor:g} {larger}")
    if unit in _SMALLER and (amount != int(amount) or unit == "m") and amount < 10:
        smaller, factor = _SMALLER[unit]
        said.append(f"{amount * factor:g} {smaller}")
    inches = amount / _INCH[unit] if unit in _INCH else 0
    if inches and round(inches) and abs(round(inches) - inches) / inches <= NEAR:
        said.append(f"{round(inches)} inch")
    return said
