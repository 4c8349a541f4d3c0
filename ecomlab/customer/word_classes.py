"""Classes of words by which clauses are told apart: who speaks, what asks, what thanks.

The words are data: `word_classes.toml`.
"""

from collections.abc import Collection
from pathlib import Path

from ecomlab.customer.words import stem
from ecomlab.settings import Strict, read_toml


class _File(Strict):
    """Schema of the file of word classes."""

    classes: dict[str, tuple[str, ...]]


OF = {
    name: frozenset(map(stem, words))
    for name, words in read_toml(Path(__file__).with_name("word_classes.toml"), _File).classes.items()
}
WH, AUXILIARY, SPEAKER, TAGS, PRONOUN = (
    OF[name] for name in ("question", "auxiliary", "speaker", "tag", "pronoun")
)
KNOW = OF["know"]
_JOINING = ("question", "auxiliary", "preposition", "pronoun", "pointer", "relative", "link", "reason")
FUNCTION = frozenset({"one", "each"}).union(*(OF[name] for name in _JOINING))
"""Stems of words that only join others."""
REPEATED = frozenset().union(*(OF[name] for name in ("greeting", "thanks", "waiting", "doubled")))
"""Stems of words that people say twice: "okay okay", "very very"."""


def class_words() -> frozenset[str]:
    """Stems of the words of all classes."""
    return frozenset().union(*OF.values())


def any_of(words: Collection[str], *names: str) -> bool:
    """Tell whether a word of one of these classes is among the words."""
    return any(not OF[name].isdisjoint(words) for name in names)
