"""The simulated customer, who hears messages, answers questions, sees what is done and changes their mind."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import corrections, goal_changes, shortages
from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.agreeing import agreement
from ecomlab.customer.dialogue import AT_ONCE, DAYS, DialogueManager, Reply
from ecomlab.customer.goal_state import GoalState, Progress
from ecomlab.customer.llm import Wording
from ecomlab.customer.meaning import CHAIN, said_again
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.opinions import Judge, Thing, asked_of, opinions_of, points_back, things_in
from ecomlab.customer.reactions import Person, done_by, phrase
from ecomlab.customer.reading.model import QUESTIONS
from ecomlab.customer.reading.reading import (
    NO_ITEM,
    THING_KINDS,
    Question,
    Reading,
    Said,
    marked,
    read,
)
from ecomlab.customer.reading.vocabulary import vocabulary_of
from ecomlab.customer.rewording import Check
from ecomlab.customer.tastes import Tastes
from ecomlab.customer.telling import Asked, Listener
from ecomlab.customer.templates import SENTENCE_BREAK, Phrases
from ecomlab.task import Event, Goal, GoalChange, Instead, SellOut, Slot
from ecomlab.wishes import Taste
from ecomlab.world.cart import match, wants_of
from ecomlab.world.orders.chains import chain_in
from ecomlab.world.plain import plain, things_that_fit
from ecomlab.world.policy_book.places import named_in
from ecomlab.world.state import World
from ecomlab.world.substitutes import noun

_INSTEAD = re.compile(
    r"\b(?:instead|(?:a different|another) (?:one|product|model|kind)|alternatives?|substitutes?|replacements?|"
    r"leave (?:it|them) out|do without|none at all|second choice)\b"
)
"""Marks of a question what to take instead of something."""
_VAIN = frozenset(("elaborate", "consent", "yes", "to what", "decline", "indifferent"))
"""Acts that answer no refusal."""
_AMISS = re.compile(
    r"\b(?:any|some)thing\b[^.?!]{0,40}\b(?:wrong\b(?! with)|chang\w+|differ\w+|correct\w*|miss(?:ed|ing)|forgotten)",
    re.IGNORECASE,
)
"""Words of a question for whatever is not as the agent has it."""
_TO_KNOW = re.compile(
    r"\b(?:you(?:'d| would| also| still)*|would you) (?:like|want|wish)(?:ed)? to know\b"
    r"|\bbe \w+ to know\b|\blet you know\b|\byou(?:'re| are)(?: also)? (?:asking|wondering)\b"
    r"|\bwhat(?:'s| is) your question\b",
    re.IGNORECASE,
)
_IT = r"(?:the |that |those |your |an? |any |some )?(?:§|it\b|them\b|one\b|those\b)"
_STAYS_OR_GOES = re.compile(
    rf"\bstill (?:\w+ ){{0,4}}?{_IT}|{_IT} (?:\w+ ){{0,4}}?still\b|\b(?:keep|hold on to) {_IT}"
    rf"|\b(?:want|like|buy|order|have|get|with) {_IT} (?:even so|anyway|regardless|all the same)"
    r"|§ (?:\w+ ){0,2}(?:stay|remain)|\b(?:so|then) no §|§: in or out"
    rf"|\b(?:drop(?:ping)?|skip(?:ping)?|cancel(?:ling)?|remov(?:e|ing)|omit(?:ting)?|scrap|cut|scratch|strike|delete"
    rf"|without|forget|forget about|forgetting about|not (?:to )?(?:buy|get|order)\w*|decided against) {_IT}"
    rf"|\b(?:leav\w+|left|tak\w+) (?:{_IT} (?:out|off)|(?:out|off) {_IT})"
    rf"|(?:n't|not) (?:need|want) {_IT} any ?more"
    r"|§ (?:\w+ ){0,4}(?:omitted|cancell?ed|removed|dropped|left out|struck)\b"
)
"""Words, in lower case, that ask whether a thing (§) stays or goes: whichever is meant, the answer is one."""
_ASKS = re.compile(r"\?|\b(?:confirm|let me know|tell me|wondering|ok|okay|all right|permission|objection)\b")
_ASKS_MORE = re.compile(r"\b(?:which|what|where|when|how many|how much|i'm still|i am still|i still)\b")
"""Words by which a sentence asks for something else, or says what is being done."""
_FURTHER = re.compile(r"\b(?:else|more|further|other)\b", re.IGNORECASE)
"""What a sentence asks or says of the customer's own questions; it may ask for `_FURTHER` ones."""
_CHOICE = re.compile(r"\bwhich\b|\b(?:any|either|one) of (?:these|those|them)\b", re.IGNORECASE)
"""Words by which one of several things is to be chosen."""


class Customer:
    """A customer with one goal, whose acts follow by rule from the goal, what was said and the world.

    `acts_on` names what the agent's tools can change ("cart", "returns"), which the customer looks at and corrects;
    `judge` gives their opinion of things that the agent names; `person` is who they are. `wording` words what they
    say, in no sentence that is `reserved`; `questions` are those that they may ask in their turn.
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
        person: Person,
        wording: Wording | None = None,
        reserved: Collection[str] = (),
        questions: Sequence[Asked] = (),
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
        withheld = goal.said(withheld=True)
        unknown = {slot: goal.places[slot.name] for slot in withheld if slot.name in goal.places}
        withheld = [slot for slot in withheld if slot.name not in goal.places]
        self.state = GoalState(goal.said(), withheld, unknown=unknown, own=phrases.slots.keys())
        self.dialogue = DialogueManager(self.state, self.type_name, self.option_name, phrases.slots)
        self.listener = Listener(questions)
        self.tastes = Tastes()
        self.dialogue.liked = self.tastes.liked
        self.in_sight: list[Mistake] = []
        """Mistakes that stood when the customer last looked."""
        self.person = person
        self.last_read = Reading()
        """What the last message, or a part of it, was read as."""
        self.last_said: list[Act] = []
        """What the customer said last, after the opening."""
        self.fired: list[Event] = []
        """Events that have happened; a change of mind when the agent is told."""
        self._instead = {event.item: event for event in events if isinstance(event, Instead)}
        self._settled: set[int] = set()
        """Items of which they have said what they want instead."""
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
        return kind.option.name if kind and kind.option.values else ""

    @property
    def expects_more(self) -> bool:
        """True while something is still to happen."""
        return any(not isinstance(event, SellOut) for event in self._pending)

    def read(self, text: str, things: Sequence[Thing] = ()) -> Reading:
        """Understand a message: what it does, asks for and says, of which item. `things` are those that it names."""
        self.last_read = self._understood(text, things)
        return self.last_read

    def _understood(self, text: str, things: Sequence[Thing] = ()) -> Reading:
        items = self.goal.items or self.first.items
        listed = [kind for slot in self.state.known if slot.name in ("parts", "added") for kind in slot.value]
        vocabulary = vocabulary_of(self.phrases, self.lexicon, [*map(self.type_name, items), *listed])
        names = {number: thing.names for number, thing in _marks(things).items() if not thing.dated}
        return self.numbered(read(marked(text, names), vocabulary))

    def numbered(self, reading: Reading) -> Reading:
        """Put the numbers of the goal's items for the places of their names."""
        items = self.goal.items or self.first.items
        places = [*items, *range(NO_ITEM, NO_ITEM + THING_KINDS)]

        def number(place: int) -> int:
            return places[place] if 0 <= place < len(places) else place

        def numbered(said: Sequence[Said]) -> tuple[Said, ...]:
            return tuple(replace(one, item=number(one.item)) for one in said)

        return replace(
            reading,
            questions=tuple(replace(one, item=number(one.item)) for one in reading.questions),
            said=numbered(reading.said),
            mentions=numbered(reading.mentions),
            open_items=tuple(map(number, reading.open_items)),
            unavailable=tuple(map(number, reading.unavailable)),
        )

    def hear(self, text: str, world: World) -> Reply:
        """Answer a message, whether it came as a question of a tool or by itself."""
        if "today" in world.given:
            self.dialogue.today = date.fromisoformat(world.given["today"])
        self.dialogue.in_hand = lambda: self._in_hand(world)
        self.dialogue.settled = lambda: self._is_done(world)
        self.last_read = Reading()
        answered, unclear = self.listener.hear(text, self.goal, world)
        patience = self.dialogue.annoyed
        if answered and not self.read(text, things_in(text, world)).calls_for - {"back"}:
            self.dialogue.refused_by_shop |= "REFUSE" in self.last_read.acts
            reply = Reply([Act("acknowledge answer")])
        else:
            reply = self._reply(text, world)
        refused = self.dialogue.refused_by_shop
        asks = any(act.kind == "ask agent" for act in reply.acts)
        nothing_left = not asks and self._has_said_all(reply)
        again = self.listener.ask_again(self.goal, world, unclear, nothing_left, refused)
        if again:
            self.dialogue.annoyed = min(patience, self.dialogue.annoyed)
            kept = reply.acts if reply.news or asked_of(text) else ()
            last = [act for act in kept if act.kind == "nothing"]
            reply = replace(reply, acts=[*(act for act in kept if act not in last), *again, *last])
        agreed = agreement(text, reply.acts)
        world.agreed += [agreed] if agreed else []
        shows = any(act.kind in ("like", "dislike", "like none") for act in reply.acts)
        telling = {"telling"} if answered or again or shows else set[str]()
        return replace(reply, did=done_by(self.last_read) | telling)

    def _has_said_all(self, reply: Reply) -> bool:
        """Tell whether a reply to the last message leaves nothing else to say: it tells no wish, and the message did
        more than ask for one, greet, or say that the agent is at work."""
        read = self.last_read
        calls = read.calls_for & {"judge", "open"} or (not read.calls_for and "TELL" in read.acts)
        return bool(calls) and not any(act.slots or act.type for act in reply.acts)

    def overhear(self, text: str, world: World) -> None:
        """Take in what the agent writes beside tool calls, as far as it answers a question of theirs."""
        self.listener.hear(text, self.goal, world)

    def _reply(self, text: str, world: World) -> Reply:
        dropped = self._dropped(asked_of(text))
        if dropped:
            left = " ".join(part for part in SENTENCE_BREAK.split(text) if not self._dropped(part))
            return self._and_to(left, [Act("give up", kind) for kind in dropped], world)
        if kept := self._kept(text, world):
            return self._and_to(self._asks_else(text), kept, world)
        unknown = [slot.name for slot in self.state.unknown]
        places = named_in(text, unknown)
        asked = {question.slot for question in self.read(text).questions} if places else set[str]()
        looked = self.dialogue.look(places, asked)
        if looked is not None:
            others = [part for part in SENTENCE_BREAK.split(text) if not named_in(part, unknown)]
            return self._having_looked(looked, " ".join(others), world)
        if own := self._own_questions(world):
            parts = SENTENCE_BREAK.split(text)
            asks = [_TO_KNOW.search(part) and part.rstrip().endswith("?") for part in parts]
            others = [part for part, so in zip(parts, asks) if not so or _FURTHER.search(part)]
            if len(others) < len(parts):  # nobody judges another's words for what they ask: they ask it again
                if others:
                    rest = self._reply(" ".join(others), world)
                    return replace(rest, acts=[*rest.acts, *own])
                return self.dialogue.asked_back(own)
        named = text  # what leads to their order names none by itself
        for slot in [slot for slot in self.state.known if slot.name == CHAIN]:
            if chain_in(text) not in (None, slot.value) and text.rstrip().endswith("?"):
                return Reply([Act("no"), *self.dialogue.again([slot])])
            named = said_again(slot.value).sub("it", named)
        things = things_in(named, world)
        return self.reacts(self.read(named, things), text, world, things)

    def _own_questions(self, world: World) -> list[Act]:
        """Make the acts that ask what the customer has asked and has not been told."""
        asked = self.dialogue.again(slot for slot in self.state.known if slot.name == "question")
        left = {name: about for name, about in self.goal.asks.items() if name not in world.told}
        return [*asked, Act("ask agent", slots=left)] if left else asked

    def _having_looked(self, looked: Reply, others: str, world: World) -> Reply:
        """Answer what the other sentences ask; nothing again that was looked up."""
        found = {slot.name for slot in looked.news}
        if all(question.slot in found for question in self.read(others).questions):
            return looked
        rest = self._reply(others, world)
        acts = [act for act in rest.acts if not act.slots or not act.slots.keys() <= found]
        return Reply([*looked.acts, *acts], (*looked.news, *rest.news))

    def reacts(self, reading: Reading, text: str, world: World, things: Sequence[Thing] = ()) -> Reply:
        """Answer a message that is read so, and names these things."""
        if self._instead and (reading.unavailable or self._asks_instead(reading, text, world)):
            short = self._told_of_stock(text, reading, world)
            if short is not None:
                return short
        shown = self.tastes.of(things, text, self.goal, self.state.known, world)
        plans = reading.acts & {"SUMMARY", "CONSENT"}  # a plan with what they like gets a yes
        if shown and not (plans and {act.kind for act in shown} == {"like"}):
            return self._seen(shown, reading, text)
        if start := self._start_of_reference(things, reading, text, world):
            return start
        reading = self._labelled(reading, text)
        if self.state.withheld and reading.calls_for & {"ask", "judge"} and _AMISS.search(asked_of(text)):
            asks = reading.calls_for if reading.questions else reading.calls_for - {"ask"}
            reading = replace(reading, calls_for=asks | {"open"})
        self.dialogue.refused_by_shop |= "REFUSE" in reading.acts
        if reading.calls_for == {"repeat"}:
            told = [replace(act, clean=True) for act in self.last_said if act.slots]
            return Reply(told or self.dialogue.repeated())
        meant = self._asked_things(things, reading, text, world)
        opinions = opinions_of(meant, self.goal, self.state.known, world, self.judge)
        asks_which = _CHOICE.search(asked_of(text)) is not None
        of_values = any(len(q.values) > 1 for q in reading.questions) and reading.acts & {"LIST", "CHOICE"}
        if len(opinions) == 1 and (of_values or (asks_which and "judge" not in reading.calls_for)):
            opinions = []  # the others are not named as the shop does, or it is asked which version of it
        if opinions:
            several = len(opinions) > 1 and (" or " in (asked_of(text) or text) or asks_which)
            which = (reading.which or several) and ("judge" not in reading.calls_for or asks_which)
            listed = any(slot.name == "count" for slot in self.state.known)  # who wants seven, is shown seven
            listed = listed and not any(opinion.identifies for _, opinion in opinions)
            which = which and not (listed and len(opinions) > AT_ONCE)
            rows = [world.row(thing.id) for thing, _ in opinions if thing.kind == "product"]
            kinds = {world.catalog.type_of(row).name for row in rows}
            which = which and len(kinds) < 2  # a can and a pot are no candidates for one wish
            reply = self.dialogue.opinion(opinions, which, reading, text)
        else:
            reply = self.dialogue.react(reading, text)
        if "identity" in reading.calls_for:
            reply = self._identified(reply, text)
        acts = list(reply.acts)
        vain = {act.kind for act in acts} <= _VAIN and "ask" not in reading.calls_for
        if "REFUSE" in reading.acts and not reply.news and vain:
            acts = [Act("accept refusal")]  # what cannot be had is not asked for again
        acts = self.dialogue.of_wishes(acts, reading)
        acts = [*(one for one in phrase(reading.acts, beside=bool(acts)) if one not in acts), *acts]
        unseen = [any(isinstance(value, Taste) for value in act.slots.values()) for act in acts]
        if any(unseen):
            acts.insert(unseen.index(True) + 1, Act("show some"))
        return replace(reply, acts=acts or [Act("acknowledge")])

    def _start_of_reference(
        self, things: Sequence[Thing], reading: Reading, text: str, world: World
    ) -> Reply | None:
        """Answer whether a product is the one that a reference they told starts from: a person knows what they looked
        at, and what is to be thought stays unsaid."""
        asks = text.rstrip().endswith("?") and not reading.acts & {"SUMMARY", "CONSENT", "OFFER"}
        if not asks or len({thing.text for thing in things}) != 1 or things[0].kind != "product":
            return None
        rows, said = [world.row(thing.id) for thing in things], text.lower()
        kind = world.catalog.type_of(rows[0]).name
        starts = [(slot, by) for slot, by in self.state.looked_at if by["type"] == kind]
        of_value = any(
            slot.value.steps and noun(slot.name.removeprefix("attr:")) in said for slot, _ in starts
        )
        if of_value or not starts or kind in map(self.type_name, self.goal.items):
            return None
        right = any(row in things_that_fit(by, world) for _, by in starts for row in rows)
        return self.dialogue.also(Act("this one" if right else "not this one"), things[0], reading, text)

    def _seen(self, shown: Sequence[Act], reading: Reading, text: str) -> Reply:
        """Say this of what a message shows, and answer what else it asks for."""
        looks = {slot.name for slot in self.state.known if isinstance(slot.value, Taste)}
        rest = tuple(
            one
            for one in reading.questions
            if not (one.values or one.slot in looks or self.dialogue.is_known(one))
            and (one.item >= 0 or one.slot != "option")  # the look of one is the option of another
        )
        if not rest:
            return Reply(list(shown))
        asks = replace(reading, questions=rest, calls_for=frozenset(("ask",)), unclear=(), acts=frozenset())
        reply = self.dialogue.answer(asks, text)
        return replace(reply, acts=[*shown, *reply.acts])

    def _identified(self, reply: Reply, text: str) -> Reply:
        """Put before a reply who they are, and the number of the order where they have it."""
        acts, news = self.person.tells(text), list[Slot]()
        numbers = [slot for slot in (*self.state.withheld, *self.state.known) if slot.name == "number"]
        if numbers and any(act.kind == "no order number" for act in acts):
            news = self.state.reveal(numbers)
            acts = [act for act in acts if act.kind != "no order number"]
            acts += self.dialogue.spoken("elaborate", [slot for slot in numbers if slot not in reply.news])
        return replace(reply, acts=[*acts, *reply.acts], news=(*news, *reply.news))

    def _asked_things(
        self, things: Sequence[Thing], reading: Reading, text: str, world: World
    ) -> Sequence[Thing]:
        """List the things that a message asks about; nothing is asked of what it only reports, but where the question
        points back to it: "Your helmet was ordered on March 2. Is this the one?"."""
        points = "judge" in reading.calls_for or points_back(text)
        if not reading.calls_for & {"ask", "judge"} and not ("open" in reading.calls_for and points):
            return ()
        named = {thing.text for number, thing in _marks(things).items() if number in reading.things}
        asked = {thing for thing in things if thing.text in named}  # lines of two orders may have one title
        asked |= {thing for thing in things_in(asked_of(text) or text, world) if thing.dated}
        meant = [thing for thing in things if thing in asked]
        beside = any(q.slot == "relation" and q.values and self.dialogue.has(q) for q in reading.questions)
        if beside and len(meant if asked else things) < 2 and (not asked or self._asks_beside(text)):
            return ()  # the order before or after the one that is named
        opens = not points and (
            self.state.identified
            or reading.acts & {*QUESTIONS} == {"SET"}  # "It is in your cart. What else?"
        )
        if (points or reading.which or not (reading.questions or opens)) and not meant:
            meant = list(things)
        return [] if not points and self._asks_for_the_day(meant, reading) else meant

    def _asks_beside(self, text: str) -> bool:
        """Tell whether a message's question itself speaks of the order before or after another one."""
        return any("relation" in said.slots for said in self._understood(asked_of(text)).mentions)

    def _labelled(self, reading: Reading, text: str) -> Reading:
        """Take what the endpoint says that a question asks for, where the parser found nothing at all in it."""
        asks = bool(reading.unclear) or "ask" in reading.calls_for
        if self.wording is None or reading.questions or not asks or reading.calls_for - {"ask", "back"}:
            return reading
        slots = self.wording.label(text, self._askable())
        if not slots:
            return reading
        calls_for = reading.calls_for - {"back"} | {"ask"}
        return replace(reading, questions=tuple(map(Question, slots)), unclear=(), calls_for=calls_for)

    def _askable(self) -> dict[str, str]:
        """List what such a customer may be asked for, by names that anybody understands; whether this one withholds it,
        or has it at all, is not told."""
        items = [item for item in self.goal.items if (item, "type") not in self.goal.withheld]
        slots = vocabulary_of(self.phrases, self.lexicon, [self.type_name(item) for item in items]).slots
        options = {self.option_name(item).replace("_", " "): "option" for item in items}
        named = {slot.removeprefix("attr:").replace("_", " "): slot for slot in slots if slot != "option"}
        return {
            name: slot for name, slot in {**(options if "option" in slots else {}), **named}.items() if name
        }

    def _asks_for_the_day(self, things: Sequence[Thing], reading: Reading) -> bool:
        """Tell whether orders are named by their days only because a day is asked for ("Was it placed on May 3?"), or
        to ask for another one ("The one of May 3, or the one after that?")."""
        if not things or not all(thing.dated for thing in things):
            return False
        if reading.which and len(things) > 1:
            return False
        return "judge" not in reading.calls_for and any(
            q.slot in DAYS and self.dialogue.has(q) for q in reading.questions
        )

    def _in_hand(self, world: World) -> frozenset[str]:
        """List, in lower case, what describes the order lines that they may mean: a person knows what they bought."""
        found = set[str]()
        for order in world.given.get("orders", ()):
            lines = [Thing("line", order["order_id"], "", line["line_id"]) for line in order["lines"]]
            opinions = [self.judge(self.goal, world, line) for line in lines]
            right = [opinion is not None and opinion.right for opinion in opinions]
            for line, meant in zip(order["lines"], right if any(right) else ()):
                row = world.row(line["product_id"])
                values = [world.catalog.brand(row), world.catalog.feature(row), line["variant_id"]]
                values += world.catalog.attributes(row).values()
                values = [world.catalog.type_of(row).name, *(values if meant else ())]
                found |= {str(value).lower() for value in values if value}
        return frozenset(found)

    def _is_done(self, world: World) -> bool:
        """Tell whether all that they asked for stands in the world, where the agent's tools can put it there."""
        if not self.acts_on:
            return False
        goal = plain(self.goal, world, conditions=False)
        wanted = sum(want.quantity for want in wants_of(goal)) if "cart" in self.acts_on else 1
        return not self.in_sight and corrections.right(self.goal, self.acts_on, world) >= wanted

    def _dropped(self, text: str) -> list[str]:
        """List the types of the items that a message names and that the customer no longer wants."""
        gone = [item for item in self.first.items if item not in self.goal.items]
        left = {self.type_name(item) for item in self.goal.items}
        return [
            self.type_name(item)
            for item in gone
            if self.type_name(item) not in left and self._names(item, text.lower())
        ]

    def _kept(self, text: str, world: World) -> list[Act]:
        """Say that a thing is still wanted where it is asked whether it stays or goes, or what instead if it has run
        short. Of a thing that is described otherwise than it is wanted, nothing is said: that one may go."""
        hidden = {slot.item for slot in self.state.withheld if slot.name == "type"}
        items = [item for item in self.goal.items if item not in hidden] if "cart" in self.acts_on else []
        lowered = text.lower()
        named = [item for item in items if self._names(item, lowered)]
        if not named or not _ASKS.search(lowered):
            return []
        about = [part for part in SENTENCE_BREAK.split(lowered) if self._stays_or_goes(part, named)]
        reading = self.read(" ".join(about))
        if not about or reading.questions or "SUMMARY" in reading.acts or things_in(" ".join(about), world):
            return []  # it asks for more, reads the order back, or means a product
        if any(self.dialogue.claim(one, exactly=False).so is False for one in reading.mentions):
            return []
        meant = [item for item in named if any(self._names(item, part) for part in about)] or named[:1]
        acts = list[Act]()
        for item in meant:
            short = self.is_short(item, world)
            acts += self.told_short(item, world) if short else [Act("still wanted", self.type_name(item))]
        return acts

    def _stays_or_goes(self, lowered: str, items: Sequence[int]) -> bool:
        """Tell whether a sentence in lower case asks whether one of these items stays or goes."""
        for item in items:
            kind = self.lexicon.types[self.type_name(item)]
            for name in (kind.plural.lower(), kind.name.lower()):
                lowered = lowered.replace(name, "§")
        return _STAYS_OR_GOES.search(lowered) is not None and not _ASKS_MORE.search(lowered)

    def _asks_else(self, text: str) -> str:
        """Return the questions of a message that do not ask whether something stays or goes."""
        items, parts = list(self.goal.items), SENTENCE_BREAK.split(text)
        return " ".join(
            part for part in parts if part.endswith("?") and not self._stays_or_goes(part.lower(), items)
        )

    def _and_to(self, others: str, said: list[Act], world: World) -> Reply:
        """Say this, and answer what a message's other sentences ask or tell of stock."""
        reading = self.read(others)
        if not reading.calls_for - {"back"} and not reading.unavailable:
            return Reply(said)
        rest = self._reply(others, world)
        return Reply([*said, *rest.acts], rest.news)

    def is_reported_to(self, text: str, world: World) -> bool:
        """Tell whether a message proposes a product, names an order or answers a question."""
        answers = any(asked.slot in world.told for asked in self.listener.questions)
        return bool(answers or self.proposed(text, world)) or any(
            t.kind != "product" for t in things_in(text, world)
        )

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

    def sees(self, world: World, patience: int | None = None) -> list[Act]:
        """Correct the mistakes in sight; what has been said in this turn then costs no patience beside that: `patience`
        is how annoyed the customer was before."""
        seen, hidden = self._in_view(world), self.state.withheld
        changed = [item for item in seen.items if seen.of(item) != self.first.of(item)]
        found = corrections.mistakes(seen, self.phrases, self.acts_on, world, hidden, changed)
        self.in_sight = found
        right = corrections.right(seen, self.acts_on, world)
        standing = [mistake for mistake in found if mistake.item not in self.dialogue.skipped]
        if standing and patience is not None:
            self.dialogue.annoyed = patience
        return self.dialogue.corrections(standing, right)

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
                self._settled.add(each)
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
        want = next((want for want in wants_of(plain(goal, world)) if want.item == item), None)
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
            wants = wants_of(plain(other, world))
            at = next(number for number, want in enumerate(wants) if want.item == item)
            if match(wants, world).held[at] == wants[at].quantity:
                goal = other
        return goal

    def _stands(self, item: int, world: World) -> bool:
        """Tell whether all that is wanted of an item is in the cart."""
        wants = wants_of(plain(self.goal, world, conditions=False))
        held = match(wants, world).held if "cart" in self.acts_on else [0] * len(wants)
        return any(want.item == item and held[at] == want.quantity for at, want in enumerate(wants))

    def _asks_instead(self, reading: Reading, text: str, world: World) -> bool:
        """Tell whether a message asks what to take instead of something that has run short."""
        asks = bool(_INSTEAD.search((asked_of(text) or text).lower()))
        asks &= not reading.acts & {"CONSENT", "SUMMARY"}
        return asks and any(self.is_short(item, world) for item in self.goal.items)

    def _told_of_stock(self, text: str, reading: Reading, world: World) -> Reply | None:
        """Answer a message that says that something has run short: what its sentences about that name, else whatever
        it may be; and what it asks about other items. None where they have said what they want instead."""
        sentences = SENTENCE_BREAK.split(text)
        parts = [part for part in sentences if self.read(part).unavailable]
        parts = parts or [part for part in sentences if _INSTEAD.search(part.lower())]
        about, items = " ".join(parts).lower() or text.lower(), self.goal.items
        products = [thing for thing in things_in(about, world) if thing.kind == "product"]
        kinds = {world.catalog.type_of(world.row(thing.id)).name for thing in products}
        named = [item for item in items if self.type_name(item) in kinds or self._names(item, about)]
        named += [item for item in items if self.is_short(item, world) and self._described(item, about)]
        named = list(dict.fromkeys(item for item in named or reading.unavailable if item in items))
        there = [item for item in named if self._stands(item, world)]
        named = [item for item in named if item not in there]
        settled = self._settled and self._settled.issuperset(named)
        if (there and not named) or (settled and not any(self.is_short(i, world) for i in items)):
            return None
        beside = reading.which or (len(named) > 1 and "judge" in reading.calls_for)
        if beside and not any(self.is_short(item, world) for item in named):
            return None  # others will do, and it is asked of them
        acts = [act for item in named for act in self.told_short(item, world)]
        acts = [act for act in acts if act.kind != "still wanted"] or acts or self.told_short(None, world)
        self.dialogue.annoyed = 0
        rest = tuple(q for q in reading.questions if q.item in items and q.item not in named)
        if not rest:
            return Reply(acts)
        reply = self.dialogue.answer(
            replace(reading, questions=rest, calls_for=frozenset(("ask",)), unclear=()), text
        )
        return Reply([*acts, *reply.acts], reply.news)

    def _described(self, item: int, lowered: str) -> bool:
        """Tell whether a text in lower case names the brand or the variant that was wanted of an item."""
        known = [slot for slot in self.state.known if slot.item == item and slot.name in ("brand", "option")]
        return any(str(slot.value).lower() in lowered for slot in known)

    def _names(self, item: int, lowered: str) -> bool:
        """Tell whether a text in lower case names the type of an item, by its last word if no other item has that."""
        kind = self.lexicon.types[self.type_name(item)]
        others = {self.type_name(other).split()[-1] for other in self.goal.items if other != item}
        names = [kind.name.lower(), kind.plural.lower()]
        if kind.name.split()[-1] not in others:
            names += [name.split()[-1] for name in names]
        return any(name in lowered and re.search(rf"\b{re.escape(name)}\b", lowered) for name in names)

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
        self.last_said = list(acts) or self.last_said
        texts = self.speaker.sentences(acts)
        if self.wording is None:
            return " ".join(texts)
        return self.wording.reply(texts, [act.seen for act in acts], self.check)


def _marks(things: Sequence[Thing]) -> dict[int, Thing]:
    """Number things for a reading, each kind from its first number on."""
    kinds = ("product", "order", "line")
    of_kind = [[thing for thing in things if thing.kind == kind][:THING_KINDS] for kind in kinds]
    return {
        THING_KINDS * place + n: thing for place, some in enumerate(of_kind) for n, thing in enumerate(some)
    }
