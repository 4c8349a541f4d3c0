"""Understanding of a message to the customer: what each of its sentences asks for, of which item, naming which values.

Phrases are data (`questions.toml`) and match by stems. Nothing here knows what the customer wants: a `Reader` is made
from the slots that such a customer may have, the names of the items and the shop's vocabulary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ecomlab.customer.clauses import ASK, PURPOSE, STATEMENT, WH, Clause, clauses
from ecomlab.customer.phrasing import Found, Index, compiled, find, index, phrases, shared
from ecomlab.customer.words import (
    DATE, DAYS, ITEM, KILOS, MONEY, NUMBER, STARS, VALUE, Names, Sentence, Token, names, sentences, stem,
)  # fmt: skip

RANKED = ("price", "rating", "days")
"""Slots that a customer may rank by importance."""
LONGEST = 60
"""Most characters of what was not understood that are quoted."""
_ALSO = {"brand": "was_brand", "feature": "was_feature", "price": "budget"}
"""Slots whose phrases serve for another one as well."""
_AMOUNTS = {
    "price": MONEY, "budget": MONEY, "total": MONEY, "rating": STARS, "days": DAYS, "age": DAYS, "placed": DATE,
    "ordered": DATE, "delivered": DATE, "weight": KILOS, "units": NUMBER, "things": NUMBER, "parcels": NUMBER,
    "items": NUMBER,
}  # fmt: skip
"""Marks that are values of slots."""
LISTED = 4
"""Places between commas within which a part of a list stands."""
TAG = 5
"""Most words of a question that may only ask whether what is said before it is right."""
_LAST = frozenset({"open:alone", "open:announces"})
"""What a phrase may mean only where none with another meaning stands."""
_JOINTS = frozenset({"and", "or", "but", "plus"})
_OFFERING = frozenset(map(stem, "shall should may can could".split()))
_ASKED = frozenset(
    map(stem, "ask know have hear trouble get bother request learn enquire inquire need".split())
)
_LIMITS = frozenset(map(stem, "maximum minimum limit most least any deadline".split())) | set(
    _AMOUNTS.values()
)
"""Words by which a question for several limits is none for which of them comes first."""
_EACH = frozenset(
    map(stem, "each apiece per both all together total combined altogether everything whole".split())
)


@dataclass(frozen=True)
class Question:
    """A slot that is asked for, the item it is asked of (-1 for any), and its values that are named beside it: one makes
    a yes-or-no question, more an either-or. A value is spelt as the Reader's vocabulary or the file has it, an amount as in
    the message. `scope`: it is asked whether a price is for each or in total."""

    slot: str
    item: int = -1
    values: tuple[str, ...] = ()
    scope: bool = False


@dataclass(frozen=True)
class Reading:
    """What a message asks for, and what else it does."""

    questions: tuple[Question, ...] = ()
    """In the order of asking, a slot once an item."""
    open: bool = False
    """Whatever else there is, or all there is, is asked for."""
    open_item: int = -1
    """The item that the open part names."""
    asks: bool = False
    """Anything is asked at all."""
    unclear: tuple[str, ...] = ()
    """Words of the asking sentences in which nothing was recognised."""
    done: bool = False
    """It is said that the work is done, or an answer or a result is given."""
    agree: bool = False
    """Only agreement is asked for."""
    unavailable: tuple[int, ...] = ()
    """Items that are said to be sold out, or of which only some are left; (-1,) where none is named."""
    which: bool = False
    """It is asked which one it is."""


@dataclass
class _Heard:
    """What has been heard of a message so far."""

    asked: dict[tuple[str, int], Question] = field(default_factory=dict)
    open: bool = False
    open_item: int = -1
    announced: bool = False
    asks: bool = False
    agree: bool = False
    done: bool = False
    which: bool = False
    unclear: list[str] = field(default_factory=list)
    unavailable: list[int] = field(default_factory=list)
    waiting: list[Question] = field(default_factory=list)
    """What the sentence before named without asking for it."""
    topic: int = -1
    """The item that was last spoken of as the topic of what follows."""

    def add(self, questions: Iterable[Question]) -> None:
        for one in questions:
            of_slot = [item for slot, item in self.asked if slot == one.slot]
            if of_slot and one.item < 0:
                one = replace(one, item=of_slot[-1])
            before = self.asked.get((one.slot, one.item))
            if before is None:
                self.asked[one.slot, one.item] = one
            else:
                values = tuple(dict.fromkeys((*before.values, *one.values)))
                self.asked[one.slot, one.item] = Question(
                    one.slot, one.item, values, before.scope or one.scope
                )


class Reader:
    """Reads messages to a customer who may have these `slots`; `items` are the names that each item is called by, `values`
    the words of values by slot, and `called` other names of slots, such as an option's ("size")."""

    def __init__(
        self,
        slots: Iterable[str],
        items: Sequence[Sequence[str]],
        values: Mapping[str, Iterable[str]],
        called: Mapping[str, Iterable[str]],
    ) -> None:
        self.slots = tuple(dict.fromkeys(slots))
        own = tuple((slot, tuple(some)) for slot, some in called.items() if slot in self.slots)
        self._rank = {slot: number for number, slot in enumerate(self.slots)}
        self._own = _own(self.slots, own)
        self._wanted = _wanted(self.slots)
        words = tuple((slot, tuple(map(str, some))) for slot, some in values.items() if slot in self.slots)
        self._known = (_item_names(tuple(map(tuple, items))), *(_value_names(*one) for one in words))

    def read(self, text: str) -> Reading:
        """Understand a message."""
        heard = _Heard()
        for sentence in sentences(text, self._known):
            _Sentence(self, sentence, text, heard).read()
        asked = tuple(heard.asked.values())
        is_open = heard.open or (heard.announced and not asked)
        return Reading(
            questions=asked,
            open=is_open,
            open_item=heard.open_item if is_open else -1,
            asks=heard.asks,
            unclear=tuple(heard.unclear),
            done=heard.done,
            agree=heard.agree and not asked and not is_open and not heard.unclear,
            unavailable=tuple(dict.fromkeys(heard.unavailable)),
            which=heard.which,
        )

    def slot_of(self, meaning: str) -> str | None:
        """The slot of this customer that a phrase means; None where they have none such."""
        if meaning in self._rank:
            return meaning
        also = _ALSO.get(meaning)
        return also if also in self._rank else None


class _Sentence:
    """Reads one sentence of a message into what has been heard."""

    def __init__(self, reader: Reader, sentence: Sentence, text: str, heard: _Heard) -> None:
        self.reader, self.sentence, self.text, self.heard = reader, sentence, text, heard
        self.tokens = sentence.tokens
        self.stems = [token.stem for token in self.tokens]
        self._ranks = self._named_here = self._alone = False
        self._found: dict[tuple[int, int], list[Found]] = {}

    def read(self) -> None:
        found = clauses(self.tokens, self.sentence.mark, self.sentence.polite)
        asking = [clause for clause in found if clause.kind == ASK]
        heard = self.heard
        for clause in found:
            self._told(clause)
        if not asking:
            self._wait(found)
            return
        said = self._finds(Clause(0, len(self.stems), ASK))
        if any(one.meaning == "says:elsewhere" for one in said):
            heard.asks = True
            heard.unclear.append(self._quoted())
            return
        self._ranks = (
            any(one.meaning == "importance" for clause in asking for one in self._finds(clause))
            and "importance" in self.reader.slots
        )
        before = (len(heard.asked), heard.open)
        results = [self._asked(clause) for clause in asking]
        tags = all(clause.end - clause.start <= TAG for clause in asking)
        if self.sentence.mark == "?" and tags and before == (len(heard.asked), heard.open):
            results += [self._asked(clause) for clause in found if clause.kind == STATEMENT]
        if not any(results):
            aims = [clause for clause in found if clause.kind != ASK]
            results += [self._asked(clause) for clause in aims]
        if not any(results):
            self._otherwise(found, said)
        heard.asks = heard.asks or self.sentence.mark == "?" or any(results) or bool(heard.unclear)
        self._topic(found)

    def _asked(self, clause: Clause) -> bool:
        """Hear what one clause asks for; False where nothing in it was recognised."""
        found = self._finds(clause)
        meanings = {one.meaning for one in found}
        named = self._named(clause, found)
        marks = {VALUE, *_AMOUNTS.values()}
        firm = any(self.stems[place] in marks for place in range(clause.start, clause.end))
        agrees = [one.end for one in found if one.meaning == "says:agree"]
        firm = firm or any(
            one.pattern.strong and one.start < min(agrees, default=0)
            for one in found
            if self.reader.slot_of(one.meaning) or one.meaning == "open:adds"
        )
        if "says:small" in meanings:
            self.heard.agree = True
            return True
        if (
            "says:agree" in meanings
            and not (firm and (named or "open:adds" in meanings))
            and not self._leads(clause)
        ):
            right = "says:which" in meanings or _names_right(self.stems[clause.start : clause.end])
            waiting = self.heard.waiting if right else []
            self.heard.add(one for one in waiting if one.values)
            self.heard.agree = True
            return True
        items = self._items(clause)
        questions = [
            Question(slot, item, self._values(slot, clause), scope) for slot, scope in named for item in items
        ]
        self.heard.add(questions)
        joined = clause.start == 0 or self.stems[clause.start - 1] in _JOINTS or not self._named_here
        more = "open:adds" in meanings or ("open:alone" in meanings and not named and joined)
        comma = clause.start > 0 and self.stems[clause.start - 1] in (",", ":")
        if named and comma and self._alone:  # "Which kettle, whose is it?"
            self._alone = self.heard.open = False
        self._named_here = self._named_here or bool(named)
        if (
            not named
            and "open:adds" not in meanings
            and "says:picks" in meanings
            and self.heard.waiting
            and not self.heard.asked
        ):
            self.heard.add(self.heard.waiting)
            return True
        before = self.heard.open
        alone = more and "open:adds" not in meanings
        if alone and self._offers(clause):
            self.heard.agree = True
            return True
        if alone and {"i", "we"} & set(self.stems[clause.start : clause.start + 2]):
            self.heard.announced = True
        elif more and not self._refers_back(clause, questions):
            self._alone = self._alone or (alone and not self.heard.open)
            self.heard.open = True
            if len(items) == 1:
                self.heard.open_item = items[0]
        if more and not named and "open:adds" in meanings and self._announces(clause):
            self.heard.open, self.heard.announced = before, True
        self.heard.announced = self.heard.announced or ("open:announces" in meanings and not named)
        self.heard.which = self.heard.which or ("says:which" in meanings and not named)
        return bool(named or more or "open:announces" in meanings)

    def _offers(self, clause: Clause) -> bool:
        """Tell whether a clause offers to do something: "Shall I go on?"."""
        stems = self.stems[clause.start : clause.end]
        return {"i", "we"} >= set(stems[1:2]) and stems[0] in _OFFERING and not _ASKED & set(stems[2:6])

    def _announces(self, clause: Clause) -> bool:
        """Tell whether a clause that asks for more only announces what follows: "I need some more details:"."""
        stems = self.stems[clause.start : clause.end]
        return (stems[-1] == ":" or self.sentence.colon) and bool({"i", "we", "me", "us"} & set(stems))

    def _refers_back(self, clause: Clause, questions: Sequence[Question]) -> bool:
        """Hear "Is that the one?" after a sentence that named values."""
        if questions or not self.heard.waiting or not any(one.values for one in self.heard.waiting):
            return False
        found = {one.meaning for one in self._finds(clause)}
        if "open:adds" in found or "says:refers" not in found:
            return False
        self.heard.add(self.heard.waiting)
        return True

    def _otherwise(self, found: Sequence[Clause], said: Sequence[Found]) -> None:
        """Hear a sentence that asks, in which no slot was recognised and nothing open."""
        meanings = {one.meaning for one in said}
        if "says:refers" in meanings and any(one.values for one in self.heard.waiting):
            self.heard.add(self.heard.waiting)
        elif "says:which" in meanings:
            self.heard.which = True
        elif "says:consent" in meanings or "says:agree" in meanings:
            self.heard.agree = True
        elif "says:tells" in meanings and "says:subject" in meanings:
            self.heard.open = True
        elif self.sentence.mark == "?" or any(self._leads(clause) for clause in found):
            if len(self.stems) > 1 or not self.heard.asked:
                self.heard.unclear.append(self._quoted())

    def _told(self, clause: Clause) -> None:
        meanings = {one.meaning for one in self._finds(clause)}
        if "says:unavailable" in meanings:
            self.heard.unavailable += self._items(clause)
        if clause.kind == STATEMENT and "says:done" in meanings:
            self.heard.done = True

    def _wait(self, found: Sequence[Clause]) -> None:
        """Keep what a statement names: the next sentence may ask for it."""
        waiting: list[Question] = []
        for clause in found:
            named = self._named(clause, self._finds(clause))
            waiting += [
                Question(slot, item, self._values(slot, clause))
                for slot, _ in named
                for item in self._items(clause)
            ]
        waiting = [one for one in waiting if one.values] or waiting
        self.heard.waiting = waiting or self.heard.waiting
        self._topic(found)

    def _topic(self, found: Sequence[Clause]) -> None:
        numbers = {int(token.means[0][1]) for token in self.tokens if token.stem == ITEM}
        if len(numbers) == 1:
            self.heard.topic = numbers.pop()

    def _finds(self, clause: Clause) -> list[Found]:
        """Choose the phrases of a clause: of those that overlap the longest; weak ones where no strong one is near."""
        bounds = clause.start, clause.end
        if bounds not in self._found:
            self._found[bounds] = self._chosen(clause)
        return self._found[bounds]

    def _chosen(self, clause: Clause) -> list[Found]:
        reader = self.reader

        found = find(self.stems, (clause.start, clause.end), (shared(), reader._own), reader._wanted)
        found = [one for one in found if self._is_of_its_slot(one)]
        says = [one for one in found if one.meaning.startswith("says:")]
        rest = [one for one in found if not one.meaning.startswith("says:")]
        rest.sort(key=self._order)
        chosen: list[Found] = []
        for one in rest:
            if not one.pattern.strong and self._is_weak(one, chosen, clause):
                continue
            if all(one.end <= other.start or other.end <= one.start for other in chosen):
                chosen.append(one)
        return sorted(chosen, key=lambda one: one.start) + says

    def _is_of_its_slot(self, one: Found) -> bool:
        """Tell whether the values in a phrase for a slot are that slot's."""
        slot = self.reader.slot_of(one.meaning)
        values = [token for token in self.tokens[one.start : one.end] if token.stem == VALUE]
        return slot is None or all(slot in dict(token.means) for token in values)

    def _order(self, one: Found) -> tuple[bool, bool, int, int, int, int]:
        slot = self.reader.slot_of(one.meaning)
        rank = len(self.reader.slots) if slot is None else self.reader._rank[slot]
        return (
            one.meaning in _LAST,
            not one.pattern.strong,
            -one.pattern.weight,
            one.start - one.end,
            one.start,
            rank,
        )

    def _is_weak(self, one: Found, chosen: Sequence[Found], clause: Clause) -> bool:
        """Tell whether a weak phrase stands beside something stronger, in its part between "and" and "or"."""
        start, end = one.start, one.end
        while start > clause.start and self.stems[start - 1] not in _JOINTS:
            start -= 1
        while end < clause.end and self.stems[end] not in _JOINTS:
            end += 1
        if "," in self.stems[start:end]:  # a list: each of its short parts stands for itself
            commas = [start - 1, *(place for place in range(start, end) if self.stems[place] == ","), end]
            left = max(place for place in commas if place < one.start)
            right = min(place for place in commas if place >= one.end)
            if right - left <= LISTED:
                start, end = left + 1, right
        mark = one.pattern.row[0] or frozenset()
        own = self.reader.slot_of(one.meaning)
        others = {slot for slot, _ in self.heard.asked} | {
            self.reader.slot_of(other.meaning) for other in chosen
        }
        if len(one.pattern.row) == 1 and any(slot and _AMOUNTS.get(slot) in mark for slot in others - {own}):
            return True
        if "EACH" in one.pattern.text or "ALL" in one.pattern.text:
            start, end = clause.start, clause.end
        beside = any(other.start < end and start < other.end for other in chosen)
        return beside or any(
            self.stems[place] == VALUE for place in range(start, end) if not one.start <= place < one.end
        )

    def _named(self, clause: Clause, found: Sequence[Found]) -> list[tuple[str, bool]]:
        """Name the slots that a clause asks for, in order, and whether their scope is asked for."""
        places: list[tuple[int, str]] = []
        for one in found:
            slot = self.reader.slot_of(one.meaning)
            if slot is not None:
                places.append((one.start, slot))
        strong = {
            slot
            for one in found
            if one.pattern.strong and (slot := self.reader.slot_of(one.meaning)) is not None
        }
        covered = [range(one.start, one.end) for one in found if self.reader.slot_of(one.meaning) is not None]
        leads = self._leads(clause)
        for place in range(clause.start, clause.end):
            token = self.tokens[place]
            if token.stem != VALUE:
                continue
            slots = [slot for slot, _ in token.means]
            if any(slot in strong for slot in slots) or (leads and strong):
                continue
            if any(place in some for some in covered):
                continue
            places.append((place, min(slots, key=self.reader._rank.__getitem__)))
        places.sort()
        ordered = list(dict.fromkeys(slot for _, slot in self._compared(places, clause)))
        if "replacement" in ordered and not _JOINTS & set(self.stems[clause.start : clause.end]):
            ordered = [
                "replacement",
                *(slot for slot in ordered if slot in ("ordered", "delivered", "units")),
            ]
        scope = bool(_EACH & set(self.stems[clause.start : clause.end])) and {"each"} <= set(
            self.stems[clause.start : clause.end]
        ) | {"per", "apiec"}
        return [(slot, bool(scope) and slot in ("price", "budget")) for slot in ordered]

    def _compared(self, places: list[tuple[int, str]], clause: Clause) -> list[tuple[int, str]]:
        """Leave out what is compared in a question for importance."""
        ranks = [place for place, slot in places if slot == "importance"]
        if not ranks:
            stems = set(self.stems[clause.start : clause.end])
            ranked = any(slot == "importance" for slot, _ in self.heard.asked)
            if ranked and clause.end - clause.start <= TAG and not stems & (_LIMITS | WH):
                return [one for one in places if one[1] not in RANKED]  # "What matters most? Is it price?"
            several = len({slot for _, slot in places if slot in RANKED}) > 1
            if (
                several
                and "importance" in self.reader.slots
                and "or" in stems
                and not (stems & _LIMITS or "and" in stems)
            ):
                return [(places[0][0], "importance"), *(one for one in places if one[1] not in RANKED)]
            return [one for one in places if one[1] not in RANKED] if self._ranks and several else places
        joints = [place for place in range(clause.start, clause.end) if self.stems[place] in _JOINTS]
        own = {
            slot
            for place, slot in places
            if slot in RANKED and place < ranks[0] and any(place < joint < ranks[0] for joint in joints)
        }
        return [one for one in places if one[1] not in RANKED or own == {one[1]}]

    def _values(self, slot: str, clause: Clause) -> tuple[str, ...]:
        """Name the values of a slot that a clause names."""
        found: list[tuple[int, str]] = []
        for place in range(clause.start, clause.end):
            token = self.tokens[place]
            if token.stem == VALUE:
                found += [(place, value) for of, value in token.means if of == slot]
            elif token.stem == _AMOUNTS.get(slot):
                found.append((place, self.text[token.start : token.end]))
        some = find(self.stems, (clause.start, clause.end), (_closed(slot),))
        some.sort(key=lambda one: (-one.pattern.weight, one.start))
        taken: list[Found] = []
        for one in some:
            if all(one.end <= other.start or other.end <= one.start for other in taken):
                taken.append(one)
        found += [(one.start, one.meaning) for one in taken]
        return tuple(dict.fromkeys(value for _, value in sorted(found)))

    def _items(self, clause: Clause) -> list[int]:
        """Name the items of a clause, else the one of its sentence, else the topic; [-1] for none."""
        here = [int(t.means[0][1]) for t in self.tokens[clause.start : clause.end] if t.stem == ITEM]
        if here:
            return list(dict.fromkeys(here))
        around = {int(token.means[0][1]) for token in self.tokens if token.stem == ITEM}
        return [around.pop()] if len(around) == 1 else [-1 if around else self.heard.topic]

    def _leads(self, clause: Clause) -> bool:
        """Tell whether a clause has a question word."""
        return bool(WH & set(self.stems[clause.start : min(clause.end, clause.start + 4)]))

    def _quoted(self) -> str:
        words = self.sentence.text
        return words if len(words) <= LONGEST else f"{words[: LONGEST - 4].rsplit(' ', 1)[0]} ..."


def _names_right(stems: Sequence[str]) -> bool:
    """Tell whether it is asked if the sentence before is right."""
    return bool({"right", "correct", "accur", "true"} & set(stems)) and bool(
        {"that", "this", "it"} & set(stems)
    )


@lru_cache(maxsize=4_096)
def _own(slots: tuple[str, ...], called: tuple[tuple[str, tuple[str, ...]], ...]) -> Index:
    """Patterns of the slots that have names of their own: attributes, the option."""
    other, made = phrases().attributes, []
    by_slot = dict(called)
    for slot in slots:
        own = list(by_slot.get(slot, ()))
        if slot.startswith("attr:"):
            own.append(slot.removeprefix("attr:").replace("_", " "))
        for name in dict.fromkeys(own):
            made += compiled((name.lower(), *other.get(name.lower().replace(" ", "_"), ())), slot)
    return index(made)


@lru_cache(maxsize=4_096)
def _wanted(slots: tuple[str, ...]) -> frozenset[str]:
    """Meanings of phrases that count for a customer with these slots."""
    file = phrases()
    others = [meaning for meaning, slot in _ALSO.items() if slot in slots]
    said = [f"open:{name}" for name in file.open] + [f"says:{name}" for name in file.says]
    return frozenset((*slots, *others, *said))


@lru_cache(maxsize=256)
def _closed(slot: str) -> Index:
    """Patterns of the values that the file lists for a slot."""
    return index(
        one for value, texts in phrases().values.get(slot, {}).items() for one in compiled(texts, value)
    )


@lru_cache(maxsize=4_096)
def _item_names(items: tuple[tuple[str, ...], ...]) -> Names:
    return names((name, ("", str(number))) for number, called in enumerate(items) for name in called if name)


@lru_cache(maxsize=4_096)
def _value_names(slot: str, values: tuple[str, ...]) -> Names:
    return names((value, (slot, value)) for value in values)
