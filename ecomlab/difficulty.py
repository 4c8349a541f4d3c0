"""One difficulty number d, twelve axes (SPEC §4)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

from ecomlab.suggest import unknown


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@dataclass(frozen=True)
class Difficulty:
    """The twelve axes at one level; every axis can be set alone with `Difficulty.at(d, top_k=20)`.

    The first four formulas are the published figures; the other eight are named in the articles without
    numbers and settled in SPEC §4. There is no upper cap on d.
    """

    constraints: int
    """m: how many constraints the customer has, at most what the product has."""
    p_missing: float
    """Probability that a slot which may be withheld is left out of the opening."""
    eps_rank: float
    """Share of rows in search results that are inserted distractors."""
    p_oos: float
    """Probability, per wanted item, that it sells out during the conversation."""
    turn_slack: int
    """Turns allowed beyond what the fair player needs for this very task."""
    tool_slack: int
    """Tool calls allowed beyond what the fair player needs for this very task."""
    p_noise: float
    """Probability of a typo or slang per word that may carry one."""
    p_switch: float
    """Probability that the customer changes their mind."""
    top_k: int
    """How deep a search can be paged."""
    k_rec: int
    """Length of a recommendation list."""
    history: int
    """H: the number of past orders; the visit history is three times as long."""
    branches: int
    """B: clauses of a policy rule."""

    @classmethod
    def at(cls, d: int, **overrides: float) -> "Difficulty":
        """The axes at level `d` (a whole number, 0 or more), single axes replaced by `overrides`.

        Raises ValueError for a negative or fractional level, an unknown axis or a value out of its range.
        """
        axes = _formulas(whole(d, "difficulty"))
        return axes.override(overrides) if overrides else axes

    def override(self, values: Mapping[str, float]) -> "Difficulty":
        """The same axes with some set by hand."""
        for name, value in values.items():
            if name not in AXES:
                raise ValueError(unknown("axis", name, AXES))
            low, high = _RANGES[name]
            if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high:
                raise ValueError(f"axis {name!r} takes a number from {low:g} to {high:g}, not {value!r}")
            if isinstance(getattr(self, name), int) and value != int(value):
                raise ValueError(f"axis {name!r} takes a whole number, not {value!r}")
        typed = {name: type(getattr(self, name))(value) for name, value in values.items()}
        return replace(self, **typed)

    def to_json(self) -> dict[str, float]:
        """The axes as a JSON object."""
        return asdict(self)


def whole(number: Any, what: str) -> int:
    """A whole number from 0 up, numpy's too. Raises ValueError for anything else."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
        raise ValueError(f"{what} is a whole number from 0 up, not {number!r}")
    return int(number)


@lru_cache(maxsize=256)
def _formulas(d: int) -> Difficulty:
    """SPEC §4's table at level d."""
    return Difficulty(
        constraints=2 + d // 2,
        p_missing=0.8 * _sigmoid((d - 3.5) / 1.3),
        eps_rank=min(0.4, 0.02 * d),
        p_oos=min(0.5, 0.05 * d),
        turn_slack=max(1, 4 - d // 3),
        tool_slack=max(2, 8 - d // 2),
        p_noise=min(0.125, 0.01 * d),
        p_switch=0.6 * _sigmoid((d - 5) / 2),
        top_k=max(20, 200 - 10 * d),
        k_rec=min(10, 3 + d // 3),
        history=5 + d // 2,
        branches=1 + d // 3,
    )


AXES: tuple[str, ...] = tuple(f.name for f in fields(Difficulty))

_RANGES: dict[str, tuple[float, float]] = {
    "constraints": (1, 1000),
    "p_missing": (0, 1),
    "eps_rank": (0, 0.8),
    "p_oos": (0, 1),
    "turn_slack": (0, 1000),
    "tool_slack": (0, 1000),
    "p_noise": (0, 0.5),
    "p_switch": (0, 1),
    "top_k": (10, 1000),
    "k_rec": (1, 20),
    "history": (1, 1000),
    "branches": (1, 1000),
}
