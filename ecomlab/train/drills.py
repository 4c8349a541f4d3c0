"""Exercises in copying: rows of names and ids, then the ids that belong to some of the names.

Finding words again and writing what followed them is the step that every job needs and that a tiny model learns last,
because a played episode shows it once or twice. A drill shows it ten times, in the forms of `ecomlab.train.views`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ecomlab.customer.sayings import DAY
from ecomlab.train.aliases import ALIASES
from ecomlab.train.renderer import ASSISTANT, END, TOOLS_CLOSE, TOOLS_OPEN, USER

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog

ASKED = 8
"""Ids that a drill asks for."""
PLAIN = 0.7
"""Share of lists in which a title's last word is enough to know it by."""


def drill(catalog: "Catalog", random: np.random.Generator) -> list[str]:
    """One drill as text, what is read and what is said in turn."""
    ids = [ALIASES[i] for i in random.permutation(len(ALIASES))[:40].tolist()]
    rows, names = (_orders if random.random() < 0.5 else _products)(catalog, ids, random)
    told = [names[i] for i in random.permutation(len(names))[:ASKED].tolist()]
    asked = ",".join(words for words, _ in told)
    said = "\n".join(words + alias for words, alias in told)
    return [
        USER
        + TOOLS_OPEN
        + "\n".join(rows)
        + TOOLS_CLOSE
        + END
        + "\n"
        + USER
        + asked
        + END
        + "\n"
        + ASSISTANT,
        said + END,
    ]


def _products(
    catalog: "Catalog", ids: Sequence[str], random: np.random.Generator
) -> tuple[list[str], list[tuple[str, str]]]:
    titles = list(_titles(catalog, 4 + int(random.integers(12)), random))
    rows = [f"- {' '.join(title)}{alias}" for title, alias in zip(titles, ids, strict=False)]
    return rows, _telling(list(zip(titles, ids, strict=False)), random)


def _orders(
    catalog: "Catalog", ids: Sequence[str], random: np.random.Generator
) -> tuple[list[str], list[tuple[str, str]]]:
    month, rows, dated, all_titles = int(random.integers(1, 12)), [], [], []
    days = sorted(random.permutation(56)[: 3 + int(random.integers(4))].tolist())
    for day, alias in zip(days, ids, strict=False):
        words = f" {DAY.write(f'{month + day // 28:02d}-{1 + day % 28:02d}')}"
        titles = list(_titles(catalog, 1 + int(random.integers(4)), random))
        rows.append(f"-{words}{alias}" + "".join(f", {' '.join(title)}{alias}" for title in titles))
        dated.append((words, alias))
        all_titles += [(title, alias) for title in titles]
    return rows, dated + _telling(all_titles, random)


def _titles(catalog: "Catalog", count: int, random: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Made-up titles: most often all of different types, else the same brand, feature or type in several."""
    most = count if random.random() < PLAIN else 4
    names = (catalog.brands, catalog.features, [kind.name for kind in catalog.types])
    brands, features, types = (
        [some[i] for i in random.permutation(len(some))[:most].tolist()] for some in names
    )
    for i, (a, b, c) in enumerate(random.integers(min(most, len(types)), size=(count, 3)).tolist()):
        yield brands[a % len(brands)], features[b % len(features)], types[i if most == count else c]


def _telling(
    titles: Sequence[tuple[tuple[str, str, str], str]], random: np.random.Generator
) -> list[tuple[str, str]]:
    """For each title as many of its last words, at least, as tell it from the others, with its id."""
    told = []
    for title, alias in titles:
        for first in (2, 1, 0):
            if {a for t, a in titles if t[first:] == title[first:]} == {alias}:
                first = int(random.integers(first + 1))
                told.append((f" {' '.join(title[first:])}", alias))
                break
    return told
