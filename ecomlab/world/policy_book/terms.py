"""The terms of a store in one task: numbers that its systems act on and its policy book tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecomlab.catalog import Catalog
from ecomlab.seeding import rng

WINDOWS = (14, 21, 30, 45, 60, 90)
"""Days within which something can be sent back."""


@dataclass(frozen=True)
class Terms:
    """What this store does in this task."""

    return_days: Mapping[str, int]
    """By department, days from delivery within which a line can be returned, the last day included; 0: it cannot."""


def draw_terms(key: Sequence[Any], catalog: Catalog) -> Terms:
    """The terms of the task that `key` names: some departments have a window of their own, one or two have none."""
    random = rng("terms", *key)
    departments = list(dict.fromkeys(kind.department for kind in catalog.types))
    general = int(random.choice(WINDOWS))
    days = {name: general if random.random() < 0.5 else int(random.choice(WINDOWS)) for name in departments}
    for i in random.permutation(len(departments))[: int(random.integers(1, 3))].tolist():
        days[departments[i]] = 0
    return Terms(days)
