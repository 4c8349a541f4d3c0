"""Noise in the customer's messages: typos and slang.

Ids, numbers, units, values of closed vocabularies and words of four letters or fewer are spared. A typo is redrawn if
it brings a name as near to another name, or makes another word look like a name.
"""

import re
from typing import NamedTuple

import numpy as np

from ecomlab.catalog.lexicon import Lexicon


class Piece(NamedTuple):
    """A run of text; `kind` is free (may carry noise), fixed (may not), or the kind of name that it is."""

    text: str
    kind: str = "free"


SLANG = {
    "please": "pls",
    "thanks": "thx",
    "thank you": "ty",
    "going to": "gonna",
    "want to": "wanna",
    "you": "u",
    "about": "abt",
    "could": "cud",
    "would like": "wanna have",
}
SHORT = 4
"""Words of so many letters, or fewer, are spared."""
_NEIGHBOURS = {
    key: row[max(0, i - 1) : i] + row[i + 1 : i + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i, key in enumerate(row)
}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_SLANG = re.compile(r"\b(" + "|".join(sorted(SLANG, key=len, reverse=True)) + r")\b", re.IGNORECASE)


def mistype(word: str, rng: np.random.Generator) -> str:
    """Draw a typo in a word, never in its first letter: letters swapped, one dropped, doubled or hit beside."""
    spots = [i for i in range(1, len(word)) if word[i].isalpha()]
    at = spots[int(rng.integers(len(spots)))]
    how = int(rng.integers(4))
    if how == 0 and at + 1 < len(word) and word[at + 1].isalpha() and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if how == 1:
        return word[:at] + word[at + 1 :]
    if how == 2:
        return word[:at] + word[at] + word[at:]
    near = _NEIGHBOURS[word[at].lower()]
    key = near[int(rng.integers(len(near)))]
    return word[:at] + (key.upper() if word[at].isupper() else key) + word[at + 1 :]


def noised(pieces: list[Piece], p: float, lexicon: Lexicon, rng: np.random.Generator) -> str:
    """Join the pieces, each word that may carry noise being hit with probability `p`."""
    if p <= 0:
        return "".join(piece.text for piece in pieces)
    return "".join(_noised(piece, p, lexicon, rng) for piece in pieces)


def _noised(piece: Piece, p: float, lexicon: Lexicon, rng: np.random.Generator) -> str:
    if piece.kind == "fixed" or len(piece.text) <= SHORT:
        return piece.text
    text = piece.text
    if piece.kind == "free":
        text = _SLANG.sub(lambda m: SLANG[m.group().lower()] if rng.random() < p else m.group(), text)

    def hit(match: re.Match[str]) -> str:
        word = match.group()
        if sum(map(str.isalpha, word)) <= SHORT or rng.random() >= p:
            return word
        for _ in range(4):
            typo = mistype(word, rng)
            if piece.kind != "free" or not lexicon.looks_like_a_name(typo):
                return typo
        return word

    if piece.kind == "free":
        return _WORD.sub(hit, text)
    for _ in range(4):
        typed = _WORD.sub(hit, text)
        if typed == text:
            return text
        near = lexicon.nearest(piece.kind, typed)
        if near is not None and near[0] == lexicon.exact(piece.kind, text):
            return typed
    return text
