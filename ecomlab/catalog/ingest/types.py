"""Product types: what a category path says, else the noun by which a title names a thing sold; and English nouns."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from ecomlab.settings import Strict, read_toml

FILE, NOUNS = (Path(__file__).with_name(name) for name in ("types.toml", "nouns.toml"))
LONGEST: Final = 4
"""Words of a name that is looked for."""
_TOKEN = re.compile(r"[^\s,()\[\]:;|]+|[,()\[\]:;|]")
_AND = re.compile(r"\s*(?:&|,|/|\band\b)\s*", re.IGNORECASE)
_LEVEL = re.compile(r"\s*[>»/]+\s*")
BREAKS: Final = frozenset(("-", "–", "—", ",", "(", ")", "[", "]", ";", "|", ":"))
_PACKING = re.compile(
    r"\b(?:case pack(?: of)?|retail packag\w+|bulk packag\w+|pack of) ?\d*"
    r"|\b\d+ ?-?(?:sheets? |pads? |rolls? )?(?:box|bx|case|carton|ct|pack|pk|pads?|set|ream|roll|spindle)s?\b"
)
"""Words about packing, which are no names of things."""


_PLURAL_ONLY: Final = ("ss", "us", "is", "vas", "lens")
Words = Annotated[frozenset[str], BeforeValidator(lambda said: frozenset(said.split()))]
"""Words that a file lists in one text."""


@dataclass(frozen=True)
class Kind:
    """A product type and its department."""

    name: str
    department: str
    said: str | None = None
    """What a title calls it that does not say all of its name, but "toner" where a Toner Cartridge is of a trade: the
    thing's own name elsewhere, "" where the title goes on."""


OTHER: Final = Kind("Other Product", "Other")
"""Type of products whose titles and categories name none; no task is about it."""
COUNTED_BY: Final = ("Bag", "Pad", "Set")
"""Last words of types that titles may name without them: few say "Drum Set"."""
PACKS: Final = frozenset(("Bag", "Bottle", "Box", "Jar", "Pack", "Pad", "Pair", "Roll", "Set", "Tube"))
"""What things come in that nobody asks for one by one: "a Pack of Paper"."""
_SPEAKABLE = re.compile(r"[A-Z0-9][A-Za-z0-9'-]*(?: [A-Za-z0-9'-]+){0,2}")


def is_speakable(name: str) -> bool:
    """Tell whether a customer can ask for one of a type by this name: at most three plain words, the last of them of
    things that are counted, in the singular; or these by what they come in, "Bag of Rice"."""
    pack, of, held = name.partition(" of ")
    if of:
        return pack in PACKS and _SPEAKABLE.fullmatch(held) is not None
    return _SPEAKABLE.fullmatch(name) is not None and is_counted(name.rpartition(" ")[2].lower())


class _Nouns(Strict):
    """Schema of `nouns.toml`."""

    endings: tuple[str, ...]
    counted: Words
    uncounted: Words
    shelves: Words
    roots: Words
    packed: dict[str, Words]
    regular: Words
    unnamed: Words
    prefixes: Words

    @cached_property
    def packs(self) -> dict[str, str]:
        """What things come in that are not counted, by their words."""
        return {word: pack for pack, words in self.packed.items() for word in words}

    @cached_property
    def mass(self) -> frozenset[str]:
        """Words that are not counted."""
        return self.uncounted | self.shelves | self.roots | self.packs.keys()


class _Names(Strict):
    """Schema of `types.toml`."""

    ends: frozenset[str]
    trade: frozenset[str]
    mixed: frozenset[str]
    """Departments whose other names mean something else in a general shop; the first are of a trade."""
    departments: dict[str, tuple[str, ...]]

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Types by what titles call them."""
        found: dict[str, Kind] = {}
        for department, entries in self.departments.items():
            for entry in entries:
                name, _, others = entry.partition(":")
                whole = {*singular_words(noun(name))}
                forms = (name.lower(), name.lower().rpartition(" of ")[2], *others.split(","))
                for form in (" ".join(singular_words(form)) for form in forms if form.strip()):
                    sure = department not in self.trade | self.mixed or {*form.split()} >= whole
                    found.setdefault(form, Kind(name, department, None if sure else form.title()))
        return found

    @cached_property
    def last_words(self) -> frozenset[str]:
        """The last words of what titles call types: most words of a title end no name."""
        return frozenset(form.rpartition(" ")[2] for form in self.kinds)


@cache
def names() -> _Names:
    """Read the names of types, once a process."""
    return read_toml(FILE, _Names)


@cache
def nouns() -> _Nouns:
    """Read the words that tell how things are counted and named, once a process."""
    return read_toml(NOUNS, _Nouns)


def singular_words(name: str) -> list[str]:
    """Return the words of a name in lower case, each in the singular."""
    return [singular(word) for word in name.lower().split()]


def noun(kind: str) -> str:
    """Return what titles call a type whose name says how it is counted: "Drum" of "Drum Set", "Rice" of "Bag of
    Rice"."""
    before, _, last = kind.rpartition(" ")
    return before if last in COUNTED_BY else kind.rpartition(" of ")[2]


def of_title(title: str) -> Kind | None:
    """Read the type that a title names: the last name of a thing sold before "for", "with" and the like.

    "Leather Case for iPad" is a case. Where the words before the first dash or comma name nothing, those after it are
    read. None where nothing is named.
    """
    kinds, last_words = names().kinds, names().last_words
    for part in _parts(title, names().ends):
        for at in range(len(part), 0, -1):
            for count in range(min(LONGEST, at) if part[at - 1] in last_words else 0, 0, -1):
                if best := kinds.get(" ".join(part[at - count : at])):
                    ends_it = at == len(part) or part[at][0].isdigit()  # "Toner 200 ml"
                    return best if best.said is None or ends_it else replace(best, said="")
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
    return frozenset(tuple(form.split()) for form, one in names().kinds.items() if one.name == kind)


@lru_cache(maxsize=4_096)
def words_of(kind: str) -> frozenset[str]:
    """Return the words of what titles call a type, and of its name, in lower case and singular."""
    return frozenset((*singular_words(kind), *(word for form in _forms(kind) for word in form)))


def without_words(name: str, kind: str) -> str:
    """Leave out of a short name what the type's name says: "Drift Yoga" of a Mat that its category makes a Yoga Mat is
    Drift."""
    said = {*singular_words(kind)}
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
    """Return the type and department of a category path, in words that a customer can say; None where no level names a
    thing.

    "Cell Phone Cases & Covers" is "Cell Phone Case"; a last level that says for whom things are ("Shoes > Women") gives
    way to the one above.
    """
    if not path:
        return None
    last = len(path) - 1
    while last and is_shelf(path[last]):
        last -= 1
    if path[last].lower() in nouns().roots:
        return None
    name = _level(path[last])
    name = packed(name[:1].upper() + name[1:])
    return Kind(name, department_of(path) if len(path) > 1 else name)


def department_of(path: tuple[str, ...]) -> str:
    """Return the department of a category path: the first name that its first level gives."""
    department = _AND.split(path[0].replace("_", " "))[0]
    return department[:1].upper() + department[1:]


def said_of(level: str, title: str) -> str:
    """Return which of the names that a level of a category gives a title says: "Jacket" of "Coats & Jackets"; "" where
    it gives one, or the title says none."""
    if len(names := _AND.split(level)) < 2:
        return ""
    said = f" {' '.join(singular_words(title))} "
    found = next((name for name in map(_level, names) if f" {name.lower()} " in said), "")
    return found[:1].upper() + found[1:]


@lru_cache(maxsize=8_192)
def is_shelf(said: str) -> bool:
    """Tell whether the last level of a category names no thing: "Home", "Lamps > Best Sellers", "/all", "Women"."""
    last = _level(_LEVEL.split(said)[-1]).lower().split()[-1:]
    return {*last} <= nouns().shelves | nouns().roots


@lru_cache(maxsize=8_192)
def _level(said: str) -> str:
    """Return the first name that a level of a category gives, its last word in the singular."""
    words = _AND.split(said.replace("_", " "))[0].split()[-3:] or ["Product"]
    if len(words) == 2 and words[0].lower() == "all":  # "All Laptops" are laptops
        words = words[1:]
    words[-1] = singular_as_written(words[-1])
    letters = unicodedata.normalize("NFKD", " ".join(words))  # "Crème" is said Creme
    return " ".join("".join(one for one in letters if one.isalnum() or one in " '-").split())


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
    if low in nouns().packs or (low.endswith(("ics", "supplies")) and low not in nouns().regular):
        return word  # "Jeans" are no jean, "Electronics" no electronic
    one = low[:-1] if low.endswith(tuple(nouns().regular)) else _singular(low)
    return word[: len(one)] if low.startswith(one) else one.capitalize() if word[:1].isupper() else one


@lru_cache(maxsize=8_192)
def _singular(low: str) -> str:
    """Return the singular of the last word of a category: "trellises" -> "trellis", "potatoes" -> "potato"."""
    if low.endswith(_PLURAL_ONLY):
        return low
    one = _inflect().singular_noun(low) or low
    return one if len(one) > 2 and low in (f"{one}s", _inflect().plural_noun(one)) else low


def is_counted(word: str) -> bool:
    """Tell whether a lower-case noun in the singular is of things that people buy two of."""
    file = nouns()
    is_mass = word in file.mass or (word.endswith(file.endings) and word not in file.counted)
    return word == singular(word) and not is_mass


def packed(name: str) -> str:
    """Return how a customer names what is not counted, or not one by one: "Rice" is a "Bag of Rice", a "Sneaker" a
    "Pair of Sneakers"; other names stay."""
    for said in (name, f"{name}s"):
        if pack := nouns().packs.get(said.rpartition(" ")[2].lower()):
            return f"{pack.capitalize()} of {said[:1].upper()}{said[1:]}"
    return name


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
