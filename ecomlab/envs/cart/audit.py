"""The audit of CART: faults of a cart, and the chance of guessing one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer import goals
from ecomlab.customer.dialogue import GUESSES, PATIENCE
from ecomlab.customer.goals import QUANTITIES
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.slots import PRICE
from ecomlab.task import Goal, Instead, Place, SellOut, Task
from ecomlab.wishes import If, Taste
from ecomlab.world.cart import Match, Want, identity_of, match, wants_of
from ecomlab.world.faults import faults, named, told
from ecomlab.world.plain import AtFirst, branch_of, plain
from ecomlab.world.state import World


class CartAudit(Audit):
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

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        """List other options, or the slots of other visited products that fit everything stated."""
        item, name = slot
        slots = goal.of(item)
        if name == "option":
            return [o for o in _visited_options(slots["type"], task, shop) if o != slots["option"]]
        if name == "quantity":  # where units run short, the customer says how many they take
            short = any(isinstance(event, SellOut) and event.item == item for event in task.events)
            return [count for count in QUANTITIES if count != slots[name] and not short]
        if isinstance(wish := slots[name], If):
            if wish.other is None:
                return []
            return [replace(wish, first=wish.other, other=wish.first, words=wish.words[::-1])]
        if isinstance(wish, Taste):  # whatever they like, they say the same
            return []
        hidden = [n for n in identity_of(slots) if n != "if" and (item, n) in goal.withheld]
        slots = plain(goal, AtFirst(shop, task.world)).of(item)
        stated = {n: value for n, value in slots.items() if n not in hidden}
        fitting = goals.that_fit(task.world["visits"], stated, shop)
        others = (goals.slot_values(shop, row, hidden, slots) for row in fitting)
        return [goal.set_slots(other, item) for other in others if other and other[name] != slots[name]]

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        """Tell whether there is enough of everything before anything sells out. Afterwards there is, or of what the
        customer takes instead."""
        catalog, changed = shop.catalog, goal.after(task.events)
        first = AtFirst(shop, task.world)
        wants = [*wants_of(plain(goal, first)), *wants_of(plain(changed, first))]
        return all((catalog.stock[catalog.select(w.constraints)] >= w.quantity).any() for w in wants)

    def chance(self, task: Task, shop: Shop) -> float:
        """Bound the chance of finding all wanted visits by one bit at a time, one unit each, in random order.

        From one find to the next a guesser has a first pick and `PATIENCE` more, each after a correction, where an
        option is wanted of one in so many; and once in the episode `GUESSES` - 1 more, by asking whether a visit is the
        one that is meant. Of all sets of places that the wanted visits can have in the order, those with no longer
        waits are found. What the customer may do without in the end need not be.
        """
        given_up = {e.item for e in task.events if isinstance(e, Instead) and e.prefers == "drop"}
        first = AtFirst(shop, task.world)
        after = wants_of(plain(task.goal.after(task.events), first))
        left = [want for want in after if want.item not in given_up] or after
        return max(self._found(w, task, shop) for w in (wants_of(plain(task.goal, first)), left))

    def _found(self, wants: Sequence[Want], task: Task, shop: Shop) -> float:
        catalog = shop.catalog
        if any(want.quantity != 1 for want in wants):
            return 0.0
        rows = [row for row in map(catalog.row, task.world["visits"]) if row is not None]
        good = math.prod(sum(catalog.satisfies(row, want.constraints) for row in rows) for want in wants)
        picks = [
            1 + PATIENCE / (max(1, len(_visited_options(want.type, task, shop))) if want.option else 1)
            for want in wants
        ]
        found = math.prod(picks) * (1 + sum((GUESSES - 1) / pick for pick in picks))
        return min(1.0, good * found / math.comb(len(rows), len(wants)))

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        goal, first = task.goal.after(task.events), AtFirst(shop, task.world)
        known = plain(goal, first, conditions=False)
        wishes = {item: wish for item in goal.items if (wish := goal.get("if", item=item)) is not None}
        return {
            f"logic: the condition holds, {item}": PRICE.name
            in (found := branch_of(wish, known.of(item), first))
            and found.get(wish.slot) == wish.first
            for item, wish in wishes.items()
        }


def _visited_options(kind: str, task: Task, shop: Shop) -> tuple[str, ...]:
    """List the options in which every visited product of a type comes: any of them may be wanted."""
    rows = [row for row in map(shop.catalog.row, task.world["visits"]) if row is not None]
    return shop.catalog.shared_options([row for row in rows if shop.catalog.type_of(row).name == kind])


def _fault(wants: Sequence[Want], matched: Match, line: tuple[str, str | None], world: World) -> Fault:
    """Describe the fault of a line that no wish accounts for, in whole or in part."""
    catalog, (product_id, variant) = world.catalog, line
    row = world.row(product_id)
    name, seen = named(product_id, catalog), f"{catalog.title(row)}{f' in {variant}' if variant else ''}"
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
