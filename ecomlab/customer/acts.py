"""What a customer says, before it is worded: slots, dialogue acts, and mistakes that an act corrects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """One thing the customer cares about: `name` of `subject` (which wanted thing) is `value`."""

    subject: int
    name: str
    value: Any


@dataclass(frozen=True)
class Act:
    """What the customer does, before it is worded: the kind, the product type it is about, and slots by name."""

    kind: str
    type: str = ""
    slots: Mapping[str, Any] = field(default_factory=dict)
    seen: str = ""
    number: int = 0
    clean: bool = False
    """A repetition: said without noise."""


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
