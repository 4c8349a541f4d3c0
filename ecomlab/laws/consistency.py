"""Consistency of a customer's words: every line is read back by the forms that rendered it, and no two may contradict.

A change of mind, a shortage and "I forgot to say" excuse what comes after them, and so does the agent who says where a
fact is shown. `talkers` makes the customers talk.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import nlu
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases, common_file
from ecomlab.task import Message
from ecomlab.wishes import If
from ecomlab.world.joint import SLOTS
from ecomlab.world.policy_book.places import FACTS, named_in
from ecomlab.world.substitutes import noun

YES = frozenset(("yes", "this one", "as wanted", "go ahead"))
NO = frozenset(("no", "not this one", "none of these", "not as wanted"))
CHANGES = frozenset((
    "change", "option", "quantity", "drop", "add", "exchange", "replace", "settle option", "settle quantity", "give up",
    "another line", "another order", "this order",
))  # fmt: skip
"""Kinds of acts that say that something is not as it was."""
UPDATES = frozenset(("correction", "twist", "added", "dropped", "insists"))
"""Slots that say so."""
LISTS = frozenset(("parts", "added", "dropped", "twist", "must", "relation", "question", *SLOTS))
"""Slots of which two values can both hold."""
DAYS = frozenset(("placed", "when", "ordered"))


@dataclass(frozen=True)
class Claim:
    """A slot of an item, "" for one with sentences of its own, and its value."""

    type: str
    slot: str
    value: Any

    def __str__(self) -> str:
        return f"{self.type} {self.slot} {self.value}".strip()


@dataclass(frozen=True)
class Words:
    """A message of the agent, and what it is about."""

    text: str = ""
    asked: tuple[str, ...] = ()
    """The slots that it asks for by name."""
    about: str = ""
    """The product type that it names."""
    claims: tuple[Claim, ...] = ()
    thing: str = ""
    """The one thing that it names."""
    message: Message | None = None


SILENCE = Words()


@dataclass(frozen=True)
class Line:
    """Something that a customer said, after these words of the agent."""

    text: str
    opening: bool = False
    after: Words = SILENCE

    def __str__(self) -> str:
        return f'"{self.after.text}" -> "{self.text}"' if self.after.text else f'"{self.text}"'


@dataclass(frozen=True)
class Contradiction:
    """Two lines of one customer that cannot both hold, and what about them."""

    kind: str
    about: str
    first: Line
    second: Line

    def __str__(self) -> str:
        return f"{self.kind} ({self.about}): {self.first} ... {self.second}"


@dataclass
class Record:
    """All that a customer has said in one job, as statements."""

    phrases: Phrases
    lexicon: Lexicon
    facts: dict[tuple[str, str], tuple[Any, Line]] = field(default_factory=dict)
    """(value, line) by product type, "" for a slot with sentences of its own, and slot."""
    free: dict[tuple[str, str], Line] = field(default_factory=dict)
    """Lines that say that there is no such wish, or no such memory."""
    denied: dict[str, Line] = field(default_factory=dict)
    named: dict[str, tuple[bool, Line]] = field(default_factory=dict)
    """Answers about things that the agent named."""
    complete: Line | None = None
    """The line that says that this is all."""
    more: Line | None = None
    """The line that says that there is more, while nothing new has been told."""
    gone: dict[str, Line] = field(default_factory=dict)
    found: set[tuple[str, str]] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    """Sentences that no form fits."""

    def take(self, line: Line) -> Iterator[Contradiction]:
        """Read a line; yield its contradictions with itself and with those before."""
        text = nlu.plain(line.text, self.phrases, self.lexicon, line.opening)
        said = nlu.read_slots(line.text, self.phrases, self.lexicon, line.opening)
        if line.opening:
            mentions, acts = nlu.read_opening(line.text, self.phrases, self.lexicon), []
        else:
            mentions = nlu.read_message(line.text, self.phrases, self.lexicon)
            acts = nlu.read_acts(line.text, self.phrases, self.lexicon)
        kinds = {act.kind for act in acts}
        self.unread += [act.text for act in acts if not act.kind and not self._leads_in(act.text)]
        changed = bool(kinds & CHANGES or {name for name, _ in said} & UPDATES) or self._says("change", text)
        recalled = "mention" in kinds or self._says("mention", text) or bool(named_in(line.after.text, FACTS))
        if changed:
            self._forget(mentions, said)
        slots = [(value.type if isinstance(value, If) else "", name, value) for name, value in said]
        slots += [(one.type, name, v) for one in mentions for name, v in one.slots.items() if v is not None]
        one_each = {(self._type(act), "quantity") for act in acts if act.kind == "just one"}
        slots += [(*place, 1) for place in one_each]
        now = {(kind, name) for kind, name, _ in slots}
        if changed:  # the old values no longer hold
            for place in now & self.facts.keys():
                del self.facts[place]
            self.denied, self.named = {}, {}
            self.free = {p: old for p, old in self.free.items() if not any(_meet(p, (k, n)) for k, n in now)}
        for kind, name, value in slots:
            excused = changed or recalled or (kind, name) in one_each  # which goes without saying
            yield from self._fact(line, Claim(kind, name, value), excused)
        for mention in mentions:
            if mention.effect == "drop":
                self.gone[mention.type] = line
            elif mention.type in self.gone and mention.effect not in ("add", ""):
                yield from self._new("dropped, and wanted", mention.type, self.gone[mention.type], line)
        for act in acts:
            yield from self._act(line, act.kind, act.fields, alone=len(acts) == 1 and not said)
        yield from self._reaction(line, kinds)
        if line.opening and nlu.is_complete(text):
            self.complete = line

    def _fact(self, line: Line, claim: Claim, excused: bool) -> Iterator[Contradiction]:
        place, about = (claim.type, claim.slot), str(claim)
        for kept in self._kept(claim.value) if claim.slot == "must" else ():
            yield from self._wish(line, kept, about)
        yield from self._wish(line, place, about)
        if str(claim) in self.denied:
            yield from self._new("denied, and so", about, self.denied[str(claim)], line)
        value, first = self.facts.get(place, (None, line))
        affirmed = Claim(claim.type, claim.slot, value) in first.after.claims
        if place not in self.facts or affirmed:  # what only the agent had said is news
            self.more = None
        if place in self.facts:
            if value != claim.value and claim.slot not in LISTS:
                kind = "affirmed, and otherwise" if affirmed else "two values"
                yield from self._new(kind, f"{about}, not {value}", first, line)
        else:
            if self.complete and not excused:
                yield from self._new("all said, and more", about, self.complete, line)
            self.complete = None
        self.facts[place] = claim.value, line

    def _wish(self, line: Line, place: tuple[str, str], about: str) -> Iterator[Contradiction]:
        for free, first in self.free.items():
            if _meet(free, place, self._option(place)) and not self._is_of_lost(place):
                yield from self._new("no wish, and a wish", f"{free[1]}: {about}", first, line)

    def _act(self, line: Line, kind: str, fields: Mapping[str, str], alone: bool) -> Iterator[Contradiction]:
        names = fields["seen"].split(" and ") if kind == "indifferent to" else []
        slots = [slot for name in names for slot in _slots_called(name.lower())]
        if kind == "indifferent" and alone:
            slots = list(line.after.asked)
        for slot in slots:
            yield from self._is_free(line, (line.after.about, slot), named=kind == "indifferent to")
        if kind == "nothing":
            if self.more:
                yield from self._new("more, and nothing more", "", self.more, line)
            self.complete, self.more = line, None
        elif kind in ("more", "not told yet"):
            if self.complete:
                yield from self._new("all said, and more", kind, self.complete, line)
            self.more = line if kind == "more" else self.more

    def _is_free(self, line: Line, place: tuple[str, str], named: bool) -> Iterator[Contradiction]:
        self.free.setdefault(place, line)
        for (kind, name), (value, first) in self.facts.items():
            wished = [] if self._is_of_lost((kind, name)) else [(kind, name)]
            if name == "must":
                wished = self._kept(value)
            elif name == "replacement":  # a name alone does not say of which of the two
                wished = [("", one) for one, *_ in value] if named else []
            if any(_meet(place, one, self._option(one)) for one in wished):
                about = f"{place[1]}: {Claim(kind, name, value)}"
                yield from self._new("no wish, and a wish", about, first, line)

    def _reaction(self, line: Line, kinds: set[str]) -> Iterator[Contradiction]:
        """Take a yes or a no as a statement of what the agent claimed, or of the one thing that it named."""
        yes, no = bool(kinds & YES) and not kinds & NO, bool(kinds & NO)
        claims = line.after.claims
        known = [c for c in claims if self.facts.get((c.type, c.slot), (None,))[0] == c.value]
        for claim in claims if yes else ():
            value, first = self.facts.setdefault((claim.type, claim.slot), (claim.value, line))
            if value != claim.value:
                yield from self._new("affirmed, and otherwise", f"{claim}, not {value}", first, line)
        if no and claims and len(known) == len(claims):
            first = self.facts[known[0].type, known[0].slot][1]
            yield from self._new("denied, and so", ", ".join(map(str, known)), first, line)
        elif no and len(claims) == 1:
            self.denied[str(claims[0])] = line
        if line.after.thing and yes != no:
            before, first = self.named.setdefault(line.after.thing, (yes, line))
            if before != yes:
                yield from self._new("yes and no to one thing", line.after.thing, first, line)

    def _new(self, kind: str, about: str, first: Line, second: Line) -> Iterator[Contradiction]:
        """Yield a contradiction that was not found before."""
        if (kind, about) not in self.found:
            self.found.add((kind, about))
            yield Contradiction(kind, about, first, second)

    def _is_of_lost(self, place: tuple[str, str]) -> bool:
        """Tell whether a slot describes what is to be substituted, and is no wish for the substitute."""
        return "must" in self.phrases.slots and (bool(place[0]) or place[1].startswith("was_"))

    def _forget(self, mentions: Sequence[nlu.Mention], said: Sequence[tuple[str, Any]]) -> None:
        """Forget what no longer holds after a change: all that was said of an item, or of another order or line."""
        self.more = None
        types = {one.type for one in mentions if one.effect in ("drop", "replace", "add")}
        types |= {value for name, value in said if name == "dropped"}
        anew = any(one.effect == "anew" for one in mentions)
        stays = {"replacement"} if anew else {"replacement", "relation"}
        anew = anew or "correction" in dict(said)
        for kept in (self.facts, self.free):
            for place in [p for p in kept if p[0] in types or (anew and p[1] not in stays)]:
                del kept[place]
        self.gone = {kind: line for kind, line in self.gone.items() if kind not in types}

    def _says(self, lead: str, text: str) -> bool:
        return any(form.literal in text for form in self.phrases.before.get(lead, ()))

    def _leads_in(self, text: str) -> bool:
        forms = (form for some in self.phrases.before.values() for form in some)
        leads = {part for form in forms for part in SENTENCE_BREAK.split(form.literal)}
        return all(part in leads for part in SENTENCE_BREAK.split(text.strip()))

    def _type(self, act: nlu.Said) -> str:
        return str(nlu.read_item(act.item, self.lexicon, self.phrases).get("type", ""))

    def _kept(self, names: Collection[str]) -> list[tuple[str, str]]:
        """List the attributes that have to stay, whatever they are called: the battery capacity is the charge."""
        every = {one.name for kind in self.lexicon.types.values() for one in kind.attributes}
        return [("", f"attr:{name}") for name in sorted(every) if {name, noun(name)} & set(names)]

    def _option(self, place: tuple[str, str]) -> str:
        kind = self.lexicon.types.get(place[0])
        return f"attr:{kind.option.name}" if kind and place[1] == "option" else ""


def _meet(free: tuple[str, str], place: tuple[str, str], other_name: str = "") -> bool:
    """Tell whether a wish is one of those that there are none of."""
    same = free[1] in (place[1], other_name) or {free[1], place[1]} <= DAYS
    return same and ("" in (free[0], place[0]) or free[0] == place[0])


@cache
def _slots_called(name: str) -> tuple[str, ...]:
    """List the slots that a customer calls so: "the day I ordered it"."""
    found = [slot for slot, words in common_file().names.items() if words.lower() == name]
    own = name.removeprefix("the ").replace(" ", "_")
    return (*found, own, f"attr:{own}")
