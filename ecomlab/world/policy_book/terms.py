"""The terms of a store in one task: numbers that its systems apply and its policy book states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecomlab.catalog import Catalog
from ecomlab.seeding import rng, shuffled

WINDOWS = (14, 21, 30, 45, 60, 90)
"""Days within which a line can be returned."""
RETURN_DAYS = (0, 7, 10, *WINDOWS, 120, 150, 180)
"""Days that an exception to a return window may give; 0: none."""


@dataclass(frozen=True)
class Terms:
    """Terms of the store in one task."""

    return_days: Mapping[str, int]
    """By department, days from delivery within which a line can be returned, the last day included; 0: it cannot."""


def draw_terms(key: Sequence[Any], catalog: Catalog) -> Terms:
    """Draw the terms of the task that `key` names: some departments have their own window, one or two have none.

    A department is left that has one: otherwise every return would rightly be declined.
    """
    random = rng("terms", *key)
    departments = list(dict.fromkeys(kind.department for kind in catalog.drawable_types))
    general = int(random.choice(WINDOWS))
    days = {name: general if random.random() < 0.5 else int(random.choice(WINDOWS)) for name in departments}
    without = shuffled(random, departments)
    count = min(int(random.integers(1, 3)), len(departments) - 1)
    return Terms(days | dict.fromkeys(without[:count], 0))
