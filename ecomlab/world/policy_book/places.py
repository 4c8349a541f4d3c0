"""Places where facts can be looked up that a customer does not know: the policy book names one for each."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ecomlab.seeding import Draws
from ecomlab.settings import Strict, read_toml


class Fact(Strict):
    """A fact that may have to be looked up: what the book says of it, what an agent tells, and its possible places."""

    line: str
    tell: str
    places: tuple[str, ...]


class Place(Strict):
    """A place: its words in a sentence, and those by which a message names it."""

    words: str
    heads: tuple[str, ...]


class _File(Strict):
    """Schema of `places.toml`."""

    title: str
    facts: dict[str, Fact]
    places: dict[str, Place]


_READ = read_toml(Path(__file__).with_name("places.toml"), _File)
TITLE = _READ.title
"""Heading of the section."""
FACTS: Mapping[str, Fact] = _READ.facts
PLACES: Mapping[str, Place] = _READ.places
_HEADS = {
    name: re.compile(rf"\b(?:{'|'.join(map(re.escape, place.heads))})s?\b", re.IGNORECASE)
    for name, place in PLACES.items()
}


def draw_places(random: Draws) -> dict[str, str]:
    """Draw the place of each fact."""
    return {name: random.pick(fact.places) for name, fact in FACTS.items()}


def text_of(places: Mapping[str, str]) -> str:
    """Write the section."""
    said = ((FACTS[name], PLACES[places[name]]) for name in FACTS if name in places)
    return "\n".join(fact.line.replace("{}", place.words) for fact, place in said)


def read_places(text: str) -> dict[str, str]:
    """Read the section that `text_of` wrote: the words of each fact's place."""
    found = dict[str, str]()
    for name, fact in FACTS.items():
        before, _, after = fact.line.partition("{}")
        match = re.search(re.escape(before) + "(.+)" + re.escape(after), text)
        found |= {name: match[1]} if match else {}
    return found


def tell(name: str, words: str) -> str:
    """Tell a customer the place of a fact."""
    return FACTS[name].tell.replace("{}", words)


def named_in(text: str, facts: Iterable[str]) -> list[str]:
    """List the places that a text names, of those where one of these facts may stand."""
    able = {place for name in facts for place in FACTS[name].places}
    return [name for name, heads in _HEADS.items() if name in able and heads.search(text)]
