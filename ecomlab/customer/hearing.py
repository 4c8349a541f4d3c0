"""Hearing: what a customer can be asked about, and a message's questions about it."""

import re
from collections.abc import Container, Sequence
from datetime import date
from functools import lru_cache

from ecomlab.catalog import ProductType
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.catalog_names import CatalogNames, Sold, by_talk, index_of
from ecomlab.customer.phrasing import phrases
from ecomlab.customer.questions import Question, Reader, Reading
from ecomlab.customer.templates import Phrases, Template
from ecomlab.customer.words import NUMBER, Names, stem
from ecomlab.other_words import SPELLED, read_number
from ecomlab.slots import declared, slot_type
from ecomlab.task import Slot
from ecomlab.world.orders.references import same_time

__all__ = ["Question", "Reading", "agrees", "asks_to_keep", "reader_of"]
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COMPARED = re.compile(r"\b(?:more|less|over|under|above|below|within|than|longer|least|most|up to|fewer)\b")
_KEPT = re.compile(
    r"\b(?:needs?|must|stays?|keep|again|same|ha(?:ve|s) to|as well|too|any|another|other|matters?|insist|important|"
    r"fixed)\b"
)
_LOOSE = re.compile(
    r"\b(?:e\.g\.|for example|for instance|such as|say|like|matters?|at least|any|some|prefer\w*)"
)
NAMES = {
    kind: tuple(slot.name for slot in declared() if slot.names == kind)
    for kind in ("brand", "feature", "type")
}
"""Slots whose values are names of the shop, by kind of name."""


def reader_of(phrases: Phrases, lexicon: Lexicon, types: Sequence[str]) -> Reader:
    """Make the reader of messages to a customer who speaks of items of these types, in the order of the items."""
    own = tuple((name, slot) for name, slot in phrases.slots.items() if not slot.once)
    return _reader(phrases.asks, own, lexicon, tuple(types))


@lru_cache(maxsize=2_048)
def _reader(
    asks: tuple[str, ...], own: tuple[tuple[str, Template], ...], lexicon: Lexicon, types: tuple[str, ...]
) -> Reader:
    kinds = [lexicon.types[name] for name in types if name in lexicon.types]
    attributes: dict[str, list[str]] = {}
    for kind in kinds:
        for attribute in kind.attributes:
            attributes.setdefault(f"attr:{attribute.name}", []).extend(attribute.values)
    wished = frozenset(attributes)
    if "attr" in asks and "option" not in asks:  # somebody may ask for the option all the same
        for kind in kinds:
            attributes.setdefault(f"attr:{kind.option.name}", []).extend(kind.option.values)
    slots = [name for ask in asks for name in (attributes if ask == "attr" else [ask])]
    slots += [name for name, _ in own if name not in slots]
    options = list(dict.fromkeys(value for kind in kinds for value in kind.option.values))
    closed: dict[str, Sequence[str] | Names] = {"option": options, **attributes}
    written: list[tuple[str, tuple[str, ...] | Names]] = []
    own_types = tuple(dict.fromkeys(kind.name for kind in kinds))
    for kind_of_name, own_slots in NAMES.items():
        if lexicon.is_real and kind_of_name != "type":
            by_slot = [_heard(lexicon, kind_of_name, slot, own_types) for slot in own_slots]
            closed |= {names.slot: names for names, *_ in by_slot}
            written += [
                (names.slot, names) for some in zip(*by_slot, strict=True) for names in some if names.written
            ]
            continue
        heard, *talk = (
            by_talk(_names(lexicon, kind_of_name)) if lexicon.is_real else (_names(lexicon, kind_of_name),)
        )
        closed |= dict.fromkeys(own_slots, heard)
        written += [(slot, names) for names in talk for slot in own_slots]
    # Numbers in words the reader knows by itself: "one" alone means no number.
    closed |= {
        n: tuple(slot.format.words) for n, slot in own if slot.format.words and slot_type(n).mark != NUMBER
    }
    called = {name: [name.removeprefix("attr:").replace("_", " ")] for name in attributes}
    called |= {
        name: [*slot.asked] or [name.replace("_", " ")]
        for name, slot in own
        if slot.asked or name not in phrases().slots
    }
    called |= {name: [*slot_type(name).asked] for name in asks if slot_type(name).asked}
    called["option"] = list({kind.option.name.replace("_", " "): None for kind in kinds})
    called["must"] = [word for name in (*attributes, "option") for word in called[name]]
    items = [[name, lexicon.types[name].plural] if name in lexicon.types else [] for name in types]
    return Reader(
        slots,
        items,
        {name: closed[name] for name in slots if name in closed},
        {name: called[name] for name in slots if name in called},
        _sold(lexicon, own_types if lexicon.is_real else ()),
        [_described(lexicon.types.get(name)) for name in types],
        frozenset(attributes) - wished,
        written,
    )


def _described(kind: ProductType | None) -> frozenset[str]:
    """Name the slots of the attributes and the option of a type."""
    return frozenset(f"attr:{one.name}" for one in (*kind.attributes, kind.option)) if kind else frozenset()


def _heard(lexicon: Lexicon, kind: str, slot: str, types: tuple[str, ...]) -> tuple[CatalogNames, ...]:
    """Return a real catalog's names of a kind as values of a slot: those that are heard however they are written, and
    twice those that need a capital.

    Any of thousands of names may be an ordinary word. There a name needs a capital if it is a word of a shop's talk
    ("Classic"), or of other types; if it is both ("Brand"), it is none to whoever speaks of these types.
    """
    index, within = index_of(lexicon, kind), tuple(lexicon.within(of)[kind] for of in types)
    return (
        CatalogNames(index, slot, within, talk=False, written=False),
        CatalogNames(index, slot, within, talk=True, written=True),
        CatalogNames(index, slot, None, talk=False, written=True),
    )


@lru_cache(maxsize=64)
def _names(lexicon: Lexicon, kind: str) -> tuple[str, ...]:
    return tuple(lexicon.names[kind].values())


@lru_cache(maxsize=2_048)
def _sold(lexicon: Lexicon, types: tuple[str, ...]) -> Container[str]:
    """Return the stems of the names of what is sold; of a real catalog's brands and features with types only theirs."""
    kinds = ("type",) if lexicon.is_real else ("type", "brand", "feature")
    names = (name for kind in kinds for name in _names(lexicon, kind))
    stems = frozenset(stem(word) for name in names for word in name.lower().split())
    if not lexicon.is_real:
        return stems
    by_kind = (
        (index_of(lexicon, kind), tuple(lexicon.within(of)[kind] for of in types))
        for kind in ("brand", "feature")
    )
    return Sold(stems, tuple(by_kind))


def asks_to_keep(text: str) -> bool:
    """Tell whether a question about an attribute of something sold out asks if it has to stay as it was."""
    return _KEPT.search(text.lower()) is not None


def agrees(
    slot: Slot, said: str, template: Template | None, text: str, today: date | None = None
) -> bool | None:
    """Tell whether the value that a message names beside a slot is so, times by the clock; None where yes and no would
    both mislead."""
    value, name, limits = slot.value, slot.name, slot_type(slot.name).op != "=="
    if isinstance(value, list | tuple):
        if name == "importance":
            return bool(value) and said.lower() == str(value[0]).lower()
        flat = {str(one).lower() for one in value if isinstance(one, str)}
        return said.lower() in flat if flat else None
    if isinstance(value, int) and not (template and template.format.words):
        number = _said_number(name, said)
        if number is None:
            return None
        if number == value and (limits or not _COMPARED.search(text)):
            return True
        if limits:  # "does the rating matter, say 4 stars?" names no limit
            admitted = slot_type(name).admits(value, number)
            return None if admitted or _LOOSE.search(text) else False
        return None if _COMPARED.search(text) else False
    if template and template.format.words:
        named = next((m for words, m in template.format.words.items() if words.lower() == said.lower()), None)
        if named is None:
            return None
        return same_time(value, named, today) if name == "when" and today else bool(named == value)
    if template is not None:
        said = _read(said, template)
    return str(said).casefold() == str(value).casefold()


def _read(said: str, template: Template) -> str:
    try:
        return str(template.format.read(said))
    except (ValueError, KeyError, IndexError):
        return said


def _said_number(name: str, said: str) -> int | None:
    found = _NUMBER.search(said.replace(",", ""))
    if not found:
        return read_number(said) if re.fullmatch(SPELLED, said, re.IGNORECASE) else None
    return round(float(found.group()) * slot_type(name).scale)
