"""What a customer says of products that they are shown, where they know what they like when they see it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ecomlab.catalog import Catalog
from ecomlab.customer.acts import Act
from ecomlab.customer.opinions import Thing
from ecomlab.customer.templates import SENTENCE_BREAK
from ecomlab.task import Goal, Slot
from ecomlab.wishes import MOST_SHOWN, SHOWINGS, Taste
from ecomlab.world.cart import constraints_of, identity_of
from ecomlab.world.plain import plain
from ecomlab.world.state import World


@dataclass
class Tastes:
    """What a customer likes and dislikes of what they are shown, in one episode."""

    showings: Counter[int] = field(default_factory=Counter)
    """Times that they were shown something of an item."""
    liked: set[tuple[int, str]] = field(default_factory=set)
    """Items with looks that they have said they like."""

    def of(
        self, things: Sequence[Thing], text: str, goal: Goal, known: Sequence[Slot], world: World
    ) -> list[Act]:
        """Say what they like and what not of the products of a message that are not in the cart; nothing where they
        can name what they want. One of each a showing, of those that meet all that was said; after `SHOWINGS` the
        agent has to choose."""
        in_cart = {world.catalog.title(world.row(product_id)) for product_id, _ in world.cart}
        shown = [one for one in things if one.kind == "product" and one.text not in in_cart]
        acts: list[Act] = []
        kinds = {world.catalog.type_of(world.row(one.id)).name for one in shown}
        held = {world.catalog.type_of(world.row(product_id)).name for product_id, _ in world.cart}
        places = dict.fromkeys((slot.item, slot.name) for slot in known if isinstance(slot.value, Taste))
        for place in places:
            kind = goal.get("type", item=place[0])
            mine = [one for one in shown if world.catalog.type_of(world.row(one.id)).name == kind]
            rows = _meant(mine, text.lower(), place[1], world)
            liked = any((place[0], _look(row, place[1], world.catalog)) in self.liked for row in rows)
            lone = kinds <= {kind} if kinds else len(places) == 1
            named = [] if liked or kind in held else _named(text, kind, place[1], goal, lone, world)
            if rows or named:
                acts += self._of_item(rows, named, place, goal, known, world)
        return acts

    def _of_item(
        self,
        rows: Sequence[int],
        named: Sequence[int],
        place: tuple[int, str],
        goal: Goal,
        known: Sequence[Slot],
        world: World,
    ) -> list[Act]:
        """Say this of products of an item, and of others for looks by themselves, of which nothing else matters."""
        (item, name), catalog = place, world.catalog
        looks = dict.fromkeys(_look(row, name, catalog) for row in (*rows, *named))
        if {(item, look) for look in looks} <= self.liked and len(looks) == 1:
            return []  # that has been said
        if max(len(rows), len(looks)) > MOST_SHOWN:
            return [Act("too many")]
        said = {slot.name for slot in known if slot.item == item} - {name}
        slots = {one: value for one, value in plain(goal, world).of(item).items() if one in said}
        kind, able = goal.get("type", item=item), list(rows)
        for wanted in constraints_of(kind, identity_of(slots))[1:]:
            able = [row for row in able if catalog.satisfies(row, (wanted,))]
            if rows and not able:
                told = goal.get(wanted.field, slots[wanted.field], item)
                return [Act("not as wanted", kind, {wanted.field: told})]
        of_rows = {_look(row, name, catalog) for row in rows}
        looks = dict.fromkeys(_look(row, name, catalog) for row in able)
        looks |= {look: None for row in named if (look := _look(row, name, catalog)) not in of_rows}
        liked = [look for look in looks if look in goal.slots[place].values]
        others = [look for look in looks if look not in liked]
        if self.showings[item] >= SHOWINGS:
            again = [look for of, look in self.liked if of == item]
            return [Act("like", seen=f"{again[0]} one".lower()) if again else Act("you choose")]
        self.showings[item] += 1
        self.liked |= {(item, look) for look in liked[:1]}
        if not liked and len(others) > 1:
            return [Act("like none")]
        said_of = [*(("like", look) for look in liked[:1]), *(("dislike", look) for look in others[:1])]
        return [Act(kind, seen=f"{look} one".lower()) for kind, look in said_of]


def _meant(things: Sequence[Thing], said: str, name: str, world: World) -> list[int]:
    """Find the products that a text in lower case names: by their ids, else of those of one title the one of the look
    that stands nearest to it, where one does."""
    rows = [world.row(one.id) for one in things if one.id.lower() in said]
    by_title: dict[str, list[Thing]] = {}
    for thing in things:
        by_title.setdefault(thing.text, []).append(thing)
    spans = sorted(
        (at.start(), at.end(), alike)
        for alike in by_title.values()
        if not any(one.id.lower() in said for one in alike)
        for at in re.finditer("|".join(re.escape(one.lower()) for one in alike[0].names[1:]), said)
    )
    for at, (start, end, alike) in enumerate(spans):
        first, last = spans[at - 1][1] if at else 0, spans[at + 1][0] if at + 1 < len(spans) else len(said)
        by_look = {_look(world.row(one.id), name, world.catalog): one for one in reversed(alike)}
        near = [*_looks_in(said[end:last], by_look), *reversed(_looks_in(said[first:start], by_look))]
        rows.append(world.row((by_look[near[0]] if near else alike[0]).id))
    return list(dict.fromkeys(rows))


def _named(text: str, kind: str, name: str, goal: Goal, lone: bool, world: World) -> list[int]:
    """Find products of the looks that a sentence about one type alone has them choose from, among those that a tool has
    shown: "Navy, graphite or silver for the charger?". A look alone is a guess. `lone`: a message that names no type of
    the goal is about this one."""
    parts, catalog = SENTENCE_BREAK.split(text), world.catalog
    kinds = {str(goal.get("type", item=item)).split()[-1].lower() for item in goal.items}
    of = [{one for one in kinds if one in part.lower()} for part in parts]
    about = [part for part, some in zip(parts, of) if some == {kind.split()[-1].lower()}]
    about = parts if lone and not any(of) else about
    rows = [row for row in map(catalog.row, sorted(world.shown)) if row is not None]
    of_look = {_look(row, name, catalog): row for row in rows if catalog.type_of(row).name == kind}
    for sentence in about:
        found = _looks_in(sentence.lower(), of_look)
        if len(found) > 1:
            return [of_look[look] for look in found]
    return []


def _looks_in(said: str, looks: Iterable[str]) -> list[str]:
    """List the looks that a text in lower case names, in its order."""
    places = {look: re.search(rf"\b{re.escape(look.lower())}\b", said) for look in looks if look}
    return [look for _, look in sorted((at.start(), look) for look, at in places.items() if at)]


def _look(row: int, name: str, catalog: Catalog) -> str:
    return str(catalog.attributes(row).get(name.removeprefix("attr:"), ""))
