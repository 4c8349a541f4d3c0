"""The contract of an environment, seven names and two methods, and of its audit, whose methods default."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import telling
from ecomlab.customer.opinions import Opinion, Thing, of_product
from ecomlab.customer.telling import Asked
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.players.base import Perturbation
from ecomlab.players.courteous import Courtesy, questions_for
from ecomlab.reward import Fault, Verdict
from ecomlab.slots import slot_type
from ecomlab.task import ACT, LOOK, Goal, Need, Place, Player, Problem, Task, TaskKey
from ecomlab.tool import Tool
from ecomlab.wishes import AnyBut, OneOf
from ecomlab.world.cart import Want
from ecomlab.world.faults import told
from ecomlab.world.state import World
from ecomlab.world.tools.cart import cart_add
from ecomlab.world.tools.orders import return_initiate

CHANGED_BY = {"cart": cart_add, "returns": return_initiate}
"""Things in the world that customers look at and correct, each with the tool that changes it."""


@dataclass(frozen=True)
class Comes:
    """What a job of a journey rightly comes to, for a later one to stand on."""

    name: str
    """Of `ecomlab.wishes.OUTCOMES`."""
    amount: int | None
    """None where there is none: what is declined pays nothing back."""
    might: int
    """What it could have been, whether or not it is."""


class Audit:
    """Answers about an environment's tasks for the laws and for the study of mistakes; every method has a default."""

    def __init__(self, env: "Environment") -> None:
        self.env = env

    # What is wrong in parts, and which products are sought: for the study of mistakes.

    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        """List the faults, without consequences of other faults.

        With an `answer` (empty if nothing was submitted), there is a fault if and only if `verify` does not find the
        end correct. With None (the agent is still at work), list the faults so far, not what is still missing. By
        default the verifier's reason is the only fault.
        """
        verdict = None if answer is None else self.env.verify(goal, world, answer, first)
        if verdict is None or verdict.correct:
            return ()
        return [Fault("wrong answer" if answer else "missed item", "answer", words=verdict.why)]

    def found(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        """List the faults, and the answers to the customer's questions that are wrong or missing."""
        told_wrong = telling.faults(self.env.questions, goal, world, at_end=answer is not None)
        return [*self.faults(goal, world, answer, first), *told_wrong]

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        """List the wanted products, needed to judge a claim that there are none; by default none."""
        return ()

    # For the laws.

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other values that a withheld slot might have: a whole `Goal` if other slots change with it, a `Task`
        if the world would have been drawn differently."""
        return ()

    def product_values(self, name: str, value: Any, kind: str, shop: Shop) -> Sequence[Any]:
        """List other values of a slot of a product of this type."""
        if isinstance(value, OneOf | AnyBut):
            others = self.product_values(name, value.values[-1], kind, shop)
            able = [other for other in others if other not in value.values]
            return [replace(value, values=(*value.values[:-1], other)) for other in able]
        if slot_type(name).others:
            return slot_type(name).alternatives(value)
        if name == "brand":
            return list(shop.catalog.brands)
        attributes = shop.catalog.types[shop.catalog.type_codes[kind]].attributes
        return [other for one in attributes if f"attr:{one.name}" == name for other in one.values]

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        """Tell whether a goal can be met, before and after everything that happens in the task."""
        return True

    def chance(self, task: Task, shop: Shop) -> float:
        """Compute the probability that picking from a list by position alone is correct."""
        return 0.0

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        """Tell what the task's traps come to, by "kind: what is so", with ", item" where there are several: whether a
        condition holds, whether the cheapest is the best. No opening may tell, and neither is a safe guess."""
        return {}


class Environment:
    """One kind of task. A file with a subclass under `ecomlab/envs` is an environment; nothing else is needed.

    The engine supplies turns, budgets, the customer, counterfactuals and the reward.
    """

    id: ClassVar[str]
    version: ClassVar[int]
    """Increased whenever the same key would mean a different task."""
    brief: ClassVar[str]
    """Description of the agent's work, for the system prompt."""
    tools: ClassVar[Sequence[Tool]]
    submit: ClassVar[Tool]
    phrases: ClassVar[Phrases]
    player: ClassVar[Callable[..., Any]]
    """Class of the reference player and oracle: a `GoalPlayer`, or one that takes the same arguments."""
    questions: ClassVar[Sequence[Asked]] = ()
    """Questions that a customer may ask in their turn, each with sentences in `phrases`."""
    moments: ClassVar[Sequence[str]] = (LOOK, ACT)
    """Moments after which a customer may change their mind, the earliest first; see `Event`."""
    composes: ClassVar[Sequence[str]] = ()
    """Ids of the environments that a journey chains; such an environment neither draws nor verifies by itself."""
    auditor: ClassVar[type[Audit]] = Audit
    """Class of its audit."""

    def __repr__(self) -> str:
        return f"<{self.id}-v{self.version}: {self.brief}>"

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        """Draw a goal and the world that hides the answer; all randomness comes from streams named by `key`."""
        raise NotImplementedError

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        """Judge the end state of the world, by code alone. `goal` is the final goal, `first` the one at the start;
        `answer` holds the arguments of `submit` and is empty if there was no submit."""
        raise NotImplementedError

    def judge(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        """Judge the end state of the world, and what the agent has told the customer."""
        return telling.judged(self.verify(goal, world, answer, first), self.questions, goal, world)

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        """Tell what the customer thinks of a thing that the agent names; None if a person in their place could not
        tell. By default: whether a product meets their wishes for its type."""
        return of_product(goal, world, thing)

    def comes_to(self, task: Task, shop: Shop) -> Comes | None:
        """Work out what a task rightly comes to in the end, for a later job of a journey to stand on; None where it is
        nothing of that kind, or not certain."""
        return None

    def is_right(self, taken: Goal, goal: Goal, task: Task, shop: Shop) -> bool:
        """Tell whether what is right in the end for a goal `taken` in a task is right for another `goal` of it."""
        return True

    def budget(self, axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count what the courteous player needs in 99% of tasks whose openings name so many items, or of any number if
        None. It depends on these arguments alone, because the agent is told the budget."""
        found: Need = self.player.budget(axes, shop, items)  # type: ignore[attr-defined]
        return found

    # Made by the engine from the above.

    @cached_property
    def audit(self) -> Audit:
        """What the laws and the study of mistakes ask."""
        return self.auditor(self)

    def reasons(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> str:
        """Word why an end is not correct, by the faults that the audit lists; for a `verify` whose audit does not ask
        it for them, as the default does."""
        return told([fault.words for fault in self.audit.faults(goal, world, answer, first)])

    @property
    def offered(self) -> dict[str, Tool]:
        """The tools by name."""
        return {tool.name: tool for tool in self.tools}

    @property
    def acts_on(self) -> frozenset[str]:
        """Things that the tools change and the customer looks at."""
        return frozenset(what for what, tool in CHANGED_BY.items() if tool in self.tools)

    def reference_player(
        self,
        shop: Shop,
        perturbation: Perturbation | None = None,
        courteous: bool = False,
        lacks: Collection[str] = (),
        contrary: Collection[str] = (),
    ) -> Any:
        """Make a player that sees what a model sees; with a `perturbation` it makes mistakes, a `courteous` one asks
        for one or two things at a time and talks to the customer about what it does, one that `lacks` kinds of
        steps of thought does not take them, and a `contrary` one believes that the plain choice is always wrong."""
        courtesy = Courtesy(self.asked_for) if courteous else None
        lexicon = lexicon_of(shop.catalog)
        made = self.player(self.phrases, lexicon, perturbation=perturbation, courtesy=courtesy)
        if lacks:
            made.lacks = frozenset(lacks)
        if contrary:
            made.contrary = frozenset(contrary)
        return made

    @property
    def asked_for(self) -> list[str]:
        """Slots that a customer may be asked for, as far as questions for them do not depend on the product."""
        own = [name for name, slot in self.phrases.slots.items() if not slot.once]
        return [name for name in (*self.phrases.asks, *own) if questions_for(name)]

    def oracle(self, episode: Any) -> Player:
        """Make a player that knows the current goal of an episode or subtask, and acts through the tools."""
        return self.player(self.phrases, lexicon_of(episode.shop.catalog), truth=lambda: episode.goal)
