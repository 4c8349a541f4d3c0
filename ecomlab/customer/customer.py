"""The simulated customer, who hears messages, answers questions, sees what is done and changes their mind."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import corrections, goal_changes, shortages
from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.dialogue import DialogueManager, Reply
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.heard import NO_ITEM
from ecomlab.customer.hearing import reader_of
from ecomlab.customer.llm import Wording
from ecomlab.customer.meaning import describes
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.opinions import Judge, Thing, asked_of, opinions_of, things_in, without
from ecomlab.customer.progress import Progress
from ecomlab.customer.questions import Question, Reading
from ecomlab.customer.rewording import Check
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases
from ecomlab.task import Event, Goal, GoalChange, Instead, SellOut
from ecomlab.world.cart import match, wants_of
from ecomlab.world.state import World

_INSTEAD = re.compile(
    r"\b(?:instead|(?:a different|another) (?:one|product|model|kind)|alternatives?|substitutes?|replacements?|"
    r"leave (?:it|them) out|do without|none at all|second choice)\b"
)
"""Marks of a question what to take instead of something."""
_POINTS = re.compile(
    r"\b(?:(?:is|was) (?:this|that|it) (?:the|your)|you meant|(?:did|do) you mean|can you confirm|"
    r"(?:is|does) (?:this|that|it) (?:sound |look )?(?:right|correct))\b"
)
"""Marks of a question whether a thing is the one that is meant."""
DAYS = frozenset(("placed", "when", "ordered", "delivered"))
"""Slots that are days."""


class Customer:
    """A customer with one goal, whose acts follow by rule from the goal, what was said and the world.

    `acts_on` names what the agent's tools can change ("cart", "returns"), which the customer looks at and corrects;
    `judge` gives their opinion of things that the agent names. `wording` words what they say, in no sentence that is
    `reserved`.
    """

    def __init__(
        self,
        goal: Goal,
        events: Sequence[Event],
        phrases: Phrases,
        lexicon: Lexicon,
        speaker: Speaker,
        acts_on: frozenset[str],
        judge: Judge,
        wording: Wording | None = None,
        reserved: Collection[str] = (),
    ) -> None:
        self.first = goal
        self.goal = goal
        """Goal as it is now; `first` is what it was."""
        self.phrases = phrases
        self.lexicon = lexicon
        self.speaker = speaker
        self.acts_on = acts_on
        self.judge = judge
        self.wording = wording
        """Part of an endpoint that words what this customer says; None where the templates are said."""
        self.check = Check(phrases, lexicon, reserved)
        self.state = GoalState(goal.said(), goal.said(withheld=True), own=phrases.slots.keys())
        self.dialogue = DialogueManager(self.state, self.type_name, self.option_name, phrases.slots)
        self.in_sight: list[Mistake] = []
        """Mistakes that stood when the customer last looked."""
        self.last_read = Reading()
        """What the last message, or a part of it, was read as."""
        self.fired: list[Event] = []
        """Events that have happened; a change of mind when the agent is told."""
        self._instead = {event.item: event for event in events if isinstance(event, Instead)}
        self._pending = [event for event in events if not isinstance(event, Instead)]

    @property
    def out_of_patience(self) -> bool:
        return self.dialogue.out_of_patience

    def type_name(self, item: int) -> str:
        """Name the product type that an item is called by; "" where it has none."""
        return str(self.goal.get("type", self.first.get("type", "", item), item))

    def option_name(self, item: int) -> str:
        """Name the option in which the variants of an item differ; "" where it has none."""
        kind = self.lexicon.types.get(self.type_name(item))
        return kind.option.name if kind else ""

    @property
    def expects_more(self) -> bool:
        """True while something is still to happen."""
        return bool(self._pending)

    def read(self, text: str) -> Reading:
        """Understand a message: what it asks for, of which item."""
        items = self.goal.items or self.first.items
        listed = [kind for slot in self.state.known if slot.name in ("parts", "added") for kind in slot.value]
        types = [self.type_name(item) for item in items]
        reader = reader_of(self.phrases, self.lexicon, [*types, *listed])
        self.last_read = _numbered(reader.read(text), [*items, *(NO_ITEM + n for n in range(len(listed)))])
        return self.last_read

    def hear(self, text: str, world: World) -> Reply:
        """Answer a message, whether it came as a question of a tool or by itself."""
        self.last_read = Reading()
        reply = self._reply(text, world)
        return replace(reply, did=_done_by(self.last_read))

    def _reply(self, text: str, world: World) -> Reply:
        if "today" in world.given:
            self.dialogue.today = date.fromisoformat(world.given["today"])
        dropped = self._dropped(asked_of(text))
        if dropped:
            return self._without_dropped(dropped, text, world)
        things = things_in(text, world)
        reading = self.read(without(text, things))
        if self._instead and (reading.unavailable or self._asks_instead(text, world)):
            return self._told_of_stock(text, reading, world)
        points = reading.which or reading.agree or bool(_POINTS.search(text.lower()))
        if not points:  # nothing is asked of what the message only reports
            asked = things_in(asked_of(text), world)
            others = reading.open or any(not describes(question) for question in reading.questions)
            things = [thing for thing in things if thing in asked] if asked or others else things
        things = [] if self._asks_for_the_day(things, reading, points) else things
        if things and (reading.asks or reading.agree or reading.which):
            opinions = opinions_of(things, self.goal, self.state.known, world, self.judge)
            if opinions:
                return self.dialogue.opinion(opinions, reading.which and not reading.agree, reading, text)
        return self.dialogue.answer(self._labelled(reading, text), text)

    def _labelled(self, reading: Reading, text: str) -> Reading:
        """Take what the endpoint says that a question asks for, where the parser found nothing at all in it."""
        found = reading.questions or reading.open or reading.which or reading.agree or reading.unavailable
        if self.wording is None or found or not (reading.asks and reading.unclear):
            return reading
        slots = self.wording.label(text, self._askable())
        return replace(reading, questions=tuple(map(Question, slots)), unclear=()) if slots else reading

    def _askable(self) -> dict[str, str]:
        """List what such a customer may be asked for, by names that anybody understands; whether this one withholds it,
        or has it at all, is not told."""
        items = [item for item in self.goal.items if (item, "type") not in self.goal.withheld]
        slots = reader_of(self.phrases, self.lexicon, [self.type_name(item) for item in items]).slots
        options = {self.option_name(item).replace("_", " "): "option" for item in items}
        named = {slot.removeprefix("attr:").replace("_", " "): slot for slot in slots if slot != "option"}
        return {
            name: slot for name, slot in {**(options if "option" in slots else {}), **named}.items() if name
        }

    def _asks_for_the_day(self, things: Sequence[Thing], reading: Reading, points: bool) -> bool:
        """Tell whether orders are named by their days only because a day is asked for ("Was it placed on May 3?"), or
        to ask for another one ("The one of May 3, or the one after that?")."""
        if not all(thing.dated for thing in things):
            return False
        if any(q.slot == "relation" and q.values and self.dialogue.has(q) for q in reading.questions):
            return True
        if reading.which and len(things) > 1:
            return False
        return not points and any(question.slot in DAYS for question in reading.questions)

    def _dropped(self, text: str) -> list[str]:
        """List the types of the items that a message names and that the customer no longer wants."""
        gone = [item for item in self.first.items if item not in self.goal.items]
        left = {self.type_name(item) for item in self.goal.items}
        return [
            self.type_name(item)
            for item in gone
            if self.type_name(item) not in left and self._names(item, text.lower())
        ]

    def _without_dropped(self, dropped: Sequence[str], text: str, world: World) -> Reply:
        """Say again that these are not wanted, and answer what the other sentences ask or tell of stock."""
        said = [Act("give up", kind) for kind in dropped]
        others = " ".join(part for part in SENTENCE_BREAK.split(text) if not self._dropped(part))
        reading = self.read(others)
        if not (reading.questions or reading.open or reading.which or reading.unavailable):
            return Reply(said)
        rest = self._reply(others, world)
        return Reply([*said, *rest.acts], rest.news)

    def proposed(self, text: str, world: World) -> list[str]:
        """List the types of the products that a message names, of those that a tool has shown."""
        lowered, catalog = text.lower(), world.catalog
        rows = {product_id: world.row(product_id) for product_id in world.shown}
        named = {
            catalog.type_of(row).name
            for product_id, row in rows.items()
            if product_id.lower() in lowered or catalog.title(row).lower() in lowered
        }
        return sorted(named)

    def sees(self, world: World) -> list[Act]:
        """Correct the mistakes in sight."""
        seen, hidden = self._in_view(world), self.state.withheld
        changed = [item for item in seen.items if seen.of(item) != self.first.of(item)]
        found = corrections.mistakes(seen, self.phrases, self.acts_on, world, hidden, changed)
        self.in_sight = found
        right = corrections.right(seen, self.acts_on, world)
        return self.dialogue.corrections([m for m in found if m.item not in self.dialogue.skipped], right)

    # Shortages. The customer knows no stock: they hear of a shortage from the agent, and then say what they want
    # instead, which was drawn with the task. The verifier expects that wish whether they have heard or not: it is what
    # they would want, so that silence is no way to an easier cart, and a guess at it no mistake.

    def is_short(self, item: int, world: World) -> bool:
        """Tell whether the shop has less of an item than the customer wants."""
        return self._change_for(item, self.goal, world) is not None

    def told_short(self, item: int | None, world: World) -> list[Act]:
        """Take in that an item, or with None any, has run short, and say what is wanted instead; what the shop has is
        still wanted."""
        asked_about = self.goal.items if item is None else [item]
        acts: list[Act] = []
        for each in asked_about:
            change = self._change_for(each, self.goal, world)
            if change is not None:
                name = self.type_name(each)
                self.goal, said = goal_changes.settle(change, self.goal, self.state, self.phrases, name)
                acts += said
        return acts or [Act("still wanted", self.type_name(asked_about[0] if asked_about else 0))]

    def wanted(self, world: World) -> Goal:
        """Return the goal that the verifier expects: what the customer wants, and instead of what has run short what
        they would want."""
        goal = self.goal
        for item in goal.items if self._instead else ():
            change = self._change_for(item, goal, world)
            goal = goal.apply(change) if change else goal
        return goal

    def _change_for(self, item: int, goal: Goal, world: World) -> GoalChange | None:
        """Choose what is wanted instead of an item; None if it has not run short."""
        if item not in self._instead:
            return None
        want = next((want for want in wants_of(goal) if want.item == item), None)
        return shortages.instead(self._instead[item], want, goal, world) if want else None

    def _in_view(self, world: World) -> Goal:
        """Return the goal by which the customer looks at the cart: who finds there, untold, what they would take
        instead of something that has run short does not object."""
        goal = self.goal
        for item in goal.items if self._instead else ():
            change = self._change_for(item, goal, world)
            if change is None or change.how == "drop":
                continue
            other = goal.apply(change)
            wants = wants_of(other)
            at = next(number for number, want in enumerate(wants) if want.item == item)
            if match(wants, world).held[at] == wants[at].quantity:
                goal = other
        return goal

    def _asks_instead(self, text: str, world: World) -> bool:
        """Tell whether a message asks what to take instead of something that has run short."""
        return bool(_INSTEAD.search(text.lower())) and any(
            self.is_short(item, world) for item in self.goal.items
        )

    def _told_of_stock(self, text: str, reading: Reading, world: World) -> Reply:
        """Answer a message that says that something has run short: what its sentences about that name, else whatever
        it may be; and what it asks about other items."""
        sentences = SENTENCE_BREAK.split(text)
        parts = [part for part in sentences if self.read(part).unavailable]
        parts = parts or [part for part in sentences if _INSTEAD.search(part.lower())]
        about, items = " ".join(parts).lower() or text.lower(), self.goal.items
        products = [thing for thing in things_in(about, world) if thing.kind == "product"]
        kinds = {world.catalog.type_of(world.row(thing.id)).name for thing in products}
        named = [item for item in items if self.type_name(item) in kinds or self._names(item, about)]
        named = list(dict.fromkeys(item for item in named or reading.unavailable if item in items))
        acts = [act for item in named for act in self.told_short(item, world)]
        acts = acts or self.told_short(None, world)
        self.dialogue.pleased()
        rest = tuple(q for q in reading.questions if q.item in items and q.item not in named)
        if not rest:
            return Reply(acts)
        reply = self.dialogue.answer(
            replace(reading, questions=rest, open=False, unclear=(), which=False), text
        )
        return Reply([*acts, *reply.acts], reply.news)

    def _names(self, item: int, lowered: str) -> bool:
        """Tell whether a text in lower case names the type of an item, by its last word if no other item has that."""
        kind = self.lexicon.types[self.type_name(item)]
        others = {self.type_name(other).split()[-1] for other in self.goal.items if other != item}
        names = [kind.name, kind.plural]
        if kind.name.split()[-1] not in others:
            names += [name.split()[-1] for name in names]
        return any(re.search(rf"\b{re.escape(name.lower())}\b", lowered) for name in names)

    def tick(self, progress: Progress, world: World, quiet: bool) -> list[Act]:
        """Let the events happen that are due after a turn; the customer tells of a change of mind only in a message of
        its own: `quiet` says that they have said nothing else in this turn, or are asked for their last word."""
        acts: list[Act] = []
        for event in [event for event in self._pending if progress.reached(event)]:
            if isinstance(event, SellOut):
                world.sell_out(event)
            elif not quiet:
                continue
            self._pending.remove(event)
            if event.item in self.dialogue.skipped and not isinstance(event, SellOut):
                continue  # given up, and not mentioned again
            self.fired.append(event)
            if isinstance(event, GoalChange):
                found = goal_changes.apply(event, self.goal, self.state, self.phrases, self.type_name)
                if found is not None:
                    self.dialogue.right = 0
                    self.goal, said = found
                    acts += said
        return acts

    def say(self, acts: Sequence[Act]) -> str:
        """Word these acts as one message."""
        texts = self.speaker.sentences(acts)
        if self.wording is None:
            return " ".join(texts)
        return self.wording.reply(texts, [act.seen for act in acts], self.check)


def _done_by(reading: Reading) -> frozenset[str]:
    """Name what a message did, roughly: a stand-in until the reading says it."""
    if reading.agree:
        return frozenset(("consent",))
    if reading.unavailable:
        return frozenset()
    if len(reading.questions) > 1 and all(question.values for question in reading.questions):
        return frozenset(("summary",))
    if reading.questions or reading.which or reading.unclear:
        return frozenset(("question",))
    return frozenset(("closing",)) if reading.open else frozenset(("courtesy",))


def _numbered(reading: Reading, items: Sequence[int]) -> Reading:
    """Put the numbers of the goal's items for the places of their names."""

    def number(place: int) -> int:
        return items[place] if 0 <= place < len(items) else place

    return replace(
        reading,
        questions=tuple(replace(one, item=number(one.item)) for one in reading.questions),
        open_items=tuple(number(place) for place in reading.open_items),
        unavailable=tuple(number(place) for place in reading.unavailable),
    )
