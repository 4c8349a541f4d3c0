"""Demands across the parts of a shopping list, and the best list under them: an exact search over shared values."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import combinations, product
from operator import add, itemgetter, le
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.slots import DAYS, RATING, SlotType
from ecomlab.task import Place
from ecomlab.values import MONEY, WEEKDAYS, in_speech, joined, money, read_money
from ecomlab.wishes import Wish, has_wish, without
from ecomlab.world.cart import column_of, keys_of, names_of
from ecomlab.world.ranking import Values, Worth, of_rows
from ecomlab.world.shopping_list import Part, parts_of
from ecomlab.world.substitutes import NOUNS, noun

PAGES_A_STEP = 4
"""Pages of search results that a step of thought adds to the reference player's work."""


class Offer(NamedTuple):
    """A product that fits a part: its row or id, and what demands across parts look at."""

    thing: Any
    price: int
    """Cents."""
    rating: int
    """Tenths of a star."""
    days: int
    values: Mapping[str, Any]
    """Values of the slots that parts may share."""

    def value(self, limit: SlotType) -> int:
        """Look up the value of a limit."""
        return getattr(self, limit.name)


_ATTRIBUTES = {words: name for name, words in NOUNS.items()}
_NEXT = re.compile(r"(?:, | and )(?=the )")
_THINGS = r"(?P<items>the [^.!?\n]+?)"
_STARS = ", with as many stars in total as that buys"


@dataclass(frozen=True)
class Joint(Wish):
    """A demand on several parts together, named by their types."""

    items: tuple[str, ...]
    slot: ClassVar[str]
    """Slot of a goal that holds it."""
    step = "joint"

    def among(self, kinds: Iterable[str]) -> Self:
        """Restrict it to the parts of these types."""
        left = set(kinds)
        return replace(self, items=tuple(kind for kind in self.items if kind in left))

    def holds(self, chosen: Mapping[str, Offer], today: date | None) -> bool:
        """Tell whether the chosen products, by type, satisfy it; parts without one do not count."""
        raise NotImplementedError

    @property
    def broken(self) -> str:
        """Words of a reason that it does not hold."""
        raise NotImplementedError

    @property
    def the_items(self) -> str:
        return joined([f"the {in_speech(kind)}" for kind in self.items])

    @staticmethod
    def read_items(text: str) -> tuple[str, ...]:
        return tuple(part.removeprefix("the ") for part in _NEXT.split(text))


@dataclass(frozen=True)
class Same(Joint):
    """Parts that share a value of a slot, whichever it is."""

    of: str
    """The slot: "brand", or an attribute."""
    slot = "same"
    pattern = rf"{_THINGS} (?:from|in|with) the same (?P<of>[a-z][a-z ]*?)"

    def holds(self, chosen: Mapping[str, Offer], today: date | None) -> bool:
        values = {chosen[kind].values.get(self.of) for kind in self.items if kind in chosen}
        return len(values) < 2 and None not in values

    @property
    def broken(self) -> str:
        return f"{', '.join(self.items)} do not share {self.of.removeprefix('attr:').replace('_', ' ')}"

    def say(self) -> str:
        name = noun(self.of.removeprefix("attr:"))
        before = {"brand": "from", "color": "in"}.get(name, "with")
        return f"{self.the_items} {before} the same {name}"

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Same":
        name = said["of"]
        of = name if name == "brand" else f"attr:{_ATTRIBUTES.get(name, name.replace(' ', '_'))}"
        return cls(cls.read_items(said["items"]), of)


@dataclass(frozen=True)
class Total(Joint):
    """Parts that cost no more than a limit together; with `stars` they should also have as many as that buys."""

    limit: int
    """Cents."""
    stars: bool = False
    slot = "subtotal"
    pattern = rf"(?P<limit>{MONEY.pattern}) for {_THINGS} together(?P<stars>{_STARS})?"

    def holds(self, chosen: Mapping[str, Offer], today: date | None) -> bool:
        return sum(chosen[kind].price for kind in self.items if kind in chosen) <= self.limit

    def key(self, values: Values) -> Any:
        """Compute what a part adds to the stars in total, the smaller the better."""
        stars = values(RATING)
        return -stars * (stars > 0)

    @property
    def broken(self) -> str:
        return f"{', '.join(self.items)} cost more than {money(self.limit)} together"

    @property
    def amounts(self) -> Sequence[int]:
        return (self.limit,)

    def say(self) -> str:
        return f"{money(self.limit)} for {self.the_items} together" + _STARS * self.stars

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Total":
        return cls(cls.read_items(said["items"]), read_money(said["limit"]), bool(said["stars"]))


@dataclass(frozen=True)
class Together(Joint):
    """Parts that all arrive on or before a day."""

    day: str
    """The next day of that name: "Saturday the 21st"."""
    slot = "arrival"
    pattern = rf"{_THINGS} by (?P<day>(?:{'|'.join(WEEKDAYS)}) the \d{{1,2}}(?:st|nd|rd|th))"

    def holds(self, chosen: Mapping[str, Offer], today: date | None) -> bool:
        most = self.most_days(today)
        return all(chosen[kind].days <= most for kind in self.items if kind in chosen)

    def most_days(self, today: date | None) -> int:
        """Count the days until then."""
        assert today is not None, "the demand names a day, which datetime_now counts from"
        return days_until(self.day, today)

    @property
    def broken(self) -> str:
        return f"{', '.join(self.items)} do not all arrive by {self.day}"

    def say(self) -> str:
        return f"{self.the_items} by {self.day}"

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "Together":
        return cls(cls.read_items(said["items"]), said["day"])


@dataclass(frozen=True)
class GiveWay(Wish):
    """Parts that are left out, as few as possible and in this order, where not all demands can be met."""

    items: tuple[str, ...]
    slot = "give_way"
    step = "none"
    pattern = _THINGS

    def say(self) -> str:
        return ", then ".join(f"the {in_speech(kind)}" for kind in self.items)

    @classmethod
    def read(cls, said: Mapping[str, str]) -> "GiveWay":
        return cls(tuple(kind.removeprefix("the ") for kind in said["items"].split(", then ")))


SLOTS = tuple(kind.slot for kind in (Same, Total, Together, Worth, GiveWay))
"""Slots of the demands that are about several parts or about what gives way."""


def day_name(day: date) -> str:
    """Name a day as a customer does: "Saturday the 21st"."""
    ending = "th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return f"{day:%A} the {day.day}{ending}"


def days_until(name: str, today: date) -> int:
    """Count the days from today to the next day of this name, at least one."""
    return next(n for n in range(1, 3000) if day_name(today + timedelta(days=n)) == name)


@dataclass(frozen=True)
class Demands:
    """All that is wanted of a list: its parts, and the demands on several of them."""

    parts: Mapping[str, Mapping[str, Any]]
    """The slots of each part by its type."""
    budget: int | None
    joints: tuple[Joint, ...] = ()
    worths: tuple[Worth, ...] = ()
    order: tuple[str, ...] = ()
    """Parts that give way, the first first."""

    @classmethod
    def of(cls, wanted: Mapping[Place, Any], lacks: frozenset[str] = frozenset()) -> "Demands":
        """Collect the demands among slots, without those that somebody does not see who lacks these kinds of steps."""
        parts = {kind: without(slots, lacks) for kind, slots in parts_of(wanted)}
        wishes = list(dict.fromkeys(wish for wish in wanted.values() if isinstance(wish, Wish)))
        wishes = [wish for wish in wishes if wish.step not in lacks]
        joints = [wish.among(parts) for wish in wishes if isinstance(wish, Joint)]
        worths = [wish for wish in wishes if isinstance(wish, Worth) and wish.type in parts]
        order = [kind for wish in wishes if isinstance(wish, GiveWay) for kind in wish.items if kind in parts]
        kept = tuple(joint for joint in joints if joint.items)
        return cls(parts, wanted.get((0, "budget")), kept, tuple(worths), tuple(order))

    def shared(self, kind: str) -> list[str]:
        """List the slots that a part shares with others."""
        return [one.of for one in self.joints if isinstance(one, Same) and kind in one.items]

    def limited(self, kind: str, today: date | None) -> dict[str, Any]:
        """Return a part's own slots, with the days within which it must arrive."""
        slots = dict(self.parts[kind])
        together = [one for one in self.joints if isinstance(one, Together) and kind in one.items]
        days = [one.most_days(today) for one in together]
        return slots | {DAYS.name: min([*days, slots.get(DAYS.name, 1000)])} if days else slots

    @property
    def aims(self) -> tuple[Worth | Total, ...]:
        """What counts beside the price: the best list has the least sum of their keys."""
        return (*self.worths, *(one for one in self.joints if isinstance(one, Total) and one.stars))

    def aim(self, kind: str) -> Worth | Total | None:
        """Return what counts of a part beside its price, if anything does."""
        return next((one for one in self.aims if kind in one.items), None)

    def aiming(self, *aims: Worth | Total) -> Self:
        """Keep all that must hold, and of what counts beside the price only these."""
        joints = (
            replace(one, stars=one in aims) if isinstance(one, Total) and one.stars else one
            for one in self.joints
        )
        return replace(self, joints=tuple(joints), worths=tuple(one for one in self.worths if one in aims))

    def pages(self, kind: str) -> int:
        """Count the pages, the cheapest first, that hold what decides about a part."""
        if any(kind == one.type for one in self.worths) or has_wish(self.parts[kind]):
            return 1 + PAGES_A_STEP
        return max((pages_for(one) for one in self.joints if kind in one.items), default=1)

    @property
    def calls(self) -> int:
        """Count the calls that find out all that decides."""
        return sum(map(self.pages, self.parts)) + self.names_days

    @property
    def names_days(self) -> bool:
        """True if one of them counts from today."""
        return any(isinstance(one, Together) for one in self.joints)


def pages_for(joint: Joint) -> int:
    """Count the pages of each part that decide about a demand, the cheapest first."""
    if isinstance(joint, Total) and joint.stars:
        return 1 + PAGES_A_STEP // 2
    return 1 + PAGES_A_STEP // len(joint.items) if isinstance(joint, Same) and len(joint.items) > 1 else 1


class Choice(NamedTuple):
    """A best list: the offers by type, and the parts left out."""

    chosen: dict[str, Offer]
    left_out: tuple[str, ...]
    key: int
    """Sum of the keys of what counts beside the price; 0 where nothing does."""

    @property
    def cost(self) -> int:
        return sum(offer.price for offer in self.chosen.values())


Offers = Mapping[str, Sequence[Offer]]
"""What is to be had of each part that meets its own slots."""


def best(offers: Offers, demands: Demands, today: date | None) -> Choice | None:
    """Find the best list under all demands, with the fewest parts left out in the order in which they give way: the
    least key, then the least cost. None where leaving out all of these does not help either."""
    for count in range(len(demands.order) + 1):
        left_out = demands.order[:count]
        kinds = [kind for kind in demands.parts if kind not in left_out]
        found = _best(offers, demands, kinds, today)
        if found is not None:
            return found._replace(left_out=left_out)
    return None


def _best(offers: Offers, demands: Demands, kinds: Sequence[str], today: date | None) -> Choice | None:
    """Find the best list of exactly these parts."""
    joints = [joint.among(kinds) for joint in demands.joints]
    arrivals = [one for one in joints if isinstance(one, Together)]
    able: dict[str, Sequence[Offer]] = {}
    for kind in kinds:
        days = min((one.most_days(today) for one in arrivals if kind in one.items), default=None)
        able[kind] = [one for one in offers.get(kind, ()) if days is None or one.days <= days]
    most, found = math.inf if demands.budget is None else demands.budget, [_NOTHING]
    for group in _groups(kinds, [one for one in joints if not isinstance(one, Together)]):
        some = fronts(able, replace(demands, joints=tuple(joints)), group, most)
        found = _front(_sum(one, other) for one in found for other in some)
        found = [one for one in found if one.cost <= most]
    return Choice(found[0].chosen, (), found[0].key) if found else None


class Some(NamedTuple):
    """Offers of some parts."""

    key: int
    cost: int
    spent: tuple[int, ...]
    """What they cost of each limit that is about a part of them."""
    chosen: dict[str, Offer]


_NOTHING = Some(0, 0, (), {})


def _sum(one: Some, other: Some) -> Some:
    spent = tuple(map(add, one.spent, other.spent))
    return Some(one.key + other.key, one.cost + other.cost, spent, one.chosen | other.chosen)


def _groups(kinds: Sequence[str], joints: Sequence[Joint]) -> list[list[str]]:
    """Divide parts into groups that no demand goes beyond."""
    groups = [[kind] for kind in kinds]
    for joint in joints:
        tied = [group for group in groups if {*group} & {*joint.items}]
        groups = [group for group in groups if group not in tied] + [
            [kind for group in tied for kind in group]
        ]
    return [group for group in groups if group]


def fronts(able: Offers, demands: Demands, group: Sequence[str], most: float = math.inf) -> list[Some]:
    """List what may be had of a group of parts so that no cheaper way has as good a key: the best first, the cheapest
    last, all within their limits."""
    joints = [one for one in demands.joints if {*one.items} & {*group}]
    sames = [one for one in joints if isinstance(one, Same) and len(one.items) > 1]
    totals = [one for one in joints if isinstance(one, Total)]
    most = min([most, *(one.limit for one in totals if {*one.items} >= {*group})])
    totals = [one for one in totals if not {*one.items} >= {*group}]
    limits = tuple([one.limit for one in totals])

    def extended(some: Sequence[Some], others: Sequence[Some]) -> list[Some]:
        if some is nothing:
            sums = [other for other in others if other.cost <= most]
        else:
            sums = [_sum(one, other) for one in some for other in others if one.cost + other.cost <= most]
        if totals:
            sums = [one for one in sums if _within(one.spent, limits)]
        return _front(sums)

    nothing = [Some(0, 0, (0,) * len(totals), {})]
    found = nothing
    for tied in _groups(group, sames):
        some, mine = list[Some](), [one for one in sames if {*one.items} <= {*tied}]
        for assigned in product(*(_shared_values(one, able) for one in mine)):
            fixed = [(kind, one.of, v) for one, v in zip(mine, assigned, strict=True) for kind in one.items]
            ways = nothing
            for kind in tied:
                aim, wanted = demands.aim(kind), [(slot, value) for of, slot, value in fixed if of == kind]
                fitting = able[kind]
                if wanted:
                    fitting = [o for o in fitting if [(s, o.values.get(s)) for s, _ in wanted] == wanted]
                counts = [kind in total.items for total in totals]
                options = [
                    Some(key, o.price, tuple([o.price * n for n in counts]), {kind: o})
                    for key, o in frontier(fitting, aim)
                ]
                ways = extended(ways, options)
            some += ways
        found = extended(found, _front(some))
    return _front(one._replace(spent=()) for one in found)


def _front(found: Iterable[Some]) -> list[Some]:
    """Keep what nothing else is as good as in every respect, in the order of keys."""
    kept: list[Some] = []
    for one in sorted(found, key=itemgetter(0, 1, 2)):
        if not one.spent:  # where key and cost alone count, the last one kept is the cheapest so far
            if not kept or one.cost < kept[-1].cost:
                kept.append(one)
        elif not any(other.cost <= one.cost and _within(other.spent, one.spent) for other in kept):
            kept.append(one)
    return kept


def _within(spent: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(map(le, spent, other))


def _shared_values(same: Same, able: Offers) -> list[Any]:
    """List the values that something of every part has."""
    each = [{one.values.get(same.of) for one in able[kind]} - {None} for kind in same.items]
    return sorted(set.intersection(*each), key=str)


def frontier(offers: Sequence[Offer], aim: Worth | Total | None) -> list[tuple[int, Offer]]:
    """Keep the offers that no cheaper one beats, each with its key: the cheapest alone where the price alone counts."""
    kept: list[tuple[int, Offer]] = []
    keyed = [(offer.price, _key(aim, offer), offer) for offer in offers]
    for _, key, offer in sorted(keyed, key=itemgetter(0, 1)):
        if not kept or (aim is not None and key < kept[-1][0]):
            kept.append((key, offer))
    return kept


def _key(aim: Worth | Total | None, offer: Offer) -> int:
    return 0 if aim is None else int(aim.key(offer.value))


def key_of(aim: Worth | Total, chosen: Mapping[str, Offer]) -> int:
    """Add up what the chosen products come to for an aim, the smaller the better."""
    return sum(_key(aim, chosen[kind]) for kind in aim.items)


def upgraded(chosen: Mapping[str, Offer], offers: Offers, demands: Demands, total: Total) -> dict[str, Offer]:
    """Choose as somebody does who begins with the cheapest list and then takes, again and again, the dearer product
    that has the most stars more for its price, as far as the money goes."""
    chosen = dict(chosen)
    while True:
        room = total.limit - sum(chosen[kind].price for kind in total.items)
        if demands.budget is not None:
            room = min(room, demands.budget - sum(offer.price for offer in chosen.values()))
        steps = [
            ((now.rating - offer.rating) / max(1, offer.price - now.price), offer.price, kind, offer)
            for kind, now, shared in [(kind, chosen[kind], demands.shared(kind)) for kind in total.items]
            for offer in offers[kind]
            if offer.rating > now.rating and offer.rating > 0 and now.price <= offer.price <= now.price + room
            if not shared or [offer.values[slot] for slot in shared] == [now.values[slot] for slot in shared]
        ]
        if not steps:
            return chosen
        *_, kind, offer = min(steps, key=itemgetter(0, 1, 2))
        chosen[kind] = offer


# What a catalog offers, reduced by columns to the few rows that can be in a best list.


def offer_of(catalog: Catalog, row: int, shared: Sequence[str]) -> Offer:
    """Make the offer of a row."""
    codes = {slot: column_of(catalog, slot).item(row) for slot in shared}
    values = {slot: names_of(catalog, slot)[code] if code >= 0 else None for slot, code in codes.items()}
    return Offer(
        row, catalog.price_cents.item(row), catalog.rating_tenths.item(row), catalog.days.item(row), values
    )


def cheapest(catalog: Catalog, rows: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` cheapest of these rows, from the cheapest on."""
    if len(rows) > 4 * count:
        prices = catalog.price_cents[rows]
        rows = rows[prices <= np.partition(prices, count)[count]]
    return rows[np.argsort(catalog.price_cents[rows], kind="stable")][:count]


def offers_of(catalog: Catalog, rows: np.ndarray, kind: str, demands: Demands) -> list[Offer]:
    """List the offers among the rows that fit a part which can be in a best list: for each combination of the values
    that it shares with others the cheapest, or those that no cheaper one beats."""
    if not len(rows):
        return []
    shared, aim = demands.shared(kind), demands.aim(kind)
    if not shared and aim is None:
        return [offer_of(catalog, row, shared) for row in cheapest(catalog, rows, 1).tolist()]
    rows = rows[np.argsort(catalog.price_cents[rows], kind="stable")]
    keep = np.zeros(len(rows), bool)
    group = keys_of(catalog, rows, shared)
    keep[np.unique(group, return_index=True)[1]] = True
    if aim is not None:
        key = aim.key(of_rows(rows, catalog))
        for value in np.unique(group).tolist() if shared else [0]:
            mine = np.flatnonzero(group == value)
            least = np.minimum.accumulate(key[mine])
            keep[mine[1:][key[mine[1:]] < least[:-1]]] = True
    return [offer_of(catalog, row, shared) for row in rows[keep].tolist()]


def offers_left(
    demands: Demands, today: date | None, rows_of: Callable[[Part], np.ndarray], catalog: Catalog
) -> Offers:
    """List the offers of each part among the rows that fit it and are left, which `rows_of` finds."""
    return {
        kind: offers_of(catalog, rows_of((kind, demands.limited(kind, today))), kind, demands)
        for kind in demands.parts
    }


def evaluate(
    wanted: Mapping[Place, Any],
    today: date | None,
    rows_of: Callable[[Part], np.ndarray],
    catalog: Catalog,
    lacks: frozenset[str] = frozenset(),
) -> tuple[Demands, Offers, Choice | None]:
    """Find the best list for these slots, as somebody sees them who lacks these kinds of steps."""
    demands = Demands.of(wanted, lacks)
    offers = offers_left(demands, today, rows_of, catalog)
    return demands, offers, best(offers, demands, today)


def surplus(
    wanted: Mapping[Place, Any], today: date | None, rows_of: Callable[[Part], np.ndarray], catalog: Catalog
) -> int:
    """Count the cents by which the cheapest list exceeds the cheapest of each, because of what parts share and of the
    days on which they are needed; limits in total are left aside."""
    every = Demands.of(wanted)
    joints = tuple(one for one in every.joints if not isinstance(one, Total))
    parts = {kind: every.parts[kind] for one in joints for kind in one.items}
    demands, alone = Demands(parts, None, joints), Demands(parts, None)
    lists = [best(offers_left(one, today, rows_of, catalog), one, today) for one in (demands, alone)]
    costs = [0 if one is None else one.cost for one in lists]
    return costs[0] - costs[1]


def leaves_open(chosen: Choice, offers: Offers, demands: Demands, today: date | None) -> bool:
    """Tell whether the parts left out could be fewer in another order, which a customer's words leave open."""
    out = chosen.left_out
    for count in range(1, len(out)):
        for some in combinations(out, count):
            kinds = [kind for kind in demands.parts if kind not in some]
            if some != out[:count] and _best(offers, demands, kinds, today) is not None:
                return True
    return False


def named_parts(text: str, kinds: Iterable[str], catalog: Catalog) -> set[str]:
    """List the parts that a text names, in whatever words around them."""
    said, found = text.lower(), set[str]()
    names = [(name.lower(), kind) for kind in kinds for name in _called(kind, catalog)]
    for name, kind in sorted(names, key=lambda one: -len(one[0])):
        if name in said:
            found.add(kind)
            said = said.replace(name, " ")
    return found


def _called(kind: str, catalog: Catalog) -> tuple[str, str]:
    return kind, catalog.types[catalog.type_codes[kind]].plural
