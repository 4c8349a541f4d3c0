"""Formats of what a customer ranks products by, and of what they would give up first."""

import re
from collections.abc import Mapping
from typing import Any

from ecomlab import other_words
from ecomlab.slots import DAYS, declared
from ecomlab.values import FORMATS, Format
from ecomlab.world.ranking import Worth
from ecomlab.world.substitutes import NOUNS, noun

_AMOUNT = FORMATS["money"].pattern
_TERM = rf"(?:{_AMOUNT}) more for each [a-z]+ [a-z]+"
_OR_ELSE = ", or else "
_NAMES: Mapping[str, str] = {DAYS.name: "delivery time"}
"""Customers' words for demands whose plain name would sound odd."""
_BACK = {said: name for name, said in _NAMES.items()}
_ATTRIBUTES = {said: name for name, said in NOUNS.items()}
_DEMAND = r"the [a-z][\w/-]*(?: [\w/-]+)*?"


def _worth(value: Worth, write: Any = FORMATS["money"].write) -> str:
    gains = {limit.name: limit.gain for limit in declared()}
    return " and ".join(f"{write(cents)} more for each {gains[name]}" for name, cents in value.terms)


def _read_worth(text: str) -> Worth:
    slots = {limit.gain: limit.name for limit in declared() if limit.gain}
    terms = (one.split(" more for each ") for one in re.findall(_TERM, text))
    return Worth(tuple((slots[unit], FORMATS["money"].read(said)) for said, unit in terms if unit in slots))


def demand(name: str) -> str:
    """Name a demand as customers do: "price", "delivery time", "compatibility"."""
    return _NAMES.get(name) or noun(name.removeprefix("attr:"))


def _read_demand(said: str) -> str:
    said = said.removeprefix("the ")
    if said in ("price", "rating", "brand"):
        return said
    return _BACK.get(said) or f"attr:{_ATTRIBUTES.get(said) or said.replace(' ', '_')}"


WORTH = Format(
    _worth,
    rf"{_TERM}(?: and {_TERM})*",
    _read_worth,
    lambda value: tuple(_worth(value, lambda cents, n=n: other_words.dollars(cents)[n]) for n in range(2)),
)
"""A `Worth`: "$10 more for each extra star and $3 more for each day sooner"."""
GIVE_WAY = Format(
    lambda names: _OR_ELSE.join(f"the {demand(name)}" for name in names),
    rf"{_DEMAND}(?:{_OR_ELSE}{_DEMAND})*",
    lambda text: list(map(_read_demand, text.split(_OR_ELSE))),
)
"""Demands, the one that gives way first: "the price, or else the color"."""


def can_be_named(name: str) -> bool:
    """Tell whether a demand's name can be said and read again."""
    said = f"the {demand(name)}"
    return re.fullmatch(_DEMAND, said) is not None and _read_demand(said) == name
