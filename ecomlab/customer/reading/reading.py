"""One reading of a message to the customer: what it does, what it asks for, and what it says of which item.

Nothing here knows what the customer wants. A reading is frozen and kept by text, and serves the customer, the players
and the labels of mistakes alike.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ecomlab.customer.reading.features import ASKED, AUXILIARY, NAMED, THING_KINDS, seen
from ecomlab.customer.reading.mentions import ALL, Said, about, said_in
from ecomlab.customer.reading.model import ACTS, GROUPS, NEAR, QUESTIONS, model
from ecomlab.customer.reading.vocabulary import CLOSED, Vocabulary, items_in
from ecomlab.customer.reading.words import ITEM, LAST_THING, THING, THINGS, Sentence, is_familiar, sentences
from ecomlab.slots import slot_type

NO_ITEM = 1_000
"""From here on, numbers in place of an item's for things on a list that no wish is about."""
RANKS = frozenset(("importance", "worth"))
"""Slots by which products are ranked, which limits are named beside."""
_EACH = frozenset(("each", "apiec", "per", "everi", "individu", "separ"))
HARDLY, CLEAR = -60, 50
"""Score of asking from which on a slot's score decides, and that score."""
FAIR, FOREIGN = -20, -60
"""Score of a slot from which on it is asked for where no other is, or beside another one ("a colour or a length?"), and
up to which it is surely not: one in twenty that is asked for is below, of messages that nothing was fitted to."""
TAKEN = -100
"""A sentence's score from which on it takes up wishes."""
_AGAIN = re.compile(
    r"\b(?:repeat|say|write|tell|send|spell)\b[^.?!]{0,40}\b(?:again|once more|(?:one more|another|a second) time)\b"
    r"|\brepeat (?:that|it|this|what|your|the|yourself)\b|^(?:pardon|come again|sorry|what)\?$",
    re.IGNORECASE,
)
"""A request to say it again."""
_SUMS_UP = frozenset(("SUMMARY", "TELL", "NOTED", "LIST", "CONSENT", "CHECK"))
_GONE = re.compile(
    r"\bsold[ -]out\b|\bout of stock\b|\b(?:run|ran) out\b|\bnone (?:is |are )?left\b|\bno longer available\b"
    r"|\bunavailable\b|\bare (?:all )?gone\b|\bonly .{1,90} (?:is|are) left\b"
    r"|\bonly (?:\w+ ){0,5}(?:left|in stock|available|remain\w*)\b"
    r"|\bno(?:t a single)? .{1,40} left\b",
    re.IGNORECASE,
)
"""Words that say that something has run short."""
_CHATS = frozenset(("OFFTOPIC", "SYMPATHISE", "BAD", "REFUSE"))
LEAVE = re.compile(
    r"\b(?:shall|should|may|can|could) (?:i|we)\b|\b(?:okay|ok|all right|alright|fine|happy) (?:if|with|for|by)\b",
    re.IGNORECASE,
)
"""Words by which leave is asked."""
_PRIVATE = re.compile(f"[{THINGS}-{LAST_THING}]")
STRANGE = 2
"""Words that nobody uses in a shop, from which on a sentence of hardly any other makes no sense."""


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
    foreign: bool = False
    """It asks for something that surely no customer has: "Do you have pets?"."""

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
        if _AGAIN.search(self.text) and "judge" not in calls_for and "CLOSE" not in held:
            held, calls_for = held - {"NONSENSE"} | {"REPEAT"}, calls_for - {"back"} | {"repeat"}
        elif not calls_for and any(self._asks_something(at) for at in range(len(self.sentences))):
            leave = LEAVE.search(self.text) is not None  # who asks is not only thanked
            question = max(QUESTIONS, key=lambda act: acts[act])
            calls_for, held = {"judge" if leave else "ask"}, held | {"CONSENT" if leave else question}
        elif not calls_for - {"back"} and all(map(_is_strange, self.sentences)):
            held, calls_for = {"NONSENSE"}, {"back"}
        held |= {"NOTED"} if not calls_for and self.noted(NEAR) else set()
        gone = bool(self._gone()) and not calls_for & {"ask", "judge"}
        held |= {"BAD"} if gone else set()
        held = held or {max((act for act in ACTS if act not in loud), key=lambda act: acts[act])}
        return Decided(frozenset(held), frozenset(calls_for), slots)

    def _asks_something(self, at: int) -> bool:
        """Tell whether a sentence with a question mark is more than small talk."""
        most = int(self.scores[at, : len(ACTS)].argmax())
        return self.sentences[at].mark == "?" and ACTS[most] not in _CHATS

    def places(self, acts: Sequence[str]) -> tuple[int, ...]:
        """Number the sentences that hold one of these acts: those with a good score, at least the best."""
        best = [max(row) for row in self.scores[:, [ACTS.index(act) for act in acts]].tolist()]
        return tuple(at for at, score in enumerate(best) if score > NEAR or score == max(best))

    def asking(self, acts: Sequence[str] = GROUPS["ask"]) -> tuple[int, ...]:
        """Number the sentences that ask by one of these acts; beside a question mark, one without needs a clear
        score."""
        best = [max(row) for row in self.scores[:, [ACTS.index(act) for act in acts]].tolist()]
        marks = [one.mark == "?" for one in self.sentences]
        marked = any(mark and score > 0 for mark, score in zip(marks, best))
        return tuple(
            at
            for at, score in enumerate(best)
            if score > (NEAR if marks[at] else CLEAR if marked else 0) or score == max(best)
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
        """Choose the slots that are asked for: those with a good score and others of their sentence with a fair one,
        at least the fair ones; where it is not sure that anything is asked for those with a clear one."""
        sums, floor = self.slot_scores(self.asking()), 0 if surely else CLEAR
        good = [at for at, some in sums.items() if max(some.values(), default=floor) > floor]
        if not surely:
            return {at: [slot for slot, score in sums[at].items() if score > CLEAR] for at in good}
        if not good and any(token.stem == THING for one in self.sentences for token in one.tokens):
            return {}  # it may ask of that alone
        chosen = {
            at: [
                slot
                for slot, score in some.items()
                if score > (FAIR if not good or slot in self.seen[at].spots else 0)
            ]
            for at, some in sums.items()
            if at in good or not good
        }
        return {at: slots for at, slots in chosen.items() if slots}

    def is_foreign(self) -> bool:
        """Tell whether what is asked for is surely nothing that a customer has."""
        scores = [score for some in self.slot_scores(self.asking()).values() for score in some.values()]
        return max(scores, default=FOREIGN) <= FOREIGN

    def _worded(self, at: int, slots: Sequence[str], every: Sequence[Said]) -> list[str]:
        """Choose the slots that a sentence has a word or a value for, where it names a value: the barrel of "a 19 mm
        barrel" asks for no shape."""
        said = {slot for one in every if one.place == at for slot in one.slots}
        spots = self.seen[at].spots
        return [
            slot
            for slot in slots
            if slot in said
            or slot == "importance"  # "which counts most, price or rating?" says no order
            or self._asks_by_name(at, slot)
            or not (said or slot in spots)
        ]

    def _asks_by_name(self, at: int, slot: str) -> bool:
        """Tell whether a sentence has words that ask for a slot."""
        return any(mark == ASKED for *_, mark in self.seen[at].spots.get(slot, ()))

    def _said(self, at: int, slots: Sequence[str], asked: bool) -> list[Said]:
        """List the values that a sentence says, and whether each is said of the customer's wishes."""
        one, scores = self.seen[at], self.scores[at]
        found = said_in(at, self.sentences[at], one, self.vocabulary, self.items[at], slots)
        return [
            replace(
                said,
                asked=asked,
                score=said.score if said.slots[0] in RANKS else model().claim(one, scores, *said.span),
            )
            for said in found
        ]

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
            group: self.asking([act for act in GROUPS[group] if act in acts] or GROUPS[group])
            if group == "ask"
            else self.places(GROUPS[group])
            for group in calls_for
        }
        asking = set(places.get("ask", ())) | set(decided.slots)
        every = [
            said
            for at in range(len(some))
            for said in self._said(at, decided.slots.get(at, ()), at in asking)
        ]
        judged = set(places.get("judge", ()))
        if "SUMMARY" in acts:  # all its lines, but for what does something else
            most = self.scores[:, : len(ACTS)].argmax(1).tolist()
            judged |= {at for at, act in enumerate(most) if ACTS[act] in _SUMS_UP or some[at].listed}
        elif not calls_for:
            judged = set(self.noted())
        elif "CONSENT" in acts:  # "Within seven weeks, noted. Shall I go ahead?"
            judged |= set(self.noted(CLEAR))
        slots = {at: self._worded(at, named, every) for at, named in decided.slots.items()}
        slots = {at: named for at, named in slots.items() if named}
        if "ask" in calls_for:
            for at, named in _by_values(every, "LIST" in acts, some).items():
                asked = [slot for slot in slots.get(at, ()) if self._asks_by_name(at, slot)]
                if at not in slots or not set(named) <= set(asked):
                    slots[at] = list(dict.fromkeys([*(asked if at in slots else ()), *named]))
        about = [at for at in asking if self.seen[at].lead not in AUXILIARY]  # "What about the kettle?"
        bad = self._gone() or (self.places(("BAD",)) if "BAD" in acts else ())
        return Reading(
            acts,
            calls_for,
            self._questions(slots, every),
            tuple(
                dict.fromkeys(
                    item
                    for at in places.get("open", () if slots else about)
                    for item in items_in(some[at].tokens) or (() if "open" in places else self.items[at])
                )
            ),
            tuple(said for said in every if said.place in judged and said.claimed),
            tuple(every),
            frozenset(
                int(token.means[0][1])
                for at in judged | asking or range(len(some))
                for token in some[at].tokens
                if token.stem == THING
            ),
            tuple(self.text[some[at].start : some[at].end].strip() for at in places.get("back", ())),
            tuple(dict.fromkeys(item for at in bad for item in items_in(some[at].tokens) or (-1,))),
            any(token.means for sentence in some for token in sentence.tokens),
            "ask" in calls_for and not slots and self.is_foreign(),
        )

    def _questions(self, chosen: Mapping[int, Sequence[str]], every: Sequence[Said]) -> tuple[Question, ...]:
        """Make the questions for the slots that sentences ask for, with the values that they say."""
        said = {(one.place, slot) for one in every for slot in one.slots}
        found = dict[tuple[str, int], Question]()
        for at, slots in chosen.items():
            if RANKS & {*slots}:  # "price, then delivery" names no limits
                slots = [slot for slot in slots if not slot_type(slot).is_limit or (at, slot) in said]
            spots = self.seen[at].spots
            first = {slot: min((spot[0] for spot in spots.get(slot, ())), default=99) for slot in slots}
            for slot in sorted(slots, key=first.__getitem__):
                values = [one for one in every if one.place == at and slot in one.slots]
                for question in self._asked(at, slot, values):
                    if not self._means_another(at, question, slot, slots):
                        _add(found, question)
        return tuple(found.values())

    def _means_another(self, at: int, question: Question, slot: str, slots: Sequence[str]) -> bool:
        """Tell whether the words for an attribute that an item has not mean something else that it has: the size of a
        wheelbarrow is its capacity, not the diameter that an umbrella has; a barrel of 19 mm is no shape."""
        items, spots = self.vocabulary.has, self.seen[at].spots
        has = items[question.item] if 0 <= question.item < len(items) else frozenset[str]()
        if not has or question.slot in has or not question.slot.startswith("attr:"):
            return False
        others = [other for other in slots if other in has or other == "option"]
        words = {spot[:2] for spot in spots.get(slot, ())}
        if others and all(spot[2] == NAMED for spot in spots.get(slot, ())):
            return True
        return any(words & {spot[:2] for spot in spots.get(other, ())} for other in others if other in has)

    def _asked(self, at: int, slot: str, values: Sequence[Said]) -> list[Question]:
        """Make the questions for a slot in a sentence: one for each item of which it is asked, or of which a value is
        named."""
        sentence, one = self.sentences[at], self.seen[at]
        spots = one.spots.get(slot, ())
        asking = [spot for spot in spots if spot[2] == ASKED] or list(spots)
        found: dict[int, list[str]] = {}
        for start, end, _ in asking or [(0, len(sentence.tokens), "")]:
            for item in about(start, end, sentence, self.items[at]) or (-1,):
                found.setdefault(item, [])
        stems = {token.stem for token in sentence.tokens}
        scope = slot_type(slot).op != "==" and bool(_EACH & stems) and bool(ALL & stems or "or" in stems)
        for said in values:
            for item in (said.item,) if said.item >= 0 else tuple(found):
                found.setdefault(item, []).append(said.value)
        if slot == "must":  # its values are the names of attributes
            named = [of.removeprefix("attr:") for of, *_ in one.phrases if of.startswith("attr:")]
            for some in found.values():
                some += [name for name in named if CLOSED not in name]
        return [
            Question(self.vocabulary.of_item(slot, item), item, tuple(dict.fromkeys(some)), scope)
            for item, some in found.items()
        ]


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
        elif not listed and said.claimed:
            lone.setdefault(said.place, []).append(slot)
    return {at: list(dict.fromkeys(slots)) for at, slots in found.items()} or {
        at: list(dict.fromkeys(slots)) for at, slots in lone.items()
    }


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
