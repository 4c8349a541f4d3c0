"""A contestant without a model, for the tests of evaluation: the reference player, with mistakes and failures on
demand."""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecomlab import ENVIRONMENTS, Shop, make_task, play
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.transcript import Transcript
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng


@dataclass
class Script:
    """The reference player with slips at a fixed rate per decision; episodes that `fails` names are unscored."""

    rate: float = 0.0
    fails: Callable[[Job], str] = lambda job: ""
    limits: Mapping[str, int] = field(default_factory=lambda: {"turn": 256})
    name: str = "script"
    wait: float = 0.0
    """Seconds before each episode."""
    killed_after: float = math.inf
    """Episodes after which the process kills itself, as the out-of-memory killer would."""
    played: list[Job] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"kind": "script", "name": self.name, "rate": self.rate, "limits": dict(self.limits)}

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        for job in jobs:
            time.sleep(self.wait)
            if len(self.played) >= self.killed_after:
                os.kill(os.getpid(), 9)
            self.played.append(job)
            task = make_task(job.env, job.d, job.seed, shop, job.axes)
            slips = Perturbation(rng("script", job.env, job.d, job.seed, job.trial), self.rate)
            player = ENVIRONMENTS[job.env].reference_player(shop, slips if self.rate else None)
            usage = {"agent": Usage(requests=2, prompt_tokens=100, cached_tokens=40, completion_tokens=10)}
            yield Transcript.of(job, play(player, task, shop), usage, unscored=self.fails(job))
