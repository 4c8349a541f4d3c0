"""The goal state: what the customer has stated of their goal, withholds, and has revealed since."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.customer.templates import common_file
from ecomlab.task import Slot

OF_PRODUCTS = ("brand", "feature", "details", "option", "price", "rating", "delivery")
"""Topics that every customer understands; others only where one of their slots belongs to them."""


def topic_of(name: str) -> str:
    """Name the topics of a product's slot, separated by spaces; a question that names one of them gets it."""
    if name.startswith("attr:"):
        return "details option" if name == "attr:size" else "details"
    return {"days": "delivery"}.get(name, name)


@dataclass
class GoalState:
    """Slots stated in the opening, withheld, and revealed since."""

    stated: list[Slot] = field(default_factory=list)
    withheld: list[Slot] = field(default_factory=list)
    revealed: list[Slot] = field(default_factory=list)
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topics of slots that are no property of a product, by slot name."""
    which: str = ""
    """A further topic of all product slots, where they tell which item is meant."""

    def topics_of(self, slot: Slot) -> set[str]:
        """Name the topics of a slot; a question that names one of them gets it."""
        said = self.topics.get(slot.name) or f"{topic_of(slot.name)} {self.which}"
        return set(said.split())

    @property
    def mine(self) -> set[str]:
        """Topics that this customer has beside those of products."""
        return set(" ".join([self.which, *self.topics.values()]).split())

    def reveal(self, slots: Iterable[Slot]) -> list[Slot]:
        """Move withheld slots to the revealed ones; return those that were moved."""
        news = [slot for slot in slots if slot in self.withheld]
        for slot in news:
            self.withheld.remove(slot)
            self.revealed.append(slot)
        return news

    def about(self, topics: Sequence[str]) -> list[Slot]:
        """List the withheld slots on any of these topics, in the customer's order."""
        return [slot for slot in self.withheld if self.topics_of(slot) & set(topics)]

    def known(self, topics: Sequence[str]) -> list[Slot]:
        """List what was already said on these topics."""
        return [slot for slot in self.stated + self.revealed if self.topics_of(slot) & set(topics)]

    def named(self, asked: set[str]) -> set[str]:
        """Name the slots, of those that such a customer may have, that these words mean by themselves."""
        return {name for name in self.topics if asked.intersection(common_file().words.get(name, ()))}

    def restate(self, item: int, slots: Mapping[str, Any]) -> None:
        """State these values of an item; older ones of the same slots no longer hold."""
        for name in ("stated", "revealed", "withheld"):
            kept = [s for s in getattr(self, name) if s.item != item or s.name not in slots]
            setattr(self, name, kept)
        self.stated += [Slot(item, name, value) for name, value in slots.items()]

    def hide(self, slots: Iterable[Slot]) -> None:
        """Withhold these slots, even if they were stated."""
        for slot in slots:
            self.stated.remove(slot)
            self.withheld.append(slot)

    def forget(self, item: int) -> None:
        """Remove everything said or withheld about an item that is no longer wanted."""
        for name in ("stated", "revealed", "withheld"):
            setattr(self, name, [s for s in getattr(self, name) if s.item != item])

    def unsay(self, items: Iterable[int]) -> None:
        """Remove what was said about these items, except slots that have sentences of their own."""
        gone = set(items)
        for said in (self.stated, self.revealed):
            said[:] = [slot for slot in said if slot.item not in gone or slot.name in self.topics]
