"""Phrases by which people ask for things, and where they stand in a sentence of stems: `questions.toml` and
`messages.toml`, compiled once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from ecomlab.customer.word_classes import class_words
from ecomlab.customer.words import DROPPED, MARKS, ordinary, stem
from ecomlab.settings import Strict, read_toml

FOLDER = Path(__file__).parent
GAP = 3
"""Most words that `..` stands for."""
_UNCROSSED = frozenset({",", ":", "and", "or", "but", "plus"})
"""Stems that `..` does not stand for: the next part of a sentence begins there."""


class Phrases(Strict):
    """Phrases of one meaning: strong ones decide; weak ones count where no strong one stands in the same part of a
    sentence."""

    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()


class Questions(Strict):
    """Schema of questions.toml: what may be asked for."""

    classes: dict[str, tuple[str, ...]]
    slots: dict[str, Phrases]
    attributes: dict[str, tuple[str, ...]]
    values: dict[str, dict[str, tuple[str, ...]]]


class Messages(Strict):
    """Schema of messages.toml: open questions, and what else a message says."""

    open: dict[str, tuple[str, ...]]
    says: dict[str, tuple[str, ...]]


@cache
def phrases() -> Questions:
    """Read the phrases for slots."""
    return read_toml(FOLDER / "questions.toml", Questions)


@cache
def messages() -> Messages:
    """Read the other phrases of messages."""
    return read_toml(FOLDER / "messages.toml", Messages)


@dataclass(frozen=True)
class Pattern:
    """A phrase: elements in a row (sets of stems; None for a gap), and stems that its clause must and must not hold."""

    text: str
    meaning: str
    strong: bool
    row: tuple[frozenset[str] | None, ...]
    starts: bool = False
    ends: bool = False
    needs: tuple[frozenset[str], ...] = ()
    bars: frozenset[str] = frozenset()
    name: bool = False
    """It is the very name of a slot of this customer: of an attribute, of the option."""

    @property
    def weight(self) -> int:
        """Number of words that have to be there."""
        return sum(element is not None for element in self.row) + len(self.needs) + self.starts + self.ends

    @property
    def scopes(self) -> bool:
        """Whether it asks for what a price covers, which another slot may have as well."""
        return bool(re.search("EACH|ALL", self.text))


Index = dict[str, list[Pattern]]
"""Patterns by each stem that they may begin with."""


def compiled(texts: Iterable[str], meaning: str, strong: bool = True) -> list[Pattern]:
    """Compile phrases, written as questions.toml says."""
    return [_compiled(text, meaning, strong) for text in texts]


def _compiled(text: str, meaning: str, strong: bool) -> Pattern:
    row: list[frozenset[str] | None] = []
    needs, bars = [], set[str]()
    starts = ends = False
    for word in text.split():
        if word == "^":
            starts = True
        elif word == "$":
            ends = True
        elif word == "..":
            row.append(None)
        elif word[0] == "&":
            needs.append(_stems(word[1:]))
        elif word[0] == "!":
            bars |= _stems(word[1:])
        elif word in DROPPED:
            continue
        else:
            row.append(_stems(word))
    if not row or row[0] is None:
        raise ValueError(f"the phrase {text!r} for {meaning!r} does not begin with a word that counts")
    return Pattern(text, meaning, strong, tuple(row), starts, ends, tuple(needs), frozenset(bars))


@cache
def _stems(words: str) -> frozenset[str]:
    found = set[str]()
    for word in words.split("|"):
        if word in MARKS or word == ",":
            found.add(word)
        elif word.isupper() and len(word) > 1:
            found |= {stem(one) for one in phrases().classes[word]}
        else:
            found.add(stem(word))
    return frozenset(found)


def index(patterns: Iterable[Pattern]) -> Index:
    """Index patterns by their first stems."""
    found: Index = {}
    for pattern in patterns:
        for one in pattern.row[0] or ():
            found.setdefault(one, []).append(pattern)
    return found


@cache
def shared() -> Index:
    """Patterns of every slot that the file knows, of open questions and of what else a message may say."""
    file = phrases()
    found = []
    for slot, words in file.slots.items():
        found += compiled(words.strong, slot) + compiled(words.weak, slot, strong=False)
    for name, texts in messages().open.items():
        found += compiled(texts, f"open:{name}")
    for name, texts in messages().says.items():
        found += compiled(texts, f"says:{name}")
    return index(found)


@lru_cache(maxsize=4_096)
def shared_by(meanings: frozenset[str]) -> Index:
    """Those of the shared patterns that have one of these meanings."""
    some = {
        first: [one for one in patterns if one.meaning in meanings] for first, patterns in shared().items()
    }
    return {first: patterns for first, patterns in some.items() if patterns}


ELSEWHERE = "says:elsewhere"
"""Meaning of phrases that belong to no shop."""


@cache
def familiar() -> frozenset[str]:
    """Stems of all words that belong to a shop: those by which things are asked for, and ordinary ones."""
    return spoken() | ordinary() | class_words()


@cache
def spoken() -> frozenset[str]:
    """Stems of the words of the phrases, by which things are asked for."""
    file = phrases()
    patterns = [pattern for some in shared().values() for pattern in some if pattern.meaning != ELSEWHERE]
    texts = [text for some in file.attributes.values() for text in some]
    texts += [text for some in file.values.values() for listed in some.values() for text in listed]
    return stems_of([*patterns, *compiled(texts, "")]) | {
        stem(word) for words in file.classes.values() for word in words
    }


def stems_of(patterns: Iterable[Pattern]) -> frozenset[str]:
    """Stems that patterns hold."""
    found = set[str]()
    for pattern in patterns:
        found.update(*(element for element in pattern.row if element), *pattern.needs, pattern.bars)
    return frozenset(found)


@dataclass(frozen=True)
class Found:
    """A pattern, and the places in the sentence from which and before which its words stand."""

    pattern: Pattern
    start: int
    end: int

    @property
    def meaning(self) -> str:
        return self.pattern.meaning


def find(
    stems: Sequence[str],
    bounds: tuple[int, int],
    indices: Iterable[Index],
) -> list[Found]:
    """Find all patterns in the clause of `stems` within `bounds`."""
    start, end = bounds
    there = set(stems[start:end])
    last = end
    while last > start + 1 and stems[last - 1] == ":":
        last -= 1
    found = []
    for some in indices:
        for place in range(start, end):
            for pattern in some.get(stems[place], ()):
                if pattern.starts and place != start:
                    continue
                row = pattern.row  # its first element stands here: the index says so
                if len(row) == 1:
                    stop = place + 1
                elif row[1] is None:
                    beyond = row[2] if len(row) > 2 else None
                    far = beyond is None or not beyond.isdisjoint(there)
                    stop = _end(row, stems, place + 1, end, 1) if far else 0
                else:
                    near = place + 1 < end and stems[place + 1] in row[1]
                    stop = _end(row, stems, place + 2, end, 2) if near else 0
                if (
                    not stop
                    or (pattern.ends and stop not in (last, end))
                    or not pattern.bars.isdisjoint(there)
                ):
                    continue
                if not (pattern.needs and any(need.isdisjoint(there) for need in pattern.needs)):
                    found.append(Found(pattern, place, stop))
    return found


def _end(
    row: Sequence[frozenset[str] | None], stems: Sequence[str], place: int, end: int, first: int = 0
) -> int:
    """Place after the elements of a row from the `first` on, which begin at `place`; 0 where they do not stand
    there."""
    for number in range(first, len(row)):
        element = row[number]
        if element is None:
            for skip in range(GAP + 1):
                if stop := _end(row, stems, place + skip, end, number + 1):
                    return stop
                if place + skip >= end or stems[place + skip] in _UNCROSSED:
                    break
            return 0
        if place >= end or stems[place] not in element:
            return 0
        place += 1
    return place
