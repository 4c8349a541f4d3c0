"""What a customer says of products that they are shown, where they know what they like when they see it."""

import re
from collections import Counter
from collections.abc import Sequence
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
        in_cart = {product_id for product_id, _ in world.cart}
        shown = [one for one in things if one.kind == "product" and one.id not in in_cart]
        acts: list[Act] = []
        for place in dict.fromkeys((slot.item, slot.name) for slot in known if isinstance(slot.value, Taste)):
            kind = goal.get("type", item=place[0])
            mine = [one for one in shown if world.catalog.type_of(world.row(one.id)).name == kind]
            rows, named = _meant(mine, text.lower(), place[1], world), _named(text, kind, place[1], world)
            if rows:
                acts += self._of_item(rows, place, goal, known, world)
            elif named:  # of looks by themselves nothing else matters
                acts += self._of_item(named, place, goal, (), world)
        return acts

    def _of_item(
        self, rows: Sequence[int], place: tuple[int, str], goal: Goal, known: Sequence[Slot], world: World
    ) -> list[Act]:
        (item, name), catalog = place, world.catalog
        if len(rows) > MOST_SHOWN:
            return [Act("too many")]
        said = {slot.name for slot in known if slot.item == item} - {name}
        slots = {one: value for one, value in plain(goal, world).of(item).items() if one in said}
        kind, able = goal.get("type", item=item), list(rows)
        for wanted in constraints_of(kind, identity_of(slots))[1:]:
            able = [row for row in able if catalog.satisfies(row, (wanted,))]
            if not able:
                told = goal.get(wanted.field, slots[wanted.field], item)
                return [Act("not as wanted", kind, {wanted.field: told})]
        looks = dict.fromkeys(_look(row, name, catalog) for row in able)
        liked = [look for look in looks if look in goal.slots[place].values]
        others = [look for look in looks if look not in liked]
        if self.showings[item] >= SHOWINGS:
            again = [look for look in liked if (item, look) in self.liked]
            return [Act("like", seen=f"{again[0]} one".lower()) if again else Act("you choose")]
        self.showings[item] += 1
        self.liked |= {(item, look) for look in liked[:1]}
        if not liked and len(others) > 1:
            return [Act("like none")]
        said_of = [*(("like", look) for look in liked[:1]), *(("dislike", look) for look in others[:1])]
        return [Act(kind, seen=f"{look} one".lower()) for kind, look in said_of]


def _meant(things: Sequence[Thing], said: str, name: str, world: World) -> list[int]:
    """Find the products that a text in lower case names: of several of one title those that it names by their ids,
    else one of each look that it names, else one."""
    by_title: dict[str, list[Thing]] = {}
    for thing in things:
        by_title.setdefault(thing.text, []).append(thing)
    rows: list[int] = []
    for alike in by_title.values():
        by_look = {_look(world.row(one.id), name, world.catalog): one for one in reversed(alike)}
        named = [one for one in alike if one.id.lower() in said]
        named = named or [one for look, one in by_look.items() if look.lower() in said] or alike[:1]
        rows += [world.row(one.id) for one in named]
    return rows


def _named(text: str, kind: str, name: str, world: World) -> list[int]:
    """Find products of the looks that a sentence about a type has them choose from, among those that a tool has shown:
    "Navy, graphite or silver for the charger?". A look alone is a guess."""
    about, catalog = (
        [one for one in SENTENCE_BREAK.split(text) if kind.split()[-1].lower() in one.lower()],
        world.catalog,
    )
    rows = [row for row in map(catalog.row, sorted(world.shown)) if row is not None]
    of_look = {_look(row, name, catalog): row for row in rows if catalog.type_of(row).name == kind}
    for sentence in about:
        places = {
            look: re.search(rf"\b{re.escape(look)}\b", sentence, re.IGNORECASE) for look in of_look if look
        }
        found = sorted((at.start(), look) for look, at in places.items() if at)
        if len(found) > 1:
            return [of_look[look] for _, look in found]
    return []


def _look(row: int, name: str, catalog: Catalog) -> str:
    return str(catalog.attributes(row).get(name.removeprefix("attr:"), ""))
