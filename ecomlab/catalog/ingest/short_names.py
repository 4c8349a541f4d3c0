"""Short names of real products: what people say of a twenty-word title beside its brand and what it is."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

from ecomlab.catalog.ingest import attributes, types
from ecomlab.catalog.ingest.types import singular

MOST_WORDS: Final = 2
_TOKEN = re.compile(r"[^\s,()\[\]|;:/]+|[,()\[\]|;:/]")
_MODEL = re.compile(r"(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_NAME = re.compile(r"[A-Z][A-Za-z]{2,}(?:-[A-Za-z]+)*|[a-z][A-Z][A-Za-z]+")
_MEASURE = re.compile(
    r"[\d.]+-?(?:[a-z]{1,6}|inch|inches|pack|foot|feet)s?|\d+[xX]\d+|\d+x(?:-\d+x)?|[A-Z]\d?", re.IGNORECASE
)
_COUNT = re.compile(r"\d+(?!\.0)(?:\.\d+)?")
"""A number that counts or measures what follows it, unlike that of a version: "USB 2.0"."""
_NEW = re.compile(r"^(?:brand )?new[- ](?=\S)", re.IGNORECASE)
LONGEST_MODEL: Final = 12


@cache
def _ordinary() -> frozenset[str]:
    """Words of attribute values and of trade, which tell no product from another by name."""
    spelled = (
        form
        for one in attributes.known().values()
        for value, more in one.values.items()
        for form in (value, *more)
    )
    return frozenset(word.lower() for form in spelled for word in form.split()) | types.nouns().unnamed


def feature(title: str, brand: str, kind: str) -> str:
    """Return up to two words that name the product among those of its brand and type: "EQ50", "Cyber-shot DSC-HX7V".

    They are the first words in a row between the brand and the noun that can be a name, and a model's number, which may
    stand anywhere before what the thing is for or has. Where the noun is all of the type's name, what titles put before
    it will do: "Shipping" of a label. "" where the title holds none.
    """
    words = _words(title)
    own = _spellings(brand.lower())
    found = _found(words, own, types.words_of(kind), types.noun_at(words, kind))
    noun = types.noun(kind)
    if not found and noun and " " not in noun:
        found = _found(words, own, frozenset((singular(noun.lower()),)), types.noun_at(words, kind))
    return found


def _spellings(brand: str) -> frozenset[str]:
    """Return the words by which titles write a brand, all in lower case: "elmer's", "elmer" and "elmers"."""
    parts = brand.split()
    plain = (part.removesuffix("'s") for part in parts)
    return frozenset((*parts, *plain, "-".join(parts), re.sub(r"[\W_]", "", brand)))


def _found(words: Sequence[str], brand: frozenset[str], called: frozenset[str], noun: int) -> str:
    """Find the name among words up to the `noun`, and the model's number, none of which is of the brand or the type."""
    taken = brand | called | _ordinary()
    able = [len(word) > 2 and not {word.lower(), singular(word.lower())} & taken for word in words]
    model = next((at for at, word in enumerate(words) if able[at] and _is_model(word)), len(words))
    whole: list[list[str]] = []
    torn: list[list[str]] = []  # from a word that is no name, as "Ion" is from "Lithium"
    run: list[str] = []
    for at, word in enumerate(words[: min(model, noun)]):
        before = words[at - 1] if at else ""
        if not (able[at] and _is_name(word)) or _COUNT.fullmatch(before):
            run = []
        elif run:
            run.append(word)
        else:
            run = [word]
            (torn if _NAME.fullmatch(before) and before.lower() not in brand else whole).append(run)
    if model == len(words):
        return " ".join([*whole, *torn, []][0][:MOST_WORDS])
    beside = (
        model < noun and run in whole
    )  # what stands elsewhere is not said with the number: "Card - PEXUSB3S2"
    first = run[:1] if beside and len(run[0]) <= LONGEST_MODEL else []
    return " ".join([*first, words[model]])


def _words(title: str) -> list[str]:
    """Split a title, up to what the thing is for or has, into words and the marks between its parts."""
    words: list[str] = []
    prefixes = types.nouns().prefixes
    for token in _TOKEN.findall(_NEW.sub("", title)):
        word = token if token in types.BREAKS else token.strip(".'\"-&+")
        if word.lower() in types.names().ends and words:
            break
        if words and words[-1].lower() in prefixes and _NAME.fullmatch(word):
            words[-1] = f"{words[-1]}-{word}"
        else:
            words.append(word)
    return words


def _is_model(word: str) -> bool:
    return len(word) <= LONGEST_MODEL and bool(_MODEL.fullmatch(word)) and not _MEASURE.fullmatch(word)


@lru_cache(maxsize=65_536)
def _is_name(word: str) -> bool:
    return _NAME.fullmatch(word) is not None and types.of_title(word) is None
