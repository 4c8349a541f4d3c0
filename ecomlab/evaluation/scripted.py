"""Scripts as contestants: the reference player, the oracle, and the attackers, so that an evaluation can be tried
without a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.customer.llm import Chat, Wording
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import finish
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.customers import customer_identity, customer_notes, customer_usage
from ecomlab.evaluation.faults import faults_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.laws.attackers import blind, naive, positional
from ecomlab.models.batch import draw_task
from ecomlab.players.base import Perturbation
from ecomlab.seeding import rng
from ecomlab.suggest import raised, unknown
from ecomlab.task import Player, Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

Make = Callable[[Job, Episode], Player]
RATE = 0.1
"""Mistakes a decision of the perturbed player."""


def perturbed(episode: Episode, random: np.random.Generator) -> Player:
    """Make the reference player of an episode, with slips that are drawn from `random`."""
    made: Player = episode.env.reference_player(episode.shop, Perturbation(random, RATE))
    return made


def _perturbed(job: Job, episode: Episode) -> Player:
    return perturbed(episode, rng("perturbed", job.env, job.d, job.seed, job.trial))


PLAYERS: dict[str, Make] = {
    "reference": lambda job, episode: ENVIRONMENTS[job.env].reference_player(episode.shop),
    "courteous": lambda job, episode: ENVIRONMENTS[job.env].reference_player(episode.shop, courteous=True),
    "perturbed": _perturbed,
    "oracle": lambda job, episode: ENVIRONMENTS[job.env].oracle(episode),
    "naive": lambda job, episode: naive(ENVIRONMENTS[job.env])(job.seed + job.trial),
}
"""Scripts that play every environment; the attackers differ between them."""


@lru_cache(maxsize=16)
def attackers_of(env: str) -> dict[str, Any]:
    """Make the attackers of an environment by name; each is a function from a seed to a player."""
    return {**blind(ENVIRONMENTS[env]), **positional(ENVIRONMENTS[env])}


def known_scripts() -> list[str]:
    """List the names of all scripts, of every environment."""
    return [*PLAYERS, *dict.fromkeys(name for env in ENVIRONMENTS for name in attackers_of(env))]


class ScriptedContestant:
    """A script by name: one of `PLAYERS`, or an attacker such as "say nothing", as far as an environment has it."""

    at_once = 1

    def __init__(self, name: str, strict: bool = False, customer: Chat | None = None) -> None:
        if name not in PLAYERS and name not in known_scripts():
            raise ValueError(unknown("script", name, known_scripts()))
        self.name, self.strict, self.customer = name, strict, customer

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "kind": "script",
            "model": self.name,
            "strict": self.strict,
            **customer_identity(self.customer),
        }

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Transcript]:
        """Play the jobs one by one. Raises ValueError for an environment that has no such attacker."""
        for job in jobs:
            if self.name not in PLAYERS and self.name not in attackers_of(job.env):
                raise ValueError(unknown(f"attacker of {job.env}", self.name, attackers_of(job.env)))
            yield self._play(job, shop)

    def _play(self, job: Job, shop: "Shop") -> Transcript:
        task = draw_task(job.env, job.d, job.seed, shop, job.axes)
        if not isinstance(task, Task):
            return Transcript.of(job, None, unscored="task", notes={"why": raised(task)})
        wording = Wording(self.customer) if self.customer else None
        episode = Episode(task, shop, strict=self.strict, wording=wording)
        trajectory = finish(self.player(job, episode), episode)
        said = sum(message["role"] == "assistant" for message in trajectory.messages)
        failed = trajectory.score.unscored
        return Transcript.of(
            job=job,
            trajectory=trajectory,
            usage={"agent": Usage(requests=said), **customer_usage(trajectory)},
            faults=faults_of(trajectory),
            unscored="bug" if failed else "",
            notes={**({"why": trajectory.score.why} if failed else {}), **customer_notes(trajectory)},
        )

    def player(self, job: Job, episode: Episode) -> Player:
        if self.name in PLAYERS:
            return PLAYERS[self.name](job, episode)
        made: Player = attackers_of(job.env)[self.name](job.seed + job.trial)
        return made
