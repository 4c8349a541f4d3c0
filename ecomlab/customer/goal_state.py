"""How far one goal has come: what the customer has stated, withholds and has revealed of it, and what the agent has
done, which sell-outs and changes of mind wait for."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab.task import ACT, LOOK, Event, Slot
from ecomlab.wishes import Of


@dataclass
class GoalState:
    """Slots stated in the opening, withheld, and revealed since."""

    stated: list[Slot] = field(default_factory=list)
    withheld: list[Slot] = field(default_factory=list)
    revealed: list[Slot] = field(default_factory=list)
    unknown: dict[Slot, str] = field(default_factory=dict)
    """Slots that the customer does not know yet, each with the place where they can look it up."""
    own: Collection[str] = ()
    """Slots that have sentences of their own, because they are no property of a product."""
    identified: bool = False
    """True once the agent has named what goes back, and was told that this is the one."""
    found: bool = False
    """True once it has named what sold out, likewise."""

    @property
    def known(self) -> list[Slot]:
        """Slots that the agent has been told."""
        return [*self.stated, *self.revealed]

    @property
    def every(self) -> list[Slot]:
        """Slots that the customer knows, told or withheld."""
        return [*self.known, *self.withheld]

    def named(self, name: str) -> Slot | None:
        """Find the first slot of a name that the customer knows."""
        return next((slot for slot in self.every if slot.name == name), None)

    @property
    def untold(self) -> list[Slot]:
        """What the agent has not been told: withheld, or unknown to the customer."""
        return [*self.withheld, *self.unknown]

    @property
    def looked_at(self) -> list[tuple[Slot, dict[str, Any]]]:
        """List the references to things they looked at that they have told, each with the slots of what it starts
        from."""
        held = ((slot, slot.value) for slot in self.known)
        return [(slot, of.described) for slot, of in held if isinstance(of, Of) and of.where == "visits"]

    def reveal(self, slots: Iterable[Slot]) -> list[Slot]:
        """Move withheld slots to the revealed ones; return those that were moved."""
        news = [slot for slot in slots if slot in self.withheld]
        for slot in news:
            self.withheld.remove(slot)
            self.revealed.append(slot)
        return news

    def look_up(self, slots: Sequence[Slot]) -> None:
        """Move unknown slots to the revealed ones."""
        for slot in slots:
            del self.unknown[slot]
            self.revealed.append(slot)

    def restate(self, item: int, slots: Mapping[str, Any]) -> None:
        """State these values of an item; older ones of the same slots no longer hold."""
        self._remove(lambda slot: slot.item == item and slot.name in slots)
        self.stated += [Slot(item, name, value) for name, value in slots.items()]

    def hide(self, slots: Iterable[Slot]) -> None:
        """Withhold these slots, even if they were stated."""
        for slot in slots:
            self.stated.remove(slot)
            self.withheld.append(slot)

    def forget(self, item: int) -> None:
        """Remove everything said or withheld about an item that is no longer wanted."""
        self._remove(lambda slot: slot.item == item)

    def unsay(self, items: Collection[int]) -> None:
        """Remove what was said about these items, except slots that have sentences of their own."""
        self._remove(lambda slot: slot.item in items and slot.name not in self.own)

    def _remove(self, gone: Callable[[Slot], bool]) -> None:
        for said in (self.stated, self.withheld, self.revealed):
            said[:] = [slot for slot in said if not gone(slot)]


@dataclass
class Progress:
    """What the agent has done so far for one goal, whatever came of it: a moment tells nothing of right and wrong."""

    done: set[str] = field(default_factory=set)
    """Tools that were called, and `ACT`."""
    seen: set[str] = field(default_factory=set)
    """Product types of which a tool has shown a product."""
    handing_in: bool = False
    """True from the first attempt to hand in: then every moment is reached."""

    def note(self, tools: Iterable[str], types: Iterable[str], acted: bool) -> None:
        """Take in a turn: the tools called, the types shown, and whether the agent acted or proposed something."""
        self.done.update(tools)
        self.seen.update(types)
        if acted:
            self.done.add(ACT)

    def reached(self, event: Event) -> bool:
        """Tell whether an event is due."""
        looked = event.moment == LOOK and not self.seen.isdisjoint(event.about)
        return self.handing_in or looked or event.moment in self.done
