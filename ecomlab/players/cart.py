"""The player of CART: keeps a wish for each item and brings the cart in line with them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer import nlu
from ecomlab.customer.templates import Phrases
from ecomlab.players.asking import Asking
from ecomlab.players.base import Perturbation
from ecomlab.players.courteous import Courtesy
from ecomlab.players.goal_player import bounds
from ecomlab.task import Goal, Message, Need, Place
from ecomlab.world.cart import identity_of

IDENTITY = ("brand", "feature", "price", "rating", "days")
"""Slots, beside attr:*, that distinguish products; option and quantity are about a line in the cart."""
MAX_PAGES = 3


@dataclass
class Wish:
    """A wanted item as the player understands it, and the progress on it."""

    type: str
    slots: dict[str, Any] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)
    """Records that a search for the current slots has shown."""
    pages: int = 0
    more: bool = True
    choice: str | None = None
    refused: set[str] = field(default_factory=set)
    """Product ids that could not be bought."""

    @property
    def option(self) -> str | None:
        return self.slots.get("option")

    @property
    def quantity(self) -> int:
        return int(self.slots.get("quantity", 1))

    def fits(self, record: dict[str, Any]) -> bool:
        """Tell whether a record satisfies every known slot."""
        if record["type"] != self.type:
            return False
        for name, value in self.slots.items():
            if name == "brand" and record["brand"] != value:
                return False
            if name == "feature" and value.lower() not in record["title"].lower():
                return False
            if name == "price" and round(record["price"] * 100) > value:
                return False
            if name == "rating" and round(record["rating"] * 10) < value:
                return False
            if name == "days" and record["ship_days"] > value:
                return False
            if name.startswith("attr:") and record["attributes"].get(name[5:]) != value:
                return False
        return True

    def learn(self, slots: dict[str, Any]) -> None:
        """Set the slots that were said; a slot that identifies the product starts the search again."""
        new = {name: value for name, value in slots.items() if self.slots.get(name) != value}
        self.slots.update(new)
        if any(name in IDENTITY or name.startswith("attr:") for name in new):
            self.restart()

    def replace(self, slots: dict[str, Any]) -> None:
        """Wish for an entirely different product; what was said about the old one no longer counts."""
        self.slots = dict(slots)
        self.restart()

    def reconsider(self) -> None:
        """Retry after news: what could not be bought perhaps now can, and the choice stands only if it still fits."""
        self.refused.clear()
        chosen = [r for r in self.found if r["product_id"] == self.choice]
        if not any(self.fits(r) and r["stock"] >= self.quantity for r in chosen):
            self.choice = None

    def restart(self) -> None:
        """Forget what was found and chosen."""
        self.found, self.pages, self.more, self.choice = [], 0, True, None


class Shopper(Asking):
    """Brings the cart in line with its wishes; everything that can be done at once goes into one message."""

    def __init__(self, perturbation: Perturbation | None = None, courtesy: Courtesy | None = None) -> None:
        super().__init__(perturbation, courtesy=courtesy)
        self.wishes: list[Wish] = []
        self.variants: set[str] = set()
        self.cart: dict[tuple[str, str | None], int] = {}

    def plan(self) -> Message:
        """Make the next message: search for what is not found, look up variants, bring the cart in line, hand in."""
        calls: list[dict[str, Any]] = []
        wanted: dict[tuple[str, str | None], int] = {}
        waiting = False
        for wish in self.wishes:
            self._choose(wish)
            if wish.choice is None:
                if wish.more and wish.pages < MAX_PAGES:
                    calls.append(self._search(wish))
                    waiting = True
                continue
            if wish.option and wish.choice not in self.variants:
                calls.append(self.call("catalog_get_variants", wish, product_id=wish.choice))
                waiting = True
                continue
            line = (wish.choice, wish.option)
            wanted[line] = wanted.get(line, 0) + wish.quantity
        calls += self._cart_calls(wanted)
        if not calls and not waiting:
            calls = [self.call("submit", None, done=True)]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    def _cart_calls(self, wanted: dict[tuple[str, str | None], int]) -> list[dict[str, Any]]:
        calls = []
        for line in [line for line in self.cart if line not in wanted]:
            calls.append(self.call("cart_remove", line, **_line(line)))
        for line, quantity in wanted.items():
            if line not in self.cart:
                calls.append(self.call("cart_add", line, **_line(line), quantity=quantity))
            elif self.cart[line] != quantity:
                calls.append(self.call("cart_set_quantity", line, **_line(line), quantity=quantity))
        return calls

    def _choose(self, wish: Wish) -> None:
        if wish.choice is not None:
            return
        fitting = [r for r in wish.found if wish.fits(r) and r["product_id"] not in wish.refused]
        fitting = [r for r in fitting if r["stock"] >= wish.quantity]
        if not fitting:
            return
        if self.slip():
            others = [r for r in wish.found if r["product_id"] != fitting[0]["product_id"]]
            fitting = others or fitting
        wish.choice = fitting[0]["product_id"]

    def _search(self, wish: Wish) -> dict[str, Any]:
        slots = wish.slots
        attributes = {name[5:]: value for name, value in slots.items() if name.startswith("attr:")}
        words = [slots.get("feature"), slots.get("brand"), wish.type, *attributes.values()]
        arguments: dict[str, Any] = {"query": " ".join(word for word in words if word)}
        if "brand" in slots:
            arguments["brand"] = slots["brand"]
        arguments |= bounds(slots)
        if attributes:
            arguments["attributes"] = attributes
        wish.pages += 1
        if wish.pages > 1:
            arguments["page"] = wish.pages
        return self.call("catalog_search", wish, **arguments)

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "results" in result and isinstance(about, Wish):
            about.found += result["results"]
            about.more = result["page"] < result["pages"]
        elif "variants" in result:
            self.variants.add(result["product_id"])
        elif "line" in result:
            line = result["line"]
            self.cart[line["product_id"], line["variant_id"]] = line["quantity"]
            self.cart = {line: quantity for line, quantity in self.cart.items() if quantity}
        elif "error" in result:
            self._refused(about)

    def _refused(self, about: Any) -> None:
        """Give up a product that could not be bought: another one that fits is as good until the customer objects."""
        if isinstance(about, Wish):
            about.more = False
            return
        for wish in self.wishes:
            if isinstance(about, tuple) and wish.choice == about[0]:
                wish.refused.add(about[0])
                wish.choice = None


class CartPlayer(Shopper):
    """The player of CART. Wishes come from the customer's words, or, for the oracle, from the goal before each turn."""

    def __init__(
        self,
        phrases: Phrases,
        lexicon: Lexicon,
        truth: Callable[[], Goal] | None = None,
        perturbation: Perturbation | None = None,
        courtesy: Courtesy | None = None,
    ) -> None:
        super().__init__(perturbation, courtesy=courtesy)
        self.phrases = phrases
        self.lexicon = lexicon
        self.truth = truth

    @staticmethod
    def need(goal: Goal) -> Need:
        """Count the steps to a cart: asking, searching, looking up variants where one is wanted, adding, handing in."""
        asks, options = int(bool(goal.withheld)), sum(name == "option" for _, name in goal.slots)
        return Need(turns=asks + 2 + bool(options), asks=asks, calls=2 * len(goal.items) + options)

    def heard_of(self) -> Collection[str]:
        return set.intersection(*(set(wish.slots) for wish in self.wishes)) if self.wishes else ()

    def read_opening(self, text: str) -> dict[Place, Any]:
        """Read every slot that the opening states, types included."""
        mentions = enumerate(nlu.read_opening(text, self.phrases, self.lexicon))
        return {(i, n): v for i, m in mentions for n, v in {"type": m.type, **m.slots}.items()}

    def hear(self, text: str, opening: bool) -> None:
        if self.truth is not None:
            return
        if opening:
            for mention in nlu.read_opening(text, self.phrases, self.lexicon):
                self.wishes.append(Wish(mention.type, self._slipped(mention.slots)))
            self.begin(text)
            return
        self.told(text)
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            if not self.slip():
                self._take(mention)

    def plan(self) -> Message:
        if self.truth is not None:
            known, goal = list(self.wishes), self.truth()
            self.wishes = [self._same(goal.of(item), known) for item in goal.items]
        return self.question() or super().plan()

    def _take(self, mention: nlu.Mention) -> None:
        wish = next((w for w in self.wishes if w.type == mention.type), None)
        if mention.effect == "add" or wish is None:
            if mention.effect in ("add", "replace"):
                self.wishes.append(Wish(mention.type, self._slipped(mention.slots)))
        elif mention.effect == "drop":
            self.wishes.remove(wish)
        elif mention.effect == "replace":
            wish.replace(self._slipped(mention.slots))
        else:
            wish.learn(self._slipped(mention.slots))
            wish.reconsider()

    def _slipped(self, slots: dict[str, Any]) -> dict[str, Any]:
        """Read slots with mistakes: each may be lost, a quantity misread."""
        if self.perturbation is None:
            return dict(slots)
        kept = {}
        for name, value in slots.items():
            if not self.slip():
                kept[name] = value
            elif name == "quantity":
                kept[name] = value + 1
        return kept

    def _same(self, slots: dict[str, Any], known: list[Wish]) -> Wish:
        """Find the wish for an item of the goal and bring it up to date, or make a new one."""
        type_name = slots.pop("type")
        slots["quantity"] = slots.get("quantity", 1)
        for wish in known:
            if wish.type == type_name:
                if identity_of(slots) != identity_of(wish.slots):
                    wish.restart()
                if wish.slots != slots:
                    wish.slots = dict(slots)
                    wish.reconsider()
                return wish
        return Wish(type_name, dict(slots))


def _line(line: tuple[str, str | None]) -> dict[str, Any]:
    return {"product_id": line[0], "variant_id": line[1]}
