"""Data types of a task: its key, the customer's goal, events, the reference player's need, the task itself."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn

import numpy as np

from ecomlab.difficulty import Difficulty
from ecomlab.markup.elements import in_notebook, pairs
from ecomlab.seeding import digest, rng
from ecomlab.wishes import from_json, to_json

Message = dict[str, Any]
"""An OpenAI chat message: role, content, tool_calls, tool_call_id."""
Player = Callable[[list[Message], list[dict[str, Any]]], Message]
"""A function of the messages so far and the tools' schemas that returns the next assistant message."""
Place = tuple[int, str]
"""Address of a slot in a goal: the item's number and the slot's name."""


class FrozenDict(dict[str, Any]):
    """A dictionary that cannot be changed, because tasks and caches share it (ISOLATED). Unlike a mapping proxy it can
    be written as JSON, copied and pickled."""

    def _refuse(self, *args: Any, **named: Any) -> NoReturn:
        raise TypeError("this belongs to a task, which cannot be changed; change a copy: dict(value)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return FrozenDict, (dict(self),)


_AS_THEY_ARE = frozenset([str, int, float, bool, type(None), FrozenDict])
"""Immutable types, which hold most of a task's data."""


def frozen(value: Any) -> Any:
    """Copy a JSON value to an immutable one: lists become tuples. A frozen value is returned as it is."""
    if type(value) in _AS_THEY_ARE or isinstance(value, FrozenDict):
        return value
    if isinstance(value, list | tuple):
        return tuple([one if type(one) in _AS_THEY_ARE else frozen(one) for one in value])
    if isinstance(value, Mapping):
        return FrozenDict(
            {name: one if type(one) in _AS_THEY_ARE else frozen(one) for name, one in value.items()}
        )
    return value


class TaskError(ValueError):
    """A task that cannot be made or used: wrong parameters, another shop, another version."""


class TaskKey(NamedTuple):
    """Key of a task's randomness. Overrides are not part of it, so everything that they do not affect is drawn
    alike."""

    env: str
    version: int
    level: int
    seed: int
    shop: str
    """Fingerprint of catalog, embedder and index: the same key means the same task only in the same shop."""
    attempt: int = 0
    """Number of rejected draws before this one; those tasks did not fit the budgets of their kind."""

    def rng(self, *name: Any) -> np.random.Generator:
        """Make the task's random stream of this name."""
        return rng(*name, *self)


class Slot(NamedTuple):
    """One requirement of the customer: the slot `name` of item number `item` is `value`."""

    item: int
    name: str
    value: Any


@dataclass(frozen=True)
class Goal:
    """The customer's goal: slots by item, in the customer's order.

    Most goals have one item, number 0, to which a slot's bare name refers. Methods return another goal.
    """

    slots: Mapping[Place, Any] = field(default_factory=dict)
    withheld: frozenset[Place] = frozenset()
    """Slots that the opening leaves out."""
    unsaid: Mapping[str, Any] = field(default_factory=dict)
    """Facts for the verifier that the customer never says, such as the id of the sold-out product."""
    asks: Mapping[str, Any] = field(default_factory=dict)
    """Questions of the customer that the agent has to answer, by the names of their slots, each with its value."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Slots among the withheld ones that the customer does not know, each with the place where they can look it up."""

    @classmethod
    def one(cls, slots: Mapping[str, Any], withheld: Sequence[str] = (), **unsaid: Any) -> "Goal":
        """Make the goal of a single item."""
        places = {(0, name): value for name, value in slots.items()}
        return cls(places, frozenset((0, name) for name in withheld), unsaid)

    def __getitem__(self, name: str) -> Any:
        return self.slots[0, name]

    def __contains__(self, name: object) -> bool:
        return (0, name) in self.slots

    def get(self, name: str, default: Any = None, item: int = 0) -> Any:
        """Look up the value of a slot; `default` if there is no such slot."""
        return self.slots.get((item, name), default)

    @property
    def items(self) -> list[int]:
        """Numbers of the items, in the customer's order."""
        return list(dict.fromkeys([item for item, _ in self.slots]))

    def of(self, item: int = 0) -> dict[str, Any]:
        """Return the slots of one item by name."""
        return {name: value for (i, name), value in self.slots.items() if i == item}

    def set_slots(self, slots: Mapping[str, Any], item: int = 0) -> "Goal":
        """Set slots of an item; new ones come last."""
        return replace(self, slots={**self.slots, **{(item, name): value for name, value in slots.items()}})

    def drop_slots(self, *names: str, item: int = 0) -> "Goal":
        """Drop these slots of an item."""
        return replace(self, slots={p: v for p, v in self.slots.items() if p[0] != item or p[1] not in names})

    def drop_item(self, item: int) -> "Goal":
        """Drop an item."""
        return replace(self, slots={place: value for place, value in self.slots.items() if place[0] != item})

    def replace_item(self, item: int, slots: Mapping[str, Any]) -> "Goal":
        """Put another item in the place of this one."""
        of = {i: self.of(i) if i != item else slots for i in self.items}
        return replace(self, slots={(i, name): value for i in of for name, value in of[i].items()})

    def apply(self, change: "GoalChange") -> "Goal":
        """Apply a goal change."""
        goal = replace(self, asks={**self.asks, **change.asks})
        if change.how == "drop":
            return goal.drop_item(change.item)
        if change.how == "anew":
            return replace(goal, slots={(change.item, name): value for name, value in change.slots.items()})
        if change.how == "replace":
            return goal.replace_item(change.item, change.slots)
        return goal.set_slots(change.slots, change.item)

    def after(self, events: Sequence["Event"]) -> "Goal":
        """Apply every goal change among these events."""
        goal = self
        for change in changes_of(events):
            goal = goal.apply(change)
        return goal

    def said(self, withheld: bool = False) -> list[Slot]:
        """List the slots that the opening states, or those that it withholds. Types are left out: they name items."""
        return [
            Slot(*place, value)
            for place, value in self.slots.items()
            if place[1] != "type" and (place in self.withheld) == withheld
        ]

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object; the slots are a list because their order counts."""
        slots = [[*place, to_json(value)] for place, value in self.slots.items()]
        withheld = [list(place) for place in self.slots if place in self.withheld]
        return {
            "slots": slots,
            "withheld": withheld,
            "unsaid": dict(self.unsaid),
            "asks": list(map(list, self.asks.items())),
            "places": dict(self.places),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Goal":
        """Read what `to_json` wrote."""
        slots = {(item, name): from_json(v) for item, name, v in value["slots"]}
        hidden = frozenset((item, name) for item, name in value["withheld"])
        return cls(slots, hidden, value["unsaid"], dict(map(tuple, value["asks"])), value["places"])


LOOK, ACT = "look", "act"
"""Moments that are no tool's name: a tool has listed a product of one of an event's types; the agent has changed the
world, or proposed a product to the customer."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens after the turn in which the agent's work first reaches a moment, and at the latest at its
    first submit.

    `moment` is `LOOK`, `ACT` or the name of a tool, `about` the product types whose look-up counts. Neither depends on
    the agent's findings or choices. `turns` and `calls` are the reference player's cost of reacting.
    """

    moment: str = ""
    about: tuple[str, ...] = ()
    item: int = 0
    turns: int = 1
    calls: int = 1
    kinds: ClassVar[dict[str, type["Event"]]] = {}

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object that names the class; slots are a list because their order counts."""
        value = {"event": type(self).__name__, **{one.name: getattr(self, one.name) for one in fields(self)}}
        for name in ("slots", "asks"):
            if name in value:
                value[name] = [[slot, to_json(given)] for slot, given in value[name].items()]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        """Read what `to_json` wrote."""
        fields_ = {name: given for name, given in value.items() if name != "event"}
        for name in ("slots", "asks"):
            if name in fields_:
                fields_[name] = {key: from_json(given) for key, given in fields_[name]}
        for name in ("about", "forgets", "known", "types"):
            if name in fields_:
                fields_[name] = tuple(fields_[name])
        if "left" in fields_:
            fields_["left"] = tuple(map(tuple, fields_["left"]))
        return cls.kinds[value["event"]](**fields_)


@dataclass(frozen=True, kw_only=True)
class GoalChange(Event):
    """A change of the customer's mind: it sets slots of an item, adds, drops or replaces an item, or replaces the whole
    goal ("anew": nothing that was said before still holds)."""

    slots: Mapping[str, Any] = field(default_factory=dict)
    how: Literal["set", "add", "drop", "replace", "anew"] = "set"
    forgets: tuple[int, ...] = ()
    """Items that are not mentioned again."""
    known: tuple[str, ...] = ()
    """Slots that have been valid from the start: said first, because the others make no sense without them."""
    asks: Mapping[str, Any] = field(default_factory=dict)
    """Questions that the customer asks now; those before stand, but for the same ones of another order."""


@dataclass(frozen=True, kw_only=True)
class SellOut(Event):
    """Sell-out of a few products of these types, or of options of them; `ecomlab.world.sell_outs` draws which."""

    types: tuple[str, ...]
    left: tuple[tuple[str, str | None, int], ...]
    """(product id, option or None for all of the product, units left of it)."""


@dataclass(frozen=True, kw_only=True)
class Instead(Event):
    """The customer's replacement for an item that has run short, once they are told. It never happens by itself.

    `slots` describe another product, which is left whatever sells out; the customer takes it where what they prefer
    (another option, as many units as there are, to do without) cannot be had either.
    """

    prefers: Literal["option", "quantity", "replace", "drop"] = "replace"
    slots: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Interrupt(Event):
    """The customer of a journey leaves a subtask for the next one, and comes back to it later."""

    turns: int = 0
    calls: int = 0


@dataclass(frozen=True)
class Need:
    """Turns and tool calls. Of a task: the reference player's number if nothing is withheld and no event happens,
    submit included. Of an environment: the courteous player's maximum in 99% of the tasks that look alike."""

    turns: int
    calls: int

    def plus(self, events: Iterable[Event]) -> "Need":
        """Add what these events cost, each once."""
        events = list(events)
        return Need(
            self.turns + sum(event.turns for event in events),
            self.calls + sum(event.calls for event in events),
        )


COURTESY = 2
"""Turns of a courteous agent beside work and questions: a confirmation before it acts, a word when it is done."""
LEARNED = 2
"""Number of slots that a courteous agent learns from one question."""


@dataclass(frozen=True)
class Problem:
    """Result of an environment's draw: the customer's goal and the world that hides the answer. The engine adds the
    key, the wording of the opening and the budgets."""

    goal: Goal
    world: Mapping[str, Any]
    need: Need
    events: Sequence[Event] = ()
    leads: str = "default"
    """Beginning of the opening: the name of one of the phrases' lists."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Words for the gaps of the opening's frames, beside {items}."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Further data for the task's record."""
    opening: str = ""
    """The whole opening, if it is not made from `goal` and `leads`."""
    steps: Sequence[str] = ()
    """Kinds of the steps of thought that count in this task; see `ecomlab.steps`."""
    subtasks: Sequence["Task"] = ()
    interrupts: Sequence[tuple[int, Interrupt]] = ()


@dataclass(frozen=True)
class Task:
    """A frozen task, which keeps the visible data (`opening`, `world`, the budgets) apart from the ground truth."""

    env: str
    key: TaskKey
    """Key of its randomness; a subtask has its journey's."""
    overrides: Mapping[str, float]
    opening: str
    """The customer's first message."""
    world: Mapping[str, Any]
    """Immutable data behind the tools; nothing in it reveals the goal."""
    goal: Goal
    need: Need
    events: tuple[Event, ...]
    turns: int
    """Turn budget: the courteous player's need in tasks that look like this one, plus the turn slack."""
    calls: int
    """Tool call budget, likewise."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    """Kinds of the steps of thought that count in it; a journey's are those of its subtasks."""
    subtasks: tuple["Task", ...] = ()
    """Tasks of a journey, all in its world."""
    interrupts: tuple[tuple[int, Interrupt], ...] = ()
    """(number of a subtask, the interruption of it) in a journey."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "world", frozen(self.world))
        shared = tuple(replace(s, world=self.world, overrides=self.overrides) for s in self.subtasks)
        object.__setattr__(self, "subtasks", shared)

    @cached_property
    def axes(self) -> Difficulty:
        """Values of everything that depends on difficulty."""
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
    def title(self) -> str:
        """Name of the task in a sentence: environment, level and seed."""
        return f"{self.env} d = {self.difficulty} · seed {self.seed}"

    @property
    def asks(self) -> int:
        """Number of questions that a courteous agent asks, and places that it names; in a journey, of all its
        customers."""
        goals = [part.goal for part in self.parts]
        return sum(math.ceil(len(goal.withheld) / LEARNED) + len(goal.places) for goal in goals)

    @property
    def fullest(self) -> Need:
        """The courteous player's need for this task if all its events happen."""
        needs = [part.need.plus(part.events) for part in self.parts]
        turns = sum(need.turns + COURTESY for need in needs) + self.asks
        return Need(turns, sum(need.calls for need in needs))

    @property
    def fits(self) -> bool:
        """True if the courteous player can do the task within the budgets, without the slack."""
        jobs, most = len(self.parts), self.fullest
        turns, calls = self.turns - jobs * self.axes.turn_slack, self.calls - jobs * self.axes.tool_slack
        return most.turns <= turns and most.calls <= calls

    @property
    def parts(self) -> tuple["Task", ...]:
        """The subtasks of a journey, else this task alone."""
        return self.subtasks or (self,)

    def to_json(self) -> dict[str, Any]:
        """Write as a JSON object, from which `Task.from_json` makes an equal task."""
        return json.loads(json.dumps({**self._record(), "world": self.world, "overrides": self.overrides}))

    def _record(self) -> dict[str, Any]:
        """Write everything except what a subtask shares with its journey."""
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
            "steps": list(self.steps),
            "subtasks": [subtask._record() for subtask in self.subtasks],
            "interrupts": [[number, event.to_json()] for number, event in self.interrupts],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Task":
        """Read what `to_json` wrote. Raises TaskError for anything else."""
        try:
            fields_ = {"world": {}, "overrides": {}, **value}
            fields_["key"] = TaskKey(**fields_["key"])
            fields_["goal"] = Goal.from_json(fields_["goal"])
            fields_["need"] = Need(**fields_["need"])
            fields_["steps"] = tuple(fields_["steps"])
            fields_["events"] = tuple(map(Event.from_json, fields_["events"]))
            fields_["subtasks"] = tuple(map(cls.from_json, fields_["subtasks"]))
            fields_["interrupts"] = tuple(
                (n, Interrupt.from_json(event)) for n, event in fields_["interrupts"]
            )
            task = cls(**fields_)
            if not (isinstance(task.turns, int) and isinstance(task.calls, int) and task.axes):
                raise ValueError(
                    f"budgets must be whole numbers, not {task.turns!r} turns and {task.calls!r} calls"
                )
            return task
        except KeyError as error:
            raise TaskError(f"this is not a task that Task.to_json wrote: it lacks {error}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise TaskError(f"this is not a task that Task.to_json wrote: {error}") from None

    def __repr__(self) -> str:
        return f"<{self.title}: {self.opening}>"

    def _repr_html_(self) -> str:
        """Show the part of the task that a player is told, without the ground truth."""
        facts = {
            "task": f"{self.env} version {self.version}, d = {self.difficulty}, seed {self.seed}",
            "axes": ", ".join(f"{name} = {value:g}" for name, value in self.overrides.items()),
            "shop": self.fingerprint,
            "budgets": f"{self.turns} messages, {self.calls} tool calls",
            "opening": self.opening,
        }
        return in_notebook(pairs({name: value for name, value in facts.items() if value}))

    def digest(self) -> str:
        """Digest the whole task: equal digests mean equal tasks."""
        return digest(self.to_json())


def changes_of(events: Iterable[Event]) -> Iterator[GoalChange]:
    """Select the goal changes."""
    return (event for event in events if isinstance(event, GoalChange))
