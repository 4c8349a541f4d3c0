"""Dialogue acts: what the customer does, before it is worded, and the mistakes that an act corrects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.task import Slot


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
class Mistake:
    """Something in the world that the customer sees is wrong, and the act that says so."""

    act: Act
    reveals: tuple[Slot, ...] = ()
    item: int | None = None

    @property
    def name(self) -> str:
        """The same from turn to turn for one mistake; another mistake with the same item has another."""
        return f"{self.act.kind}: {self.act.seen if self.item is None else self.item}"
