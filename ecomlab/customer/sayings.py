"""Sayings: what a customer says in whole sentences because it is no property of a product, and how it is read back.

A slot whose name an environment's `sayings` hold is rendered by one of its forms and parsed by the same forms, so that
what the ledger calls stated can be read from the message by construction (law 2). Their words carry no noise.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

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


@dataclass(frozen=True)
class Saying:
    """One slot's sentences. `forms` hold {} where the value stands; `topic` is what a question must name to get it,
    one of several with a space between them."""

    topic: str
    kind: Kind
    forms: tuple[str, ...]

    def say(self, value: Any, random: np.random.Generator) -> str:
        """The value in one of the forms."""
        return self.forms[int(random.integers(len(self.forms)))].replace("{}", self.kind.write(value))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any of the forms, whatever the case of its first letter."""
        made = []
        for form in self.forms:
            before, _, after = form.partition("{}")
            first = f"(?i:{re.escape(before[:1])})" if before else ""
            made.append(f"{first}{re.escape(before[1:])}({self.kind.pattern}){re.escape(after)}")
        return re.compile("|".join(made))

    def find(self, text: str) -> Iterable[tuple[Any, tuple[int, int]]]:
        """(value, span) of each time it is said in `text`."""
        for match in self.pattern.finditer(text):
            said = next(group for group in match.groups() if group is not None)
            yield self.kind.read(said), match.span()


class Sentences(Saying):
    """A slot with a closed set of values, each with whole sentences of its own; `forms` are all of them."""

    def __init__(self, topic: str, sentences: Mapping[str, Sequence[str]]) -> None:
        forms = tuple(form for some in sentences.values() for form in some)
        super().__init__(topic, Kind(str, "", str), forms)
        object.__setattr__(self, "sentences", sentences)

    sentences: Mapping[str, Sequence[str]]

    def say(self, value: Any, random: np.random.Generator) -> str:
        some = self.sentences[value]
        return some[int(random.integers(len(some)))]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any of the sentences, longer ones first, whatever the case of its first letter."""
        longest_first = sorted(self.forms, key=lambda form: (-len(form), form))
        return re.compile(
            "|".join(f"(?i:{re.escape(form[:1])}){re.escape(form[1:])}" for form in longest_first)
        )

    def find(self, text: str) -> Iterable[tuple[Any, tuple[int, int]]]:
        back = {form.lower(): value for value, some in self.sentences.items() for form in some}
        for match in self.pattern.finditer(text):
            yield back[match.group().lower()], match.span()


def read_sayings(text: str, sayings: Mapping[str, Saying]) -> tuple[list[tuple[str, Any]], str]:
    """(name, value) pairs of everything said in `text`, in order, and the text without it."""
    found = (
        sorted((span, name, value) for name, saying in sayings.items() for value, span in saying.find(text))
        if sayings
        else []
    )
    said: list[tuple[str, Any]] = []
    rest, end = "", 0
    for (start, stop), name, value in found:
        if start >= end:
            said.append((name, value))
            rest += text[end:start]
            end = stop
    return said, rest + text[end:]


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
