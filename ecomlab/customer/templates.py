"""Sayings: what a customer says in whole sentences because it is no property of a product, and how it is read back.

A slot whose name an environment's `sayings` hold is rendered by one of its forms and parsed by the same forms, so that
what the ledger calls stated can be read from the message by construction (law 2). Their words carry no noise.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ecomlab.values import (
    Kind,
)


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
