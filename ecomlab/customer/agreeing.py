"""Agreeing: what a customer has agreed to in their own line, in the words of the message that asked for it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ecomlab.answers.amounts import read_amount
from ecomlab.customer.acts import Act
from ecomlab.customer.reading.words import MONEY, Known, sentences

_YES = frozenset(("consent", "yes", "as wanted"))
"""Kinds of the acts by which a customer agrees."""
_NAMES = Known([])
_EITHER = re.compile(r"\d or \W*\d")
"""Two amounts of which a yes would choose none."""


@dataclass(frozen=True)
class Agreement:
    """A message to which the customer said yes."""

    text: str
    """In small letters."""
    amounts: frozenset[int]
    """Cents that it names."""

    def names(
        self, thing: Collection[str], cents: int, beside: Collection[int], word: str, words: Sequence[str]
    ) -> bool:
        """Tell whether it names a thing by one of its names, an amount, and of these words one alone, where any.

        Amounts `beside` it, such as fees and prices, may be named as well. Who names another one, or two to choose
        from, asks for a yes to either.
        """
        said = [one for one in words if re.search(rf"\b{re.escape(one)}s?\b", self.text)]
        named = any(name.lower() in self.text for name in thing) and cents in self.amounts
        alone = {*self.amounts} <= {cents, *beside} and not _EITHER.search(self.text)
        return named and alone and (not word or said == [word])


def agreement(text: str, acts: Sequence[Act]) -> Agreement | None:
    """Return what a customer agrees to who answers a message by these acts; None where they do not agree."""
    if not any(act.kind in _YES for act in acts):
        return None
    tokens = [one for some in sentences(text, _NAMES) for one in some.tokens if one.stem == MONEY]
    found = [read_amount(text[one.start : one.end], "cents") for one in tokens]
    return Agreement(text.lower(), frozenset(one for one in found if one is not None))
