"""Playing an episode again in which one message is another: up to it everything is as it was, and the player goes on
from there with the same randomness in every turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from ecomlab.episode.episode import Episode
from ecomlab.episode.play import record
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.local import BATCH, check_decoding
from ecomlab.evaluation.scripted import ScriptedContestant, perturbed
from ecomlab.models.batch import draw_task, play_batch
from ecomlab.seeding import rng
from ecomlab.suggest import raised
from ecomlab.task import Message, Player, Task

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.policy import Policy
    from ecomlab.models.samplers.cached import CachedSampler, Limits, Sampled


@dataclass(frozen=True)
class Forced:
    """A message that is said in a turn, from 1, in place of the player's own."""

    turn: int
    message: Message
    anew: bool = False
    """What the player draws after it is drawn anew, the same whatever the message is."""


class Runner(Protocol):
    """A player that can be made to say something else in one turn."""

    def play(
        self, jobs: Sequence[Job], forced: Sequence[Forced | None], shop: "Shop"
    ) -> list[Trajectory | None]:
        """Play each job, with its forced message if it has one; None where our own failure left nothing to look at."""


class ScriptedRunner:
    """A script by name, such as "reference" or "perturbed". It believes to have said what it would have said."""

    def __init__(self, name: str) -> None:
        self.contestant = ScriptedContestant(name)

    def play(
        self, jobs: Sequence[Job], forced: Sequence[Forced | None], shop: "Shop"
    ) -> list[Trajectory | None]:
        return [self._play(job, one, shop) for job, one in zip(jobs, forced, strict=True)]

    def _play(self, job: Job, forced: Forced | None, shop: "Shop") -> Trajectory | None:
        task = draw_task(job.env, job.d, job.seed, shop, job.axes)
        if not isinstance(task, Task):
            return None
        episode, turn, stream = Episode(task, shop), 0, TurnStream(job)
        player = self._player(job, episode, stream)
        try:
            while not episode.done:
                turn += 1
                stream.begin(turn, forced)
                message = player(list(episode.messages), episode.tools)
                episode.act(forced.message if forced and forced.turn == turn else message)
        except Exception as error:
            episode.fail(raised(error))
        return record(episode)

    def _player(self, job: Job, episode: Episode, stream: "TurnStream") -> Player:
        """Make the player. The perturbed one slips by the stream; no other of `PLAYERS` draws anything as it plays."""
        if self.contestant.name != "perturbed":
            return self.contestant.player(job, episode)
        random: Any = stream  # it has what is used of a generator
        return perturbed(episode, random)


class LocalRunner:
    """Weights in this process. The tokens of a forced message are fed to the model as if it had sampled them; they
    count towards its context, not towards what it may say."""

    def __init__(
        self,
        policy: "Policy",
        decoding: str = "sampled",
        temperature: float = 1.0,
        limits: "Limits | None" = None,
        batch: int = BATCH,
    ) -> None:
        """Raises ValueError for an unknown decoding, and a temperature that is not positive."""
        from ecomlab.models.samplers.cached import CachedSampler

        self.policy, self.batch = policy, batch
        greedy = check_decoding(decoding) == "greedy"
        self.sampler = CachedSampler(policy.model, policy.renderer.stop_ids, limits, temperature, greedy)

    def play(
        self, jobs: Sequence[Job], forced: Sequence[Forced | None], shop: "Shop"
    ) -> list[Trajectory | None]:
        left, played = iter(zip(jobs, forced, strict=True)), list[Trajectory | None]()
        while chunk := list(islice(left, self.batch)):
            played += self._play([job for job, _ in chunk], [one for _, one in chunk], shop)
        return played

    def _play(
        self, jobs: Sequence[Job], forced: Sequence[Forced | None], shop: "Shop"
    ) -> Iterator[Trajectory | None]:
        tasks = [draw_task(job.env, job.d, job.seed, shop, job.axes) for job in jobs]
        able = [number for number, task in enumerate(tasks) if isinstance(task, Task)]
        renderer, streams = _Dialogues(self.policy.renderer), [TurnStream(jobs[number]) for number in able]
        sampler = _ForcedSampler(self.sampler, [forced[number] for number in able], renderer, streams)
        mine: Any = streams  # they have what a sampler uses of a generator
        rollouts = play_batch([tasks[number] for number in able], mine, shop, sampler, renderer)
        found = {number: rollout.trajectory for number, rollout in zip(able, rollouts, strict=True)}
        return iter([found.get(number) for number in range(len(jobs))])


class TurnStream:
    """The random numbers of an episode, begun anew in every turn: what was said before does not shift them."""

    def __init__(self, job: Job) -> None:
        self._name = ("cascade", job.env, job.d, job.seed, job.trial)
        self.begin(0)

    def begin(self, turn: int, forced: Forced | None = None) -> None:
        """Begin the numbers of a turn: other ones after a forced message that has them drawn anew."""
        anew = forced is not None and forced.anew and turn > forced.turn
        self._random = rng(*self._name, turn, *(("anew",) if anew else ()))

    def random(self) -> float:
        """Draw a number in [0, 1)."""
        return float(self._random.random())


class _Dialogues:
    """A renderer that remembers the dialogues that it has made, in order."""

    def __init__(self, renderer: Any) -> None:
        self._renderer = renderer
        self.made: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._renderer, name)

    def dialogue(self) -> Any:
        self.made.append(self._renderer.dialogue())
        return self.made[-1]


class _ForcedSampler:
    """A sampler that says the forced message of a row in its turn, without asking the model, and has the model read it
    before its next turn."""

    def __init__(
        self,
        sampler: "CachedSampler",
        forced: Sequence[Forced | None],
        renderer: _Dialogues,
        streams: Sequence[TurnStream],
    ) -> None:
        self._sampler, self._forced, self._renderer, self._streams = sampler, forced, renderer, streams
        self._turns = [0] * len(forced)
        self._unread: dict[int, list[int]] = {}
        """Tokens that the model has not read yet, by row."""
        self._speaking: set[int] = set()
        """Rows whose turn goes on in the next call."""

    def start(self, streams: Sequence[Any]) -> None:
        if len(self._renderer.made) != len(self._forced):
            raise RuntimeError(
                "an episode could not be opened, so rows and forced messages do not belong together"
            )
        self._sampler.start(streams)

    def turn(self, rows: Sequence[int], inputs: Sequence[Sequence[int]]) -> list["Sampled | None"]:
        from ecomlab.models.samplers.cached import Sampled

        said: dict[int, Sampled | None] = {}
        asked: list[tuple[int, list[int]]] = []
        for row, new in zip(rows, inputs, strict=True):
            if row not in self._speaking:
                self._turns[row] += 1
                self._streams[row].begin(self._turns[row], self._forced[row])
            one = self._forced[row]
            if one is not None and one.turn == self._turns[row]:
                ids = self._renderer.made[row].say(one.message)
                self._unread[row] = [*new, *ids]
                said[row] = Sampled(ids, [0.0] * len(ids), truncated=False)
            else:
                asked.append((row, [*self._unread.pop(row, []), *new]))
        if asked:
            self._sampler.hold(list(said))
        answers = self._sampler.turn([row for row, _ in asked], [ids for _, ids in asked]) if asked else []
        for (row, _), answer in zip(asked, answers, strict=True):
            said[row] = answer
            (self._speaking.discard if answer is not None else self._speaking.add)(row)
        return [said[row] for row in rows]
