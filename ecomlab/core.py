"""The nouns everyone shares: Task, Verdict, Environment and their registry."""

import importlib
import importlib.util
import inspect
import json
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.ledger import Slot
from ecomlab.customer.lexicon import Lexicon
from ecomlab.customer.reading import read_opening
from ecomlab.customer.sayings import Saying, read_sayings
from ecomlab.customer.words import JOINS, LEADS, LISTS, OPEN, Act
from ecomlab.difficulty import AXES, Difficulty
from ecomlab.naming import unknown
from ecomlab.seeding import digest
from ecomlab.tooling import Tool

if TYPE_CHECKING:
    from ecomlab.episode import Episode
    from ecomlab.job import Job

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
class Verdict:
    """What a verifier says about an end state: r_task in [-1, 1], whether it is exactly right, and why."""

    credit: float
    correct: bool
    why: str
    claims: tuple[Any, ...] = ()
    """Product ids and (product id, variant id) pairs that cart or answer hold, for the hallucination part."""


@dataclass(frozen=True)
class Fault:
    """Something in the world that the customer sees is wrong, and the act that says so."""

    act: Act
    reveals: tuple[Slot, ...] = ()
    subject: int | None = None

    @property
    def thing(self) -> str:
        """Names the fault from turn to turn: another mistake with the same subject is another fault."""
        return f"{self.act.kind}: {self.act.seen if self.subject is None else self.subject}"


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


class Environment(ABC):
    """One kind of job. A file under `ecomlab/envs` with a subclass is an environment; nothing else is needed.

    `ecomlab.answering.Answering` is a base for environments whose work is an answer that is handed in.
    """

    id: ClassVar[str]
    version: ClassVar[int]
    """Rises whenever the same key would mean a different task."""
    golden: ClassVar[str]
    """Digest of the first tasks in the golden shop: a changed one without a new version fails a test."""
    axes: ClassVar[tuple[str, ...]]
    """The difficulty axes that this environment consumes."""
    brief: ClassVar[str]
    """What the agent is told about its job, in the system prompt."""
    tools: ClassVar[Mapping[str, Tool]]
    submit: ClassVar[Tool]
    sayings: ClassVar[Mapping[str, Saying]] = {}
    """Slots that are no property of a product, by name, and how the customer says them."""
    acts: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Sentences for kinds of acts that this environment's customer says in a way of their own."""
    which: ClassVar[str] = ""
    """The topic of a question for the thing that is meant, if its properties answer it: "Which order?"."""
    leads: ClassVar[Sequence[str]] = LEADS
    """Sentences an opening may begin with; {} is where the wanted things stand."""
    lists: ClassVar[Sequence[str]] = LISTS
    """The same, for several things as a list."""
    closings: ClassVar[Sequence[str]] = OPEN
    joins: ClassVar[Sequence[tuple[str, str]]] = JOINS
    """How an opening ends that leaves something out; never with what says that this is all."""
    in_world: ClassVar[bool] = True
    """Whether its work is done in the world, where later turns can undo it, and not by an answer alone."""
    intros: ClassVar[Sequence[str]] = ()
    """How the customer comes to this job in the course of a journey; only this environment's openings hold them."""

    @abstractmethod
    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        """Draw a task; all randomness comes from streams named by `key`."""

    @abstractmethod
    def begin(self, task: Task, shop: Shop) -> Any:
        """The episode's mutable state: what is wanted now."""

    @abstractmethod
    def slots(self, task: Task) -> tuple[list[Slot], list[Slot]]:
        """The customer's slots as (stated, withheld)."""

    def read_opening(self, text: str, lexicon: Lexicon) -> dict[tuple[int, str], Any]:
        """Every slot that a careful reader takes from the opening, types included, by subject and name (law 2)."""
        said, rest = read_sayings(text, self.sayings)
        read = {(0, name): value for name, value in said}
        for subject, mention in enumerate(read_opening(rest, lexicon)):
            slots = {"type": mention.type, **mention.slots}
            read |= {(subject, name): value for name, value in slots.items()}
        return read

    def type_name(self, task: Task, state: Any, subject: int) -> str:
        """The product type that `subject` is called by; none by default."""
        return ""

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        """Let an event happen; the customer's words about it, or None when it changed nothing they care about."""
        return None

    def heard(self, episode: "Job", event: Event) -> bool:
        """Whether the agent has run into a silent event in the turn just played."""
        return False

    def occur(self, episode: "Job", event: Event) -> None:
        """The part of an event that happens in the world, before anybody speaks of it."""
        return None

    def faults(self, episode: "Job") -> list[Fault]:
        """What the customer sees is wrong with the world as it stands."""
        return []

    def missing(self, episode: "Job") -> list[Act]:
        """What the customer would still ask for if the agent says it is done."""
        return []

    def parts(self, task: Task) -> Sequence[Task]:
        """The tasks that a task consists of: itself, but for a journey's."""
        return (task,)

    def next_part(self, task: Task, under_way: Sequence[int], opened: int, turn: int) -> int | None:
        """Which part the customer turns to after a turn, by number; None where they stay with the last one under way.

        `opened` parts have been begun, the last one `under_way` is in its turn `turn`.
        """
        return None

    def turning(self, task: Task, part: int | None, interrupts: bool = False) -> str:
        """What the customer says when they turn to a part, or, with None, back to the one that they had left."""
        return ""

    def answer_of(self, task: Task, values: dict[str, Any]) -> dict[str, Any]:
        """The arguments of this environment's `submit` as a part's own. Raises RefusedError where one is missing."""
        return values

    def judge(self, episode: "Episode") -> Verdict:
        """The verdict on an episode that is over."""
        return episode.job.verdict or self.verify(episode.job)

    @abstractmethod
    def verify(self, episode: "Job") -> Verdict:
        """Judge the end state of the world, by code alone."""

    @abstractmethod
    def solver(self, episode: "Job | Episode") -> Player:
        """A player that knows the truth and acts only through the tools (law 1)."""

    @abstractmethod
    def fair_player(self, shop: Shop, slips: "Slips | None" = None) -> Player:
        """A player that sees what a model sees (law 2). With `slips`, a noisy one (law 9)."""

    def chance(self, task: Task, shop: Shop) -> float:
        """The probability that picking from a list by position alone is correct (law 3)."""
        return 0.0

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """A task that differs only in withheld truth (law 8), or None when nothing is withheld that could differ."""
        return None


class Slips:
    """Seeded mistakes at a fixed rate per decision."""

    def __init__(self, random: np.random.Generator, rate: float) -> None:
        self.random = random
        self.rate = rate
        self.count = 0
        """Mistakes so far."""

    def slip(self) -> bool:
        """Whether this decision goes wrong."""
        wrong = bool(self.random.random() < self.rate)
        self.count += wrong
        return wrong


class Registry(Mapping[str, Environment]):
    """Environments by id, found by scanning `ecomlab.envs`; unknown ids get a suggestion."""

    @cached_property
    def _found(self) -> dict[str, Environment]:
        import ecomlab.envs as package

        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
        mine = [cls for cls in _subclasses(Environment) if cls.__module__.startswith(package.__name__)]
        for cls in mine:
            _check(cls, cls.__module__)
        return {cls.id: cls() for cls in _subclasses(Environment) if not _lacks(cls)}

    def load(self, path: Path | str) -> list[str]:
        """Add the environments of a file outside the package, in this process; their ids.

        Raises TaskError for a file that holds none or an unfinished one, or one with the id of another.
        """
        known, path = self._found, Path(path)
        spec = importlib.util.spec_from_file_location(f"ecomlab_env_{path.stem}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise TaskError(f"{path} is no Python file; write the environment into a file that ends in .py")
        before = set(_subclasses(Environment))
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        made = [cls for cls in _subclasses(Environment) if cls not in before and hasattr(cls, "id")]
        if not made:
            raise TaskError(f"{path} holds no environment: no subclass of Environment that has an id")
        for cls in made:
            _check(cls, path)
            if cls.id in known and type(known[cls.id]).__module__ != spec.name:
                raise TaskError(f"{path}: there is an environment {cls.id} already; choose another id")
            known[cls.id] = cls()
        return [cls.id for cls in made]

    def __getitem__(self, name: str) -> Environment:
        try:
            return self._found[name]
        except KeyError:
            raise UnknownEnvironmentError(unknown("environment", name, self._found)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._found))

    def __len__(self) -> int:
        return len(self._found)


class UnknownEnvironmentError(KeyError):
    """No environment of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


def _subclasses(cls: Any) -> Iterator[type[Environment]]:
    for sub in cls.__subclasses__():
        yield from _subclasses(sub)
        yield sub


def _check(cls: type[Environment], where: object) -> None:
    """Raises TaskError for an environment that is not finished; a class without an id is only a base of some."""
    if hasattr(cls, "id") and (lacks := _lacks(cls)):
        raise TaskError(f"{where}: {cls.__name__} lacks {', '.join(lacks)}")
    for axis in getattr(cls, "axes", ()):
        if axis not in AXES:
            raise TaskError(f"{where}: {cls.__name__}: {unknown('axis', axis, AXES)}")


def _lacks(cls: type[Environment]) -> list[str]:
    """What a class still needs to be an environment: methods, and the names that are declared without a value."""
    declared = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
    return sorted({*cls.__abstractmethods__, *(name for name in declared if not hasattr(cls, name))})


ENVIRONMENTS = Registry()
