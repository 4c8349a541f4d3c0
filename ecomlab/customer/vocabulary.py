"""What a message to one customer may name: slots, items and values, compiled once for each vocabulary."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ecomlab.customer.phrasing import (
    Index,
    compiled,
    familiar,
    index,
    messages,
    phrases,
    shared_by,
    spoken,
    stems_of,
)
from ecomlab.customer.words import Names, names, stem
from ecomlab.slots import declared

ALSO = {slot.shares: slot.name for slot in declared() if slot.shares}
"""Slots whose phrases serve for another one as well."""


@dataclass(frozen=True)
class Vocabulary:
    """The slots of a customer in order, the phrases for them, and the names of items and values."""

    rank: Mapping[str, int]
    own: Index
    """Phrases of slots that have names of their own: attributes, the option."""
    shared: Index
    """The shared phrases that count."""
    known: tuple[Names, ...]
    words: frozenset[str]
    """Stems of the words of its own phrases."""
    shop: Container[str]
    """Stems of the names of what the shop sells: somebody who works there may speak of it."""
    has: tuple[frozenset[str], ...] = ()
    """The attributes that each item has, as slots."""
    last: frozenset[str] = frozenset()
    """Slots that are meant only where no other one is."""

    def is_familiar(self, word: str) -> bool:
        """Tell whether a stem is of a word by which anything is asked for, or ordinary."""
        return word in self.words or word in familiar()

    def slot_of(self, meaning: str) -> str | None:
        """The slot that a phrase means; None where the customer has none such."""
        if meaning in self.rank:
            return meaning
        also = ALSO.get(meaning)
        return also if also in self.rank else None


def vocabulary(
    slots: Iterable[str],
    items: Sequence[Sequence[str]],
    values: Mapping[str, Iterable[str] | Names],
    called: Mapping[str, Iterable[str]],
    shop: Container[str] = frozenset(),
    has: tuple[frozenset[str], ...] = (),
    last: frozenset[str] = frozenset(),
    written: Iterable[tuple[str, tuple[str, ...] | Names]] = (),
) -> Vocabulary:
    """Compile the vocabulary of a customer, or take what an equal one needed before."""
    order = tuple(dict.fromkeys(slots))
    own = tuple((slot, tuple(some)) for slot, some in called.items() if slot in order)
    capitals = (one for one in written if one[0] in order and one[1])
    return Vocabulary(
        {slot: number for number, slot in enumerate(order)},
        _own(order, own),
        _shared(order),
        (
            _item_names(tuple(map(tuple, items))),
            *(_known(slot, some) for slot, some in values.items() if slot in order),
            *(_known(slot, some, written=True) for slot, some in capitals),
        ),
        _words(order, own),
        shop,
        has,
        last,
    )


@lru_cache(maxsize=4_096)
def _own(slots: tuple[str, ...], called: tuple[tuple[str, tuple[str, ...]], ...]) -> Index:
    other, by_slot = phrases().attributes, dict(called)
    made = []
    for slot in slots:
        own = list(by_slot.get(slot, ()))
        if slot.startswith("attr:"):
            own.append(slot.removeprefix("attr:").replace("_", " "))
        for name in dict.fromkeys(own):
            made += [replace(one, name=True) for one in compiled([name.lower()], slot)]
            made += compiled(other.get(name.lower().replace(" ", "_"), ()), slot)
    return index(made)


@lru_cache(maxsize=4_096)
def _words(slots: tuple[str, ...], called: tuple[tuple[str, tuple[str, ...]], ...]) -> frozenset[str]:
    return stems_of(pattern for some in _own(slots, called).values() for pattern in some)


@lru_cache(maxsize=4_096)
def _shared(slots: tuple[str, ...]) -> Index:
    others = [meaning for meaning, slot in ALSO.items() if slot in slots]
    said = [f"open:{name}" for name in messages().open] + [f"says:{name}" for name in messages().says]
    known = (name for name in (*slots, *others) if name in phrases().slots)
    return shared_by(frozenset((*known, *said)))


@lru_cache(maxsize=256)
def closed(slot: str) -> Index:
    """Phrases for the values that the file lists for a slot."""
    listed = phrases().values.get(slot, {})
    return index(one for value, texts in listed.items() for one in compiled(texts, value))


@lru_cache(maxsize=4_096)
def _item_names(items: tuple[tuple[str, ...], ...]) -> Names:
    heads = [{_head(name) for name in called} for called in items]
    whole = {stem(name.lower()) for called in items for name in called}
    alone = {
        one for some in heads for one in some if one and sum(one in other for other in heads) == 1
    } - whole
    return names(
        (name, ("", str(number)))
        for number, called in enumerate(items)
        for full in called
        for name in (full, *(head for head in (full.split()[-1:]) if _head(full) in alone))
    )


def _head(name: str) -> str:
    """Stem of the last word of a name, by which people call it as well: "the kettle"; "" where it means more."""
    words = name.lower().split()
    found = stem(words[-1]) if len(words) > 1 else ""
    return "" if found in spoken() else found


def _known(slot: str, values: Iterable[str] | Names, written: bool = False) -> Names:
    return values if isinstance(values, Names) else _value_names(slot, tuple(map(str, values)), written)


@lru_cache(maxsize=4_096)
def _value_names(slot: str, values: tuple[str, ...], written: bool = False) -> Names:
    return names(((value, (slot, value)) for value in values), written)
