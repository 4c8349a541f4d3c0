"""Contestants that are code: scripts by name, such as the reference player, and functions of the user."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from ecomlab import own_code
from ecomlab.catalog import Shop
from ecomlab.customer.llm import Chat, Wording
from ecomlab.difficulty import STEPS
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.episode.play import finish, record
from ecomlab.evaluation.contestant import Job, Usage, customer_identity, customer_notes, customer_usage
from ecomlab.evaluation.endpoint.background import iterate, run_each
from ecomlab.evaluation.faults import faults_of
from ecomlab.evaluation.transcript import Transcript
from ecomlab.laws.attackers import blind, naive, positional
from ecomlab.models.batch import draw_task
from ecomlab.players.base import Perturbation
from ecomlab.seeding import digest, rng
from ecomlab.suggest import raised, unknown
from ecomlab.task import Message, Player, Task

Make = Callable[[Job, Episode], Player]
Function = Callable[[list[Message], list[dict[str, Any]]], Message | Awaitable[Message]]
RATE = 0.1
"""Mistakes per decision of the perturbed player."""
AT_ONCE = 8
"""Concurrent episodes of an async function."""


def _perturbed(job: Job, episode: Episode) -> Player:
    """Make the reference player of an episode that slips at random."""
    slips = Perturbation(rng("perturbed", job.env, job.d, job.seed, job.trial), RATE)
    made: Player = episode.env.reference_player(episode.shop, slips)
    return made


def _lacking(*kinds: str) -> Make:
    """Return a function that makes a reference player without these kinds of steps of thought."""
    return lambda job, episode: ENVIRONMENTS[job.env].reference_player(episode.shop, lacks=kinds)


PLAYERS: dict[str, Make] = {
    "reference": lambda job, episode: ENVIRONMENTS[job.env].reference_player(episode.shop),
    "courteous": lambda job, episode: ENVIRONMENTS[job.env].reference_player(episode.shop, courteous=True),
    "perturbed": _perturbed,
    "oracle": lambda job, episode: ENVIRONMENTS[job.env].oracle(episode),
    "naive": lambda job, episode: naive(ENVIRONMENTS[job.env])(job.seed + job.trial),
    "shortcut": _lacking(*STEPS),
    **{f"without {kind}": _lacking(kind) for kind in STEPS},
}
"""Scripts that play every environment; the attackers differ between them. *shortcut* takes no step of thought, *without
logic* none of that kind."""


@lru_cache(maxsize=16)
def attackers_of(env: str) -> dict[str, Any]:
    """Make the attackers of an environment by name; each is a function from a seed to a player."""
    return {**blind(ENVIRONMENTS[env]), **positional(ENVIRONMENTS[env])}


def known_scripts() -> list[str]:
    """List the names of all scripts. This is slow, because it builds the attackers of every environment."""
    return [*PLAYERS, *dict.fromkeys(name for env in ENVIRONMENTS for name in attackers_of(env))]


def open_episode(job: Job, shop: Shop, strict: bool, customer: Chat | None) -> Episode | Transcript:
    """Begin a job's episode. Return an unscored transcript if the task cannot be drawn or our own code fails."""
    task = draw_task(job.env, job.d, job.seed, shop, job.axes)
    if not isinstance(task, Task):
        return Transcript.of(job, None, unscored="task", notes={"why": raised(task)})
    try:
        return Episode(task, shop, strict=strict, wording=Wording(customer) if customer else None)
    except Exception as error:
        return Transcript.of(job, None, unscored="bug", notes={"why": raised(error)})


def recorded(
    job: Job,
    episode: Episode,
    unscored: str,
    usage: Usage | None = None,
    notes: Mapping[str, Any] | None = None,
    cut: str = "",
    refused: Collection[int] = (),
) -> Transcript:
    """Record an episode that is over. `unscored` is the class of the error that ended it, if any did; `usage` counts
    its messages by default; `cut` and `refused` are those of `faults_of`."""
    try:
        trajectory = record(episode)
    except Exception as error:  # of the verifier
        episode.fail(raised(error))
        trajectory, unscored = record(episode), "bug"
    said = sum(message["role"] == "assistant" for message in trajectory.messages)
    failed = trajectory.score.unscored
    why = {"why": trajectory.score.why} if failed else {}
    return Transcript.of(
        job,
        trajectory,
        {"agent": usage or Usage(requests=said), **customer_usage(trajectory)},
        faults_of(trajectory, cut, refused),
        unscored if failed else "",
        {**(notes or {}), **why, **customer_notes(trajectory)},
    )


class ScriptedContestant:
    """A script by name: one of `PLAYERS`, or an attacker such as "say nothing" if the environment has it."""

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

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        """Play the jobs one by one. Raises ValueError for an environment that has no such attacker."""
        for job in jobs:
            if self.name not in PLAYERS and self.name not in attackers_of(job.env):
                raise ValueError(unknown(f"attacker of {job.env}", self.name, attackers_of(job.env)))
            opened = open_episode(job, shop, self.strict, self.customer)
            if isinstance(opened, Episode):
                finish(self.player(job, opened), opened)
                opened = recorded(job, opened, "bug")
            yield opened

    def player(self, job: Job, episode: Episode) -> Player:
        if self.name in PLAYERS:
            return PLAYERS[self.name](job, episode)
        made: Player = attackers_of(job.env)[self.name](job.seed + job.trial)
        return made


# --- functions ---


class FunctionContestant:
    """A function `f(messages, tools) -> message`, sync or async, a callable object, or a class of such objects, one per
    episode.

    An exception, or a result that is no dict, makes the episode unscored, with the reason; a malformed message is the
    player's own mistake. Episodes of an async function are played `AT_ONCE` at a time, others one by one.
    """

    def __init__(self, function: Any, name: str = "", customer: Chat | None = None) -> None:
        if not callable(function):
            raise TypeError(
                f"a player is a name, or a function of messages and tools that returns a message; got {function!r}"
            )
        self.function, self.customer = function, customer
        self.name = name or getattr(function, "__name__", type(function).__name__)
        call = function if inspect.isroutine(function) else function.__call__
        self.is_async = inspect.iscoroutinefunction(own_code.plain(call))

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name and a digest of its source, so that an edited function is another player."""
        code = {"code": digest(source)} if (source := own_code.source_of(self.function)) else {}
        return {"kind": "function", "model": self.name, **code, **customer_identity(self.customer)}

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        """Play the jobs, several at once if the function is async."""
        if self.is_async:
            yield from iterate(partial(run_each, lambda job: self._play(job, shop), jobs, AT_ONCE))
            return
        for job in jobs:
            opened = open_episode(job, shop, False, self.customer)
            if isinstance(opened, Episode):
                try:
                    player = self._made()
                    while not opened.done:
                        opened.act(_message(player(list(opened.messages), opened.tools)))
                except Exception as error:
                    opened.fail(raised(error))
                opened = recorded(job, opened, "player")
            yield opened

    async def _play(self, job: Job, shop: Shop) -> Transcript:
        opened = open_episode(job, shop, False, self.customer)
        if not isinstance(opened, Episode):
            return opened
        try:
            player = self._made()
            while not opened.done:
                opened.act(_message(await player(list(opened.messages), opened.tools)))
        except Exception as error:
            opened.fail(raised(error))
        return recorded(job, opened, "player")

    def _made(self) -> Any:
        return self.function() if isinstance(self.function, type) else self.function


def _message(returned: Any) -> Any:
    """Return what a function returned. Raises TypeError if it is no message at all, which is a bug of the function."""
    if not isinstance(returned, dict):
        raise TypeError(f'the player returned {returned!r}; return a message {{"role": "assistant", ...}}')
    return returned
