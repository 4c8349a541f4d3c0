"""Natural language understanding of the customer's messages, as by a careful reader: the inverse of `nlg`.

An act is recognised by the cues of its forms, an item by the shop's names, its properties by how values are written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from ecomlab.catalog.lexicon import Lexicon, windows
from ecomlab.customer.noise import SLANG
from ecomlab.customer.templates import BOUNDS, Phrases, common_file

_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n(?!- )")
_BOUNDS = [
    (slot, bound.read, re.compile(rf"(?<!\w)(?:{bound.pattern})(?!\w)")) for slot, bound in BOUNDS.items()
]
_NUMBER = re.compile(r"(?<![\w.$])(\d+)(?![\w.]*\w)")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass
class Mention:
    """An item as a message mentions it: the effect of the act on it, and the slots that were said."""

    effect: str
    """set, add, drop, replace, or anew: nothing that was said before still holds."""
    type: str = ""
    slots: dict[str, Any] = field(default_factory=dict)


def is_complete(message: str) -> bool:
    """Tell whether the customer says that this is all."""
    return any(text in message for text in common_file().complete)


def read_opening(message: str, lexicon: Lexicon) -> list[Mention]:
    """Read the items that a request asks for, in order."""
    found = (read_item(segment, lexicon) for segment in _item_break().split(message))
    return [Mention("add", slots.pop("type"), slots) for slots in found if "type" in slots]


def read_message(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Mention]:
    """Read the changes that a later message makes, sentence by sentence."""
    return [
        mention
        for sentence in _SENTENCE_BREAK.split(message)
        for mention in _sentence(sentence, phrases, lexicon)
    ]


def _sentence(sentence: str, phrases: Phrases, lexicon: Lexicon) -> Iterator[Mention]:
    effect = "set"
    for effect_, pattern in phrases.effects:
        match = pattern.match(sentence)
        if match:
            effect = effect_
            sentence = match.groupdict().get("wanted") or sentence
            break
    if effect == "none":
        return
    slots = read_item(sentence, lexicon)
    if "type" in slots:
        yield Mention(effect, slots.pop("type"), slots)
    elif effect == "anew":
        yield Mention(effect)


def read_item(text: str, lexicon: Lexicon) -> dict[str, Any]:
    """Read the slots of a noun phrase and what surrounds it; none when it names no product type."""
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
    for slot, read, pattern in _BOUNDS:
        match = pattern.search(text)
        if match and not _overlaps(match.span(), taken):
            slots[slot] = read(match.group())
            taken.append(match.span())
    for match in _NUMBER.finditer(text):
        if not _overlaps(match.span(), taken):
            slots["quantity"] = int(match.group(1))
            break
    return slots


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)


def _name(
    words: list[tuple[str, tuple[int, int]]], lexicon: Lexicon, kind: str, longest: int
) -> tuple[str, int, int] | None:
    """Find the name of that kind among the words: an exact one first, else the nearest misspelling."""
    texts = [word for word, _ in words]
    best: tuple[float, str, int, int] | None = None
    spans = [(start, end) for start, end in windows(texts, longest) if _in_a_row(words[start:end])]
    for start, end in spans:
        exact = lexicon.exact(kind, " ".join(texts[start:end]))
        if exact is not None:
            return exact, start, end
    plain = _filler() | lexicon.phrase_words
    for start, end in spans:
        if all(word.lower() in plain or len(word) < 3 for word in texts[start:end]):
            continue
        near = lexicon.nearest(kind, " ".join(texts[start:end]))
        if near is not None and (best is None or near[1] > best[0]):
            best = (near[1], near[0], start, end)
    return None if best is None else best[1:]


def _in_a_row(words: list[tuple[str, tuple[int, int]]]) -> bool:
    """Tell whether single spaces separate the words: a name does not cross a full stop."""
    return all(before[1][1] + 1 == after[1][0] for before, after in pairwise(words))


@cache
def _item_break() -> re.Pattern[str]:
    """Compile the separators between the items of a request."""
    joins = dict.fromkeys(text for join in common_file().joins for text in join)
    return re.compile("|".join(map(re.escape, joins)) + r"|\n- ?")


@cache
def _filler() -> frozenset[str]:
    """Collect the words of the common phrases in lower case, which nobody takes for names."""
    common = common_file()
    forms = [
        form
        for table in (common.acts, common.answers, common.before, common.bounds)
        for some in table.values()
        for form in some
    ]
    texts = [
        *common.greetings,
        *common.leads["default"],
        *common.lists,
        *common.complete,
        *common.closings,
        *forms,
    ]
    texts += [text for join in common.joins for text in join]
    texts.append("by kind stars day days")
    return frozenset(re.findall(r"[a-z][a-z'-]*", " ".join(texts).lower())) | frozenset(SLANG.values())
