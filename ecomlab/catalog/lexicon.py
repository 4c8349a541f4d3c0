"""The names that a shop uses (types, brands, features, option values), and the name nearest to a misspelt word."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial

import numpy as np
from rapidfuzz import fuzz, process

from ecomlab import other_words
from ecomlab.catalog import Attribute, Catalog, ProductType
from ecomlab.catalog.names import PART, SPLIT, SPOKEN, WORD, Names, Packed, by_lower_case
from ecomlab.values import LOOKS, in_speech

CUTOFF = 72.0
"""Similarity (0-100, indel ratio) from which a word counts as a misspelling of a name."""
_A_VOWEL = re.compile(r"\ba (?=(?!one\b)[AEIOUaeiou]|LED\b|8|11\b|18\b)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OR_NUMBER = re.compile(r" or (\d+(?:\.\d+)?)(?![\w-]|\.\d)")
_WORD = SPLIT[WORD]
_LETTERS = re.compile(r"[A-Za-z][A-Za-z'-]*")
_MODELS = re.compile(r"[A-Za-z0-9][A-Za-z0-9'-]*")


def _of_type(catalog: Catalog, name: str) -> dict[str, Mapping[str, str]]:
    """Return brands and features of a type's products, by kind and by their lower case."""
    rows = catalog.type_rows(name)
    kinds = {
        "brand": (catalog.brands, catalog.brand_code),
        "feature": (catalog.features, catalog.feature_code),
    }
    used = {kind: np.unique(column[rows.start : rows.stop]) for kind, (_, column) in kinds.items()}
    return {kind: by_lower_case(names, used[kind][used[kind] >= 0]) for kind, (names, _) in kinds.items()}


class Words(Container[str]):
    """Words of a shop's names: `held`, and those of names of which there are `many`, which are looked up."""

    def __init__(self, split: str, held: Iterable[str], many: Sequence[Packed]) -> None:
        self._split, self.held, self._many = split, frozenset(held), many

    def __contains__(self, word: object) -> bool:
        return word in self.held or any(names.has(self._split, str(word)) for names in self._many)


class Lexicon:
    """The vocabulary of one catalog: public knowledge, the same for customer and agent."""

    def __init__(self, catalog: Catalog) -> None:
        self.is_real = catalog.titles is not None
        """Whether names are those of real products: many, with digits, and often ordinary words."""
        self.within = (
            lru_cache(maxsize=1_024)(partial(_of_type, catalog)) if self.is_real else (lambda _: self.names)
        )
        """Function from a type to the names by kind of its products alone; all names where none is an ordinary word."""
        self.types: dict[str, ProductType] = {t.name: t for t in catalog.types}
        forms = {form.lower(): t.name for t in catalog.types for form in (t.plural, t.name)}
        held = Counter(t.name.lower().partition(" of ")[2] for t in catalog.types)
        for kind in catalog.types:  # "a bag of Alder rice"
            inside = kind.name.lower().partition(" of ")[2]
            if inside and held[inside] == 1:
                forms.setdefault(inside, kind.name)
        self.type_words = max(3, *(len(form.split()) for form in forms))
        """Words that a type's name may have, with one that is misspelt into two."""
        self.listed = {"brand": catalog.brands, "feature": catalog.features}
        """Names of brands and features, in the order of their codes."""
        self._many = [names for names in self.listed.values() if isinstance(names, Packed)]
        self.names: dict[str, Mapping[str, str]] = {
            "type": forms,
            **{kind: by_lower_case(names) for kind, names in self.listed.items()},
        }
        self.token = _LETTERS if catalog.titles is None else _MODELS
        """Pattern of a word of a name; those of real products hold digits."""
        self.nearest = lru_cache(maxsize=20_000)(self._nearest)

    @cached_property
    def phrase_words(self) -> frozenset[str]:
        """Words around option and attribute values: "in a ... shape", "comfortable at ..."."""
        phrases = {a.phrase for t in self.types.values() for a in (t.option, *t.attributes)}
        return frozenset(_WORD.findall(" ".join(phrases).lower()))

    @cached_property
    def words(self) -> Words:
        """Every word of this shop's names, values and phrases, in lower case: none of them is a misspelling."""
        texts = self._few()
        texts += [text for _, slots in self._patterns.values() for text in slots]
        texts += [a.name.replace("_", " ") for t in self.types.values() for a in (t.option, *t.attributes)]
        return Words(WORD, {*_WORD.findall(" ".join(texts).lower()), *self.phrase_words}, self._many)

    @cached_property
    def parts(self) -> Words:
        """The letters in a row of `words`."""
        return Words(PART, SPLIT[PART].findall(" ".join(self.words.held)), self._many)

    @cached_property
    def spoken(self) -> Words:
        """Words of the names of types, brands and features, as people say them."""
        return Words(
            SPOKEN, (word for name in self._few() for word in SPLIT[SPOKEN].findall(name)), self._many
        )

    def _few(self) -> list[str]:
        """List names in lower case, but no kind of which there are many."""
        return [name for names in self.names.values() if not isinstance(names, Names) for name in names]

    def exact(self, kind: str, words: str) -> str | None:
        """Find the name of a kind that equals these words in any case."""
        return self.names[kind].get(words.lower())

    def _nearest(self, kind: str, words: str, type_name: str = "") -> tuple[str, float] | None:
        """Find the name of a kind most similar to `words`, with its score; None below the cutoff or on a tie.

        With a type, only names that its products have are looked at. A number is no misspelling: "four" is not FORD.
        """
        names = self.within(type_name)[kind] if type_name else self.names[kind]
        if other_words.is_number(words.lower()):
            return (words, 100.0) if names.get(words.lower()) == words else None
        able = names.near(words.lower(), CUTOFF) if isinstance(names, Names) else list(names)
        hits = process.extract(words.lower(), able, scorer=fuzz.ratio, score_cutoff=CUTOFF, limit=3)
        if not hits:
            return None
        best = names[hits[0][0]]
        rivals = [score for form, score, _ in hits[1:] if names[form] != best]
        return None if rivals and rivals[0] >= hits[0][1] else (best, hits[0][1])

    def looks_like_a_name(self, word: str) -> bool:
        """Tell whether a filler word could be taken for a name of this shop."""
        return any(self.nearest(kind, word) is not None for kind in self.names)

    @cached_property
    def _patterns(self) -> dict[str, tuple[re.Pattern[str], dict[str, tuple[str, str]]]]:
        """By type: the pattern of all values, in other words too, and (slot name, value) by what is written."""
        made = {}
        for name, kind in self.types.items():
            slots: dict[str, tuple[str, str]] = {}
            others: list[tuple[str, tuple[str, str]]] = []
            for attribute in (kind.option, *kind.attributes):
                slot = "option" if attribute is kind.option else f"attr:{attribute.name}"
                for value in attribute.values:
                    slots[_written(attribute, value)] = slot, value
                    said = other_words.of_value(value, attribute.phrase)
                    others += [(text, (slot, value)) for text in said]
            uses = Counter(text for text, _ in others)
            slots |= {text: meant for text, meant in others if uses[text] == 1 and text not in slots}
            small = [(in_speech(text), meant) for text, meant in slots.items()]
            slots |= {text: meant for text, meant in small if text not in slots}
            longest_first = sorted(slots, key=lambda v: (-len(v), v))
            alternatives = "|".join(re.escape(value) for value in longest_first) or "(?!)"  # none: no match
            made[name] = (re.compile(rf"(?<![\w.-])(?:{alternatives})(?![\w-])"), slots)
        return made

    def values(self, type_name: str, text: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """Find option and attribute values of a type in `text`, also in other words, as (slot name, value, span)."""
        pattern, slots = self._patterns[type_name]
        for match in pattern.finditer(text):
            slot, value = slots[match.group()]
            before = match.group().removesuffix(value)
            is_number = before and _NUMBER.fullmatch(value)
            yield slot, value, (match.end() - len(value) if is_number else match.start(), match.end())
            at = match.end()
            while is_number and (more := _OR_NUMBER.match(text, at)) and f"{before}{more[1]}" in slots:
                yield (*slots[f"{before}{more[1]}"], more.span(1))  # "size 5 or 6"
                at = more.end()

    def in_other_words(self, type_name: str, slot: str, value: str) -> tuple[str, ...]:
        """Put a value of a type in other words that mean no other value of it: "four cups" for "4 Cups"."""
        _, slots = self._patterns[type_name]
        own = {value, in_speech(value)}
        forms = (text for text, meant in slots.items() if meant == (slot, value) and text not in own)
        return tuple(text for text in forms if not text.endswith(f" {value}"))

    def said(self, value: str) -> str:
        """Write a feature or a value as customers do: those of real products keep their capitals."""
        return value if self.is_real else in_speech(value)

    def phrase(self, type_name: str, slot: str, value: str) -> str:
        """Put an option or attribute of a type in the customer's words: "in size XL". Raises ValueError for a slot that
        is neither."""
        kind = self.types[type_name]
        named = {"option": kind.option, **{f"attr:{a.name}": a for a in kind.attributes}}
        if slot not in named:
            raise ValueError(
                f"there are no words for the slot {slot!r}, which is no property of a {type_name}: "
                f"the environment's phrases need a table [slots.{slot}]"
            )
        said = in_speech(value) if named[slot].name in LOOKS else value
        return _A_VOWEL.sub("an ", named[slot].say(said))


def _written(attribute: Attribute, value: str) -> str:
    """Write a value as it is known by: a bare number with the word before it, for "within 7 days" is no size 7."""
    before = attribute.phrase.partition("{}")[0].split()
    return f"{before[-1]} {value}" if before and _NUMBER.fullmatch(value) else value


_LEXICONS: dict[str, Lexicon] = {}


def lexicon_of(catalog: Catalog) -> Lexicon:
    """Return the catalog's lexicon, made once per fingerprint."""
    if catalog.fingerprint not in _LEXICONS:
        _LEXICONS[catalog.fingerprint] = Lexicon(catalog)
    return _LEXICONS[catalog.fingerprint]


def windows(words: list[str], longest: int) -> Iterable[tuple[int, int]]:
    """Yield all (start, end) windows of up to `longest` words, longer ones first."""
    for size in range(min(longest, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            yield start, start + size
