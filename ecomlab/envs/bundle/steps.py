"""The steps of thought of BUNDLE: exceptions, demands across parts, what is worth more of a part, and what gives way.

Each demand that could be a trap is drawn with either outcome: whether the cheapest of each meets it, whether the
cheapest is the best, whether all can be had, whether whoever upgrades greedily has what a limit buys. Of every draw but
the last both outcomes are possible, so that its words tell neither; of that the outcome is drawn before the parts.
All that decides is on the pages that the reference player looks at.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache, cached_property
from itertools import combinations, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.catalog.support import gains
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import RATING
from ecomlab.steps import CALLS_A_STEP, draw_kinds, draw_size, may_hold, most_steps
from ecomlab.task import Goal, Place
from ecomlab.wishes import AnyBut, OneOf, Wish, has_wish
from ecomlab.world.cart import column_of, names_of
from ecomlab.world.joint import (
    PAGES_A_STEP,
    Demands,
    GiveWay,
    Joint,
    Offer,
    Same,
    Some,
    Together,
    Total,
    best,
    cheapest,
    day_name,
    evaluate,
    fronts,
    key_of,
    leaves_open,
    offer_of,
    offers_of,
    pages_for,
    upgraded,
)
from ecomlab.world.ranking import MOST_A_DAY, Worth, of_rows
from ecomlab.world.shopping_list import Part
from ecomlab.world.state import PAGE

KINDS = ("logic", "joint", "trade_off", "none")
"""Kinds of steps that BUNDLE has."""
P_NONE = 0.18
"""Share of the lists that may say what gives way; half of those that do must leave something out."""
P_COUNTS = {"logic": 0.6, "joint": 0.6, "trade_off": 0.5}
"""Share of the demands of a kind of which the outcome is the one that takes thought, where no others change it."""
P_GREEDY = 0.28
"""Share of the limits in total within which whoever upgrades greedily should have as many stars as they buy; the
others are harder to find."""
SHARES = (0.25, 0.25, 0.5)
"""Of the demands across parts those for a day, for a shared value and for what a limit buys."""
P_SHORT = 0.6
"""Share of the lists with one thing that counts beside the price whose budget leaves no room for it but the slack."""
P_EITHER = 0.25
"""Share of the logical demands that are alternatives; the others are exceptions."""
WAITS = (3, 4, 5)
"""Days until parts have to arrive together."""
WORTHS = (100, 200, 300, 500, 800, 1000, 1500, 2000, 3000)
"""Cents that a star more may be worth; a day sooner, in a shop without stars."""
MOST_WORTHS = 3
"""Most parts of which a customer says what is worth more."""
LEAD = 0.05
"""Least lead of the best over the next, as a share of its price."""
TIGHT = 0.02
"""Most by which a limit in total exceeds the least total, as a share."""
GROUPS, MOST_GROUPS = 60, 16
"""Most groups of parts among which one is drawn: of those that share a value, and of those with a limit in total."""
SHORT = (0.02, 0.1)
"""By which share a limit in total falls short of the least total where something has to give way."""
DRAWS = 3
"""Most demands that are drawn for each step that is to count."""
LISTED = PAGE * (1 + PAGES_A_STEP)
RowsOf = Callable[[Part], np.ndarray]
"""Finds the rows that fit a part and are left in some state of the shop."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The cheapest products of a part that are left, in the state before a sell-out or after it."""

    rows: np.ndarray
    """From the cheapest on."""
    catalog: Catalog
    every: np.ndarray
    """These and what is left beyond the pages, in any order."""
    end: float = math.inf
    """Least price of what is left beyond these, in cents."""

    @classmethod
    def of(cls, catalog: Catalog, rows: np.ndarray, top_k: int) -> "Listing":
        """List the cheapest of these rows, as many as the reference player looks at for any step and pages hold."""
        count = min(LISTED, top_k)
        return cls(cheapest(catalog, rows, count), catalog, rows).first(count)

    def first(self, count: int) -> "Listing":
        """Keep the first `count`."""
        kept = self.rows[:count]
        cut = len(self.every) > len(kept)
        end = float(self.catalog.price_cents.item(kept[-1])) if cut and len(kept) else self.end
        return replace(self, rows=kept, end=end)

    def fitting(self, slot: str, wish: OneOf | AnyBut) -> "Listing":
        """Keep those with a value that will do."""
        names = np.array([wish.admits(name) for name in (*names_of(self.catalog, slot), None)])
        rows, every = (some[names[column_of(self.catalog, slot)[some]]] for some in (self.rows, self.every))
        return replace(self, rows=rows, every=every)

    def codes(self, slot: str) -> np.ndarray:
        return column_of(self.catalog, slot)[self.rows]

    @cached_property
    def prices(self) -> np.ndarray:
        return self.catalog.price_cents[self.rows].astype(np.int64)

    @property
    def least(self) -> int:
        return self.prices.item(0)

    @cached_property
    def greedy(self) -> np.ndarray:
        """The cheapest, any of which somebody may take who does not think of more: bool (rows,)."""
        greedy: np.ndarray = self.prices == self.prices[:1]
        return greedy

    def least_by_code(self, slot: str) -> dict[int, int]:
        """Find the least price of each value."""
        codes, first = np.unique(self.codes(slot), return_index=True)
        return dict(zip(codes.tolist(), self.prices[first].tolist(), strict=True))


class Ways(NamedTuple):
    """What can be had of the parts of a limit in total."""

    offers: Mapping[str, Sequence[Offer]]
    demands: Demands
    """What else is demanded of them together, and the limit without its amount."""
    points: Sequence[Some]
    """The best lists under any limit, the dearest first."""
    listed: Sequence[Some]
    """Those of what is on the pages that are looked at."""

    def key(self, limit: int) -> int | None:
        """Find the key of the best list under a limit; None unless it is on the pages that are looked at, and the
        cheapest is not as good."""
        best, listed = (
            next((w for w in ways if w.cost <= limit), None) for ways in (self.points, self.listed)
        )
        if best is None or listed is None or best.key < listed.key or best.key == self.points[-1].key:
            return None
        return best.key

    def is_greedy_right(self, limit: int) -> bool | None:
        """Tell whether whoever upgrades greedily has as many stars as a limit buys; None where there is no `key`."""
        if (best := self.key(limit)) is None:
            return None
        *_, total = self.demands.joints
        assert isinstance(total, Total)
        some = replace(total, limit=limit)
        taken = upgraded(self.points[-1].chosen, self.offers, self.demands, some)
        return key_of(some, taken) <= best


@dataclass
class Drawing:
    """Demands that are drawn for the parts that an opening states."""

    parts: Sequence[str]
    base: Callable[[str, int | None], Sequence[Listing]]
    """Listings of a part of what arrives within so many days, before and after everything sells out that may."""
    today: date | None
    axes: Difficulty
    catalog: Catalog
    random: np.random.Generator
    wishes: list[Joint | Worth | GiveWay] = field(default_factory=list)
    slots: dict[str, dict[str, OneOf | AnyBut]] = field(default_factory=dict)
    """Logical demands, by part and slot."""
    room: int = 0
    """Cents that the budget leaves for what is worth more."""

    @property
    def taken(self) -> set[str]:
        """Parts that some demand is about."""
        return {*self.slots, *self._about(Joint, Worth)}

    def _about(self, *kinds: type[Wish]) -> set[str]:
        wishes = [wish for wish in self.wishes if isinstance(wish, kinds)]
        return {kind for wish in wishes for kind in wish.items}

    def free(self, *kinds: type[Wish]) -> list[str]:
        """List the parts that no demand of these kinds is about."""
        taken = self._about(*kinds)
        return [kind for kind in self.parts if kind not in taken]

    def places(self) -> dict[Place, Wish]:
        """Place the demands among the slots of a goal: each with the first part that it is about."""
        placed: dict[Place, Wish] = {
            (self.parts.index(kind), name): wish
            for kind, slots in self.slots.items()
            for name, wish in slots.items()
        }
        for wish in self.wishes:
            placed[0 if isinstance(wish, GiveWay) else self.parts.index(wish.items[0]), wish.slot] = wish
        return placed

    def listings(self, kind: str, days: int | None = None) -> Sequence[Listing]:
        """List what fits a part's logical demands."""
        found = self.base(kind, days)
        for slot, wish in self.slots.get(kind, {}).items():
            found = [one.fitting(slot, wish) for one in found]
        return found

    def draw(self) -> None:
        """Draw the steps of a list: of each kind demands until as many count as were drawn of it. Those for which it
        has no room are of the next kind."""
        kinds = draw_kinds(self.axes, KINDS, self.random, {"none": int(self.random.random() < P_NONE)})
        together, same, most = self.random.multinomial(kinds.count("joint"), SHARES).tolist()
        makers = (
            ("joint", self._draw_together, together),  # who arrives in time is found before what is shared
            ("joint", self._draw_same, same),  # and that before what gives way and what a limit buys
            ("none", self._draw_give_way, kinds.count("none")),
            ("joint", self._draw_most, most),
            ("logic", self._draw_logic, kinds.count("logic")),
            ("trade_off", self._draw_worth, kinds.count("trade_off")),
        )
        left = 0
        for kind, draw, number in (*makers, *((kind, draw, 0) for kind, draw, _ in makers)):
            if not may_hold(self.axes, kind) or (kind == "none" and not number):
                continue
            left += number
            for _ in range(DRAWS * left):
                before = self.wishes, self.slots, self.room
                counts = draw() if left else None
                if counts is None:
                    break
                if self._is_clear():
                    left -= counts
                else:
                    self.wishes, self.slots, self.room = before
        # The words of two demands would not tell which of them the budget should be spent on, nor would it be what a
        # limit in total buys if the budget bought less.
        aims = self._demands().aims
        if len(aims) == 1 and isinstance(aims[0], Worth) and self.random.random() < P_SHORT:
            self.room = 0

    def _is_clear(self) -> bool:
        """Tell whether all demands together can be met, and what decides is on the pages that are looked at."""
        if self._demands().calls > len(self.parts) + CALLS_A_STEP * most_steps(self.axes):
            return False
        for wish in self.wishes:
            for after in (0, 1):
                if isinstance(wish, Total) and wish.stars:
                    if self._ways(wish.items, after).key(wish.limit) is None:
                        return False
                elif isinstance(wish, Worth):
                    if not clear_best(self.listings(wish.type, self._days(wish.type))[after], wish):
                        return False
                elif isinstance(wish, Joint) and self.least(wish, after) is None:
                    return False
        return True

    def _demands(self) -> Demands:
        """Collect what is drawn so far."""
        return Demands.of({(n, "type"): kind for n, kind in enumerate(self.parts)} | self.places())

    @property
    def _most_in_total(self) -> int:
        """Return the most parts with a limit in total: one on all that are stated would be a second budget."""
        return len(self.parts) - 1

    def _size(self) -> int:
        return draw_size(self.axes, "joint", self.random)

    def _add(self, wishes: Sequence[tuple[Joint | Worth, bool]]) -> bool | None:
        """Add one of several demands of one kind, each with its outcome, whether the cheapest meet it; tell whether it
        counts. None is drawn where only one outcome is possible, or it would tell which."""
        met, broken = ([wish for wish, met in wishes if met == outcome] for outcome in (True, False))
        if not (met and broken):
            return None
        counts = bool(self.random.random() < P_COUNTS[wishes[0][0].step])
        self.wishes = [*self.wishes, pick(self.random, broken if counts else met)]
        return counts

    def _draw_logic(self) -> bool | None:
        """Draw values of an attribute of a part that will not do, or a few of which any will."""
        size, either = draw_size(self.axes, "logic", self.random), self.random.random() < P_EITHER
        for kind in shuffled(self.random, [kind for kind in self.free(Total) if kind not in self.slots]):
            base = self.listings(kind, self._days(kind))
            for one in shuffled(self.random, self.catalog.types[self.catalog.type_codes[kind]].attributes):
                slot = f"attr:{one.name}"
                names = names_of(self.catalog, slot)
                held = list(dict.fromkeys(code for code in base[1].codes(slot).tolist() if code >= 0))
                least = {*base[1].codes(slot)[base[1].greedy].tolist()}
                if len(least) > 1 or -1 in least or len(held) < 3:
                    continue
                first, *others = (names[code] for code in held)
                absent = [value for value in one.values if value not in (first, *others)]
                ways: list[OneOf | AnyBut]
                if either and absent:  # of values that the cheap ones do not have
                    others = shuffled(self.random, absent)[:size]
                    ways = [OneOf((first, *others)), OneOf((*others, first))]
                else:
                    others = shuffled(self.random, others)[: min(size, len(held) - 2)]
                    ways = [AnyBut(tuple(others)), AnyBut(tuple(shuffled(self.random, (first, *others[1:]))))]
                if all(len(some.fitting(slot, wish).rows) for some in base for wish in ways):
                    counts = bool(self.random.random() < P_COUNTS["logic"])
                    self.slots = {**self.slots, kind: {slot: ways[counts]}}
                    return counts
        return None

    def _groups(self, kinds: Sequence[str], size: int, slot: str) -> list[tuple[str, ...]]:
        """List groups of parts, or some of them, of which none has another demand of this kind at its first part."""
        begun = {w.items[0] for w in self.wishes if isinstance(w, Joint) and w.slot == slot}
        groups = [group for group in combinations(kinds, size) if group[0] not in begun]
        return shuffled(self.random, groups)[:GROUPS]

    def _draw_together(self) -> bool | None:
        """Draw a day on which several parts have to be there."""
        assert self.today is not None
        kinds = self.free(Together)
        for days in shuffled(self.random, WAITS):
            day = day_name(self.today + timedelta(days=days))
            able = [kind for kind in kinds if all(len(one.rows) for one in self.listings(kind, days))]
            now = {kind: one for kind in able if len((one := self.listings(kind)[1]).rows)}
            late = {kind: self.catalog.days[one.rows[one.greedy]] > days for kind, one in now.items()}
            for size in range(min(self._size(), len(now)), 1, -1):
                found: list[tuple[Joint | Worth, bool]] = []
                for group in self._groups(list(now), size, Together.slot):
                    if not any(late[kind].any() for kind in group):
                        found.append((Together(group, day), True))
                    elif any(late[kind].all() for kind in group):
                        found.append((Together(group, day), False))
                if (counts := self._add(found)) is not None:
                    return counts
        return None

    def _days(self, kind: str) -> int | None:
        """Return the days within which a part has to be there."""
        found = [w for w in self.wishes if isinstance(w, Together) and kind in w.items]
        return min((w.most_days(self.today) for w in found), default=None)

    def _draw_same(self) -> bool | None:
        """Draw a slot of which several parts share the value."""
        kinds = self.free(Worth, Same, Total)
        slots = {kind: shared_slots(kind, self.catalog) for kind in kinds}
        names = list(dict.fromkeys(name for some in slots.values() for name in some))
        for size in range(min(self._size(), len(kinds)), 1, -1):
            for name in shuffled(self.random, names):
                able = [kind for kind in kinds if name in slots[kind]]
                found: list[tuple[Joint | Worth, bool]] = []
                for group in self._groups(able, size, Same.slot):
                    wish, met = Same(group, name), self._met_by_cheapest(group, name)
                    if met is not None and all(self.least(wish, after) is not None for after in (0, 1)):
                        found.append((wish, met))
                if (counts := self._add(found)) is not None:
                    return counts
        return None

    def _draw_most(self) -> bool | None:
        """Draw a limit in total within which several parts should have as many stars as it buys. All that whoever
        upgrades greedily buys within it has as many, or fewer; the cheapest have fewer in any case."""
        sames = [wish.items for wish in self.wishes if isinstance(wish, Same)]
        alone = self.free(Worth, Total) if self.catalog.has(RATING) else []
        units = [items for items in sames if {*items} <= {*alone}]
        units += [(kind,) for kind in alone if not any(kind in items for items in sames)]
        greedy, ways = bool(self.random.random() < P_GREEDY), cache(self._ways)  # a group may come again
        for size in range(min(self._size(), sum(map(len, units)), self._most_in_total), 1, -1):
            for _ in range(MOST_GROUPS):
                group: list[str] = []
                for unit in shuffled(self.random, units):
                    group += unit if len(group) + len(unit) <= size else ()
                total = Total(tuple(sorted(group, key=self.parts.index)), 0, True)
                found = self._limits(total, greedy, ways) if len(group) == size else []
                if found:
                    total = pick(self.random, found[len(found) // 2 :])
                    self.wishes = [*self.wishes, total]
                    self.room += _dollars(total.limit - ways(total.items, 1).points[-1].cost)
                    return True
        return None

    def _limits(
        self, total: Total, greedy: bool, ways: Callable[[tuple[str, ...], int], Ways]
    ) -> list[Total]:
        """List limits in total under which whoever upgrades greedily is right, or is not, before and after a sell-out;
        under all of them the cheapest have fewer stars than can be had."""
        states = [ways(total.items, after) for after in (0, 1)]
        costs = [point.cost for point in states[1].points]
        limits = {_dollars(cost * (1 + TIGHT * self.random.random())) for cost in costs}
        limits |= {_dollars(one + n / 4 * (other - one)) for one, other in pairwise(costs) for n in (1, 2, 3)}
        return [
            replace(total, limit=limit)
            for limit in sorted(limits)
            if all(one.is_greedy_right(limit) == greedy for one in states)
        ]

    def _ways(self, items: tuple[str, ...], after: int) -> Ways:
        """List what can be had of the parts of a limit in total."""
        sames = [wish for wish in self.wishes if isinstance(wish, Same) and {*wish.items} <= {*items}]
        total = Total(items, 1 << 40, True)
        demands = Demands({kind: {} for kind in items}, None, (*sames, total))
        found = self._listed(total, after)
        offers, listed = (
            {kind: offers_of(self.catalog, rows(one), kind, demands) for kind, one in found.items()}
            for rows in (attrgetter("every"), attrgetter("rows"))
        )
        return Ways(offers, demands, *(fronts(some, demands, items) for some in (offers, listed)))

    def _listed(self, wish: Joint, after: int) -> dict[str, Listing]:
        """List what is to be had of the parts of a demand on the pages that are looked at."""
        listed = {kind: self.listings(kind, self._days(kind))[after] for kind in wish.items}
        return {
            kind: one if kind in self.slots else one.first(PAGE * pages_for(wish))
            for kind, one in listed.items()
        }

    def _met_by_cheapest(self, group: Sequence[str], name: str) -> bool | None:
        """Tell whether the cheapest of each share a value; None where that depends on which of several is taken."""
        values = [
            {*one.codes(name)[one.greedy].tolist()} for kind in group for one in self.listings(kind)[1:]
        ]
        if all(len(some) == 1 for some in values):
            return values[0] != {-1} and all(some == values[0] for some in values)
        return None if set.intersection(*values) - {-1} else False

    def least(self, wish: Joint, after: int, left_out: Sequence[str] = ()) -> int | None:
        """Find the least total of parts that share a value, or of any; None unless it is surely on the pages that the
        reference player looks at."""
        listed = [one for kind, one in self._listed(wish, after).items() if kind not in left_out]
        if not all(len(one.rows) for one in listed):
            return None
        least = sum(one.least for one in listed)
        if not isinstance(wish, Same) or len(listed) < 2:
            return least
        prices = [one.least_by_code(wish.of) for one in listed]
        shared = set.intersection(*(set(some) for some in prices)) - {-1}
        total = min((sum(some[value] for some in prices) for value in shared), default=None)
        ends = [least - one.least + one.end for one in listed]
        return total if total is not None and total <= min(ends) else None

    def _draw_give_way(self) -> bool | None:
        """Draw a limit in total and the parts that are left out where it cannot be met: so it is, or not."""
        if any(isinstance(wish, GiveWay) for wish in self.wishes):
            return None
        free = self.free(Worth, Total)
        groups: list[Joint] = [w for w in self.wishes if isinstance(w, Same) and {*w.items} <= {*free}]
        groups = [same for same in groups if len(same.items) <= self._most_in_total]
        if not groups:
            kinds = self.free(Worth, Same, Total)
            chosen = shuffled(self.random, kinds)[: min(self._size() + 1, len(kinds), self._most_in_total)]
            if len(chosen) < 2:
                return None
            groups = [Total(tuple(kind for kind in self.parts if kind in chosen), 0)]
        same = pick(self.random, groups)
        order = shuffled(self.random, same.items)
        order = order[: min(draw_size(self.axes, "none", self.random), len(order) - 1)]
        totals = [self.least(same, after, order[:n]) for after in (0, 1) for n in range(len(order) + 1)]
        if None in totals:
            return None
        least, rest = totals[len(order) + 1], totals[len(order) + 2]
        assert least is not None and rest is not None
        limit = _dollars(least * (1 + TIGHT * self.random.random()))
        if self.random.random() < 0.5:
            low, high = SHORT
            share = low + (high - low) * self.random.random()
            limit = max(_dollars(rest), 100 * math.floor(least * (1 - share) / 100))
            if limit >= least:
                return None
        self.wishes = [*self.wishes, Total(same.items, limit), GiveWay(tuple(order))]
        return True

    def _draw_worth(self) -> bool | None:
        """Draw what a star more, or a day sooner too, is worth of a part; in a shop without stars a day sooner."""
        kinds = self.free(Worth, Same, Total)
        two = draw_size(self.axes, "trade_off", self.random) > 1
        first, *others = gains(self.catalog)
        most = WORTHS[-1] if first is RATING else MOST_A_DAY
        if len([wish for wish in self.wishes if isinstance(wish, Worth)]) == MOST_WORTHS:
            return None
        for cents in shuffled(self.random, [one for one in WORTHS if one <= most]) if kinds else ():
            less = max(100, cents // 500 * 100)
            terms = ((first.name, cents), *((limit.name, less) for limit in others if two))
            found = [(wish, met) for kind in kinds for wish, met in self._worths(Worth(terms, kind))]
            if (counts := self._add(found)) is not None:
                self.room += _dollars(cents * (0.4 + 1.2 * self.random.random()))
                return counts
        return None

    def _worths(self, wish: Worth) -> list[tuple[Joint | Worth, bool]]:
        """List the demand with its outcome, whether the cheapest is the best; nothing unless that is clear."""
        states = self.listings(wish.type, self._days(wish.type))
        if not all(clear_best(one, wish) for one in states):
            return []
        now = states[1]
        keys = wish.key(of_rows(now.rows, self.catalog))
        met = now.prices[keys == keys.min()].min() == now.least
        return [] if met and now.greedy.sum() > 1 else [(wish, met)]


def shared_slots(kind: str, catalog: Catalog) -> list[str]:
    """List what products of a type may share with others."""
    return ["brand", *(f"attr:{one.name}" for one in catalog.types[catalog.type_codes[kind]].attributes)]


def clear_best(listing: Listing, wish: Worth, most: float = math.inf) -> bool:
    """Tell whether the best that costs at most so much is on the pages that are looked at, and clearly leads."""
    able = listing.prices <= most
    if not able.any():
        return False
    keys, prices = wish.key(of_rows(listing.rows, listing.catalog))[able], listing.prices[able]
    ordered = np.unique(keys)
    if listing.end < most and ordered[0] > listing.end - wish.most:
        return False
    return len(ordered) < 2 or bool(ordered[1] - ordered[0] >= LEAD * prices[keys == ordered[0]].min())


def _dollars(cents: float) -> int:
    """Round up to whole dollars, in cents."""
    return 100 * math.ceil(cents / 100)


def is_sound(goal: Goal, today: date | None, rows_of: RowsOf, catalog: Catalog, top_k: int) -> bool:
    """Tell whether a goal has a clear answer on the pages that can be read: what is left out is plain, and the best of
    a part clearly leads."""
    if not has_wish(goal.slots):
        return True
    demands, offers, choice = evaluate(goal.slots, today, rows_of, catalog)
    if choice is None or leaves_open(choice, offers, demands, today):
        return False
    listed = {kind: _listed(kind, demands, today, rows_of, catalog, top_k) for kind in demands.parts}
    seen = {kind: offers_of(catalog, one.rows, kind, demands) for kind, one in listed.items()}
    found = best(seen, demands, today)
    if found is None or found[1:] != choice[1:] or found.cost != choice.cost:
        return False
    for aim in demands.aims:
        if aim.items[0] not in choice.chosen:
            continue
        # One does not get better where the others do not count, or the words would not tell which comes first; and what
        # a limit in total buys, the budget does not cut.
        only = demands.aiming(aim)
        alone = best(offers, replace(only, budget=None) if isinstance(aim, Total) else only, today)
        if alone is None or key_of(aim, alone.chosen) < key_of(aim, choice.chosen):
            return False
        if isinstance(aim, Worth):
            most = goal["budget"] - choice.cost + choice.chosen[aim.type].price
            if not clear_best(listed[aim.type], aim, most):
                return False
    return True


def _listed(
    kind: str, demands: Demands, today: date | None, rows_of: RowsOf, catalog: Catalog, top_k: int
) -> Listing:
    """List what fits a part on the pages that are looked at: no filter takes alternatives and exceptions."""
    slots = demands.limited(kind, today)
    wishes = {name: wish for name, wish in slots.items() if isinstance(wish, OneOf | AnyBut)}
    filtered = {name: value for name, value in slots.items() if name not in wishes}
    rows = rows_of((kind, filtered))
    found = Listing.of(catalog, rows, top_k).first(PAGE * demands.pages(kind))
    for slot, wish in wishes.items():
        found = found.fitting(slot, wish)
    return found


def counting(goal: Goal, today: date | None, rows_of: RowsOf, catalog: Catalog) -> list[str]:
    """List the kinds of the steps that count: whoever does not take them does not get this list right."""
    if not has_wish(goal.slots):
        return []
    demands, _, choice = evaluate(goal.slots, today, rows_of, catalog)
    assert choice is not None, "a goal of which nothing can be had is drawn again"
    steps = ["none"] if choice.left_out else []
    for step in {
        wish.step: None for wish in goal.slots.values() if isinstance(wish, Wish) and wish.step != "none"
    }:
        heard, offers, taken = evaluate(goal.slots, today, rows_of, catalog, frozenset((step,)))
        taken = taken or best(offers, replace(heard, budget=None), today)
        if taken is None:
            steps.append(step)
            continue
        chosen = {
            kind: offer_of(catalog, one.thing, demands.shared(kind)) for kind, one in taken.chosen.items()
        }
        both, wrong = chosen.keys() & choice.chosen.keys(), 0
        if step == "logic":
            wrong = sum(chosen[kind].thing not in rows_of((kind, dict(demands.parts[kind]))) for kind in both)
        elif step == "joint":
            joints = (one.among(both) for one in demands.joints if not isinstance(one, Total))
            wrong = sum(not one.holds(chosen, today) for one in joints)
        aims = (one for one in demands.aims if one.step == step and {*one.items} <= both)
        wrong += sum(key_of(aim, chosen) > key_of(aim, choice.chosen) for aim in aims)
        steps += [step] * wrong
    return steps
