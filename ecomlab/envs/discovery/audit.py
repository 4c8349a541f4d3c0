"""The audit of PD: faults of a recommendation, and other wishes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, Task
from ecomlab.world import ranking, reviews, unmet
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
        left = unmet.nearest_in(goal, world)
        found = list_faults(ids, goal["count"], ranking.constraints(left.goal), world)
        found += [one for one in reviews.faults(ids, goal, world) if one.key not in {f.key for f in found}]
        verdict = self.env.verify(goal, world, answer or {}, first)
        wrong = unmet.fault_of((answer or {}).get("unmet"), left, goal, world)
        if not found and not wrong and not verdict.correct:
            by = "worth" if "worth" in goal else "importance"
            found = [Fault("not the best", "list", ",".join(ids), (by,), words=verdict.why)]
        return [*found, *([wrong] if wrong else ())]

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        return wants_of(goal)

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        name, value = slot[1], goal[slot[1]]
        if name in ("importance", "give_way"):
            turned = [[*value[1:], value[0]], [value[1], value[0], *value[2:]]] if len(value) > 1 else []
            return [one for n, one in enumerate(turned) if one not in turned[:n]]
        if name in ("worth", "said"):
            return value.others()
        return self.product_values(name, value, goal["type"], shop)

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        left = unmet.stages(goal, task.events, shop)
        return min(len(one.rows) for one in left) >= goal["count"]

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        left = unmet.stages(task.goal, task.events, shop)[
            -1
        ]  # a list of several is no bit, whatever it is ranked by
        return {"none: something fits": not left.dropped} if "give_way" in left.goal else {}
