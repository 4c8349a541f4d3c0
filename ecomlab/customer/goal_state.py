"""The goal state: what the customer has stated of their goal, withholds, and has revealed since."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.task import Slot


@dataclass
class GoalState:
    """Slots stated in the opening, withheld, and revealed since."""

    stated: list[Slot] = field(default_factory=list)
    withheld: list[Slot] = field(default_factory=list)
    revealed: list[Slot] = field(default_factory=list)
    own: Collection[str] = ()
    """Slots that have sentences of their own, because they are no property of a product."""
    identified: bool = False
    """True once the agent has named what goes back, and was told that this is the one."""

    @property
    def known(self) -> list[Slot]:
        """Slots that the agent has been told."""
        return [*self.stated, *self.revealed]

    def reveal(self, slots: Iterable[Slot]) -> list[Slot]:
        """Move withheld slots to the revealed ones; return those that were moved."""
        news = [slot for slot in slots if slot in self.withheld]
        for slot in news:
            self.withheld.remove(slot)
            self.revealed.append(slot)
        return news

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
        for said in (self.stated, self.withheld, self.revealed):
            said[:] = [slot for slot in said if slot.item not in gone or slot.name in self.own]
