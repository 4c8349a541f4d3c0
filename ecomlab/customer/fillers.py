"""Words that change no meaning (courtesies, fillers), words that always do, and what is left of a sentence without the
former."""

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from ecomlab.catalog.names import SPLIT, SPOKEN
from ecomlab.customer.reading.words import stem
from ecomlab.settings import Strict, read_toml
from ecomlab.values import any_of

WORD = SPLIT[SPOKEN]
"""A word or a number, in lower case and without contractions."""
_FULL = (
    (re.compile(r"\b(?:can't|cannot)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
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
_MARKS = r"[\s,.!?;:-]*"


class _File(Strict):
    courtesies: tuple[str, ...]
    fillers: tuple[str, ...]
    addable: tuple[str, ...]
    binding: tuple[str, ...]


def plain_quotes(text: str) -> str:
    """Write typographic quotes, apostrophes and dashes as a keyboard has them."""
    return text.translate(_ASCII)


@lru_cache(maxsize=20_000)
def full(text: str) -> str:
    """Write a text in lower case, with its contractions written out: "do not" for "Don't"."""
    text = plain_quotes(text).lower()
    for short, written in _FULL:
        text = short.sub(written, text)
    return text


_SHORT = {full(short): short for short in (
    "i'm i've i'd i'll it's it'll that's that'd there's what's we've we'll we're you're you've they're can't don't "
    "doesn't didn't isn't aren't couldn't wouldn't won't shouldn't haven't"
).split()} | {"cannot": "can't"}  # fmt: skip
"""Contractions by what they stand for."""
_LONG = re.compile(rf"\b(?:{any_of(_SHORT)})\b", re.IGNORECASE)


def contracted(text: str) -> str:
    """Write a text with contractions: "I'd like" for "I would like"."""
    return _LONG.sub(lambda long: long.group()[0] + _SHORT[long.group().lower()][1:], text)


_FILE = read_toml(Path(__file__).with_name("fillers.toml"), _File)
FILLERS = frozenset(map(stem, _FILE.fillers))
"""Stems of the words that say nothing of their own."""
ADDABLE = FILLERS | frozenset(map(stem, _FILE.addable))
"""Stems of the words that a rewording may add: fillers, and some that tell a reader something."""
_BINDING = frozenset(map(stem, _FILE.binding))
_COURTESY = rf"(?<![\w'])(?:{any_of(text for said in _FILE.courtesies for text in (said, contracted(said)))})(?![\w'])"
_ANY = re.compile(_COURTESY)
_BEGINNING = re.compile(rf"{_COURTESY}{_MARKS}", re.IGNORECASE)
_EDGES = re.compile(rf"^{_COURTESY}{_MARKS}|{_MARKS}{_COURTESY}[\s.!?]*$", re.IGNORECASE)


def without_courtesies(text: str) -> str:
    """Take every courtesy out of a text; what is left is in lower case, contractions written out."""
    return _ANY.sub(" ", full(text))


def is_courtesy(sentence: str) -> bool:
    """Tell whether a sentence consists of courtesies alone."""
    return not WORD.search(without_courtesies(sentence))


def after_courtesy(text: str, at: int) -> int:
    """Find the place after the courtesy that begins at a place of a text; the place itself where none does."""
    match = _BEGINNING.match(text, at)
    return match.end() if match else at


def trimmed(sentence: str) -> str:
    """Take the courtesies off both ends of a sentence, which then ends with "?" or "."; "" if nothing is left."""
    text = plain_quotes(sentence).strip()
    mark = "?" if text.endswith("?") else "."
    while (shorter := _EDGES.sub("", text).strip()) != text:
        text = shorter
    text = text.strip(" ,;:.!?-")
    return f"{text[:1].upper()}{text[1:]}{mark}" if text else ""


def words_of(text: str) -> list[str]:
    """List the words and numbers of a text in lower case, contractions written out."""
    return WORD.findall(full(text))


@lru_cache(maxsize=4_096)
def telling(text: str) -> tuple[str, ...]:
    """List the stems of a text that are neither courtesies nor fillers, sorted: what it says, whatever the order."""
    stems = (stem(word) for word in WORD.findall(without_courtesies(text)))
    return tuple(sorted(one for one in stems if one not in FILLERS))


def bound(text: str) -> Counter[str]:
    """Count the words of a text that decide what it means."""
    return Counter(one for word in words_of(text) if (one := stem(word)) in _BINDING)
