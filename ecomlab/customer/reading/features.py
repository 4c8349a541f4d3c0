"""What the model sees of a sentence: n-grams of its marked stems, and of the same words around one slot's."""

from collections.abc import Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from ecomlab.customer.reading.vocabulary import CLOSED, OPEN, Vocabulary
from ecomlab.customer.reading.words import THING, VALUE, Sentence, Token
from ecomlab.slots import slot_type

ASKED, NAMED, OTHER = "S", "V", "O"
"""Marks of a slot's own words: those that ask for it, and its values; and of words that ask for another slot."""
_WH = frozenset(("what", "which", "who", "whose", "when", "where", "how", "whi", "whom"))
AUXILIARY = frozenset(
    ("be", "do", "have", "will", "would", "shall", "should", "can", "could", "may", "might", "must")
)
_THINGS = ("PRODUCT", "ORDER", "LINE")
AROUND = 5
"""Words on either side of a value by which it is told whether it is wished for."""
THING_KINDS = 256
"""Numbers of things of one kind."""


class Seen(NamedTuple):
    """A sentence as the model sees it."""

    base: list[str]
    """Its stems; in the place of a name, value or amount its kind."""
    spots: dict[str, list[tuple[int, int, str]]]
    """By slot, where its words and values stand: (start, end, mark)."""
    lead: str
    mark: str
    around: list[str]
    """What stands around the sentence."""
    phrases: list[tuple[str, int, int]]
    """Words that ask for slots, and for values of slots: (slot, or slot and value, start, end)."""
    taken: frozenset[str]
    """Slots whose words here are another slot's own name."""


def seen(sentences: Sequence[Sentence], vocabulary: Vocabulary) -> list[Seen]:
    """Prepare the sentences of a message."""
    found: list[Seen] = []
    last = len(sentences) - 1
    for number, sentence in enumerate(sentences):
        stems = [token.stem for token in sentence.tokens]
        base = [_shape(token) for token in sentence.tokens]
        spots: dict[str, list[tuple[int, int, str]]] = {}
        for place, token in enumerate(sentence.tokens):
            for slot, _ in vocabulary.values(token):
                if slot:
                    spots.setdefault(slot, []).append((place, place + 1, NAMED))
        phrases, taken = vocabulary.found(stems)
        for slot, start, end in phrases:
            name, closed, _ = slot.partition(CLOSED)
            spots.setdefault(name, []).append((start, end, NAMED if closed else ASKED))
        around = [
            "first" if not number else "later",
            "last" if number == last else "more",
            *(["colon"] if sentence.colon else []),
            *(["listed"] if sentence.listed else []),
        ]
        if number:
            before = found[-1]
            around += [f"-{before.mark}", *(f"-{one}" for one in dict.fromkeys(before.base) if one.isupper())]
            around += [f"-{before.base[0]}"] if before.base else []
        if number < last:
            around.append(f"+{sentences[number + 1].mark}{sentences[number + 1].listed}")
        found.append(Seen(base, spots, _lead(base), sentence.mark, around, phrases, taken))
    return found


def _shape(token: Token) -> str:
    if token.stem == VALUE:
        slot = min(token.means, key=_rank)[0]
        kind = slot_type(slot).names
        return kind.upper() if kind else "PROP" if slot.startswith(("attr:", "option")) else "OWN"
    if token.stem == THING:
        return _THINGS[min(2, (int(token.means[0][1])) // THING_KINDS)]
    return "NUM" if token.stem[:1].isdigit() else token.stem


def _rank(meaning: tuple[str, str]) -> int:
    slot = meaning[0]
    return 0 if slot.startswith(("attr:", "option")) else 1 if slot_type(slot).names != "type" else 2


def _lead(base: Sequence[str]) -> str:
    """The word by which a question begins; "how" with the word after it."""
    for place, one in enumerate(base[:6]):
        if one in _WH:
            return f"how {base[place + 1]}" if one == "how" and place + 1 < len(base) else one
    return next((one for one in base[:2] if one in AUXILIARY), base[0] if base else "")


@cache
def clusters() -> dict[str, str]:
    """Read which stems mean about the same: a line of the file holds some (experiments/reader/clusters.py)."""
    lines = Path(__file__).with_name("clusters.txt").read_text("utf-8").splitlines()
    return {word: f"c{number}" for number, line in enumerate(lines) for word in line.split()}


def whole(one: Seen) -> list[str]:
    """List the features of a whole sentence."""
    base, lead, like = ["<", *one.base, f">{one.mark}"], one.lead, clusters()
    alike = [like.get(word, word) for word in one.base]
    found = _grams(base)
    found += alike
    found += [f"{lead}~{word}" for word in one.base]
    found += [f"{lead}~{word}" for word in alike]
    found += [f"{a}&{b}" for a, b in pairwise(alike)]
    found += [f"{one.mark}~{word}" for word in one.base]
    found += [f"{lead}~~{one.mark}", f"len{min(len(one.base), 13) // 2}"]
    found += [f"@{word}" for word in one.around]
    found += [f"@{word}~{one.mark}" for word in one.around[:2]]
    return list(dict.fromkeys(found))


def of_slot(one: Seen, slot: str, before: bool, previous: Seen | None) -> list[str]:
    """List the features of one slot in a sentence: of the words around those that ask for it and its values.
    `before`: the message has spoken of it already."""
    spots = one.spots.get(slot, ())
    tags = [""] * len(one.base)
    for other, places in one.spots.items():
        if other != slot and other != OPEN:
            for start, end, mark in places:
                if mark == ASKED and end - start < 3:
                    tags[start:end] = [OTHER] * (end - start)
    for start, end, mark in sorted(spots, key=lambda spot: spot[2] == NAMED):
        tags[start:end] = [mark] * (end - start)
    words: list[str] = []
    for base, tag in zip(one.base, tags):
        if not (tag and words and words[-1] == tag and tag != NAMED):
            words.append(tag or base)
    has = "".join(mark for mark in (ASKED, NAMED) if any(spot[2] == mark for spot in spots))
    words = ["<", *words, f">{one.mark}"]
    found = _grams(words)
    for place, word in enumerate(words):
        if word in (ASKED, NAMED):
            found += [f"{word}<{other}" for other in words[max(0, place - 5) : place]]
            found += [f"{word}>{other}" for other in words[place + 1 : place + 6]]
    found += [f"~{one.lead}", f"~{one.mark}", f"~{one.lead}~{one.mark}", f"len{min(len(one.base), 13) // 2}"]
    found += [f"@{word}" for word in one.around]
    if before:
        found.append("@before")
    if previous and slot in previous.spots:
        found += [f"@prev{mark}" for mark in {spot[2] for spot in previous.spots[slot]}]
    return [f"{has}:{word}" for word in dict.fromkeys(found)]


def of_mention(one: Seen, start: int, end: int) -> list[str]:
    """List the features of a value that stands from `start` to `end`: what it is, and the words on either side."""
    base = one.base
    before, after = base[max(0, start - AROUND) : start][::-1], base[end : end + AROUND]
    found = [
        f"={base[start]}",
        f"=<{' '.join(base[max(0, start - 2) : start])}",
        f"=>{' '.join(base[end : end + 2])}",
    ]
    for side, words in (("<", before), (">", after)):
        found += [f"{side}{word}" for word in words]
        found += [f"{place}{side}{word}" for place, word in enumerate(words)]
    return list(dict.fromkeys(found))


def _grams(words: Sequence[str]) -> list[str]:
    """List words, two and three in a row, and two with one or two between them."""
    pairs = [f"{a} {b}" for a, b in pairwise(words)]
    return list(
        chain(
            words,
            pairs,
            [f"{pair} {word}" for pair, word in zip(pairs, words[2:])],
            [f"{a} _ {b}" for a, b in zip(words, words[2:])],
            [f"{a} _ _ {b}" for a, b in zip(words, words[3:])],
        )
    )
