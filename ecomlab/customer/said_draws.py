"""Drawing what reviews must say of what a customer is recommended, and whether that counts."""

from collections import defaultdict

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.seeding import pick, shuffled
from ecomlab.wishes import Said
from ecomlab.world.ranking import of_rows, rank_of
from ecomlab.world.reviews import claimed, claims_on
from ecomlab.world.unmet import Nearest

READ = 2.5
"""Products that fit the rest, for each that is wanted."""
MOST_READ = 50
"""Most products of which a demand on reviews is drawn."""
TRIED, MOST_SAID = 80, 8
"""Demands of as many claims that are drawn, and most of those that are tried among the same products."""
AIMED = 0.75
"""Share of customers whose demand is to be met by the cheapest, and of those by the best rated, as far as can be: so
that each does in about .4 of the tasks."""


def draw_saids(
    kind: str,
    rows: np.ndarray,
    size: int,
    least: int,
    catalog: Catalog,
    random: np.random.Generator,
) -> list[Said]:
    """Draw demands on the reviews of a type which at least this many of these rows meet, and not all: of `size` claims
    where that can be, each on a topic of its own. Those are first which about half of the rows meet, and often
    the cheapest or the best rated: few products meet several claims, so that plain choices would seldom."""
    if not least < len(rows) <= MOST_READ:
        return []
    claims = defaultdict[str, list[tuple[tuple[str, str, str], np.ndarray]]](list)
    able = claims_on(kind)
    for claim, so in zip(able, claimed(able, rows, catalog), strict=True):
        claims[claim[0]].append((claim, so))
    prices, ratings = catalog.price_cents[rows], catalog.rating_tenths[rows]
    plain = [one for one in (prices == prices.min(), ratings == ratings.max()) if random.random() < AIMED]
    found: list[tuple[float, Said]] = []
    for number in range(min(size, len(claims)), 0, -1):
        for _ in range(TRIED):
            chosen = [pick(random, claims[topic]) for topic in shuffled(random, claims)[:number]]
            meets = np.all([so for _, so in chosen], axis=0)
            if least <= meets.sum() < len(rows):
                apart = abs(meets.mean() - 0.5) - sum(meets[one].mean() for one in plain)
                found.append((float(apart), Said(tuple(claim for claim, _ in chosen))))
        if len(found) >= MOST_SAID:
            break
    return [said for _, said in sorted(found, key=lambda one: one[0])[:MOST_SAID]]


def evidence_counts(left: Nearest, count: int, trap: bool, catalog: Catalog) -> bool:
    """Tell whether who does not read the reviews is wrong about the `count` best, and whether what they find the best
    fails: if and only if it is a `trap`."""
    keys, meets = rank_of(left.goal).key(of_rows(left.asked, catalog)), np.isin(left.asked, left.rows)
    order = np.argsort(keys, kind="stable")
    if not count < len(keys) or meets[order[0]] == trap:
        return False
    return bool((keys[~meets] < keys[order[count]]).any())
