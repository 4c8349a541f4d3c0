"""Reads one sentence of a message: from its clauses and the phrases in them to what is asked for."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ecomlab.customer.clause_kinds import ASK, STATEMENT
from ecomlab.customer.clauses import Clause, clauses
from ecomlab.customer.heard import Question
from ecomlab.customer.naming import ALL, CARRYING, EACH, JOINTS, TAG, TELL, words_of
from ecomlab.customer.nonsense import Judging
from ecomlab.customer.phrasing import ELSEWHERE, Found
from ecomlab.customer.word_classes import AUXILIARY, SPEAKER, TAGS, WH
from ecomlab.customer.words import AMOUNTS, ITEM, MARKS, MONEY, NUMBER, VALUE, Token, stem
from ecomlab.slots import slot_type

MARKED = frozenset(MARKS)
MORE_TO_COME = frozenset({"NUMBER", "one", stem("last"), stem("final")})
"""Words that say how many questions come."""
LONGEST = 60
"""Most characters of what was not understood that are quoted."""
LEAD = 3
"""Words that may stand before a question word."""
_BESIDE = words_of("like any")
"""Words with which something else is asked for beside an open question: "What should it have, any budget?"."""
_OFFERING = words_of("shall should may can could")
_ASKED = words_of("ask know have hear trouble get bother request learn enquire inquire need")
"""What somebody who asks does: "May I ask ..." is no offer."""
_ALONE = words_of("only alone single entire complete")
_POINTS = words_of("it that this they these those")
_WONDER = words_of("what which how")
_MANY = words_of("how many much ,")
_NEEDED = words_of("information detail details")
_RIGHT = words_of("right correct accurate true")
_STILL = words_of("still")
_POINTED = words_of("that this it both they these those everything")
_PLURAL = words_of("both they them these those")
_COUNTED = words_of("many much old long often NUMBER number frustrating annoying")
"""Words after "how" or "what" with which a number is asked for, or a feeling is shown."""
LEAD_IN = 5
"""Words within which "will" follows "I", where somebody says what they will do."""
_SUPPOSING = words_of("take need assume guess presume suppose say")
"""Verbs with which no deed is announced: "I'll take it you want it in red, right?"."""
_AMOUNT = re.compile(r"\W{1,3}\$?\d")
"""What follows a name in a list of products."""
_BETWEEN = words_of(", : and at for in with from to of only now deliver still fit total")
"""Words between the amounts that a result holds."""
_SUPPOSED = [[one] for one in words_of("understand see")]
"""What "I" does who repeats what it heard."""


def _is_thing(token: Token) -> bool:
    """Tell whether a value is only the name of something on a list."""
    return token.stem == VALUE and {slot for slot, _ in token.means} <= {"parts", "thing"}


class SentenceReader(Judging):
    """Reads one sentence into what has been heard of its message."""

    def read(self) -> None:
        """Hear what the sentence asks for and says."""
        heard = self.heard
        found = clauses(self.tokens, self.sentence.mark, self.sentence.polite)
        lost = self.sentence.broken or (self._is_gibberish() and not self._names_a_product())
        remark = not lost and not any(clause.kind == ASK for clause in found) and self._is_strange()
        for clause in found if not (lost or remark) else ():
            self._told(clause)
        leads = not self.sentence.mark and any(clause.kind == ASK for clause in found)
        if self.sentence.mark != "?" and "?" in self.text[self.tokens[-1].end if self.tokens else 0 :]:
            found = [replace(clause, kind=STATEMENT) if self._echoes(clause) else clause for clause in found]
        self._is_line = self.sentence.listed or heard.line
        heard.reports = self._reports(found)
        heard.line = heard.reports and self._is_line and not self.sentence.mark
        if heard.reports:
            found = [replace(clause, kind=STATEMENT) for clause in found]
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
        elif not (heard.reports and self._is_line):
            self._wait(found)
        items = tuple(dict.fromkeys(int(token.means[0][1]) for token in self.tokens if token.stem == ITEM))
        if len(items) == 1 or (items and leads):  # "And the kettle and the rug - any wishes?"
            heard.topics = items

    def _echoes(self, clause: Clause) -> bool:
        """Tell whether a clause without a question mark, before a question with one, only repeats what it heard: "Blue,
        then.", "You want a kettle.", "I understand it is a gift."."""
        stems = self.stems[clause.start : clause.end]
        if clause.kind != ASK or self._leads(clause) or "or" in stems:
            return False
        answers = stems[-1] in TAGS and stems[0] not in AUXILIARY  # "Blue, okay."
        if not (clause.guessed or answers):
            return stems[0] == "you" or (stems[0] in SPEAKER and stems[1:2] in _SUPPOSED)
        if any(one.meaning == "open:adds" for one in self._finds(clause)):
            return False  # "Anything special for the kettle: brand, color?"
        got = stems[-2:] == ["get", "it"]
        return bool(MARKED & set(stems)) and (got or all(one.values for one in self._named_in([clause])))

    def _reports(self, found: Sequence[Clause]) -> bool:
        """Tell whether the sentence only names things or amounts, as a line of a list or a result does: "1. Acme Tea
        Kettle - $40, 2 days", "Still fits: $40."."""
        asks = self.sentence.mark == "?" or self.heard.lists or "or" in self.stems
        if asks or not all(clause.guessed or clause.kind != ASK for clause in found):
            return False
        named = MARKED & set(self.stems) or self._names_a_product()
        if self.sentence.listed and named and not self.heard.asks:
            return True
        amounts = (MARKED - {ITEM, VALUE, NUMBER}) & set(self.stems)
        plain = set(self.stems) <= MARKED | _BETWEEN
        return bool(amounts) and plain and (self._is_line or self.sentence.mark == "." or len(amounts) > 1)

    def _names_a_product(self) -> bool:
        """Tell whether a line of a list begins with a name that this customer may not know: "- Acme Kettle: $40"."""
        goes_on = _AMOUNT.match(self.text, self.tokens[-1].end) if self.tokens else None
        return self.sentence.listed and bool(ITEM in self.stems or goes_on)

    def _goes_on(self) -> bool:
        """Tell whether the sentence goes on with the question before it: "... right? And Vintage looking"."""
        verbs = WH | AUXILIARY | SPEAKER
        return self.heard.asks and self.stems[:1] in (["and"], ["or"]) and verbs.isdisjoint(self.stems)

    def _is_scope(self) -> bool:
        """Tell whether the sentence only says "per kettle or everything"."""
        place = self.stems.index("or") if "or" in self.stems else 0
        before, after = set(self.stems[:place]), set(self.stems[place + 1 :])
        return bool((EACH & before and ALL & after) or (ALL & before and EACH & after))

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
        offers = ELSEWHERE not in said and any(self._offers(clause, said) for clause in asking)
        if self._is_nonsense(asking, said) and not offers:
            self._lose()
            return
        self._ranks = any(one.meaning == "importance" for clause in asking for one in self._finds(clause))
        told = [clause for clause in found if clause.kind == STATEMENT and clause.start < asking[0].start]
        if any(one.values or "says:picks" in said for one in self._named_in(told)):
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
        heard.asks = (
            heard.asks
            or self.sentence.mark == "?"
            or heard_any
            or heard.which
            or bool(heard.unclear)
            or len(heard.asked) > before[0]
        )

    def _carries(self) -> bool:
        """Hear what carries the last question over to other items ("And for the kettle?"), or asks for all of them."""
        others = [one for one in self.stems if one not in CARRYING]
        if (self.sentence.mark != "?" and "same" not in self.stems) or not others or set(others) != {ITEM}:
            return False
        heard, items = self.heard, self._items(Clause(0, len(self.stems), ASK))
        carried = [replace(one, item=item) for one in heard.before if not one.values for item in items]
        carried = [one for one in carried if (one.slot, one.item) not in heard.asked]
        if any(one.item not in (-1, *items) for one in heard.before) and carried:
            heard.add(carried)
        elif heard.asks or "what" in self.stems or "how" in self.stems:
            heard.opened(items)
        else:
            return False
        heard.asks = True
        return True

    def _lose(self) -> None:
        """Hear nonsense; what comes after it in the message belongs to it, unless it names something."""
        self.heard.asks = self.heard.lost = True
        self.heard.unclear.append(self._quoted())

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
        if self._offers(clause, meanings):
            heard.agree = True
            return True
        items = self._items(clause)
        scope = self._asks_scope(clause)
        heard.add(
            Question(
                slot,
                item,
                self._values(slot, clause),
                scope and _limits(slot) and slot_type(slot).mark == MONEY,
            )
            for name in named
            for item in items
            for slot in [self._of_item(name, item, clause)]
        )
        joined = clause.start == 0 or self.stems[clause.start - 1] in JOINTS or not self._named
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
        before = self.stems[: clause.start]
        if alone and not adds and self._topic and before[-1:] == [":"] and VALUE not in before:
            heard.add(Question(slot, item) for slot in self._topic for item in items)
            return True  # "Regarding the color: what do you have in mind?"
        if adds or alone:
            self._open(clause, items, alone=not adds, named=bool(named))
        return bool(named or adds or alone or "open:announces" in meanings)

    def _offers(self, clause: Clause, meanings: set[str]) -> bool:
        """Tell whether a clause only asks for assent to what the speaker will do: "Then I'll come back to the rug,
        agreed?"; a value or an amount makes a question of it."""
        tokens = self.tokens[clause.start : clause.end]
        stems = [token.stem for token in tokens]
        marked = any(token.stem in MARKED - {ITEM} and not _is_thing(token) for token in tokens)
        if self.sentence.mark != "?" or marked or self._leads(clause):
            return False
        will = stems.index("will") if "will" in stems[1:LEAD_IN] else 0
        says = will and stems[will - 1] in ("i", "we") and stems[will + 1] not in _SUPPOSING
        return "says:offers" in meanings or bool(says and stems[-1] in TAGS)

    def _is_other(self, one: Found, clause: Clause) -> bool:
        """Tell whether words for anything else only end a choice of values, or what the speaker leaves out is named:
        "in red, in blue or something else?", "Shall I leave out everything under $20?"."""
        stems = self.stems[clause.start : clause.end]
        if not {VALUE, *AMOUNTS} & set(stems):
            return False
        offers = stems[0] in _OFFERING and stems[1:2] in (["i"], ["we"]) and not _ASKED & set(stems[2:6])
        return offers or (self.stems[one.start - 1 : one.start] == ["or"] and clause.end - one.end <= 1)

    def _limited(self, found: Sequence[Found]) -> list[str]:
        """Name what a limit in words for any is of, from the sentence before: "Prices differ. Where is your limit?"."""
        slots = [one for one in found if _limits(self.vocabulary.slot_of(one.meaning))]
        if (
            not slots
            or self.heard.asked
            or any(one.pattern.strong or MARKED & (one.pattern.row[0] or MARKED) for one in slots)
        ):
            return []
        return [one.slot for one in self.heard.waiting if _limits(one.slot)][:1]

    def _topic_of(self, clause: Clause) -> list[str]:
        """Name what a clause asks the reach of: "The deadline, does it hold for everything?"."""
        stems = set(self.stems[clause.start : clause.end])
        within = self.stems[clause.start : clause.end]
        if self._topic and set(within) <= MARKED | JOINTS | _MANY:
            return self._topic  # "Parcels: 2 or 3?", "Parcels: how many?"
        points = _POINTS & set(self.stems[clause.start : clause.start + LEAD])
        return self._topic if points and stems & (EACH | ALL | _ALONE) else []

    def _open(self, clause: Clause, items: Sequence[int], alone: bool, named: bool) -> None:
        """Hear a clause that asks for whatever there is; `alone`: in words that count where nothing is named."""
        heard, stems = self.heard, self.stems[clause.start : clause.end]
        speaks = bool({"i", "we", "me", "us"} & set(stems))
        if alone and stems[0] in _OFFERING and stems[1:2] in (["i"], ["we"]) and not _ASKED & set(stems[2:6]):
            heard.agree = True  # "Shall I go on?"
        elif alone and (
            ({"i", "we"} & set(stems[:2]) and WH.isdisjoint(stems))
            or (self.stems[0] in SPEAKER and self.sentence.mark != "?")
        ):
            heard.announced = True
        elif (
            not named
            and (alone or speaks or MORE_TO_COME & set(stems))
            and (stems[-1] == ":" or self.sentence.colon)
        ):
            heard.announced = True  # "I need some more details:", "Tell me about the kettle:"
        elif not (named or heard.asked or self.sentence.mark == "?") and self._needs_information(stems):
            heard.announced = True  # "I need a bit more information. What did you buy?"
        elif alone and not named and self._refers(clause):
            heard.add(heard.waiting)  # "Is that the one?" after a sentence that named values
        else:
            self._alone = self._alone or (alone and not heard.open)
            heard.opened(items)

    def _needs_information(self, stems: Sequence[str]) -> bool:
        """Tell whether words only say that the speaker needs to know more."""
        return self.stems[0] in SPEAKER and bool(_NEEDED & set(stems)) and WH.isdisjoint(stems)

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
        if "says:picks" in meanings and self.heard.asks and self.heard.before and ITEM not in self.stems:
            return True  # "I forgot to ask about the color. What would suit you?"
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
        marks = {VALUE, *AMOUNTS} & stems
        slot_of = self.vocabulary.slot_of
        before = any(
            one.pattern.strong and one.start < min(ends)
            for one in found
            if slot_of(one.meaning) or one.meaning == "open:adds"
        )
        adds = any(one.meaning == "open:adds" for one in found)
        if (marks or before) and (named or adds):
            return False
        right = bool(_RIGHT & stems and (_POINTED & stems or stems <= _RIGHT))
        if right or any(one.meaning == "says:which" for one in found):
            self.heard.add(one for one in self.heard.waiting if one.values)
        return True

    def _otherwise(self, found: Sequence[Clause], said: set[str]) -> None:
        """Hear a sentence that asks, in which no slot was recognised and nothing open."""
        heard, foreign = self.heard, self._foreign(found)
        telling = "says:tells" in said or bool(TELL & set(self.stems))
        said_of_several = telling and _PLURAL & set(self.stems) and not foreign
        sure = self.sentence.mark == "?" or any(map(self._leads, found))
        if "says:refers" in said and sure and any(one.values for one in heard.waiting):
            heard.add(heard.waiting)
        elif heard.waiting and not heard.asked and said_of_several:
            heard.add(heard.waiting)  # "The rate depends on your status and address. Please state both."
        elif heard.asked and said_of_several:
            return  # "It depends on your status and address. Could you share both?"
        elif heard.lost and not said & {"says:agree"}:
            heard.unclear.append(self._quoted())
        elif "says:which" in said and (not foreign or ITEM in self.stems):
            heard.which = True
        elif said & {"says:agree", "says:right"} or (
            "says:consent" in said and not foreign and not self._wonders(found)
        ):
            heard.agree = True
        elif self._is_tag(found):
            if set(self.stems) <= _RIGHT:
                heard.add(one for one in heard.waiting if one.values)  # "I see red here. Right?"
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
        stems = self.stems[clause.start : clause.end]
        offered = (
            NUMBER in stems and ITEM not in stems and stems.count(VALUE) > 1
        )  # "Two are left, red and blue."
        if "says:unavailable" in meanings and not offered:
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


def _limits(slot: str | None) -> bool:
    return slot is not None and slot_type(slot).op != "=="
