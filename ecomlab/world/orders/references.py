"""Customers' references to orders, and the orders that a reference may mean.

Slots: "type" or "thing" (an item's type; "thing" comes in a sentence of its own), "brand", "feature", "placed" (a day,
"MM-DD"), "when" ("week", "month", a month's number, "3 days", "Monday": the latest before today, "fortnight", "moon":
roughly), "things" and "parcels" (their number), "number" and "total" (the order's, from the confirmation mail),
"correction" (steps back in time).

"chain" is a noun phrase that leads from another order to the one that is meant (`chains.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.seeding import pick, shuffled
from ecomlab.values import WEEKDAYS
from ecomlab.world.orders import chains

Seen = Mapping[str, Any]
"""An order as references see it: "placed", "items" (title and type) and "parcels" (their number, None if unknown)."""
Slots = dict[str, Any]
WORDS = ("type", "brand", "feature")
"""Slots that name an item of an order."""
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
    if slots.get("chain") is not None:
        at = chains.follow(slots["chain"], seen)
        found = [i for i in found if i == at]
    step = slots.get("correction") or 0
    return [at + step for at in found if 0 <= at + step < len(seen)]


def without_links(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """List the orders that who follows no link takes these slots to mean."""
    kept = {name: value for name, value in slots.items() if name not in ("chain", "correction")}
    if slots.get("chain") is None:
        return resolve(seen, kept, today)
    at = chains.first_met(slots["chain"], seen)
    return [] if at is None else [at]


def decided_inside(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """List the orders that have to be looked into to find which is meant: no list shows parcels and prices."""
    start = chains.start_of(slots["chain"]) if slots.get("chain") is not None else None
    if isinstance(start, chains.Ranked):
        return list(range(min(start.among, len(seen))))
    if isinstance(start, chains.Split):
        return list(range(len(seen)))
    if {"parcels", "total"} & slots.keys():
        skipped = ("parcels", "total", "chain", "correction")
        listed = {name: value for name, value in slots.items() if name not in skipped}
        return resolve(seen, listed, today)
    return []


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


def refer_by_links(target: int, seen: Sequence[Seen], size: int, random: np.random.Generator) -> Slots | None:
    """Draw a chain of links of this size that leads to this order; None if there is none."""
    if not in_a_row(seen) or len(seen) > LOOKUPS:
        return None
    chain = chains.draw_chain(target, seen, size, random)
    return {"chain": chain} if chain else None


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
    if name == "correction":
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
