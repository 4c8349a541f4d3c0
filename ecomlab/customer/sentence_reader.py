"""Reads one sentence of a message: from its clauses and the phrases in them to what is asked for."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ecomlab.customer.clauses import (
    ASK,
    AUXILIARY,
    SPEAKER,
    STATEMENT,
    TAGS,
    WH,
    Clause,
    clauses,
)
from ecomlab.customer.heard import Heard, Question
from ecomlab.customer.nonsense import FOREIGN, STRANGE, content, repeats, strange
from ecomlab.customer.phrasing import ELSEWHERE, Found, find
from ecomlab.customer.vocabulary import AMOUNTS, Vocabulary, closed
from ecomlab.customer.words import DATE, DAYS, ITEM, MARKS, MONEY, STARS, VALUE, Sentence, Token, stem

LIMITED = ("price", "rating", "days", "budget")
"""Slots that are limits."""
MARKED = frozenset(MARKS)
MORE_TO_COME = frozenset({"NUMBER", "one", stem("last"), stem("final")})
"""Words that say how many questions come."""
RANKED = ("price", "rating", "days")
"""Slots that a customer may rank by importance."""
LONGEST = 60
"""Most characters of what was not understood that are quoted."""
LISTED = 4
"""Places between commas within which a part of a list stands."""
EXAMPLES = 3
"""Fewest examples that say only what an open question may be about."""
LEAD = 3
"""Words that may stand before a question word."""
TAG = 5
"""Most words of a question that may only ask whether what is said before it is right."""


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_REPORTS = frozenset({"says:done", "says:unavailable", "says:agree"})
"""What a remark of a shop does."""
_LAST = frozenset({"open:alone", "open:announces"})
"""What a phrase may mean only where none with another meaning stands."""
_BESIDE = _stems("like any")
"""Words with which something else is asked for beside an open question: "What should it have, any budget?"."""
_JOINTS = _stems("and or but plus")
_OFFERING = _stems("shall should may can could")
_ASKED = _stems("ask know have hear trouble get bother request learn enquire inquire need")
"""What somebody who asks does: "May I ask ..." is no offer."""
_LIMITS = _stems("maximum minimum limit most least any deadline") | set(AMOUNTS.values())
"""Words by which a question for several limits is none for which of them comes first."""
_ALONE = _stems("only alone single entire complete")
_POINTS = _stems("it that this they these those")
_TO_COME = frozenset("deadline need should must will would latest limit want by soon".split())
_CAME = frozenset("delivered arrived received came got was were did".split())
"""Words, as they are written, by which a day is still to come, or has passed."""
_WONDER = _stems("what which how")
_RIGHT = _stems("right correct accurate true")
_WISHES = _stems("anything something wish preference requirement thing detail")
_EXAMPLE = _stems("example instance")
_STILL = _stems("still")
_POINTED = _stems("that this it both they these those everything")
_COUNTED = _stems("many much old long often NUMBER number frustrating annoying")
"""Words after "how" or "what" with which a number is asked for, or a feeling is shown."""
_TELL = _stems("tell state specify give name say share provide know")
_CARRYING = _JOINTS | _stems("for what how about of with as to then same but regarding question go")
"""Words beside the name of an item to which the last question is carried over."""
_SUPPOSED = [[one] for one in _stems("understand see")]
"""What "I" does who repeats what it heard."""
_EACH = _stems("each apiece per every individually separately")
_ALL = _stems("all both together total combined altogether everything whole")


class SentenceReader:
    """Reads one sentence into what has been heard of its message."""

    def __init__(self, vocabulary: Vocabulary, sentence: Sentence, text: str, heard: Heard) -> None:
        self.vocabulary, self.sentence, self.text, self.heard = vocabulary, sentence, text, heard
        self.tokens = sentence.tokens
        self.stems = [token.stem for token in self.tokens]
        self._ranks = self._named = self._alone = self._exemplary = False
        self._topic: list[str] = []
        self._found: dict[tuple[int, int, int], list[Found]] = {}

    def read(self) -> None:
        """Hear what the sentence asks for and says."""
        heard = self.heard
        found = clauses(self.tokens, self.sentence.mark, self.sentence.polite)
        lost = self.sentence.broken or self._is_gibberish()
        remark = not lost and not any(clause.kind == ASK for clause in found) and self._is_strange()
        for clause in found if not (lost or remark) else ():
            self._told(clause)
        if self.sentence.mark != "?" and "?" in self.text[self.tokens[-1].end if self.tokens else 0 :]:
            found = [replace(clause, kind=STATEMENT) if self._echoes(clause) else clause for clause in found]
        asks = any(clause.kind == ASK for clause in found)
        heard.lists = (self.sentence.colon and asks) or (self.sentence.listed and heard.lists)
        if not asks and ((self.sentence.listed and heard.lists) or self._goes_on() or self._is_scope()):
            found = [replace(clause, kind=ASK) for clause in found]
        if lost:
            self._lose()
        elif any(clause.kind == ASK for clause in found):
            before = set(heard.asked)
            self._asked(found)
            heard.before = [one for place, one in heard.asked.items() if place not in before]
        elif remark:
            heard.strange = heard.strange or self._quoted()
        else:
            self._wait(found)
        items = {int(token.means[0][1]) for token in self.tokens if token.stem == ITEM}
        heard.topic = items.pop() if len(items) == 1 else heard.topic

    def _echoes(self, clause: Clause) -> bool:
        """Tell whether a clause without a question mark, before a question with one, only repeats what it heard: "Blue,
        then.", "You want a kettle.", "I understand it is a gift."."""
        stems = self.stems[clause.start : clause.end]
        if clause.kind != ASK or self._leads(clause) or "or" in stems:
            return False
        answers = stems[-1] in TAGS and stems[0] not in AUXILIARY  # "Blue, okay."
        if not (clause.guessed or answers):
            return stems[0] == "you" or (stems[0] in SPEAKER and stems[1:2] in _SUPPOSED)
        got = stems[-2:] == ["get", "it"]
        return bool(MARKED & set(stems)) and (got or all(one.values for one in self._named_in([clause])))

    def _goes_on(self) -> bool:
        """Tell whether the sentence goes on with the question before it: "... right? And Vintage looking"."""
        verbs = WH | AUXILIARY | SPEAKER
        return self.heard.asks and self.stems[:1] in (["and"], ["or"]) and verbs.isdisjoint(self.stems)

    def _is_scope(self) -> bool:
        """Tell whether the sentence only says "per kettle or everything"."""
        place = self.stems.index("or") if "or" in self.stems else 0
        before, after = set(self.stems[:place]), set(self.stems[place + 1 :])
        return bool((_EACH & before and _ALL & after) or (_ALL & before and _EACH & after))

    def _is_gibberish(self) -> bool:
        """Tell whether the sentence says words again and again, or holds no word of a shop but names of items."""
        others = [token for token in self.tokens if token.stem != ITEM]
        if repeats(self.tokens):
            return True
        unknown = self._count_foreign(others)
        if (
            unknown >= STRANGE
            and 2 * unknown >= len(content(others))
            and self._count_foreign(others, self.vocabulary.shop) >= STRANGE
        ):
            return True  # another language
        foreign = all(not one.means and one.stem.isalpha() for one in others)
        return foreign and len(self.tokens) > 1 and unknown == len(others) > 0

    def _is_strange(self) -> bool:
        """Tell whether a sentence that asks nothing tells what nobody in a shop does: "The parcel ate a Tuesday."."""
        if {VALUE, MONEY, STARS, DAYS, DATE} & set(self.stems):
            return False
        said = self._finds(Clause(0, len(self.stems), STATEMENT))
        foreign = self._count_foreign(self.tokens, self.vocabulary.shop)
        known = self.vocabulary.is_familiar  # a word that is foreign is counted already
        foreign += sum(
            len(one.pattern.row) ** 2 if one.end - one.start > 1 else known(self.stems[one.start])
            for one in said
            if one.meaning == ELSEWHERE
        )
        reports = any(one.meaning in _REPORTS for one in said)
        return strange(foreign, len(content(self.tokens)), reports)

    def _corrected(self, found: Sequence[Clause]) -> list[Clause]:
        """Leave out what a sentence takes back: "the color, I mean the material"."""
        for place, clause in enumerate(found[1:], 1):
            stems = self.stems[clause.start : clause.end]
            if any(pair == ("i", "mean") for pair in pairwise(stems[: LEAD + 1])) and self._named_in(
                [clause]
            ):
                return [replace(clause, kind=ASK), *found[place + 1 :]]
        return list(found)

    def _asked(self, found: Sequence[Clause]) -> None:
        """Hear a sentence that asks: its asking clauses, else the others, else what it refers to."""
        found = self._corrected(found)
        heard, asking = self.heard, [clause for clause in found if clause.kind == ASK]
        said = {one.meaning for one in self._finds(Clause(0, len(self.stems), ASK))}
        if self._is_nonsense(asking, said):
            self._lose()
            return
        self._ranks = any(one.meaning == "importance" for clause in asking for one in self._finds(clause))
        told = [clause for clause in found if clause.kind == STATEMENT and clause.start < asking[0].start]
        if any(one.values for one in self._named_in(told)):
            self._wait(told)
        if self._carries():
            return
        before = len(heard.asked), heard.open
        if found[0].kind != ASK and len(found) > 1:
            self._topic = [] if self._leads(found[0]) else self._slots(found[0], self._finds(found[0]))
        heard_any = self._clauses(asking)
        tag = self.sentence.mark == "?" and all(clause.end - clause.start <= TAG for clause in asking)
        if tag and before == (len(heard.asked), heard.open):  # "It was by them, was it not?"
            heard_any |= self._clauses([clause for clause in found if clause.kind == STATEMENT])
        if not heard_any:
            heard_any = self._clauses([clause for clause in found if clause.kind != ASK])
        if not heard_any and not self._exemplary:
            self._otherwise(found, said)
        heard.asks = heard.asks or self.sentence.mark == "?" or heard_any or bool(heard.unclear)

    def _carries(self) -> bool:
        """Hear what carries the last question over to other items ("And for the kettle?"), or asks for all of them."""
        others = [one for one in self.stems if one not in _CARRYING]
        if (self.sentence.mark != "?" and "same" not in self.stems) or not others or set(others) != {ITEM}:
            return False
        heard, items = self.heard, self._items(Clause(0, len(self.stems), ASK))
        carried = [replace(one, item=item) for one in heard.before if not one.values for item in items]
        carried = [one for one in carried if (one.slot, one.item) not in heard.asked]
        if any(one.item not in (-1, *items) for one in heard.before) and carried:
            heard.add(carried)
        elif heard.asks or "what" in self.stems or "how" in self.stems:
            heard.open = True
            heard.open_item = items[0] if len(items) == 1 else -1
        else:
            return False
        heard.asks = True
        return True

    def _is_nonsense(self, asking: Sequence[Clause], said: set[str]) -> bool:
        """Tell whether nobody in a shop asks this: it is of another topic, or in several words foreign to shops
        and none that names what is asked for."""
        if ELSEWHERE in said:
            return True
        if not self._is_sure(asking) and ITEM not in self.stems:
            return False
        if "says:which" in said and ITEM in self.stems and not any(map(self._leads, asking)):
            return False  # "Do you mean the Acme Tea Kettle?": a name that this customer may not know
        return self._foreign(asking) >= FOREIGN and "says:agree" not in said and not self._is_plain(asking)

    def _lose(self) -> None:
        """Hear nonsense; what comes after it in the message belongs to it, unless it names something."""
        self.heard.asks = self.heard.lost = True
        self.heard.unclear.append(self._quoted())

    def _is_sure(self, some: Sequence[Clause]) -> bool:
        """Tell whether a sentence surely asks: what has no verb and no question mark may be a remark."""
        asking = [clause for clause in some if clause.kind == ASK]
        return self.sentence.mark == "?" or any(not one.guessed or self._leads(one) for one in asking)

    def _speaks(self) -> bool:
        """Tell whether the sentence begins with "I" or "we"."""
        return bool({"i", "we"} & set(self.stems[:2]))

    def _foreign(self, some: Sequence[Clause]) -> int:
        """Count the words of clauses that are foreign to shops."""
        return self._count_foreign(
            [token for clause in some for token in self.tokens[clause.start : clause.end]]
        )

    def _count_foreign(self, tokens: Sequence[Token], known: frozenset[str] = frozenset()) -> int:
        words = {token.stem for token in tokens if not token.means and token.stem.isalpha()}
        return sum(word not in known and not self.vocabulary.is_familiar(word) for word in words)

    def _is_plain(self, some: Sequence[Clause]) -> bool:
        """Tell whether clauses name a value, ask for more, or name a slot in more than one word."""
        found = [one for clause in some for one in self._finds(clause)]
        if any(one.meaning == "open:adds" for one in found) or (set(MARKS) - {ITEM}) & set(self.stems):
            return True
        slots = [one.pattern for one in found if self.vocabulary.slot_of(one.meaning)]
        return any(one.strong for one in slots) and (len(slots) > 1 or slots[0].weight > 1)

    def _clauses(self, some: Sequence[Clause]) -> bool:
        """Hear all of these clauses; False where nothing in any was recognised."""
        recognised = [self._clause(clause) for clause in some]
        return any(recognised)

    def _clause(self, clause: Clause) -> bool:
        """Hear what one clause asks for; False where nothing in it was recognised."""
        heard, found = self.heard, self._finds(clause)
        meanings = {one.meaning for one in found}
        named = self._topic_of(clause) or self._slots(clause, found)
        named = self._limited(found) or named
        firm = any(one.pattern.strong and self.vocabulary.slot_of(one.meaning) for one in found)
        if ("says:small" in meanings and not firm) or self._agrees(clause, found, bool(named)):
            heard.agree = True
            return True
        items = self._items(clause)
        scope = self._asks_scope(clause)
        heard.add(
            Question(slot, item, self._values(slot, clause), scope and slot in ("price", "budget"))
            for slot in named
            for item in items
        )
        joined = clause.start == 0 or self.stems[clause.start - 1] in _JOINTS or not self._named
        joins = self.stems[: clause.start][-1:] in ([","], [":"]) and self.stems[clause.start] not in _BESIDE
        if named and self._alone and joins:  # "Which one, whose is it?"
            self._alone = heard.open = False
        self._named = self._named or bool(named)
        told = self.sentence.mark != "?" and self._speaks()  # "I missed it."
        if heard.lost and not named and (told or "open:adds" not in meanings):
            return False
        heard.which = heard.which or ("says:which" in meanings and not named)
        if not named and (self._points(meanings) or ("open:adds" not in meanings and self._picks(meanings))):
            return True
        adds = any(one.meaning == "open:adds" and not self._is_other(one, clause) for one in found)
        loose = "open:alone" in meanings and "says:right" not in meanings and not self._foreign([clause])
        alone = loose and joined and not named
        heard.announced = heard.announced or ("open:announces" in meanings and not named)
        if adds or alone:
            self._open(clause, items, alone=not adds, named=bool(named))
        return bool(named or adds or alone or "open:announces" in meanings)

    def _is_other(self, one: Found, clause: Clause) -> bool:
        """Tell whether words for anything else only end a choice of values, or what the speaker leaves out is named:
        "in red, in blue or something else?", "Shall I leave out everything under $20?"."""
        stems = self.stems[clause.start : clause.end]
        if not {VALUE, *AMOUNTS.values()} & set(stems):
            return False
        offers = stems[0] in _OFFERING and stems[1:2] in (["i"], ["we"]) and not _ASKED & set(stems[2:6])
        return offers or (self.stems[one.start - 1 : one.start] == ["or"] and clause.end - one.end <= 1)

    def _limited(self, found: Sequence[Found]) -> list[str]:
        """Name what a limit in words for any is of, from the sentence before: "Prices differ. Where is your limit?"."""
        slots = [one for one in found if self.vocabulary.slot_of(one.meaning) in LIMITED]
        if (
            not slots
            or self.heard.asked
            or any(one.pattern.strong or MARKED & (one.pattern.row[0] or MARKED) for one in slots)
        ):
            return []
        return [one.slot for one in self.heard.waiting if one.slot in LIMITED][:1]

    def _topic_of(self, clause: Clause) -> list[str]:
        """Name what a clause asks the reach of: "The deadline, does it hold for everything?"."""
        stems = set(self.stems[clause.start : clause.end])
        within = self.stems[clause.start : clause.end]
        if self._topic and set(within) <= MARKED | _JOINTS | {","}:
            return self._topic  # "Parcels: 2 or 3?"
        points = _POINTS & set(self.stems[clause.start : clause.start + LEAD])
        return self._topic if points and stems & (_EACH | _ALL | _ALONE) else []

    def _open(self, clause: Clause, items: Sequence[int], alone: bool, named: bool) -> None:
        """Hear a clause that asks for whatever there is; `alone`: in words that count where nothing is named."""
        heard, stems = self.heard, self.stems[clause.start : clause.end]
        speaks = bool({"i", "we", "me", "us"} & set(stems))
        if alone and stems[0] in _OFFERING and stems[1:2] in (["i"], ["we"]) and not _ASKED & set(stems[2:6]):
            heard.agree = True  # "Shall I go on?"
        elif alone and (
            {"i", "we"} & set(stems[:2]) or (self.stems[0] in SPEAKER and self.sentence.mark != "?")
        ):
            heard.announced = True
        elif (
            not named
            and (alone or speaks or MORE_TO_COME & set(stems))
            and (stems[-1] == ":" or self.sentence.colon)
        ):
            heard.announced = True  # "I need some more details:", "Tell me about the kettle:"
        elif alone and not named and self._refers(clause):
            heard.add(heard.waiting)  # "Is that the one?" after a sentence that named values
        else:
            self._alone = self._alone or (alone and not heard.open)
            heard.open = True
            heard.open_item = items[0] if len(items) == 1 else heard.open_item

    def _refers(self, clause: Clause) -> bool:
        meanings = {one.meaning for one in self._finds(clause)}
        if ITEM in self.stems:
            return False  # "And the kettle, how should that be?"
        return "says:refers" in meanings and any(one.values for one in self.heard.waiting)

    def _points(self, meanings: set[str]) -> bool:
        """Hear "Is that the one you mean?" after what named values."""
        named = [*self.heard.waiting, *self.heard.asked.values()]
        if not {"says:which", "says:refers"} <= meanings or not any(one.values for one in named):
            return False
        self.heard.add(one for one in self.heard.waiting if one.values)
        return True

    def _picks(self, meanings: set[str]) -> bool:
        """Hear "Which one would you like?" after a sentence that named a slot without asking for it."""
        if "says:picks" not in meanings or not self.heard.waiting or self.heard.asked:
            return False
        self.heard.add(self.heard.waiting)
        return True

    def _agrees(self, clause: Clause, found: Sequence[Found], named: bool) -> bool:
        """Hear a clause that asks for agreement to what the speaker will do; what comes before those words, or a value,
        makes a question of it."""
        ends = [one.end for one in found if one.meaning == "says:agree"]
        if not ends or self._leads(clause) or any(one.meaning == "quantity" for one in found):
            return False  # "Shall I add one of each?"
        stems = set(self.stems[clause.start : clause.end])
        if _STILL & stems and _RIGHT & stems and not named:
            return True  # "Are the other details still right?"
        marks = {VALUE, *AMOUNTS.values()} & stems
        slot_of = self.vocabulary.slot_of
        before = any(
            one.pattern.strong and one.start < min(ends)
            for one in found
            if slot_of(one.meaning) or one.meaning == "open:adds"
        )
        adds = any(one.meaning == "open:adds" for one in found)
        if (marks or before) and (named or adds):
            return False
        right = bool(_RIGHT & stems and _POINTED & stems)
        if right or any(one.meaning == "says:which" for one in found):
            self.heard.add(one for one in self.heard.waiting if one.values)
        return True

    def _otherwise(self, found: Sequence[Clause], said: set[str]) -> None:
        """Hear a sentence that asks, in which no slot was recognised and nothing open."""
        heard, foreign = self.heard, self._foreign(found)
        sure = self.sentence.mark == "?" or any(map(self._leads, found))
        if "says:refers" in said and sure and any(one.values for one in heard.waiting):
            heard.add(heard.waiting)
        elif heard.lost and not said & {"says:agree"}:
            heard.unclear.append(self._quoted())
        elif "says:which" in said and (not foreign or ITEM in self.stems):
            heard.which = True
        elif said & {"says:agree", "says:right"} or (
            "says:consent" in said and not foreign and not self._wonders(found)
        ):
            heard.agree = True
        elif self._is_tag(found):
            heard.agree = True  # "Such a shame, isn't it?"
        elif not foreign and "says:subject" in said and ("says:tells" in said or self._wonders(found)):
            heard.open = True
        elif (
            self.sentence.mark == "?"
            or any(self._leads(clause) for clause in found)
            or (foreign and self._is_sure(found) and not self._speaks())
        ):
            heard.unclear.append(self._quoted())

    def _is_tag(self, found: Sequence[Clause]) -> bool:
        """Tell whether the sentence only asks for assent to what it says."""
        exclaims = self.stems[:1] == ["what"] and any(one.noun for one in self.tokens[1:2])
        ends = self.sentence.mark == "?" and not TAGS.isdisjoint(self.stems[-1:])
        return ends and (exclaims or not self._leads(found[0]))  # "What a pity, right?"

    def _told(self, clause: Clause) -> None:
        """Hear what a clause says, asking or not."""
        meanings = {one.meaning for one in self._finds(clause)}
        if "says:unavailable" in meanings:
            start = clause.start
            while start and self.stems[start - 1] in (ITEM, VALUE, ",", "and", "or"):
                start -= 1  # "The kettle and the rug are gone."
            self.heard.unavailable += self._items(replace(clause, start=start))
        if clause.kind == STATEMENT and "says:done" in meanings:
            self.heard.done = True

    def _wait(self, found: Sequence[Clause]) -> None:
        """Keep what a statement names: the next sentence may ask for it."""
        waiting = self._named_in(found)
        self.heard.waiting = [one for one in waiting if one.values] or waiting or self.heard.waiting

    def _named_in(self, some: Sequence[Clause]) -> list[Question]:
        """List what clauses name, as questions for it."""
        return [
            Question(slot, item, self._values(slot, clause))
            for clause in some
            for slot in self._slots(clause, self._finds(clause))
            for item in self._items(clause)
        ]

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
        rest = [one for one in found if not one.meaning.startswith("says:") and self._is_of_its_slot(one)]
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
        if len({one.meaning for one in examples}) < EXAMPLES or not (opened or self.heard.open):
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

    def _order(self, one: Found) -> tuple[bool, bool, int, bool, int, int, int]:
        """Rank a phrase among those that overlap: the first wins."""
        rank = self.vocabulary.rank.get(self.vocabulary.slot_of(one.meaning) or "", len(self.vocabulary.rank))
        pattern = one.pattern
        return (
            one.meaning in _LAST,
            not pattern.strong,
            -pattern.weight,
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
            marks = {AMOUNTS.get(slot or "") for slot in others - {slot_of(one.meaning)}}
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
        while start > clause.start and self.stems[start - 1] not in _JOINTS:
            start -= 1
        while end < clause.end and self.stems[end] not in _JOINTS:
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
        told = _TELL & set(self.stems[clause.start : clause.end])
        if "must" in ordered and not self._leads(clause) and not told:  # "Is another brand okay?"
            ordered = [slot for slot in ordered if not slot.startswith("was_")]
        if "replacement" in ordered and self._is_to_come(clause):
            ordered = [slot for slot in ordered if slot != "delivered"]
        if "replacement" in ordered and not _JOINTS & set(self.stems[clause.start : clause.end]):
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
            joints = [place for place in range(clause.start, asked[0]) if self.stems[place] in _JOINTS]
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
        return bool(_EACH & stems) or (("for" in stems or "or" in stems) and bool(_ALL & stems))

    def _values(self, slot: str, clause: Clause) -> tuple[str, ...]:
        """Name the values of a slot that a clause names, in order."""
        bounds = clause.start, clause.end
        named: list[tuple[int, str]] = []
        for place in range(*bounds):
            token = self.tokens[place]
            named += [(place, value) for of, value in token.means if of == slot]
            if token.stem == AMOUNTS.get(slot):
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
        """Name the items of a clause, else the one of its sentence, else the topic; [-1] for none."""
        here = [int(one.means[0][1]) for one in self.tokens[clause.start : clause.end] if one.stem == ITEM]
        if here:
            return list(dict.fromkeys(here))
        before = clause.start
        while before and self.stems[before - 1] in (",", ":"):
            before -= 1
        if before < clause.start and self.stems[before - 1] == ITEM:  # "For the kettle: which brand?"
            return [int(self.tokens[before - 1].means[0][1])]
        around = {int(token.means[0][1]) for token in self.tokens if token.stem == ITEM}
        return [around.pop()] if len(around) == 1 else [-1 if around else self.heard.topic]

    def _leads(self, clause: Clause) -> bool:
        """Tell whether a clause begins with a question word."""
        return bool(WH & set(self.stems[clause.start : min(clause.end, clause.start + 4)]))

    def _wonders(self, some: Sequence[Clause]) -> bool:
        """Tell whether what asks begins with "what", "which" or a "how" that counts nothing, and is all that does."""
        if self.heard.asked:
            return False
        for clause in some:
            stems = self.stems[clause.start : clause.end]
            lead = next((place for place, one in enumerate(stems[:LEAD]) if one in _WONDER), LEAD)
            if clause.kind == ASK and lead < LEAD and _COUNTED.isdisjoint(stems[lead + 1 : lead + 2]):
                return True
        return False

    def _quoted(self) -> str:
        words = self.sentence.text
        return words if len(words) <= LONGEST else f"{words[: LONGEST - 4].rsplit(' ', 1)[0]} ..."
