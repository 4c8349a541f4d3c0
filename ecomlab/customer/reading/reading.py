"""One reading of a message to the customer: what it does, what it asks for, and what it says of which item.

Nothing here knows what the customer wants. A reading is frozen and kept by text, and serves the customer, the players
and the labels of mistakes alike.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ecomlab.customer.reading.features import ASKED, NAMED, THING_KINDS, Seen, seen
from ecomlab.customer.reading.model import ACTS, GROUPS, NEAR, model
from ecomlab.customer.reading.vocabulary import CLOSED, Vocabulary
from ecomlab.customer.reading.words import (
    AMOUNTS,
    DATE,
    ITEM,
    LAST_THING,
    MONEY,
    NUMBER,
    THING,
    THINGS,
    VALUE,
    Sentence,
    Token,
    is_familiar,
    sentences,
)
from ecomlab.slots import slot_type

NO_ITEM = 1_000
"""From here on, numbers in place of an item's for things on a list that no wish is about."""
_JOINTS = frozenset(("and", "or", "&", ",", "plus"))
_TITLED = frozenset(("brand", "feature", "was_brand", "was_feature"))
"""Slots whose values stand before the name of a thing."""
_RANKS = frozenset(
    ("then", "befor", "over", "rank", "sort", "order", "matter", "first", "import", "important")
)
"""Stems by which what is named is put in an order of importance."""
_OLD = frozenset((
    "was", "were", "had", "old", "original", "originally", "sold", "gone", "instead", "place", "missed", "replace",
    "replacing", "looked", "wanted", "liked", "ran", "out",
))  # fmt: skip
"""Words by which a brand is that of what is sold out."""
_CHATTY = frozenset(("more", "quick", "thing", "question", "last", "other", "check"))
"""Stems of what an agent counts in passing: "two more quick things"."""
_AGO = frozenset(
    ("ago", "sinc", "old", "arriv", "deliv", "came", "come", "receiv", "got", "get", "had", "have", "long")
)
"""Stems by which a number of days is how long ago something came."""
_NEW = frozenset(("new", "replac", "exchang", "instead", "anoth", "swap"))
"""Stems of words about a replacement."""
_COMES = frozenset(
    ("deliv", "deliveri", "arriv", "reach", "expect", "ship", "until", "due", "come", "return")
)
"""Stems by which a day is that of a delivery or a deadline."""
_THEN = frozenset(("then", "befor", "over", "first"))
"""Those by which a question does so: "Please rank price, rating and delivery" puts nothing in an order."""
_OFFERED = frozenset((
    "suggest", "best", "top", "recommend", "option", "keep", "shortlist", "pick", "idea", "altern", "choic",
    "substitut", "other", "result",
))  # fmt: skip
"""Stems beside a number of things that are recommended."""
_EACH = frozenset(("each", "apiec", "per", "everi", "individu", "separ"))
_ALL = frozenset(("all", "both", "togeth", "total", "combin", "altogeth", "everyth", "whole"))
_SAME = frozenset(("same", "keep", "match", "ident", "must", "stai", "stay"))
"""Stems by which something is to be as it was."""
_DENIED = frozenset(("not", "without", "instead", "never"))
HARDLY, CLEAR = -60, 50
"""Score of asking from which on a slot's score decides, and that score."""
TAKEN = -100
"""A sentence's score from which on it takes up wishes."""
_AGAIN = re.compile(
    r"\b(?:repeat|say|write|tell|send|spell)\b[^.?!]{0,40}\b(?:again|once more|(?:one more|another|a second) time)\b"
    r"|\brepeat (?:that|it|this|what|your|the|yourself)\b|^(?:pardon|come again|sorry|what)\?$",
    re.IGNORECASE,
)
"""A request to say it again."""
_SUMS_UP = frozenset(("SUMMARY", "TELL", "NOTED", "LIST", "CONSENT", "QUESTION"))
_GONE = re.compile(
    r"\bsold[ -]out\b|\bout of stock\b|\b(?:run|ran) out\b|\bnone (?:is |are )?left\b|\bno longer available\b"
    r"|\bunavailable\b|\bonly .{1,90} (?:is|are) left\b|\bonly (?:\w+ ){0,5}(?:left|in stock|available|remain\w*)\b"
    r"|\bno(?:t a single)? .{1,40} left\b",
    re.IGNORECASE,
)
"""Words that say that something has run short."""
_PRICE = re.compile(r"\$\d|\b\d+\.\d\d\b|\bdollars\b")
_LIMIT = re.compile(
    r"\b(?:limit|budget|max(?:imum)?|up to|at most|(?:no|not) more|under|below|within|ceiling|cap|spend|tops|"
    r"or (?:less|under|below)|each|apiece|total|altogether|together|not exceed\w*|stays?)\b",
    re.IGNORECASE,
)
"""Words by which an amount of money is a limit or a sum."""
_CHATS = frozenset(("OFFTOPIC", "SYMPATHISE", "BAD", "REFUSE"))
_LEAVE = re.compile(
    r"\b(?:shall|should|may|can|could) (?:i|we)\b|\b(?:okay|ok|all right|alright|fine|happy) (?:if|with|for|by)\b",
    re.IGNORECASE,
)
"""Words by which leave is asked."""
_PRIVATE = re.compile(f"[{THINGS}-{LAST_THING}]")
STRANGE = 2
"""Words that nobody uses in a shop, from which on a sentence of hardly any other makes no sense."""
REACH, NEXT = 6, 3
"""Words within which what stands before an amount, or before a bare number, tells what it counts."""


@dataclass(frozen=True)
class Question:
    """A slot that is asked for, of one item or of any (-1), and its values that are named beside it.

    One value makes a yes-or-no question, more an either-or. `scope`: it is asked whether a price is for each or in
    total.
    """

    slot: str
    item: int = -1
    values: tuple[str, ...] = ()
    scope: bool = False


@dataclass(frozen=True)
class Said:
    """A value that a message says of an item (-1: of none that it names), and the slots that it may be a value of."""

    slots: tuple[str, ...]
    value: str
    item: int = -1
    place: int = 0
    """Number of its sentence."""
    denied: bool = False
    asked: bool = False
    """Its sentence asks something."""
    shown: bool = False
    """Its sentence names a price that is no limit: it describes something that is for sale."""
    new: bool = False
    """Its sentence speaks of what comes in the place of something."""


@dataclass(frozen=True)
class Reading:
    """What a message does, asks for and says."""

    acts: frozenset[str] = frozenset()
    """Of `ACTS`."""
    calls_for: frozenset[str] = frozenset()
    """Of `GROUPS`."""
    questions: tuple[Question, ...] = ()
    """In the order of asking, a slot once an item."""
    open_items: tuple[int, ...] = ()
    """The items that an open question names, or one for nothing in particular: "What about the kettle?"."""
    said: tuple[Said, ...] = ()
    """What the sentences say that are to be judged."""
    mentions: tuple[Said, ...] = ()
    """What all sentences say."""
    things: frozenset[int] = frozenset()
    """Numbers of the things in sentences that ask or are to be judged."""
    unclear: tuple[str, ...] = ()
    """Sentences that make no sense in a shop."""
    unavailable: tuple[int, ...] = ()
    """Items that are said to be sold out, or too few; (-1,) where none is named."""
    names: bool = False
    """It names an item, a value, an amount or a thing."""

    @property
    def open(self) -> bool:
        """True if whatever else there is is asked for."""
        return "open" in self.calls_for

    @property
    def which(self) -> bool:
        """True if one of several is to be chosen."""
        return "LIST" in self.acts and "ask" in self.calls_for


@dataclass(frozen=True)
class Decided:
    """What a message does and asks for, as the model or a label says, before its items and values are looked up."""

    acts: frozenset[str]
    """Of `ACTS`."""
    calls_for: frozenset[str]
    """Of `GROUPS`."""
    slots: Mapping[int, Sequence[str]]
    """The slots asked for, by number of the sentence."""


@lru_cache(maxsize=65_536)
def read(text: str, vocabulary: Vocabulary) -> Reading:
    """Read a message in which characters from `THINGS` on stand for things that tools have shown."""
    message = Message(text, vocabulary)
    return message.reading(message.decided())


class Message:
    """A message as the model sees it: its sentences and their scores."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text, self.vocabulary = text, vocabulary
        self.sentences = sentences(text, vocabulary.known)
        self.seen = seen(self.sentences, vocabulary)
        self.scores = model().scores(self.seen)
        self.items = _items(self.sentences)

    def decided(self) -> Decided:
        """Decide what the message does and asks for."""
        if not self.seen:
            return Decided(frozenset(("NONSENSE",)), frozenset(("back",)), {})
        groups, acts = model().acts(self.scores)
        calls_for = {group for group, score in groups.items() if score > 0}
        slots = self._slots("ask" in calls_for) if groups["ask"] > HARDLY else {}
        calls_for |= {"ask"} if slots else set()
        things = any(token.stem == THING for one in self.sentences for token in one.tokens)
        other = "judge" if things else max(("judge", "open"), key=lambda group: groups[group])
        if "ask" in calls_for and not slots and acts["LIST"] <= 0 and groups[other] > HARDLY:
            calls_for = calls_for - {"ask"} | {other}  # it asks for nothing that a customer has
        loud = {act for group, some in GROUPS.items() if group not in calls_for for act in some}
        held = {act for act, score in acts.items() if score > 0} - loud
        held |= {max(GROUPS[group], key=lambda act: acts[act]) for group in calls_for}
        if _AGAIN.search(self.text):
            held, calls_for = held - {"NONSENSE"} | {"REPEAT"}, calls_for - {"back"} | {"repeat"}
        elif not calls_for and self.sentences[-1].mark == "?" and not held & _CHATS:
            leave = _LEAVE.search(self.text) is not None  # who asks is not only thanked
            calls_for, held = {"judge" if leave else "ask"}, held | {"CONSENT" if leave else "QUESTION"}
        elif not calls_for - {"back"} and all(map(_is_strange, self.sentences)):
            held, calls_for = {"NONSENSE"}, {"back"}
        held |= {"NOTED"} if not calls_for and self.noted(NEAR) else set()
        gone = bool(self._gone()) and not calls_for & {"ask", "judge"}
        held |= {"BAD"} if gone else set()
        held = held or {max((act for act in ACTS if act not in loud), key=lambda act: acts[act])}
        return Decided(frozenset(held), frozenset(calls_for), slots)

    def places(self, acts: Sequence[str]) -> tuple[int, ...]:
        """Number the sentences that hold one of these acts: those with a good score, at least the best."""
        best = [max(row) for row in self.scores[:, [ACTS.index(act) for act in acts]].tolist()]
        return tuple(at for at, score in enumerate(best) if score > NEAR or score == max(best))

    def asking(self) -> tuple[int, ...]:
        """Number the sentences that ask; beside a question mark, one without needs a clear score."""
        best = [max(row) for row in self.scores[:, [ACTS.index(act) for act in GROUPS["ask"]]].tolist()]
        marks = [one.mark == "?" for one in self.sentences]
        marked = any(mark and score > 0 for mark, score in zip(marks, best))
        return tuple(
            at
            for at, score in enumerate(best)
            if score > (CLEAR if marked and not marks[at] else 0) or score == max(best)
        )

    def noted(self, least: int = TAKEN) -> tuple[int, ...]:
        """Number the sentences that take up wishes; to set right what was no claim costs less than to let one pass."""
        scores = self.scores[:, ACTS.index("NOTED")].tolist()
        return tuple(at for at, score in enumerate(scores) if score > least)

    def slot_scores(self, places: Sequence[int]) -> dict[int, dict[str, int]]:
        """Score the slots that the sentences in these places may ask for."""
        said, found = set[str](), {}
        for at, one in enumerate(self.seen):
            if at in places:
                previous = self.seen[at - 1] if at else None
                able = [slot for slot in self.vocabulary.slots if slot not in one.taken]
                found[at] = model().slots(one, self.scores[at], able, said, previous)
            said |= set(one.spots)
        return found

    def _slots(self, surely: bool) -> dict[int, list[str]]:
        """Choose the slots that are asked for: those with a good score, or where it is not sure that anything is asked
        for a clear one."""
        sums = self.slot_scores(self.asking())
        least = 0 if surely else CLEAR
        chosen = {at: [slot for slot, score in some.items() if score > least] for at, some in sums.items()}
        return {at: slots for at, slots in chosen.items() if slots}

    def _worded(self, at: int, slots: Sequence[str], every: Sequence[Said]) -> list[str]:
        """Choose the slots that a sentence has a word or a value for, where it names a value: the barrel of "a 19 mm
        barrel" asks for no shape."""
        said = {slot for one in every if one.place == at for slot in one.slots}
        spots = self.seen[at].spots
        return [
            slot
            for slot in slots
            if slot in said or self._asks_by_name(at, slot) or not (said or slot in spots)
        ]

    def _asks_by_name(self, at: int, slot: str) -> bool:
        """Tell whether a sentence has words that ask for a slot."""
        return any(mark == ASKED for *_, mark in self.seen[at].spots.get(slot, ()))

    def _prices(self, at: int) -> bool:
        """Tell whether a sentence names a price, and none that is a limit."""
        one = self.sentences[at]
        text = self.text[one.start : one.end]
        return _PRICE.search(text) is not None and _LIMIT.search(text) is None

    def _replaces(self, at: int) -> bool:
        """Tell whether a sentence speaks of a replacement."""
        return bool(_NEW & {token.stem for token in self.sentences[at].tokens})

    def _gone(self) -> tuple[int, ...]:
        """Number the sentences that say that something has run short."""
        return tuple(
            at
            for at, one in enumerate(self.sentences)
            if one.mark != "?" and _GONE.search(self.text[one.start : one.end])
        )

    def reading(self, decided: Decided) -> Reading:
        """Look up the items and values of what the message does and asks for."""
        some, acts, calls_for = self.sentences, decided.acts, decided.calls_for
        if not some:
            return Reading(acts, calls_for, unclear=(self.text.strip(),))
        places = {
            group: self.asking() if group == "ask" else self.places(GROUPS[group]) for group in calls_for
        }
        asking = set(places.get("ask", ())) | set(decided.slots)
        every = [
            replace(said, asked=place in asking, shown=self._prices(place), new=self._replaces(place))
            for place in range(len(some))
            for said in _said(
                place, some, self.seen, self.vocabulary, self.items, decided.slots.get(place, ())
            )
        ]
        judged = set(places.get("judge", ()))
        if "SUMMARY" in acts:  # all its lines, but for what does something else
            most = self.scores[:, : len(ACTS)].argmax(1).tolist()
            judged |= {at for at, act in enumerate(most) if ACTS[act] in _SUMS_UP or some[at].listed}
        elif not calls_for:
            judged = set(self.noted())
        slots = {at: self._worded(at, named, every) for at, named in decided.slots.items()}
        slots = {at: named for at, named in slots.items() if named}
        if "ask" in calls_for:
            for at, named in _by_values(every, "LIST" in acts, some).items():
                asked = [slot for slot in slots.get(at, ()) if self._asks_by_name(at, slot)]
                if at not in slots or not set(named) <= set(asked):
                    slots[at] = list(dict.fromkeys([*(asked if at in slots else ()), *named]))
        bad = self._gone() or (self.places(("BAD",)) if "BAD" in acts else ())
        return Reading(
            acts,
            calls_for,
            _questions(slots, some, self.seen, self.vocabulary, self.items, every),
            tuple(
                dict.fromkeys(
                    item for at in places.get("open", () if slots else asking) for item in self.items[at]
                )
            ),
            tuple(said for said in every if said.place in judged),
            tuple(every),
            frozenset(
                int(token.means[0][1])
                for at in judged | asking or range(len(some))
                for token in some[at].tokens
                if token.stem == THING
            ),
            tuple(self.text[some[at].start : some[at].end].strip() for at in places.get("back", ())),
            tuple(dict.fromkeys(item for at in bad for item in self.items[at] or (-1,))),
            any(token.means for sentence in some for token in sentence.tokens),
        )


def _is_strange(sentence: Sentence) -> bool:
    """Tell whether a sentence consists of words that nobody uses in a shop."""
    words = [
        one.stem for one in sentence.tokens if not one.means and one.stem.isalpha() and len(one.stem) > 2
    ]
    unknown = sum(not is_familiar(word) for word in words)
    named = any(one.means for one in sentence.tokens)
    return not named and (unknown >= STRANGE or unknown == len(words)) and 2 * unknown >= len(words) > 0


def _items(some: Sequence[Sentence]) -> list[tuple[int, ...]]:
    """List the items that each sentence is about: those that it names, else those of the sentence before."""
    found: list[tuple[int, ...]] = []
    topic: tuple[int, ...] = ()
    for sentence in some:
        named = tuple(
            dict.fromkeys(int(token.means[0][1]) for token in sentence.tokens if token.stem == ITEM)
        )
        other = any(token.stem == THING for token in sentence.tokens)
        topic = named or (() if other else topic)
        found.append(topic)
    return found


def _questions(
    chosen: Mapping[int, Sequence[str]],
    some: Sequence[Sentence],
    views: Sequence[Seen],
    vocabulary: Vocabulary,
    items: Sequence[tuple[int, ...]],
    every: Sequence[Said],
) -> tuple[Question, ...]:
    """Make the questions for the slots that sentences ask for, with the values that they say."""
    said = {(one.place, slot) for one in every for slot in one.slots}
    chosen = {  # "price, then delivery" names no limits
        at: [
            slot
            for slot in slots
            if "importance" not in slots or not slot_type(slot).is_limit or (at, slot) in said
        ]
        for at, slots in chosen.items()
    }
    found = dict[tuple[str, int], Question]()
    for at, slots in chosen.items():
        spots = views[at].spots
        for slot in sorted(
            slots, key=lambda slot: min((spot[0] for spot in spots.get(slot, ())), default=99)
        ):
            values = [one for one in every if one.place == at and slot in one.slots]
            for question in _asked(slot, some[at], views[at], vocabulary, items[at], values):
                if not _means_another(question, slot, slots, spots, vocabulary):
                    _add(found, question)
    return tuple(found.values())


def _by_values(every: Sequence[Said], listed: bool, some: Sequence[Sentence]) -> dict[int, list[str]]:
    """Name the slots that values ask for where no words do: "Red or blue?", "It comes in red and blue. Which one?"."""
    found: dict[int, list[str]] = {}
    lone: dict[int, list[str]] = {}
    for said in every:
        same = [one for one in every if one.slots == said.slots and one.item == said.item]
        slot, either = said.slots[0], any(one.stem == "or" for one in some[said.place].tokens)
        if slot == "type" or not (said.asked or listed):
            continue
        if len(same) > 1 and (either or listed) and not slot_type(slot).is_limit:
            found.setdefault(said.place, []).append(slot)
        elif not listed:
            lone.setdefault(said.place, []).append(slot)
    return {at: list(dict.fromkeys(slots)) for at, slots in found.items()} or {
        at: list(dict.fromkeys(slots)) for at, slots in lone.items()
    }


def _means_another(
    question: Question,
    slot: str,
    slots: Sequence[str],
    spots: Mapping[str, Sequence[tuple[int, int, str]]],
    vocabulary: Vocabulary,
) -> bool:
    """Tell whether the words for an attribute that an item has not mean something else that it has: the size of a
    wheelbarrow is its capacity, not the diameter that an umbrella has; a barrel of 19 mm is no shape."""
    has = vocabulary.has[question.item] if 0 <= question.item < len(vocabulary.has) else frozenset[str]()
    if not has or question.slot in has or not question.slot.startswith("attr:"):
        return False
    others = [other for other in slots if other in has or other == "option"]
    words = {spot[:2] for spot in spots.get(slot, ())}
    if others and all(spot[2] == NAMED for spot in spots.get(slot, ())):
        return True
    return any(words & {spot[:2] for spot in spots.get(other, ())} for other in others if other in has)


def _add(found: dict[tuple[str, int], Question], question: Question) -> None:
    """Add a question; one for a slot of any item joins the one for the same slot."""
    before = [key for key in found if key[0] == question.slot]
    key = (question.slot, question.item)
    if question.item < 0 and before:
        key = before[-1]
    elif (question.slot, -1) in found:  # "When is it? When do you need the kettle?"
        found[key] = found.pop((question.slot, -1))
    old = found.get(key)
    if old is not None:
        values = tuple(dict.fromkeys((*old.values, *question.values)))
        question = replace(question, item=key[1], values=values, scope=old.scope or question.scope)
    found[key] = replace(question, item=key[1])


def _asked(
    slot: str,
    sentence: Sentence,
    one: Seen,
    vocabulary: Vocabulary,
    topic: Sequence[int],
    values: Sequence[Said],
) -> list[Question]:
    """Make the questions for a slot in a sentence: one for each item of which it is asked, or of which a value is
    named."""
    spots = one.spots.get(slot, ())
    asking = [spot for spot in spots if spot[2] == ASKED] or list(spots)
    found: dict[int, list[str]] = {}
    for start, end, _ in asking or [(0, len(sentence.tokens), "")]:
        for item in _about(start, end, sentence, topic) or (-1,):
            found.setdefault(item, [])
    stems = {token.stem for token in sentence.tokens}
    scope = slot_type(slot).op != "==" and bool(_EACH & stems) and bool(_ALL & stems or "or" in stems)
    for said in values:
        for item in (said.item,) if said.item >= 0 else tuple(found):
            found.setdefault(item, []).append(said.value)
    if slot == "must":  # its values are the names of attributes
        named = [of.removeprefix("attr:") for of, *_ in one.phrases if of.startswith("attr:")]
        for some in found.values():
            some += [name for name in named if CLOSED not in name]
    return [
        Question(vocabulary.of_item(slot, item), item, tuple(dict.fromkeys(some)), scope)
        for item, some in found.items()
    ]


def _about(start: int, end: int, sentence: Sentence, topic: Sequence[int]) -> tuple[int, ...]:
    """Name the items that the words between these places are about: the nearest group of names in the sentence,
    else the topic."""
    groups: list[tuple[int, int, list[int]]] = []
    for place, token in enumerate(sentence.tokens):
        if token.stem == ITEM:
            number = int(token.means[0][1])
            between = sentence.tokens[groups[-1][1] : place] if groups else ()
            if groups and all(one.stem in _JOINTS or one.stem in ("for", "of") for one in between):
                groups[-1] = (groups[-1][0], place + 1, [*groups[-1][2], number])
            else:
                groups.append((place, place + 1, [number]))
    if not groups:
        return tuple(topic)

    def distance(group: tuple[int, int, list[int]]) -> tuple[int, int]:
        low, high, _ = group
        gap = low - end if low >= end else start - high if high <= start else 0
        words = sentence.tokens[end:low] if low >= end else sentence.tokens[high:start]
        crossed = sum(token.stem in (",", "and", "or", ":") for token in words)
        return (3 * crossed + max(0, gap), low)

    return tuple(dict.fromkeys(min(groups, key=distance)[2]))


def _described(place: int, sentence: Sentence, topic: Sequence[int]) -> tuple[int, ...]:
    """Name the items that a value describes: a brand or a word of the title the one whose name follows at once, and
    none where another follows later."""
    token = sentence.tokens[place]
    titled = token.stem == VALUE and {slot for slot, _ in token.means} <= _TITLED
    by = sentence.tokens[place - 1].stem if place else ""
    if not titled or by in ("by", "from"):
        return _about(place, place + 1, sentence, topic)
    for one in sentence.tokens[place + 1 : place + 5]:
        if one.stem == ITEM:
            return (int(one.means[0][1]),)
        if one.stem in _JOINTS:
            break
    ahead = any(one.stem == ITEM for one in sentence.tokens[place + 1 :])
    return () if ahead else _about(place, place + 1, sentence, topic)


def _said(
    at: int,
    some: Sequence[Sentence],
    views: Sequence[Seen],
    vocabulary: Vocabulary,
    items: Sequence[tuple[int, ...]],
    asked: Sequence[str],
) -> list[Said]:
    """List the values that a sentence says, which asks for these slots; what describes a thing that it names is not
    said of an item."""
    sentence, found = some[at], list[Said]()
    old = {token.word for token in sentence.tokens}
    for place, token in enumerate(sentence.tokens):
        if not (token.stem == VALUE or token.stem in AMOUNTS or _is_one(place, sentence)):
            continue
        if _of_a_thing(place, sentence):
            continue
        denied = token.stem == VALUE and _denied(sentence.tokens[max(0, place - 3) : place])
        for item in _described(place, sentence, items[at]) or (-1,):
            slots = _meant(place, token, sentence, views[at], vocabulary, item, asked)
            if slots and slots[0].startswith("was_") and not (_OLD & old or slots[0] in asked):
                continue  # a brand that is offered
            if slots and slot_type(slots[0]).op == "==" and _compared(place, sentence):
                continue  # "more than 20 days ago"
            if slots:
                no = denied and not slots[0].startswith("was_")  # "instead of the red one"
                found.append(Said(slots, _value(token, slots), item, at, no))
    stems = {token.stem for token in sentence.tokens}
    ranked = [
        meaning.partition(CLOSED)[2]
        for meaning, *_ in sorted(views[at].phrases, key=lambda one: one[1])
        if meaning.startswith(f"importance{CLOSED}")
    ]
    ranked = list(dict.fromkeys(ranked))
    if len(ranked) > 1 and stems & (_THEN if asked else _RANKS) and (not asked or "importance" in asked):
        found.append(Said(("importance",), ", ".join(ranked), -1, at))
    either = "or" in stems
    named: dict[str, list[str]] = {}
    for meaning, start, _ in views[at].phrases:
        name, closed, value = meaning.partition(CLOSED)
        if closed and name != "importance" and not _denied(sentence.tokens[max(0, start - 3) : start]):
            named.setdefault(name, []).append(value)
    found += [
        Said((name,), one, -1, at) for name, some in named.items() for one in (some if either else some[-1:])
    ]
    if "must" in vocabulary.slots and stems & _SAME:  # "in the same color"
        kept = [of for of, *_ in views[at].phrases if of.startswith("attr:") and CLOSED not in of]
        found += [Said(("must",), of.removeprefix("attr:"), -1, at) for of in dict.fromkeys(kept)]
    return list(dict.fromkeys(found))


def _compared(place: int, sentence: Sentence) -> bool:
    """Tell whether an amount is only a bound of what is said."""
    if sentence.tokens[place].stem == VALUE:
        return False
    before = [token.word for token in sentence.tokens[max(0, place - 2) : place]]
    return bool({"than", "over", "under", "within", "least", "most"} & set(before))


def _denied(before: Sequence[Token]) -> bool:
    """Tell whether the words before a value take it back: "not red", "no red", "instead of red"."""
    stems = [one.stem for one in before]
    return any(one in _DENIED for one in stems) or stems[-1:] == ["no"] or "than" in stems[-2:]


def _value(token: Token, slots: Sequence[str]) -> str:
    return next((value for slot, value in token.means if slot == slots[0]), token.word)


def _of_a_thing(place: int, sentence: Sentence) -> bool:
    """Tell whether a value describes a thing that is named close before it: "the Acme Kettle, $40, red"."""
    for token in reversed(sentence.tokens[:place]):
        if token.stem == THING:
            return True
        if token.stem == ITEM:
            return False
    return False


def _meant(
    place: int,
    token: Token,
    sentence: Sentence,
    one: Seen,
    vocabulary: Vocabulary,
    item: int,
    asked: Sequence[str],
) -> tuple[str, ...]:
    """Name the slots that a value may be one of, in a sentence that asks for these."""
    if token.stem == VALUE:
        has = vocabulary.has[item] if 0 <= item < len(vocabulary.has) else frozenset[str]()
        slots = [slot for slot, _ in token.means]
        own = [slot for slot in slots if not slot.startswith("attr:") or slot in has or not has]
        before = sentence.tokens[place - 1].stem if place else ""
        return tuple(own or (() if before == VALUE else slots))  # "a 19 mm barrel" names no shape
    stem = NUMBER if token.stem == "one" else token.stem
    able = [
        slot
        for slot in vocabulary.slots
        if slot_type(slot).mark == stem or (stem == NUMBER and slot_type(slot).is_limit)
    ]
    after = sentence.tokens[place + 1 : place + 5]
    counted = next((it for it in after if _is_counted(it) or it.stem in (",", "and")), None)
    beside = (*sentence.tokens[max(0, place - 2) : place], *sentence.tokens[place + 1 : place + 3])
    offered = bool(_OFFERED & {it.stem for it in beside})
    units = [slot for slot in able if slot in ("quantity", "units")]
    at_once = after[:1] == (counted,)  # "four kettles"
    if "budget" in vocabulary.slots and token.word.isalpha() and at_once:  # of each, one goes without saying
        units = units or ["quantity"]
    chat = stem == NUMBER and bool(after) and after[0].stem in _CHATTY
    if chat and not offered:
        return ()
    if counted is not None and counted.stem == THING and not offered:  # whose item only the customer knows
        return ()
    if token.stem == "one":
        return tuple(units)
    if token.stem == NUMBER and "count" in able and (offered or not units):
        units = ["count"]
    recommended = offered and units == ["count"]
    if not recommended and (counted is None or not _is_counted(counted)):
        units = []
    if stem == NUMBER and units and at_once:
        return tuple(units)
    near = [slot for slot in able if _counts(place, sentence, slot, one)]
    near = near or [slot for slot in able if slot in asked]
    if near or stem == NUMBER:
        return tuple(near[:1] or units)
    stems = {it.stem for it in sentence.tokens}
    if (stem == DATE and stems & _COMES) or (stem == MONEY and able[:1] == ["total"] and not stems & _ALL):
        return ()  # the day on which it came, the price of something
    if able[:1] == ["age"] and not stems & _AGO:
        return ()  # how long something takes
    if stem == MONEY and "budget" in able:
        return ("budget",) if _ALL & stems or "price" not in able or item < 0 else ("price",)
    return tuple(able[:1])


def _is_one(place: int, sentence: Sentence) -> bool:
    """Tell whether a word counts one thing: "one red kettle", "one of the kettles"."""
    if sentence.tokens[place].stem != "one":
        return False
    after = [it.stem for it in sentence.tokens[place + 1 : place + 6] if it.stem != VALUE]
    return after[:1] == [ITEM] or after[:3] == ["of", "the", ITEM]


def _is_counted(token: Token) -> bool:
    """Tell whether a token names something that is counted."""
    return token.stem in (ITEM, THING) or (token.stem == VALUE and token.means[0][0] in ("type", "parts"))


def _counts(place: int, sentence: Sentence, slot: str, one: Seen) -> bool:
    """Tell whether words that ask for a slot stand close before an amount, or just after it, with no other amount
    between."""
    for meaning, start, end in one.phrases:
        if meaning == slot:
            between = sentence.tokens[end:place]
            reach = REACH if sentence.tokens[place].stem != NUMBER else NEXT
            before = end <= place < end + reach and not any(token.stem in AMOUNTS for token in between)
            behind = place < start <= place + NEXT + 1 and not {ITEM, ","} & {
                token.stem for token in sentence.tokens[place:start]
            }
            if before or behind:
                return True
    return False


def marked(text: str, names: Mapping[int, Sequence[str]]) -> str:
    """Put a character in the place of each thing in a text; `names` lists what each is called, by its number, of which
    there are `THING_KINDS` for products, then for orders, then for lines. The longest name wins."""
    text = _PRIVATE.sub(" ", text)
    lowered = text.lower()
    spans: list[tuple[int, int, int]] = []
    for number, some in names.items():
        for name in some:
            start = lowered.find(name.lower())
            while start >= 0:
                spans.append((start, start + len(name), number))
                start = lowered.find(name.lower(), start + 1)
    spans.sort(key=lambda span: (span[0] - span[1], span[0]))
    taken: list[tuple[int, int, int]] = []
    for span in spans:
        if all(span[1] <= other[0] or other[1] <= span[0] for other in taken):
            taken.append(span)
    for start, end, number in sorted(taken, reverse=True):
        text = f"{text[:start]}{chr(ord(THINGS) + number)}{text[end:]}"
    return text


__all__ = ["NO_ITEM", "THING_KINDS", "Question", "Reading", "Said", "marked", "read"]
