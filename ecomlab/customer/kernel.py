"""The rule kernel: what the customer does, decided from the ledger and the world. No model, no chance."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ecomlab.core import Fault
from ecomlab.customer.ledger import OF_PRODUCTS, TOPICS, WORDS, Ledger, Slot
from ecomlab.customer.words import Act

PATIENCE = 3
"""Ignored corrections or stalls in a row that end the episode."""
REPEATS = 2
"""Ignored corrections of one thing after which the customer gives it up."""
AT_ONCE = 3
"""Most corrections in one message."""

_WORD = re.compile(r"[a-z]+")
_GENERAL = {
    "anything",
    "else",
    "more",
    "details",
    "detail",
    "preference",
    "preferences",
    "wishes",
    "which",
    "what",
}
_DONE = re.compile(r"\b(?:done|finished|completed?|all set|added|in (?:your|the) cart)\b")
_WORD_TOPICS = {word: topic for topic, words in TOPICS.items() for word in (topic, *words)}


@dataclass(frozen=True)
class Reply:
    """What the customer answers and whether it gave something away that had been withheld."""

    acts: list[Act]
    revealed: bool = False


@dataclass
class Kernel:
    """One customer in one episode. `type_name` names a subject; it is the only thing taken from the environment."""

    ledger: Ledger
    type_name: Callable[[int], str]
    corrected: dict[str, int] = field(default_factory=dict)
    """How often each fault that still stands has been ignored."""
    given_up: set[str] = field(default_factory=set)
    """Faults that the customer no longer mentions."""
    skipped: set[int] = field(default_factory=set)
    """Subjects that the customer has given up: never spoken of again, still scored."""
    annoyed: int = 0
    """Ignored corrections and stalls in a row."""

    @property
    def out_of_patience(self) -> bool:
        return self.annoyed >= PATIENCE

    def asked(self, question: str, about: Sequence[str]) -> Reply:
        """A question: named topics get all that is withheld about them, a general one the next two slots."""
        ledger, names = self.ledger, set[str]()
        topics = self._topics(word for topic in about for word in _WORD.findall(topic.lower()))
        if not topics and not about:
            asked = set(_WORD.findall(question.lower()))
            names = ledger.named(asked)
            telling = asked.difference(*(WORDS[name] for name in names))
            topics = self._topics(telling) - _only_general(asked)
            if "mean" in asked:  # "Which one do you mean?"
                topics |= set(ledger.which.split())
            if "feature" in topics and not (ledger.about(["feature"]) or ledger.known(["feature"])):
                topics.add(
                    "details"
                )  # "Any features you need?": who has no feature in mind thinks of the rest
        if topics or names:
            about_it, known = ledger.about(sorted(topics)), ledger.known(sorted(topics))
            return self._tell(
                [slot for slot in ledger.withheld if slot in about_it or slot.name in names],
                [slot for slot in ledger.stated + ledger.revealed if slot in known or slot.name in names],
            )
        if about or not (_GENERAL & set(_WORD.findall(question.lower())) or "?" in question):
            return self._stall(Act("clarify"))
        return self._tell(self.ledger.withheld[:2], [])

    def _topics(self, words: Iterable[str]) -> set[str]:
        mine = {*OF_PRODUCTS, *self.ledger.mine}
        return {_WORD_TOPICS[word] for word in words if word in _WORD_TOPICS} & mine

    def presented(self, types: Iterable[str]) -> Reply | None:
        """Candidates of these types were shown to the customer: they say what is missing about them."""
        names = set(types)
        slots = [slot for slot in self.ledger.withheld if self.type_name(slot.subject) in names]
        return self._tell(slots, []) if slots else None

    def claims_done(self, text: str) -> bool:
        """Whether a message says that the work is finished."""
        return "?" not in text and _DONE.search(text.lower()) is not None

    def told_done(self, missing: Sequence[Act]) -> Reply:
        """The agent says it is done: the customer confirms, or says what is still missing."""
        if missing:
            return self._stall(missing[0])
        return Reply([Act("confirm")])

    def corrections(self, faults: Sequence[Fault]) -> list[Act]:
        """Corrections for what is wrong after a turn in which the agent acted.

        A fault that stands again has been ignored, unless the turn mended another and made no new one. After two
        ignored corrections of one thing the customer gives it up; the goal stays, scored as missed.
        """
        standing = {fault.thing: fault for fault in faults if fault.thing not in self.given_up}
        mended = [thing for thing in self.corrected if thing not in standing]
        new = [thing for thing in standing if thing not in self.corrected]
        progress = bool(mended) and not new
        if progress:
            self.annoyed = 0
        elif self.corrected and standing:
            self.annoyed += 1
        for thing in mended:
            del self.corrected[thing]
        acts: list[Act] = []
        for thing, fault in list(standing.items())[:AT_ONCE]:
            act = fault.act
            if thing in self.corrected and not progress:
                self.corrected[thing] += 1
            if self.corrected.setdefault(thing, 0) >= REPEATS:
                self.given_up.add(thing)
                if fault.subject is not None:
                    self.skipped.add(fault.subject)
                    self.ledger.forget(fault.subject)
                acts.append(Act("give up", type=act.type) if act.type else Act("continue"))
                continue
            self.ledger.reveal(fault.reveals)
            acts.append(Act(act.kind, act.type, act.slots, act.seen, act.number, clean=thing not in new))
        return acts

    def pleased(self) -> None:
        """The agent made progress."""
        self.annoyed = 0

    def farewell(self) -> Act:
        """What the customer says when patience ends."""
        return Act("quit")

    def _tell(self, slots: Sequence[Slot], known: Sequence[Slot]) -> Reply:
        news = self.ledger.reveal(slots)
        if news:
            self.annoyed = 0
            return Reply(self._spoken("elaborate", news), revealed=True)
        if known:
            return self._stall(*self._spoken("remind", known[:3], clean=True))
        return self._stall(Act("indifferent" if self.ledger.withheld else "nothing"))

    def _stall(self, *acts: Act) -> Reply:
        self.annoyed += 1
        dissatisfied = [Act("dissatisfied")] if self.annoyed == PATIENCE - 1 else []
        return Reply([*acts, *dissatisfied])

    def _spoken(self, kind: str, slots: Sequence[Slot], clean: bool = False) -> list[Act]:
        several = len({slot.subject for slot in slots}) > 1
        by_subject: dict[tuple[bool, int], dict[str, object]] = {}
        for slot in slots:  # where there are several things, what is about none of them comes last
            last = several and kind == "elaborate" and slot.name in self.ledger.topics
            by_subject.setdefault((last, slot.subject), {})[slot.name] = slot.value
        ordered = sorted(by_subject.items(), key=lambda said: said[0][0])
        return [Act(kind, self.type_name(subject), said, clean=clean) for (_, subject), said in ordered]


def _only_general(words: set[str]) -> set[str]:
    """Topics that a general question names by accident: "any other details?" is about everything."""
    return {"details"} if words & {"else", "other", "more"} else set()
