"""Classes of words by which clauses are told apart: who speaks, what asks, what thanks.

The words are data: `word_classes.toml`.
"""

from collections.abc import Collection
from pathlib import Path

from ecomlab.customer.words import stem
from ecomlab.settings import Strict, read_toml


class _Words(Strict):
    """Schema of the file of word classes."""

    question: tuple[str, ...]
    auxiliary: tuple[str, ...]
    preposition: tuple[str, ...]
    speaker: tuple[str, ...]
    pronoun: tuple[str, ...]
    pointer: tuple[str, ...]
    relative: tuple[str, ...]
    link: tuple[str, ...]
    greeting: tuple[str, ...]
    interjection: tuple[str, ...]
    framing: tuple[str, ...]
    framed: tuple[str, ...]
    thanks: tuple[str, ...]
    waiting: tuple[str, ...]
    tag: tuple[str, ...]
    mild: tuple[str, ...]
    holding: tuple[str, ...]
    reason: tuple[str, ...]
    circumstance: tuple[str, ...]
    aim: tuple[str, ...]
    aimless: tuple[str, ...]
    topic: tuple[str, ...]
    order: tuple[str, ...]
    know: tuple[str, ...]
    look: tuple[str, ...]
    about: tuple[str, ...]
    light: tuple[str, ...]
    want: tuple[str, ...]
    unwanted: tuple[str, ...]
    wish: tuple[str, ...]
    serve: tuple[str, ...]
    yours: tuple[str, ...]
    bidden: tuple[str, ...]
    helpful: tuple[str, ...]
    heard: tuple[str, ...]
    lacking: tuple[str, ...]
    more: tuple[str, ...]
    taken: tuple[str, ...]
    whatever: tuple[str, ...]
    finite: tuple[str, ...]
    untold: tuple[str, ...]
    aiming: tuple[str, ...]
    telling: tuple[str, ...]
    polite: tuple[str, ...]
    informed: tuple[str, ...]
    counted: tuple[str, ...]
    recall: tuple[str, ...]
    busy: tuple[str, ...]
    given: tuple[str, ...]
    doubled: tuple[str, ...]
    working: tuple[str, ...]
    almost: tuple[str, ...]
    recap: tuple[str, ...]
    told: tuple[str, ...]
    handled: tuple[str, ...]
    eager: tuple[str, ...]
    extra: tuple[str, ...]
    pointed: tuple[str, ...]


OF = {
    name: frozenset(map(stem, words))
    for name, words in read_toml(Path(__file__).with_name("word_classes.toml"), _Words).model_dump().items()
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
