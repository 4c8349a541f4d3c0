"""The player of CART: keeps a wish for each item and brings the cart in line with them."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer import nlu
from ecomlab.customer.ear import WHOLE
from ecomlab.customer.shortages import RETAKING, TELLING, rush_chance
from ecomlab.customer.telling import Asked
from ecomlab.difficulty import Difficulty
from ecomlab.players.asking import Asking
from ecomlab.players.budgets import budget, quantile
from ecomlab.slots import PRICE, filters_of, fits, slot_type
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.wishes import MOST_SHOWN, SHOWINGS, AnyBut, If, Of, OneOf, Packs, Taste, without
from ecomlab.wishes import Wish as Expression
from ecomlab.world.cart import identity_of, prices_in, total_of
from ecomlab.world.plain import PACK

MAX_PAGES = 3
TOTAL = Asked(
    "ask_total",
    "money",
    lambda goal, world: total_of(world),
    "The cart comes to {} in total.",
    WHOLE,
    beside=lambda goal, world: prices_in(world),
)
"""What does it all come to?"""


@dataclass
class Wish:
    """A wanted item as the player understands it, and the progress on it."""

    type: str
    slots: dict[str, Any] = field(default_factory=dict)
    """Values by slot, worked out from what was `said`."""
    said: dict[str, Any] = field(default_factory=dict)
    """What the customer said, as far as it must be worked out: wishes by slot."""
    condition_holds: bool = True
    """False once a product within the limit of its condition was looked for in vain."""
    found: list[dict[str, Any]] = field(default_factory=list)
    """Records that a search for the current slots has shown."""
    pages: int = 0
    idle_pages: int = 0
    """Latest pages on which nothing fits: a search by words shows what fits them first, more or less."""
    part: int = 0
    """Number of the search under way, of those for each of several values that would do; `parts` is their number."""
    parts: int = 1
    of_left: bool = False
    """True once these pages list only products in stock, which changes the page numbers."""
    more: bool = True
    choice: str | None = None
    again: bool = False
    """True once the search was repeated among the products left."""
    told: bool = False
    """True once the customer was told that it has run short."""
    looked: bool = False
    """True once each value of a look that the customer must see was searched for."""
    shown: list[list[str]] = field(default_factory=list)
    """Values of it that they saw, showing by showing."""
    disliked: set[str] = field(default_factory=set)
    """Values of it that they do not like."""

    @property
    def option(self) -> str | None:
        return self.slots.get("option")

    @property
    def wants_cheapest(self) -> bool:
        """True if its condition has failed, and the cheapest is wanted then."""
        condition = self.said.get("if")
        return condition is not None and not self.condition_holds and condition.other is None

    @property
    def by_price(self) -> bool:
        """True if a search shows the cheapest first: words would make it show first what fits them."""
        return self.wants_cheapest and "feature" not in self.slots

    @property
    def most_pages(self) -> int:
        """Pages that are looked through: more where filters cannot say all."""
        open_ended = "if" in self.said or any(isinstance(v, OneOf | AnyBut) for v in self.slots.values())
        return 2 * MAX_PAGES if open_ended else MAX_PAGES

    @property
    def unseen(self) -> str:
        """Slot of the look that the customer has to see before they can tell; "" where they told or look no more."""
        if len(self.shown) == SHOWINGS:
            return ""
        named = (name for name, value in self.slots.items() if isinstance(value, Taste) and not value.values)
        return next(named, "")

    @property
    def quantity(self) -> int:
        wanted = self.slots.get("quantity", 1)
        return wanted.units(str(self.slots.get(PACK, ""))) if isinstance(wanted, Packs) else int(wanted)

    def fits(self, record: dict[str, Any]) -> bool:
        """Tell whether a record satisfies every known slot; a search by the option shows which records come in it."""
        if record["type"] != self.type or self.option not in (None, record.get("variant_id")):
            return False
        for name, value in self.slots.items():
            if name == "feature" and value.lower() not in record["title"].lower().split():
                return False
            has = record["brand"] if name == "brand" else record["attributes"].get(name.removeprefix("attr:"))
            if isinstance(value, Taste):
                if has in self.disliked or (value.values and has not in value.values):
                    return False
            elif isinstance(value, OneOf | AnyBut):
                if not value.admits(has):
                    return False
            elif (name == "brand" or name.startswith("attr:")) and has != value:
                return False
        return fits(record, self.slots)

    def learn(self, slots: dict[str, Any]) -> None:
        """Set the slots that were said; a slot that identifies the product starts the search again."""
        wishes = {name: value for name, value in slots.items() if isinstance(value, Of | If)}
        if wishes and wishes.items() - self.said.items():
            self.said |= wishes
            self.condition_holds = True
        slots = {
            n: v
            for n, v in slots.items()
            if n not in wishes and not (isinstance(v, Taste) and n in self.slots)
        }
        new = {name: value for name, value in slots.items() if self.slots.get(name) != value}
        self.slots.update(new)
        if new:
            self.choice, self.again, self.told = None, False, False
        if any(name == "option" or slot_type(name).of == "product" for name in new):
            self._ask_again()
            self.restart()

    def _ask_again(self) -> None:
        """Forget that a condition failed, because it did for a wish that has changed."""
        condition = self.said.get("if")
        if condition is not None and not self.condition_holds:
            self.condition_holds = True
            if condition.slot in self.slots and self.slots[condition.slot] == condition.other:
                del self.slots[condition.slot]

    def replace(self, slots: dict[str, Any]) -> None:
        """Wish for an entirely different product; what was said about the old one no longer counts."""
        self.slots, self.said = dict(slots), {}
        self.restart()

    def restart(self) -> None:
        """Forget what was found and chosen."""
        self.found, self.pages, self.of_left, self.more, self.choice = [], 0, False, True, None
        self.again = self.told = self.looked = False
        self.part = 0


_ONLY = re.compile(r"only (\d+)")
"""The units left, from the error for a product of which there is not enough."""


class Shopper(Asking):
    """Brings the cart in line with its wishes; everything that can be done at once goes into one message."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.wishes: list[Wish] = []
        self.cart: dict[tuple[str, str | None], int] = {}
        self.units: dict[tuple[str, str | None], int] = {}
        """Units that can be bought, as a tool last showed them, by product and variant (None: of the product)."""
        self.prices: dict[str, int] = {}
        """Prices in cents, by product."""
        self.rushed = False
        """True once something has sold out."""
        self.showing: Wish | None = None
        """The wish of which the customer was shown something last."""
        self.visited: dict[str, list[dict[str, Any]]] = {}
        """Records of the visits of a type, or of all under "", as a tool showed them."""

    def plan(self) -> Message:
        """Make the next message: search for missing items, bring the cart in line, submit."""
        calls: list[dict[str, Any]] = []
        wanted: dict[tuple[str, str | None], int] = {}
        waiting, short = False, list[Wish]()
        for wish in self.wishes:
            if (looks := self._work_out(wish)) is not None:
                calls += looks
                waiting = True
                continue
            if wish.unseen and not wish.looked:
                calls += [self._search(wish, filters) for filters in self._several(wish)]
                wish.looked = waiting = True
                continue
            if self._to_show(wish):
                waiting = True
                continue
            self._choose(wish)
            if wish.choice is None and not self._able(wish) and self._fails(wish):
                self._take_other(wish)
                waiting = True
                calls.append(self._search(wish))
                continue
            if wish.choice is None:
                sold_out = self._is_sold_out(wish)
                if wish.more and wish.pages < wish.most_pages and not self._enough(wish) and not sold_out:
                    calls.append(self._search(wish))
                    waiting = True
                elif sold_out or self._may_be_elsewhere(wish):
                    wish.again, wish.found, wish.pages, wish.part, wish.more = True, [], 0, 0, True
                    calls.append(self._search(wish))
                    waiting = True
                elif not wish.told and (wish.again or self.rushed or self._fitting(wish)):
                    short.append(wish)
                continue
            line = (wish.choice, wish.option)
            wanted[line] = wanted.get(line, 0) + wish.quantity
        if not calls and self.cart.keys() <= wanted.keys() and (showing := self._show()):
            return showing  # only then: what is wrong in the cart would be all that they speak of
        calls = [*self._removals(wanted), *calls, *self._additions(wanted), *self.tell(short)]
        if not calls and not waiting:
            return self.answer(self.values()) or self.turn(self.call("submit", None, done=True))
        return {"role": "assistant", "content": "", "tool_calls": calls}

    def _to_show(self, wish: Wish) -> dict[str, str]:
        """Choose products of looks that the customer has not seen and must see: titles with ids, by value."""
        seen, found = {value for showing in wish.shown for value in showing}, dict[str, str]()
        for record in self._able(wish) if wish.unseen else ():
            title = f"{record['title']} ({record['product_id']})"
            found.setdefault(record["attributes"].get(wish.unseen[5:], ""), title)
        return dict([(look, title) for look, title in found.items() if look not in seen][:MOST_SHOWN])

    def _show(self) -> Message | None:
        """Show products of one item; None where there is nothing to show."""
        for wish in self.wishes:
            if new := self._to_show(wish):
                wish.shown.append([*new])
                self.showing = wish
                said = f"Which of these do you like: {', '.join(new.values())}?"
                return {"role": "assistant", "content": said}
        return None

    def _work_out(self, wish: Wish) -> list[dict[str, Any]] | None:
        """Find the values that its wishes have; None once all are known, else the calls that show more."""
        calls, waits = [], False
        for name, said in wish.said.items():
            if isinstance(said, If) and wish.condition_holds and "logic" in self.contrary:
                self._take_other(wish)
            if isinstance(said, If) and wish.condition_holds and said.slot not in wish.slots:
                wish.learn({said.slot: said.first, PRICE.name: said.limit})
            if not isinstance(said, Of) or name in wish.slots:
                continue
            by = said.described
            if said.where == "items":
                anchor = next((other for other in self.wishes if other.type == by["type"]), None)
                record = self._record(anchor) if anchor else None
                waits = waits or record is None
            elif new := [
                kind for kind in (by["type"], *([""] if said.steps else ())) if kind not in self.visited
            ]:
                for kind in new:
                    calls.append(self.call("user_get_visit_history", ("visits", kind), category=kind or None))
                    self.visited[kind] = []
                continue
            else:
                like = Wish(by["type"], {n: value for n, value in by.items() if n != "type"})
                record = next(filter(like.fits, self.visited[by["type"]]), None)
                if record is not None and said.steps:
                    every = self.visited[""]
                    ids = [one["product_id"] for one in every]
                    record = every[ids.index(record["product_id"]) - said.steps]
            if record is not None:
                value = record["brand"] if name == "brand" else record["attributes"].get(name[5:])
                wish.learn({name: value})
        return calls if calls or waits else None

    def _record(self, wish: Wish) -> dict[str, Any] | None:
        return next((record for record in wish.found if record["product_id"] == wish.choice), None)

    def _fails(self, wish: Wish) -> bool:
        """Tell whether no product is to be had within the limit of a condition."""
        looked = wish.found or wish.pages
        over = not wish.more or wish.pages >= wish.most_pages
        return bool(looked and over) and wish.condition_holds and "if" in wish.said

    def _take_other(self, wish: Wish) -> None:
        """Turn to the second part of a condition."""
        condition = wish.said["if"]
        wish.condition_holds = False
        wish.slots = {n: v for n, v in wish.slots.items() if n not in (PRICE.name, condition.slot)}
        wish.slots |= {} if condition.other is None else {condition.slot: condition.other}
        wish.restart()

    def values(self) -> dict[str, Any]:
        """Work out the answers to the customer's questions."""
        return {}

    def _removals(self, wanted: Collection[tuple[str, str | None]]) -> list[dict[str, Any]]:
        """Make the calls that come before a search: the last unit of a product is not found while in the cart."""
        return [self.call("cart_remove", line, **_line(line)) for line in [*self.cart] if line not in wanted]

    def _additions(self, wanted: dict[tuple[str, str | None], int]) -> list[dict[str, Any]]:
        calls = []
        for line, quantity in wanted.items():
            if line not in self.cart:
                calls.append(self.call("cart_add", line, **_line(line), quantity=quantity))
            elif self.cart[line] != quantity:
                calls.append(self.call("cart_set_quantity", line, **_line(line), quantity=quantity))
        return calls

    def tell(self, short: list[Wish]) -> list[dict[str, Any]]:
        """Make the call that tells the customer what has run short."""
        return []

    def _choose(self, wish: Wish) -> None:
        """Choose a product that fits and of which enough is left; one chosen before stays if that still holds."""
        able = self._able(wish) if self._enough(wish) else []
        if any(r["product_id"] == wish.choice for r in able):
            return
        if wish.wants_cheapest:
            able.sort(key=lambda record: record["price"])
        lost, wish.choice = wish.choice, None
        if not able or (lost and self._may_be_elsewhere(wish)):
            return
        if self.slip():
            others = [r for r in wish.found if r["product_id"] != able[0]["product_id"]]
            able = others or able
        wish.choice = able[0]["product_id"]

    def _may_be_elsewhere(self, wish: Wish) -> bool:
        """Tell whether a search among the products left may find another one that fits."""
        fitting = self._fitting(wish)
        return self.rushed and not wish.again and bool(fitting) and (wish.more or len(fitting) > 1)

    def _is_sold_out(self, wish: Wish) -> bool:
        """Tell whether what it found and fits was sold out before, all of it or as far as it looked, so that it must
        look among what is in stock."""
        fitting = self._fitting(wish)
        if self.rushed or wish.again or self._able(wish) or not fitting:
            return False
        return wish.pages >= wish.most_pages or not any(record["stock"] for record in fitting)

    def notice(self, text: str) -> None:
        self.rushed = self.rushed or "sold out" in text

    def _fitting(self, wish: Wish) -> list[dict[str, Any]]:
        return [record for record in wish.found if wish.fits(record)]

    def _enough(self, wish: Wish) -> bool:
        """Tell whether it need not look on: something is to be had, and of several the cheapest was shown."""
        over = not wish.more or wish.pages >= wish.most_pages or wish.idle_pages > 1
        return bool(self._able(wish)) and (over or not wish.wants_cheapest)

    def _able(self, wish: Wish) -> list[dict[str, Any]]:
        """List the products that fit and of which enough is left."""
        return [r for r in self._fitting(wish) if self._left(r["product_id"], wish) >= wish.quantity]

    def _left(self, product_id: str, wish: Wish) -> int:
        """Count the units of a product that the customer can have, with those in the cart."""
        lines = {(product_id, None), (product_id, wish.option)}
        left = min((self.units[line] for line in lines if line in self.units), default=0)
        return left + self.cart.get((product_id, wish.option), 0)

    def _search(self, wish: Wish, filters: Mapping[str, str] | None = None) -> dict[str, Any]:
        slots = wish.slots
        attributes = {
            name[5:]: value
            for name, value in slots.items()
            if name.startswith("attr:") and not isinstance(value, OneOf | AnyBut | Taste)
        }
        several = self._several(wish) if filters is None else ()
        wish.parts = len(several) or 1
        attributes |= several[wish.part] if several else filters or {}
        arguments: dict[str, Any] = {
            "query": slots.get("feature"),
            "category": wish.type,
            "sort": PRICE.sort if wish.by_price else None,
        }  # filters say the rest
        if self.rushed or wish.again:
            arguments["in_stock"] = True
            if not wish.of_left:
                wish.of_left, wish.pages, wish.part = True, 0, 0
        if isinstance(slots.get("brand"), str):
            arguments["brand"] = slots["brand"]
        arguments |= filters_of(slots)
        if wish.option:
            attributes[self.lexicon.types[wish.type].option.name] = wish.option
        if attributes:
            arguments["attributes"] = attributes
        wish.pages += filters is None
        if wish.pages > 1:
            arguments["page"] = wish.pages
        return self.call("catalog_search", wish, **arguments)

    def _several(self, wish: Wish) -> list[dict[str, str]]:
        """List the filters of which one must do, where several values of an attribute would."""
        for name, value in wish.slots.items():
            if isinstance(value, OneOf | AnyBut | Taste):
                kind = self.lexicon.types[wish.type]
                known = next(one.values for one in kind.attributes if f"attr:{one.name}" == name)
                able = [v for v in known if isinstance(value, AnyBut) and v not in value.values]
                able = able or [*(value.values or known)]
                rest: list[dict[str, str]] = (
                    [{}] if self.lexicon.is_real and isinstance(value, AnyBut) else []
                )
                return [{name[5:]: one} for one in able] + rest  # of real products it may not be known
        return []

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "visits" in result and isinstance(about, tuple):
            kind = about[1]
            self.visited[kind] = [
                {**record, "type": kind, "brand": _brand(record)} for record in result["visits"]
            ]
        elif "results" in result and isinstance(about, Wish):
            about.found += result["results"]
            about.idle_pages = 0 if any(map(about.fits, result["results"])) else about.idle_pages + 1
            able = [r for r in result["results"] if about.fits(r) and r["stock"] >= about.quantity]
            cheapest = about.by_price and any("sponsored" not in record for record in able)
            about.more = result["page"] < result["pages"] and not cheapest
            if not about.more and about.part + 1 < about.parts:
                about.part, about.pages, about.more = about.part + 1, 0, True
            shown = {record["product_id"]: record["price"] for record in result["results"]}
            self.prices |= {one: round(100 * price) for one, price in shown.items() if price is not None}
            self.units |= {(r["product_id"], r.get("variant_id")): r["stock"] for r in result["results"]}
        elif "line" in result:
            line = result["line"]
            self.cart[line["product_id"], line["variant_id"]] = line["quantity"]
            self.cart = {line: quantity for line, quantity in self.cart.items() if quantity}
        elif "error" in result and isinstance(about, Wish):
            about.more = False
        elif "error" in result and isinstance(about, tuple):
            only = _ONLY.search(result["error"])
            self.units[about] = int(only[1]) if only else 0


class CartPlayer(Shopper):
    """The player of CART. Wishes come from the customer's words, or, for the oracle, from the goal before each turn."""

    tells = (TOTAL,)

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a cart: search, lookup of variants if one is wanted, adding, submit."""
        options = sum(name == "option" for _, name in goal.slots)
        wishes = [value for value in goal.slots.values() if isinstance(value, Expression)]
        seen = [wish for wish in wishes if isinstance(wish, Of) and wish.where == "visits"]
        looks = len(seen) + any(wish.steps for wish in seen)
        again = sum(1 + isinstance(wish, Taste) for wish in wishes if not isinstance(wish, Of))
        waits = bool(looks) + bool(again) + any(isinstance(w, Of) and w.where == "items" for w in wishes)
        return Need(3 + bool(options) + waits, 2 * len(goal.items) + options + looks + 2 * again)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any cart of so many items, as many as there can be if None."""
        items, draws = items or math.ceil(axes.cart.items), axes.cart
        options, several = draws.p_option > 0, draws.p_quantity > 0
        work = Need(3 + options, (2 + options) * items)
        rushes = quantile(items, rush_chance(axes))
        rush = (axes.p_oos, TELLING + rushes - 1, RETAKING * rushes)
        change = (axes.p_switch, 2 + options, 3)
        return budget(work, items * (axes.constraints - 1 + options + several), axes, rush, change)

    def heard_of(self) -> Collection[str]:
        return set.intersection(*(set(wish.slots) for wish in self.wishes)) if self.wishes else ()

    def read_opening(self, text: str) -> dict[Place, Any]:
        """Read every slot that the opening states, types included."""
        mentions = enumerate(nlu.read_opening(text, self.phrases, self.lexicon))
        read = {(i, n): v for i, m in mentions for n, v in {"type": m.type, **m.slots}.items()}
        types = {value: item for (item, name), value in read.items() if name == "type"}
        told = nlu.read_slots(text, self.phrases, self.lexicon, opening=True)
        return (
            read
            | {(types.get(value.type, 0), name): value for name, value in told if name == "if"}
            | {(0, name): value for name, value in told if name == TOTAL.slot}
        )

    def hear(self, text: str, opening: bool) -> None:
        if self.truth is not None:
            return
        if opening:
            for mention in nlu.read_opening(text, self.phrases, self.lexicon):
                self.wishes.append(Wish(mention.type))
                self.wishes[-1].learn(self._slipped(mention.slots))
            self._hear_conditions(text, opening=True)
            self.begin(text)
            return
        self.told(text)
        self._hear_conditions(text)
        self._hear_likes(text)
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            if not self.slip():
                self._take(mention)

    def _hear_likes(self, text: str) -> None:
        """Take in what the customer likes of what they were shown last, and what not."""
        wish = self.showing
        if wish is None or self.slip():
            return
        for said in nlu.read_acts(text, self.phrases, self.lexicon):
            named = said.fields.get("seen", "").removesuffix(" one").lower()
            looks = [look for look in wish.shown[-1] if said.kind == "like none" or look.lower() == named]
            if said.kind in ("dislike", "like none"):
                wish.disliked |= {*looks}
            elif said.kind == "like" and looks:
                name = next(name for name, value in wish.slots.items() if isinstance(value, Taste))
                wish.slots[name], wish.part = Taste((looks[0],)), 0

    def _hear_conditions(self, text: str, opening: bool = False) -> None:
        """Take in the conditions that a message states."""
        for name, condition in nlu.read_slots(text, self.phrases, self.lexicon, opening):
            wish = next((w for w in self.wishes if name == "if" and w.type == condition.type), None)
            if wish is not None and not self.slip():
                wish.learn(without({"if": condition}, self.lacks))

    def plan(self) -> Message:
        if self.truth is not None:
            known, goal = list(self.wishes), self.truth()
            self.wishes = [self._same(goal.of(item), known) for item in goal.items]
        return self.question() or super().plan()

    def values(self) -> dict[str, Any]:
        """Add up the cart; who lacks the step names the first price."""
        costs = [units * self.prices.get(one, 0) for (one, _), units in self.cart.items()]
        if not self.asks or not costs:
            return {}
        first = self.prices.get(next(iter(self.cart))[0], 0)
        wrong = "telling" in self.lacks or any(self.slip() for _ in costs[1:])
        return {TOTAL.slot: first if wrong else sum(costs)}

    def tell(self, short: list[Wish]) -> list[dict[str, Any]]:
        if not short or self.truth is not None:
            return []
        for wish in short:
            wish.told = True
        if self.slip():
            return []
        said = [self._news(wish) for wish in short]
        question = f"I'm sorry, {' and '.join(said)}. What would you like instead?"
        return [self.call("ask_user", None, question=question)]

    def _news(self, wish: Wish) -> str:
        left = max((self._left(record["product_id"], wish) for record in self._fitting(wish)), default=0)
        option = f" in {wish.option}" if wish.option else ""
        if left <= 0:
            return f"the {wish.type}{option} is sold out"
        return f"there {'is' if left == 1 else 'are'} only {left} of the {wish.type}{option} left"

    def _take(self, mention: nlu.Mention) -> None:
        wish = next((w for w in self.wishes if w.type == mention.type), None)
        if mention.effect == "add" or wish is None:
            if mention.effect in ("add", "replace"):
                self.wishes.append(Wish(mention.type))
                self.wishes[-1].learn(self._slipped(mention.slots))
        elif mention.effect == "drop":
            self.wishes.remove(wish)
        elif mention.effect == "replace":
            wish.replace(self._slipped(mention.slots))
        else:
            wish.learn(self._slipped(mention.slots))

    def _slipped(self, slots: dict[str, Any]) -> dict[str, Any]:
        """Read slots with mistakes: each may be lost, a quantity misread."""
        slots = without(slots, self.lacks)
        if self.perturbation is None:
            return slots
        kept = {}
        for name, value in slots.items():
            if not self.slip():
                kept[name] = value
            elif name == "quantity" and isinstance(value, int):
                kept[name] = value + 1
        return kept

    def _same(self, slots: dict[str, Any], known: list[Wish]) -> Wish:
        """Find the wish for an item of the goal and bring it up to date, or make a new one."""
        type_name = slots.pop("type")
        slots["quantity"] = slots.get("quantity", 1)
        for wish in known:
            if wish.type == type_name:
                if {**identity_of(slots), "option": slots.get("option")} != {
                    **identity_of(wish.slots),
                    "option": wish.option,
                }:
                    wish.restart()
                wish.slots = dict(slots)
                return wish
        return Wish(type_name, dict(slots))


def _brand(record: dict[str, Any]) -> str:
    return str(record["title"]).partition(" ")[0]


def _line(line: tuple[str, str | None]) -> dict[str, Any]:
    return {"product_id": line[0], "variant_id": line[1]}
