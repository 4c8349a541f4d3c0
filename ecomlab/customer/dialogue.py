"""The dialogue manager: rules that choose the customer's acts from what a message asks and from the mistakes in sight.

A reply tells at most three slots: those that are asked for by name, in the order of asking, then up to two for an open
question. Nothing here knows how the customer words it.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar

from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.meaning import (
    CHAIN,
    CORRECTION,
    RANKED,
    Hearing,
    Meaning,
    agrees,
    asks_to_keep,
    called,
    comparable,
    decides,
    described,
    describes,
    is_worth,
    meant,
    quoted,
    repeats,
    said_number,
    said_words,
    speaks_of_the_past,
    verdict,
)
from ecomlab.customer.opinions import Opinion, Thing, points_back
from ecomlab.customer.reading.mentions import SURE, Said
from ecomlab.customer.reading.reading import LEAVE, NO_ITEM, Question, Reading
from ecomlab.customer.templates import SENTENCE_BREAK, Template
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import Slot
from ecomlab.values import in_speech
from ecomlab.wishes import AnyBut, Demand, If, OneOf, Wish
from ecomlab.world.ranking import Worth
from ecomlab.world.substitutes import noun

_T = TypeVar("_T")
PATIENCE = 3
"""Ignored corrections or stalls in a row that end the episode."""
REPEATS = 2
"""Ignored corrections of one mistake after which the customer gives up."""
GUESSES = 2
"""Wrong identifications in an episode that end it."""
AT_ONCE = 3
"""Most slots told in a reply, most topics of a message that is not a form letter, most withheld slots that a correction
reveals, most candidates to choose from."""
OPEN = 2
"""Most slots told in answer to an open question, where more than fit in a reply are left."""

COUNTS = frozenset(("count", "quantity", "units", "items"))
"""Slots that count things."""
DAYS = frozenset(("placed", "when", "ordered", "delivered"))
"""Slots that are days."""
ALIKE = frozenset(("relation", "placed", "when", "place", "thing", "things"))
"""Slots of orders, of which one can be said by the value of another."""
FAINT = -30
"""Score of a day up to which it is hardly that of the order that is meant; of several such the last is."""
LOST = frozenset(("brand", "feature", "was_brand", "was_feature", "which"))
"""Slots of what sold out."""
LISTS = frozenset(("parts", "must", "replacement"))
"""Slots that hold several values."""
OWN = "own questions"
"""Name of what an agent asks who asks for the customer's questions."""
REPLACING = frozenset(("replacement", "only_if"))
"""Slots of what comes in place of what goes back, and of when."""
LISTED = frozenset(("parts", "added"))
"""Slots of what else is on a list."""
FAULTS = 2
"""Most faults of a summary or a plan that are named."""
_WRONG = re.compile(
    r"\b(?:wrong|incorrect|mistakes?|not right|isn't right|off|inaccurate|inaccuracies|change|fix|correct|"
    r"(?:not|(?:does|is|do)n't) suit\w*)\b",
    re.IGNORECASE,
)
"""Words of a question what is wrong."""
_ASKS = re.compile(r"\b(?:what|which|how|when|where|who|any)\b[^.!?]*\?\s*$", re.IGNORECASE)
"""A last sentence that yes is no answer to."""
_WHICH = re.compile(
    r"\bwhich (?:order|one|\w+ do you mean)\b|\b(?:that|this|it) the (?:order|one) (?:that )?you\b",
    re.IGNORECASE,
)
"""Words of a question which thing or order they mean."""
_NEW = re.compile(r"\b(?:replacement|exchange|another one|(?:a|the) new [a-z]+)\b", re.IGNORECASE)
"""Words for what comes in the place of what goes back."""
_BESIDE = re.compile(r"\b(?:besides|beside|apart from|aside from|other than|beyond)\b", re.IGNORECASE)
"""Words after which a message names what it does not ask for."""
_OVER = re.compile(
    r"\b(?:over|above|beyond|exceeds?) (?:your|the) (?:budget|limit|maximum|price limit)\b", re.IGNORECASE
)
"""Words by which what is offered costs more than is allowed."""
_MAY_I = re.compile(r"\b(?:shall|should|may|can|could) (?:i|we)\b", re.IGNORECASE)
"""Words by which leave is asked to do something, and not only whether something suits, as in `LEAVE`."""
_SUITS = re.compile(
    r"\b(?:is|are|does|do) (?:that|this|it|these|those|they|you|everything)(?: all)?(?: be)? "
    r"(?:right|fine|good|ok(?:ay)?|all right|happy|what you|suit|like|work)\b[^.?!]*\?",
    re.IGNORECASE,
)
"""Words that ask whether something suits, not whether it may be done."""
_DEED = re.compile(
    r"\b(?:orders?|returns?|refunds?|cart|basket|list|labels?|search|shortlist|selection|account|history|case|"
    r"replacements?|exchange|policy|rules?|book|parcels?|answer|question|status|items?|products?|suggestions?)\b"
)
"""Words by which a request for consent names what is to be done."""


@dataclass(frozen=True)
class Reply:
    """The customer's answer, and the slots that it reveals."""

    acts: list[Act]
    news: tuple[Slot, ...] = ()
    did: frozenset[str] = frozenset()
    """What the message did: of "summary", "consent", "closing", "courtesy", "question"."""

    @property
    def revealed(self) -> bool:
        """True if it told something that had been withheld."""
        return bool(self.news)


@dataclass(frozen=True)
class Claim:
    """What a message says of a wish, the customer's slot that it is about, and whether it is so; `absent`: they have
    no such wish."""

    said: Said
    slot: Slot | None
    so: bool | None
    absent: bool = False

    @property
    def is_guess(self) -> bool:
        """True if it says what a wish comes to, where its words do not tell."""
        return self.so is None and self.slot is not None and isinstance(self.slot.value, Wish)

    @property
    def of_hidden(self) -> bool:
        """True if it says what the wish's own words do not list."""
        wish = self.slot.value if self.slot is not None else None
        wish = wish.value if isinstance(wish, Demand) else wish
        return self.is_guess and not isinstance(wish, AnyBut | OneOf | Worth)


@dataclass
class Tally:
    """Questions that a customer was asked: how many, slots learned by them, and those about what this customer cannot
    have."""

    questions: int = 0
    learned: int = 0
    absent: int = 0


@dataclass
class DialogueManager:
    """Chooses what one customer says in one episode. `type_name` names the product type that an item is called by,
    `option` the option in which its variants differ."""

    state: GoalState
    type_name: Callable[[int], str]
    option: Callable[[int], str] = lambda _: ""
    templates: Mapping[str, Template] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    """Number of times that each standing mistake has been ignored, by its name."""
    given_up: set[str] = field(default_factory=set)
    """Mistakes that the customer no longer mentions."""
    skipped: set[int] = field(default_factory=set)
    """Items that the customer has given up: never mentioned again, still scored."""
    annoyed: int = 0
    """Ignored corrections and stalls in a row."""
    right: int = 0
    """Most wanted units that have stood in the world, since the customer last changed their mind."""
    astray: bool = False
    """True from a mistake until something more is right."""
    guessed: int = 0
    """Wrong identifications so far."""
    strays: int = 0
    """Lists to choose from that held something which somebody who listened would not have named."""
    untold: int = 0
    """Times that something was put there before the customer had said which one they mean."""
    heard: set[tuple[str, int]] = field(default_factory=set)
    """Questions that were asked before; asking again tells nothing new, and is a stall."""
    refused: list[Act] = field(default_factory=list)
    """What was said against the last summary or plan."""
    tally: Tally = field(default_factory=Tally)
    today: date | None = None
    """The day by the customer's clock, where the task has one."""
    in_hand: Callable[[], frozenset[str]] = frozenset
    """Values of the order lines that they may mean, in lower case."""
    refused_by_shop: bool = False
    """They have heard that something cannot be had: what would come in its place is no matter any more."""
    asks_where: set[str] = field(default_factory=set)
    """Slots that they do not know, and of which they have asked where they can look them up."""
    liked: Collection[tuple[int, str]] = ()
    """Items with looks that they have said they like."""
    settled: Callable[[], bool] = bool
    """True where what they asked for has been done: there is nothing to tell of it any more."""

    @property
    def tells_facts(self) -> bool:
        """True if such customers tell facts of an order or a case, not only wishes."""
        return bool(self.templates.keys() & (DAYS | {"tier"}))

    @property
    def out_of_patience(self) -> bool:
        return self.annoyed >= PATIENCE or self.guessed >= GUESSES or self.untold >= PATIENCE

    # Answers.

    def react(self, reading: Reading, text: str) -> Reply:
        """Answer a message that names nothing the customer could recognise: what it says of their wishes, then what it
        asks for. Without acts where it calls for no answer."""
        asks_why = ("SET" in reading.acts and not self.tells_facts) or (
            not reading.calls_for and text.rstrip().endswith("?")
        )
        reading, again = self._without_repeated(reading, text)
        if (self.refused or asks_why) and not reading.questions and not reading.said and _WRONG.search(text):
            return Reply(list(self.refused) or [Act("as wanted")])
        if reading.which and reading.things:  # which of some that they have no opinion of
            reading = replace(reading, calls_for=reading.calls_for - {"judge"})
        checked = self._checked(reading, text)
        if "judge" in reading.calls_for:
            reply = self.confirm(reading, text, again=again)
        elif checked or (again and not (reading.questions or reading.open)):
            self.tally.questions += 1
            said = replace(reading, said=(*reading.said, *checked))
            reply = self.confirm(said, text, asked=True, again=again)
            reading = replace(reading, questions=(), calls_for=reading.calls_for - {"ask"})
        elif reading.said:  # what is only told is set right, not confirmed
            exactly = not _shows(reading)
            told = self._judged(reading.said)
            wrong = [said for said in told if (one := self.claim(said, exactly)).so is False or one.is_guess]
            right = bool(told) and all(self.claim(said, exactly).so for said in told)
            reply = self.confirm(replace(reading, said=tuple(wrong)), text) if wrong else Reply([])
            if right and not reading.calls_for:
                reply = Reply([Act("yes")])
        else:
            reply = Reply(self.mistaken(reading))
        if not reading.calls_for & {"ask", "open", "back"}:
            return reply
        rest = self.answer(reading, text, len(reply.news))
        acts = [act for act in rest.acts if act.kind not in ("yes", "no")] if reply.acts else rest.acts
        if any(act.kind == "indifferent to" for act in reply.acts):
            acts = [act for act in acts if act.kind != "indifferent"]
        return Reply(list(_distinct([*reply.acts, *acts])), (*reply.news, *rest.news))

    def _checked(self, reading: Reading, text: str) -> list[Said]:
        """List what a message asks about only whether it is so: "You need four within three days, don't you?"."""
        asked = [said for said in reading.mentions if said.asked and said.claimed]
        unsure = {said.slots[0] for said in reading.mentions if said.asked and not said.claimed}
        if (
            reading.calls_for & {"ask", "why"} != {"ask"}
            or reading.acts & {"SET", "CHOICE"}
            or (reading.which or reading.unclear or reading.things)
            or unsure & {question.slot for question in reading.questions}
            or (_ASKS.search(text) or _BESIDE.search(text))
        ):
            return []
        if asks_to_keep(text) and self.state.named("must"):
            return []  # whether it has to stay, not what it was
        claims = [self.claim(said) for said in asked]
        if any(one.so is False and one.slot is None for one in claims):
            return asked  # of something that is not wanted at all
        values = Counter((said.slots[0], said.item) for said in asked)
        either = max(values.values(), default=0) > 1 and " or " in text
        open_ = any(len(one.values) != 1 and one.slot not in LISTS for one in reading.questions)
        if either or open_ or any(one.scope for one in reading.questions):
            return []
        return [] if any(one.absent or one.said.denied for one in claims) else asked

    def mistaken(self, reading: Reading) -> list[Act]:
        """Say what a question whether something is so takes for wished for beside what it asks, and is not: "So that's
        four red collars, right?"."""
        asked = {question.slot for question in reading.questions}
        if not reading.questions or any(len(question.values) != 1 for question in reading.questions):
            return []
        beside = [
            said for said in reading.mentions if said.asked and said.claimed and not asked & set(said.slots)
        ]
        faults = [one for one in map(self.claim, beside) if one.so is False][:FAULTS]
        return [Act("no"), *self._set_right(faults)] if faults else []

    def _set_right(self, faults: Sequence[Claim], but: Sequence[Slot | None] = ()) -> list[Act]:
        """Say what holds in the place of claims, where it has been told, and which of the others, `but` for those of
        these slots, are wrong."""
        known = [one.slot for one in faults if one.slot is not None and one.slot in self.state.known]
        return [*self.again(known), *(a for one in faults if one.slot not in but for a in self._refused(one))]

    def _without_repeated(self, reading: Reading, text: str) -> tuple[Reading, list[Slot]]:
        """Leave out what a message says in a wish's own words, or a chain's; return these wishes too."""
        wishes = [slot for slot in self.state.known if isinstance(slot.value, Wish) or slot.name == CHAIN]
        again = [slot for slot in wishes if repeats(text, slot.value)]
        if not again:
            return reading, []
        held = {value for slot in again for value in said_words(slot.value)}

        def others(every: Sequence[Said]) -> tuple[Said, ...]:
            return tuple(one for one in every if one.value.lower() not in held)

        asked = tuple(
            one
            for one in reading.questions
            if any(value.lower() not in held for value in one.values)
            or not (one.values or any(slot in again for slot in meant(one, self.state, self.option)))
        )
        left = reading.calls_for if asked else reading.calls_for - {"ask"}
        others_said, mentions = others(reading.said), others(reading.mentions)
        return replace(reading, said=others_said, mentions=mentions, questions=asked, calls_for=left), again

    def confirm(self, reading: Reading, text: str, asked: bool = False, again: Sequence[Slot] = ()) -> Reply:
        """Judge what a summary, a plan or an offer says, or a question where it is `asked`, `again` being wishes in
        their own words: up to two faults are named, what is withheld without its value where it was not asked for, and
        nothing that is wrong is affirmed. What a wish comes to is neither affirmed nor denied: they say it again."""
        values = Counter((said.slots[0], said.item) for said in set(reading.said))
        either = " or " in text.lower()
        choices = [s for s in reading.said if either and values[s.slots[0], s.item] > 1]
        judged = [s for s in self._judged(reading.said) if s not in choices]
        claims = [self.claim(said, exactly=not _shows(reading)) for said in judged]
        chosen = [one for one in map(self.claim, choices) if one.so]
        claims += chosen or [self.claim(said) for said in choices[:1]]
        claims += self._offered(reading, text)
        claims += [Claim(Said((s.name,), ""), s, None if decides(text, s.value) else True) for s in again]
        faults = list(_distinct(one for one in claims if one.so is False))
        if not faults and self._unknown([one.said.slots[0] for one in claims if one.absent]):
            return Reply(self._ask_where([one.said.slots[0] for one in claims if one.absent]))
        asks = asked or (text.rstrip().endswith("?") and not reading.acts & {"SUMMARY", "CONSENT"})
        wanted = [one.slot for one in claims if asks and not one.so and one.slot in self.state.withheld]
        wanted = wanted if len(claims) <= FAULTS else []
        if faults:
            named = faults[:FAULTS]
            limits = all(
                one.slot in wanted and slot_type(one.slot.name).op != "==" for one in named if one.slot
            )
            said = [] if limits and all(one.slot for one in named) else [Act("no")]
            acts = [*said, *self._set_right(named, wanted)]
            news = self._told(wanted)
            acts += self.spoken("elaborate", news)
            self.refused = [act for act in acts if act.kind != "no"]
            return Reply([*acts, *([Act("not all")] if len(faults) > FAULTS else [])], tuple(news))
        self.refused = []
        self.annoyed = 0
        if guessed := list(_distinct(one.slot for one in claims if one.is_guess)):
            news = self._told(guessed)
            repeated = [slot for slot in guessed if slot is not None and slot not in news][:AT_ONCE]
            acts = self.again(repeated) + self.spoken("elaborate", news)
            return Reply(acts, tuple(news))
        right = [one.slot for one in claims if one.so and one.slot is not None]
        news = self._told([*right, *wanted])
        lacking = [one.said for one in claims if one.absent and one.said.slots[0] not in self.state.own]
        lacking = lacking if len(lacking) == len(claims) == 1 else []  # nobody denies beside a yes
        repeated = [one.slot for one in chosen if one.slot is not None]
        free = [
            *self.again(repeated),
            *self.spoken("elaborate", [s for s in news if s in wanted]),
            *self._absent([Question(said.slots[0], said.item) for said in lacking], beside=True),
        ]
        if chosen:  # "two or three?"
            return Reply(free, tuple(news))
        if "SUMMARY" in reading.acts:
            asks = bool(reading.calls_for & {"ask", "open"})
            forgotten = [] if asks else self._told(self._left([])[:1])
            fits = self._yes_to(text) if "CONSENT" in reading.acts else "yes"  # "... Shall I go ahead?"
            return Reply([Act(fits), *free, *self.spoken("mention", forgotten)], (*news, *forgotten))
        if "CONSENT" in reading.acts:
            named_it = reading.names or _DEED.search(text.lower())
            return Reply([Act(self._yes_to(text) if named_it else "to what"), *free], tuple(news))
        if "OFFER" in reading.acts:
            takes = "consent" if _MAY_I.search(text) else "as wanted"
            offered = [self.claim(one, exactly=False) for one in (*reading.said, *reading.mentions)]
            if not offered:
                takes = "decline"
            elif not LEAVE.search(text) and not self.tells_facts and all(one.absent for one in offered):
                takes = "indifferent"  # "Would one with two doors do as well?"
            said = [] if wanted else [Act(takes)]
            return Reply([*said, *(free if wanted else ())], tuple(news))
        if claims and not any(one.so for one in claims):  # neither so nor not
            unsure = [one.slot for one in claims if one.slot is not None and one.slot not in news]
            return Reply(free or self.again(unsure), tuple(news))
        told = "acknowledge answer" if len(SENTENCE_BREAK.split(text)) > 1 else "say what"
        return Reply([Act("yes" if claims else told), *free], tuple(news))

    def _yes_to(self, text: str) -> str:
        """Name the act that says yes to a plan: it may be done, or where that is asked, it suits. Who tells facts
        cannot know whether an answer is right."""
        suits = None if _MAY_I.search(text) else _SUITS.search(text)
        if suits and self.tells_facts:
            return "acknowledge answer" if "what you" in suits[0].lower() else "consent"
        return "as wanted" if suits else "consent"

    def _offered(self, reading: Reading, text: str) -> list[Claim]:
        """List what an offer of one thing says of it that is not as the customer has said."""
        if not reading.acts & {"OFFER", "CONSENT"}:
            return []
        if _OVER.search(text):
            limits = [slot for slot in self.state.known if slot.name in ("price", "budget")]
            return [Claim(Said((slot.name,), ""), slot, False) for slot in limits[:1]]
        said = [
            one
            for one in reading.mentions
            if not (one.claimed or one.denied) and one.slots[0] not in COUNTS | {"must"}
        ]
        values = Counter(slot for slot, _ in {(one.slots[0], one.value) for one in said})
        if any(one.name == "replacement" for one in self.state.known) and not self.state.identified:
            return []  # of which of the two it is said stays open
        claims = [self.claim(one, exactly=False) for one in said if values[one.slots[0]] == 1]
        wrong = "OFFER" in reading.acts
        return [
            one
            for one in claims
            if one.slot in self.state.known and (one.of_hidden or (wrong and one.so is False))
        ]

    def _told(self, slots: Iterable[Slot | None]) -> list[Slot]:
        """Take note that these slots have been told."""
        news = self.state.reveal(_distinct(slot for slot in slots if slot is not None))
        self.tally.learned += len(news)
        return news

    def claim(self, said: Said, exactly: bool = True) -> Claim:
        """Compare a value that a message says with the customer's wishes: of the slots that it may be one of, the one
        that it is right for, else one that it is wrong for. `exactly`: a limit is right only if it is the very one."""
        found: list[Claim] = []
        known = {slot.name for slot in self.state.known}
        unsure = DAYS if known & {"relation", CORRECTION} else frozenset[str]()
        if set(said.slots) & (unsure | ({"relation"} if CORRECTION in known else set())):
            return Claim(said, None, None)  # of which of the orders, it does not say
        if self.refused_by_shop and "replacement" in said.slots:
            return Claim(said, None, None)
        for name in said.slots:
            slots = meant(Question(name, said.item, (said.value,)), self.state, self.option)
            slots = [slot for slot in slots if said.item in (-1, slot.item) or slot.name in self.state.own]
            slots = [slot for slot in slots if comparable(name, slot) or name in ALIKE]
            if name == PRICE.name:  # what something costs is no claim of what is wanted if it does
                slots = [slot for slot in slots if not isinstance(slot.value, If)]
            for slot in slots:
                so = self._is_so(slot, said.value, exactly and said.score > SURE)
                found.append(Claim(said, slot, so if so is None else so != said.denied))
            if slot_type(name).mark == "MONEY":
                number = said_number(name, said.value)
                named = [one for one in self.state.known if isinstance(one.value, Wish)]
                named = [one for one in named if number in one.value.amounts]
                found += [Claim(said, one, not said.denied) for one in named]
            replaced = None if slots else self._replaced(name, said.value)
            if replaced is not None:
                found.append(Claim(said, self.state.named("replacement"), replaced))
            if not slots and name in ("quantity", "units") and self.type_name(max(0, said.item)):
                number = said_number(name, said.value)
                found.append(Claim(said, None, None if number is None else number == 1))
            if not slots and name == "relation" and said.score > SURE:  # they mean the order they describe
                found.append(Claim(said, None, said.denied))
            if not slots and name == "type":
                listing = self._listing(said.value)
                beside = any(by["type"] == said.value for _, by in self.state.looked_at)
                so = None if beside else listing is not None or said.denied
                found.append(Claim(said, listing, so))
        items = {slot.item for slot in self.state.every if slot.name not in self.state.own}
        if said.item < 0 and len(items) > 1:  # it may be said of something else
            found = [one for one in found if one.so or not one.slot or one.slot.name in self.state.own]
        right = next((one for one in found if one.so), None)
        guess = next((one for one in found if one.is_guess), None)
        wrong = guess or next((one for one in found if one.so is False), None)
        if wrong and not right and not said.new and said.value.lower() in self.in_hand():
            return Claim(said, None, None)
        return right or wrong or (found[0] if found else Claim(said, None, None, absent=True))

    def _judged(self, every: Sequence[Said]) -> list[Said]:
        """Leave out what else is in an order: a customer who remembers one thing denies no other."""
        contents = [said for said in every if "thing" in said.slots]
        if len(contents) < 2:
            return list(every)
        return [said for said in every if said not in contents or self.claim(said).so]

    def _listing(self, kind: str) -> Slot | None:
        """Find the slot that lists a type among other things that are wanted."""
        slots = (one for one in (*self.state.withheld, *self.state.known) if one.name in ("parts", "added"))
        return next((one for one in slots if kind in one.value), None)

    def _is_so(self, slot: Slot, value: str, exactly: bool) -> bool | None:
        """Tell whether a value is a slot's, or one of what replaces something that goes back."""
        if slot.name in ("relation", CORRECTION) and value in ("before", "after"):
            return slot.value == (1 if value == "before" else -1)
        if slot.name == "replacement":
            if self.state.named("only_if"):
                return None  # they want one of the two, and cannot tell which
            return {"money": not slot.value, "another": bool(slot.value)}.get(value)
        if slot.name == "must":
            return noun(value) in slot.value
        if slot.name == "importance":
            said = [RANKED.get(one, one) for one in value.split(", ")]
            return said == list(slot.value)[: len(said)]
        if isinstance(slot.value, Worth):
            return is_worth(slot.value, value)
        if (slot.item, value) in self.liked:
            return True
        if exactly and slot_type(slot.name).op != "==" and not isinstance(slot.value, Wish):
            number = said_number(slot.name, value)
            return None if number is None else number == slot.value
        so = agrees(slot, value, self.templates.get(slot.name), "", self.today)
        return so or (True if self._replaced(slot.name, value) else so)

    def _replaced(self, name: str, value: str) -> bool | None:
        """Tell whether a value is wanted of what replaces something that goes back; None if none is for the slot."""
        slots = (one for one in self.state.every if one.name == "replacement")
        wanted = {str(of): one for slot in slots for of, one in slot.value}
        if name not in wanted or isinstance(wanted[name], Wish):
            return None
        if slot_type(name).op != "==":
            return said_number(name, value) == wanted[name]
        return str(wanted[name]).lower() == value.lower()

    def _refused(self, one: Claim) -> list[Act]:
        """Say what is wrong with a claim that no slot known to the agent answers."""
        if one.slot is None:
            kind = self.type_name(max(0, one.said.item))
            if one.said.slots[0] in ("quantity", "units"):
                return [Act("just one", kind)]
            if one.said.slots[0] == "relation":
                return self.repeated()
            return [Act("wrong about", seen=f"the {in_speech(one.said.value)}")]
        about = f"the {in_speech(one.said.value)}" if "type" in one.said.slots else called(one.slot.name)
        return [Act("wrong about", seen=about)] if one.slot in self.state.withheld else []

    def of_wishes(self, acts: Sequence[Act], reading: Reading) -> list[Act]:
        """Say of what comes in the place of what goes back that they do not mind, not that they do not know."""
        wants = any(one.name == "replacement" and one.value for one in self.state.known)
        kinds = [slot_type(question.slot) for question in reading.questions if question.slot != "replacement"]
        of_it = (
            self.state.identified
            or bool(reading.which and reading.things)
            or len(kinds) < len(reading.questions)
        )
        of_it &= all((kind.describes or kind.is_limit) and kind.name not in DAYS for kind in kinds)
        if not (wants and of_it):
            return list(acts)
        return [replace(act, kind=act.kind.replace("indifferent", "no preference")) for act in acts]

    def _opened(self, reading: Reading, text: str) -> Reading:
        """Read as open what asks for whatever there is without saying so: "Which one do you mean?", "What about the
        kettle?", "And the kettle, besides its color?", and "Is anything else on the list?" once the list is known."""
        if _BESIDE.search(text):
            beside = tuple(q for q in reading.questions if self.is_known(q))
            items = tuple(dict.fromkeys(q.item for q in beside if q.item >= 0)) or reading.open_items
            if beside and len(beside) == len(reading.questions):
                calls_for = reading.calls_for | {"open"}
                return replace(reading, questions=(), calls_for=calls_for, open_items=items)
        more = [q for q in reading.questions if q.slot == "parts" and not q.values and q.item < NO_ITEM]
        if more and not any(slot.name == "parts" for slot in self.state.withheld):
            questions = tuple(q for q in reading.questions if q not in more)
            return replace(reading, questions=questions, calls_for=reading.calls_for | {"open"})
        which = (reading.which or bool(_WHICH.search(text) and self.state.withheld)) and not reading.names
        about = reading.open_items and not (reading.which and reading.things)
        if (which or about) and not reading.questions and "back" not in reading.calls_for:
            return replace(reading, calls_for=reading.calls_for | {"open"}, unclear=())
        return reading

    def _of_the_new(self, reading: Reading, text: str) -> Reading:
        """Take what is asked of what comes in the place of what goes back for a question for that."""
        if not self._speaks_of_new(text):
            return reading
        asks = Question("replacement")
        kinds = [(question, slot_type(question.slot)) for question in reading.questions]
        of_it = (asks if kind.describes or kind.is_limit or kind.name in DAYS else q for q, kind in kinds)
        return replace(reading, questions=tuple(dict.fromkeys(of_it)))

    def _speaks_of_new(self, text: str) -> bool:
        """Tell whether a message speaks of what comes in the place of what goes back."""
        wants = any(slot.name == "replacement" and slot.value for slot in self.state.every)
        return wants and not self.refused_by_shop and _NEW.search(text) is not None

    def is_known(self, question: Question) -> bool:
        """Tell whether all that a question may mean has been told."""
        slots = meant(question, self.state, self.option)
        return bool(slots) and not any(slot in self.state.withheld for slot in slots)

    def _vague(self, reading: Reading, text: str) -> Reply | None:
        """Answer a message that asks for nothing that a customer could have; None if it does."""
        if "ask" in reading.calls_for and not (reading.questions or reading.open or reading.unclear):
            if _WHICH.search(text) and not self.state.withheld and self.tells_facts:
                return Reply(self.repeated())
            pointed = self.state.identified and points_back(text)
            # Most of a case's facts nobody knows; of wishes it may be one that is withheld.
            sure = self.tells_facts or reading.foreign or "LIST" in reading.acts or not self.state.withheld
            return Reply([Act("this one" if pointed else "indifferent" if sure else "ask back")])
        listed = [q for q in reading.questions if q.slot == "parts" and q.item >= NO_ITEM]
        only = bool(listed) and len(listed) == len(reading.questions) and not reading.open
        only |= not reading.questions and min(reading.open_items, default=0) >= NO_ITEM
        return Reply([Act("indifferent")]) if only else None  # wishes for what is only listed

    def answer(self, reading: Reading, text: str, said: int = 0) -> Reply:
        """Answer what a message asks for, beside so many slots that have been told."""
        if self._checks_the_list(reading, text):
            self.tally.questions += 1
            return Reply([Act("yes")])
        reading = self._opened(self._of_the_new(reading, text), text)
        vague = self._vague(reading, text)
        if vague is not None:
            return vague
        self.tally.questions += 1
        heard = Hearing(self.state, self.templates, self.option, text, self.today).meanings(reading)
        asked = [one for one in heard if not one.echo]
        if not (asked or reading.open or reading.unclear):
            if "CHECK" not in reading.acts and all(q.slot == "parts" for q in reading.questions):
                return Reply([Act("indifferent")])
            told = [slot for one in heard if one.echo and one.so is not False for slot in one.slots]
            if told and reading.acts & {"SET", "CHOICE"}:  # "Which coat was it?"
                return Reply(self.again(told))
            only = told and text.rstrip().endswith("?") and not _ASKS.search(text)
            return Reply([Act("yes" if only else "ask back")])
        none = not any(one.slots for one in asked) and not self.state.identified
        titled = all(slot_type(q.slot).names and q.values for q in reading.questions)
        if none and titled and reading.which and not reading.things:  # "X's or Y's?", and neither is known
            reading = replace(reading, calls_for=reading.calls_for | {"open"})
        fresh = any((one.question.slot, one.question.item) not in self.heard for one in asked)
        self.heard |= {(one.question.slot, one.question.item) for one in asked}
        news, known = self._chosen([one.slots for one in asked])
        left = self._left(news, self._speaks_of_new(text)) if reading.open else []
        if reading.open:
            news += self._named_first(left, reading.open_items)[: told_openly(len(left), len(news) + said)]
        again = [slot for slot in known if not self._goes_without_saying(slot, reading, text)]
        vain = bool(known) and not again and not reading.open
        known = again
        known = known[: AT_ONCE - len(news)]
        if news:  # who asks for more has heard it
            known = [] if reading.open else [s for s in known if s.name not in LISTS | {"importance"}]
        asks_so = "CHECK" in reading.acts and not all(q.values for q in reading.questions)
        openly = "CHOICE" in reading.acts or ("SET" in reading.acts and not asks_so)
        acts = [] if openly else verdict([one for one in asked if one.slots or one.so is not None])
        valued = {slot for said in reading.mentions if said.asked for slot in said.slots}
        echoed = any(one.echo and one.so is not False and one.question.slot in valued for one in heard)
        acts = acts or ([Act("yes")] if echoed and not openly else [])
        news = self.state.reveal(news)
        self.tally.learned += len(news)
        if news:
            self.annoyed = 0
        about = {slot.item for slot in (*news, *known)}
        if reading.open_items and news and not asked and not about & {*reading.open_items}:
            acts.append(Act("indifferent"))  # "What about the kettle?", where only the toaster's are left
        acts += self.spoken("elaborate", news) + self.again(known)
        acts += [Act("just one", self.type_name(item)) for item in self._lone(asked)[: AT_ONCE - len(about)]]
        unknown = [one.question for one in asked if not one.slots]
        implied = {question: self._implied(question) for question in unknown}
        absent = [question for question, said in implied.items() if not said]
        self.tally.absent += bool(absent)
        acts += [act for said in implied.values() for act in said if act.kind != "yes" or not acts]
        named = {slot.name for slot in (*news, *known)}  # of another item
        absent = [question for question in absent if question.slot not in named]
        acts += self._absent(absent, beside=bool(acts or reading.open), text=text)
        acts = acts or ([Act("indifferent")] if vain else [])
        over = reading.open and all(slot in news for slot in left)
        if reading.open:
            acts = [act for act in acts if act.kind not in ("more", "nothing")]
            if over and any(slot.name not in self.asks_where for slot in self.state.unknown):
                acts = [*(act for act in acts if act.kind != "ask where"), *self._ask_where()]
            else:
                acts.append(Act("nothing" if over else "more", clean=True))
        unclear = [words for words in reading.unclear if not acts or words.endswith("?")]
        if unclear:
            acts.append(Act("ask back", seen=quoted(unclear[0])))
        # "Which color or material for those two?" asks the one for its fabric. Who has told all complains of nothing.
        topics = {one.slots[0].name if one.slots else one.question.slot for one in asked}
        untold = any(slot in self.state.withheld for one in asked for slot in one.slots)
        if len(topics) > AT_ONCE and untold and not described(reading):
            return self.stalled([*acts, Act("one at a time")], news)
        # Asking again for what was said, or for more where there is none, and what nobody can follow.
        of_items = {("", item) for item in reading.open_items or (-1,)}
        idle = not fresh and (bool(asked) or (over and of_items <= self.heard))
        lost = bool(unclear) and not asked
        if over:
            self.heard |= of_items
        return self.stalled(acts, news) if (idle or lost) and not news else Reply(acts, tuple(news))

    def _goes_without_saying(self, slot: Slot, reading: Reading, text: str) -> bool:
        """Tell whether a wish that is known need not be said again: what has to stay, where it is asked for more or
        other attributes are named ("Does either of those have to stay the same?"), and what sold out, where nothing is
        said of the past ("Would another brand do?")."""
        if slot.name == "must":
            slots = {name for one in reading.mentions for name in one.slots if name.startswith("attr:")}
            named = {noun(name.removeprefix("attr:")) for name in slots}
            return bool(reading.open or named) and not named & {*slot.value}
        return slot.name in LOST and "must" in self.templates and not speaks_of_the_past(text)

    def _lone(self, asked: Sequence[Meaning]) -> list[int]:
        """List the items of which one is wanted, where it is asked how many of each."""
        each = [one for one in asked if one.question.slot == "quantity" and one.question.item < 0]
        counted = {slot.item for one in each for slot in one.slots}
        if not counted:
            return []
        own = {slot.item for slot in self.state.every if slot.name in self.state.own}
        items = dict.fromkeys(slot.item for slot in self.state.every)
        return [item for item in items if item not in counted | own]

    def _chosen(self, asked: Sequence[Sequence[Slot]]) -> tuple[list[Slot], list[Slot]]:
        """Choose the withheld slots to tell, and those to repeat of the questions that ask for nothing new."""
        news = list(_distinct(slot for slots in asked for slot in slots if slot in self.state.withheld))
        stale = [slots for slots in asked if not any(slot in self.state.withheld for slot in slots)]
        return news[:AT_ONCE], list(_distinct(slot for slots in stale for slot in slots))

    def _left(self, news: Sequence[Slot], of_new: bool = False) -> list[Slot]:
        """List what can still be told to an open question: things first, then what they are to be like; nothing of what
        is done, nor how to tell what goes back once that is clear or where it is asked of what comes in its place."""
        left = [slot for slot in self.state.withheld if slot not in news]
        if self.settled():  # but what comes in place of what goes back is only said at the end
            left = [slot for slot in left if slot.name in REPLACING]
        if self.refused_by_shop:  # what would come in its place is no wish any more
            left = [slot for slot in left if slot.name not in REPLACING]
        if self.state.found:
            left = [slot for slot in left if slot.name not in LOST]
        if self.state.identified or of_new:
            left = [slot for slot in left if not slot_type(slot.name).describes and slot.name not in DAYS]
        return sorted(left, key=lambda slot: slot.name not in LISTED)

    def _named_first(self, slots: Sequence[Slot], items: Sequence[int]) -> list[Slot]:
        """Put the slots of these items first, one of each item in turn."""
        of_item = {item: [slot for slot in slots if slot.item == item] for item in items}
        turn = {id(slot): at for some in of_item.values() for at, slot in enumerate(some)}
        return sorted(slots, key=lambda slot: (slot.item not in of_item, turn.get(id(slot), 0)))

    def opinion(
        self, things: Sequence[tuple[Thing, Opinion]], which: bool, reading: Reading, text: str
    ) -> Reply:
        """Answer a question about things that the customer recognises: is it this one, which of these, may I?"""
        reply = self._opinion(things, which, reading, text)
        if "judge" not in reading.calls_for or any(act.kind == "no" for act in reply.acts):
            return reply
        named = {name for act in reply.acts for name in act.slots}
        beside = [self.claim(said, exactly=False) for said in reading.said]  # a limit may be said to be lower
        faults = [one for one in (*beside, *self._offered(reading, text)) if one.so is False]
        wrong = [one for one in _distinct(faults) if one.slot is not None and one.slot.name not in named]
        acts = self._set_right(wrong[:FAULTS])
        if not acts:
            return reply
        said = [act for act in reply.acts if act.kind not in ("this one", "as wanted", "consent")]
        return replace(reply, acts=[*(said or [Act("no")]), *acts])

    def _opinion(
        self, things: Sequence[tuple[Thing, Opinion]], which: bool, reading: Reading, text: str
    ) -> Reply:
        self.tally.questions += 1
        sums_up = bool(reading.acts & {"SUMMARY", "CONSENT"})
        if not which and all(thing.kind != "product" for thing, _ in things):
            days = [one for one in reading.mentions if DAYS & set(one.slots) and one.score > FAINT]
            scores = {one.value: one.score for one in days}
            # "Your oldest is of May 3, so it's the one of May 9?"
            days_of = {thing.text: thing.text.lower().rpartition("from ")[2] for thing, _ in things}
            likely = max(reversed(things), key=lambda one: scores.get(days_of[one[0].text], FAINT))
            other = next((thing for thing, opinion in things if opinion.right), None)
            # Which of them is said to be it, stays open.
            if other and not likely[1].right and len(things) <= AT_ONCE:
                self._identified([other])
                return self.also(Act("choose", seen=other.text), other, reading, text)
            things = [likely]
        if not which and len(things) > 1:  # several are shown, and none is said to be the one
            things = [
                (thing, one)
                for thing, one in things
                if one.right or not one.identifies or (sums_up and one.broken is not None)
            ] or things
        right = [thing for thing, opinion in things if opinion.right]
        wrong = [opinion for _, opinion in things if not opinion.right]
        if which and len(things) > 1 and not (sums_up and len(things) > AT_ONCE):
            if len(things) > AT_ONCE:
                return self.stalled([Act("too many")])
            stray = next((opinion for opinion in wrong if not opinion.consistent), None)
            self.strays += stray is not None
            if stray and (self.strays > 1 or not right):
                # somebody who listened would not have named it, so whether the right one is there stays open
                said = self._missing(stray) or self.repeated()
                return self._guess(stray, *said) if self.strays > 1 else Reply(list(said))
            if right:
                self._identified(right)
                return self.also(Act("choose", seen=right[0].text), right[0], reading, text)
            return self._guess(wrong[0], Act("none of these"))
        if not wrong:
            certain = len(things) == 1 and things[0][1].identifies and not reading.acts & {"CONSENT", "OFFER"}
            self._identified(right if certain else ())
            fits = self._yes_to(text) if "CONSENT" in reading.acts else "as wanted"
            return self.also(Act("this one" if certain else fits), right[0], reading, text)
        first = min(wrong, key=lambda opinion: opinion.consistent)
        proposed = "judge" in reading.calls_for and all(thing.kind == "product" for thing, _ in things)
        free = first.consistent or (sums_up and first.broken in self.state.known)
        if proposed and first.broken is not None and free:  # not said to be the one
            return self._fault(first)
        return self._guess(first, Act("not this one")) if first.identifies else self._fault(first)

    def _identified(self, right: Sequence[Thing]) -> None:
        """Take note that it is clear what goes back: from now on what is asked is of what comes in its place."""
        self.state.identified |= any(thing.kind != "product" for thing in right)
        self.state.found |= bool(right) and "must" in self.templates

    def _missing(self, opinion: Opinion) -> list[Act]:
        """Name what was said and a thing does not meet."""
        broken = opinion.broken
        if broken is None or broken in self.state.withheld or broken.name in self.state.own:
            return []
        return [Act("not as wanted", self.type_name(broken.item), {broken.name: broken.value})]

    def _fault(self, opinion: Opinion) -> Reply:
        """Name one thing that does not meet the customer's wishes."""
        broken = opinion.broken
        if broken is None:
            return self.stalled([Act("not this one")])
        news = self.state.reveal([broken])
        self.tally.learned += len(news)
        slots = {broken.name: broken.value}
        if broken.name in self.state.own:
            refusal = Act("not this one" if opinion.identifies else "no")
            return Reply([refusal, Act("elaborate", self.type_name(broken.item), slots)], tuple(news))
        return Reply([Act("not as wanted", self.type_name(broken.item), slots)], tuple(news))

    def also(self, act: Act, thing: Thing, reading: Reading, text: str) -> Reply:
        """Answer the rest of a message after this act, but for what describes the thing; being right never costs
        patience."""
        self.annoyed = 0
        rest_of_it = tuple(
            q
            for q in reading.questions
            if not q.values
            or q.slot in LISTS
            or (not describes(q) and " or " in text)
            or (thing.kind == "product" and q.item >= 0 and self.type_name(q.item) not in thing.text)
        )
        if not (rest_of_it or reading.open):
            return Reply([act])
        calls_for = frozenset(("ask",)) if rest_of_it else frozenset[str]()
        calls_for |= reading.calls_for & {"open"}
        acts = reading.acts - {"LIST"}
        rest = self.answer(replace(reading, questions=rest_of_it, calls_for=calls_for, acts=acts), text)
        vain = frozenset[str]() if reading.acts & {"SET", "CHOICE", "LIST"} else frozenset(("indifferent",))
        return Reply([act, *(one for one in rest.acts if one.kind not in vain)], rest.news)

    def repeated(self) -> list[Act]:
        """Repeat what was said last, or at least what it is about."""
        known = [slot for slot in self.state.known if slot.name == CORRECTION] or self.state.known
        kind = self.type_name(0)
        unsaid = (
            Act("elaborate", kind, clean=True) if kind else Act("more" if self.state.withheld else "nothing")
        )
        return self.again(known[-AT_ONCE:]) or [unsaid]

    def _guess(self, opinion: Opinion, *acts: Act) -> Reply:
        """Take note of a wrong identification: the first is followed by a warning, the second ends the episode."""
        if not opinion.identifies:
            return self.stalled(acts)
        self.guessed += 1
        known = [opinion.broken] if opinion.broken and opinion.broken in self.state.known else []
        told = [] if any(act.kind in ("elaborate", "not as wanted") for act in acts) else self.again(known)
        return Reply([*acts, *told, *([Act("dissatisfied")] if self.guessed < GUESSES else [])])

    def has(self, question: Question) -> bool:
        """Tell whether the customer has a slot that a question means."""
        return bool(meant(question, self.state, self.option))

    def _implied(self, question: Question) -> list[Act]:
        """Answer a question for what is no slot because it goes without saying: one unit, the things on the list."""
        kind = self.type_name(max(0, question.item))
        replaced = [self._replaced(question.slot, value) for value in question.values]
        if replaced and None not in replaced:  # asked of what comes in its place
            return [Act("yes" if all(replaced) else "no")]
        if question.slot in ("quantity", "units") and kind:
            said = [said_number(question.slot, value) for value in question.values]
            return [Act("yes")] if said == [1] else [Act("just one", kind)]
        if question.slot == "thing" and kind:
            return [Act("elaborate", kind, clean=True)]
        return [Act("more" if self.state.withheld else "nothing")] if question.slot == "parts" else []

    def _absent(self, questions: Sequence[Question], beside: bool, text: str = "") -> list[Act]:
        """Say that there is no such wish, by name where something else is answered `beside` it; of what sold out, that
        it is forgotten."""
        if not questions:
            return []
        if "must" in self.templates and speaks_of_the_past(text):
            return [Act("forgotten")]
        if self._unknown([question.slot for question in questions]):
            others = [question for question in questions if not self._unknown([question.slot])]
            return [*self._absent(others, beside=True), *self._ask_where([q.slot for q in questions])]
        options = {q: self.option(q.item) for q in questions if q.slot == "option" and q.item >= 0}
        # "Which size or age?", of what differs in diameter.
        unsaid = [q for q, name in options.items() if beside and text and name not in text.lower()]
        questions = [q for q in questions if q not in unsaid]
        if not questions:
            return []
        slots = [f"attr:{options[q]}" if options.get(q) else q.slot for q in questions]
        names = list(dict.fromkeys(map(called, slots)))
        return [Act("indifferent to", seen=" and ".join(names))] if beside else [Act("indifferent")]

    def _unknown(self, names: Sequence[str]) -> bool:
        """Tell whether the customer would have to look up any of these."""
        return any(slot.name in names for slot in self.state.unknown)

    def _ask_where(self, asked: Collection[str] = ()) -> list[Act]:
        """Ask where to look up what they do not know of what is asked for, by default of all of it."""
        unknown = [slot.name for slot in self.state.unknown if not asked or slot.name in asked]
        self.asks_where |= set(unknown)
        names = " and ".join(map(called, unknown))
        return [Act("ask where", seen=names)] if unknown else []

    def look(self, places: Sequence[str], asked: Collection[str]) -> Reply | None:
        """Look at the places that a message names for what they asked about, or for what it asks itself; None where
        there is neither. A wrong place is a wrong guess; of more places than things they ask again which."""
        unknown = self.state.unknown
        wanted = self.asks_where | {slot.name for slot in unknown if slot.name in asked}
        if not (places and unknown and wanted):
            return None
        if len(places) > len(unknown):
            return self.stalled(self._ask_where())
        found = [slot for slot, place in unknown.items() if place in places]
        if not found:
            return self._guess(Opinion(False, identifies=True), Act("not there"))
        self.state.look_up(found)
        self.tally.learned += len(found)
        self.annoyed = 0
        return Reply(self.spoken("elaborate", found), tuple(found))

    def _checks_the_list(self, reading: Reading, text: str) -> bool:
        """Tell whether a message asks only whether something is on the list that the customer has put on it."""
        listed = [kind for slot in self.state.known if slot.name in LISTED for kind in slot.value]
        alone = all(q.slot == "parts" and not q.values for q in reading.questions) and not reading.mentions
        if not alone or "CHECK" not in reading.acts or reading.open or reading.said:
            return False
        return any(re.search(rf"\b{re.escape(kind)}s?\b", text, re.IGNORECASE) for kind in listed)

    def asked_back(self, own: list[Act]) -> Reply:
        """Ask one's `own` questions again of who asks for them; more than once that leads nowhere."""
        fresh, self.heard = (OWN, 0) not in self.heard, self.heard | {(OWN, 0)}
        return Reply(own) if fresh else self.stalled(own)

    def again(self, slots: Iterable[Slot]) -> list[Act]:
        """Make the acts that tell these slots once more."""
        return self.spoken("elaborate", list(_distinct(slots)), clean=True)

    def spoken(self, kind: str, slots: Sequence[Slot], clean: bool = False) -> list[Act]:
        """Make the acts that tell these slots, one for each item; what is about none comes last."""
        several = len({slot.item for slot in slots}) > 1
        by_item: dict[tuple[bool, int], dict[str, object]] = {}
        for slot in slots:
            last = several and kind == "elaborate" and slot.name in self.state.own
            by_item.setdefault((last, slot.item), {})[slot.name] = slot.value
        ordered = sorted(by_item.items(), key=lambda said: said[0][0])
        return [Act(kind, self.type_name(item), said, clean=clean) for (_, item), said in ordered]

    # Corrections.

    def corrections(self, mistakes: Sequence[Mistake], right: int = 0) -> list[Act]:
        """Correct the mistakes that stand after a turn in which the agent acted, where `right` wanted units stand.

        A mistake that still stands has been ignored, unless the turn mended another one and made no new one; and a new
        one is no better than an ignored one until something more is right, or trying things and taking them out again
        would cost nothing. After two ignored corrections of one mistake the customer gives up; the goal stays and
        counts as missed.
        """
        standing = {mistake.name: mistake for mistake in mistakes if mistake.name not in self.given_up}
        mended = [name for name in self.corrected if name not in standing]
        new = [name for name in standing if name not in self.corrected]
        progress = bool(mended) and not new
        if right > self.right:
            self.right, self.astray, self.annoyed = right, False, 0
        elif standing and not progress and (self.corrected or self.astray):
            self.annoyed += 1
        self.astray = self.astray or bool(standing)
        for name in mended:
            del self.corrected[name]
        acts: list[Act] = []
        unwanted = [name for name in standing if standing[name].act.kind == "not wanted"]
        for name, mistake in list(standing.items()):
            if name in self.corrected and not progress:
                self.corrected[name] += 1
            ignored = self.corrected.setdefault(name, 0)
            if ignored >= REPEATS:
                self.given_up.add(name)
                acts += self._give_up(mistake)
            elif len(unwanted) > 1 and name in unwanted:
                continue  # said once for all of them below
            else:
                acts += self._correct(mistake, clean=name not in new)
            if len(acts) >= AT_ONCE:
                break
        if len(unwanted) > 1:
            self.annoyed += any(name in new for name in unwanted)
            acts.append(Act("unwanted things"))
        warned = self.annoyed == PATIENCE - 1 or self.untold == PATIENCE - 1
        return [*acts, Act("dissatisfied")] if acts and warned else acts

    def _correct(self, mistake: Mistake, clean: bool) -> list[Act]:
        act = mistake.act
        if mistake.too_early:
            self.untold += not clean
            return [Act("not told yet", act.type)]
        self.state.reveal(mistake.reveals)
        return [Act(act.kind, act.type, act.slots, act.seen, act.number, clean=clean)]

    def _give_up(self, mistake: Mistake) -> list[Act]:
        if mistake.item is None:
            return [Act("go ahead")]
        self.skipped.add(mistake.item)
        self.state.forget(mistake.item)
        return [Act("give up", type=mistake.act.type)]

    def stalled(self, acts: Sequence[Act], news: Sequence[Slot] = ()) -> Reply:
        """Say this to a message that leads nowhere, which costs patience."""
        self.annoyed += 1
        dissatisfied = [Act("dissatisfied")] if self.annoyed == PATIENCE - 1 else []
        return Reply([*acts, *dissatisfied], tuple(news))


def told_openly(left: int, named: int) -> int:
    """Count the slots told in answer to an open question, of those that are left beside the named ones."""
    return left if left <= AT_ONCE - named else max(0, min(OPEN, AT_ONCE - named))


def _shows(reading: Reading) -> bool:
    """Tell whether a message speaks of products rather than of wishes: what they cost may be less than is allowed."""
    offered = reading.acts & {"OFFER", "LIST"} and "SUMMARY" not in reading.acts
    return bool(reading.things or offered)


def _distinct(some: Iterable[_T]) -> Iterator[_T]:
    seen: list[_T] = []  # values may be lists, which cannot be hashed
    for one in some:
        if one not in seen:
            seen.append(one)
            yield one
