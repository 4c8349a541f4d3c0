"""Dialogue acts of the customer, before they are worded, and the mistakes that they correct."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.task import Slot


@dataclass(frozen=True)
class Act:
    """A dialogue act, before it is worded: its kind, the product type it is about, and slots by name."""

    kind: str
    type: str = ""
    slots: Mapping[str, Any] = field(default_factory=dict)
    seen: str = ""
    number: int = 0
    clean: bool = False
    """Said without noise, because it is a repetition."""


@dataclass(frozen=True)
class Mistake:
    """A mistake in the world that the customer can see, and the act that corrects it."""

    act: Act
    reveals: tuple[Slot, ...] = ()
    item: int | None = None
    too_early: bool = False
    """The customer has not said yet which one they mean."""

    @property
    def name(self) -> str:
        """Name that one mistake keeps from turn to turn, and that no other mistake with the same item has."""
        kind = "correct" if self.act.kind == "mention" else self.act.kind  # what was not said before is now
        return f"{kind}: {self.act.seen if self.item is None or self.too_early else self.item}"
