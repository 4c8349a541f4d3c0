"""The moments that the agent's work on one goal has reached: what sell-outs and changes of mind wait for."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ecomlab.task import ACT, LOOK, Event


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
