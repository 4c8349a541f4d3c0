"""Drawing wishes: slots of a cart's items become expressions, as many as the task has steps of thought.

What is wanted is drawn first, as without steps; an expression then takes the place of a value, so that its value is
what was drawn. A step counts where somebody who cannot take it would get something else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.visits import PLENTY, Cluster, Outline, draw_cluster, exact_value, values_of
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import PRICE
from ecomlab.steps import draw_size, is_worked_out
from ecomlab.task import Goal, Place
from ecomlab.values import LOOKS
from ecomlab.wishes import (
    MOST_LINKS,
    MOST_SHOWN,
    SHOWINGS,
    AnyBut,
    If,
    Of,
    OneOf,
    Packs,
    Said,
    Taste,
    Wish,
    pack_size,
    wishes_in,
    without,
)
from ecomlab.world.cart import constraints_of, is_exact
from ecomlab.world.plain import PACK, AtFirst, plain

LINK_WORDS = 6
"""Words of "the one I saw right after"."""
CARRIES = ("brand", "attr")
"""Kinds of slots that a wish may take the place of."""
TRIES = 6
LEAST_LOOKS = 3
"""Least values of an attribute that a customer knows when they see it."""
LEAST_TOLD = 2
"""Slots of a product that are left of each item, so that as many visits differ in them."""
WORDS = {("quantity",): 0, ("brand", "feature"): 1, ("type", "attr", "option"): 3}
"""Words in which an opening tells slots; a quantity stands in the place of an article."""


def carries(name: str) -> bool:
    """Tell whether a wish may take the place of a slot's value."""
    return name.partition(":")[0] in CARRIES


def words_of(name: str, value: Any = None) -> int:
    """Count the words in which an opening tells a slot, or so; of a value that is no wish they are always as many."""
    if isinstance(value, If):
        return 19
    if isinstance(value, Of):
        return 11 if value.where == "visits" else 9
    if isinstance(value, Packs):
        return 7
    if isinstance(value, Taste):
        return 9
    if isinstance(value, OneOf | AnyBut):
        return 1 + 2 * len(value.values)
    if isinstance(value, Said):
        return 5 + 9 * len(value.claims)
    if isinstance(value, Wish):
        return 5 + len(value.say().split())
    return next((words for slots, words in WORDS.items() if name.partition(":")[0] in slots), 6)


@dataclass
class Drawn:
    """The items of a customer as they have been drawn so far, with the visits among which the wanted products are."""

    clusters: list[Cluster]
    """Clusters of the wanted items, in the customer's order."""
    slots: list[dict[str, Any]]
    """Slots of the items, types included."""
    visits: list[list[int]]
    """Rows of the visits that matter, cluster by cluster: of the wanted items, then of things that wishes refer to."""
    decoys: list[list[int]]
    """Rows of the other visits, cluster by cluster."""
    hidden: set[Place] = field(default_factory=set)
    """Slots that the opening leaves out."""
    room: int = 1 << 30
    """Words that the opening may still take."""
    most: int = 1 << 30
    """Most clusters of visits that matter."""
    steps: list[str] = field(default_factory=list)
    """Kinds of the steps that count."""

    def takes(self, item: int, name: str, words: int) -> bool:
        """Take more words for a slot; False without room for them in the opening, where it is told there."""
        if (item, name) in self.hidden:
            return True
        if self.hidden and words > self.room:  # who leaves nothing out says it all
            return False
        self.room -= words
        return True


def weave(
    drawn: Drawn, kinds: Sequence[str], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> None:
    """Put a wish of each of these kinds into the items, and more of them where one does not count; where none of a kind
    can be had, one of another."""
    makers = {"reference": _refer, "joint": _join, "logic": _reason, "taste": _like}
    kinds = [kind for kind in kinds if kind in makers]
    _count_packs(drawn, "logic" in kinds, axes, shop, random)
    for number, kind in enumerate(kinds, 1):
        for maker in dict.fromkeys((makers[kind], *(makers[other] for other in kinds))):
            while len(drawn.steps) < number and maker(drawn, axes, shop, random):
                pass


def _able(drawn: Drawn, random: np.random.Generator) -> list[tuple[int, str]]:
    """List the (item, slot) pairs whose value a wish may take the place of, in random order; first those that the
    opening leaves out, of items with few wishes."""
    wishes = [sum(isinstance(value, Wish) for value in slots.values()) for slots in drawn.slots]
    able = [
        (item, name)
        for item, slots in enumerate(drawn.slots)
        for name, value in slots.items()
        if carries(name)
        and not isinstance(value, Wish)
        and not _is_anchor(drawn, item)
        and not any(isinstance(one, Taste) for one in slots.values())
        and not (name == PACK and isinstance(drawn.slots[item].get("quantity"), Packs))
    ]
    return sorted(shuffled(random, able), key=lambda place: (place not in drawn.hidden, wishes[place[0]]))


def _put(drawn: Drawn, item: int, name: str, wish: Wish) -> bool:
    """Put a wish in the place of a slot's value, if there is room for its words where it is told at once."""
    if not drawn.takes(item, name, words_of(name, wish) - words_of(name)):
        return False
    kept = "if" if isinstance(wish, If) else name
    if (item, name) in drawn.hidden:
        drawn.hidden.add((item, kept))
    if isinstance(wish, If):
        del drawn.slots[item][name]
        drawn.slots[item].pop(PRICE.name, None)
    drawn.slots[item][kept] = wish
    return True


def _is_anchor(drawn: Drawn, item: int) -> bool:
    kind = drawn.slots[item]["type"]
    values = [value for slots in drawn.slots for value in slots.values()]
    return any(isinstance(v, Of) and v.where == "items" and v.described["type"] == kind for v in values)


def _rows(drawn: Drawn, item: int, shop: Shop, *but: str) -> np.ndarray:
    """List the rows in stock that an item's slots describe, `but` some; references have the wanted product's values."""
    row, slots = drawn.clusters[item].row, drawn.slots[item]
    values = {n: _value(row, n, shop) if isinstance(v, Of) else v for n, v in slots.items() if n != "if"}
    return _in_stock({n: v for n, v in values.items() if n not in but}, shop)


def _in_stock(slots: dict[str, Any], shop: Shop) -> np.ndarray:
    rows = shop.catalog.select(constraints_of(slots["type"], slots))
    return rows[shop.catalog.stock[rows] > 0]


def _refer(drawn: Drawn, axes: Difficulty, shop: Shop, random: np.random.Generator) -> bool:
    """Let a slot be the same as that of a product which the customer looked at, one of a cluster of its own."""
    catalog = shop.catalog
    taken = {catalog.type_of(rows[0]).name for rows in (*drawn.visits, *drawn.decoys) if rows}
    size = len(drawn.visits[0])
    if len(drawn.visits) >= drawn.most:
        return False
    for item, name in _able(drawn, random)[:TRIES]:
        if name not in drawn.slots[item] or _is_decided(drawn, item, name, shop):
            continue
        value = drawn.slots[item][name]
        kinds = [
            kind.name
            for kind in catalog.drawable_types
            if kind.name not in taken
            and (
                name == "brand"
                or any(f"attr:{one.name}" == name and value in one.values for one in kind.attributes)
            )
        ]
        for kind in shuffled(random, kinds)[:TRIES]:
            names = ("brand", "feature") if name == "brand" else ("brand", "feature", name)
            rows = draw_cluster(Outline(kind, names), shop, random)[:size]
            if len(rows) < size:
                continue
            fit = [row for row in rows if _value(row, name, shop) == value]
            for row in fit:
                by = {"type": kind, **{n: exact_value(row, n, shop) for n in ("brand", "feature")}}
                for described in ({n: by[n] for n in ("type", "brand")}, by):
                    if name == "brand":
                        described = {n: by[n] for n in ("type", "feature")}
                    same = [r for r in rows if catalog.satisfies(r, constraints_of(kind, described))]
                    if same == [row]:
                        if not _put(drawn, item, name, Of("visits", tuple(described.items()))):
                            return False  # what is told at once comes last
                        drawn.visits.append(rows)
                        _count(drawn, axes, shop)
                        return True
    return False


def link(
    drawn: Drawn, visits: Sequence[str], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> None:
    """Describe things that the customer looked at by what they looked at before or after them, so that the way to the
    value has as many links as were drawn; `visits` are all, the newest first."""
    catalog = shop.catalog
    rows = [catalog.row(visit) or 0 for visit in visits]
    for item, slots in enumerate(drawn.slots):
        for name, wish in slots.items():
            more = min(draw_size(axes, "reference", random) - 1, MOST_LINKS) if isinstance(wish, Of) else 0
            if not more or wish.where != "visits":
                continue
            wanted = constraints_of(wish.described["type"], wish.described)
            (at,) = [at for at, row in enumerate(rows) if catalog.satisfies(row, wanted)]
            ends = [at - more, at + more]
            for start in shuffled(random, [end for end in ends if 0 <= end < len(rows)]):
                by = _alone(rows[start], rows, shop)
                if by is not None and drawn.takes(item, name, LINK_WORDS):
                    slots[name] = Of("visits", by, start - at)
                    break


def _is_decided(drawn: Drawn, item: int, name: str, shop: Shop, least: int = 2) -> bool:
    """Leave out what an item without wishes need not say, until the rest does not decide a slot's value, but leaves
    as many; tell whether it still does."""
    slots = drawn.slots[item]

    def decided() -> bool:
        return len({_value(row, name, shop) for row in _rows(drawn, item, shop, name).tolist()}) < least

    for other in [] if any(isinstance(value, Wish) for value in slots.values()) else list(slots)[::-1]:
        spare = carries(other) and other != name and (item, other) not in drawn.hidden
        if decided() and spare and sum(map(is_exact, slots)) > LEAST_TOLD:
            drawn.room += words_of(other)
            del slots[other]
    return decided()


def _alone(row: int, rows: Sequence[int], shop: Shop) -> tuple[tuple[str, Any], ...] | None:
    """Describe one of the rows so that no other fits, in few words; None where that cannot be."""
    kind = shop.catalog.type_of(row).name
    for names in (("brand",), ("feature",), ("brand", "feature")):
        by = {"type": kind, **{name: exact_value(row, name, shop) for name in names}}
        if sum(shop.catalog.satisfies(one, constraints_of(kind, by)) for one in rows) == 1:
            return tuple(by.items())
    return None


def _join(drawn: Drawn, axes: Difficulty, shop: Shop, random: np.random.Generator) -> bool:
    """Let a slot be the same as that of another item, whose other slots decide it without saying it."""
    for item, name in _able(drawn, random):
        slots, cluster = drawn.slots[item], drawn.clusters[item]
        if not name.startswith("attr:") or any(isinstance(value, Wish) for value in slots.values()):
            continue
        for anchor in shuffled(random, range(len(drawn.slots))):
            value = _decided(drawn, anchor, name, shop) if anchor != item else None
            able = [row for row in cluster.rows if _value(row, name, shop) == value] if value else []
            if not able:
                continue
            wish = Of("items", (("type", drawn.slots[anchor]["type"]),))
            if not _put(drawn, item, name, wish):
                return False
            drawn.slots[anchor].pop(name, None)
            moved = Cluster(cluster.outline, cluster.rows, pick(random, able))
            lines = {n: v for n, v in slots.items() if n in ("option", "quantity")}
            drawn.clusters[item] = moved
            drawn.slots[item] = values_of(moved, shop, random) | lines
            drawn.slots[item][name] = wish
            _count(drawn, axes, shop)
            return True
    return False


def _decided(drawn: Drawn, anchor: int, name: str, shop: Shop) -> str | None:
    """Find the value that all products have which fit an item, whether or not it says so; None where they differ."""
    slots = {n: value for n, value in drawn.slots[anchor].items() if n != name}
    if any(isinstance(value, Of | If) for value in drawn.slots[anchor].values()):
        return None
    if not _has(slots["type"], name, shop) or isinstance(drawn.slots[anchor].get(name), Wish):
        return None
    rows = shop.catalog.select(constraints_of(slots["type"], slots))
    values = {_value(row, name, shop) for row in rows.tolist()}
    return next(iter(values)) if len(values) == 1 else None


def _value(row: int, name: str, shop: Shop) -> str | None:
    """Look up what a product has for a slot; None where it has nothing."""
    known = name == "brand" or name[5:] in shop.catalog.attributes(row)
    return exact_value(row, name, shop) if known else None


def _has(kind: str, name: str, shop: Shop) -> bool:
    of_type = shop.catalog.types[shop.catalog.type_codes[kind]]
    return any(f"attr:{one.name}" == name for one in of_type.attributes)


def _reason(drawn: Drawn, axes: Difficulty, shop: Shop, random: np.random.Generator) -> bool:
    """Let a slot have alternatives, exceptions or a condition."""
    makers = shuffled(random, (_condition, _alternatives, _exceptions))
    for item, name in _able(drawn, random):
        if not name.startswith("attr:") or "if" in drawn.slots[item]:
            continue
        for maker in makers:
            wish = maker(drawn, item, name, axes, shop, random)
            if wish is None:
                continue
            if not _put(drawn, item, name, wish):
                continue
            _count(drawn, axes, shop)
            return True
    return False


def _like(drawn: Drawn, axes: Difficulty, shop: Shop, random: np.random.Generator) -> bool:
    """Let an attribute be one that the customer knows when they see it: of so many values that products have which fit
    the rest, as few as can be shown, they like one at least."""
    size = min(SHOWINGS * MOST_SHOWN, draw_size(axes, "taste", random))
    for item, slots in shuffled(random, list(enumerate(drawn.slots))):
        row = drawn.clusters[item].row
        if any(isinstance(value, Wish) for value in slots.values()) or _is_anchor(drawn, item):
            continue
        able = {f"attr:{one.name}": len(one.values) for one in shop.catalog.type_of(row).attributes}
        looks = [f"attr:{look}" for look in LOOKS if look in shop.catalog.attributes(row)]
        for name in sorted(shuffled(random, looks), key=lambda name: -min(size, able[name])):
            before, room = dict(slots), drawn.room
            decided = all(_is_decided(drawn, item, name, shop, least) for least in (size, LEAST_LOOKS))
            value = exact_value(row, name, shop)
            there = [one for one in _others(drawn, item, name, shop) if one != value]
            liked = shuffled(random, there)[: max(0, len(there) + 1 - size)]
            given = next((one for one in (name, *slots) if one in slots and one.startswith("attr:")), "")
            if not decided and given:
                del slots[given]  # one attribute for another: no more slots than before
                slots[name] = value
                drawn.hidden |= {(item, name)} if (item, given) in drawn.hidden else set()
                if _put(drawn, item, name, Taste((value, *liked))):
                    _count(drawn, axes, shop)
                    return True
            slots.clear()
            slots.update(before)
            drawn.room = room
    return False


def _count_packs(
    drawn: Drawn, thinks: bool, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> None:
    """Let numbers of packs be worked out from how many single things are wanted, or want one pack."""
    for item, slots in enumerate(drawn.slots):
        units, size = slots.get("quantity"), pack_size(slots.get(PACK, ""))
        if units is None or size == 1:
            continue
        if not (thinks and is_worked_out(axes, random)):
            del slots["quantity"]  # are 4 in a 4-pack one pack, or four?
            continue
        slots["quantity"] = Packs(int(random.integers((units - 1) * size + 1, units * size + 1)))
        drawn.room -= words_of("quantity", slots["quantity"]) * ((item, "quantity") not in drawn.hidden)
    _count(drawn, axes, shop)


def _others(drawn: Drawn, item: int, name: str, shop: Shop, *but: str) -> dict[str, np.ndarray]:
    """Group the rows that fit an item but for this slot, and those it is `but`, by its value."""
    rows = _rows(drawn, item, shop, name, *but)
    found: dict[str, list[int]] = {}
    for row in rows.tolist():
        value = _value(row, name, shop)
        if value is not None:
            found.setdefault(value, []).append(row)
    return {value: np.array(some) for value, some in found.items()}


def _alternatives(
    drawn: Drawn, item: int, name: str, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> Wish | None:
    """Name other values beside the wanted one: ones that no product has which fits the rest."""
    kind = shop.catalog.types[shop.catalog.type_codes[drawn.slots[item]["type"]]]
    values = next(one.values for one in kind.attributes if f"attr:{one.name}" == name)
    there = _others(drawn, item, name, shop)
    absent = [value for value in values if value not in there]
    size = min(len(absent), draw_size(axes, "logic", random))
    if not size:
        return None
    return OneOf(tuple(shuffled(random, [drawn.slots[item][name], *shuffled(random, absent)[:size]])))


def _exceptions(
    drawn: Drawn, item: int, name: str, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> Wish | None:
    """Exclude the values that most of the products have which fit the rest."""
    there = _others(drawn, item, name, shop)
    value = drawn.slots[item][name]
    others = sorted((one for one in there if one != value), key=lambda one: (-len(there[one]), one))
    size = min(len(others), draw_size(axes, "logic", random))
    excluded = others[:size]
    if not excluded or sum(len(there[one]) for one in excluded) < sum(map(len, there.values())) / 2:
        return None
    return AnyBut(tuple(excluded))


def _condition(
    drawn: Drawn, item: int, name: str, axes: Difficulty, shop: Shop, random: np.random.Generator
) -> Wish | None:
    """Let the price of a first value decide between it and another, or the cheapest: with either outcome."""
    slots, catalog = drawn.slots[item], shop.catalog
    there = _others(drawn, item, name, shop, PRICE.name)
    wanted = slots[name]
    plenty = {value: rows[catalog.stock[rows] >= PLENTY] for value, rows in there.items()}
    others = [value for value in there if value != wanted and len(plenty[value])]
    if not others or not len(plenty[wanted]):
        return None
    other: str | None = pick(random, others)
    if random.random() < 0.5:
        first, limit = wanted, _above(int(catalog.price_cents[plenty[wanted]].min()))
    else:
        first, other = str(other), wanted
        limit = _below(int(catalog.price_cents[there[first]].min()))
    if limit <= 0:
        return None
    if random.random() < 0.5:
        other = None
    phrases = {one.name: one for one in catalog.types[catalog.type_codes[slots["type"]]].attributes}
    said = [phrases[name[5:]].say(value) for value in (first, other) if value is not None]
    return If(slots["type"], name, first, limit, other, tuple(said))


def _above(cents: int) -> int:
    """Round a price up to whole dollars, with at least 5% to spare."""
    return 100 * -(-round(cents * 1.05) // 100)


def _below(cents: int) -> int:
    """Round a price down to whole dollars, with at least 5% to spare."""
    return 100 * (round(cents * 0.95) // 100)


def _count(drawn: Drawn, axes: Difficulty, shop: Shop) -> None:
    """Count the steps: the wishes of a kind count where somebody who lacks it would take something else, each without
    which alone this is so, or else one of them."""
    goal = Goal(
        {(item, name): value for item, slots in enumerate(drawn.slots) for name, value in slots.items()}
    )
    view = AtFirst(shop, {"visits": [shop.catalog.ids[row] for rows in drawn.visits for row in rows]})
    right, wishes = plain(goal, view), wishes_in(goal.slots)

    def is_right(places: Collection[Place], kind: str) -> bool:
        """Tell whether somebody who lacks a kind in these places would still take what is wanted."""
        kept = {place: value for place, value in goal.slots.items() if place not in places}
        for item, name in places:
            read = without({name: goal.slots[item, name]}, frozenset((kind,)))
            kept |= {(item, slot): value for slot, value in read.items()}
        lacking = plain(replace(goal, slots=kept), view)
        return all(_takes(lacking.of(item), right.of(item), axes, shop) for item in goal.items)

    drawn.steps = []
    for kind in dict.fromkeys(wish.step for wish in wishes.values()):
        places = [place for place, wish in wishes.items() if wish.step == kind]
        if not is_right(places, kind):
            alone = sum(not is_right([place], kind) for place in places)
            drawn.steps += [kind] * max(1, alone)


def _takes(slots: dict[str, Any], wanted: dict[str, Any], axes: Difficulty, shop: Shop) -> bool:
    """Tell whether the first product that a search shows for these slots, in enough units, is a wanted one."""
    if slots.get("quantity") != wanted.get("quantity"):
        return False
    catalog, units = shop.catalog, slots.get("quantity", 1)
    able = catalog.select(constraints_of(slots["type"], slots))
    able = able[catalog.stock[able] >= units]
    good = {*catalog.select(constraints_of(wanted["type"], wanted), able).tolist()}
    if len(good) in (0, len(able)):
        return bool(good)
    filters = constraints_of(slots["type"], {n: v for n, v in slots.items() if n != "feature"})
    shown = shop.engine.search(slots.get("feature", slots["type"]), filters, (), axes.top_k)
    listed = {*able.tolist()}
    return next((row in good for row in shown if row in listed), False)
