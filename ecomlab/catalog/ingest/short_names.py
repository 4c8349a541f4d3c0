"""Short names of real products: what people say of a twenty-word title beside its brand and what it is."""

import re
from functools import cache
from typing import Final

from ecomlab.catalog.ingest import attributes, types

MOST_WORDS: Final = 2
_TOKEN = re.compile(r"[^\s,()\[\]|;:/]+")
_MODEL = re.compile(r"(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_NAME = re.compile(r"[A-Z][A-Za-z]{2,}(?:-[A-Za-z]+)*|[a-z][A-Z][A-Za-z]+")
_MEASURE = re.compile(
    r"[\d.]+-?(?:[a-z]{1,6}|inch|inches|pack|foot|feet)s?|\d+[xX]\d+|\d+x|[A-Z]\d?", re.IGNORECASE
)
_NEW = re.compile(r"^new[- ](?=\S)", re.IGNORECASE)
LONGEST_MODEL: Final = 12


@cache
def _ordinary() -> frozenset[str]:
    """Words of attribute values and packing, which tell no product from another by name."""
    spelled = (
        form
        for one in attributes.known().values()
        for value, more in one.values.items()
        for form in (value, *more)
    )
    words = {word.lower() for form in spelled for word in form.split()}
    return frozenset(
        words
        | set("new the pack set case with for and retail oem inch series edition genuine original".split())
    )


def feature(title: str, brand: str, kind: str) -> str:
    """Return up to two words that name the product among those of its brand and type: "EQ50", "Cyber-shot DSC-HX7V".

    They stand in the title before what the thing is for or has. "" where the title holds none.
    """
    named = {types.singular(word) for word in kind.lower().split()}
    own = {*brand.lower().split(), brand.lower(), brand.lower().replace(" ", "-")}
    chosen: list[str] = []
    ends = types.ending_words()
    for at, token in enumerate(_TOKEN.findall(_NEW.sub("", title))):
        word = token.strip(".'\"-&+")
        folded = word.lower()
        if folded in ends and at:
            break
        if (
            len(word) < 3
            or folded in own
            or folded in _ordinary()
            or types.singular(folded) in named
            or folded in ends
        ):
            continue
        if _MODEL.fullmatch(word) and len(word) <= LONGEST_MODEL and not _MEASURE.fullmatch(word):
            return " ".join([*chosen[:1], word]) if chosen and len(chosen[0]) <= LONGEST_MODEL else word
        if (
            _NAME.fullmatch(word)
            and len(chosen) < MOST_WORDS
            and word not in chosen
            and types.of_title(word) is None
        ):
            chosen.append(word)
    return " ".join(chosen[:MOST_WORDS])
