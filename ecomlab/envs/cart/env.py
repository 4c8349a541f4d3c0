"""CART: put exactly the products, variants and quantities that the customer wants into the cart."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.catalog import Shop
from ecomlab.customer import goal_changes, goals, shortages
from ecomlab.customer.dialogue import GUESSES, PATIENCE
from ecomlab.customer.goals import QUANTITIES
from ecomlab.customer.opinions import Opinion, Thing, of_product
from ecomlab.customer.templates import Phrases
from ecomlab.customer.visits import VISITS
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.cart.player import CartPlayer
from ecomlab.reward import Fault, Verdict, cart_credit
from ecomlab.seeding import whole_near
from ecomlab.task import Goal, Instead, Place, Problem, SellOut, Task, TaskKey
from ecomlab.tool import RefusedError, tool
from ecomlab.world.cart import Match, Want, identity_of, match, wants_of
from ecomlab.world.faults import faults, named, told
from ecomlab.world.state import World, options_of
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


class Cart(Environment):
    id, version = "CART", 3
    brief = "Put exactly what the customer wants into the cart: product, variant, quantity. Tell them what sells out."
    tools = (
        catalog_search, catalog_get_variants,
        cart_add, cart_remove, cart_set_quantity, cart_view, user_get_visit_history,
    )  # fmt: skip
    submit, player = submit, CartPlayer
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, types = key.rng("cart"), shop.catalog.drawable_types
        count = min(whole_near(random, axes.cart.items), len(types) - 1)
        names = [types[i].name for i in random.permutation(len(types)).tolist()]
        names = names[: count + 1 + VISITS * axes.history]
        goal, visits = goals.draw_items(names[:count], names[count + 1 :], axes, key, shop, random)
        events, short = shortages.draw_rushes(goal, axes, key, shop, random)
        if random.random() < axes.p_switch:
            free = [i for i in range(count) if i not in short]
            left = {e.item: shortages.Left(e, key, shop) for e in events if isinstance(e, SellOut)}
            change = goal_changes.draw_change(goal, free, left, names[count:], axes, key, shop, random)
            events += [change] if change else []
        return Problem(goal, {"visits": visits}, CartPlayer.need(goal), events)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        wants = wants_of(goal)
        matched = match(wants, world)
        got, units, right = sum(world.cart.values()), sum(want.quantity for want in wants), sum(matched.held)
        claims: list[Any] = [product_id for product_id, _ in world.cart]
        claims += [line for line in world.cart if line[1] is not None]
        if right == got == units:
            return Verdict(1.0, True, f"the cart holds exactly the {units} units wanted", tuple(claims))
        why = f"{right} of {units} wanted units are in the cart: {told(_wrong(wants, matched, world))}"
        return Verdict(cart_credit(right, matched.near, got, units), False, why, tuple(claims))

    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        wants = wants_of(goal)
        matched = match(wants, world)
        found = [_fault(wants, matched, line, world) for line in matched.extra]
        blamed = {fault.place for fault in found}
        for want, held in zip(wants, matched.held, strict=True):
            place = f"item {want.item}"
            if held == want.quantity or place in blamed or (not held and answer is None):
                continue
            words = f"{held} of {want.quantity} units of the {want.type}" if held else f"no {want.type}"
            kind, slots = ("wrong quantity", ("quantity",)) if held else ("missed item", ("type",))
            found.append(Fault(kind, place, str(held), slots, words=words))
        return found

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        return wants_of(goal)

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        return of_product(goal, world, thing, identifies=True)

    def chance(self, task: Task, shop: Shop) -> float:
        """Bound the chance of finding all wanted visits by one bit at a time, one unit each, in random order.

        From one find to the next a guesser has a first pick and `PATIENCE` more, each after a correction, where an
        option is wanted of one in so many; and once in the episode `GUESSES` - 1 more, by asking whether a visit is the
        one that is meant. Of all sets of places that the wanted visits can have in the order, those with no longer
        waits are found. What the customer may do without in the end need not be.
        """
        given_up = {e.item for e in task.events if isinstance(e, Instead) and e.prefers == "drop"}
        after = wants_of(task.goal.after(task.events))
        left = [want for want in after if want.item not in given_up] or after
        return max(self._found(wants, task, shop) for wants in (wants_of(task.goal), left))

    def _found(self, wants: Sequence[Want], task: Task, shop: Shop) -> float:
        catalog = shop.catalog
        if any(want.quantity != 1 for want in wants):
            return 0.0
        rows = [row for row in map(catalog.row, task.world["visits"]) if row is not None]
        good = math.prod(sum(catalog.satisfies(row, want.constraints) for row in rows) for want in wants)
        picks = [
            1 + PATIENCE / (len(options_of(task.key, catalog, want.type)) if want.option else 1)
            for want in wants
        ]
        found = math.prod(picks) * (1 + sum((GUESSES - 1) / pick for pick in picks))
        return min(1.0, good * found / math.comb(len(rows), len(wants)))

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other options, or the slots of other visited products that fit everything stated."""
        item, name = slot
        slots = goal.of(item)
        if name == "option":
            return [
                option
                for option in options_of(task.key, shop.catalog, slots["type"])
                if option != slots["option"]
            ]
        if name == "quantity":  # where units run short, the customer says how many they take
            short = any(isinstance(event, SellOut) and event.item == item for event in task.events)
            return [count for count in QUANTITIES if count != slots[name] and not short]
        hidden = [n for n in identity_of(slots) if (item, n) in goal.withheld]
        stated = {n: value for n, value in slots.items() if n not in hidden}
        fitting = goals.that_fit(task.world["visits"], stated, shop)
        others = (goals.slot_values(shop, row, hidden, slots) for row in fitting)
        return [goal.with_(other, item) for other in others if other and other[name] != slots[name]]

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        """Tell whether there is enough of everything before anything sells out. Afterwards there is, or of what the
        customer takes instead."""
        catalog, changed = shop.catalog, goal.after(task.events)
        wants = [*wants_of(goal), *wants_of(changed)]
        return all((catalog.stock[catalog.select(w.constraints)] >= w.quantity).any() for w in wants)


def _wrong(wants: Sequence[Want], matched: Match, world: World) -> list[str]:
    """List what is wrong with a cart: lines that no wish accounts for, and what is missing."""
    catalog, wrong = world.catalog, list[str]()
    for (product_id, variant), units in matched.extra.items():
        name, kind = named(product_id, catalog), catalog.type_of(world.row(product_id)).name
        meant = next((want for want in wants if want.type == kind), None)
        if meant is None:
            wrong.append(f"{name} is not wanted")
            continue
        broken = faults(product_id, meant.constraints, world, had=True)
        if not broken and meant.option not in (None, variant):
            broken = [f"{name} is in {variant or 'no variant'}, wanted {meant.option}"]
        wrong += broken or [f"{units} too many of {name}"]
    there = {catalog.type_of(world.row(product_id)).name for product_id, _ in matched.extra}
    for want, held in zip(wants, matched.held, strict=True):
        if held < want.quantity and want.type not in there:
            wrong.append(f"{held} of {want.quantity} units of the {want.type}" if held else f"no {want.type}")
    return wrong


def _fault(wants: Sequence[Want], matched: Match, line: tuple[str, str | None], world: World) -> Fault:
    """Tell what is wrong with a line for which no wish accounts, in whole or in part."""
    catalog, (product_id, variant) = world.catalog, line
    row = world.row(product_id)
    name = catalog.title(row)
    seen = f"{name} in {variant}" if variant else name
    mine = [
        (want, held)
        for want, held in zip(wants, matched.held, strict=True)
        if want.type == catalog.type_of(row).name
    ]
    for want, held in mine:
        if want.option in (None, variant) and catalog.satisfies(row, want.constraints):
            units = held + matched.extra[line]
            words = f"{units} units of {name}, wanted {want.quantity}"
            return Fault("wrong quantity", f"item {want.item}", str(units), ("quantity",), words=words)
    lacking = [want for want, held in mine if held < want.quantity]
    if not lacking:
        return Fault("unwanted item", seen, product_id, ("type",), words=f"{name} is not wanted")
    want = min(lacking, key=lambda w: not catalog.satisfies(row, w.constraints))
    broken = tuple(c.field for c in want.constraints if not catalog.satisfies(row, (c,)))
    if broken:
        words = told(faults(product_id, want.constraints, world, had=True))
        return Fault("wrong product", f"item {want.item}", product_id, broken, words=words)
    words = f"{name} is in {variant or 'no variant'}, wanted {want.option}"
    return Fault(
        "wrong variant", f"item {want.item}", f"{product_id} {variant or ''}", ("option",), words=words
    )
