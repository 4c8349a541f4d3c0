"""The nouns of a task: its key, the customer's goal, what happens on the way, what it needs, the frozen record."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ecomlab.difficulty import Difficulty
from ecomlab.seeding import digest, rng

Message = dict[str, Any]
"""An OpenAI chat message: role, content, tool_calls, tool_call_id."""
Player = Callable[[list[Message], list[dict[str, Any]]], Message]
"""Who acts: messages so far and tool schemas in, one assistant message out."""
Place = tuple[int, str]
"""Where a slot's value stands in a goal: the item's number and the slot's name."""


class TaskError(ValueError):
    """A task that cannot be made or used: wrong parameters, another shop, another version."""


class TaskKey(NamedTuple):
    """Names a task's randomness. Overrides are not in it: what a moved axis does not touch is drawn the same."""

    env: str
    version: int
    level: int
    seed: int
    shop: str
    """Fingerprint of catalog, embedder and index: the same key means the same task only in the same shop."""

    def rng(self, *name: Any) -> np.random.Generator:
        """The random stream of that name."""
        return rng(*name, *self)


class Slot(NamedTuple):
    """One thing the customer cares about: `name` of the item with that number is `value`."""

    item: int
    name: str
    value: Any


@dataclass(frozen=True)
class Goal:
    """What the customer wants: slots by item, in the customer's order. Most goals have one item, number 0; a name alone
    means a slot of that one. A goal is a value: methods return another one."""

    slots: Mapping[Place, Any] = field(default_factory=dict)
    withheld: frozenset[Place] = frozenset()
    """Slots that the opening leaves out."""
    unsaid: Mapping[str, Any] = field(default_factory=dict)
    """What is meant and never said, for the verifier: the sold-out product's id."""

    @classmethod
    def one(cls, slots: Mapping[str, Any], withheld: Sequence[str] = (), **unsaid: Any) -> "Goal":
        """The goal of a single item."""
        places = {(0, name): value for name, value in slots.items()}
        return cls(places, frozenset((0, name) for name in withheld), unsaid)

    def __getitem__(self, name: str) -> Any:
        return self.slots[0, name]

    def __contains__(self, name: object) -> bool:
        return (0, name) in self.slots

    def get(self, name: str, default: Any = None, item: int = 0) -> Any:
        """The value of a slot, `default` where there is no such slot."""
        return self.slots.get((item, name), default)

    @property
    def items(self) -> list[int]:
        """Numbers of the items, in the customer's order."""
        return list(dict.fromkeys(item for item, _ in self.slots))

    def of(self, item: int = 0) -> dict[str, Any]:
        """Slots of one item by name."""
        return {name: value for (i, name), value in self.slots.items() if i == item}

    def with_(self, slots: Mapping[str, Any], item: int = 0) -> "Goal":
        """The goal with these values of an item in place of its older ones, or after the rest."""
        return replace(self, slots={**self.slots, **{(item, name): value for name, value in slots.items()}})

    def but(self, *names: str, item: int = 0) -> "Goal":
        """The goal without these slots of an item."""
        return replace(self, slots={p: v for p, v in self.slots.items() if p[0] != item or p[1] not in names})

    def without(self, item: int) -> "Goal":
        """The goal without an item."""
        return replace(self, slots={place: value for place, value in self.slots.items() if place[0] != item})

    def replaced(self, item: int, slots: Mapping[str, Any]) -> "Goal":
        """The goal with another item in the place of this one."""
        of = {i: self.of(i) if i != item else slots for i in self.items}
        return replace(self, slots={(i, name): value for i in of for name, value in of[i].items()})

    def changed(self, change: "GoalChange") -> "Goal":
        """The goal after a change of mind."""
        if change.how == "drop":
            return self.without(change.item)
        if change.how == "anew":
            return replace(self, slots={(change.item, name): value for name, value in change.slots.items()})
        if change.how == "replace":
            return self.replaced(change.item, change.slots)
        return self.with_(change.slots, change.item)

    def after(self, events: Sequence["Event"]) -> "Goal":
        """The goal after every change of mind among these events; what a shortage leads to is not one."""
        goal = self
        for event in events:
            goal = goal.changed(event) if isinstance(event, GoalChange) else goal
        return goal

    def said(self, withheld: bool = False) -> list[Slot]:
        """Slots that the opening states, or those that it withholds. An item's type is no slot of its own: it names
        the item."""
        return [
            Slot(*place, value)
            for place, value in self.slots.items()
            if place[1] != "type" and (place in self.withheld) == withheld
        ]

    def to_json(self) -> dict[str, Any]:
        """A JSON object, the slots as a list: their order counts."""
        slots = [[*place, value] for place, value in self.slots.items()]
        withheld = [list(place) for place in self.slots if place in self.withheld]
        return {"slots": slots, "withheld": withheld, "unsaid": dict(self.unsaid)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Goal":
        """The goal that `to_json` wrote."""
        slots = {(item, name): v for item, name, v in value["slots"]}
        return cls(slots, frozenset((item, name) for item, name in value["withheld"]), value["unsaid"])


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens after a turn, at a state that the task fixes.

    `chain` and `calls` are the turns and tool calls that the reference player needs for it from then on; `silent` means
    that nobody says so until the agent runs into it.
    """

    turn: int = 0
    item: int = 0
    chain: int = 1
    calls: int = 1
    silent: bool = False
    kinds: ClassVar[dict[str, type["Event"]]] = {}

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    def to_json(self) -> dict[str, Any]:
        """A JSON object that names its class; slots as a list, since their order counts."""
        value = {"event": type(self).__name__, **asdict(self)}
        return {**value, "slots": list(map(list, value["slots"].items()))} if "slots" in value else value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Event":
        """The event that `to_json` wrote."""
        fields_ = {name: given for name, given in value.items() if name != "event"}
        if "slots" in fields_:
            fields_["slots"] = dict(map(tuple, fields_["slots"]))
        for name in ("forgets", "types"):
            if name in fields_:
                fields_[name] = tuple(fields_[name])
        return cls.kinds[value["event"]](**fields_)


@dataclass(frozen=True, kw_only=True)
class GoalChange(Event):
    """The customer changes their mind: sets values of an item, adds, drops or replaces one, or means something else
    altogether ("anew": nothing that was said before stands)."""

    slots: Mapping[str, Any] = field(default_factory=dict)
    how: Literal["set", "add", "drop", "replace", "anew"] = "set"
    forgets: tuple[int, ...] = ()
    """Items that are no longer spoken of."""


@dataclass(frozen=True, kw_only=True)
class SellOut(Event):
    """A share of each of these product types sells out, whatever the customer wants."""

    types: tuple[str, ...]
    share: float


@dataclass(frozen=True, kw_only=True)
class Shortage(GoalChange):
    """Of what an item is, in its option, only so much is left; what the customer then wants, if they cannot have it:
    `how` and `slots` of a goal change, "set" with a quantity meaning as many as can be had."""

    constraints: Sequence[Sequence[Any]]
    option: str | None = None
    left: int = 0


@dataclass(frozen=True)
class Need:
    """What the reference player needs without events: `turns` before handing in, `asks` of them questions; tool
    `calls`."""

    turns: int
    asks: int
    calls: int

    def with_events(self, fired: Sequence[tuple[int, Event]], asks: int) -> tuple[int, int]:
        """(turns, calls) with these events, heard after those turns, and so many useful questions.

        An event heard after turn t leaves `chain` turns to do; handing in is one turn more. It counts from when it
        could be heard, not from when a slow agent came to hear of it.
        """
        work = self.turns - max(0, self.asks - asks)
        for turn, event in fired:
            work = max(work, min(turn, self.latest(event)) + event.chain)
        return work + 1, self.calls + sum(event.calls for _, event in fired)

    def latest(self, event: Event) -> int:
        """The turn after which the reference player hears of an event at the latest: of a silent one when it acts on
        the item, its last turn of work."""
        return max(event.turn, self.turns) if event.silent else event.turn


@dataclass(frozen=True)
class Problem:
    """What an environment draws: the customer's goal and the world that hides the answer. The engine adds the key, the
    opening's words and the budgets."""

    goal: Goal
    world: Mapping[str, Any]
    need: Need
    events: Sequence[Event] = ()
    leads: str | Sequence[str] = "default"
    """How the opening begins: the name of one of the phrases' lists, or sentences."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """More that the task's record keeps."""
    opening: str = ""
    """The opening itself, where it is made in another way."""
    subtasks: Sequence["Task"] = ()
    interrupts: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Task:
    """One problem, frozen: what may be shown (`opening`, `world`, the budgets) apart from the truth. JSON both ways."""

    env: str
    key: TaskKey
    """Names its randomness: its own, or its journey's where it is a subtask."""
    overrides: Mapping[str, float]
    opening: str
    """The customer's first message."""
    world: Mapping[str, Any]
    """What tools will show: nothing here says what is wanted."""
    goal: Goal
    need: Need
    events: tuple[Event, ...]
    turns: int
    """Turn budget: what the reference player needs plus the turn slack."""
    calls: int
    """Tool call budget: likewise."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    subtasks: tuple["Task", ...] = ()
    """The tasks that a journey consists of, all in its world."""
    interrupts: tuple[tuple[int, int], ...] = ()
    """(subtask, turn in it) after which a journey's customer turns to the next subtask and comes back later."""

    def __post_init__(self) -> None:
        shared = tuple(replace(s, world=self.world, overrides=self.overrides) for s in self.subtasks)
        object.__setattr__(self, "subtasks", shared)

    @cached_property
    def axes(self) -> Difficulty:
        """Everything that difficulty moves, for this task."""
        return Difficulty.at(self.difficulty, **self.overrides)

    @property
    def version(self) -> int:
        return self.key.version

    @property
    def difficulty(self) -> int:
        return self.key.level

    @property
    def seed(self) -> int:
        return self.key.seed

    @property
    def fingerprint(self) -> str:
        return self.key.shop

    @property
    def parts(self) -> tuple["Task", ...]:
        """The tasks to be done: the subtasks, or this one."""
        return self.subtasks or (self,)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `Task.from_json` gives an equal task."""
        return json.loads(json.dumps({**self._record(), "world": self.world, "overrides": self.overrides}))

    def _record(self) -> dict[str, Any]:
        """Everything but what a subtask shares with its journey."""
        return {
            "env": self.env,
            "key": self.key._asdict(),
            "opening": self.opening,
            "goal": self.goal.to_json(),
            "need": asdict(self.need),
            "events": [event.to_json() for event in self.events],
            "turns": self.turns,
            "calls": self.calls,
            "notes": self.notes,
            "subtasks": [subtask._record() for subtask in self.subtasks],
            "interrupts": self.interrupts,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Task":
        """The task that `to_json` wrote. Raises TaskError when the object is not one."""
        try:
            parts = {"world": {}, "overrides": {}, **value}
            parts["key"] = TaskKey(**parts["key"])
            parts["goal"] = Goal.from_json(parts["goal"])
            parts["need"] = Need(**parts["need"])
            parts["events"] = tuple(map(Event.from_json, parts["events"]))
            parts["subtasks"] = tuple(map(cls.from_json, parts["subtasks"]))
            parts["interrupts"] = tuple((number, turn) for number, turn in parts["interrupts"])
            return cls(**parts)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise TaskError(f"this is not a task written by Task.to_json: {error}") from None

    def digest(self) -> str:
        """Identifies the problem: equal digests mean the same problem in every respect."""
        return digest(self.to_json())


def in_order(events: Sequence[Event]) -> tuple[Event, ...]:
    """Events in the order in which they happen; of one turn, changes of mind before what sells out."""
    return tuple(sorted(events, key=lambda event: (event.turn, isinstance(event, SellOut), event.item)))


def changes_of(events: Sequence[Event]) -> Iterator[GoalChange]:
    """The changes of mind among these events."""
    return (event for event in events if isinstance(event, GoalChange) and not isinstance(event, Shortage))
