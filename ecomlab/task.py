"""The nouns of a problem: events, what they cost, and the frozen task."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ecomlab.difficulty import Difficulty
from ecomlab.seeding import digest

Message = dict[str, Any]
"""An OpenAI chat message: role, content, tool_calls, tool_call_id."""


Player = Callable[[list[Message], list[dict[str, Any]]], Message]
"""Who acts: messages so far and tool schemas in, one assistant message out."""


class TaskError(ValueError):
    """A task that cannot be made or used: wrong parameters, another shop, another version."""


@dataclass(frozen=True)
class Event:
    """Something that happens after a turn: the customer changes their mind, or something sells out.

    `chain` and `calls` are the turns and tool calls that a fair player needs for it from then on; `silent` means
    that nobody says so until the agent runs into it.
    """

    turn: int
    kind: str
    subject: int
    chain: int
    calls: int
    silent: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Need:
    """What a fair player needs without events: `turns` before handing in, `asks` of them questions; tool `calls`."""

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
        """The turn after which a fair player hears of an event at the latest: of a silent one when it acts on the
        thing, its last turn of work."""
        return max(event.turn, self.turns) if event.silent else event.turn


@dataclass(frozen=True)
class Task:
    """One problem, frozen: what may be shown kept apart from the truth. JSON both ways."""

    env: str
    version: int
    difficulty: int
    overrides: Mapping[str, float]
    seed: int
    fingerprint: str
    """Of catalog, embedder and index: the same key means the same task only in the same shop."""
    opening: str
    """The customer's first message."""
    world: Mapping[str, Any]
    """What tools will show: nothing here says what is wanted."""
    truth: Mapping[str, Any]
    """What the customer wants, what they withhold, what will happen."""
    need: Need
    events: tuple[Event, ...]
    turns: int
    """Turn budget: what the fair player needs plus the turn slack."""
    calls: int
    """Tool call budget: likewise."""

    @cached_property
    def axes(self) -> Difficulty:
        """The twelve axes of this task."""
        return Difficulty.at(self.difficulty, **self.overrides)

    @property
    def key(self) -> tuple[Any, ...]:
        """Names the randomness of this task. Overrides are not in it: what a moved axis does not touch is drawn the
        same."""
        return (self.env, self.version, self.difficulty, self.seed, self.fingerprint)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `Task.from_json` gives an equal task."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Task":
        """The task that `to_json` wrote. Raises TaskError when the object is not one."""
        try:
            parts = dict(value)
            parts["need"] = Need(**parts["need"])
            parts["events"] = tuple(Event(**event) for event in parts["events"])
            return cls(**parts)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise TaskError(f"this is not a task written by Task.to_json: {error}") from None

    def digest(self) -> str:
        """Identifies the problem: equal digests mean the same problem in every respect."""
        return digest(self.to_json())


@dataclass(frozen=True)
class Draft:
    """What an environment draws for a task; `make_task` adds key, opening and budgets."""

    items: Sequence[Mapping[str, Any]]
    """Wanted things as slots by name, stated ones only, for the opening."""
    complete: bool
    """Nothing is withheld."""
    world: Mapping[str, Any]
    truth: Mapping[str, Any]
    need: Need
    events: tuple[Event, ...]
    said: Sequence[tuple[str, Any]] = ()
    """Stated slots that are sayings, for the opening."""
    leads: Sequence[str] | None = None
    """How the opening begins, if not by the environment's `leads`."""
    opening: str = ""
    """The opening itself, where it is made in another way."""
