"""A message as sentences of stems, in which names of items, values and amounts are marked."""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

import snowballstemmer

from ecomlab.settings import Strict, read_toml
from ecomlab.values import MONTHS

ITEM, VALUE, MONEY, STARS, DAYS, DATE, KILOS, NUMBER = (
    "ITEM", "VALUE", "MONEY", "STARS", "DAYS", "DATE", "KILOS", "NUMBER",
)  # fmt: skip
MARKS = (ITEM, VALUE, MONEY, STARS, DAYS, DATE, KILOS, NUMBER)
"""What may stand in the place of a stem: the name of an item, a value of the vocabulary, an amount."""
AMOUNTS = frozenset(MARKS) - {ITEM, VALUE}

_STEMMER = snowballstemmer.stemmer("english")
_STEMMING = threading.Lock()
"""The stemmer keeps the word at hand in itself: in two threads at once it gives wrong stems."""


class _File(Strict):
    """Schema of the file of words."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    articles: tuple[str, ...]
    has_is: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    never: dict[str, tuple[str, ...]]
    compound: dict[str, tuple[str, ...]]
    dangling: tuple[str, ...]
    ordinary: tuple[str, ...]
    irregular: dict[str, tuple[str, ...]]
    spoken: dict[str, tuple[str, ...]]


_FILE = read_toml(Path(__file__).with_name("words.toml"), _File)
_KEPT, DROPPED, _ARTICLES, _HAS_IS = map(frozenset, (_FILE.kept, _FILE.dropped, _FILE.articles, _FILE.has_is))
_NEVER = frozenset((first, word) for word, before in _FILE.never.items() for first in before)
_DANGLING = re.compile(rf"\b(?:{'|'.join(_FILE.dangling)})\W*(?<![.?!…\"'])$")
"""The end of a message that breaks off."""
_IRREGULAR = {form: plain for plain, forms in _FILE.irregular.items() for form in forms}
_SPOKEN = {form: plain for plain, forms in _FILE.spoken.items() for form in forms}
_CONTRACTED = {"s": "is", "re": "are", "ve": "have", "ll": "will", "d": "would", "m": "am", "t": "not"}
_NUMBERS = frozenset(_STEMMER.stemWord(word) for word in _FILE.numbers)
_UNITS = {"star": STARS, "day": DAYS, "week": DAYS, "dollar": MONEY, "kilo": KILOS, "pound": KILOS}
_LETTERS = frozenset("bcdefghjklmnopqrstuvwxyz")
"""Letters that are no word: at the beginning of a sentence they are the names of sizes."""
_BETWEEN = frozenset({"busi", "work", "calendar", "full"})
"""Stems that may stand between a number and its unit."""
_MONTHS = frozenset(_STEMMER.stemWord(month.lower()) for month in MONTHS)
_WORD = re.compile(
    r"\$ ?\d+(?:,\d{3})*(?:\.\d+)?|\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|\$+|[^\W\d_]+(?:'[^\W\d_]+)*|[&+,()/]|:(?=\s|$)"
)
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"')]*\s+|(?<=[?!])(?=\w)|(?::\s*|\s*)\n\s*(?:(?:\d\d?[.)]|[-*•–])\s+)?|;\s*|\s+[-–—]+\s+|—|\.\.+\s*|\s*\(\d\)\s*|(?:^|(?<=\s))\d\)\s"
)


_EXAMPLES = re.compile(
    r",? \bif any(?=[,.?!)]|$),?|,? etc\.?(?=\))|(?<=\be\.g)\.|(?<=\bi\.e)\.|(?<=\betc)\.(?=,)"
    r"|(?:(?<=\bsept)|(?<=\b(?:jan|feb|mar|apr|aug|sep|oct|nov|dec)))\.(?= \d)"
)
"""What only says that more, or nothing, could be named ("etc.", "if any"), and full stops that end no sentence."""
_SAID_AS = {
    re.compile(r"\bjust(?= \w+ (?:\w+ ){0,3}(?:left|remain\w*|available|in stock)\b)"): "only",
    re.compile(r"\bwhen it comes to\b"): "about",
    re.compile(r"\bgiven that\b"): "because",
}
"""What says as much as a word, which takes its place; "just" is left out elsewhere."""
_NUMBER_OF = re.compile(r"\bno\. (?=of\b)")

_LISTED = re.compile(r"\n\s*(?:\d\d?[.)]|[-*•–])\s")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Reduce a word in lower case to its stem; irregular forms to the plain one's."""
    known = _IRREGULAR.get(word, word)
    if known in _KEPT or known.isdecimal():
        return known
    with _STEMMING:
        return str(_STEMMER.stemWord(known))


@cache
def ordinary() -> frozenset[str]:
    """Stems of the words that this file lists."""
    plain = (*_FILE.ordinary, *_FILE.kept, *_FILE.dropped, *_FILE.numbers, *_FILE.irregular)
    spoken = (word for phrase in _FILE.spoken for word in phrase.split())
    return frozenset((*map(stem, (*plain, *spoken)), *_MONTHS))


@dataclass(frozen=True)
class Token:
    """A stem, or the mark of a name, value or amount; where it stands in the message, and what it means there."""

    stem: str
    start: int
    end: int
    word: str = ""
    """The word of the message, in lower case."""
    noun: bool = False
    """It follows an article or a possessive."""
    means: tuple[tuple[str, str], ...] = ()
    """For a value, (slot, value) of each slot that has it; for an item, ("", its number)."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a message: its words, its text, how it ends and whether a colon follows it."""

    tokens: tuple[Token, ...]
    text: str
    mark: str
    polite: bool
    colon: bool
    broken: bool
    """Its words do not follow one another as those of a sentence do."""
    listed: bool = False
    """It stands in a list, after a dash or a number."""


@runtime_checkable
class Names(Protocol):
    """Names by their stems."""

    def at(self, stems: Sequence[str], place: int) -> Iterable[tuple[int, tuple[str, str], bool]]:
        """Yield (how many stems, meaning, whether it needs a capital) of the names that begin at a place, the longest
        first."""
        ...


class _Names(dict[str, tuple[tuple[tuple[str, ...], tuple[str, str], bool], ...]]):
    """Stems of names and what they mean, by their first stem, the longest first; True for those that need a capital."""

    def at(self, stems: Sequence[str], place: int) -> Iterator[tuple[int, tuple[str, str], bool]]:
        for name, meaning, capital in self.get(stems[place], ()):
            if tuple(stems[place : place + len(name)]) == name:
                yield len(name), meaning, capital


def names(meanings: Iterable[tuple[str, tuple[str, str]]], written: bool = False) -> Names:
    """Index names by their first stem; `written`: they are names only where they have a capital."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, str], bool]]] = {}
    for name, meaning in meanings:
        stems = stems_of_name(name)
        if stems:
            found.setdefault(stems[0], []).append((stems, meaning, written or needs_capital(name)))
    return _Names((first, tuple(sorted(some, key=lambda one: -len(one[0])))) for first, some in found.items())


def stems_of_name(name: str) -> tuple[str, ...]:
    """Split a name into the stems of its words."""
    return tuple(token.stem for token in _words(name.lower()))


def needs_capital(name: str) -> bool:
    """Tell whether a name is an ordinary word, and a name only where it has a capital."""
    return name.lower() in _FILE.names or len(name) == 1


def sentences(text: str, known: Iterable[Names]) -> list[Sentence]:
    """Split a message into sentences of tokens, with the names of `known` and amounts marked."""
    plain = text.replace("’", "'").replace("‘", "'").lower()
    plain = plain if len(plain) == len(text) else text.replace("’", "'")
    for pattern, word in _SAID_AS.items():
        plain = pattern.sub(partial(_padded, word), plain)
    plain = _blank(_EXAMPLES, _NUMBER_OF.sub("num ", plain)).replace("'cause", " since")
    vocabularies = tuple(known)
    begins = _LISTED.match(f"\n{plain}")
    found, start, gap = [], begins.end() - 1 if begins else 0, begins.group() if begins else ""
    splits = (m.span() for m in _SENTENCE.finditer(plain, start))
    ends = [one for one in splits if not _closes(plain, *one)]
    for end, after in [*ends, (len(plain), len(plain))]:
        if plain[start:end].strip():
            made = _sentence(text, plain, start, end, plain[end:after], vocabularies)
            if end == len(plain) and _DANGLING.search(plain[start:end]):
                made = replace(made, broken=True)
            found.append(replace(made, listed=bool(_LISTED.search(gap))))
        start, gap = after, plain[end:after]
    return [sentence for sentence in found if sentence.tokens or sentence.mark == "?"]


def _closes(plain: str, start: int, end: int) -> bool:
    """Tell whether what looks like a number in a list, as "6) ", ends a bracket: "(Oct 6) "."""
    closing = plain[start:end].rstrip().endswith(")") and "(" not in plain[start:end]
    return closing and plain.count("(", 0, start) > plain.count(")", 0, start)


def _padded(word: str, found: re.Match[str]) -> str:
    """A word in the place of what was found, with blanks after it: places in the message stay."""
    return word.ljust(len(found.group()))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Put blanks in the place of what matches."""
    return pattern.sub(lambda found: " " * len(found.group()), text)


def _sentence(text: str, plain: str, start: int, end: int, gap: str, known: tuple[Names, ...]) -> Sentence:
    words = _words(plain[start:end], start)
    polite = any(plain[word.start : word.end] in {"please", "pls", "plz", "kindly"} for word in words)
    marked = [token for token in _amounts(_named(words, known, text)) if token.stem]
    tail = plain[start:end].rstrip(" \"')")
    mark = "?" if "?" in plain[start:end] else tail[-1] if tail.endswith(("!", ".")) else ""
    kept = tuple(
        replace(token, noun=True) if place and marked[place - 1].word in _ARTICLES else token
        for place, token in enumerate(marked)
        if token.means or token.word not in DROPPED
    )
    colon = ":" in gap or plain[start:end].endswith(":")
    return Sentence(kept, text[start:end].strip(), mark, polite, colon, _is_broken(marked))


def _is_broken(words: Iterable[Token]) -> bool:
    """Tell whether two words stand together that never do: "the of", "parcel parcel"."""
    return any(_clash(one, other) for one, other in pairwise(words))


def _clash(one: Token, other: Token) -> bool:
    if one.means or other.means:
        return one.stem == other.stem == ITEM and one.means == other.means
    if one.word == other.word:
        return one.word in _ARTICLES
    return (one.word, other.word) in _NEVER


def _words(plain: str, offset: int = 0) -> list[Token]:
    found = []
    for match in _WORD.finditer(plain):
        word, (start, end) = match.group(), (match.start() + offset, match.end() + offset)
        if word in "(),/":
            found.append(Token(",", start, end))
            continue
        if word == ":":
            found.append(Token(":", start, end))
            continue
        word = "money" if not word.strip("$") else word
        found += [Token(root, start, end, piece) for root, piece in _pieces(word)]
    return found


@lru_cache(maxsize=65_536)
def _pieces(word: str) -> tuple[tuple[str, str], ...]:
    """The words that a word stands for, each after its stem."""
    parts = (part for spoken in _SPOKEN.get(word, word).split() for part in _parts(spoken))
    return tuple((stem(part), part) for part in parts)


def _parts(word: str) -> list[str]:
    """Split a contraction into its words; a possessive's ending is left out."""
    if "'" not in word:
        return [word]
    head, _, tail = word.partition("'")
    if tail == "t" and head.endswith("n"):
        return [{"ca": "can", "wo": "will", "sha": "shall"}.get(head[:-1], head[:-1]), "not"]
    if tail == "s" and head not in _HAS_IS:
        return _SPOKEN.get(head, head).split()
    return [*_SPOKEN.get(head, head).split(), _CONTRACTED.get(tail, tail)]


def _named(words: list[Token], known: tuple[Names, ...], text: str) -> list[Token]:
    """Put marks in the place of names, the longest first, earlier vocabularies first."""
    found, place = [], 0
    stems = [word.stem for word in words]
    while place < len(words):
        here: dict[tuple[str, str], int] = {}
        for vocabulary in known:
            for size, meaning, capital in vocabulary.at(stems, place):
                begins = not place and len(words) > size and words[0].word not in _LETTERS
                if _means_else(words, place, size):
                    continue
                if capital and (begins or not text[words[place].start].isupper()):
                    continue
                here[meaning] = size
        if not here:
            means = _shared_unit(words, place, known)
            found.append(replace(words[place], stem=VALUE, means=means) if means else words[place])
            place += 1
            continue
        size = max(here.values())
        means = tuple(meaning for meaning, length in here.items() if length == size)
        items = [meaning for meaning in means if not meaning[0]]
        mark = ITEM if items else VALUE
        found.append(
            Token(mark, words[place].start, words[place + size - 1].end, means=tuple(items[:1]) or means)
        )
        place += size
    return found


def _means_else(words: Sequence[Token], place: int, size: int) -> bool:
    """Tell whether the words of a value mean something else here: "how long", "a gift card"."""
    end = place + size
    after = words[end].word if end < len(words) else ""
    asked_after = place > 0 and size == 1 and words[place - 1].stem == "how"
    return asked_after or after in _FILE.compound.get(words[end - 1].word, ())


def _shared_unit(words: list[Token], place: int, known: tuple[Names, ...]) -> tuple[tuple[str, str], ...]:
    """What a number means whose unit stands after a later one: "30, 40 or 60 cm"."""
    end = place
    while end < len(words) and (words[end].stem[:1].isdigit() or words[end].stem in {",", "or", "and"}):
        end += 1
    if end < place + 3 or end == len(words) or not words[place].stem[:1].isdigit():
        return ()
    named = (words[place].stem, words[end].stem)
    some = (one for vocabulary in known for one in vocabulary.at(named, 0))
    return tuple(meaning for size, meaning, _ in some if size == len(named) and meaning[0])


def _amounts(words: list[Token]) -> list[Token]:
    """Put marks in the place of amounts of money, stars, days and so on."""
    found, place = [], 0
    while place < len(words):
        size, mark = _amount(words, place)
        if mark:
            start, end = words[place].start, words[place + size - 1].end
            found.append(Token(mark, start, end, means=(("", ""),)))
        else:
            found.append(words[place])
        place += size
    return found


def _amount(words: list[Token], place: int) -> tuple[int, str]:
    """Size and mark of the amount that begins here; (1, "") for none."""
    stems = [word.stem for word in words[place : place + 5]]
    if stems[0].startswith("$"):
        return 1, MONEY
    if stems[0] in _MONTHS:
        dated = len(stems) > 1 and re.fullmatch(r"\d+(?:st|nd|rd|th)?", stems[1])
        return (2, DATE) if dated else (1, "")
    size = 0
    while size < len(stems) and _is_number(stems[size]):
        size += 1
    if not size:
        counted = stems[0] in {"one", "a"} and len(stems) > 1 and stems[1] in _UNITS
        return (2, _UNITS[stems[1]]) if counted else (1, "")
    rest = size + 1 if stems[size : size + 1] and stems[size] in _BETWEEN else size
    if rest < len(stems) and stems[rest] in _UNITS:
        return rest + 1, _UNITS[stems[rest]]
    if stems[rest : rest + 1] and stems[rest] in _MONTHS:
        return rest + 1, DATE
    if (
        stems[rest : rest + 2]
        and stems[rest] == "of"
        and stems[rest + 1 : rest + 2]
        and stems[rest + 1] in _MONTHS
    ):
        return rest + 2, DATE
    return size, STARS if re.fullmatch(r"[1-5]\.\d", stems[0]) else NUMBER


def _is_number(word: str) -> bool:
    return word in _NUMBERS or word[0].isdigit()
