"""The inverse of the grammar: slots out of a customer's message, as a careful reader would take them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ecomlab.catalog.lexicon import Lexicon, windows
from ecomlab.customer.nlg import filler

_ITEM_BREAK = re.compile(r"; |, plus | and also |\n- ?")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n(?!- )")
_COMPLETE = re.compile(
    r"\b(?:that's all|that's everything|that is all|nothing else|nothing more)\b", re.IGNORECASE
)
_PRICE = re.compile(r"\$(\d+)(?:\.(\d\d))?")
_RATING = re.compile(r"(\d)\.(\d) stars")
_DAYS = re.compile(r"\b(\d+) days?\b")
_NUMBER = re.compile(r"(?<![\w.$])(\d+)(?![\w.]*\w)")
_ONLY_LEFT = re.compile(r"\bonly \d+ .* left")
_SKIP = re.compile(r"(?<![\w-])skip(?![\w-])")  # "Non-Skip" is a misspelt feature
_FILLER = filler()
_TOKEN = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass
class Mention:
    """One wanted thing as a message tells it: what to do with it and the slots that were said."""

    what: str
    """set, add, drop or replace"""
    type: str
    slots: dict[str, Any] = field(default_factory=dict)


def is_complete(message: str) -> bool:
    """Whether the customer says that this is all they have to say."""
    return _COMPLETE.search(message) is not None


def read_opening(message: str, lexicon: Lexicon) -> list[Mention]:
    """The things a request asks for, in order."""
    found = (read_item(segment, lexicon) for segment in _ITEM_BREAK.split(message))
    return [Mention("add", slots.pop("type"), slots) for slots in found if "type" in slots]


def read_message(message: str, lexicon: Lexicon) -> list[Mention]:
    """What a later message changes, sentence by sentence; talk that changes nothing gives nothing."""
    return [
        mention for sentence in _SENTENCE_BREAK.split(message) for mention in _sentence(sentence, lexicon)
    ]


def _sentence(sentence: str, lexicon: Lexicon) -> Iterator[Mention]:
    lowered = sentence.lower()
    if "sold out" in lowered or "did not ask" in lowered or _ONLY_LEFT.search(lowered):
        return
    if "but i need" in lowered:
        sentence = sentence[lowered.index("but i need") + len("but i need") :]
    slots = read_item(sentence, lexicon)
    if "type" not in slots:
        return
    if _SKIP.search(lowered):
        what = "drop"
    elif "instead" in lowered:
        what = "replace"
    elif "also add" in lowered:
        what = "add"
    else:
        what = "set"
    yield Mention(what, slots.pop("type"), slots)


def read_item(text: str, lexicon: Lexicon) -> dict[str, Any]:
    """Slots by name from one noun phrase and what surrounds it; empty when it names no product type."""
    words = [(m.group(), m.span()) for m in _TOKEN.finditer(text)]
    kind = _name(words, lexicon, "type", longest=3)
    if kind is None:
        return {}
    name, start, end = kind
    slots: dict[str, Any] = {"type": name}
    taken = [(words[start][1][0], words[end - 1][1][1])]
    rest = words[:start] + words[end:]
    for slot, value, span in lexicon.values(name, text):
        if not _overlaps(span, taken):
            slots[slot] = value
            taken.append(span)
    rest = [word for word in rest if not _overlaps(word[1], taken[1:])]
    for wanted in ("brand", "feature"):
        hit = _name(rest, lexicon, wanted, longest=1)
        if hit is not None:
            slots[wanted] = hit[0]
            rest = rest[: hit[1]] + rest[hit[2] :]
    for pattern, slot in ((_PRICE, "price"), (_RATING, "rating"), (_DAYS, "days")):
        match = pattern.search(text)
        if match and not _overlaps(match.span(), taken):
            slots[slot] = (
                int(match.group(1) + (match.group(2) or "00")) if slot == "price" else _digits(match)
            )
            taken.append(match.span())
    for match in _NUMBER.finditer(text):
        if not _overlaps(match.span(), taken):
            slots["quantity"] = int(match.group(1))
            break
    return slots


def _digits(match: re.Match[str]) -> int:
    return int("".join(match.groups()))


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)


def _name(
    words: list[tuple[str, tuple[int, int]]], lexicon: Lexicon, kind: str, longest: int
) -> tuple[str, int, int] | None:
    """The name of that kind among the words: an exact one first, else the nearest misspelling."""
    texts = [word for word, _ in words]
    best: tuple[float, str, int, int] | None = None
    spans = [(start, end) for start, end in windows(texts, longest) if _in_a_row(words[start:end])]
    for start, end in spans:
        exact = lexicon.exact(kind, " ".join(texts[start:end]))
        if exact is not None:
            return exact, start, end
    plain = _FILLER | lexicon.phrase_words
    for start, end in spans:
        if all(word.lower() in plain or len(word) < 3 for word in texts[start:end]):
            continue
        near = lexicon.nearest(kind, " ".join(texts[start:end]))
        if near is not None and (best is None or near[1] > best[0]):
            best = (near[1], near[0], start, end)
    return None if best is None else best[1:]


def _in_a_row(words: list[tuple[str, tuple[int, int]]]) -> bool:
    """Whether only one space lies between each word and the next: a name does not cross a full stop."""
    return all(before[1][1] + 1 == after[1][0] for before, after in pairwise(words))
