"""Environments whose work ends in an answer: what is wanted is slots; what happens changes them, or is a rush."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer.acts import Act, Slot
from ecomlab.customer.nlg import ANSWERS
from ecomlab.customer.nlu import read_message
from ecomlab.customer.templates import read_sayings
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.players.base import Slips
from ecomlab.players.goal_player import Clerk
from ecomlab.task import Draft, Event, Need, Player, Task

if TYPE_CHECKING:
    from ecomlab.episode.episode import Episode
    from ecomlab.episode.subtask import Job

Wanted = dict[tuple[int, str], Any]
"""What the customer wants now: value by subject (which thing) and slot name, in the customer's order."""


class Answering(Environment):
    """A base for such environments: a subclass draws, verifies and says how `clerk` works.

    `task.truth["slots"]` is a list of [subject, name, value], `task.truth["withheld"]` one of [subject, name]. Events
    of kind "change" carry {"slots": {name: value}} of their subject, those of kind "rush" {"type": name, "share": p}.
    """

    in_world = False
    acts: ClassVar[Mapping[str, Sequence[str]]] = ANSWERS
    clerk: type[Clerk]
    """Solver, fair and noisy player: the same work, from the truth or from what was read."""

    def draft(
        self,
        slots: Sequence[tuple[int, str, Any]],
        withheld: Collection[tuple[int, str]],
        world: Mapping[str, Any],
        need: Need,
        events: Sequence[Event] = (),
        leads: Sequence[str] | None = None,
        **truth: Any,
    ) -> Draft:
        """A draft from slots: those with a type become wanted things of the opening, the sayings follow it."""
        told = [(s, name, value) for s, name, value in slots if (s, name) not in withheld]
        things = list(dict.fromkeys(s for s, name, _ in told if name == "type"))
        items = [
            {name: value for s, name, value in told if s == thing and name not in self.sayings}
            for thing in things
        ]
        kept = [[s, name, value] for s, name, value in slots]
        return Draft(
            items=items,
            complete=not withheld,
            world=world,
            truth={"slots": kept, "withheld": [[s, n] for s, n, _ in slots if (s, n) in withheld], **truth},
            need=need,
            events=tuple(sorted(events, key=lambda e: (e.turn, e.kind, e.subject))),
            said=[(name, value) for _, name, value in told if name in self.sayings],
            leads=leads,
        )

    def begin(self, task: Task, shop: Shop) -> Wanted:
        return {(s, name): value for s, name, value in task.truth["slots"]}

    def slots(self, task: Task) -> tuple[list[Slot], list[Slot]]:
        hidden = {(s, name) for s, name in task.truth["withheld"]}
        stated: list[Slot] = []
        withheld: list[Slot] = []
        for s, name, value in task.truth["slots"]:
            if name != "type":
                (withheld if (s, name) in hidden else stated).append(Slot(s, name, value))
        return stated, withheld

    def type_name(self, task: Task, state: Wanted, subject: int) -> str:
        return str(state.get((subject, "type"), ""))

    def occur(self, episode: "Job", event: Event) -> None:
        if event.kind == "rush":
            episode.world.rush(event.data["type"], event.data["share"])

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        if event.kind == "rush":
            return [Act("check stock", event.data["type"])]
        slots = dict(event.data["slots"])
        episode.state.update({(event.subject, name): value for name, value in slots.items()})
        episode.kernel.ledger.restate(event.subject, {n: v for n, v in slots.items() if n != "type"})
        return [Act("change", self.type_name(episode.task, episode.state, event.subject), slots)]

    def turn_to(self, episode: "Job", slots: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The customer now means something else, and nothing that was said before stands. What they say of it: its
        type ("" for none), the words that describe it, and the sayings."""
        episode.state.clear()
        episode.state.update({(0, name): value for name, value in slots.items()})
        untyped = {name: value for name, value in slots.items() if name != "type"}
        episode.kernel.ledger.forget(0)
        episode.kernel.ledger.restate(0, untyped)
        words = {name: value for name, value in untyped.items() if name not in self.sayings}
        said = {name: value for name, value in untyped.items() if name in self.sayings}
        return slots.get("type", ""), words, said

    def missing(self, episode: "Job") -> list[Act]:
        return [Act("hand in")]

    def read_later(self, text: str, lexicon: Lexicon, known: Mapping[tuple[int, str], Any]) -> Wanted:
        """Slots that a later message gives, those of a product for the subject of that type."""
        said, rest = read_sayings(text, self.sayings)
        read: Wanted = {(0, name): value for name, value in said}
        for mention in read_message(rest, lexicon):
            for (subject, name), value in known.items():
                if name == "type" and value == mention.type:
                    read |= {(subject, slot): new for slot, new in mention.slots.items()}
        return read

    def solver(self, episode: "Job | Episode") -> Player:
        return self.clerk(self, lexicon_of(episode.shop.catalog), truth=lambda: episode.state)

    def fair_player(self, shop: Shop, slips: Slips | None = None) -> Player:
        return self.clerk(self, lexicon_of(shop.catalog), slips=slips)


def withhold(
    slots: Sequence[tuple[int, str, Any]],
    axes: Difficulty,
    random: np.random.Generator,
    never: Callable[[int, str], bool] = lambda subject, name: False,
) -> set[tuple[int, str]]:
    """Which slots the opening leaves out: each with p_missing, but never a type, nor what `never` names."""
    drawn = random.random(len(slots)) < axes.p_missing
    return {
        (s, name)
        for (s, name, _), hit in zip(slots, drawn.tolist(), strict=True)
        if hit and name != "type" and not never(s, name)
    }
