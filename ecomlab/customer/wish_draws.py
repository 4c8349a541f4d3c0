"""Drawing wishes: slots of a cart's items become expressions, as many as the task has steps of thought.

What is wanted is drawn first, as without steps; an expression then takes the place of a value, so that its value is
what was drawn. A step counts where somebody who cannot take it would get something else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ecomlab.catalog import ProductType, Shop
from ecomlab.catalog.columns import PLENTY
from ecomlab.customer.visits import Cluster, Outline, draw_cluster, exact_value, values_of
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

    shop: Shop
    axes: Difficulty
    random: np.random.Generator
    visits: list[list[int]]
    """Rows of the visits that matter, cluster by cluster: of the wanted items, then of things that wishes refer to."""
    decoys: list[list[int]]
    """Rows of the other visits, cluster by cluster."""
    hidden: set[Place]
    """Slots that the opening leaves out."""
    room: int
    """Words that the opening may still take."""
    most: int
    """Most clusters of visits that matter."""
    clusters: list[Cluster] = field(default_factory=list)
    """Clusters of the wanted items, in the customer's order."""
    slots: list[dict[str, Any]] = field(default_factory=list)
    """Slots of the items, types included."""
    steps: list[str] = field(default_factory=list)
    """Kinds of the steps that count."""

    def weave(self, kinds: Sequence[str]) -> None:
        """Put a wish of each of these kinds into the items, and more of them where one does not count; where none of a
        kind can be had, one of another."""
        makers = {"reference": self._refer, "joint": self._join, "logic": self._reason, "taste": self._like}
        kinds = [kind for kind in kinds if kind in makers]
        self._count_packs("logic" in kinds)
        for number, kind in enumerate(kinds, 1):
            for maker in dict.fromkeys((makers[kind], *(makers[other] for other in kinds))):
                while len(self.steps) < number and maker():
                    pass

    def link(self, visits: Sequence[str], random: np.random.Generator) -> None:
        """Describe things that the customer looked at by what they looked at before or after them, so that the way to
        the value has as many links as were drawn; `visits` are all, the newest first."""
        catalog = self.shop.catalog
        rows = [catalog.row(visit) or 0 for visit in visits]
        for item, slots in enumerate(self.slots):
            for name, wish in slots.items():
                is_of = isinstance(wish, Of)
                more = min(draw_size(self.axes, "reference", random) - 1, MOST_LINKS) if is_of else 0
                if not more or wish.where != "visits":
                    continue
                wanted = constraints_of(wish.described["type"], wish.described)
                (at,) = [at for at, row in enumerate(rows) if catalog.satisfies(row, wanted)]
                ends = [at - more, at + more]
                for start in shuffled(random, [end for end in ends if 0 <= end < len(rows)]):
                    by = self._alone(rows[start], rows)
                    if by is not None and self._takes(item, name, LINK_WORDS):
                        slots[name] = Of("visits", by, start - at)
                        break

    def _takes(self, item: int, name: str, words: int) -> bool:
        """Take more words for a slot; False without room for them in the opening, where it is told there."""
        if (item, name) in self.hidden:
            return True
        if self.hidden and words > self.room:  # who leaves nothing out says it all
            return False
        self.room -= words
        return True

    def _able(self) -> list[tuple[int, str]]:
        """List the (item, slot) pairs whose value a wish may take the place of, in random order; first those that the
        opening leaves out, of items with few wishes."""
        wishes = [sum(isinstance(value, Wish) for value in slots.values()) for slots in self.slots]
        able = [
            (item, name)
            for item, slots in enumerate(self.slots)
            for name, value in slots.items()
            if carries(name)
            and not isinstance(value, Wish)
            and not self._is_anchor(item)
            and not any(isinstance(one, Taste) for one in slots.values())
            and not (name == PACK and isinstance(slots.get("quantity"), Packs))
        ]
        shuffled_ones = shuffled(self.random, able)
        return sorted(shuffled_ones, key=lambda place: (place not in self.hidden, wishes[place[0]]))

    def _put(self, item: int, name: str, wish: Wish) -> bool:
        """Put a wish in the place of a slot's value, if there is room for its words where it is told at once."""
        if not self._takes(item, name, words_of(name, wish) - words_of(name)):
            return False
        kept = "if" if isinstance(wish, If) else name
        if (item, name) in self.hidden:
            self.hidden.add((item, kept))
        if isinstance(wish, If):
            del self.slots[item][name]
            self.slots[item].pop(PRICE.name, None)
        self.slots[item][kept] = wish
        return True

    def _is_anchor(self, item: int) -> bool:
        kind = self.slots[item]["type"]
        values = [value for slots in self.slots for value in slots.values()]
        return any(isinstance(v, Of) and v.where == "items" and v.described["type"] == kind for v in values)

    def _kind(self, item: int) -> ProductType:
        return self.shop.catalog.type_of(self.clusters[item].row)

    def _value(self, row: int, name: str) -> str | None:
        """Look up what a product has for a slot; None where it has nothing."""
        known = name == "brand" or name[5:] in self.shop.catalog.attributes(row)
        return exact_value(row, name, self.shop) if known else None

    def _rows(self, item: int, *but: str) -> np.ndarray:
        """List the rows in stock that an item's slots describe, `but` some; references have the wanted product's
        values."""
        row, catalog = self.clusters[item].row, self.shop.catalog
        slots = {n: v for n, v in self.slots[item].items() if n not in ("if", *but)}
        slots = {n: self._value(row, n) if isinstance(v, Of) else v for n, v in slots.items()}
        rows = catalog.select(constraints_of(slots["type"], slots))
        return rows[catalog.stock[rows] > 0]

    def _others(self, item: int, name: str, *but: str) -> dict[str, np.ndarray]:
        """Group the rows that fit an item but for this slot, and those it is `but`, by its value."""
        found: dict[str, list[int]] = {}
        for row in self._rows(item, name, *but).tolist():
            value = self._value(row, name)
            if value is not None:
                found.setdefault(value, []).append(row)
        return {value: np.array(some) for value, some in found.items()}

    def _is_decided(self, item: int, name: str, least: int = 2) -> bool:
        """Leave out what an item without wishes need not say, until the rest does not decide a slot's value, but leaves
        as many; tell whether it still does."""
        slots = self.slots[item]

        def decided() -> bool:
            return len({self._value(row, name) for row in self._rows(item, name).tolist()}) < least

        for other in [] if any(isinstance(value, Wish) for value in slots.values()) else list(slots)[::-1]:
            spare = carries(other) and other != name and (item, other) not in self.hidden
            if decided() and spare and sum(map(is_exact, slots)) > LEAST_TOLD:
                self.room += words_of(other)
                del slots[other]
        return decided()

    def _alone(self, row: int, rows: Sequence[int]) -> tuple[tuple[str, Any], ...] | None:
        """Describe one of the rows so that no other fits, in few words; None where that cannot be."""
        kind = self.shop.catalog.type_of(row).name
        for names in (("brand",), ("feature",), ("brand", "feature")):
            by = {"type": kind, **{name: exact_value(row, name, self.shop) for name in names}}
            if sum(self.shop.catalog.satisfies(one, constraints_of(kind, by)) for one in rows) == 1:
                return tuple(by.items())
        return None

    def _refer(self) -> bool:
        """Let a slot be the same as that of a product which the customer looked at, one of a cluster of its own."""
        catalog, random = self.shop.catalog, self.random
        taken = {catalog.type_of(rows[0]).name for rows in (*self.visits, *self.decoys) if rows}
        size = len(self.visits[0])
        if len(self.visits) >= self.most:
            return False
        for item, name in self._able()[:TRIES]:
            if name not in self.slots[item] or self._is_decided(item, name):
                continue
            value = self.slots[item][name]
            kinds = [
                kind.name
                for kind in catalog.stocked_types
                if kind.name not in taken
                and (
                    name == "brand"
                    or any(f"attr:{one.name}" == name and value in one.values for one in kind.attributes)
                )
            ]
            for kind in shuffled(random, kinds)[:TRIES]:
                names = ("brand", "feature") if name == "brand" else ("brand", "feature", name)
                rows = draw_cluster(Outline(kind, names), self.shop, random)[:size]
                if len(rows) < size:
                    continue
                for row in [row for row in rows if self._value(row, name) == value]:
                    by = {"type": kind, **{n: exact_value(row, n, self.shop) for n in ("brand", "feature")}}
                    for described in ({n: by[n] for n in ("type", "brand")}, by):
                        if name == "brand":
                            described = {n: by[n] for n in ("type", "feature")}
                        same = [r for r in rows if catalog.satisfies(r, constraints_of(kind, described))]
                        if same == [row]:
                            if not self._put(item, name, Of("visits", tuple(described.items()))):
                                return False  # what is told at once comes last
                            self.visits.append(rows)
                            return self._count()
        return False

    def _join(self) -> bool:
        """Let a slot be the same as that of another item, whose other slots decide it without saying it."""
        for item, name in self._able():
            slots, cluster = self.slots[item], self.clusters[item]
            if not name.startswith("attr:") or any(isinstance(value, Wish) for value in slots.values()):
                continue
            for anchor in shuffled(self.random, range(len(self.slots))):
                value = self._decided(anchor, name) if anchor != item else None
                able = [row for row in cluster.rows if self._value(row, name) == value] if value else []
                if not able:
                    continue
                wish = Of("items", (("type", self.slots[anchor]["type"]),))
                if not self._put(item, name, wish):
                    return False
                self.slots[anchor].pop(name, None)
                moved = self.clusters[item] = replace(cluster, row=pick(self.random, able))
                lines = {n: v for n, v in slots.items() if n in ("option", "quantity")}
                self.slots[item] = values_of(moved, self.shop, self.random) | lines | {name: wish}
                return self._count()
        return False

    def _decided(self, anchor: int, name: str) -> str | None:
        """Find the value that all products have which fit an item, whether or not it says so; None where they
        differ."""
        slots = {n: value for n, value in self.slots[anchor].items() if n != name}
        if any(isinstance(value, Of | If) for value in self.slots[anchor].values()):
            return None
        has = any(f"attr:{one.name}" == name for one in self._kind(anchor).attributes)
        if not has or isinstance(self.slots[anchor].get(name), Wish):
            return None
        rows = self.shop.catalog.select(constraints_of(slots["type"], slots))
        values = {self._value(row, name) for row in rows.tolist()}
        return next(iter(values)) if len(values) == 1 else None

    def _reason(self) -> bool:
        """Let a slot have alternatives, exceptions or a condition."""
        makers = shuffled(self.random, (self._condition, self._alternatives, self._exceptions))
        for item, name in self._able():
            for maker in makers if name.startswith("attr:") and "if" not in self.slots[item] else ():
                wish = maker(item, name)
                if wish is not None and self._put(item, name, wish):
                    return self._count()
        return False

    def _like(self) -> bool:
        """Let an attribute be one that the customer knows when they see it: of so many values that products have which
        fit the rest, as few as can be shown, they like one at least."""
        random, size = self.random, min(SHOWINGS * MOST_SHOWN, draw_size(self.axes, "taste", self.random))
        for item, slots in shuffled(random, list(enumerate(self.slots))):
            row = self.clusters[item].row
            if any(isinstance(value, Wish) for value in slots.values()) or self._is_anchor(item):
                continue
            able = {f"attr:{one.name}": len(one.values) for one in self._kind(item).attributes}
            looks = [f"attr:{look}" for look in LOOKS if look in self.shop.catalog.attributes(row)]
            for name in sorted(shuffled(random, looks), key=lambda name: -min(size, able[name])):
                before, room = dict(slots), self.room
                decided = all(self._is_decided(item, name, least) for least in (size, LEAST_LOOKS))
                value = exact_value(row, name, self.shop)
                there = [one for one in self._others(item, name) if one != value]
                liked = shuffled(random, there)[: max(0, len(there) + 1 - size)]
                given = next((one for one in (name, *slots) if one in slots and one.startswith("attr:")), "")
                if not decided and given:
                    del slots[given]  # one attribute for another: no more slots than before
                    slots[name] = value
                    self.hidden |= {(item, name)} if (item, given) in self.hidden else set()
                    if self._put(item, name, Taste((value, *liked))):
                        return self._count()
                slots.clear()
                slots.update(before)
                self.room = room
        return False

    def _count_packs(self, thinks: bool) -> None:
        """Let numbers of packs be worked out from how many single things are wanted, or want one pack."""
        for item, slots in enumerate(self.slots):
            units, size = slots.get("quantity"), pack_size(slots.get(PACK, ""))
            if units is None or size == 1:
                continue
            if not (thinks and is_worked_out(self.axes, self.random)):
                del slots["quantity"]  # are 4 in a 4-pack one pack, or four?
                continue
            slots["quantity"] = Packs(int(self.random.integers((units - 1) * size + 1, units * size + 1)))
            self.room -= words_of("quantity", slots["quantity"]) * ((item, "quantity") not in self.hidden)
        self._count()

    def _alternatives(self, item: int, name: str) -> Wish | None:
        """Name other values beside the wanted one: ones that no product has which fits the rest."""
        values = next(one.values for one in self._kind(item).attributes if f"attr:{one.name}" == name)
        there = self._others(item, name)
        absent = [value for value in values if value not in there]
        size = min(len(absent), draw_size(self.axes, "logic", self.random))
        named = [self.slots[item][name], *shuffled(self.random, absent)[:size]] if size else []
        return OneOf(tuple(shuffled(self.random, named))) if size else None

    def _exceptions(self, item: int, name: str) -> Wish | None:
        """Exclude the values that most of the products have which fit the rest."""
        there = self._others(item, name)
        value = self.slots[item][name]
        others = sorted((one for one in there if one != value), key=lambda one: (-len(there[one]), one))
        excluded = others[: draw_size(self.axes, "logic", self.random)]
        if not excluded or sum(len(there[one]) for one in excluded) < sum(map(len, there.values())) / 2:
            return None
        return AnyBut(tuple(excluded))

    def _condition(self, item: int, name: str) -> Wish | None:
        """Let the price of a first value decide between it and another, or the cheapest: with either outcome, and at
        least 5% to spare up or down to whole dollars."""
        slots, catalog, random = self.slots[item], self.shop.catalog, self.random
        there = self._others(item, name, PRICE.name)
        wanted = slots[name]
        least = PLENTY if "quantity" in slots else catalog.least_stock(slots["type"])
        plenty = {value: rows[catalog.stock[rows] >= least] for value, rows in there.items()}
        others = [value for value in there if value != wanted and len(plenty[value])]
        if not others or not len(plenty[wanted]):
            return None
        other: str | None = pick(random, others)
        if random.random() < 0.5:
            first, limit = wanted, -(-round(int(catalog.price_cents[plenty[wanted]].min()) * 1.05) // 100)
        else:
            first, other = str(other), wanted
            limit = round(int(catalog.price_cents[there[first]].min()) * 0.95) // 100
        if limit <= 0:
            return None
        if random.random() < 0.5:
            other = None
        phrases = {one.name: one for one in self._kind(item).attributes}
        said = [phrases[name[5:]].say(value) for value in (first, other) if value is not None]
        return If(slots["type"], name, first, 100 * limit, other, tuple(said))

    def _count(self) -> bool:
        """Count the steps, and return True: the wishes of a kind count where somebody who lacks it would take something
        else, each without which alone this is so, or else one of them."""
        goal = Goal({(item, name): v for item, slots in enumerate(self.slots) for name, v in slots.items()})
        ids = [self.shop.catalog.ids[row] for rows in self.visits for row in rows]
        view = AtFirst(self.shop, {"visits": ids})
        right, wishes = plain(goal, view), wishes_in(goal.slots)

        def is_right(places: Collection[Place], kind: str) -> bool:
            """Tell whether somebody who lacks a kind in these places would still take what is wanted."""
            kept = {place: value for place, value in goal.slots.items() if place not in places}
            for item, name in places:
                read = without({name: goal.slots[item, name]}, frozenset((kind,)))
                kept |= {(item, slot): value for slot, value in read.items()}
            lacking = plain(replace(goal, slots=kept), view)
            return all(self._is_found(lacking.of(item), right.of(item)) for item in goal.items)

        self.steps = []
        for kind in dict.fromkeys(wish.step for wish in wishes.values()):
            places = [place for place, wish in wishes.items() if wish.step == kind]
            if not is_right(places, kind):
                alone = sum(not is_right([place], kind) for place in places)
                self.steps += [kind] * max(1, alone)
        return True

    def _is_found(self, slots: dict[str, Any], wanted: dict[str, Any]) -> bool:
        """Tell whether the first product that a search shows for these slots, in enough units, is a wanted one."""
        if slots.get("quantity") != wanted.get("quantity"):
            return False
        catalog, units = self.shop.catalog, slots.get("quantity", 1)
        able = catalog.select(constraints_of(slots["type"], slots))
        able = able[catalog.stock[able] >= units]
        good = {*catalog.select(constraints_of(wanted["type"], wanted), able).tolist()}
        if len(good) in (0, len(able)):
            return bool(good)
        filters = constraints_of(slots["type"], {n: v for n, v in slots.items() if n != "feature"})
        shown = self.shop.engine.search(slots.get("feature", slots["type"]), filters, (), self.axes.top_k)
        listed = {*able.tolist()}
        return next((row in good for row in shown if row in listed), False)
