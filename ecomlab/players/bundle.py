"""The player of BUNDLE: everything on the list, the cheapest that fits."""

from typing import Any

from ecomlab.players.cart import Wish
from ecomlab.players.goal_player import Clerk
from ecomlab.task import Message


class Bundler(Clerk):
    """Searches each part, the cheapest first, and takes what fits: what is within no budget then is within none."""

    found: dict[str, list[dict[str, Any]]]

    def hear(self, text: str, opening: bool) -> None:
        if opening or "sold out" in text:
            self.found = {}
        super().hear(text, opening)

    def restart(self) -> None:
        """What was found of a part stays found until something sells out."""

    def work(self) -> Message:
        from ecomlab.envs.bundle import parts_of

        parts = parts_of(self.known)
        new = [part for part in parts if repr(part) not in self.found]
        if new:
            self.found |= {repr(part): [] for part in new}
            return self.turn(*(self.search(repr(part), *part, sort=["price"]) for part in new))
        chosen = []
        for kind, slots in parts:
            fitting = [r for r in self.found[repr((kind, slots))] if Wish(kind, slots).fits(r) and r["stock"]]
            if fitting:
                choose = max if self.slip() else min
                chosen.append(choose(fitting, key=lambda record: record["price"])["product_id"])
        return self.turn(self.call("submit", None, product_ids=chosen))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if about in self.found:
            self.found[about] += result.get("results", [])
