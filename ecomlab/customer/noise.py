"""Noise in the customer's messages, and its undoing by a careful reader.

A noisy message has one typo or one word of slang, and apart from that it may put one value in other words. Ids,
numbers, units, product types, values of closed vocabularies and words of four letters or fewer are spared, and so is
what nobody could take back: a typo is made only where `plain` gives the word again.
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.other_words import SPELLED, WORDS
from ecomlab.seeding import pick, shuffled
from ecomlab.values import any_of


class Piece(NamedTuple):
    """A run of text. `kind` is free (may carry noise), fixed (may not), or the kind of name that it is; `others` are
    texts that mean the same."""

    text: str
    kind: str = "free"
    others: tuple[str, ...] = ()


SLANG = {
    "pls": "please", "plz": "please", "thx": "thanks", "ty": "thank you", "gonna": "going to", "wanna": "want to",
    "gotta": "got to", "lemme": "let me", "gimme": "give me", "u": "you", "ur": "your", "abt": "about",
    "btw": "by the way", "cuz": "because", "rly": "really", "smth": "something", "tho": "though", "rn": "right now",
    "dunno": "don't know", "sry": "sorry", "prob": "probably", "tmrw": "tomorrow", "asap": "as soon as possible",
    "msg": "message", "kinda": "kind of", "ok": "okay",
}  # fmt: skip
"""What slang means."""
SHORT = 4
"""Words of so many letters, or fewer, are spared."""
P_SLANG = 0.4
"""Share of slang among noisy words, where there is a word that slang has another one for."""
P_NAME = 0.1
"""Share of names among typos, where a message has several names."""
TRIES = 6
_NAMES = ("brand", "feature")
_NEIGHBOURS = {
    key: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i, key in enumerate(row)
}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_SAID = {meaning: slang for slang, meaning in reversed(SLANG.items())}
_SLANG, _MEANT = (
    re.compile(rf"(?<![\w'-])(?:{any_of(texts)})(?![\w'-])", re.IGNORECASE) for texts in (_SAID, SLANG)
)
_NEVER_SLANG = ("You", "Your")
"""A sentence does not begin with "U"."""
_SPELLED = re.compile(SPELLED)


def words_of(text: str) -> frozenset[str]:
    """Collect the words of a text, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def mistype(word: str, rng: np.random.Generator) -> str:
    """Draw a typo in a word, never in its first letter: letters swapped, one dropped, doubled or hit beside."""
    spots = [i for i in range(1, len(word)) if word[i].isalpha()]
    at = pick(rng, spots)
    how = int(rng.integers(4))
    if how == 0 and at + 1 < len(word) and word[at + 1].isalpha() and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if how == 1:
        return word[:at] + word[at + 1 :]
    if how == 2:
        return word[:at] + word[at] + word[at:]
    key = pick(rng, _NEIGHBOURS[word[at].lower()])
    return word[:at] + (key.upper() if word[at].isupper() else key) + word[at + 1 :]


@lru_cache(maxsize=20_000)
def corrected(word: str, words: frozenset[str]) -> str:
    """Find the one of `words` of which this, in lower case, is a typo; the word itself where there is none, or more
    than one."""
    found: set[str] = set()
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        found |= {before + letter + after for letter in ascii_lowercase}  # one was dropped
        if after:
            found |= {before + letter + after[1:] for letter in _NEIGHBOURS.get(after[0], "")}
            found.add(before + after[1:2] + after[0] + after[2:])  # two were swapped
            if after[0] == before[-1]:
                found.add(before + after[1:])  # one was doubled
    found = {text for text in found if len(text) > SHORT} & words
    return found.pop() if len(found) == 1 else word


def plain(text: str, words: frozenset[str], lexicon: Lexicon) -> str:
    """Undo noise, as a careful reader does: write out slang, and correct what is neither one of `words` nor of the
    shop's, nor in capitals, as numbers of orders are."""

    def meant(match: re.Match[str]) -> str:
        slang = match.group().lower()
        return match.group() if slang in lexicon.words else _as_in(match.group(), SLANG[slang])

    def correct(match: re.Match[str]) -> str:
        word = match.group().lower()
        known = len(word) < SHORT or any(word in some for some in (words, lexicon.words, WORDS))
        known = known or match.group().isupper() or _SPELLED.fullmatch(word) is not None
        return match.group() if known else _as_in(match.group(), corrected(word, words))

    return _WORD.sub(correct, _MEANT.sub(meant, text))


def noised(
    pieces: Sequence[Piece], p: float, words: frozenset[str], lexicon: Lexicon, rng: np.random.Generator
) -> list[Piece]:
    """Give a message one noisy word with probability `p`, and put one of its values in other words with the same;
    `words` are those of the phrases that it is made of."""
    made = list(pieces)
    if rng.random() < p and (rng.random() >= P_SLANG or not _say_in_slang(made, words, lexicon, rng)):
        _misspell(made, words, lexicon, rng)
    if rng.random() < p:
        able = [at for at, piece in enumerate(made) if piece.others]
        if able:
            at = pick(rng, able)
            made[at] = Piece(pick(rng, made[at].others), made[at].kind)
    return made


def _say_in_slang(
    pieces: list[Piece], words: frozenset[str], lexicon: Lexicon, rng: np.random.Generator
) -> bool:
    """Put one word or phrase of the free text in slang, if there is one."""
    for at, match in _places(pieces, ("free",), _SLANG, lambda said: said not in _NEVER_SLANG, rng):
        slang = _as_in(match.group(), _SAID[match.group().lower()])
        text = pieces[at].text[: match.start()] + slang + pieces[at].text[match.end() :]
        if plain(text, words, lexicon).lower() == pieces[at].text.lower():
            pieces[at] = Piece(text)
            return True
    return False


def _misspell(pieces: list[Piece], words: frozenset[str], lexicon: Lexicon, rng: np.random.Generator) -> None:
    """Misspell one word: of the free text, or now and then of a name beside another name."""
    names = sum(piece.kind in _NAMES for piece in pieces) > 1 and rng.random() < P_NAME
    kinds = _NAMES if names else ("free",)
    for at, match in _places(pieces, kinds, _WORD, lambda word: _letters(word) > SHORT, rng)[:TRIES]:
        piece, typo = pieces[at], mistype(match.group(), rng)
        text = piece.text[: match.start()] + typo + piece.text[match.end() :]
        read = plain(text, words, lexicon)
        if typo.lower() in words or typo.lower() in lexicon.words:
            continue
        if piece.kind == "free":
            fine = read == piece.text and not lexicon.looks_like_a_name(typo)
        else:
            near = lexicon.nearest(piece.kind, text)
            fine = read == text and near is not None and near[0] == lexicon.exact(piece.kind, piece.text)
        if fine:
            pieces[at] = Piece(text, piece.kind)
            return


def _letters(word: str) -> int:
    """Count the letters of a word up to its apostrophe: "That's" is as short as "That"."""
    return sum(map(str.isalpha, word.partition("'")[0]))


def _places(
    pieces: Sequence[Piece],
    kinds: Collection[str],
    pattern: re.Pattern[str],
    able: Callable[[str], bool],
    rng: np.random.Generator,
) -> list[tuple[int, re.Match[str]]]:
    """List the places of `able` texts in pieces of these kinds, in random order."""
    found = ((at, piece.text) for at, piece in enumerate(pieces) if piece.kind in kinds)
    places = [(at, match) for at, text in found for match in pattern.finditer(text) if able(match.group())]
    return shuffled(rng, places)


def _as_in(original: str, text: str) -> str:
    """Begin a text with a capital where the original does."""
    return text[:1].upper() + text[1:] if original[:1].isupper() else text
