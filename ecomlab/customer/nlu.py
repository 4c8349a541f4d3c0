"""Natural language understanding of the customer's messages, as by a careful reader: the inverse of `nlg`.

An act is recognised by the forms of its sentences, an item by the shop's names, its properties by how values are
written.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from ecomlab.catalog.lexicon import Lexicon, windows
from ecomlab.customer import noise
from ecomlab.customer.fillers import telling
from ecomlab.customer.paraphrases import straightened
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases, common_file
from ecomlab.other_words import SPELLED, is_number, read_number
from ecomlab.slots import LIMITS, SlotType

_NUMBER = re.compile(r"(?<![\w.$])(\d+)(?![\w.]*\w)")
_ITEM_BREAK = re.compile(
    rf"; |\n- ?|(?:,? and |, )(?=(?:an?|some|just one|(?:\d+|{SPELLED})(?: x)?) [A-Z0-9])"
)
"""Separators between the items of a request: semicolons, lines, or commas and "and" before a word that counts them."""
COURTESIES = frozenset(("thanks", "greet", "welcome", "no problem", "thanks for sympathy", "goodbye"))
"""Acts that say nothing beside anything else."""
_SPELLED_FIRST = re.compile(rf"(?:the |just )?({SPELLED})(?= )", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """A sentence or two that do one thing: the kind of act, "" where no form fits, and what its fields hold."""

    kind: str
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def item(self) -> str:
        """The words in which the customer speaks of an item, or all where no form fits."""
        if not self.kind:
            return self.text
        about = ("number", "item", "wanted", "type", "plural", "details")
        return " ".join(self.fields[name] for name in about if name in self.fields)


@dataclass
class Mention:
    """An item as a message mentions it: the effect of the act on it, and the slots that were said."""

    effect: str
    """set, add, drop, replace, or anew: nothing that was said before still holds."""
    type: str = ""
    slots: dict[str, Any] = field(default_factory=dict)


def is_complete(message: str) -> bool:
    """Tell whether the customer says that this is all."""
    if any(text in message for text in common_file().complete):
        return True
    return any(telling(sentence) in _complete() for sentence in SENTENCE_BREAK.split(message))


@cache
def _complete() -> frozenset[tuple[str, ...]]:
    """What tells in the sentences that say that this is all."""
    return frozenset(words for text in common_file().complete if (words := telling(text)))


def plain(message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False) -> str:
    """Undo the noise of a message: slang is written out, typos are corrected, and what is said in other words than the
    forms' is put into the form that says the same."""
    words = phrases.opening_words if opening else phrases.words
    return straightened(noise.plain(message, words, lexicon), phrases, opening)


def read_opening(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Mention]:
    """Read the items that a request asks for, in order."""
    message = plain(message, phrases, lexicon, opening=True)
    found = next((match for pattern in phrases.openings if (match := pattern.search(message))), None)
    items = found["items"].removeprefix("- ") if found else _without_end(message)
    read = (read_item(segment, lexicon, phrases, opening=True) for segment in _ITEM_BREAK.split(items))
    return [Mention("add", slots.pop("type"), slots) for slots in read if "type" in slots]


def _without_end(message: str) -> str:
    """Leave out sentences that say that this is all: "That covers everything." is about no Cover."""
    sentences = (part for part in SENTENCE_BREAK.split(message) if telling(part) not in _complete())
    return " ".join(sentences)


def read_acts(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Said]:
    """Read what a message does, act by act; what no form fits is read sentence by sentence."""
    text, at, found = plain(message, phrases, lexicon), 0, []
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        known = phrases.recognised(text, at)
        if known:
            kind, match = known
            found.append(Said(kind, match.group(), match.groupdict()))
            at = match.end()
        else:
            end = SENTENCE_BREAK.search(text, at)
            found.append(Said("", text[at : end.start() if end else len(text)]))
            at = end.end() if end else len(text)
    return found


def read_message(message: str, phrases: Phrases, lexicon: Lexicon) -> list[Mention]:
    """Read the changes that a later message makes, act by act."""
    return [
        mention
        for said in read_acts(message, phrases, lexicon)
        for mention in _mentioned(said, phrases, lexicon)
    ]


def says(kind: str, message: str, phrases: Phrases, lexicon: Lexicon | None = None) -> bool:
    """Tell whether a message holds a sentence of an act; with a lexicon, whatever noise did to it."""
    text = plain(message, phrases, lexicon) if lexicon else message
    starts = (0, *(end.end() for end in SENTENCE_BREAK.finditer(text)))
    return any(known[0] == kind for start in starts if (known := phrases.recognised(text, start)))


@dataclass(frozen=True)
class Understood:
    """What a careful reader takes from a message; two messages that are equal in it say the same."""

    slots: tuple[tuple[str, str], ...]
    """Slots with sentences of their own, and their values as text, sorted."""
    mentions: tuple[tuple[str, str, str], ...]
    """(effect, type, slots as text) of each item that is mentioned, in order."""
    kinds: frozenset[str]
    """Acts that forms tell, by their effect on the goal or else their kind; without those that only state slots."""
    complete: bool
    """It says that this is all."""

    def __str__(self) -> str:
        items = [f"{effect} {kind} {slots}" for effect, kind, slots in self.mentions]
        told = [f"{name} = {value}" for name, value in self.slots]
        return "; ".join([*sorted(self.kinds), *items, *told, *(["complete"] if self.complete else [])])


def understand(message: str, phrases: Phrases, lexicon: Lexicon, opening: bool = False) -> Understood:
    """Read everything that a message says, as reference players do."""
    said, rest = phrases.read(plain(message, phrases, lexicon, opening))
    if opening:
        mentions, kinds, complete = read_opening(rest, phrases, lexicon), set[str](), is_complete(message)
    else:
        mentions = read_message(rest, phrases, lexicon)
        acts = read_acts(rest, phrases, lexicon)
        kinds = {phrases.effects.get(act.kind, act.kind) for act in acts} - {"", "set"}
        if mentions or said or kinds - COURTESIES:
            kinds -= COURTESIES
        complete = says("nothing", message, phrases, lexicon)
    return Understood(
        tuple(sorted((name, repr(value)) for name, value in said)),
        tuple((one.effect, one.type, repr(sorted(one.slots.items()))) for one in mentions),
        frozenset(kinds),
        complete,
    )


def _mentioned(said: Said, phrases: Phrases, lexicon: Lexicon) -> Iterator[Mention]:
    effect = phrases.effects.get(said.kind, "" if said.kind else "set")
    if not effect:
        return
    slots = read_item(said.item, lexicon, phrases)
    if "type" in slots:
        yield Mention(effect, slots.pop("type"), slots)
    elif effect == "anew":
        yield Mention(effect)


@cache
def _pattern(limit: SlotType) -> re.Pattern[str]:
    """Pattern of a limit's values."""
    assert limit.format is not None
    return re.compile(rf"(?<!\w)(?:{limit.format.pattern})(?!\w)", re.IGNORECASE)


def read_item(
    text: str, lexicon: Lexicon, phrases: Phrases | None = None, opening: bool = False
) -> dict[str, Any]:
    """Read the slots of a noun phrase and what surrounds it; none when it names no product type. The words of the
    phrases, or of openings, are not taken for misspelt names."""
    plain = frozenset[str]()
    if phrases:
        plain = phrases.opening_words if opening else phrases.words
    limits = phrases.limits if phrases else LIMITS
    words = [(m.group(), m.span()) for m in lexicon.token.finditer(text)]
    kind = _name(words, lexicon, "type", plain, longest=3)
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
    if (
        lexicon.is_real
    ):  # an ordinary word that is a name here is no misspelling of another name, nor is one of a bound
        bounds = [match.span() for limit in limits for match in _pattern(limit).finditer(text)]
        rest = [word for word in rest if not _overlaps(word[1], bounds)]
        for wanted, names in lexicon.within(name).items():
            at = next((i for i, word in enumerate(rest) if _is_name(word[0], names)), None)
            if at is not None:
                word, span = rest.pop(at)
                slots[wanted] = names[word.lower()]
                taken.append(span)  # its digits are no quantity
    for wanted in ("brand", "feature"):
        hit = _name(rest, lexicon, wanted, plain, longest=1, of=name) if wanted not in slots else None
        if hit is not None:
            slots[wanted] = hit[0]
            rest = rest[: hit[1]] + rest[hit[2] :]
    for limit in limits:
        match = _pattern(limit).search(text)
        if match and limit.format and not _overlaps(match.span(), taken):
            slots[limit.name] = limit.format.read(match.group())
            taken.append(match.span())
    counts = [_SPELLED_FIRST.match(text), *_NUMBER.finditer(text)]
    number = next((match for match in counts if match and not _overlaps(match.span(1), taken)), None)
    if number:
        slots["quantity"] = read_number(number[1])
    return slots


def _is_name(word: str, names: Mapping[str, str]) -> bool:
    """Tell whether a word is one of these names; a number in words only where it is written as the name is."""
    name = names.get(word.lower())
    return name is not None and (name == word or not is_number(word.lower()))


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)


def _name(
    words: list[tuple[str, tuple[int, int]]],
    lexicon: Lexicon,
    kind: str,
    plain: Collection[str],
    longest: int,
    of: str = "",
) -> tuple[str, int, int] | None:
    """Find the name of that kind among the words: an exact one first, else the nearest misspelling.

    In a real catalog the names are those of products `of` a type.
    """
    texts = [word for word, _ in words]
    best: tuple[float, str, int, int] | None = None
    spans = [(start, end) for start, end in windows(texts, longest) if _in_a_row(words[start:end])]
    for start, end in spans:
        exact = None if of and lexicon.is_real else lexicon.exact(kind, " ".join(texts[start:end]))
        if exact is not None:
            return exact, start, end
    for start, end in spans:
        said = [word.lower() for word in texts[start:end]]
        if all(word in plain or word in lexicon.phrase_words or len(word) < 3 for word in said):
            continue
        words_said = " ".join(texts[start:end])
        near = lexicon.nearest(kind, words_said, of if lexicon.is_real else "")
        if near is not None and (best is None or near[1] > best[0]):
            best = (near[1], near[0], start, end)
    return None if best is None else best[1:]


def _in_a_row(words: list[tuple[str, tuple[int, int]]]) -> bool:
    """Tell whether single spaces separate the words: a name does not cross a full stop."""
    return all(before[1][1] + 1 == after[1][0] for before, after in pairwise(words))
