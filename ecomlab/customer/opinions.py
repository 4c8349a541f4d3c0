"""What a customer thinks of the things that an agent names: a product, an order, one of its lines.

They know which one they mean and whether its attributes meet their wishes, as a person in their place does. They have
no opinion of sets, totals, clauses or statuses.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NamedTuple

from ecomlab.customer.templates import SENTENCE_BREAK
from ecomlab.task import Goal, Slot
from ecomlab.values import MONTHS
from ecomlab.wishes import Earlier, Wish, wishes_in
from ecomlab.world.cart import constraints_of, identity_of
from ecomlab.world.plain import plain
from ecomlab.world.state import World

_FROM = "one from "
"""How a customer calls an order, before its day."""
_NO_PURCHASE = r"(?<!delivered on )(?<!arrived on )(?<!came on )(?<!expected on )(?<!delivered )(?<!due on )"
"""Words before a day that make it another than that of an order."""


_POINTS = re.compile(
    r"\b(?:(?:is|was) (?:this|that|it) (?:the|your)|it's the (?:one|order)|the same order|you meant|"
    r"(?:did|do) you mean|can you confirm|(?:is|does) (?:this|that|it) (?:sound |look )?(?:right|correct)|"
    r"does (?:this|that|it) match|you think of (?:these|those|this|that|it|them))\b"
)
"""Marks of a question about the things that stand before it."""


class Thing(NamedTuple):
    """Something that a message names: a product ("product", its id), an order ("order", its id) or a line of one
    ("line", order id, line id). `text` is how the customer would call it."""

    kind: str
    id: str
    text: str
    line: str = ""
    dated: bool = False
    """Named by its day alone, which may be what the message asks about."""
    short: str = ""
    """Its title without the type, where that is enough to tell it from all that tools have shown."""

    @property
    def names(self) -> tuple[str, ...]:
        """What a message may call it, but for its day."""
        return tuple(
            filter(None, (self.line or self.id, "" if self.kind == "order" else self.text, self.short))
        )


@dataclass(frozen=True)
class Opinion:
    """A customer's opinion of a thing: whether it is right, whether that says which one they mean, and a slot that
    it does not meet."""

    right: bool
    identifies: bool = False
    broken: Slot | None = None
    consistent: bool = True
    """It fits everything that was said so far."""


Judge = Callable[[Goal, World, Thing], Opinion | None]
"""A function that judges a thing by a goal, which may hold only what was said; None where a person in the customer's
place could not tell."""


def of_product(goal: Goal, world: World, thing: Thing, identifies: bool = False) -> Opinion | None:
    """Judge a product by the wishes for its type. A type that nobody asked for is wrong where the customer means
    certain products, else there is no opinion of it."""
    if thing.kind != "product":
        return None
    row = world.row(thing.id)
    kind = world.catalog.type_of(row).name
    items = [item for item in goal.items if goal.get("type", item=item) == kind]
    if not items:
        return Opinion(False, identifies) if identifies else None
    said, slots = goal.of(items[0]), identity_of(plain(goal, world, conditions=False).of(items[0]))
    for constraint in constraints_of(kind, slots)[1:]:
        if not world.catalog.satisfies(row, (constraint,)):
            gives_way = said.get(
                "give_way", ()
            )  # of a list, items give way: none of them is judged otherwise
            if not isinstance(gives_way, Wish) and constraint.field in gives_way:
                return None  # if nothing fits, it may do
            words = said.get(constraint.field, slots[constraint.field])
            return Opinion(False, identifies, Slot(items[0], constraint.field, words))
    if "evidence" in {wish.step for wish in wishes_in(said).values()}:
        return None  # they have not read its reviews
    return Opinion(True, identifies)


def opinions_of(
    things: Sequence[Thing], goal: Goal, known: Sequence[Slot], world: World, judge: Judge
) -> list[tuple[Thing, Opinion]]:
    """Judge the things that a message names, by the goal and by what is known of it; of several of one name, the one
    that is meant. What earlier jobs come to is not the customer's to know."""
    goal = replace(goal, slots={p: v for p, v in goal.slots.items() if not isinstance(v, Earlier)})
    places = {(slot.item, slot.name) for slot in known}
    said = replace(goal, slots={p: v for p, v in goal.slots.items() if p in places or p[1] == "type"})
    beside = [place for place in goal.slots if place[1] == "relation" and place not in places]
    either = [replace(said, slots={**said.slots, place: way}) for place in beside for way in (-1, 1)]
    found: dict[str, tuple[Thing, Opinion]] = {}
    unjudged = set[str]()
    for thing in things:
        opinion = judge(goal, world, thing)
        ways = [one for one in (judge(so, world, thing) for so in either or [said]) if one is not None]
        if opinion is None or not ways:
            unjudged.add(thing.text)
            continue
        if not opinion.right and thing.text in found:
            continue
        so_far = next((one for one in ways if one.right), ways[0])
        broken = so_far.broken or opinion.broken
        found[thing.text] = (thing, replace(opinion, broken=broken, consistent=so_far.right))
    # Of several of one name the one that is meant may be one that they could not tell.
    return [(thing, one) for thing, one in found.values() if one.right or thing.text not in unjudged]


def points_back(text: str) -> bool:
    """Tell whether a message asks about the things that it has named before."""
    return _POINTS.search(text.lower()) is not None


def things_in(text: str, world: World) -> list[Thing]:
    """Find the products, orders and order lines that a message names, in the order in which it last names them: by id,
    by title, by the order's day, or by all of several things in an order."""
    said = text.lower()
    every = world.given.get("orders", ())
    orders = [order for order in every if order["order_id"].lower() in said]
    orders = orders or [order for order in every if _dates(order, said)]
    bought = {line["product_id"] for order in every for line in order["lines"]}
    # sorted, for two products may have one title, and a set's order differs between processes
    titles = {one: world.catalog.title(world.row(one)) for one in sorted(bought | set(world.shown))}
    shorts = {
        title: _short(title, world.catalog.type_of(world.row(one)).name) for one, title in titles.items()
    }
    count = Counter(shorts.values())
    shorts = {title: short if count[short] == 1 else "" for title, short in shorts.items()}
    spoken = {
        title
        for title, short in shorts.items()
        if title.lower() in said or (short.lower() in said and _says_short(short, said))
    }
    by_id = {title for one, title in titles.items() if one not in bought and one.lower() in said}
    lines = [
        Thing("line", order["order_id"], title, line["line_id"], short=shorts[title])
        for order in every
        for line in order["lines"]
        for title in [titles[line["product_id"]]]
        if line["line_id"].lower() in said or (title in spoken and title not in by_id)
    ]
    named = {order["order_id"] for order in orders}
    lines = [line for line in lines if not named or line.id in named] or lines
    if lines:
        beside = [order for order in orders if order["order_id"] not in {line.id for line in lines}]
        return _in_order([*lines, *(_order(order, said) for order in beside)], said)
    if not orders:
        examples = "such as" in said or "for example" in said
        listed = [] if examples else [order for order in every if _lists(order, said, world)]
        orders = listed if len(listed) == 1 else []
    if orders:
        return _in_order([_order(order, said) for order in orders], said)
    shown = [
        Thing("product", one, title, short=shorts[title])
        for one, title in titles.items()
        if one in world.shown and (one.lower() in said or title in spoken)
    ]
    return _in_order(shown, said)


def _says_short(short: str, said: str) -> bool:
    """Tell whether a text says a title without its type, and does not go on with more of the same word."""
    return short != "" and re.search(rf"{re.escape(short.lower())}(?![\w-])", said) is not None


def _short(title: str, kind: str) -> str:
    """Leave the type out of a title: "SonicWave Compact"; "" where less than two words are left."""
    left = title.removesuffix(kind).strip()
    return left if left != title and " " in left else ""


def asked_of(text: str) -> str:
    """Return the sentences of a message that ask; empty if none has a question mark."""
    return " ".join(part for part in SENTENCE_BREAK.split(text) if part.rstrip(" )\"'").endswith("?"))


def _in_order(things: Sequence[Thing], said: str) -> list[Thing]:
    def last(thing: Thing) -> int:
        day = thing.text.removeprefix(_FROM)
        names = {thing.id, thing.line or thing.id, thing.text, thing.short or thing.text, day}
        heard = [name for name in map(str.lower, names) if name in said]
        places = (found.start() for name in heard for found in re.finditer(rf"{re.escape(name)}\b", said))
        return max(places, default=-1)

    return sorted(things, key=last) if len(things) > 1 else list(things)


def _order(order: Mapping[str, Any], said: str) -> Thing:
    dated = order["order_id"].lower() not in said
    return Thing("order", order["order_id"], f"{_FROM}{_day(order['placed'])}", dated=dated)


def _lists(order: Mapping[str, Any], said: str, world: World) -> bool:
    """Tell whether a text lists everything in an order of several things."""
    kinds = set()
    for line in order["lines"]:
        kind = world.catalog.type_of(world.row(line["product_id"]))
        if kind.name.lower() not in said and kind.plural.lower() not in said:
            return False
        kinds.add(kind.name)
    return len(kinds) > 1


def _dates(order: Mapping[str, Any], said: str) -> bool:
    """Tell whether a text names an order by its day; a day of delivery does not."""
    day = order["placed"]
    words = _day(day).lower()
    if day not in said and words not in said:
        return False
    return re.search(rf"{_NO_PURCHASE}(?:{day}|{words}\b)", said) is not None


def _day(text: str) -> str:
    day = date.fromisoformat(text)
    return f"{MONTHS[day.month - 1]} {day.day}"
