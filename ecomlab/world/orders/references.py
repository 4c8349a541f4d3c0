"""Customers' references to orders, and the orders that a reference may mean.

Slots: "type" or "thing" (an item's type; "thing" comes in a sentence of its own), "brand", "feature", "placed" (a day,
"MM-DD"), "when" ("week", "month", a month's number, "3 days", "Monday": the latest before today, "fortnight", "moon":
roughly), "things" and "parcels" (their number), "number" and "total" (the order's, from the confirmation mail),
"correction" (steps back in time).

A chain of links leads from an order that is named to the one that is meant: "near" (an item's type in the first), or
"best" ("dearest 10": of October) or "split" (the "latest" or "first" in two parcels); then "between" (that one and the
one with an item of a type), "next_with" and "last_with" (in time, with an item of a type), "relation" (a step back).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.seeding import pick, shuffled
from ecomlab.values import WEEKDAYS

Seen = Mapping[str, Any]
"""An order as references see it: "placed", "items" (title and type) and "parcels" (their number, None if unknown)."""
Slots = dict[str, Any]
WORDS = ("type", "brand", "feature")
"""Slots that name an item of an order."""
STEPS = ("relation", "correction")
"""Slots that lead from the order mentioned to the one before or after it."""
STARTS = ("near", "best", "split")
"""Slots with which a chain of links begins."""
LINKS = {"best": 1, "split": 1, "between": 2, "next_with": 1, "last_with": 1, "relation": 1}
"""Links from the order that is named to the one that is meant, in the order of following them, and their sizes."""
MOST_LINKS = 3
"""Size of the longest chain."""
CHAINS = tuple(
    (start, *links)
    for start in STARTS
    for links in ((), ("relation",), ("next_with",), ("last_with",), ("between",), ("next_with", "relation"),
                  ("last_with", "relation"))
    if start != "near" or links
)  # fmt: skip
"""Chains that people can follow."""
BEST = ("dearest", "cheapest", "fullest")
"""By what one order of a month is singled out: its total, or the number of things in it."""
LEAD = 1.05
"""Ratio by which the total of the dearest order exceeds the next one's, or that exceeds the cheapest one's."""
COMPARED = 4
"""Most orders of a month that are compared."""
ROUGHLY = {"fortnight": ((6, 15), (3, 21)), "moon": ((25, 38), (18, 50))}
"""How many days ago "a week or two ago" and "about a month ago" were, and may have been to somebody else."""
MEMORY = {"days": 0.6, "mail": 0.4}
"""Probabilities that a customer knows when they ordered, and what the confirmation mail says."""
TIMES = frozenset(
    [
        "week",
        "month",
        *ROUGHLY,
        *WEEKDAYS,
        *(f"{n} days" for n in range(1, 7)),
        *(f"{n:02d}" for n in range(1, 13)),
    ]
)
"""Values of "when" that customers can put into words."""
LOOKUPS = 40
"""Maximum number of orders that a reference may leave to be looked into."""
P_STEP = 0.25
"""Probability that who asks about another order speaks of it as the one before or after the first."""


def look(history: Sequence[Mapping[str, Any]], shop: Shop) -> list[dict[str, Any]]:
    """Convert orders to what is known after looking into all of them."""
    seen = []
    for order in history:
        rows = [shop.catalog.row(line["product_id"]) or 0 for line in order["lines"]]
        items = [
            {
                "title": shop.catalog.title(row),
                "type": shop.catalog.type_of(row).name,
                "quantity": line["quantity"],
            }
            for row, line in zip(rows, order["lines"], strict=True)
        ]
        prices = [line["price_cents"] for line in order["lines"]]
        about = {name: order[name] for name in ("order_id", "placed")}
        seen.append({**about, "items": items, "parcels": len(order["parcels"]), "prices": prices})
    return seen


def total_of(order: Seen) -> int | None:
    """Add up what an order cost, in cents; None where that is not known."""
    prices = order.get("prices")
    if prices is None or None in prices:
        return None
    return sum(price * item["quantity"] for price, item in zip(prices, order["items"], strict=True))


def resolve(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """List the orders that these slots may mean, by index, the newest first."""
    found = [i for i, order in enumerate(seen) if _fits(order, slots, today)]
    for link in (*LINKS, "correction"):
        if slots.get(link) is not None:
            found = _follow(link, slots[link], found, seen)
    return found


def without_links(slots: Mapping[str, Any]) -> Slots:
    """Keep what names an order, as somebody does who follows no link: of the best of a month, the month."""
    kept = {name: value for name, value in slots.items() if name not in LINKS and name != "correction"}
    return {**kept, "when": slots["best"].split()[1]} if slots.get("best") else kept


def decided_inside(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """List the orders that have to be looked into to find which is meant: no list shows parcels and prices."""
    listed = {name: value for name, value in without_links(slots).items() if name not in ("parcels", "total")}
    best = slots.get("best") or "fullest"
    if {"parcels", "total", "split"} & slots.keys() or not best.startswith("fullest"):
        return resolve(seen, listed, today)
    return []


def _follow(link: str, value: Any, found: Sequence[int], seen: Sequence[Seen]) -> list[int]:
    """Follow a link from the orders that are found so far."""
    if link == "best":
        which, month = value.split()
        of_month = [i for i in found if seen[i]["placed"][5:7] == month]
        sizes = {i: _size(seen[i], which) for i in of_month}
        known = [size for size in sizes.values() if size is not None]
        best = (min if which == "cheapest" else max)(known, default=None)
        return [i for i in of_month if best is not None and sizes[i] == best]
    if link == "split":
        split = [i for i in found if seen[i]["parcels"] == 2]
        return split[:1] if value == "latest" else split[-1:]
    if link == "between":
        others = [i for i, order in enumerate(seen) if _holds(order, value)]
        return [(at + to) // 2 for at in found for to in others if abs(at - to) == 2]
    if link in ("next_with", "last_with"):
        rows = [range(at - 1, -1, -1) if link == "next_with" else range(at + 1, len(seen)) for at in found]
        firsts = (next((i for i in row if _holds(seen[i], value)), None) for row in rows)
        return [i for i in firsts if i is not None]
    return [at + value for at in found if 0 <= at + value < len(seen)]


def _size(order: Seen, which: str) -> int | None:
    return len(order["items"]) if which == "fullest" else total_of(order)


def _holds(order: Seen, kind: str) -> bool:
    return any(item["type"] == kind for item in order["items"])


def _fits(order: Seen, slots: Mapping[str, Any], today: date | None) -> bool:
    if slots.get("placed") not in (None, order["placed"][5:]):
        return False
    if slots.get("things") not in (None, len(order["items"])):
        return False
    if slots.get("parcels") is not None and order["parcels"] not in (None, slots["parcels"]):
        return False
    if slots.get("number") not in (None, order.get("order_id")):
        return False
    if slots.get("total") is not None and total_of(order) not in (None, slots["total"]):
        return False
    if slots.get("near") is not None and not _holds(order, slots["near"]):
        return False
    if slots.get("when") is not None and today is not None and not _at(order["placed"], slots["when"], today):
        return False
    return all(slots.get(name) is None for name in (*WORDS, "thing")) or any(
        named(i, slots) for i in order["items"]
    )


def named(item: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether an item's title and type match these slots."""
    kind, brand, feature = slots.get("type") or slots.get("thing"), slots.get("brand"), slots.get("feature")
    return bool(
        kind in (None, item["type"])
        and (brand is None or item["title"].startswith(f"{brand} "))
        and (feature is None or f" {feature} " in item["title"])
    )


def _at(placed: str, when: str, today: date) -> bool:
    """Tell whether an order was placed at `when`; weeks begin on Monday, months are calendar months."""
    day = date.fromisoformat(placed)
    if when in ROUGHLY:
        low, high = ROUGHLY[when][0]
        return low <= (today - day).days <= high
    if when.endswith(" days"):
        return (today - day).days == int(when.split()[0])
    if when in WEEKDAYS:
        return 0 < (today - day).days < 7 and day.weekday() == WEEKDAYS.index(when)
    if when == "week":
        monday = today - timedelta(days=today.weekday())
        return monday - timedelta(days=7) <= day < monday
    if when == "month":
        before = today.replace(day=1) - timedelta(days=1)
        return (day.year, day.month) == (before.year, before.month)
    return day.month == int(when)


def same_time(held: str, named: str, today: date) -> bool | None:
    """Tell whether an order placed at one time was placed at another: "on Friday" may be "last week"; None if who only
    knows the one cannot tell."""
    days = [(today - timedelta(days=age)).isoformat() for age in range(1, 365)]
    so = {_at(day, named, today) for day in days if _at(day, held, today)}
    return so.pop() if len(so) == 1 else None


def _loosely(placed: str, when: str, today: date) -> bool:
    """Tell whether `when` might mean this day to somebody who counts weeks or months differently."""
    age = (today - date.fromisoformat(placed)).days
    if when in WEEKDAYS:
        return age < 14 and date.fromisoformat(placed).weekday() == WEEKDAYS.index(when)
    if when in ROUGHLY:
        low, high = ROUGHLY[when][1]
        return low <= age <= high
    if when == "week":
        return age <= 14
    if when == "month":
        return age <= 62 and not age < 7
    return False


def in_a_row(seen: Sequence[Seen]) -> bool:
    """Tell whether no two orders are of the same day, so that "the one before" is unambiguous."""
    return len({order["placed"] for order in seen}) == len(seen)


def draw_memory(random: np.random.Generator) -> frozenset[str]:
    """Draw what a customer knows of their orders, beside what was in them."""
    return frozenset(name for name, chance in MEMORY.items() if random.random() < chance)


def refer(
    target: int,
    seen: Sequence[Seen],
    today: date,
    indirect: bool,
    random: np.random.Generator,
    memory: frozenset[str] = frozenset(MEMORY),
) -> Slots | None:
    """Draw slots that refer to this order alone, in one of the ways in which customers speak who know that much; None
    if none works."""
    draws = _Draws(target, seen, today, random, memory)
    days, mail = "days" in memory, "mail" in memory
    if indirect:
        ways = [*[draws.when] * days, draws.parcels, draws.things, draws.both, draws.both]
    else:
        ways = [draws.words, *[draws.placed] * days, *[draws.order_number, draws.total] * mail, draws.both]
    for draw in shuffled(random, ways):
        slots = draw()
        if slots is not None and resolve(seen, slots, today) == [target]:
            bare = not {"brand", "feature"} & slots.keys()
            if "type" in slots and bare and random.random() < 0.75:  # the item is named after the question
                return {"thing" if name == "type" else name: value for name, value in slots.items()}
            return slots
    if indirect:
        return refer(target, seen, today, False, random, memory)
    return None if memory == frozenset(MEMORY) else refer(target, seen, today, False, random)


def refer_by_links(
    target: int, seen: Sequence[Seen], today: date, size: int, random: np.random.Generator
) -> Slots | None:
    """Draw a chain of links of this size that leads to this order, and to another one for who follows none of them;
    None if there is none."""
    draws = _Draws(target, seen, today, random)
    able = [chain for chain in CHAINS if sum(LINKS.get(link, 0) for link in chain) == size]
    for chain in shuffled(random, able) if in_a_row(seen) else ():
        slots = draws.chain(chain)
        alone = slots is not None and resolve(seen, slots, today) == [target]
        if slots and alone and resolve(seen, without_links(slots), today)[0] != target:
            return slots
    return None


@dataclass(frozen=True)
class _Draws:
    """The ways to refer to an order; each draws slots, or returns None where it says nothing of this order."""

    target: int
    seen: Sequence[Seen]
    today: date
    random: np.random.Generator
    memory: frozenset[str] = frozenset(MEMORY)

    @property
    def order(self) -> Seen:
        return self.seen[self.target]

    def resolve(self, slots: Slots) -> list[int]:
        return resolve(self.seen, slots, self.today)

    def words(self) -> Slots:
        """Refer by an item: "my order with the Compact Yoga Mat", and by its day as well where that is ambiguous."""
        for item in shuffled(self.random, self.order["items"]):
            slots = self.item(item)
            if self.resolve(slots) == [self.target]:
                return slots
        return {**slots, **(self.placed() if "days" in self.memory else self.total() or {})}

    def item(self, item: Mapping[str, Any]) -> Slots:
        """Draw the words for an item, leaving out those that narrow nothing down."""
        brand, rest = item["title"].split(" ", 1)
        values = {"brand": brand, "feature": rest.removesuffix(f" {item['type']}")}
        slots: Slots = {"type": item["type"]}
        for name in shuffled(self.random, ("brand", "feature")):
            more = {**slots, name: values[name]}
            if len(self.resolve(more)) < len(self.resolve(slots)):
                slots = more
        return {name: slots[name] for name in WORDS if name in slots}

    def placed(self) -> Slots:
        return {"placed": self.order["placed"][5:]}

    def order_number(self) -> Slots:
        """Refer by the order number."""
        return {"number": self.order["order_id"]}

    def total(self) -> Slots | None:
        """Refer by what the order cost."""
        total = total_of(self.order)
        return None if total is None or len(self.seen) > LOOKUPS else {"total": total}

    def when(self) -> Slots | None:
        """Refer by type and time: "the charger from last week", preferably where there are several chargers."""
        kinds = list(dict.fromkeys(item["type"] for item in self.order["items"]))
        placed, today = self.order["placed"], self.today
        day = date.fromisoformat(placed)
        times = [
            "week",
            "month",
            *ROUGHLY,
            placed[5:7],
            f"{(today - day).days} days",
            WEEKDAYS[day.weekday()],
        ]
        times = [t for t in times if _at(placed, t, today) and t in TIMES and t != today.isoformat()[5:7]]
        pairs = [(kind, time) for kind in kinds for time in times]
        several = [pair for pair in pairs if len(self.resolve({"type": pair[0]})) > 1]
        for kind, time in shuffled(self.random, several or pairs):
            others = [self.seen[i]["placed"] for i in self.resolve({"type": kind}) if i != self.target]
            if not any(_at(other, time, today) or _loosely(other, time, today) for other in others):
                return {"type": kind, "when": time}
        return None

    def chain(self, names: Sequence[str]) -> Slots | None:
        """Draw the values of a chain's links from its end on; None where one leads nowhere."""
        *before, last = names
        if not before:
            value = getattr(self, last)()
            return None if value is None else {last: value}
        for value, start in shuffled(self.random, getattr(self, last)()):
            slots = replace(self, target=start).chain(before)
            if slots:
                return {**slots, last: value}
        return None

    def near(self) -> str | None:
        """Name an item that no other order holds."""
        return next(iter(self._own(self.order)), None)

    def best(self) -> str | None:
        """Say by what the order stands out among those of its month, by any measure of it."""
        month = self.order["placed"][5:7]
        others = [one for one in self.seen if one["placed"][5:7] == month and one is not self.order]
        if not 0 < len(others) < COMPARED or not self.order["parcels"]:
            return None
        return next(
            (f"{which} {month}" for which in shuffled(self.random, BEST) if self._leads(which, others)), None
        )

    def _leads(self, which: str, others: Sequence[Seen]) -> bool:
        mine = _measures(self.order, which)
        for theirs in (_measures(other, which) for other in others):
            ratios = [b / a if which == "cheapest" else a / b for a, b in zip(mine, theirs) if a and b]
            if len(ratios) < 2 or min(ratios) < LEAD:
                return False
        return True

    def split(self) -> str | None:
        """Say which of the orders in two parcels it is."""
        split = [i for i, order in enumerate(self.seen) if order["parcels"] == 2]
        ends = [which for which, at in (("latest", 0), ("first", -1)) if split and split[at] == self.target]
        return pick(self.random, ends) if ends and len(split) > 1 and len(self.seen) <= LOOKUPS else None

    def relation(self) -> list[tuple[int, int]]:
        """List (step, the order that it starts from)."""
        return [(step, self.target - step) for step in _steps(self.target, self.seen)]

    def between(self) -> list[tuple[str, int]]:
        """List (an item that only the order beside it on one side holds, the order on the other side)."""
        sides = [(self.target + way, self.target - way) for way in (1, -1)]
        able = [(to, at) for to, at in sides if 0 <= to < len(self.seen) and 0 <= at < len(self.seen)]
        return [(kind, at) for to, at in able for kind in self._own(self.seen[to])[:1]]

    def next_with(self) -> list[tuple[str, int]]:
        """List (an item, an earlier order after which this is the next one with such an item)."""
        return self._reached(1)

    def last_with(self) -> list[tuple[str, int]]:
        """List (an item, a later order before which this is the last one with such an item)."""
        return self._reached(-1)

    def _reached(self, way: int) -> list[tuple[str, int]]:
        found = []
        for item in self.order["items"]:
            at = self.target + 2 * way  # the very next one is "the one after that"
            skipped = self.target + way
            while 0 <= at < len(self.seen) and not _holds(self.seen[skipped], item["type"]):
                found.append((item["type"], at))
                skipped, at = at, at + way
        return found

    def _own(self, order: Seen) -> list[str]:
        """List the types of which no other order holds an item."""
        kinds = [item["type"] for item in order["items"]]
        own = [kind for kind in kinds if sum(_holds(other, kind) for other in self.seen) == 1]
        return shuffled(self.random, own)

    def parcels(self) -> Slots | None:
        """Refer by the number of parcels, of all orders or of those with an item of a type."""
        return self.number("parcels", 2) if self.order["parcels"] == 2 and len(self.seen) <= LOOKUPS else None

    def things(self) -> Slots | None:
        """Refer by the number of items, of all orders or of those with an item of a type."""
        count = len(self.order["items"])
        return self.number("things", count) if count > 1 else None

    def number(self, name: str, number: int) -> Slots:
        if self.resolve({name: number}) == [self.target]:
            return {name: number}
        return {"type": pick(self.random, self.order["items"])["type"], name: number}

    def both(self) -> Slots | None:
        """Refer by two facts that are ambiguous alone: "the one from March with three different things in it"."""
        month, items = self.order["placed"][5:7], self.order["items"]
        values: Slots = {"thing": pick(self.random, items)["type"], "things": len(items)}
        past = month != self.today.isoformat()[5:7]
        values |= {"when": month} if past and "days" in self.memory else {}
        names = shuffled(self.random, list(values))
        for one, other in ((names[0], names[1]), (names[-1], names[0])):
            slots = {name: values[name] for name in sorted((one, other))}
            if slots.get("things") != 1 and all(len(self.resolve({n: v})) > 1 for n, v in slots.items()):
                return slots
        return None


def _measures(order: Seen, which: str) -> tuple[int, int]:
    """Measure an order in both ways in which people do: with and without the number of units."""
    items, prices = order["items"], order["prices"]
    if which == "fullest":
        return len(items), sum(item["quantity"] for item in items)
    return total_of(order) or 0, sum(price or 0 for price in prices)


def _steps(target: int, seen: Sequence[Seen]) -> list[int]:
    """List the steps by which an order lies beside another; none where their sequence is ambiguous."""
    return [step for step in (1, -1) if 0 <= target - step < len(seen)] if in_a_row(seen) else []


def draw_another(
    target: int,
    seen: Sequence[Seen],
    today: date,
    indirect: bool,
    random: np.random.Generator,
    memory: frozenset[str] = frozenset(MEMORY),
) -> tuple[Slots | None, Slots | None]:
    """Draw slots of another order that the customer asks about first, and slots of `target`, to which they turn then: a
    reference of its own, or sometimes a step from the first order. None for what cannot be said."""
    others, steps = [i for i in range(len(seen)) if i != target], _steps(target, seen)
    step = pick(random, steps) if steps and random.random() < P_STEP else 0
    if not others:
        return None, None
    first = refer(target - step if step else pick(random, others), seen, today, indirect, random, memory)
    return first, {"correction": step} if step else refer(target, seen, today, False, random, memory)


def values_of(name: str, seen: Sequence[Seen], shop: Shop) -> list[Any]:
    """List the values that a slot might have in this history."""
    if name == "placed":
        return [order["placed"][5:] for order in seen]
    if name == "number":
        return [order["order_id"] for order in seen]
    if name == "total":
        return [total for order in seen if (total := total_of(order)) is not None]
    if name in STEPS:
        return [1, -1]
    if name == "when":
        return sorted(TIMES)
    if name == "things":
        return [2, 3, 4, 5]
    if name == "brand":
        return sorted({item["title"].split(" ", 1)[0] for order in seen for item in order["items"]})
    if name == "thing":
        return sorted({item["type"] for order in seen for item in order["items"]})
    if name == "feature":
        return list(shop.catalog.features)
    return []
