"""What a message to one customer may name: slots and the words that ask for them, items and values.

A vocabulary is compiled once for each kind of customer and shop, and shared. Words are data: `asks.toml` for shipped
slots and attributes, `SlotType.asked` and `asked` in a file of phrases for others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from ecomlab.catalog import ProductType
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.reading.catalog_names import CatalogNames, by_talk, index_of
from ecomlab.customer.reading.words import AMOUNTS, NUMBER, VALUE, Known, Names, Token, names, stem
from ecomlab.customer.templates import Phrases, Template
from ecomlab.settings import Strict, read_toml
from ecomlab.slots import declared, slot_type

Row = tuple[frozenset[str] | None, ...]
"""A phrase: the stems that may stand at each place; None for up to `GAP` words."""
GAP = 3
CLOSED = "="
"""What stands between slot and value in the meaning of a phrase for a value."""
OPEN = "open"
"""In place of a slot: whatever else there is."""
TYPE = "type"
"""Slot of the type of a thing that a message names and the customer has not."""
NAMED = {
    kind: tuple(slot.name for slot in declared() if slot.names == kind)
    for kind in ("brand", "feature", "type")
}
"""Slots whose values are names of the shop, by kind of name."""


class Asks(Strict):
    """Schema of asks.toml."""

    slots: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    values: dict[str, dict[str, tuple[str, ...]]]


@cache
def asks() -> Asks:
    """Read the words by which slots are asked for."""
    return read_toml(Path(__file__).with_name("asks.toml"), Asks)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The slots that a customer may be asked about, and all that a message to them may name."""

    slots: tuple[str, ...]
    phrases: Mapping[str, tuple[tuple[Row, str, bool], ...]]
    """Phrases, the slot that each asks for and whether it is that slot's own name, by their first stem."""
    known: Known
    """Names of items, then of values."""
    items: tuple[str, ...] = ()
    """The type of each item."""
    has: tuple[frozenset[str], ...] = ()
    """The attributes and the option of each item, as slots; empty for an item without a type."""
    by_mark: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Slots whose values are amounts, by the mark of these."""

    def of_item(self, slot: str, item: int) -> str:
        """Return the slot that the words for an attribute mean of an item: the color of a lens is its tint."""
        has = self.has[item] if 0 <= item < len(self.has) else frozenset[str]()
        if not has or slot in has or not slot.startswith("attr:"):
            return slot
        name = slot.removeprefix("attr:").replace("_", " ")
        return next((one for one in sorted(has) if name in asks().attributes.get(one[5:], ())), slot)

    def found(self, stems: Sequence[str]) -> tuple[list[tuple[str, int, int]], frozenset[str]]:
        """Find the phrases in a sentence as (slot, start, end), of a slot's that overlap the longest; and the slots all
        of whose words are another slot's own name."""
        found: list[tuple[str, int, int, bool]] = []
        for place, one in enumerate(stems):
            for row, slot, own in self.phrases.get(one, ()):
                end = place + 1 if len(row) == 1 else _end(row, stems, place + 1, 1)
                if end:
                    found.append((slot, place, end, own))
        if len(found) < 2:
            return [one[:3] for one in found], frozenset()
        found.sort(key=lambda one: (not one[3], one[1] - one[2], one[1]))
        kept: list[tuple[str, int, int]] = []
        names: list[tuple[int, int]] = []
        lost = set[str]()
        for slot, start, end, own in found:
            if any(slot == other and start < stop and begin < end for other, begin, stop in kept):
                continue
            if not own and any(begin <= start and end <= stop for begin, stop in names):
                lost.add(slot)
                continue
            names += [(start, end)] if own else []
            kept.append((slot, start, end))
        return kept, frozenset(lost - {slot for slot, *_ in kept})

    def values(self, token: Token) -> tuple[tuple[str, str], ...]:
        """List what a token can be a value of, as (slot, value); an amount is its own value."""
        if token.stem == VALUE:
            return token.means
        if token.stem in AMOUNTS:
            return tuple((slot, token.word) for slot in self.by_mark.get(token.stem, ()))
        return ()


def _end(row: Row, stems: Sequence[str], place: int, first: int) -> int:
    """Place after the elements of a row from the `first` on, which begin at `place`; 0 where they do not stand
    there."""
    for number in range(first, len(row)):
        element = row[number]
        if element is None:
            return next(
                (
                    end
                    for skip in range(GAP + 1)
                    if place + skip < len(stems) and (end := _end(row, stems, place + skip, number + 1))
                ),
                0,
            )
        if place >= len(stems) or stems[place] not in element:
            return 0
        place += 1
    return place


def vocabulary_of(phrases: Phrases, lexicon: Lexicon, types: Sequence[str]) -> Vocabulary:
    """Compile the vocabulary of a customer who speaks of items of these types, in their order."""
    own = tuple((name, slot) for name, slot in phrases.slots.items() if not slot.once)
    return _vocabulary(phrases.asks, own, lexicon, tuple(types))


@lru_cache(maxsize=2_048)
def _vocabulary(
    able: tuple[str, ...], own: tuple[tuple[str, Template], ...], lexicon: Lexicon, types: tuple[str, ...]
) -> Vocabulary:
    kinds = [lexicon.types.get(name) for name in types]
    attributes: dict[str, list[str]] = {}
    options: list[str] = []
    for kind in filter(None, kinds):
        for attribute in kind.attributes:
            attributes.setdefault(f"attr:{attribute.name}", []).extend(attribute.values)
        options += kind.option.values
    if "attr" in able and "option" not in able:  # somebody may ask for the option all the same
        for kind in (kind for kind in kinds if kind and kind.option.values):
            attributes.setdefault(f"attr:{kind.option.name}", []).extend(kind.option.values)
    for name, own_values in attributes.items():  # somebody may name a value that no such thing has
        own_values.extend(_anywhere(lexicon, name.removeprefix("attr:")))
    slots = [name for ask in able for name in (attributes if ask == "attr" else [ask])]
    slots += [name for name, _ in own if name not in slots]
    known = [_item_names(types, lexicon)]
    own_types = tuple(dict.fromkeys(kind.name for kind in kinds if kind))
    for name in slots:
        values = attributes.get(name) or (options if name == "option" else ())
        known += [_value_names(name, tuple(dict.fromkeys(values)))] if values else []
    for kind_of_name, named in NAMED.items():
        for name in named:
            known += _names_of(lexicon, kind_of_name, name, own_types) if name in slots else []
    known += _names_of(lexicon, "type", TYPE, own_types)
    called = {name: slot.asked for name, slot in own if slot.asked or name not in asks().slots}
    called |= {name: slot_type(name).asked for name in able if slot_type(name).asked}
    option_names = tuple(dict.fromkeys(kind.option.name for kind in kinds if kind and kind.option.values))
    rows = [*_phrases(tuple(slots), tuple(called.items()), option_names)]
    marks: dict[str, list[str]] = {}
    for name in slots:
        if slot_type(name).mark:
            marks.setdefault(slot_type(name).mark, []).append(name)
    known += [
        _value_names(name, tuple(slot.format.words), bare=True)
        for name, slot in own
        if slot.format.words and slot_type(name).mark != NUMBER
    ]
    by_first: dict[str, list[tuple[Row, str, bool]]] = {}
    for row, name, own_name in rows:
        for first in row[0] or ():
            by_first.setdefault(first, []).append((row, name, own_name))
    return Vocabulary(
        tuple(slots),
        {first: tuple(some) for first, some in by_first.items()},
        Known(known),
        types,
        tuple(_described(kind) for kind in kinds),
        {mark: tuple(some) for mark, some in marks.items()},
    )


@lru_cache(maxsize=1_024)
def _anywhere(lexicon: Lexicon, attribute: str) -> tuple[str, ...]:
    """List the values of an attribute that products of any type have."""
    kinds = lexicon.types.values()
    every = (one.values for kind in kinds for one in (*kind.attributes, kind.option) if one.name == attribute)
    return tuple(dict.fromkeys(value for values in every for value in values))


def _described(kind: ProductType | None) -> frozenset[str]:
    """Name the slots of the attributes and the option of a type."""
    described = (*kind.attributes, kind.option) if kind else ()
    return frozenset(f"attr:{one.name}" for one in described if one.values)


@lru_cache(maxsize=4_096)
def _phrases(
    slots: tuple[str, ...], called: tuple[tuple[str, tuple[str, ...]], ...], options: tuple[str, ...]
) -> tuple[tuple[Row, str, bool], ...]:
    """Compile the phrases that ask for these slots, and for the values that they have in the file."""
    file, own = asks(), dict(called)
    found: dict[tuple[Row, str], bool] = {}
    for slot in slots:
        names = [*own.get(slot, ())]
        texts = [*file.slots.get(slot_type(slot).shares, ()), *file.slots.get(slot, ())]
        for name in (
            [slot.removeprefix("attr:")] if slot.startswith("attr:") else options if slot == "option" else ()
        ):
            names.append(name.replace("_", " "))
            texts += file.attributes.get(name, ())
        if not texts and not names and slot not in file.slots:
            names = [slot.replace("_", " ")]
        found |= {(row_of(text), slot): False for text in texts} | {
            (row_of(name), slot): True for name in names
        }
        for value, said in file.values.get(slot, {}).items():
            found |= {(row_of(text), f"{slot}{CLOSED}{value}"): False for text in said}
    for text in file.slots["open"]:
        found[row_of(text), OPEN] = False
    return tuple((row, slot, own_name) for (row, slot), own_name in found.items())


@cache
def row_of(text: str) -> Row:
    """Compile a phrase: words by their stems, a|b for either, ".." for up to three words."""
    row = tuple(
        None if word == ".." else frozenset(one if one.isupper() else stem(one) for one in word.split("|"))
        for word in text.split()
    )
    if not row or row[0] is None:
        raise ValueError(f"the phrase {text!r} does not begin with a word")
    return row


@lru_cache(maxsize=4_096)
def _item_names(items: tuple[str, ...], lexicon: Lexicon) -> Names:
    """Index the names of items: a type, its plural, and its last word where no other item has that."""
    called = [[name, lexicon.types[name].plural] if name in lexicon.types else [] for name in items]
    heads = [{_head(name) for name in some} for some in called]
    whole = {stem(name.lower()) for some in called for name in some}
    alone = {
        one for some in heads for one in some if one and sum(one in other for other in heads) == 1
    } - whole
    return names(
        (name, ("", str(number)))
        for number, some in enumerate(called)
        for full in some
        for name in (full, *(head for head in (full.split()[-1:]) if _head(full) in alone))
    )


def _head(name: str) -> str:
    """Stem of the last word of a name, by which people call it as well: "the kettle"; "" where it means more."""
    words = name.lower().split()
    found = stem(words[-1]) if len(words) > 1 else ""
    return "" if found in _asking() else found


@cache
def _asking() -> frozenset[str]:
    """Stems of the words by which anything is asked for."""
    file = asks()
    texts = [text for some in (*file.slots.values(), *file.attributes.values()) for text in some]
    return frozenset(one for text in texts for element in row_of(text) for one in element or ())


@lru_cache(maxsize=4_096)
def _value_names(slot: str, values: tuple[str, ...], written: bool = False, bare: bool = False) -> Names:
    """Index the values of a slot; `bare`: a customer says "my" of them, and an agent does not."""
    return names(((value.removeprefix("my ") if bare else value, (slot, value)) for value in values), written)


@lru_cache(maxsize=2_048)
def _names_of(lexicon: Lexicon, kind: str, slot: str, types: tuple[str, ...]) -> tuple[Names, ...]:
    """Return the shop's names of a kind as values of a slot.

    Any of a real catalog's thousands of names may be an ordinary word. There a name needs a capital if it is a word of
    a shop's talk ("Standard"), or of other types; if it is both ("Brand"), it is none to whoever speaks of these types.
    """
    if lexicon.is_real and kind != "type":
        index, within = index_of(lexicon, kind), tuple(lexicon.within(of)[kind] for of in types)
        return (
            CatalogNames(index, slot, within, talk=False, written=False),
            CatalogNames(index, slot, within, talk=True, written=True),
            CatalogNames(index, slot, None, talk=False, written=True),
        )
    every = tuple(lexicon.names[kind].values())
    if not lexicon.is_real:
        return (_value_names(slot, every),)
    plain, talk = by_talk(every)
    return (_value_names(slot, plain), _value_names(slot, talk, written=True))


def items_in(tokens: Iterable[Token]) -> list[int]:
    """List the numbers of the items that tokens name."""
    return list(dict.fromkeys(int(token.means[0][1]) for token in tokens if token.stem == "ITEM"))
