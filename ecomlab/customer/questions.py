"""Understanding of a message to the customer: which slots each of its sentences asks for, of which item, and whether it
asks for anything else.

Phrases are data (`questions.toml`) and match by stems. Nothing here knows what the customer wants: a `Reader` is made
from the slots that such a customer may have, the names of the items and the shop's vocabulary. The customer does not
use it yet (`dialogue.py` still hears words); `tests/customer/test_questions.py` measures it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import snowballstemmer

from ecomlab.data import Strict, read_toml
from ecomlab.values import MONTHS

FILE = Path(__file__).with_name("questions.toml")
_STEMMER = snowballstemmer.stemmer("english")
_IRREGULAR = {
    "made": "make", "making": "make", "bought": "buy", "paid": "pay", "sent": "send", "got": "get", "came": "come",
    "kept": "keep", "was": "be", "were": "be", "is": "be", "are": "be", "am": "be", "been": "be", "did": "do",
    "does": "do", "has": "have", "had": "have", "broke": "break", "broken": "break", "gave": "give", "wrote": "write",
    "saw": "see", "rang": "ring", "chose": "choose", "chosen": "choose", "kindly": "kindly", "colour": "color",
    "colours": "color", "favour": "favor", "favourite": "favorite", "grey": "gray", "u": "you", "ur": "your",
    "pls": "please", "plz": "please", "qty": "quantity", "max": "maximum", "min": "minimum", "abt": "about",
    "wanna": "want", "gonna": "go", "gotta": "must", "whats": "what", "whos": "who", "wheres": "where", "whens": "when",
    "hows": "how", "delivered": "deliver", "delivery": "deliver", "deliveries": "deliver", "arrival": "arrive",
}  # fmt: skip
_CONTRACTED = [
    (r"\b(what|who|where|when|how|that|there|it|he|she)'s\b", r"\1 is"), (r"n't\b", " not"), (r"'re\b", " are"),
    (r"'ve\b", " have"), (r"'ll\b", " will"), (r"'d\b", " would"), (r"'m\b", " am"), (r"\bd'you\b", "do you"),
    (r"'s\b", " s"), (r"\bcannot\b", "can not"),
    (r"\bso kind\b", "so"), (r",", " , "),
]  # fmt: skip


class _File(Strict):
    """Schema of the file of phrases."""

    asks: tuple[str, ...]
    open: tuple[str, ...]
    vague: tuple[str, ...]
    agree: tuple[str, ...]
    words: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    elsewhere: dict[str, tuple[str, ...]]


@cache
def phrases() -> _File:
    """Read the phrases of questions."""
    return read_toml(FILE, _File)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Reduce a word in lower case to its stem; irregular and abbreviated forms to the plain one's."""
    known = _IRREGULAR.get(word, word)
    return known if known == word and word in _IRREGULAR else str(_STEMMER.stemWord(known))


_INTERJECTIONS = "|".join(
    stem(word)
    for word in (
        "hi hello hey ok okay so and but or great thanks oh ah well alright right also then now hm just cool lovely "
        "sorry plus yes no ,"
    ).split()
)


@cache
def _pattern(phrase: str) -> str:
    """Compile a phrase to a pattern over words' stems, each followed by a space."""
    made = ""
    for word in phrase.split():
        if word == "^":
            made += rf"(?:(?<![^\n])(?:(?:{_INTERJECTIONS}) ){{0,3}})"
            continue
        if word == "$":
            made += r"(?![^\n])"
            continue
        if word == "..":
            made += r"(?:\S+ ){0,3}"
            continue
        forms = [rf"{w.lower()}\w*" if w.isupper() else re.escape(stem(w)) for w in word.split("|")]
        made += f"(?:{'|'.join(dict.fromkeys(forms))}) "
    return made


@cache
def _matcher(words: tuple[str, ...]) -> re.Pattern[str]:
    """Compile phrases to one pattern that finds the longest of them at each place."""
    longest_first = sorted(map(_pattern, words), key=lambda pattern: (-len(pattern), pattern))
    return re.compile(rf"(?<!\S)(?:{'|'.join(longest_first)})")


_CHECKS = re.compile(r"(?<!\S)be (?:this|that|it) (?:accur|correct|right|true|so) ")
"""A question whether the sentence before is right."""
_STATED = frozenset(map(stem, "i we be have will do you has get thank thanks noted".split()))
"""Words of a sentence that is not only a list of names."""
_ANAPHOR = re.compile(r"(?<!\S)(?:one|it|that|those|them|these|your|which|yours|what) ")
RANKED = ("price", "rating", "days")
"""Slots that a customer may rank by importance."""
_SENTENCE = re.compile(r"(?<=[.!?])[\s]+|(?<=[?!])|\n+|;\s|:\s|\s-\s|\s\(\d\)\s")
_WORD = re.compile(r"[a-z0-9:_'-]+|[?,]")


_MARKED = [
    (r"\$\s?\d[\d,.]*\d|\$\d|\b\d[\d,.]*\s?(?:dollars|bucks|usd)\b|\$", " money "),
    (r"\b\d(?:\.\d)?\s?\+?\s?(?:stars?)\b|\b[1-5]\.\d\b", " stars "),
    (r"\b\d+ days?\b", " days "),
    (r"(?:^|(?<=[.!?,] ))(?:oh,? )?(?:wait|please wait|hang on|hold on)\b,?", " "),
    (rf"\b(?:{'|'.join(MONTHS).lower()}) \d+(?:st|nd|rd|th)?\b", " date "),
    (r"(?<![\w.])\d+(?![\w.]*\w)", " number "),
]
"""Patterns of values, each with the mark that is put in its place."""


@lru_cache(maxsize=4_096)
def _any_of(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern of any of these texts, the longest first."""
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile(rf"(?<![\w$])(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def _marked(text: str, marks: Mapping[str, str]) -> str:
    """Put each known text's mark in its place."""
    return _any_of(tuple(marks)).sub(lambda match: marks[match.group()], text) if marks else text


@dataclass(frozen=True)
class Part:
    """One sentence of a message: its stems, each followed by a space, and whether it ends in a question mark."""

    stems: str
    marked: bool


def parts(text: str) -> list[Part]:
    """Split a message, whose names and values have been marked, into sentences of stems."""
    found = []
    for sentence in _SENTENCE.split(text.strip()):
        plain = sentence.lower().replace("’", "'")
        for pattern, instead in _CONTRACTED:
            plain = re.sub(pattern, instead, plain)
        plain = re.sub(r"(?<=[a-z])[-/](?=[a-z])", " ", plain)
        words = [stem(word.strip("'-")) for word in _WORD.findall(plain) if word != "?" and word.strip("'-")]
        if words:
            found.append(Part("".join(f"{word} " for word in words), "?" in sentence))
    return found


@dataclass(frozen=True)
class Question:
    slot: str
    item: int = -1
    values: tuple[str, ...] = ()
    scope: bool = False


@dataclass(frozen=True)
class Reading:
    questions: tuple[Question, ...] = ()
    open: bool = False
    open_item: int = -1
    asks: bool = False
    unclear: tuple[str, ...] = ()
    done: bool = False
    agree: bool = False
    unavailable: tuple[int, ...] = ()
    which: bool = False


@dataclass(frozen=True)
class Asked:
    """What a message asks for: (slot, item) in the order of asking, where item -1 is any; anything else; and whether it
    asks at all."""

    slots: tuple[tuple[str, int], ...]
    open: bool
    asks: bool


class Reader:
    """Reads messages to a customer who may have these `slots`; `items` are the names that items are called by, `values`
    the words of values by slot, and `called` other names of slots, such as an option's ("size")."""

    def __init__(
        self,
        slots: Iterable[str],
        items: Sequence[Sequence[str]],
        values: Mapping[str, Iterable[str]],
        called: Mapping[str, Iterable[str]],
    ) -> None:
        file = phrases()
        self.slots = list(dict.fromkeys(slots))
        self.items = {name.lower(): f"item{number}" for number, names in enumerate(items) for name in names}
        self.values = {
            str(value).lower(): f"v{self.slots.index(slot)}"
            for slot, some in values.items()
            for value in some
        }
        self._words: dict[str, tuple[re.Pattern[str], ...]] = {}
        for number, slot in enumerate(self.slots):
            general = file.words.get(slot, ())
            if slot.startswith("attr:"):
                general = file.attributes.get(slot.removeprefix("attr:"), ())
            own = (*called.get(slot, ()), f"v{number}")
            self._words[slot] = tuple(_matcher(tuple(words)) for words in (general, own) if words)

    def read(self, text: str) -> Reading:
        asked = self.read_old(text)
        low = text.lower()
        agree = any(self._says("agree", part.stems) for part in parts(self.mark(text))) and not asked.slots
        unclear = (text[:60],) if asked.asks and not asked.slots and not asked.open and not agree else ()
        gone = (
            (-1,)
            if re.search(r"sold out|out of stock|unavailable|not available|only \d+ .*left", low)
            else ()
        )
        return Reading(
            tuple(Question(slot, item) for slot, item in asked.slots),
            asked.open,
            -1,
            asked.asks or agree,
            unclear,
            bool(re.search(r"\b(?:done|finished|completed|all set|added|in your cart|started)\b", low)),
            agree,
            gone,
            "which" in low,
        )

    def read_old(self, text: str) -> Asked:
        """Understand a message."""
        found: list[tuple[str, int]] = []
        is_open = vague = asks = False
        waiting: list[tuple[str, int]] = []
        for part in parts(self.mark(text)):
            if _matcher(phrases().elsewhere["words"]).search(part.stems):
                asks = asks or part.marked
                continue
            named, spans = self._named(part.stems)
            if not self._asking(part):
                waiting = named or waiting
                continue
            general = any(
                not any(m.start() < end and start < m.end() for start, end in spans)
                for m in _matcher(phrases().open).finditer(part.stems)
            )
            asks = True
            if not named and not general:
                if self._says("agree", part.stems):
                    found += [one for one in waiting if _CHECKS.search(part.stems) and one not in found]
                    continue
                if waiting and _ANAPHOR.search(part.stems):
                    named = waiting
                else:
                    vague = vague or self._says("vague", part.stems)
            found += [one for one in named if one not in found]
            is_open = is_open or general
        return Asked(tuple(found), is_open or (vague and not found), asks)

    def mark(self, text: str) -> str:
        """Put marks in the place of items' names and of values, known ones first."""
        plain = text.lower().replace("’", "'")
        plain = _marked(_marked(plain, self.items), self.values)
        for pattern, instead in _MARKED:
            plain = re.sub(pattern, instead, plain)
        return plain

    def _named(self, stems: str) -> tuple[list[tuple[str, int]], list[tuple[int, int]]]:
        spans = []
        for rank, slot in enumerate(self.slots):
            found = (match for pattern in self._words[slot] for match in pattern.finditer(stems))
            spans += [
                (match.start(), match.end(), rank, slot) for match in found if match.end() > match.start()
            ]
        chosen: list[tuple[int, int, int, str]] = []
        for span in sorted(spans, key=lambda s: (-stems[s[0] : s[1]].count(" "), s[0], s[2])):
            if all(span[1] <= other[0] or other[1] <= span[0] for other in chosen):
                chosen.append(span)
        items = [(m.start(), int(m[1])) for m in re.finditer(r"(?<!\S)item(\d+)", stems)]
        only = {number for _, number in items}
        item = only.pop() if len(only) == 1 else -1
        ordered = sorted(chosen)
        ranks = [start for start, _, _, slot in ordered if slot == "importance"]
        if ranks:  # what is compared with what is part of the question for importance
            compared = " than " in stems or "outrank" in stems
            ordered = [one for one in ordered if one[3] not in RANKED or (one[0] < ranks[0] and not compared)]
        return list(dict.fromkeys((slot, item) for *_, slot in ordered)), [one[:2] for one in ordered]

    def _asking(self, part: Part) -> bool:
        words = part.stems.split()
        terse = len(words) <= 4 or (len(words) <= 8 and not _STATED & set(words))
        return part.marked or terse or self._says("asks", part.stems)

    def _says(self, table: str, stems: str) -> bool:
        return bool(_matcher(getattr(phrases(), table)).search(stems))
