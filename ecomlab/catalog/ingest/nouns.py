"""English nouns: singular and plural, and whether anybody asks for two of them."""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from ecomlab.settings import Strict, read_toml

FILE: Final = Path(__file__).with_name("nouns.toml")
_PLURAL_ONLY: Final = ("ss", "us", "is", "lens")
_IRREGULAR: Final = {"knives": "knife", "scarves": "scarf", "shelves": "shelf", "mics": "mic"} | {
    f"{one}s": one
    for one in "beanie bootie brownie comic cookie hoodie movie necktie onesie smoothie veggie".split()
}
"""Singulars by the plurals that names of categories end with."""


class _File(Strict):
    """Schema of `nouns.toml`."""

    endings: tuple[str, ...]
    counted: str
    uncounted: str
    shelves: str
    packed: dict[str, str]


@cache
def _read() -> tuple[tuple[str, ...], frozenset[str], frozenset[str], dict[str, str]]:
    """Endings of words that are not counted, words that are anyway, words that are not, and what they come in."""
    read = read_toml(FILE, _File)
    packed = {word: pack for pack, words in read.packed.items() for word in words.split()}
    mass = frozenset((*read.uncounted.split(), *read.shelves.split(), *packed))
    return read.endings, frozenset(read.counted.split()), mass, packed


@cache
def shelves() -> frozenset[str]:
    """Last words of categories that say for whom things are or why they lie there: "Women", "New Arrivals"."""
    return frozenset(read_toml(FILE, _File).shelves.split())


@lru_cache(maxsize=65_536)
def singular(word: str) -> str:
    """Return the singular of a lower-case noun: "batteries" -> "battery"."""
    if len(word) < 4 or word[-1] != "s" or word.endswith(_PLURAL_ONLY):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("xes", "ches", "shes", "sses")) else word[:-1]


def singular_as_written(word: str) -> str:
    """Return the singular of a word with its capitals: "Cables" -> "Cable", "Bookshelves" -> "Bookshelf"."""
    low = word.lower()
    if low in _read()[3] or (low.endswith(("ics", "supplies")) and low not in _IRREGULAR):
        return word  # "Jeans" are no jean, "Electronics" no electronic
    many = next((many for many in _IRREGULAR if low.endswith(many)), "")
    one = low.removesuffix(many) + _IRREGULAR[many] if many else singular(low)
    return word[: len(one)] if low.startswith(one) else one.capitalize() if word[:1].isupper() else one


def is_counted(word: str) -> bool:
    """Tell whether a lower-case noun in the singular is of things that people buy two of."""
    endings, counted, mass, _ = _read()
    return word == singular(word) and word not in mass and (word in counted or not word.endswith(endings))


def packed(name: str) -> str:
    """Return how a customer names what is not counted: "Rice" is a "Bag of Rice"; other names stay."""
    pack = _read()[3].get(name.rpartition(" ")[2].lower())
    return f"{pack.capitalize()} of {name}" if pack else name


@lru_cache(maxsize=8_192)
def plural(name: str) -> str:
    """Return the plural of a type's name: "Memory Card" -> "Memory Cards", "Bag of Rice" -> "Bags of Rice"."""
    name, of, rest = name.partition(" of ")
    *before, last = name.split(" ")
    low = last.lower()
    if not is_counted(low):
        return name + of + rest
    form = _inflect().plural_noun(low) or low
    kept = next((i for i, (one, two) in enumerate(zip(low, form, strict=False)) if one != two), len(low))
    return (
        " ".join((*before, last[:kept] + form[kept:])) + of + rest
    )  # "T-Shirts" and "DVDs" keep their capitals


@cache
def _inflect() -> Any:
    from unittest.mock import patch

    import typeguard

    # With typeguard's checks, which inflect asks for, importing it takes 3 s of the processor in place of .2 s.
    with patch.object(typeguard, "typechecked", lambda function: function):
        import inflect
    return inflect.engine()
