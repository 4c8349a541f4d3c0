"""Attackers that do the job from what the customer says about what they did, and neither read nor ask."""

from typing import Any

from ecomlab.audit.surface import looks
from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import nlu
from ecomlab.envs.base import Environment
from ecomlab.players.cart import CartPlayer, Wish
from ecomlab.task import Message, Player


class Corrected(CartPlayer):
    """Puts one visit of each type into the cart, unread the request, and then does what the corrections say."""

    def __init__(self, env: Environment, shop: Shop) -> None:
        super().__init__(env.phrases, lexicon_of(shop.catalog))
        self.visits: list[dict[str, Any]] | None = None

    def hear(self, text: str, opening: bool) -> None:
        if opening:
            return
        for mention in nlu.read_message(text, self.phrases, self.lexicon):
            self._take(mention)
        for wish in [wish for wish in self.wishes if self._title(wish) in text]:
            if not any(m.type == wish.type for m in nlu.read_message(text, self.phrases, self.lexicon)):
                self.wishes.remove(wish)  # the customer did not ask for it

    def plan(self) -> Message:
        if self.visits is None:
            return self.turn(self.call("user_get_visit_history", "visits"))
        return super().plan()

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about != "visits":
            super().result(about, result)
            return
        self.visits = result.get("visits", [])
        chosen = {self._type(visit): visit for visit in reversed(self.visits)}
        self.wishes = [Wish(kind, choice=visit["product_id"]) for kind, visit in chosen.items() if kind]

    def _type(self, visit: dict[str, Any]) -> str:
        kinds = [kind for kind in self.lexicon.types if visit["title"].endswith(kind)]
        return max(kinds, key=len, default="")

    def _title(self, wish: Wish) -> str:
        titles = {visit["product_id"]: visit["title"] for visit in self.visits or ()}
        return str(titles.get(wish.choice or "", "\n"))


def corrected(env: Environment, shop: Shop) -> Player | None:
    """Make the player that lives on corrections, where there is a cart to correct and a history to fill it from."""
    history = any(tool.name == "user_get_visit_history" for tool in looks(env))
    return Corrected(env, shop) if "cart" in env.acts_on and history and not env.composes else None
