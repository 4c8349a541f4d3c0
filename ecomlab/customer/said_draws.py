"""Drawing what reviews must say of what a customer is recommended, and whether that counts."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.seeding import shuffled
from ecomlab.wishes import Said
from ecomlab.world.ranking import of_rows, rank_of
from ecomlab.world.reviews import claims_on, kept
from ecomlab.world.unmet import MOST_READ, Nearest

READ = 2.5
"""Products that fit the rest, for each that is wanted."""
MOST_SAID = 8
"""Most demands on reviews that are tried among the same products."""


def draw_saids(
    kind: str, rows: np.ndarray, size: int, least: int, catalog: Catalog, random: np.random.Generator
) -> Iterator[Said]:
    """Yield demands on the reviews of a type, in random order, which at least this many of these rows meet, and not
    all: of `size` claims where that can be, each on a topic of its own."""
    if not least < len(rows) <= MOST_READ:
        return
    claims, found = defaultdict[str, list[tuple[str, str, str]]](list), 0
    for claim in claims_on(kind):
        claims[claim[0]].append(claim)
    for number in range(min(size, len(claims)), 0, -1):
        able = [
            some
            for topics in combinations(claims, number)
            for some in product(*(claims[one] for one in topics))
        ]
        for chosen in shuffled(random, able):
            said = Said(tuple(shuffled(random, chosen)))
            if least <= len(kept(said, rows, catalog)) < len(rows):
                yield said
                found += 1
            if found >= MOST_SAID:
                return


def evidence_counts(left: Nearest, count: int, trap: bool, catalog: Catalog) -> bool:
    """Tell whether who does not read the reviews is wrong about the `count` best, and whether what they find the best
    fails: if and only if it is a `trap`."""
    keys, meets = rank_of(left.goal).key(of_rows(left.asked, catalog)), np.isin(left.asked, left.rows)
    order = np.argsort(keys, kind="stable")
    if not count < len(keys) or meets[order[0]] == trap:
        return False
    return bool((keys[~meets] < keys[order[count]]).any())
