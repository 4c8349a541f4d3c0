"""Attackers that use only the customer's corrections of their acts, and neither read the request nor ask."""

from collections.abc import Callable
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import nlu
from ecomlab.envs.base import Environment
from ecomlab.envs.cart.player import CartPlayer, Wish
from ecomlab.envs.returns.player import ReturnsPlayer
from ecomlab.task import Message, Player

FULL = "unwanted things"
"""Kind of the act that names none of several unwanted things."""


class Filled(CartPlayer):
    """Puts visits into the cart, one of each type `at_once` or one after another, and then follows corrections: it
    removes unwanted products until one is wanted or the customer names the one they want."""

    def __init__(self, env: Environment, shop: Shop, at_once: bool) -> None:
        super().__init__(env.phrases, lexicon_of(shop.catalog))
        self.at_once = at_once
        self.untried: list[dict[str, Any]] | None = None
        self.tried: dict[str, dict[str, Any]] = {}
        """Visits on trial by type, without a reaction of the customer so far."""

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            return
        mentions = nlu.read_message(text, self.phrases, self.lexicon)
        for mention in mentions:
            self.tried.pop(mention.type, None)
            self._take(mention)
        full = nlu.says(FULL, text, self.phrases, self.lexicon)
        for kind, visit in list(self.tried.items()):
            if full or visit["title"].lower() in text.lower():
                del self.tried[kind]
                self.wishes = [wish for wish in self.wishes if wish.type != kind]

    def plan(self) -> Message:
        if self.untried is None:
            return self.turn(self.call("user_get_visit_history", "visits"))
        while self.untried and (self.at_once or not self.wishes):
            visit = self.untried.pop()
            kind = self._type(visit)
            self.tried[kind] = visit
            self.wishes.append(Wish(kind, choice=visit["product_id"]))
            if not self.at_once:
                break
        return super().plan()

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about == "visits":
            visits = result.get("visits", [])
            self.untried = list({self._type(v): v for v in visits}.values()) if self.at_once else visits
        else:
            super().result(about, result)

    def _choose(self, wish: Wish) -> None:
        if wish.type not in self.tried:  # what was tried stays until something is heard of it
            super()._choose(wish)

    def _type(self, visit: dict[str, Any]) -> str:
        kinds = [kind for kind in self.lexicon.types if visit["title"].endswith(kind)]
        return max(kinds, key=len, default="")


class SentBack(ReturnsPlayer):
    """Returns one line after another, beginning with the first that can be returned, and then follows corrections."""

    def __init__(self, env: Environment, shop: Shop) -> None:
        super().__init__(env.phrases, lexicon_of(shop.catalog))
        self.lines: list[tuple[str, str]] = []

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            return
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            self.known |= {(0, "type"): mention.type} if mention.type else {}
        super().hear(text, opening)

    def work(self) -> Message:
        if self.get("type") or self.orders is None:
            return super().work()
        if unseen := [order["order_id"] for order in self.orders if order["order_id"] not in self.looked]:
            self.lines = []
            return self.turn(*(self.call("order_get_status", "order", order_id=order) for order in unseen))
        if not self.lines:
            self.lines = [(o["order_id"], n["line_id"]) for o in self.looked.values() for n in o["lines"]]
        if self.returns:
            (choice,) = self.returns
            self.choice = choice
            return self._submit(True, None, None, None)
        order, line = self.lines.pop()
        about = ("return", (order, line), 1)
        return self.turn(self.call("return_initiate", about, order_id=order, line_id=line, quantity=1))


def corrected(env: Environment, shop: Shop) -> dict[str, Callable[[], Player]]:
    """Make the players that live on corrections, by name: where there is a cart to correct and a history to fill it
    from, or returns to correct. A journey's jobs have them alone."""
    tools = {tool.name for tool in env.tools}
    if env.composes:
        return {}
    if "cart" in env.acts_on and "user_get_visit_history" in tools:
        return {
            "corrections of all at once": lambda: Filled(env, shop, True),
            "corrections of one after another": lambda: Filled(env, shop, False),
        }
    return {"corrections of a return": lambda: SentBack(env, shop)} if "returns" in env.acts_on else {}
