"""The audit of SUB: faults of a list of replacements, and the chance of guessing one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer import demands
from ecomlab.envs.base import Audit
from ecomlab.envs.substitution.player import identity
from ecomlab.reward import Fault
from ecomlab.slots import slot_type
from ecomlab.task import Goal, Place, Task
from ecomlab.world.cart import Want, constraints_of
from ecomlab.world.faults import list_faults
from ecomlab.world.state import World
from ecomlab.world.substitutes import fewest, noun, original_of, requirements, similarity, stages_of


class SubstitutionAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        ids = list((answer or {}).get("product_ids", ()))
        if not ids:
            return [] if answer is None else [Fault("missed item", "list", words="nothing was submitted")]
        found = list_faults(ids, int(goal["count"]), requirements(goal, world.shop), world)
        verdict = self.env.verify(goal, world, answer or {}, first)
        if not found and not verdict.correct:
            hidden = [name for name in goal.of() if name.startswith("was_")]
            found = [Fault("not the best", "list", ",".join(ids), ("must", *hidden), words=verdict.why)]
        return found

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        slots = {c.field: c.value for c in requirements(goal, world.shop) if c.field != "type"}
        return [Want(0, goal["type"], slots, None, int(goal["count"]))]

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        name = slot[1]
        if name.startswith("was_"):
            return demands.other_originals(goal, task.world["gone"], shop)
        if name == "must":
            return [[noun(attribute)] for attribute in shop.catalog.attributes(original_of(goal, shop))]
        return slot_type(name).alternatives(goal[name])[:1]

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        rows = sorted(shop.catalog.row(visit) or 0 for visit in task.world["visits"])
        named = shop.catalog.select(constraints_of(goal["type"], identity(goal.of())), rows).tolist()
        enough = fewest(goal, task.events, task.world["gone"], shop) >= goal["count"]
        return enough and named == [original_of(goal, shop)]

    def chance(self, task: Task, shop: Shop) -> float:
        """Compute the chance of picking, of the visits that are in stock, as many as are asked for, where all of the
        best are among them: at the start or after the events, whichever is more likely."""
        goal, gone = task.goal, task.world["gone"]
        seen = {row for row in map(shop.catalog.row, task.world["visits"]) if row is not None}
        others = seen.difference(shop.catalog.type_rows(goal["type"]))
        stages = stages_of(goal, task.events, gone, shop)
        in_stock = stages_of(goal, task.events, gone, shop, required=False)
        pairs = zip(stages, in_stock, strict=True)
        return max(
            _picked(best, others | seen.intersection(rows.tolist()), goal, shop) for best, rows in pairs
        )


def _picked(rows: np.ndarray, seen: set[int], goal: Goal, shop: Shop) -> float:
    """Compute the chance that as many of `seen` as are asked for, picked at random, are the best of `rows`."""
    count, alike = goal["count"], similarity(rows, goal, shop)
    if min(len(rows), len(seen)) < count:
        return 0.0
    cut = int(np.sort(alike)[::-1][count - 1])
    above, tied = set(rows[alike > cut].tolist()), set(rows[alike == cut].tolist())
    if not above <= seen:
        return 0.0
    return math.comb(len(tied & seen), count - len(above)) / math.comb(len(seen), count)
