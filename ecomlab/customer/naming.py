"""What the clauses of a sentence name: slots, items and values, by the phrases in them."""

import re
from collections.abc import Sequence

from ecomlab.customer.clauses import Clause
from ecomlab.customer.heard import Heard, Question
from ecomlab.customer.phrasing import Found, find
from ecomlab.customer.vocabulary import Vocabulary, closed
from ecomlab.customer.word_classes import WH
from ecomlab.customer.words import AMOUNTS, ITEM, VALUE, Sentence, stem
from ecomlab.slots import LIMITS, slot_type


def words_of(words: str) -> frozenset[str]:
    """Stems of these words."""
    return frozenset(map(stem, words.split()))


RANKED = tuple(limit.name for limit in LIMITS if limit.sort)
"""Slots that a customer may rank by importance."""
LISTED = 4
"""Places between commas within which a part of a list stands."""
EXAMPLES = 3
"""Fewest examples that say only what an open question may be about."""
TAG = 5
"""Most words of a question that may only ask whether what is said before it is right."""
_LAST = frozenset({"open:alone", "open:announces"})
"""What a phrase may mean only where none with another meaning stands."""
JOINTS = words_of("and or but plus")
CARRYING = JOINTS | words_of("for what how about of with as to then same but regarding question go")
"""Words beside the name of an item to which the last question is carried over."""
_LIMITS = words_of("maximum minimum limit most least any deadline") | AMOUNTS
"""Words by which a question for several limits is none for which of them comes first."""
_TO_COME = frozenset("deadline need should must will would latest limit want by soon".split())
_CAME = frozenset("delivered arrived received came got was were did".split())
"""Words, as they are written, by which a day is still to come, or has passed."""
_WISHES = words_of("anything something wish preference requirement thing detail")
_EXAMPLE = words_of("example instance")
TELL = words_of("tell state specify give name say share provide know advise indicate confirm identify")
EACH = words_of("each apiece per every individually separately")
ALL = words_of("all both together total combined altogether everything whole")


class Naming:
    """Knows what each clause of a sentence names."""

    def __init__(self, vocabulary: Vocabulary, sentence: Sentence, text: str, heard: Heard) -> None:
        self.vocabulary, self.sentence, self.text, self.heard = vocabulary, sentence, text, heard
        self.tokens = sentence.tokens
        self.stems = [token.stem for token in self.tokens]
        self._ranks = self._named = self._alone = self._exemplary = self._is_line = False
        self._topic: list[str] = []
        self._found: dict[tuple[int, int, int], list[Found]] = {}

    def _named_in(self, some: Sequence[Clause]) -> list[Question]:
        """List what clauses name, as questions for it."""
        return [
            Question(slot, item, self._values(slot, clause))
            for clause in some
            for named in self._slots(clause, self._finds(clause))
            for item in self._items(clause)
            for slot in [self._of_item(named, item, clause)]
        ]

    def _of_item(self, slot: str, item: int, clause: Clause) -> str:
        """The slot that the words for one mean of this item: the size of a shirt is its size, of a box its capacity."""
        has = self.vocabulary.has[item] if 0 <= item < len(self.vocabulary.has) else frozenset()
        if not has or slot in has or not slot.startswith("attr:"):
            return slot
        found = find(self.stems, (clause.start, clause.end), (self.vocabulary.own,))
        words = [one for one in found if one.meaning == slot]
        others = [
            one
            for one in found
            if one.meaning in has and any(one.start < it.end and it.start < one.end for it in words)
        ]
        return min(others, key=self._order).meaning if others else slot

    def _finds(self, clause: Clause) -> list[Found]:
        """Choose the phrases of a clause: of those that overlap the longest; weak ones where no strong one is near."""
        key = (
            clause.start,
            clause.end,
            len(self.heard.asked),
        )  # what has been asked for decides of weak phrases
        if key not in self._found:
            self._found[key] = self._chosen(clause)
        return self._found[key]

    def _chosen(self, clause: Clause) -> list[Found]:
        vocabulary = self.vocabulary
        found = find(self.stems, (clause.start, clause.end), (vocabulary.shared, vocabulary.own))
        found = [one for one in found if one.meaning != "feature" or not self._is_plural(one)]
        says = [one for one in found if one.meaning.startswith("says:")]
        agrees = [one for one in says if one.meaning == "says:agree"]
        rest = [
            one
            for one in found
            if not one.meaning.startswith("says:")
            and self._is_of_its_slot(one)
            and not _is_said_by(one, agrees)
        ]
        chosen: list[Found] = []
        for one in sorted(rest, key=self._order):
            apart = all(one.end <= other.start or other.end <= one.start for other in chosen)
            if apart and (one.pattern.strong or not self._is_beside(one, chosen, clause)):
                chosen.append(one)
        return self._without_examples(sorted(chosen, key=lambda one: one.start), clause) + says

    def _is_plural(self, one: Found) -> bool:
        """Tell whether a phrase is the word "features", which means any wish; one alone may be a slot of its own."""
        return one.end == one.start + 1 and self.tokens[one.start].word == "features"

    def _without_examples(self, chosen: list[Found], clause: Clause) -> list[Found]:
        """Leave out slots that only say what an open question may be about: "any wishes, like a size, a color or a
        price?". One or two examples are asked for."""
        slot_of = self.vocabulary.slot_of
        start = next(filter(self._exemplifies, range(clause.start, clause.end)), clause.end)
        examples = [one for one in chosen if one.start > start and slot_of(one.meaning)]
        opened = any(one.start < start and one.meaning.startswith("open:") for one in chosen)
        counted = {one.meaning for one in examples} - self.vocabulary.last
        if len(counted) < EXAMPLES or not (opened or self.heard.open):
            return chosen
        self._exemplary = True
        return [one for one in chosen if one not in examples]

    def _exemplifies(self, place: int) -> bool:
        """Tell whether examples follow: "like", "such as", "say", "for example" or a bracket."""
        here, before = self.stems[place], self.stems[place - 1 : place] or [","]
        after = self.stems[place + 1 : place + 2]
        if here == ",":
            return self.text[self.tokens[place].start] == "("
        if here in ("like", "say"):
            return before == [","] or (here == "like" and before[0] in _WISHES)
        return (here == "such" and after == ["as"]) or (here in _EXAMPLE and before == ["for"])

    def _is_of_its_slot(self, one: Found) -> bool:
        """Tell whether the values in a phrase for a slot are that slot's."""
        slot = self.vocabulary.slot_of(one.meaning)
        values = [token for token in self.tokens[one.start : one.end] if token.stem == VALUE]
        return slot is None or all(slot in dict(token.means) for token in values)

    def _order(self, one: Found) -> tuple[bool, bool, int, bool, bool, int, int, int]:
        """Rank a phrase among those that overlap: the first wins."""
        rank = self.vocabulary.rank.get(self.vocabulary.slot_of(one.meaning) or "", len(self.vocabulary.rank))
        pattern = one.pattern
        return (
            one.meaning in _LAST,
            not pattern.strong,
            -pattern.weight,
            one.meaning in self.vocabulary.last and len(self.vocabulary.has) > 1,
            not pattern.name,
            one.start - one.end,
            one.start,
            rank,
        )

    def _is_beside(self, one: Found, chosen: Sequence[Found], clause: Clause) -> bool:
        """Tell whether a weak phrase stands beside something stronger, or is an amount of a slot named before."""
        slot_of = self.vocabulary.slot_of
        if len(one.pattern.row) == 1:
            others = {slot for slot, _ in self.heard.asked} | {slot_of(other.meaning) for other in chosen}
            marks = {slot_type(slot or "").mark for slot in others - {slot_of(one.meaning)}}
            if marks & (one.pattern.row[0] or frozenset()):
                return True
        if one.pattern.scopes:
            start, end = clause.start, clause.end
        else:
            start, end = self._part(one, clause)
        return any(other.start < end and start < other.end for other in chosen) or any(
            self.stems[place] == VALUE for place in range(start, end) if not one.start <= place < one.end
        )

    def _part(self, one: Found, clause: Clause) -> tuple[int, int]:
        """Bounds of the part of a clause around a phrase: between "and" and "or"; of a list, between commas."""
        start, end = one.start, one.end
        while start > clause.start and self.stems[start - 1] not in JOINTS:
            start -= 1
        while end < clause.end and self.stems[end] not in JOINTS:
            end += 1
        commas = [start - 1, *(place for place in range(start, end) if self.stems[place] == ","), end]
        left = max(place for place in commas if place < one.start)
        right = min(place for place in commas if place >= one.end)
        return (left + 1, right) if len(commas) > 2 and right - left <= LISTED else (start, end)

    def _slots(self, clause: Clause, found: Sequence[Found]) -> list[str]:
        """Name the slots that a clause asks for, in order."""
        spans = [(one, slot) for one in found if (slot := self.vocabulary.slot_of(one.meaning))]
        strong = {slot for one, slot in spans if one.pattern.strong}
        places = [(one.start, slot) for one, slot in spans]
        for place in range(clause.start, clause.end):
            token = self.tokens[place]
            covered = any(one.start <= place < one.end for one, _ in spans)
            if token.stem != VALUE or covered or (strong and self._leads(clause)):
                continue  # "When did the red one arrive?" does not ask whether it is red
            slots = [slot for slot, _ in token.means]
            if not strong & set(slots):
                places.append((place, min(slots, key=self.vocabulary.rank.__getitem__)))
        ordered = list(dict.fromkeys(slot for _, slot in self._compared(sorted(places), clause)))
        told = TELL & set(self.stems[clause.start : clause.end])
        if "must" in ordered and not self._leads(clause) and not told:  # "Is another brand okay?"
            ordered = [slot for slot in ordered if not slot.startswith("was_")]
        if "replacement" in ordered and self._is_to_come(clause):
            ordered = [slot for slot in ordered if slot != "delivered"]
        if "replacement" in ordered and not JOINTS & set(self.stems[clause.start : clause.end]):
            return [slot for slot in ordered if slot in ("replacement", "ordered", "delivered", "units")]
        return ordered

    def _is_to_come(self, clause: Clause) -> bool:
        """Tell whether a clause asks when something is to come, rather than when it came."""
        words = {token.word for token in self.tokens[clause.start : clause.end]}
        return bool(_TO_COME & words) and not _CAME & words

    def _compared(self, places: list[tuple[int, str]], clause: Clause) -> list[tuple[int, str]]:
        """Leave out what is compared in a question for importance; find such a question in what is compared."""
        if "importance" not in self.vocabulary.rank:
            return places
        unranked = [one for one in places if one[1] not in RANKED]
        asked = [place for place, slot in places if slot == "importance"]
        if asked:
            joints = [place for place in range(clause.start, asked[0]) if self.stems[place] in JOINTS]
            own = {slot for place, slot in places if slot in RANKED and any(place < one for one in joints)}
            return [one for one in places if one[1] not in RANKED or own == {one[1]}]
        stems = set(self.stems[clause.start : clause.end])
        before = any(slot == "importance" for slot, _ in self.heard.asked)
        if before and clause.end - clause.start <= TAG and not stems & (_LIMITS | WH):
            return unranked  # "What matters most? Is it price?"
        if len({slot for _, slot in places if slot in RANKED}) < 2:
            return places
        if "or" in stems and "and" not in stems and not stems & _LIMITS:
            return [(places[0][0], "importance"), *unranked]
        return unranked if self._ranks else places

    def _asks_scope(self, clause: Clause) -> bool:
        """Tell whether a clause asks if a price is for each or in total."""
        stems = set(self.stems[clause.start : clause.end])
        return bool(EACH & stems) or (("for" in stems or "or" in stems) and bool(ALL & stems))

    def _values(self, slot: str, clause: Clause) -> tuple[str, ...]:
        """Name the values of a slot that a clause names, in order."""
        bounds = clause.start, clause.end
        named: list[tuple[int, str]] = []
        for place in range(*bounds):
            token = self.tokens[place]
            named += [(place, value) for of, value in token.means if of == slot]
            if token.stem == slot_type(slot).mark:
                named.append((place, self.text[token.start : token.end]))
        taken: list[Found] = []
        listed = find(self.stems, bounds, (closed(slot),))
        for one in sorted(listed, key=lambda one: (-one.pattern.weight, one.start)):
            if all(one.end <= other.start or other.end <= one.start for other in taken):
                taken.append(one)
        named += [(one.start, one.meaning) for one in taken]
        if slot == "must":  # its values are the names of attributes
            own = find(self.stems, bounds, (self.vocabulary.own,))
            named += [(one.start, one.pattern.text) for one in own if one.meaning == slot]
        return tuple(dict.fromkeys(value for _, value in sorted(named)))

    def _items(self, clause: Clause) -> list[int]:
        """Name the items of a clause, else those that lead to it, else the one of its sentence, else the topic; [-1]
        for none."""
        here = [int(one.means[0][1]) for one in self.tokens[clause.start : clause.end] if one.stem == ITEM]
        if here:
            return list(dict.fromkeys(here))
        before = clause.start
        while before and self.stems[before - 1] in (",", ":"):
            before -= 1
        leading = [one for one in self.tokens[:before] if one.stem == ITEM]
        follows = before < clause.start and self.stems[before - 1] == ITEM
        opens = self.stems[: clause.start].count(":") == 1 and self.stems[clause.start - 1] == ":"
        if leading and (follows or opens):
            beside = CARRYING | {ITEM, ","}  # "For the kettle and the rug, which brand?"
            every = not follows or set(self.stems[:before]) <= beside
            return list(dict.fromkeys(int(one.means[0][1]) for one in (leading if every else leading[-1:])))
        around = {int(token.means[0][1]) for token in self.tokens if token.stem == ITEM}
        return list(around) if len(around) == 1 else [-1] if around else list(self.heard.topics) or [-1]

    def _leads(self, clause: Clause) -> bool:
        """Tell whether a clause begins with a question word."""
        return bool(WH & set(self.stems[clause.start : min(clause.end, clause.start + 4)]))


def _is_said_by(one: Found, others: Sequence[Found]) -> bool:
    """Tell whether an attribute's name is a word of a longer phrase: "fit" in "Does that fit you?"."""
    words = set(one.pattern.text.split())
    return one.meaning.startswith("attr:") and any(
        other.start <= one.start
        and one.end <= other.end
        and words <= set(re.split(r"[ |]", other.pattern.text))
        for other in others
    )
