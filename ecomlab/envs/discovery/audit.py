"""The audit of PD: faults of a recommendation, and other wishes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, Task
from ecomlab.world import ranking
from ecomlab.world.cart import Want, wants_of
from ecomlab.world.faults import list_faults
from ecomlab.world.state import World


class DiscoveryAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        ids = list((answer or {}).get("product_ids", ()))
        if not ids:
            return [] if answer is None else [Fault("missed item", "list", words="nothing was recommended")]
        found = list_faults(ids, goal["count"], ranking.constraints(goal), world)
        verdict = self.env.verify(goal, world, answer or {}, first)
        if not found and not verdict.correct:
            found = [Fault("not the best", "list", ",".join(ids), ("importance",), words=verdict.why)]
        return found

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        return wants_of(goal)

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        name, value = slot[1], goal[slot[1]]
        if name == "importance":
            return [[*value[1:], value[0]], [value[1], value[0], *value[2:]]]
        return self.product_values(name, value, goal["type"], shop)

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        return min(map(len, ranking.stages(goal, task.events, shop))) >= goal["count"]
