"""The goal state: what the customer has said of their goal, what they withhold, what they have revealed since."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.customer.templates import common_file
from ecomlab.task import Slot

OF_PRODUCTS = ("brand", "feature", "details", "option", "price", "rating", "delivery")
"""Topics that every customer has an ear for; the others only where they have a slot of that kind."""


def topic_of(name: str) -> str:
    """The public topics of a slot, in one text: what a question must name, one of them, to get it."""
    if name.startswith("attr:"):
        return "details option" if name == "attr:size" else "details"
    return {"days": "delivery"}.get(name, name)


@dataclass
class GoalState:
    """What was stated in the opening, what is withheld, what was revealed since."""

    stated: list[Slot] = field(default_factory=list)
    withheld: list[Slot] = field(default_factory=list)
    revealed: list[Slot] = field(default_factory=list)
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topics of slots that are no property of a product, by slot name."""
    which: str = ""
    """A topic that the properties of a product are about too, where they say which thing is meant."""

    def topics_of(self, slot: Slot) -> set[str]:
        """What a question must name, one of them, to get this slot."""
        said = self.topics.get(slot.name) or f"{topic_of(slot.name)} {self.which}"
        return set(said.split())

    @property
    def mine(self) -> set[str]:
        """Every topic that is one of this customer's alone."""
        return set(" ".join([self.which, *self.topics.values()]).split())

    def reveal(self, slots: Iterable[Slot]) -> list[Slot]:
        """Move withheld slots to revealed; returns those that were news."""
        news = [slot for slot in slots if slot in self.withheld]
        for slot in news:
            self.withheld.remove(slot)
            self.revealed.append(slot)
        return news

    def about(self, topics: Sequence[str]) -> list[Slot]:
        """Withheld slots on any of these topics, in the customer's order."""
        return [slot for slot in self.withheld if self.topics_of(slot) & set(topics)]

    def known(self, topics: Sequence[str]) -> list[Slot]:
        """What was already said on these topics."""
        return [slot for slot in self.stated + self.revealed if self.topics_of(slot) & set(topics)]

    def named(self, asked: set[str]) -> set[str]:
        """The slots, of those that such a customer may have, that these words mean by themselves."""
        return {name for name in self.topics if asked.intersection(common_file().words.get(name, ()))}

    def restate(self, item: int, slots: Mapping[str, Any]) -> None:
        """The customer now says these values; older ones of the same names no longer stand."""
        for name in ("stated", "revealed", "withheld"):
            kept = [s for s in getattr(self, name) if s.item != item or s.name not in slots]
            setattr(self, name, kept)
        self.stated += [Slot(item, name, value) for name, value in slots.items()]

    def forget(self, item: int) -> None:
        """The wish for this item is gone or replaced; nothing said or withheld about it matters any more."""
        for name in ("stated", "revealed", "withheld"):
            setattr(self, name, [s for s in getattr(self, name) if s.item != item])

    def unsay(self, items: Iterable[int]) -> None:
        """Nobody speaks of these items again; slots with sentences of their own still stand."""
        gone = set(items)
        for said in (self.stated, self.revealed):
            said[:] = [slot for slot in said if slot.item not in gone or slot.name in self.topics]
