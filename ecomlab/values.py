"""Values as text and back: money, days, numbers, names, closed choices, rankings."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """Values of one kind: how a value is written, the pattern that finds it, and how the text is read back."""

    write: Callable[[Any], str]
    pattern: str
    read: Callable[[str], Any]


def money(cents: int) -> str:
    """Dollars as a person writes them: $30, $19.99."""
    return f"${cents // 100}" if cents % 100 == 0 else f"${cents / 100:.2f}"


def _cents(text: str) -> int:
    dollars, _, cents = text.lstrip("$").partition(".")
    return 100 * int(dollars) + int(cents or 0)


def _day(value: str) -> str:
    """ "03-09" as "March 9"."""
    month, day = value[-5:].split("-")
    return f"{MONTHS[int(month) - 1]} {int(day)}"


def _read_day(text: str) -> str:
    month, day = text.split()
    return f"{MONTHS.index(month) + 1:02d}-{int(day):02d}"


def _read_row(text: str) -> list[str]:
    return re.split(", then |, | and ", text)


MONEY = Kind(money, r"\$\d+(?:\.\d\d)?", _cents)
"""Cents."""


NUMBER = Kind(str, r"\d+", int)


DAY = Kind(_day, rf"(?:{'|'.join(MONTHS)}) \d{{1,2}}", _read_day)
"""A day of some year, "MM-DD"."""


NAME = Kind(str, r"[^\s.!?](?:[^.!?\n]|\.(?=\S))*?(?!\.\S)", str)
"""A name, of a product type or a brand: "Levi's", "Johnson & Johnson", "de Buyer". It ends with the sentence."""


def choice(words: Mapping[Any, str]) -> Kind:
    """One of a closed set of values, each with the words that mean it."""
    back = {text: value for value, text in words.items()}
    if len(back) < len(words):
        raise ValueError("two values have the same words")
    longest_first = sorted(back, key=lambda text: (-len(text), text))
    return Kind(lambda value: words[value], "|".join(map(re.escape, longest_first)), lambda text: back[text])


def ranking(names: Sequence[str]) -> Kind:
    """Some of these names in an order that counts: ["price", "rating"] is "price, then rating"."""
    one = "|".join(map(re.escape, names))
    return Kind(lambda value: ", then ".join(value), rf"(?:{one})(?:, then (?:{one}))*", _read_row)
