"""Product types: the last level of a category path, or the noun that a title names a thing sold by."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from ecomlab.settings import Strict, read_toml

FILE: Final = Path(__file__).with_name("types.toml")
ENOUGH: Final = 12
"""Products that make a type that tasks are about: fewer can hardly be told apart or sold out."""
LONGEST: Final = 4
"""Words of a name that is looked for."""
_TOKEN = re.compile(r"[^\s,()\[\]:;|]+|[,()\[\]:;|]")
_AND = re.compile(r"\s*(?:&|,|/|\band\b)\s*", re.IGNORECASE)
BREAKS: Final = frozenset(("-", "–", "—", ",", "(", ")", "[", "]", ";", "|", ":"))
_PACKING = re.compile(
    r"\b(?:case pack(?: of)?|retail packag\w+|bulk packag\w+|pack of) ?\d*"
    r"|\b\d+ ?-?(?:sheets? |pads? |rolls? )?(?:box|bx|case|carton|ct|pack|pk|pads?|set|ream|roll|spindle)s?\b"
)
"""Words about packing, which are no names of things."""
_PLURAL_ONLY: Final = ("ss", "us", "is", "lens")
_IRREGULAR: Final = {"knives": "knife", "scarves": "scarf", "shelves": "shelf"} | {
    f"{one}s": one
    for one in ("beanie", "bootie", "brownie", "cookie", "movie", "necktie", "onesie", "smoothie")
}
"""Singulars by the plurals that names of categories end with."""


class _Names(Strict):
    """Schema of `types.toml`."""

    ends: tuple[str, ...]
    departments: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Kind:
    """A product type and its department."""

    name: str
    department: str


OTHER: Final = Kind("Other Product", "Other")
"""Type of products whose titles and categories name none; no task is about it."""
UNCOUNTED: Final = frozenset(
    "apparel art audio bakeware bedding care clothing coffee cookware decor equipment flatware food footwear furniture "
    "gear glassware glue hardware jewellery jewelry lighting lingerie litter luggage makeup media memory music "
    "networking oil paper photography software sportswear stationery storage tableware tape tea toothpaste underwear "
    "wiring".split()
)
"""Nouns of which nobody buys two."""
SHELVES: Final = frozenset(
    "adult arrival bestseller boy clearance deal default essential featured girl kid men mens men's misc miscellaneous "
    "offer other promotion sale teen uncategorized unisex women womens women's".split()
)
"""Last words of levels that say for whom things are or why they lie there: nobody asks for "a Women"."""
COUNTED_BY: Final = ("Bag", "Bottle", "Pack", "Pad", "Roll", "Set", "Tube")
"""Last words of types that titles name without them: nobody asks for "a Paper", and no title says "Paper Pack"."""
_SPEAKABLE = re.compile(r"[A-Z0-9][A-Za-z0-9'-]*(?: [A-Za-z0-9'-]+){0,2}")


def is_speakable(name: str) -> bool:
    """Tell whether a customer can ask for one of a type by this name: at most three plain words, the last of them of
    things that are counted, in the singular."""
    last = name.rpartition(" ")[2].lower()
    return (
        _SPEAKABLE.fullmatch(name) is not None and last == singular(last) and last not in UNCOUNTED | SHELVES
    )


@cache
def _names() -> tuple[frozenset[str], dict[str, Kind]]:
    """The words that end a name, and types by what titles call them."""
    read = read_toml(FILE, _Names)
    kinds: dict[str, Kind] = {}
    for department, entries in read.departments.items():
        for entry in entries:
            name, _, others = entry.partition(":")
            own = (
                " ".join(map(singular, form.split()))
                for form in (name.lower(), *others.split(","))
                if form.strip()
            )
            for form in own:
                kinds.setdefault(form, Kind(name, department))
    return frozenset(read.ends), kinds


@cache
def _last_words() -> frozenset[str]:
    """The last words of what titles call types: most words of a title end no name."""
    return frozenset(form.rpartition(" ")[2] for form in _names()[1])


@lru_cache(maxsize=65_536)
def singular(word: str) -> str:
    """Return the singular of a lower-case noun: "batteries" -> "battery"."""
    if len(word) < 4 or word[-1] != "s" or word.endswith(_PLURAL_ONLY):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("xes", "ches", "shes", "sses")) else word[:-1]


def noun(kind: str) -> str:
    """Return what titles call a type whose name says how it is counted: "Paper" of "Paper Pack"."""
    before, _, last = kind.rpartition(" ")
    return before if last in COUNTED_BY else kind


@lru_cache(maxsize=8_192)
def plural(name: str) -> str:
    """Return the plural of a type's name: "Memory Card" -> "Memory Cards", "Headphones" -> "Headphones"."""
    *before, last = name.split(" ")
    folded = last.lower()
    if folded != singular(folded) or folded in UNCOUNTED:
        return name
    form = _inflect().plural_noun(folded) or folded
    kept = next(
        (i for i, (one, two) in enumerate(zip(folded, form, strict=False)) if one != two), len(folded)
    )
    return " ".join((*before, last[:kept] + form[kept:]))  # "T-Shirts" and "DVDs" keep their capitals


@cache
def _inflect() -> Any:
    from unittest.mock import patch

    import typeguard

    # With typeguard's checks, which inflect asks for, importing it takes 3 s of the processor in place of .2 s.
    with patch.object(typeguard, "typechecked", lambda function: function):
        import inflect
    return inflect.engine()


def of_title(title: str) -> Kind | None:
    """Read the type that a title names: the last name of a thing sold before "for", "with" and the like.

    "Leather Case for iPad" is a case. Where the words before the first dash or comma name nothing, those after it are
    read. None where nothing is named.
    """
    ends, kinds = _names()
    last = _last_words()
    for part in _parts(title, ends):
        best: Kind | None = None
        at = len(part)
        while at and best is None:
            for count in range(min(LONGEST, at) if part[at - 1] in last else 0, 0, -1):
                best = kinds.get(" ".join(part[at - count : at]))
                if best:
                    break
            at -= 1
        if best:
            return best
    return None


def _parts(title: str, ends: frozenset[str]) -> Iterable[list[str]]:
    """Yield the parts of a title between dashes and commas, in singular and without what the thing is for or has."""
    part: list[str] = []
    out = False
    for token in _TOKEN.findall(_PACKING.sub(" , ", title.lower())):
        if token in BREAKS:
            if part:
                yield part
            part, out = [], False
        elif token in ends:
            out = bool(part) or out
        elif not out:
            part.append(singular(token.rstrip(".")))
    if part:
        yield part


@lru_cache(maxsize=4_096)
def _forms(kind: str) -> frozenset[tuple[str, ...]]:
    """Return what titles call a type, word by word."""
    return frozenset(tuple(form.split()) for form, one in _names()[1].items() if one.name == kind)


@lru_cache(maxsize=4_096)
def words_of(kind: str) -> frozenset[str]:
    """Return the words of what titles call a type, and of its name, in lower case and singular."""
    own = map(singular, kind.lower().split())
    return frozenset((*own, *(word for form in _forms(kind) for word in form)))


def without_words(name: str, kind: str) -> str:
    """Leave out of a short name what the type's name says: "Drift Yoga" of a Mat that its category makes a Yoga Mat is
    Drift."""
    said = {singular(word) for word in kind.lower().split()}
    return " ".join(word for word in name.split() if singular(word.lower()) not in said)


def noun_at(words: Sequence[str], kind: str) -> int:
    """Find the place of a type among the words of a title: where its last name in the first part that has one begins.

    It is the end where no part has one.
    """
    said = [singular(word.lower()) for word in words]
    forms = _forms(kind)
    first = {form[0] for form in forms}
    found = len(words)
    for at, word in enumerate(said):
        if word in BREAKS and found < at:
            break
        if word in first and any(tuple(said[at : at + count]) in forms for count in range(1, LONGEST + 1)):
            found = at
    return found


def of_path(path: tuple[str, ...]) -> Kind | None:
    """Return the type and department of a category path, in words that a customer can say; None for an empty path.

    "Cell Phone Cases & Covers" is "Cell Phone Case".
    """
    if not path:
        return None
    words = _AND.split(path[-1].replace("_", " "))[0].split()[-3:] or ["Product"]
    if len(words) == 2 and words[0].lower() == "all":  # "All Laptops" are laptops
        words = words[1:]
    words[-1] = _cased(words[-1])
    name = " ".join(
        "".join(letter for letter in word if letter.isalnum() or letter in "'-") for word in words
    ).strip()
    department = _AND.split(path[0].replace("_", " "))[0] if len(path) > 1 else name
    return Kind(name[:1].upper() + name[1:], department[:1].upper() + department[1:])


def _cased(word: str) -> str:
    """Return the singular of a word as it is written: "Cables" -> "Cable", "Bookshelves" -> "Bookshelf"."""
    folded = word.lower()
    many = next((many for many in _IRREGULAR if folded.endswith(many)), "")
    one = folded.removesuffix(many) + _IRREGULAR[many] if many else singular(folded)
    return (
        word[: len(one)] if word.lower().startswith(one) else one.capitalize() if word[:1].isupper() else one
    )


def ending_words() -> frozenset[str]:
    """Return the words after which a title says what a thing is for or has."""
    return _names()[0]
