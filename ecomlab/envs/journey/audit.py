"""The audit of JOURNEY: the chance of guessing all of its subtasks."""

import math
from dataclasses import replace

from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.task import Task
from ecomlab.world.plain import with_amounts


class JourneyAudit(Audit):
    def chance(self, task: Task, shop: Shop) -> float:
        """Multiply the chances of the subtasks, each with the budgets of all."""
        parts = (
            replace(part, goal=with_amounts(part.goal), turns=task.turns, calls=task.calls)
            for part in task.subtasks
        )
        return math.prod(ENVIRONMENTS[part.env].audit.chance(part, shop) for part in parts)
