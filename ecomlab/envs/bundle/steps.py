"""The steps of thought of BUNDLE: demands across parts, what is worth more of a part, and what gives way.

Each demand that could be a trap is drawn with either outcome: whether the cheapest of each meets it, whether the
cheapest is the best, whether all can be had. Of every draw both outcomes are possible, so that its words tell neither.
All that decides is on the pages that the reference player looks at.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import combinations, product

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import DAYS, RATING
from ecomlab.steps import draw_kinds, draw_size
from ecomlab.task import Goal, Place
from ecomlab.wishes import Wish
from ecomlab.world.joint import (
    PAGES_A_STEP,
    GiveWay,
    Joint,
    Offer,
    Same,
    Together,
    Total,
    cheapest,
    day_name,
    evaluate,
    leaves_open,
    offer_of,
    pages_for,
)
from ecomlab.world.ranking import Worth
from ecomlab.world.shopping_list import Part
from ecomlab.world.state import PAGE

KINDS = ("joint", "trade_off", "none")
"""Kinds of steps that BUNDLE has."""
MOST = {"joint": 5, "trade_off": 2}
"""Most steps of a kind in a list."""
P_NONE = 0.18
"""Share of the lists that may say what gives way; half of those that do must leave something out."""
P_COUNTS = 0.57
"""Share of the demands of which the outcome is the one that takes thought."""
P_TOTAL = 0.5
"""Share of the parts with a shared value that have a limit in total as well."""
WAITS = (3, 4, 5)
"""Days until parts have to arrive together."""
STARS = (100, 200, 300, 500, 800, 1000, 1500, 2000, 3000)
"""Cents that a star more may be worth."""
LEAD = 0.05
"""Least lead of the best over the next, as a share of its price."""
TIGHT = 0.02
"""Most by which a limit in total exceeds the least total, as a share."""
SHORT = (0.02, 0.1)
"""By which share a limit in total falls short of the least total where something has to give way."""

LISTED = PAGE * (1 + PAGES_A_STEP)


@dataclass
class Listing:
    """The cheapest products of a part that are left, in the state before a sell-out or after it."""

    offers: list[Offer]
    whole: bool
    """No more products are left than these."""
    slots: Sequence[str]
    """What products of its type may share with others."""

    def within(self, days: int | None, count: int) -> "Listing":
        """Keep the first `count` that arrive within so many days."""
        kept = [one for one in self.offers if days is None or one.days <= days]
        return replace(self, offers=kept[:count], whole=self.whole and len(kept) <= count)

    @property
    def least(self) -> int:
        return self.offers[0].price

    @property
    def greedy(self) -> list[Offer]:
        """The cheapest, any of which somebody may take who does not think of more."""
        return [one for one in self.offers if one.price == self.least]


@dataclass
class Drawing:
    """Demands that are drawn for the parts that an opening states."""

    parts: Sequence[str]
    listings: Callable[[str, int | None], Sequence[Listing]]
    """Listings of a part of what arrives within so many days, before and after everything sells out that may."""
    today: date | None
    axes: Difficulty
    random: np.random.Generator
    wishes: list[Wish] = field(default_factory=list)
    room: int = 0
    """Cents that the budget leaves for what is worth more."""

    @property
    def taken(self) -> set[str]:
        """Parts that some demand is about."""
        joint = {kind for wish in self.wishes if isinstance(wish, Joint) for kind in wish.items}
        return joint | {wish.type for wish in self.wishes if isinstance(wish, Worth)}

    def free(self, *kinds: type[Wish]) -> list[str]:
        """List the parts that no demand of these kinds is about."""
        of = {k for w in self.wishes if isinstance(w, kinds) and isinstance(w, Joint) for k in w.items}
        of |= {w.type for w in self.wishes if isinstance(w, kinds) and isinstance(w, Worth)}
        return [kind for kind in self.parts if kind not in of]

    def places(self) -> dict[Place, Wish]:
        """Place the demands among the slots of a goal: each with the first part that it is about."""
        placed: dict[Place, Wish] = {}
        for wish in self.wishes:
            about = wish.type if isinstance(wish, Worth) else wish.items[0]  # type: ignore[attr-defined]
            item = 0 if isinstance(wish, GiveWay) else self.parts.index(about)
            placed[item, wish.slot] = wish  # type: ignore[attr-defined]
        return placed

    # LOGIC: demands with alternatives and conditions are drawn here as well.
    def draw(self) -> None:
        """Draw the steps of a list."""
        most = {**MOST, "none": int(self.random.random() < P_NONE)}
        kinds = draw_kinds(self.axes, KINDS, self.random, most)
        for _ in range(kinds.count("trade_off")):
            self._draw_worth()
        joints = [pick(self.random, (Together, Same)) for _ in range(kinds.count("joint"))]
        for kind in sorted(joints, key=lambda kind: kind is Same):  # who arrives in time is found first
            either = [self._draw_same, self._draw_together]
            for draw in either if kind is Same else reversed(either):
                if draw():
                    break
        if "none" in kinds:
            self._draw_give_way()

    def _size(self) -> int:
        return draw_size(self.axes, "joint", self.random)

    def _draw_one(self, wishes: Sequence[tuple[Wish, bool]]) -> bool:
        """Draw one of several demands of one kind, each with its outcome: whether the cheapest meet it. None is drawn
        where only one outcome is possible, or it would tell which."""
        met, broken = ([wish for wish, met in wishes if met == outcome] for outcome in (True, False))
        if not (met and broken):
            return False
        self.wishes.append(pick(self.random, broken if self.random.random() < P_COUNTS else met))
        return True

    def _groups(self, kinds: Sequence[str], size: int, slot: str) -> list[tuple[str, ...]]:
        """List groups of parts of which none has another demand of this kind at its first part."""
        begun = {w.items[0] for w in self.wishes if isinstance(w, Joint) and w.slot == slot}
        return [group for group in combinations(kinds, size) if group[0] not in begun]

    def _draw_together(self) -> bool:
        """Draw a day on which several parts have to be there; tell whether there is one."""
        kinds = self.free(Worth, Together)
        assert self.today is not None
        for days in shuffled(self.random, WAITS):
            day = day_name(self.today + timedelta(days=days))
            able = [k for k in kinds if all(one.offers for one in self.listings(k, days))]
            for size in range(min(self._size(), len(able)), 1, -1):
                met = {
                    kind: {one.days <= days for one in self.listings(kind, None)[1].greedy} for kind in able
                }
                found: list[tuple[Wish, bool]] = []
                for group in self._groups(able, size, Together.slot):
                    if all(met[kind] == {True} for kind in group):
                        found.append((Together(group, day), True))
                    elif any(met[kind] == {False} for kind in group):
                        found.append((Together(group, day), False))
                if self._draw_one(found):
                    return True
        return False

    def _days(self, kind: str) -> int | None:
        """Return the days within which a part has to be there."""
        found = [w for w in self.wishes if isinstance(w, Together) and kind in w.items]
        return min((w.most_days(self.today) for w in found), default=None)

    def _draw_same(self) -> bool:
        """Draw a slot of which several parts share the value, and perhaps a limit for them in total; tell whether there
        is one."""
        kinds = self.free(Worth, Same)
        slots = {kind: self.listings(kind, None)[1].slots for kind in kinds}
        names = list(dict.fromkeys(name for some in slots.values() for name in some))
        for size in range(min(self._size(), len(kinds)), 1, -1):
            for name in shuffled(self.random, names):
                able = [kind for kind in kinds if name in slots[kind]]
                found: list[tuple[Wish, bool]] = []
                for group in self._groups(able, size, Same.slot):
                    wish, met = Same(group, name), self._met_by_cheapest(group, name)
                    if met is not None and all(self.least(wish, after) is not None for after in (0, 1)):
                        found.append((wish, met))
                if self._draw_one(found):
                    if self.random.random() < P_TOTAL:
                        self._draw_total(self.wishes[-1].items)  # type: ignore[attr-defined]
                    return True
        return False

    def _met_by_cheapest(self, group: Sequence[str], name: str) -> bool | None:
        """Tell whether the cheapest of each share a value; None where that depends on which of several is taken."""
        values = [{one.values.get(name) for one in self.listings(kind, None)[1].greedy} for kind in group]
        if all(len(some) == 1 for some in values):
            return values[0] != {None} and all(some == values[0] for some in values)
        return None if set.intersection(*values) - {None} else False

    def least(self, wish: Joint, after: int, without: Sequence[str] = ()) -> int | None:
        """Find the least total of parts that share a value, or of any; None unless it is surely on the pages that the
        reference player looks at."""
        count = PAGE * pages_for(wish)
        listed = {
            kind: self.listings(kind, self._days(kind))[after].within(None, count)
            for kind in wish.items
            if kind not in without
        }
        if not all(one.offers for one in listed.values()):
            return None
        least = sum(one.least for one in listed.values())
        if not isinstance(wish, Same) or len(listed) < 2:
            return least
        prices = [_least_by_value(one.offers, wish.of) for one in listed.values()]
        shared = set.intersection(*(set(some) for some in prices)) - {None}
        if not shared:
            return None
        total = min(sum(some[value] for some in prices) for value in shared)
        ends = [least - one.least + one.offers[-1].price for one in listed.values() if not one.whole]
        return total if total <= min(ends, default=total) else None

    def _draw_total(self, group: Sequence[str]) -> None:
        """Draw a limit for the total of these parts, close to the least that they cost."""
        least = self.least(self._same_of(group), 1)
        if least is not None:
            self.wishes.append(Total(tuple(group), _dollars(least * (1 + TIGHT * self.random.random()))))

    def _same_of(self, group: Sequence[str]) -> Joint:
        """Return the demand that these parts share a value; where there is none, one that they meet anyhow."""
        same = [w for w in self.wishes if isinstance(w, Same) and w.items == tuple(group)]
        return same[0] if same else Total(tuple(group), 0)

    def _draw_give_way(self) -> None:
        """Draw a limit in total and the parts that are left out where it cannot be met: so it is, or not."""
        groups = [w.items for w in self.wishes if isinstance(w, Same)]
        if not groups:
            kinds = self.free(Worth, Same)
            size = min(self._size() + 1, len(kinds))
            if size < 2:
                return
            chosen = shuffled(self.random, kinds)[:size]
            groups = [tuple(kind for kind in self.parts if kind in chosen)]
        group = pick(self.random, groups)
        same = self._same_of(group)
        order = shuffled(self.random, group)[: min(draw_size(self.axes, "none", self.random), len(group) - 1)]
        totals = [self.least(same, after, order[:n]) for after in (0, 1) for n in range(len(order) + 1)]
        if None in totals:
            return
        least, rest = totals[len(order) + 1], totals[len(order) + 2]
        assert least is not None and rest is not None
        limit = _dollars(least * (1 + TIGHT * self.random.random()))
        if self.random.random() < 0.5:
            low, high = SHORT
            share = low + (high - low) * self.random.random()
            limit = max(_dollars(rest), 100 * math.floor(least * (1 - share) / 100))
            if limit >= least:
                return
        self.wishes = [w for w in self.wishes if not (isinstance(w, Total) and w.items == tuple(group))]
        self.wishes += [Total(tuple(group), limit), GiveWay(tuple(order))]

    def _draw_worth(self) -> None:
        """Draw what a star more, or a day sooner too, is worth of a part."""
        kinds = self.free(Worth, Joint)
        two = draw_size(self.axes, "trade_off", self.random) > 1
        for cents in shuffled(self.random, STARS):
            terms = ((RATING.name, cents), *([(DAYS.name, max(100, cents // 500 * 100))] if two else []))
            found = [(wish, met) for kind in kinds for wish, met in self._worths(Worth(terms, kind))]
            if self._draw_one(found):
                self.room += _dollars(cents * (0.4 + 1.2 * self.random.random()))
                return

    def _worths(self, wish: Worth) -> list[tuple[Wish, bool]]:
        """List the demand with its outcome, whether the cheapest is the best; nothing unless that is clear."""
        states = self.listings(wish.type, None)
        if not all(one.offers and clear_best(one, wish) for one in states):
            return []
        keys = [(wish.key(one.value), one.price) for one in states[1].offers]
        met = min(keys)[1] == states[1].least
        return [] if met and len(states[1].greedy) > 1 else [(wish, met)]


def clear_best(listing: Listing, wish: Worth, most: float = math.inf) -> bool:
    """Tell whether the best that costs at most so much is on the pages that are looked at, and clearly leads."""
    able = [one for one in listing.offers if one.price <= most]
    keys = sorted({wish.key(one.value) for one in able})
    if not keys:
        return False
    end = listing.offers[-1].price
    if not listing.whole and end < most and keys[0] > end - wish.most:
        return False
    price = min(one.price for one in able if wish.key(one.value) == keys[0])
    return len(keys) < 2 or keys[1] - keys[0] >= LEAD * price


def _least_by_value(offers: Sequence[Offer], name: str) -> dict[str | None, int]:
    """Find the least price of each value."""
    found: dict[str | None, int] = {}
    for one in offers:
        found.setdefault(one.values.get(name), one.price)
    return found


def _dollars(cents: float) -> int:
    """Round up to whole dollars, in cents."""
    return 100 * math.ceil(cents / 100)


def listing_of(catalog: Catalog, rows: np.ndarray, kind: str) -> Listing:
    """List the cheapest of these rows of a type, as many as the reference player looks at for any step."""
    first = cheapest(catalog, rows, LISTED)
    attributes = catalog.types[catalog.type_codes[kind]].attributes
    slots = ["brand", *(f"attr:{one.name}" for one in attributes)]
    return Listing([offer_of(catalog, row, slots) for row in first.tolist()], len(rows) <= LISTED, slots)


RowsOf = Callable[[Part], np.ndarray]
"""Finds the rows that fit a part and are left in some state of the shop."""


def is_sound(goal: Goal, today: date | None, rows_of: RowsOf, catalog: Catalog) -> bool:
    """Tell whether a goal has a clear answer: what is left out is plain, and the best of a part clearly leads."""
    if not any(isinstance(wish, Wish) for wish in goal.slots.values()):
        return True
    demands, offers, choice = evaluate(goal.slots, today, rows_of, catalog)
    if choice is None or leaves_open(choice, offers, demands, today):
        return False
    for wish in demands.worths:
        if wish.type in choice.chosen:
            chosen = choice.chosen[wish.type]
            most = goal["budget"] - choice.cost + chosen.price
            listing = listing_of(catalog, rows_of((wish.type, {})), wish.type)
            if not clear_best(listing, wish, most):
                return False
    return True


def counting(goal: Goal, today: date | None, rows_of: RowsOf, catalog: Catalog) -> list[str]:
    """List the kinds of the steps that count: whoever does not take them does not get this list right."""
    if not any(isinstance(wish, Wish) for wish in goal.slots.values()):
        return []
    demands, _, choice = evaluate(goal.slots, today, rows_of, catalog)
    assert choice is not None, "a goal of which nothing can be had is drawn again"
    greedy = {}
    for kind in choice.chosen:
        listing = listing_of(catalog, rows_of((kind, dict(demands.parts[kind]))), kind)
        greedy[kind] = listing.greedy
    steps = ["none"] if choice.left_out else []
    for joint in (one.among(greedy) for one in demands.joints):
        taken = [greedy[kind] for kind in joint.items]
        lists = (dict(zip(joint.items, some, strict=True)) for some in product(*taken))
        if not isinstance(joint, Total) and not any(joint.holds(some, today) for some in lists):
            steps.append(joint.step)
    for wish in demands.worths:
        if wish.type in greedy and all(
            wish.key(one.value) > wish.key(choice.chosen[wish.type].value) for one in greedy[wish.type]
        ):
            steps.append(wish.step)
    return steps
