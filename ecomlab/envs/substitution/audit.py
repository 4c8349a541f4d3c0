"""The audit of SUB: faults of a list of replacements, and the chance of guessing one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.customer import demands
from ecomlab.customer.demand_draws import other_demands
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import Goal, Place, SellOut, Task
from ecomlab.wishes import AnyBut, OneOf, has_wish
from ecomlab.world.cart import Want, constraints_of
from ecomlab.world.faults import list_faults
from ecomlab.world.plain import AtFirst, plain
from ecomlab.world.state import World
from ecomlab.world.substitutes import (
    fewest,
    narrowed,
    noun,
    original_of,
    rank_keys,
    requirements,
    stages_of,
)


class SubstitutionAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        ids = list((answer or {}).get("product_ids", ()))
        if not ids:
            return [] if answer is None else [Fault("missed item", "list", words="nothing was submitted")]
        wanted = requirements(goal, world.shop)
        rows = world.in_stock(world.catalog.select(wanted))
        rows = narrowed(rows[rows != original_of(goal, world.shop)], goal, world.shop)
        found = list_faults(ids, min(int(goal["count"]), len(rows)), wanted, world)
        verdict = self.env.verify(goal, world, answer or {}, first)
        if not found and not verdict.correct:
            hidden = [
                name for name in goal.of() if name.startswith("was_") or name in ("which", "if", "worth")
            ]
            found = [Fault("not the best", "list", ",".join(ids), ("must", *hidden), words=verdict.why)]
        return found

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        slots = {c.field: _as_wished(c) for c in requirements(goal, world.shop) if c.field != "type"}
        return [Want(0, goal["type"], slots, None, int(goal["count"]))]

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        name = slot[1]
        if name.startswith("was_") or name == "which":
            others = demands.other_originals(goal, task.world["gone"], shop)
            return [
                one for other in others if (one := demands.told_anew(other, goal, task, shop)) is not None
            ]
        if name == "worth":
            return goal[name].others()
        if name == "must":
            return [[noun(attribute)] for attribute in shop.catalog.attributes(original_of(goal, shop))]
        if has_wish({name: goal[name]}):
            known = plain(goal.drop_slots(name), AtFirst(shop, task.world))
            rows = stages_of(known, task.events, task.world["gone"], shop)[-1]
            return other_demands(name, goal, known, rows, task, shop)
        return slot_type(name).alternatives(goal[name])[:1]

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        known = plain(goal, AtFirst(shop, task.world))
        enough = fewest(known, task.events, task.world["gone"], shop)
        return bool(enough) and demands.meant(goal, task.world["visits"], shop) == [original_of(goal, shop)]

    def chance(self, task: Task, shop: Shop) -> float:
        """Compute the chance of picking, of the visits that are in stock, as many as are asked for and there are, where
        all of the best are among them: at the start or after the events, whichever is more likely."""
        goal, gone = plain(task.goal, AtFirst(shop, task.world)), task.world["gone"]
        seen = set(shop.catalog.rows_of(task.world["visits"]).tolist())
        others = seen.difference(shop.catalog.type_rows(goal["type"]))
        stages = stages_of(goal, task.events, gone, shop)
        in_stock = stages_of(goal, task.events, gone, shop, required=False)
        pairs = zip(stages, in_stock, strict=True)
        return max(
            _picked(best, others | seen.intersection(rows.tolist()), goal, shop) for best, rows in pairs
        )

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        goal = plain(task.goal.after(task.events), AtFirst(shop, task.world))
        if "if" not in goal:
            return {}
        wish, gone = goal["if"].value, task.world["gone"]
        stocks = [event for event in task.events if isinstance(event, SellOut)]
        rows = stages_of(goal.drop_slots("if"), stocks, gone, shop)[-1]
        able = shop.catalog.select(
            constraints_of(wish.type, {wish.slot: wish.first, PRICE.name: wish.limit}), rows
        )
        return {"logic: the condition holds": bool(len(able))}


def _as_wished(wanted: Constraint) -> Any:
    """Return the value of a slot that a constraint was built from."""
    if not isinstance(wanted.value, tuple):
        return wanted.value
    return OneOf(wanted.value) if wanted.op == "in" else AnyBut(wanted.value)


def _picked(rows: np.ndarray, seen: set[int], goal: Goal, shop: Shop) -> float:
    """Compute the chance that as many of `seen` as are asked for, picked at random, are the best of `rows`."""
    count, alike = min(goal["count"], len(rows)), -rank_keys(rows, goal, shop)
    if not count or len(seen) < count:
        return 0.0
    cut = int(np.sort(alike)[::-1][count - 1])
    above, tied = set(rows[alike > cut].tolist()), set(rows[alike == cut].tolist())
    if not above <= seen:
        return 0.0
    return math.comb(len(tied & seen), count - len(above)) / math.comb(len(seen), count)
