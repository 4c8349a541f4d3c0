"""The names of a real catalog's products, looked up by their words: there may be millions, and a message holds few.

A generated shop's few hundred names are compiled with the customer's vocabulary. Here an index is made once for each
catalog's names, and kept in the cache where there are many; only what a message names is looked at more closely.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.catalog.names import Packed, Table, kept, key, rows_of
from ecomlab.customer.reading.words import is_familiar, needs_capital, stem, stems_of_name

_NO_WORD = re.compile(r"[0-9-]")
"""What no stem of letters has."""
_BY_STEMS, _LONGEST, _ONE_WORD = "stems", "longest", "one word"


class NameIndex:
    """Which of a catalog's names consist of words with given stems.

    `table` has the number of a name that has all these stems, of one that is a single word with this stem, or how many
    words the longest name has that begins with this stem.
    """

    def __init__(self, names: Sequence[str], table: np.ndarray) -> None:
        self._names, self._found = names, Table(table).found
        self.longest = lru_cache(maxsize=8_192)(self._longest)
        self.beginning = lru_cache(maxsize=8_192)(self._beginning)
        self.one_word = lru_cache(maxsize=8_192)(self._one_word)

    def _longest(self, first: str) -> int:
        """Return how many words the longest name has that begins with this stem; 0 if none does."""
        return max(self._found(_LONGEST, first), default=0)

    def _beginning(self, stems: tuple[str, ...]) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Find the names that are the first of these stems, as (how many, names), those of most stems first."""
        found = []
        for size in range(len(stems), 0, -1):
            names = (self._names[code] for code in self._found(_BY_STEMS, *stems[:size]))
            if same := tuple(name for name in names if stems_of_name(name) == stems[:size]):
                found.append((size, same))
        return tuple(found)

    def _one_word(self, found: str) -> tuple[str, ...]:
        """Find the names that are one word with this stem."""
        names = (self._names[code] for code in self._found(_ONE_WORD, found))
        return tuple(name for name in names if stem(name.lower()) == found)


def table_of(names: Sequence[str]) -> np.ndarray:
    """Compute an index's table: uint64 (2, rows)."""
    keys, values, longest = [], [], dict[str, int]()
    for code, name in enumerate(names):
        stems = stems_of_name(name)
        if stems:
            keys.append(key(_BY_STEMS, *stems))
            values.append(code)
            longest[stems[0]] = max(longest.get(stems[0], 0), len(stems))
        if not _NO_WORD.search(name):
            keys.append(key(_ONE_WORD, stem(name.lower())))
            values.append(code)
    keys += [key(_LONGEST, first) for first in longest]
    values += longest.values()
    return rows_of(zip(keys, values, strict=True))


@lru_cache(maxsize=64)
def index_of(lexicon: Lexicon, kind: str) -> NameIndex:
    """Return the index of a catalog's brands or features."""
    names = lexicon.listed[kind]
    if not isinstance(names, Packed):
        return NameIndex(names, table_of(names))
    here = Path(__file__).parent
    made_of = [(here / name).read_text("utf-8") for name in ("catalog_names.py", "words.py", "words.toml")]
    return NameIndex(names, kept(names, [*made_of, version("snowballstemmer")], table_of))


@lru_cache(maxsize=65_536)
def _is_talk(name: str) -> bool:
    """Tell whether a name consists of words by which a shop is asked for things, or ordinary ones."""
    return all(is_familiar(stem(word)) for word in re.findall(r"\w+", name.lower()))


def by_talk(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part names into those with a word of their own and those that consist of words of talk."""
    talk = dict.fromkeys(names, False) | {name: True for name in names if _is_talk(name)}
    return tuple(n for n, so in talk.items() if not so), tuple(n for n, so in talk.items() if so)


@dataclass(frozen=True, eq=False)
class CatalogNames:
    """Names of a real catalog as values of a slot: those of some types, or all; those that are words of talk, or those
    that are not; `written` are names only where they have a capital."""

    index: NameIndex
    slot: str
    within: tuple[Mapping[str, str], ...] | None
    """The names of each type by their lower case; None for all names."""
    talk: bool
    written: bool

    def at(self, stems: Sequence[str], place: int) -> Iterator[tuple[int, tuple[str, str], bool]]:
        """Yield (how many stems, meaning, whether it needs a capital) of the names that begin at a place."""
        longest = self.index.longest(stems[place])
        for size, names in self.index.beginning(tuple(stems[place : place + longest])) if longest else ():
            for name in self._own(names):
                yield size, (self.slot, name), self.written or needs_capital(name)

    def _own(self, names: Sequence[str]) -> Iterator[str]:
        mine = (name for name in names if _is_talk(name) == self.talk)
        if self.within is None:
            return mine
        some = list(mine)
        return (name for own in self.within for name in some if name.lower() in own)
