"""A message as sentences of stems, in which names of items, values and amounts are marked."""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import snowballstemmer

from ecomlab.settings import Strict, read_toml
from ecomlab.values import MONTHS

ITEM, VALUE, MONEY, STARS, DAYS, DATE, KILOS, NUMBER, THING = (
    "ITEM", "VALUE", "MONEY", "STARS", "DAYS", "DATE", "KILOS", "NUMBER", "THING",
)  # fmt: skip
"""What may stand in the place of a stem: the name of an item, a value of the vocabulary, an amount, and a thing that
tools have shown."""
AMOUNTS = frozenset((MONEY, STARS, DAYS, DATE, KILOS, NUMBER))
THINGS = "\ue000"
"""First of the characters that stand for things in a text: a product, an order or a line of one."""

LAST_THING = "\uf8ff"
WEIGHTS = Path(__file__).with_name("reader.npz")
"""The model's weights (`model`), by n-grams of stems."""
_STEMMER = snowballstemmer.stemmer("english")
_STEMMING = threading.Lock()
"""The stemmer keeps the word at hand in itself: in two threads at once it gives wrong stems."""


class _File(Strict):
    """Schema of the file of words."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    has_is: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    compound: dict[str, tuple[str, ...]]
    irregular: dict[str, tuple[str, ...]]
    spoken: dict[str, tuple[str, ...]]


_FILE = read_toml(Path(__file__).with_name("words.toml"), _File)
_KEPT, _DROPPED, _HAS_IS = map(frozenset, (_FILE.kept, _FILE.dropped, _FILE.has_is))
_IRREGULAR = {form: plain for plain, forms in _FILE.irregular.items() for form in forms}
_SPOKEN = {form: plain for plain, forms in _FILE.spoken.items() for form in forms}
_CONTRACTED = {"s": "is", "re": "are", "ve": "have", "ll": "will", "d": "would", "m": "am", "t": "not"}
_UNITS = {"star": STARS, "day": DAYS, "week": DAYS, "dollar": MONEY, "kilo": KILOS, "pound": KILOS}
_LETTERS = frozenset("bcdefghjklmnopqrstuvwxyz")
"""Letters that are no word: at the beginning of a sentence they are the names of sizes."""
_BETWEEN = frozenset({"busi", "work", "calendar", "full", "or", "more"})
"""Stems that may stand between a number and its unit."""
_JOINED = frozenset({",", "or", "and"})
_WORD = re.compile(
    r"[\ue000-\uf8ff]|\$ ?\d+(?:,\d{3})*(?:\.\d+)?|\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|\$+"
    r"|[^\W\d_]+(?:'[^\W\d_]+)*|[&+,()/|]|:(?=\s|$)"
)
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"')*]*\s+|(?<=[?!])(?=\w)|(?::\s*|\s*)\n\s*(?:(?:\d\d?[.)]|[-*•–#>]+)\s+)?"
    r"|;\s*|\s+[-–—]+\s+|—|\.\.+\s*|\s*\(\d\)\s*|(?:^|(?<=\s))\d\)\s"
    r"|\s*[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f\u20e3\u200d]+\s*(?=[A-Z*\n\d]|$)"
)
"""Where a sentence ends: a full stop, a line, a dash, a number in brackets, an emoji before a capital."""
_NO_STOP = re.compile(
    r"(?<=\be\.g)\.|(?<=\bi\.e)\.|(?<=\betc)\.(?=,)|\bno\.(?= of\b)"
    r"|(?:(?<=\bsept)|(?<=\b(?:jan|feb|mar|apr|aug|sep|oct|nov|dec)))\.(?= \d)"
)
"""Full stops that end no sentence."""
_LISTED = re.compile(r"\n\s*(?:\d\d?[.)]|[-*•–])\s")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Reduce a word in lower case to its stem; irregular forms to the plain one's."""
    known = _IRREGULAR.get(word, word)
    if known in _KEPT or known.isdecimal():
        return known
    with _STEMMING:
        return str(_STEMMER.stemWord(known))


_NUMBERS = frozenset(map(stem, _FILE.numbers))
_HUNDREDS = frozenset(("hundr", "thousand"))
_MONTHS = frozenset(stem(month.lower()) for month in MONTHS)


class Token(NamedTuple):
    """A stem, or the mark of a name, value or amount; where it stands in the message, and what it means there."""

    stem: str
    start: int
    end: int
    word: str = ""
    """The word of the message, in lower case."""
    means: tuple[tuple[str, str], ...] = ()
    """For a value, (slot, value) of each slot that has it; for an item or a thing, ("", its number)."""


class Sentence(NamedTuple):
    """One sentence of a message: its words, where it stands, how it ends and what is around it."""

    tokens: tuple[Token, ...]
    start: int
    end: int
    mark: str
    """"?", "!", "." or ""."""
    colon: bool
    """A colon follows it."""
    listed: bool
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


class Known(dict[str, tuple[tuple[tuple[str, ...], tuple[str, str], bool], ...]]):
    """Several vocabularies of names as one: of each first stem, what it was once looked up for."""

    def __init__(self, some: Sequence[Names]) -> None:
        super().__init__()
        self._plain = tuple(one for one in some if isinstance(one, _Names))
        self.others = tuple(one for one in some if not isinstance(one, _Names))
        """Names that are looked up anew each time: there are too many to hold."""

    def __missing__(self, first: str) -> tuple[tuple[tuple[str, ...], tuple[str, str], bool], ...]:
        found = tuple(entry for one in self._plain for entry in one.get(first, ()))
        self[first] = found
        return found

    def at(self, stems: Sequence[str], place: int) -> Iterator[tuple[int, tuple[str, str], bool]]:
        """Yield (how many stems, meaning, whether it needs a capital) of the names that begin at a place."""
        for name, meaning, capital in self[stems[place]]:
            if len(name) == 1 or tuple(stems[place : place + len(name)]) == name:
                yield len(name), meaning, capital
        for other in self.others:
            yield from other.at(stems, place)


def names(meanings: Iterable[tuple[str, tuple[str, str]]], written: bool = False) -> Names:
    """Index names by their first stem; `written`: they are names only where they have a capital."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, str], bool]]] = {}
    for name, meaning in meanings:
        stems = stems_of_name(name)
        if stems:
            found.setdefault(stems[0], []).append((stems, meaning, written or needs_capital(name)))
    return _Names((first, tuple(sorted(some, key=lambda one: -len(one[0])))) for first, some in found.items())


@lru_cache(maxsize=8_192)
def stems_of_name(name: str) -> tuple[str, ...]:
    """Split a name into the stems of its words."""
    return tuple(token.stem for token in _words(name.lower(), 0, len(name)))


def needs_capital(name: str) -> bool:
    """Tell whether a name is an ordinary word, and a name only where it has a capital."""
    return name.lower() in _FILE.names or len(name) == 1


_LEAD_IN = re.compile(
    r"\b(?:may|can|could|might) i (?:just |also |quickly |please )?(?:ask|know|enquire|inquire)\b(?! you to\b)"
)
"""Polite words before a question, which asks for no leave."""


def sentences(text: str, known: Known) -> list[Sentence]:
    """Split a message into sentences of tokens, with the names of `known`, amounts and things marked."""
    plain = text.replace("’", "'").replace("‘", "'").lower()
    if len(plain) != len(text):  # a letter whose lower case is two
        plain = text.replace("’", "'")
    plain = _NO_STOP.sub(" ", plain) if "." in plain else plain
    plain = plain.replace("double-check", "       check").replace("double check", "       check")
    plain = _LEAD_IN.sub(lambda lead: " " * len(lead[0]), plain)
    begins = _LISTED.match(f"\n{plain}")
    found, start, gap = [], begins.end() - 1 if begins else 0, begins.group() if begins else ""
    for split in _SENTENCE.finditer(text if len(text) == len(plain) else plain, start):
        end, after = split.span()
        if end < start:
            continue
        if plain[start:end].strip():
            found.append(_sentence(text, plain, start, end, plain[end:after], gap, known))
        start, gap = after, plain[end:after]
    if plain[start:].strip():
        found.append(_sentence(text, plain, start, len(plain), "", gap, known))
    return [sentence for sentence in found if sentence.tokens or sentence.mark == "?"]


def _sentence(text: str, plain: str, start: int, end: int, gap: str, before: str, known: Known) -> Sentence:
    marked = _amounts(_named(_words(plain, start, end), known, text))
    said = plain[start:end]
    tail = said.rstrip(" \"')*_")
    mark = "?" if "?" in said else tail[-1:] if tail.endswith(("!", ".")) else ""
    kept = tuple(token for token in marked if token.means or token.word not in _DROPPED)
    colon = ":" in gap or tail.endswith(":")
    return Sentence(kept, start, end, mark, colon, bool(before and _LISTED.search(before)))


def _words(plain: str, start: int, end: int) -> list[Token]:
    found = []
    for match in _WORD.finditer(plain, start, end):
        word, (first, last) = match.group(), match.span()
        if word in "(),/|":
            found.append(Token(",", first, last))
        elif word == ":":
            found.append(Token(":", first, last))
        elif THINGS <= word[0] <= LAST_THING:
            found.append(Token(THING, first, last, means=(("", str(ord(word) - ord(THINGS))),)))
        else:
            for root, piece in _pieces("money" if not word.strip("$") else word):
                found.append(Token(root, first, last, piece))
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


def _named(words: list[Token], known: Known, text: str) -> list[Token]:
    """Put marks in the place of names, the longest first, earlier vocabularies first."""
    found, place, count = [], 0, len(words)
    stems = [word.stem for word in words]
    while place < count:
        here: dict[tuple[str, str], int] = {}
        for size, meaning, capital in known.at(stems, place) if known.others or known[stems[place]] else ():
            if _means_else(words, place, size):
                continue
            begins = not place and count > size and words[0].word not in _LETTERS
            if capital and (begins or not text[words[place].start].isupper()):
                continue
            here[meaning] = max(size, here.get(meaning, 0))
        if not here:
            word = words[place]
            means = _shared_unit(stems, place, known) if word.stem[:1].isdigit() else ()
            found.append(word._replace(stem=VALUE, means=means) if means else word)
            place += 1
            continue
        size = max(here.values())
        means = tuple(meaning for meaning, length in here.items() if length == size)
        items = [meaning for meaning in means if not meaning[0]]
        last = words[place + size - 1]
        written = text[words[place].start : last.end].lower()
        found.append(
            Token(ITEM if items else VALUE, words[place].start, last.end, written, tuple(items[:1]) or means)
        )
        place += size
    return found


def _means_else(words: Sequence[Token], place: int, size: int) -> bool:
    """Tell whether the words of a value mean something else here: "how long", "a gift card"."""
    if place and size == 1 and words[place - 1].stem == "how":
        return True
    end = place + size
    return end < len(words) and words[end].word in _FILE.compound.get(words[end - 1].word, ())


def _shared_unit(stems: list[str], place: int, known: Known) -> tuple[tuple[str, str], ...]:
    """What a number means whose unit stands after a later one: "30, 40 or 60 cm"."""
    end = place
    while end < len(stems) and (stems[end][:1].isdigit() or stems[end] in _JOINED):
        end += 1
    if end < place + 3 or end == len(stems):
        return ()
    named = (stems[place], stems[end])
    return tuple(meaning for size, meaning, _ in known.at(named, 0) if size == len(named) and meaning[0])


def _amounts(words: list[Token]) -> list[Token]:
    """Put marks in the place of amounts of money, stars, days and so on."""
    found, place = [], 0
    while place < len(words):
        first = words[place]
        if first.means:
            found.append(first)
            place += 1
            continue
        size, mark = _amount([word.stem for word in words[place : place + 8]])
        if mark:
            last = words[place + size - 1]
            text = " ".join(word.word or word.stem for word in words[place : place + size])
            found.append(Token(mark, first.start, last.end, text, (("", ""),)))
        else:
            found.append(first)
        place += size
    return found


def _amount(stems: list[str]) -> tuple[int, str]:
    """Size and mark of the amount that begins here; (1, "") for none."""
    if stems[0].startswith("$"):
        return 1, MONEY
    if stems[0] in _MONTHS:
        dated = len(stems) > 1 and re.fullmatch(r"\d+(?:st|nd|rd|th)?", stems[1])
        return (2, DATE) if dated else (1, "")
    size = 0
    while size < len(stems) and (
        stems[size] in _NUMBERS
        or stems[size][:1].isdigit()
        or (size and stems[size] == "one" and stems[size - 1] in _NUMBERS)
        or (
            stems[size] == "and"
            and size
            and stems[size - 1] in _HUNDREDS
            and stems[size + 1 : size + 2] != ["a"]
        )
    ):
        size += 1
    if not size:
        counted = stems[0] in ("one", "a") and len(stems) > 1 and stems[1] in _UNITS
        return (2, _UNITS[stems[1]]) if counted else (1, "")
    rest = size
    while rest < len(stems) and rest < size + 2 and stems[rest] in _BETWEEN:
        rest += 1
    if rest < len(stems) and stems[rest] in _UNITS:
        return rest + 1, _UNITS[stems[rest]]
    if size < len(stems) and stems[size] in _MONTHS:
        return size + 1, DATE
    if size + 1 < len(stems) and stems[size] == "of" and stems[size + 1] in _MONTHS:
        return size + 2, DATE
    return size, STARS if re.fullmatch(r"[1-5]\.\d", stems[0]) else NUMBER


@cache
def _known() -> frozenset[str]:
    with np.load(WEIGHTS, allow_pickle=False) as file:
        return frozenset(str(file["grams"]).split("\n"))


def is_familiar(one: str) -> bool:
    """Tell whether the model knows a stem: whether people and agents use it when they talk in shops."""
    return one in _known()
