"""Messages for TRUTHFUL: fill a frame with the wishes of a customer, right throughout or with wrong elements."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ecomlab import other_words
from ecomlab.customer.opinions import Thing
from ecomlab.episode.episode import Episode
from ecomlab.laws.tool_introspection import calls
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import filters_of, slot_type
from ecomlab.task import Place, Slot
from ecomlab.values import FORMATS, with_article
from ecomlab.wishes import Wish
from ecomlab.world.plain import plain
from ecomlab.world.substitutes import noun

TWO_WRONG = 0.25
"""Share of wrong messages with two wrong elements, where there are three or more."""
ASKS = ("yesno", "either", "neither", "negative")
"""Forms that may be about what the customer has not said."""
THINGS = ("product", "order")
"""Gaps for things that a tool has shown: the title of a product, the day of an order."""
_GAP = re.compile(r"\{(~*)(a )?([a-z_]+?)(\d?)(:words)?\}")
_OWN = {"my": "your", "I": "you"}
"""Words of a customer, and what they become in the mouth of an agent."""


class Gap(NamedTuple):
    """A gap of a frame: `~` or `~~` for a value that is not so, "a " for its article, its name, a number that tells
    items apart, ":words" for a number in letters."""

    other: str
    article: str
    name: str
    item: str
    words: str

    @property
    def slot(self) -> str:
        """Name of its slot: "" for a thing, "attr" for any attribute."""
        if self.name in ("item", "plural"):
            return "type"
        if self.name in ("color", "material"):
            return f"attr:{self.name}"
        return "" if self.name in THINGS else self.name.removesuffix("_name").removesuffix("_value")


def gaps_in(text: str) -> list[Gap]:
    """List the gaps of a frame."""
    return [Gap(*found) for found in _GAP.findall(text)]


@dataclass(frozen=True)
class Element:
    """A claim of a message: its kind, the slot with the value that is right, and the type of its item ("" of a wish for
    no single one). A thing that breaks no wish has a slot without a name, which holds what the right one is called."""

    kind: str
    slot: Slot
    type: str
    wrong: bool


class Filler:
    """Fills a frame for the customer of an episode, as they are now."""

    def __init__(self, frame: Mapping[str, Any], episode: Episode, random: Any) -> None:
        self.frame, self.episode, self.random = frame, episode, random
        self.gaps = gaps_in(frame["text"])
        self.asks, self.always = frame["form"] in ASKS, any(gap.other for gap in self.gaps)
        self.customer, self.world, self.env = episode.customer, episode.world, episode.subtask.env
        self.types, self.own = self.customer.lexicon.types, self.customer.state.own
        self.templates = self.customer.phrases.slots

    def fill(self, wrong: bool) -> tuple[str, list[Element]] | None:
        """Return the message and its elements; None where the frame does not fit this customer."""
        things = self._things(wrong)  # first, for looking may change what the customer wants
        self.known = {(slot.item, slot.name) for slot in self.customer.state.known}
        places = self._places()
        if things is None or places is None:
            return None
        words, elements = things
        distinct = list(dict.fromkeys(places.values()))
        changed = {place for gap, place in places.items() if gap.other}
        if wrong and not self.always:
            changed = self._changed(distinct)
        if wrong and not changed and not elements:
            return None
        if not self.asks and not all(place in changed or self._is_known(place) for place in distinct):
            return None
        others = {place: shuffled(self.random, self._others(place, distinct)) for place in sorted(changed)}
        shown = {}
        for gap, place in places.items():
            n = len(gap.other) if self.always else int(place in changed)
            if n > len(others.get(place, ())):
                return None
            shown[gap] = others[place][n - 1] if n else self._value(place)
        words |= {gap: self._words(gap, place, shown) for gap, place in places.items()}
        for place in distinct:
            in_words = any(gap.words and places[gap] == place for gap in places)
            kind = "attribute" if place[1].startswith("attr:") else place[1] + " in words" * in_words
            elements.append(self._element(kind, Slot(*place, self._value(place)), place in changed))
        text = _GAP.sub(lambda found: words[Gap(*found.groups(""))], self.frame["text"])
        return text if self.frame.get("lower") else text[0].upper() + text[1:], elements

    def _element(self, kind: str, slot: Slot, wrong: bool) -> Element:
        own = slot.name in self.own or not slot.name
        return Element(kind, slot, "" if own else self.customer.type_name(slot.item), wrong)

    # Slots.

    def _places(self) -> dict[Gap, Place] | None:
        """Choose an item for each number in the frame, that has all slots that it is given; return each gap's place."""
        chosen: dict[Gap, Place] = {}
        left = shuffled(self.random, self.customer.goal.items)
        for number in sorted({gap.item for gap in self.gaps}):
            gaps = [gap for gap in self.gaps if gap.item == number and gap.slot]
            found = ((item, {gap: self._place(gap.slot, item) for gap in gaps}) for item in left)
            fits = next(((item, places) for item, places in found if None not in places.values()), None)
            if fits is None:
                return None
            left.remove(fits[0])
            chosen |= {gap: place for gap, place in fits[1].items() if place}
        return chosen

    def _place(self, name: str, item: int) -> Place | None:
        goal = self.customer.goal
        if name == "attr":
            held = [
                p for p in goal.slots if p[0] == item and p[1].startswith("attr:") and not self._is_wish(p)
            ]
            return min(held, key=lambda place: place not in self.known, default=None)
        place = (0 if name in self.own else item, name)
        if self._is_wish(place):  # the agent knows its value, the customer its words
            return None
        if name == "quantity" and self.env.id == "CART":
            return place
        return place if place in goal.slots and (name != "type" or place not in goal.withheld) else None

    def _is_wish(self, place: Place) -> bool:
        return isinstance(self.customer.goal.slots.get(place), Wish)

    def _value(self, place: Place) -> Any:
        return self.customer.goal.slots.get(place, 1)  # one unit goes without saying

    def _is_known(self, place: Place) -> bool:
        return place[1] == "type" or place in self.known or place not in self.customer.goal.slots

    def _changed(self, places: Sequence[Place]) -> set[Place]:
        """Choose one or two places to get wrong: those that were not said, where no right message would hold them."""
        able = [place for place in shuffled(self.random, places) if self._others(place, places)]
        if not self.asks:
            able.sort(key=self._is_known)
        two = len(places) > 2 and self.random.random() < TWO_WRONG
        apart = [p for p in able[1:] if p[0] != able[0][0] or "type" not in (p[1], able[0][1])]
        return {*able[:1], *apart[: int(two)]}

    def _others(self, place: Place, places: Sequence[Place]) -> list[Any]:
        """List values that a slot might have and has not; of a type, those that fit what is said of the item."""
        value, (item, name), catalog = self._value(place), place, self.world.catalog
        kind = self.customer.type_name(item)
        if name in ("type", "thing", "parts"):
            listed = value if name == "parts" else [value]
            orders = self.world.given.get("orders", ())  # what is in them, may be in the one that is meant
            rows = [self.world.row(line["product_id"]) for order in orders for line in order["lines"]]
            taken = [*map(self.customer.type_name, self.customer.goal.items), *listed]
            words = " ".join([*taken, *(self.world.catalog.type_of(row).name for row in rows)]).split()
            said = [(p[1], self._value(p)) for p in places if p[0] == item]
            closed = [(n, v) for n, v in said if n.startswith(("attr:", "option"))]
            fit = [t for t in self.types if all(v in self._values(t).get(n, ()) for n, v in closed)]
            types = [one for one in fit if not set(words) & set(one.split())]
            return [[*value[:-1], other] for other in types] if name == "parts" else types
        if name == "must":
            named = [noun(one.name) for one in self.types[kind].attributes]
            return [[*value[:-1], other] for other in named if other not in value]
        if name == "importance":
            return [value[n:] + value[:n] for n in range(1, len(value))]
        if name == "replacement":
            brands = [[["brand", brand]] for brand in catalog.brands if ["brand", brand] not in value]
            return [[], *brands[:1]] if value else brands  # a shop of one vendor has no other
        if isinstance(value, int) and not (name in self.templates and self.templates[name].format.words):
            step = slot_type(name).step * (
                max(1, round(value / 5000)) if slot_type(name).mark == "MONEY" else 1
            )
            moved = [value + n * step for n in (-2, -1, 1, 2)]
            return [other for other in moved if other > 0 and (name != "rating" or other <= 50)]
        if name.endswith(("brand", "feature")):
            listed = catalog.brands if name.endswith("brand") else catalog.features
        elif name in self.templates:
            listed = [v for v in self.templates[name].format.words.values() if _excludes(v, value)]
        else:
            listed = self._values(kind).get(name, ())
        return [other for other in listed if other != value]

    def _values(self, kind: str) -> dict[str, Sequence[str]]:
        """List the values of a type's attributes and of its option."""
        attributes = {f"attr:{one.name}": one.values for one in self.types[kind].attributes}
        return {**attributes, "option": self.types[kind].option.values}

    def _words(self, gap: Gap, place: Place, shown: Mapping[Gap, Any]) -> str:
        """Word what is shown in a gap as an agent would."""
        value, name, mark = shown[gap], place[1], slot_type(place[1]).mark
        if gap.words:
            letters = {"MONEY": other_words.dollars, "DAYS": other_words.days}.get(
                mark, other_words.in_letters
            )
            said = letters(value)[0]
        elif gap.name == "plural":
            counts = {v for g, v in shown.items() if (g.name, g.item) == ("quantity", gap.item)}
            said = value if counts == {1} else self.types[value].plural
        elif gap.name.endswith("_name"):
            said = noun(name.removeprefix("attr:"))
        elif gap.name in ("attr", "option"):
            said = self.customer.lexicon.phrase(self.customer.type_name(place[0]), name, value)
        elif mark in ("STARS", "NUMBER") or name == "count":
            said = slot_type(name).bare(value)
        elif name in self.templates:
            said = re.sub(r"\b(?:my|I)\b", lambda own: _OWN[own[0]], self.templates[name].format.write(value))
        else:
            written = slot_type(name).format
            said = written.write(value) if written else str(value)
        said = said.lower() if self.frame.get("lower") and "brand" not in name else said
        return with_article(said) if gap.article else said

    # Things.

    def _things(self, wrong: bool) -> tuple[dict[Gap, str], list[Element]] | None:
        """Name the things of the frame, the right one or others; None where no tool shows such ones."""
        gaps = [gap for gap in self.gaps if gap.name in THINGS]
        if not gaps:
            return {}, []
        right, others = self._ordered() if self.env.id in ("RETURN", "STATUS") else self._products()
        words: dict[Gap, str] = {}
        slot = Slot(0, "", right[0] if right else "")
        for gap in gaps:
            n = len(gap.other) if self.always else int(wrong)
            if len(others) < n or not (n or right):
                return None
            words[gap] = others[n - 1][0] if n else right[0]
            if n and others[n - 1][1] and self.frame["form"] != "either":
                slot = others[n - 1][1] or slot
        return words, [self._element(gaps[0].name, slot, wrong)]

    def _ordered(self) -> tuple[list[str], list[tuple[str, Slot | None]]]:
        """List the days of orders, or the titles of what is in them: those that the customer means, and others."""
        self.episode.act(calls(("order_list", {})))
        found: dict[str, bool] = {}
        for order in self.world.given["orders"]:
            things = [Thing("order", order["order_id"], FORMATS["day"].write(order["placed"]))]
            if any(gap.name == "product" for gap in self.gaps):
                rows = [(line["line_id"], self.world.row(line["product_id"])) for line in order["lines"]]
                things = [Thing("line", order["order_id"], self.world.catalog.title(r), i) for i, r in rows]
            for thing in things:
                opinion = self.env.opinion(self.customer.goal, self.world, thing)
                found[thing.text] = found.get(thing.text, False) or bool(opinion and opinion.right)
        return [t for t in found if found[t]], shuffled(
            self.random, [(t, None) for t in found if not found[t]]
        )

    def _products(self) -> tuple[list[str], list[tuple[str, Slot | None]]]:
        """List titles of products that a search shows: as wanted, or breaking a single wish, which was said."""
        goal = plain(self.customer.goal, self.world, conditions=False)
        slots = goal.of(pick(self.random, goal.items))
        attributes = {
            name[5:]: value
            for name, value in slots.items()
            if name.startswith("attr:") and isinstance(value, str)
        }
        narrow = {"brand": slots.get("brand"), "attributes": attributes}
        query = {"query": f"{slots.get('feature', '')} {slots['type']}", "category": slots["type"]}
        limits = filters_of(slots)
        searches = [{**query, **narrow, **limits}, {**query, **narrow}, {**query, **limits}, query]
        self.episode.act(
            calls(
                *[
                    ("catalog_search", {n: v for n, v in one.items() if v and not isinstance(v, Wish)})
                    for one in searches
                ]
            )
        )
        goal, known = self.customer.goal, self.customer.state.known
        judged: dict[str, list[Slot | None]] = {}
        right: set[str] = set()
        for product_id in sorted(self.world.shown):
            title = self.world.catalog.title(self.world.row(product_id))
            thing = Thing("product", product_id, title)
            opinion = self.env.opinion(goal, self.world, thing)
            if opinion is None or not self.world.stock(self.world.row(product_id)):
                continue
            broken = opinion.broken
            rest = (
                self.env.opinion(goal.drop_slots(broken.name, item=broken.item), self.world, thing)
                if broken
                else None
            )
            judged.setdefault(title, []).append(broken if broken in known and rest and rest.right else None)
            right |= {title} if opinion.right else set()
        others = [
            (t, slots[0]) for t, slots in judged.items() if t not in right and len(slots) == 1 and slots[0]
        ]
        return shuffled(self.random, sorted(right)), shuffled(self.random, others)


def _excludes(value: Any, other: Any) -> bool:
    """Tell whether two values of a closed set exclude each other, as "Monday" and "2 days" ago do not."""
    sorts = [
        (len(str(one)) == 2, str(one).endswith("day"), str(one).endswith("days")) for one in (value, other)
    ]
    return sorts[0] == sorts[1] and "week" not in (value, other)
