"""The dialogue manager: rules that choose the customer's acts from the goal state and the mistakes in sight."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.goal_state import OF_PRODUCTS, GoalState
from ecomlab.customer.templates import common_file
from ecomlab.task import Slot

PATIENCE = 3
"""Ignored corrections or stalls in a row that end the episode."""
REPEATS = 2
"""Ignored corrections of one mistake after which the customer gives up."""
AT_ONCE = 3
"""Most corrections in one message."""

_WORD = re.compile(r"[a-z]+")
_GENERAL = set("anything else more details detail preference preferences wishes which what".split())
_DONE = re.compile(r"\b(?:done|finished|completed?|all set|added|in (?:your|the) cart)\b")
_NOD = re.compile(
    r"\b(?:(?:shall|should|may|can|could) i(?! (?:ask|know|have|get))|(?:want|like) me to|ready to|"
    r"is (?:this|that|it|everything) (?:ok\w*|all|right|correct|fine|good)|"
    r"(?:looks?|sounds?) (?:ok\w*|right|correct|fine|good))\b"
)
"""Marks of a question that only asks for agreement: "Shall I submit these?"."""


@cache
def _word_topics() -> dict[str, set[str]]:
    """Map each word of a question to the topics that it may mean."""
    found: dict[str, set[str]] = {}
    for topic, words in common_file().topics.items():
        for word in (topic, *words):
            found.setdefault(word, set()).add(topic)
    return found


@dataclass(frozen=True)
class Reply:
    """The customer's answer, and whether it revealed something that had been withheld."""

    acts: list[Act]
    revealed: bool = False


@dataclass
class DialogueManager:
    """Chooses what one customer says in one episode. `type_name` names the product type that an item is called by."""

    state: GoalState
    type_name: Callable[[int], str]
    called: Callable[[str, str], frozenset[str]] = lambda kind, slot: frozenset()
    """Words that name a slot of a product of that type: its option, one of its attributes."""
    corrected: dict[str, int] = field(default_factory=dict)
    """Number of times that each standing mistake has been ignored, by its name."""
    given_up: set[str] = field(default_factory=set)
    """Mistakes that the customer no longer mentions."""
    skipped: set[int] = field(default_factory=set)
    """Items that the customer has given up: never mentioned again, still scored."""
    annoyed: int = 0
    """Ignored corrections and stalls in a row."""

    @property
    def out_of_patience(self) -> bool:
        return self.annoyed >= PATIENCE

    def asked(self, question: str, about: Sequence[str]) -> Reply:
        """Answer a question: reveal what is withheld of all that it or `about` names, or two slots if it is general.

        `about` may hold any words; those that are no topics count as part of the question.
        """
        state = self.state
        listed = {word for topic in about for word in _WORD.findall(topic.lower())}
        asked = set(_WORD.findall(question.lower())) | (listed - set(_word_topics()))
        names, own = state.named(asked), self._own(asked)
        hidden = [words for slot, words in own if slot in state.withheld]
        telling = asked.difference(
            *(common_file().words[name] for name in names), *hidden
        )  # a word that names a slot names no topic
        spoken = self._topics(telling) - _only_general(asked)
        if "mean" in asked:  # "Which one do you mean?"
            spoken |= set(state.which.split())
        if "feature" in spoken and not (state.about(["feature"]) or state.known(["feature"])):
            spoken.add(
                "details"
            )  # "Any features you need?", where no feature is wanted: the details are meant
        topics = sorted(self._topics(listed) | spoken)
        if topics or names or own:
            meant = [*state.about(topics), *state.known(topics), *(slot for slot, _ in own)]

            def is_meant(slot: Slot) -> bool:
                return slot in meant or slot.name in names

            return self._tell(
                [slot for slot in state.withheld if is_meant(slot)],
                [slot for slot in state.stated + state.revealed if is_meant(slot)],
            )
        if not (_GENERAL & asked or "?" in question):
            return self._stall(Act("clarify"))
        return self._tell(state.withheld[:2], [])

    def told(self, text: str) -> Reply:
        """Answer a message that presents nothing new. A customer with nothing left to say answers only a question for
        more than agreement, and otherwise tells the agent to go on."""
        if not self.state.withheld and not _asks(text):
            return self._stall(Act("continue"))
        return self.asked(text, ())

    def _topics(self, words: Iterable[str]) -> set[str]:
        mine = {*OF_PRODUCTS, *self.state.mine}
        return {topic for word in words for topic in _word_topics().get(word, ())} & mine

    def _own(self, asked: set[str]) -> list[tuple[Slot, set[str]]]:
        """Find the options and attributes that are called by name, with the words that do: "Which filter?"."""
        state = self.state
        slots = [*state.withheld, *state.stated, *state.revealed]
        called = [(slot, asked & self.called(self.type_name(slot.item), slot.name)) for slot in slots]
        return [(slot, words) for slot, words in called if words]

    def presented(self, types: Iterable[str]) -> Reply | None:
        """React to candidates of these types by saying what was withheld about them."""
        names = set(types)
        slots = [slot for slot in self.state.withheld if self.type_name(slot.item) in names]
        return self._tell(slots, []) if slots else None

    def claims_done(self, text: str) -> bool:
        """Tell whether a message says that the work is done, asking for agreement at most."""
        return not _asks(text) and _DONE.search(text.lower()) is not None

    def told_done(self, missing: Sequence[Act]) -> Reply:
        """Answer an agent that says it is done: confirm, or say what is still missing."""
        if missing:
            return self._stall(missing[0])
        return Reply([Act("confirm")])

    def corrections(self, mistakes: Sequence[Mistake]) -> list[Act]:
        """Correct the mistakes that stand after a turn in which the agent acted.

        A mistake that still stands has been ignored, unless the turn mended another one and made no new one. After two
        ignored corrections of one mistake the customer gives up; the goal stays and counts as missed.
        """
        standing = {mistake.name: mistake for mistake in mistakes if mistake.name not in self.given_up}
        mended = [name for name in self.corrected if name not in standing]
        new = [name for name in standing if name not in self.corrected]
        progress = bool(mended) and not new
        if progress:
            self.annoyed = 0
        elif self.corrected and standing:
            self.annoyed += 1
        for name in mended:
            del self.corrected[name]
        acts: list[Act] = []
        for name, mistake in list(standing.items())[:AT_ONCE]:
            act = mistake.act
            if name in self.corrected and not progress:
                self.corrected[name] += 1
            if self.corrected.setdefault(name, 0) >= REPEATS:
                self.given_up.add(name)
                if mistake.item is not None:
                    self.skipped.add(mistake.item)
                    self.state.forget(mistake.item)
                acts.append(Act("give up", type=act.type) if act.type else Act("continue"))
                continue
            self.state.reveal(mistake.reveals)
            acts.append(Act(act.kind, act.type, act.slots, act.seen, act.number, clean=name not in new))
        return acts

    def pleased(self) -> None:
        """Take note that the agent made progress."""
        self.annoyed = 0

    def farewell(self) -> Act:
        """Choose the last act of a customer who has lost patience."""
        return Act("quit")

    def _tell(self, slots: Sequence[Slot], known: Sequence[Slot]) -> Reply:
        news = self.state.reveal(slots)
        if news:
            self.annoyed = 0
            return Reply(self._spoken("elaborate", news), revealed=True)
        if known:
            return self._stall(*self._spoken("remind", known[:3], clean=True))
        return self._stall(Act("indifferent" if self.state.withheld else "nothing"))

    def _stall(self, *acts: Act) -> Reply:
        self.annoyed += 1
        dissatisfied = [Act("dissatisfied")] if self.annoyed == PATIENCE - 1 else []
        return Reply([*acts, *dissatisfied])

    def _spoken(self, kind: str, slots: Sequence[Slot], clean: bool = False) -> list[Act]:
        several = len({slot.item for slot in slots}) > 1
        by_item: dict[tuple[bool, int], dict[str, object]] = {}
        for slot in slots:  # where there are several items, what is about none of them comes last
            last = several and kind == "elaborate" and slot.name in self.state.topics
            by_item.setdefault((last, slot.item), {})[slot.name] = slot.value
        ordered = sorted(by_item.items(), key=lambda said: said[0][0])
        return [Act(kind, self.type_name(item), said, clean=clean) for (_, item), said in ordered]


def _asks(text: str) -> bool:
    """Tell whether a sentence of the text asks for more than agreement."""
    sentences = re.split(r"(?<=[.!?])", text.lower())
    return any(sentence.endswith("?") and _NOD.search(sentence) is None for sentence in sentences)


def _only_general(words: set[str]) -> set[str]:
    """Name the topics that a general question mentions by accident: "any other details?" is about everything."""
    return {"details"} if words & {"else", "other", "more"} else set()
