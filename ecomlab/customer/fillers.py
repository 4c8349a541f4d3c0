"""Words that change no meaning (courtesies, fillers), words that always do, and what is left of a sentence without the
former."""

import re
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path

from ecomlab.customer.reading.words import stem
from ecomlab.settings import Strict, read_toml

FILE = Path(__file__).with_name("fillers.toml")
WORD = re.compile(r"[a-z0-9]+(?:[.,][0-9]+)*")
"""A word or a number, in lower case and without contractions."""
_FULL = (
    (re.compile(r"\b(?:can't|cannot)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"\blet's\b"), "let us"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(it|that|there|what|here|where|who|how|he|she|everything|this)'s\b"), r"\1 is"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
)
_ASCII = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": ".", "\u00a0": " "})
_SHORT = {
    "i am": "i'm", "i have": "i've", "we have": "we've", "i would": "i'd", "i will": "i'll", "it is": "it's",
    "that is": "that's", "there is": "there's",
    "what is": "what's", "do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't",
    "can not": "can't", "cannot": "can't", "could not": "couldn't", "would not": "wouldn't", "will not": "won't",
    "should not": "shouldn't", "have not": "haven't", "are not": "aren't", "you are": "you're",
    "you have got": "you've got",
    "we will": "we'll", "we are": "we're", "it will": "it'll", "that would": "that'd", "they are": "they're",
}  # fmt: skip
_LONG = re.compile(rf"\b(?:{'|'.join(_SHORT)})\b", re.IGNORECASE)
_MARKS = r"[\s,.!?;:-]*"


class _File(Strict):
    courtesies: tuple[str, ...]
    fillers: tuple[str, ...]
    addable: tuple[str, ...]
    binding: tuple[str, ...]


@cache
def _file() -> _File:
    return read_toml(FILE, _File)


@cache
def fillers() -> frozenset[str]:
    """Stems of the words that say nothing of their own."""
    return frozenset(map(stem, _file().fillers))


@cache
def addable() -> frozenset[str]:
    """Stems of the words that a rewording may add: fillers, and some that tell a reader something."""
    return fillers() | frozenset(map(stem, _file().addable))


@cache
def binding() -> frozenset[str]:
    """Stems of the words that decide what a sentence means."""
    return frozenset(map(stem, _file().binding))


def plain_quotes(text: str) -> str:
    """Write typographic quotes, apostrophes and dashes as a keyboard has them."""
    return text.translate(_ASCII)


@lru_cache(maxsize=20_000)
def full(text: str) -> str:
    """Write a text in lower case, with its contractions written out: "do not" for "Don't"."""
    text = plain_quotes(text).lower()
    for contracted, written in _FULL:
        text = contracted.sub(written, text)
    return text


def contracted(text: str) -> str:
    """Write a text with contractions: "I'd like" for "I would like"."""

    def short(match: re.Match[str]) -> str:
        said = _SHORT[match.group().lower()]
        return match.group()[0] + said[1:]

    return _LONG.sub(short, text)


@cache
def _courtesy() -> str:
    """Pattern of any courtesy, with or without contractions, longest first."""
    texts = {form for text in _file().courtesies for form in (text, contracted(text))}
    alternatives = "|".join(map(re.escape, sorted(texts, key=lambda text: (-len(text), text))))
    return rf"(?<![\w'])(?:{alternatives})(?![\w'])"


@cache
def _any_courtesy() -> re.Pattern[str]:
    return re.compile(_courtesy())


@cache
def _edges() -> re.Pattern[str]:
    """Pattern of a courtesy at the beginning or the end of a sentence, with the marks beside it."""
    return re.compile(rf"^{_courtesy()}{_MARKS}|{_MARKS}{_courtesy()}[\s.!?]*$", re.IGNORECASE)


def without_courtesies(text: str) -> str:
    """Take every courtesy out of a text; what is left is in lower case, contractions written out."""
    return _any_courtesy().sub(" ", full(text))


def is_courtesy(sentence: str) -> bool:
    """Tell whether a sentence consists of courtesies alone."""
    return not WORD.search(without_courtesies(sentence))


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile(rf"{_courtesy()}{_MARKS}", re.IGNORECASE)


def after_courtesy(text: str, at: int) -> int:
    """Find the place after the courtesy that begins at a place of a text; the place itself where none does."""
    match = _beginning().match(text, at)
    return match.end() if match else at


def trimmed(sentence: str) -> str:
    """Take the courtesies off both ends of a sentence, which then ends with "?" or "."; "" if nothing is left."""
    text = plain_quotes(sentence).strip()
    mark = "?" if text.endswith("?") else "."
    while (shorter := _edges().sub("", text).strip()) != text:
        text = shorter
    text = text.strip(" ,;:.!?-")
    return f"{text[:1].upper()}{text[1:]}{mark}" if text else ""


def words_of(text: str) -> list[str]:
    """List the words and numbers of a text in lower case, contractions written out."""
    return WORD.findall(full(text))


def telling(text: str) -> tuple[str, ...]:
    """List the stems of a text that are neither courtesies nor fillers, sorted: what it says, whatever the order."""
    stems = (stem(word) for word in WORD.findall(without_courtesies(text)))
    return tuple(sorted(one for one in stems if one not in fillers()))


def bound(text: str) -> Counter[str]:
    """Count the words of a text that decide what it means."""
    return Counter(one for word in words_of(text) if (one := stem(word)) in binding())
