"""The search of a policy book: sections ranked by the words that they share with a query."""

import math
import re
from collections import Counter
from functools import lru_cache

from ecomlab.catalog import Catalog, ProductType
from ecomlab.world.policy_book import places
from ecomlab.world.policy_book.book import Book
from ecomlab.world.policy_book.rules import STOP_WORDS
from ecomlab.world.policy_book.wording import text_of, title_of

TITLES = 5
"""Maximum number of further titles that a search shows."""
STEM = 5
"""Leading letters of a word that the search compares."""
_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")


class BookSearch:
    """The search of one book, whose sections are written once."""

    def __init__(self, book: Book, catalog: Catalog) -> None:
        self.book, self.catalog = book, catalog
        plurals = {kind.name: kind.plural for kind in catalog.types}
        self.shown = [(title_of(one, catalog), text_of(one, book, plurals)) for one in book["sections"]]
        """Title and text of all sections."""
        if book.get("places"):
            self.shown.append((places.TITLE, places.text_of(book["places"])))

    def find(self, query: str) -> tuple[list[dict[str, str]], list[str]]:
        """Find the section that shares most words with the query, each word weighted by its inverse document frequency,
        and the titles of the next best, without what they list in brackets.

        A word in a heading counts three times; a section without any of the words is never shown. A title finds its
        own. In a real catalog, types share words and have plurals of their own: a query for a mouse finds the section
        on mice, and a query for covers ranks covers before binder covers. Sections on a group of cases come after all
        others: they are opened by the titles that refer to them. An empty query finds all titles.
        """
        shown = self.shown
        if not query.strip():
            return [], sorted(short(title) for title, _ in shown)
        kinds = _kinds_in(query, self.catalog)
        documents = tuple([(_stems_of(title), _stems_of(text)) for title, text in shown])
        frequency = _frequency(documents)
        weights = {
            stem: round(math.log(1 + len(documents) / frequency[stem]), 6)
            for stem in dict.fromkeys(stems(" ".join([query, *(kind.plural for kind in kinds)])))
            if frequency[stem]
        }
        scores = [
            sum([weight * (3 * (stem in title) + (stem in text)) for stem, weight in weights.items()])
            for title, text in documents
        ]
        sections = self.book["sections"]
        rare = 3 * round(math.log(1 + len(documents)), 6)  # of a heading's word that no other section has
        for kind in kinds:
            for number, section in enumerate(sections):
                if section["department"] == kind.department and not section["group"]:
                    scores[number] += rare * len(kind.name.split())
        said = short(" ".join(query.split())).casefold()
        named = [short(title).casefold() == said for title, _ in shown]
        fitting = [number for number, score in enumerate(scores) if score or named[number]]
        groups = [section["group"] != "" for section in sections] + [False]
        best = [shown[n] for n in sorted(fitting, key=lambda n: (not named[n], groups[n], -scores[n], n))]
        found = [{"section": title, "text": text} for title, text in best[:1]]
        return found, [short(title) for title, _ in best[1 : 1 + TITLES]]

    def words_without(self, query: str) -> list[str]:
        """List the telling words of a query that no title has, in its order; titles have the products they list."""
        known = frozenset[str]().union(*(_stems_of(short(title)) for title, _ in self.shown))
        known |= {stem for kind in _kinds_in(query, self.catalog) for stem in stems(kind.name)}
        words = dict.fromkeys(_WORD.findall(query.lower()))
        return [word for word in words if (stem := _stem(word)) and stem not in known]


def _kinds_in(query: str, catalog: Catalog) -> list[ProductType]:
    """List the types that a query names, but for those whose name is within another's."""
    said = f" {' '.join(_WORD.findall(query.lower()))} "
    kinds = [kind for kind in catalog.types if f" {' '.join(_WORD.findall(kind.name.lower()))} " in said]
    return [
        kind for kind in kinds if not any(kind is not k and f" {kind.name} " in f" {k.name} " for k in kinds)
    ]


def short(title: str) -> str:
    """Write a title without what it lists in brackets."""
    return title.partition(" (")[0]


def stems(text: str) -> list[str]:
    """List the stems of a text's telling words, one for "returned" and "returns", "bookshelf" and "bookshelves"."""
    return [stem for word in _WORD.findall(text.lower()) if (stem := _stem(word))]


@lru_cache(maxsize=2_048)
def _stems_of(text: str) -> frozenset[str]:
    """Collect the stems of a title or a section, which every search of its book looks at."""
    return frozenset(stems(text))


@lru_cache(maxsize=64)
def _frequency(documents: tuple[tuple[frozenset[str], frozenset[str]], ...]) -> Counter[str]:
    """Count the sections of a book in which each stem occurs."""
    return Counter(stem for title, text in documents for stem in title | text)


@lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    if word in STOP_WORDS:
        return ""
    return _ENDING.sub("", word)[:STEM] if len(word) > 4 else word.removesuffix("s")
