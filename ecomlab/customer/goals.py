"""Drawing what a customer wants: products, described by slots, and the visits among which they are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.customer.visits import (
    CLUSTER,
    MOST_WITHHELD,
    Cluster,
    Outline,
    draw_cluster,
    exact_value,
    history_of,
    left_out,
    values_of,
    visited_types,
    visits_of,
    wanted_rows,
)
from ecomlab.customer.wish_draws import LEAST_TOLD, Drawn, carries, words_of
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import LIMITS, slot_type
from ecomlab.steps import is_worked_out, most_steps
from ecomlab.task import Goal, TaskError, TaskKey
from ecomlab.wishes import wishes_in
from ecomlab.world.cart import constraints_of, identity_of, is_exact
from ecomlab.world.plain import PACK
from ecomlab.world.policy_book.book import Book

QUANTITIES = (2, 3, 4)
"""Numbers of units, where more than one is wanted."""
MOST_STATED = 12
"""Most slots beside types that an opening states; with those that are withheld, 21."""
MOST_WORDS = 38
"""Most words of an opening about its items, or so; what stands around them makes it about 60."""
MOST_TOLD = 52
"""Most words of any other opening's slots, or so, where wishes can be left out of it."""
QUESTION_WORDS = 9
"""Words of a question that a customer asks in their turn."""
TRIES = 64


def draw_row(
    kind: str,
    shop: Shop,
    random: np.random.Generator,
    avoid: Sequence[Constraint] = (),
) -> int | None:
    """Draw a product of a type that may be wanted and does not satisfy `avoid`; None after `TRIES` failures."""
    catalog, rows = shop.catalog, wanted_rows(kind, shop.catalog)
    least = catalog.least_stock(kind)
    if len(rows) <= TRIES:  # then each is looked at once
        tried = random.permutation(len(rows)).tolist()
    else:
        tried = (random.random(TRIES) * len(rows)).astype(int).tolist()
    for i in tried:
        row = int(rows[i])
        if catalog.stock.item(row) >= least and not (avoid and catalog.satisfies(row, avoid)):
            return row
    return None


def draw_items(
    kinds: Sequence[str],
    unwanted: Sequence[str],
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
    steps: Sequence[str] = (),
) -> tuple[Goal, list[str], list[str]]:
    """Draw a customer who wants a product of each of these types, the visits among which these are, and the kinds of
    `steps` of thought that count of those asked for. The opening has room for what they ask in their turn as well.

    Raises TaskError where a type has no product that is well in stock.
    """
    room = MOST_WORDS - QUESTION_WORDS * ("telling" in steps)
    outlines = draw_outlines(kinds, axes, shop, random, room)
    found = [draw_cluster(outline, shop, random) for outline in outlines]
    for outline, rows in zip(outlines, found, strict=True):
        if not rows:
            raise _too_few(outline.type, shop)
    decoys = rng("decoys", *key)
    batches = (unwanted[i : i + len(kinds)] for i in range(0, len(unwanted), len(kinds)))
    others = (
        draw_cluster(outline, shop, decoys)
        for batch in batches
        for outline in draw_outlines(batch, axes, shop, decoys)
    )
    count = visited_types(len(kinds), axes.history, most_steps(axes))
    clusters = history_of(found, others, count)
    hidden = {(item, name) for item, outline in enumerate(outlines) for name in outline.hidden}
    mine, rest = clusters[: len(kinds)], clusters[len(kinds) :]
    words = room - words_in(outlines)
    drawn = Drawn(shop, axes, key.rng("steps"), mine, rest, hidden, words, count - 1)
    for outline, rows in zip(outlines, clusters, strict=False):
        drawn.clusters.append(Cluster(outline, tuple(rows), pick(random, rows)))
        values = values_of(drawn.clusters[-1], shop, random) | _line_values(outline, rows, shop, random)
        drawn.slots.append(values)
    drawn.weave(steps)
    clusters = [*drawn.visits, *drawn.decoys][:count]  # as many, however many wishes stand on one
    visits = visits_of(clusters, key, shop)
    drawn.link(visits, key.rng("links"))
    slots = {(item, n): value for item, values in enumerate(drawn.slots) for n, value in values.items()}
    return Goal(slots, frozenset(drawn.hidden & slots.keys())), visits, drawn.steps


def draw_outlines(
    kinds: Sequence[str], axes: Difficulty, shop: Shop, random: np.random.Generator, room: int = MOST_WORDS
) -> list[Outline]:
    """Draw what a customer who wants one item of each type will say, in an opening with so much `room`, and leave out,
    of each.

    A type of which nothing is well in stock is described by its name alone.
    """
    outlines = []
    for kind in kinds:
        row = draw_row(kind, shop, random)
        names = [] if row is None else draw_names(row, axes.constraints, shop, random)
        bits = 0 if row is None else shop.catalog.option_bits.item(row)
        names += ["option"] if random.random() < axes.cart.p_option and bits else []
        names += ["quantity"] if random.random() < axes.cart.p_quantity else []
        if "quantity" in names and PACK not in names and is_worked_out(axes, random):
            has_packs = row is not None and PACK.removeprefix("attr:") in shop.catalog.attributes(row)
            names = [*names[:2], *([PACK] if has_packs else []), *names[2:]]
        outlines.append(Outline(kind, tuple(names), option_bits=bits))
    places = [(item, name) for item, outline in enumerate(outlines) for name in outline.names]
    hidden = left_out(places, axes.p_missing, random, sooner=carries)
    return without_excess(
        [
            replace(outline, hidden=frozenset(name for i, name in hidden if i == item))
            for item, outline in enumerate(outlines)
        ],
        room,
    )


def without_excess(outlines: Sequence[Outline], room: int) -> list[Outline]:
    """Leave out wishes that are too many words: beyond `MOST_STATED` slots or the `room`, of the item that
    states most of a product the one of most words."""
    kept = list(outlines)

    def able(item: int) -> list[str]:
        """List the stated names that an item can do without: two that tell its products apart stay."""
        exact, hidden = len(kept[item].exact), kept[item].hidden
        stated = [name for name in kept[item].names if name not in hidden and _is_of_product(name)]
        stated = [name for name in stated if not (name == PACK and "quantity" in kept[item].names)]
        return [name for name in stated if not is_exact(name) or exact > LEAST_TOLD]

    while words_in(kept) > room or sum(len(set(one.names) - one.hidden) for one in kept) > MOST_STATED:
        item = max(range(len(kept)), key=lambda item: len(able(item)))
        if not able(item):
            break
        name = max(able(item)[::-1], key=words_of)
        kept[item] = replace(kept[item], names=tuple(n for n in kept[item].names if n != name))
    return kept


def words_in(outlines: Sequence[Outline]) -> int:
    """Count the words in which an opening tells these items, or so."""
    return sum(words_of(name) for one in outlines for name in {"type", *one.names} - one.hidden)


def _is_of_product(name: str) -> bool:
    return slot_type(name).of == "product"


def draw_names(row: int, constraints: int, shop: Shop, random: np.random.Generator) -> list[str]:
    """Draw the slots that describe products which have the same attributes as this row's: brand, feature, then others
    in random order; with the type they are `constraints`."""
    more = [*(f"attr:{name}" for name in shop.catalog.attributes(row))]
    more += [limit.name for limit in LIMITS if shop.catalog.has(limit)]
    first = _first_names(shop.catalog.type_of(row).name, lexicon_of(shop.catalog))
    return [*first, *shuffled(random, more)][: max(0, constraints - 1)]


def _first_names(kind: str, lexicon: Lexicon) -> list[str]:
    """List what is said first of a product of a type: its brand and its feature; of a real one where fewer than
    `CLUSTER` brands tell its type's products apart the feature first, and no brand that all of them are of."""
    if not lexicon.is_real:
        return ["brand", "feature"]
    brands, features = (len(lexicon.within(kind)[name]) for name in ("brand", "feature"))
    if brands == 1:
        return ["feature"]
    return ["brand", "feature"] if brands >= min(CLUSTER, features) else ["feature", "brand"]


def draw_item(
    kind: str, axes: Difficulty, key: TaskKey, shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """Draw the slots of an item that is wanted without having been visited, the type first."""
    (outline,) = draw_outlines([kind], axes, shop, random)
    rows = draw_cluster(outline, shop, random)
    if not rows:
        raise _too_few(kind, shop)
    said = replace(outline, hidden=frozenset())
    cluster = Cluster(said, tuple(rows), pick(random, rows))
    return values_of(cluster, shop, random) | _line_values(outline, rows, shop, random)


def _line_values(
    outline: Outline, rows: Sequence[int], shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """Draw the values of the slots that are about a line in the cart: quantity, and one of the options in which every
    product of the cluster comes, so that no visit tells which one is wanted. No quantity where no two are in stock."""
    values: dict[str, Any] = {}
    if "option" in outline.names:
        values["option"] = pick(random, shop.catalog.shared_options(rows))
    able = [units for units in QUANTITIES if units <= shop.catalog.stock[list(rows)].min()]
    if "quantity" in outline.names and able:
        values["quantity"] = pick(random, able)
    return values


def _too_few(kind: str, shop: Shop) -> TaskError:
    return TaskError(
        f"no {kind} of this shop of {shop.catalog.size} products is well in stock; load a larger shop"
    )


def that_fit(product_ids: Sequence[str], slots: Mapping[str, Any], shop: Shop) -> list[int]:
    """List the rows of those of these products that satisfy the slots."""
    rows = [row for row in map(shop.catalog.row, product_ids) if row is not None]
    wanted = constraints_of(slots["type"], slots)
    return [row for row in rows if shop.catalog.satisfies(row, wanted)]


def slot_values(shop: Shop, row: int, names: Sequence[str], like: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return these slots with another product's values; None where it lacks one. Bounds keep their values."""
    own = shop.catalog.attributes(row)
    if any(name.startswith("attr:") and name[5:] not in own for name in names):
        return None
    return {name: exact_value(row, name, shop) if is_exact(name) else like[name] for name in names}


def other_options(slots: Mapping[str, Any], shop: Shop) -> list[str]:
    """List the options other than the wanted one in which products come that fit everything else and are in stock."""
    catalog = shop.catalog
    rows = catalog.select(constraints_of(slots["type"], identity_of(slots)))
    bits = int(
        np.bitwise_or.reduce(
            catalog.option_bits[rows[catalog.stock[rows] >= catalog.least_stock(slots["type"])]]
        )
    )
    return [option for option in catalog.options_in(slots["type"], bits) if option != slots.get("option")]


def alternative(slots: Mapping[str, Any], shop: Shop, random: np.random.Generator) -> dict[str, Any] | None:
    """Draw another product of the type, described by brand and feature, that is not what was wanted."""
    avoid = constraints_of(
        slots["type"], {"brand": slots["brand"]} if "brand" in slots else identity_of(slots)
    )
    row = draw_row(slots["type"], shop, random, avoid)
    if row is None:
        return None
    cluster = Cluster(Outline(slots["type"], ("brand", "feature")), (row,), row)
    return values_of(cluster, shop, random)


def withhold(goal: Goal, axes: Difficulty, random: np.random.Generator, never: Collection[str] = ()) -> Goal:
    """Draw the slots that the opening leaves out, each with probability p_missing, whatever will happen to it, and the
    longest of the wishes that would be too many words beside; never types, nor those named, without which the request
    makes no sense."""
    able = [place for place in goal.slots if place[1] not in ("type", *never) and place not in goal.withheld]
    hidden = goal.withheld | left_out(able, axes.p_missing, random, MOST_WITHHELD - len(goal.withheld))
    words = {place: words_of(place[1], value) for place, value in goal.slots.items()}
    for place in sorted(wishes_in(goal.slots).keys() & able, key=lambda place: (-words[place], place)):
        told = sum(count for other, count in words.items() if other not in hidden)
        if axes.p_missing and told > MOST_TOLD and len(hidden) < MOST_WITHHELD:
            hidden |= {place}
    return replace(goal, withheld=frozenset(hidden))


def look_up(goal: Goal, able: Sequence[str], book: Book, count: int, random: np.random.Generator) -> Goal:
    """Draw `count` of the facts that the customer is `able` to look up where the book says, as far as it does: they do
    not know them before."""
    names, withheld = list[str](), goal.withheld
    for name in shuffled(random, [name for name in able if name in book["places"]]):
        if len(names) < count and len(withheld | {(0, name)}) <= MOST_WITHHELD:
            names.append(name)
            withheld |= {(0, name)}
    return replace(goal, withheld=withheld, places={name: book["places"][name] for name in names})
