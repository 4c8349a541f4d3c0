"""Copy drills: rows of names and ids, then some of the names, each to be followed by its id.

Finding words again and copying what followed them is a step that every environment needs and that a tiny model learns
last, because an episode shows it once or twice. A drill shows it a dozen times, in the forms of `compact_results`.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ecomlab.models.renderer import END
from ecomlab.starters.compact_renderer import ASSISTANT, TOOLS_CLOSE, TOOLS_OPEN, USER
from ecomlab.starters.id_aliases import ALIASES
from ecomlab.values import DAY

if TYPE_CHECKING:
    from ecomlab.catalog import Catalog

Parts = list[tuple[str, bool]]
"""Texts, each with True if the policy says it."""
Named = tuple[str, str]
"""Words and the id behind them."""
ASKED = 12
"""Number of ids that a drill asks for."""
PLAIN = 0.7
"""Share of lists in which a title's last word identifies it."""


def copy_drill(catalog: "Catalog", random: np.random.Generator) -> list[str]:
    """Draw a drill as texts, heard and said in turn: rows and names are heard, ids that can be known are said.

    Those are the ids behind the names, and a row's own id each time after the first. There is no list of the names at
    the start: without ids behind them, they draw attention away from the rows (2M tokens taught to copy such a list,
    and no id).
    """
    ids = [ALIASES[i] for i in random.permutation(len(ALIASES))[:40].tolist()]
    rows, names = (_orders if random.random() < 0.5 else _products)(catalog, ids, random)
    parts = [(USER + TOOLS_OPEN, False)]
    for number, row in enumerate(rows):
        parts += [("\n" if number else "", False), *row]
    parts.append((TOOLS_CLOSE + END + "\n" + ASSISTANT, False))
    for number, i in enumerate(random.integers(len(names), size=ASKED).tolist()):
        words, alias = names[i]
        parts += [("\n" if number else "", False), (words, False), (alias, True)]
    return [
        *("".join(text for text, _ in some) for _, some in groupby(parts, key=lambda part: part[1])),
        "",
        END,
    ]


def _products(
    catalog: "Catalog", ids: Sequence[str], random: np.random.Generator
) -> tuple[list[Parts], list[Named]]:
    titles = list(zip(_titles(catalog, 4 + int(random.integers(12)), random), ids, strict=False))
    return [[(f"- {' '.join(title)}{alias}", False)] for title, alias in titles], _telling(titles, random)


def _orders(
    catalog: "Catalog", ids: Sequence[str], random: np.random.Generator
) -> tuple[list[Parts], list[Named]]:
    month = int(random.integers(1, 12))
    rows: list[Parts] = []
    dated: list[Named] = []
    titled: list[tuple[tuple[str, str, str], str]] = []
    days = sorted(random.permutation(56)[: 3 + int(random.integers(4))].tolist())
    titles = _titles(catalog, 4 * len(days), random)
    for day, alias in zip(days, ids, strict=False):
        words = f" {DAY.write(f'{month + day // 28:02d}-{1 + day % 28:02d}')}"
        mine = [next(titles) for _ in range(1 + int(random.integers(4)))]
        row: Parts = [(f"-{words}{alias}", False)]
        for title in mine:
            row += [(f", {' '.join(title)}", False), (alias, True)]
        rows.append(row)
        dated.append((words, alias))
        titled += [(title, alias) for title in mine]
    return rows, dated + _telling(titled, random)


def _titles(catalog: "Catalog", count: int, random: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Make up titles, usually all of different types, else with brands, features and types in common."""
    most = count if random.random() < PLAIN else 4
    names = (catalog.brands, catalog.features, [kind.name for kind in catalog.types])
    brands, features, types = (
        [some[i] for i in random.permutation(len(some))[:most].tolist()] for some in names
    )
    for i, (a, b, c) in enumerate(random.integers(min(most, len(types)), size=(count, 3)).tolist()):
        yield brands[a % len(brands)], features[b % len(features)], types[i if most == count else c]


def _telling(titles: Sequence[tuple[tuple[str, str, str], str]], random: np.random.Generator) -> list[Named]:
    """Return for each title its id and enough of its last words, or more, to tell it from the others."""
    told = []
    for title, alias in titles:
        for first in (2, 1, 0):
            if {a for t, a in titles if t[first:] == title[first:]} == {alias}:
                first = int(random.integers(first + 1))
                told.append((f" {' '.join(title[first:])}", alias))
                break
    return told
