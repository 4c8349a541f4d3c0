"""CART: put exactly the products, variants and quantities that the customer wants into the cart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.catalog import ProductType, Shop
from ecomlab.customer import goal_changes, goals, shortages
from ecomlab.customer.demand_draws import LUCK
from ecomlab.customer.opinions import Opinion, Thing, of_product
from ecomlab.customer.templates import Phrases
from ecomlab.customer.visits import VISITS
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.cart.audit import CartAudit
from ecomlab.envs.cart.player import TOTAL, CartPlayer
from ecomlab.reward import Verdict, cart_credit
from ecomlab.seeding import whole_near
from ecomlab.slots import NO_PRICE
from ecomlab.steps import draw_kinds
from ecomlab.task import Goal, Problem, SellOut, Task, TaskKey
from ecomlab.tool import RefusedError, tool
from ecomlab.wishes import Of, Packs, Taste, wishes_in
from ecomlab.world.cart import match, wants_of
from ecomlab.world.plain import AtFirst, plain
from ecomlab.world.state import World
from ecomlab.world.tools.cart import cart_add, cart_remove, cart_set_quantity, cart_view
from ecomlab.world.tools.catalog import catalog_get_variants, catalog_search, user_get_visit_history


@tool
def submit(
    world: World, done: Annotated[bool, Field(description="The cart is right.")] = True
) -> dict[str, Any]:
    """Hand in the cart as it is; the conversation ends."""
    if not done:
        raise RefusedError("nothing was handed in; call submit with done true when the cart is right")
    return {"submitted": True}


STEPS = ("reference", "joint", "logic", "telling", "taste")
"""Kinds of steps of thought that a cart may hold."""


def _share_values(one: ProductType, other: ProductType) -> bool:
    """Tell whether products of two types may have the same value of the same attribute."""
    values = {attribute.name: {*attribute.values} for attribute in one.attributes}
    return any(values.get(attribute.name, set()) & {*attribute.values} for attribute in other.attributes)


def _is_alone(goal: Goal, item: int) -> bool:
    """Tell whether an item is in no joint demand, wanted in no packs to be counted and of no look that must be seen:
    nothing that happens changes one that is."""
    joint = {place[0]: wish for place, wish in wishes_in(goal.slots).items() if wish.step == "joint"}
    kinds = {wish.described["type"] for wish in joint.values() if isinstance(wish, Of)}
    counted = any(isinstance(value, Packs | Taste) for value in goal.of(item).values())
    return item not in joint and not counted and goal.get("type", item=item) not in kinds


class Cart(Environment):
    id, version = "CART", 4
    brief = "Put exactly what the customer wants into the cart: product, variant, quantity. Tell them what sells out."
    tools = (
        catalog_search, catalog_get_variants,
        cart_add, cart_remove, cart_set_quantity, cart_view, user_get_visit_history,
    )  # fmt: skip
    submit, player, auditor, questions = submit, CartPlayer, CartAudit, (TOTAL,)
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, types = key.rng("cart"), shop.catalog.stocked_types
        count = min(whole_near(random, axes.cart.items), len(types) - 1)
        drawn = [types[i] for i in random.permutation(len(types)).tolist()]
        kinds = draw_kinds(axes, STEPS, key.rng("kinds"), {"telling": 1})
        if "joint" in kinds:  # two things that may be alike
            drawn[1:] = sorted(drawn[1:], key=lambda kind: not _share_values(drawn[0], kind))
        names = [kind.name for kind in drawn[: count + 1 + VISITS * axes.history]]
        if count < 2 or not _has_prices(names[: count + 1], shop):  # a total of one thing is its price
            kinds = [kind for kind in kinds if kind != "telling"]
        goal, visits, steps = goals.draw_items(
            names[:count], names[count + 1 :], axes, key, shop, random, kinds
        )
        if "telling" in kinds:
            goal, steps = replace(goal, asks={TOTAL.slot: "total"}), [*steps, "telling"]
        known, alone = (
            plain(goal, AtFirst(shop, {"visits": visits})),
            [i for i in range(count) if _is_alone(goal, i)],
        )
        able = [i for i in alone if (i, "if") not in goal.slots]  # whose end is not decided by stock anyway
        events, short = shortages.draw_rushes(known, able, visits, axes, shop, random)
        if random.random() < axes.p_switch:
            free = [i for i in alone if i not in short]
            left = {e.item: shortages.Left(e, shop) for e in events if isinstance(e, SellOut)}
            change = goal_changes.draw_change(known, free, left, names[count:], axes, key, shop, random)
            events += [change] if change else []
        return Problem(goal, {"visits": visits}, CartPlayer.need(goal), events, steps=steps)

    def is_right(self, taken: Goal, goal: Goal, task: Task, shop: Shop) -> bool:
        first, select = AtFirst(shop, task.world), shop.catalog.select
        for mine, right in zip(
            *(wants_of(plain(one.after(task.events), first)) for one in (taken, goal)), strict=True
        ):
            rows = select(mine.constraints)
            if np.isin(rows, select(right.constraints)).sum() <= LUCK * len(rows):
                return False
        return True

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        wants = wants_of(goal)
        matched = match(wants, world)
        got, units, right = sum(world.cart.values()), sum(want.quantity for want in wants), sum(matched.held)
        claims: list[Any] = [product_id for product_id, _ in world.cart]
        claims += [line for line in world.cart if line[1] is not None]
        if right == got == units:
            return Verdict(1.0, True, f"the cart holds exactly the {units} units wanted", tuple(claims))
        why = f"{right} of {units} wanted units are in the cart: {self.reasons(goal, world, answer, first)}"
        return Verdict(cart_credit(right, matched.near, got, units), False, why, tuple(claims))

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        return of_product(goal, world, thing, identifies=True)


def _has_prices(kinds: Sequence[str], shop: Shop) -> bool:
    """Tell whether every product of these types has a price."""
    prices = shop.catalog.price_cents
    return not any((prices[shop.catalog.type_rows(kind)] == NO_PRICE).any() for kind in kinds)
