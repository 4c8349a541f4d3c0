"""CHEAPEST: for each item on a list, name the cheapest product that fits and can be bought now."""

from ecomlab.customer.goals import withhold
from ecomlab.customer.templates import Phrases
from ecomlab.envs.base import Environment
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled, whole_near
from ecomlab.task import Goal, Need, Problem
from ecomlab.tool import tool
from ecomlab.world.cart import constraints_of
from ecomlab.world.tools.catalog import catalog_get_product, catalog_search, datetime_now


@tool
def submit(world, product_ids: list[str]):
    """Hand in one product id for each item on the list."""
    return {"submitted": True}


class CheapestPlayer(GoalPlayer):
    """Searches each category, cheapest first, and takes the first that fits: oracle and reference player in one."""

    @staticmethod
    def budget(axes, shop, items):
        count = items or 1 + int(axes.cart.items)
        return budget(Need(2, count), count * (axes.constraints - 1), axes)

    def restart(self):
        self.found = {}

    def result(self, about, result):
        if "results" in result:
            self.found[about] = result["results"]

    def work(self):
        wanted = Goal(self.known)
        items = {i: wanted.of(i) for i in wanted.items}
        if not self.found:
            return self.turn(*(self.search(i, slots["type"], slots, "price") for i, slots in items.items()))
        chosen = []
        for i, slots in items.items():
            attributes = {name[5:]: value for name, value in slots.items() if name.startswith("attr:")}
            fits = [r["product_id"] for r in self.found[i] if r["stock"] and r["type"] == slots["type"]
                    and attributes.items() <= r["attributes"].items()]  # fmt: skip
            chosen += fits[1:2] if self.slip() else fits[:1]
        return self.turn(self.call("submit", None, product_ids=chosen))


class Cheapest(Environment):
    id, version = "CHEAPEST", 1
    brief = (
        "Name the cheapest product for each item the customer wants, of those that fit and can be bought now."
    )
    tools, submit, player = (catalog_search, catalog_get_product, datetime_now), submit, CheapestPlayer
    phrases = Phrases.of(leads=("what's your cheapest offer? I want {}.", "I need {}, as cheap as can be."))

    def draw(self, key, axes, shop):
        random, catalog, slots = key.rng("cheapest"), shop.catalog, {}
        count = whole_near(random, axes.cart.items)
        for item, kind in enumerate(shuffled(random, catalog.types)[:count]):
            rows = catalog.select(constraints_of(kind.name, {}))
            has = catalog.attributes(int(pick(random, rows[catalog.stock[rows] > 0])))
            wanted = {"type": kind.name, **{f"attr:{name}": value for name, value in has.items()}}
            slots |= {(item, name): wanted[name] for name in list(wanted)[: axes.constraints]}
        goal = withhold(Goal(slots), axes, random)
        return Problem(goal, {}, Need(2, len(goal.items)))

    def verify(self, goal, world, answer, first):
        ids, catalog, right, near = answer.get("product_ids", []), world.catalog, 0, 0
        given = {row for row in map(catalog.row, ids) if row is not None}
        for slots in map(goal.of, goal.items):
            fitting = world.in_stock(catalog.select(constraints_of(slots["type"], slots)))
            best = fitting[catalog.price_cents[fitting] == catalog.price_cents[fitting].min()]
            right += bool(given & set(best.tolist()))
            near += any(catalog.type_of(row).name == slots["type"] for row in given)
        count = len(goal.items)
        credit = 2 * (0.75 * right + 0.25 * near) / max(count, len(ids)) - 1
        why = f"the cheapest for {right} of {count} items"
        return Verdict.of(right == count == len(ids), credit, why, ids)
