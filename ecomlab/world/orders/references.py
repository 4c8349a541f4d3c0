"""Customers' references to orders, and the orders that a reference may mean.

Slots: "type" or "thing" (an item's type; "thing" comes in a sentence of its own), "brand", "feature", "placed" (a day,
"MM-DD"), "when" ("week", "month", a month's number, "3 days", "Monday": the latest before today), "things" and
"parcels" (their number), "place" (0: the latest, -1: the oldest), "relation" and "correction" (steps back in time).
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.catalog import Shop

Seen = Mapping[str, Any]
"""An order as references see it: "placed", "items" (title and type) and "parcels" (their number, None if unknown)."""
WORDS = ("type", "brand", "feature")
"""Slots that name an item of an order."""
STEPS = ("relation", "correction")
"""Slots that lead from the order mentioned to the one before or after it."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TIMES = frozenset(
    ["week", "month", *WEEKDAYS, *(f"{n} days" for n in range(1, 7)), *(f"{n:02d}" for n in range(1, 13))]
)
"""Values of "when" that customers can put into words."""
LOOKUPS = 40
"""Maximum number of orders that a reference may leave to be looked into."""
PLACES = (0, 1, 2, -1, -2)
"""Values of "place" that customers can put into words."""


def look(history: Sequence[Mapping[str, Any]], shop: Shop) -> list[dict[str, Any]]:
    """Convert orders to what is known after looking into all of them."""
    seen = []
    for order in history:
        rows = [shop.catalog.row(line["product_id"]) or 0 for line in order["lines"]]
        items = [{"title": shop.catalog.title(row), "type": shop.catalog.type_of(row).name} for row in rows]
        seen.append({"placed": order["placed"], "items": items, "parcels": len(order["parcels"])})
    return seen


def resolve(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """List the orders that these slots may mean, by index, the newest first."""
    found = [i for i, order in enumerate(seen) if _fits(order, slots, today)]
    place = slots.get("place")
    if place is not None:
        place = place if place >= 0 else len(seen) + place
        found = [i for i in found if i == place]
    for step in STEPS:
        if slots.get(step) is not None:
            found = [i + slots[step] for i in found if 0 <= i + slots[step] < len(seen)]
    return found


def _fits(order: Seen, slots: Mapping[str, Any], today: date | None) -> bool:
    if slots.get("placed") not in (None, order["placed"][5:]):
        return False
    if slots.get("things") not in (None, len(order["items"])):
        return False
    if slots.get("parcels") is not None and order["parcels"] not in (None, slots["parcels"]):
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
    if when == "week":
        return age <= 14
    if when == "month":
        return age <= 62 and not age < 7
    return False


def in_a_row(seen: Sequence[Seen]) -> bool:
    """Tell whether no two orders are of the same day, so that "the one before" is unambiguous."""
    return len({order["placed"] for order in seen}) == len(seen)


def refer(
    target: int, seen: Sequence[Seen], today: date, indirect: bool, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Draw slots that refer to this order alone, in one of the ways in which customers speak; None if none works."""
    ways = (
        (_when, _place, _relation, _parcels, _things, _both, _both) if indirect else (_words, _placed, _both)
    )
    for make in [ways[i] for i in random.permutation(len(ways)).tolist()]:
        slots = make(target, seen, today, shop, random)
        if slots is not None and resolve(seen, slots, today) == [target]:
            bare = not {"brand", "feature", "relation"} & slots.keys()
            if "type" in slots and bare and random.random() < 0.75:  # the item is named after the question
                return {"thing" if name == "type" else name: value for name, value in slots.items()}
            return slots
    return refer(target, seen, today, False, shop, random) if indirect else None


def _words(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by an item: "my order with the Compact Yoga Mat", and by its day as well where that is ambiguous."""
    for i in random.permutation(len(seen[target]["items"])).tolist():
        slots = _item(seen[target]["items"][i], seen, today, shop, random)
        if resolve(seen, slots, today) == [target]:
            return slots
    return {**slots, "placed": seen[target]["placed"][5:]}


def _item(
    item: Mapping[str, Any], seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """Draw the words for an item, leaving out those that narrow nothing down."""
    brand, rest = item["title"].split(" ", 1)
    values = {"brand": brand, "feature": rest.removesuffix(f" {item['type']}")}
    slots: dict[str, Any] = {"type": item["type"]}
    for name in [("brand", "feature")[i] for i in random.permutation(2).tolist()]:
        more = {**slots, name: values[name]}
        if len(resolve(seen, more, today)) < len(resolve(seen, slots, today)):
            slots = more
    return {name: slots[name] for name in WORDS if name in slots}


def _placed(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    return {"placed": seen[target]["placed"][5:]}


def _when(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by type and time: "the charger from last week", preferably where there are several chargers."""
    kinds = list(dict.fromkeys(item["type"] for item in seen[target]["items"]))
    placed = seen[target]["placed"]
    day = date.fromisoformat(placed)
    times = ["week", "month", placed[5:7], f"{(today - day).days} days", WEEKDAYS[day.weekday()]]
    times = [t for t in times if _at(placed, t, today) and t in TIMES and t != today.isoformat()[5:7]]
    pairs = [(kind, time) for kind in kinds for time in times]
    several = [p for p in pairs if len(resolve(seen, {"type": p[0]}, today)) > 1]
    for kind, time in [(several or pairs)[i] for i in random.permutation(len(several or pairs)).tolist()]:
        slots = {"type": kind, "when": time}
        others = [i for i in resolve(seen, {"type": kind}, today) if i != target]
        if not any(
            _at(seen[i]["placed"], time, today) or _loosely(seen[i]["placed"], time, today) for i in others
        ):
            return slots
    return None


def _place(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by place: "my latest order but one"."""
    places = [place for place in (target, target - len(seen)) if place in PLACES]
    if not places or not in_a_row(seen):
        return None
    return {"place": places[int(random.integers(len(places)))]}


def _relation(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by a neighbour in time that words describe: "the one before that"."""
    steps = [step for step in (1, -1) if 0 <= target - step < len(seen)]
    if not steps or not in_a_row(seen):
        return None
    step = steps[int(random.integers(len(steps)))]
    slots = _words(target - step, seen, today, shop, random)
    return None if slots is None or "placed" in slots else {**slots, "relation": step}


def _parcels(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by the number of parcels, of all orders or of those with an item of a type: "the one in two parcels"."""
    if seen[target]["parcels"] != 2 or len(seen) > LOOKUPS:
        return None
    if resolve(seen, {"parcels": 2}, today) == [target]:
        return {"parcels": 2}
    kind = seen[target]["items"][int(random.integers(len(seen[target]["items"])))]["type"]
    return {"type": kind, "parcels": 2}


def _things(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by the number of items, of all orders or of those with an item of a type."""
    count = len(seen[target]["items"])
    if count < 2:
        return None
    if resolve(seen, {"things": count}, today) == [target]:
        return {"things": count}
    kind = seen[target]["items"][int(random.integers(count))]["type"]
    return {"type": kind, "things": count}


def _both(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Refer by two facts that are ambiguous alone: "the one from March with three different things in it"."""
    placed, items = seen[target]["placed"], seen[target]["items"]
    values: dict[str, Any] = {"thing": items[int(random.integers(len(items)))]["type"], "things": len(items)}
    values |= {"when": placed[5:7]} if placed[5:7] != today.isoformat()[5:7] else {}
    names = [list(values)[i] for i in random.permutation(len(values)).tolist()]
    for one, other in ((names[0], names[1]), (names[-1], names[0])):
        slots = {name: values[name] for name in sorted((one, other))}
        if slots.get("things") != 1 and all(
            len(resolve(seen, {name: value}, today)) > 1 for name, value in slots.items()
        ):
            return slots
    return None


def draw_another(
    target: int, seen: Sequence[Seen], today: date, indirect: bool, shop: Shop, random: np.random.Generator
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Draw slots of another order that the customer asks about first, and slots of the correction to `target`: a step
    from the first order or a reference of its own. None for what cannot be said."""
    ways = [step for step in (1, -1) if 0 <= target - step < len(seen)]
    if ways and in_a_row(seen) and random.random() < 0.6:
        step = ways[int(random.integers(len(ways)))]
        return refer(target - step, seen, today, indirect, shop, random), {"correction": step}
    others = [i for i in range(len(seen)) if i != target]
    other = others[int(random.integers(len(others)))] if others else target
    first = refer(other, seen, today, indirect, shop, random) if others else None
    return first, refer(target, seen, today, False, shop, random)


def values_of(name: str, seen: Sequence[Seen], shop: Shop) -> list[Any]:
    """List the values that a slot might have in this history."""
    if name == "placed":
        return [order["placed"][5:] for order in seen]
    if name == "place":
        return [place for place in PLACES if -len(seen) <= place < len(seen)]
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
