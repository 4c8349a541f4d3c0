"""The nouns everyone shares: Task, Verdict, Environment and their registry."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act, Fault, Slot
from ecomlab.customer.nlg import JOINS, LEADS, LISTS, OPEN
from ecomlab.customer.nlu import read_opening
from ecomlab.customer.templates import Saying, read_sayings
from ecomlab.difficulty import Difficulty
from ecomlab.players.base import Slips
from ecomlab.reward import Verdict
from ecomlab.task import Draft, Event, Player, Task
from ecomlab.tool import Tool

if TYPE_CHECKING:
    from ecomlab.episode.episode import Episode
    from ecomlab.episode.subtask import Job


class Environment(ABC):
    """One kind of job. A file under `ecomlab/envs` with a subclass is an environment; nothing else is needed.

    `ecomlab.envs.answering.Answering` is a base for environments whose work is an answer that is handed in.
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
