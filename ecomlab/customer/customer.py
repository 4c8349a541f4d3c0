"""The simulated customer, who hears messages, answers questions, sees what is done and changes their mind."""

from collections.abc import Sequence

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import corrections, goal_changes
from ecomlab.customer.acts import Act
from ecomlab.customer.dialogue import DialogueManager, Reply
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.hearing import reader_of
from ecomlab.customer.nlg import Speaker
from ecomlab.customer.opinions import Judge, opinions_of, things_in, without
from ecomlab.customer.questions import Reading
from ecomlab.customer.templates import Phrases
from ecomlab.task import Event, Goal
from ecomlab.world.state import World


class Customer:
    """A customer with one goal, whose acts follow by rule from the goal, what was said and the world.

    `acts_on` names what the agent's tools can change ("cart", "returns"), which the customer looks at and corrects;
    `judge` gives their opinion of things that the agent names.
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
    ) -> None:
        self.first = goal
        self.goal = goal
        """Goal as it is now; `first` is what it was."""
        self.phrases = phrases
        self.lexicon = lexicon
        self.speaker = speaker
        self.acts_on = acts_on
        self.judge = judge
        self.state = GoalState(goal.said(), goal.said(withheld=True), own=phrases.slots.keys())
        self.dialogue = DialogueManager(self.state, self.type_name, phrases.slots)
        self.fired: list[tuple[int, Event]] = []
        """Events that changed something the customer cares about, with the turn after which they heard of it."""
        self._pending = list(events)
        self._silent: list[Event] = []

    @property
    def out_of_patience(self) -> bool:
        return self.dialogue.out_of_patience

    def type_name(self, item: int) -> str:
        """Name the product type that an item is called by; "" where it has none."""
        return str(self.goal.get("type", self.first.get("type", "", item), item))

    def read(self, text: str) -> Reading:
        """Understand a message: what it asks for, of which item."""
        items = self.goal.items or self.first.items
        return reader_of(self.phrases, self.lexicon, [self.type_name(item) for item in items]).read(text)

    def hear(self, text: str, world: World) -> Reply:
        """Answer a message, whether it came as a question of a tool or by itself."""
        things = things_in(text, world)
        reading = self.read(without(text, things))
        if things and (reading.asks or reading.agree or reading.which):
            opinions = opinions_of(things, self.goal, self.state.known, world, self.judge)
            if opinions:
                return self.dialogue.opinion(opinions, reading.which and not reading.agree, reading, text)
        return self.dialogue.answer(reading, text)

    def sees(self, world: World) -> list[Act]:
        """Correct the mistakes in sight."""
        found = corrections.mistakes(self.goal, self.phrases, self.acts_on, world, self.state.withheld)
        return self.dialogue.corrections([m for m in found if m.item not in self.dialogue.skipped])

    def tick(self, turn: int, world: World) -> list[Act]:
        """Let the events that are due after this turn happen in the world; react to those that are heard of."""
        acts: list[Act] = []
        due = [event for event in self._pending if event.turn <= turn]
        heard = [event for event in self._silent if goal_changes.run_into(event, world)]
        for event in due:
            self._pending.remove(event)
            goal_changes.occur(event, world)
            (self._silent if event.silent else heard).append(event)
        for event in heard:
            if event in self._silent:
                self._silent.remove(event)
            if event.item in self.dialogue.skipped:
                continue  # given up, and not mentioned again
            found = goal_changes.apply(event, self.goal, self.state, self.phrases, self.type_name, world)
            if found is not None:
                self.goal, said = found
                self.fired.append((turn, event))
                acts += said
        return acts

    def say(self, acts: Sequence[Act]) -> str:
        """Word these acts as one message."""
        return self.speaker.say(acts)
