"""The batched collector: many episodes in lockstep, and the groups of rollouts that a training step learns from.

`play_batch` plays one episode per task, all turn by turn together, and records token for token what was sampled.
`collect` draws tasks from a schedule inside the rollout (the level is never stale), plays G copies of each, keeps the
groups that teach something, draws again for those that do not, and reports every group to the schedule.

Several processes (a `Crew`) draw the same tasks, play a share of them each, and exchange whole groups. So each of them
holds what one process alone would have collected: they refill equally often, and their schedules never part.

Our own failures never become rewards: an exception in an episode makes it unscored (SPEC law 10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ecomlab.difficulty import Difficulty
from ecomlab.envs.registry import UnknownEnvironmentError
from ecomlab.episode.episode import Episode, make_task
from ecomlab.reward import Score
from ecomlab.seeding import rng
from ecomlab.task import Task
from ecomlab.train.clock import Clock
from ecomlab.train.distributed import ALONE, Crew
from ecomlab.train.schedule import Schedule

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Dialogue, Renderer
    from ecomlab.models.samplers.cached import Sampler

TRAINING_SEEDS = range(2**31)
EVALUATION_SEEDS = range(2**31, 2**32)
"""Tasks that are trained on and tasks that are evaluated on never share a seed."""

Keep = Literal["correct", "reward"]


@dataclass(frozen=True)
class Rollout:
    """One episode as the trainer needs it. All token lists after the prompt have the same length."""

    task: Task | None
    """None when it could not be drawn."""
    prompt_ids: list[int]
    """What stood before the policy's first word."""
    completion_ids: list[int]
    """Everything from the policy's first token to its last: its own tokens, tool results and customer turns."""
    mask: list[int]
    """1 where the policy sampled the token, 0 elsewhere."""
    logprobs: list[float]
    """Log-probability at sampling time where `mask` is 1, else 0.0."""
    score: Score
    end: str
    """submit, turns, patience, invalid, truncated, or failed (ours)."""
    turns: int

    @property
    def sampled(self) -> int:
        """How many tokens the policy said."""
        return sum(self.mask)


@dataclass
class _Play:
    """One running episode: the only mutable thing here, gone when the batch is done."""

    task: Task | None
    episode: Episode | None = None
    dialogue: "Dialogue | None" = None
    prompt: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    """Ids that the policy has not read yet."""
    turns: int = 0
    end: str | None = None
    failure: str = ""


def draw_task(env: str, difficulty: int, seed: int, shop: "Shop") -> Task | Exception:
    """The task of that key, or what its environment raised instead: `play_batch` takes either.

    Raises UnknownEnvironmentError, or ValueError for a level that does not exist.
    """
    Difficulty.at(
        difficulty
    )  # like an unknown environment, a level that does not exist is the caller's mistake
    try:
        return make_task(env, difficulty, seed, shop)
    except UnknownEnvironmentError:
        raise
    except Exception as error:
        return error


def play_batch(
    tasks: Sequence[Task | Exception],
    streams: Sequence[np.random.Generator],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    clock: Clock | None = None,
) -> list[Rollout]:
    """Play every task once with the policy behind `sampler`; rollout i draws its randomness from `streams[i]` alone.

    An exception in a task's place makes an episode that failed before it began.
    `clock` learns how long the policy ("model") and everything else ("environment") took.
    """
    clock = clock or Clock()
    with clock.phase("environment"):
        plays = [_opened(task, shop, renderer) for task in tasks]
    sampler.start(streams)
    while live := [i for i, play in enumerate(plays) if play.end is None]:
        with clock.phase("model"):
            answers = sampler.turn(live, [plays[i].pending for i in live])
        with clock.phase("environment"):
            for i, said in zip(live, answers, strict=True):
                play = plays[i]
                if play.turns:  # what stood before the first turn is the prompt
                    _append(play, play.pending, 0, [0.0] * len(play.pending))
                play.pending = []
                if said is not None and said.failure:
                    _fail(play, RuntimeError(said.failure))
                elif said is not None:
                    _append(play, said.ids, 1, said.logprobs)
                    _advance(play, said.ids, said.truncated)
    with clock.phase("environment"):
        return [_rollout(play, renderer.pad_id) for play in plays]


def _opened(task: Task | Exception, shop: "Shop", renderer: "Renderer") -> _Play:
    play = _Play(task if isinstance(task, Task) else None)
    try:
        if isinstance(task, Exception):
            raise task
        play.episode = Episode(task, shop)
        play.dialogue = renderer.dialogue()
        play.prompt = play.pending = play.dialogue.open(play.episode.messages, play.episode.tools)
    except Exception as error:  # law 10: a bug of ours costs one unscored episode, not the run
        _fail(play, error)
    return play


def _append(play: _Play, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    play.ids += ids
    play.mask += [mask] * len(ids)
    play.logprobs += logprobs


def _advance(play: _Play, said: Sequence[int], truncated: bool) -> None:
    """Let the environment answer what the policy said."""
    play.turns += 1
    assert play.episode is not None and play.dialogue is not None
    try:
        if truncated:
            play.episode.end_truncated()
            play.end = "truncated"
            return
        turn = play.episode.act(play.dialogue.read(said))
        play.end = turn.end if turn.done else None
        if not turn.done:
            play.pending = play.dialogue.follow(turn.messages)
    except Exception as error:
        _fail(play, error)


def _fail(play: _Play, error: Exception) -> None:
    play.end, play.failure = "failed", f"{type(error).__name__}: {error}"
    if play.episode is not None:
        play.episode.fail(play.failure)


def _rollout(play: _Play, pad_id: int) -> Rollout:
    try:
        score = play.episode.score() if play.episode else Score.failed_by_us(play.failure)
    except Exception as error:
        _fail(play, error)
        score = Score.failed_by_us(play.failure)
    ids, mask, logprobs = (play.ids, play.mask, play.logprobs) if play.ids else ([pad_id], [0], [0.0])
    return Rollout(
        play.task, play.prompt or [pad_id], ids, mask, logprobs, score, play.end or "failed", play.turns
    )


@dataclass(frozen=True)
class Group:
    """G rollouts of one task."""

    env: str
    difficulty: int
    rollouts: tuple[Rollout, ...]
    round: int = 0

    @property
    def rewards(self) -> list[float]:
        """The G rewards; NaN where unscored."""
        return [r.score.value for r in self.rollouts]

    @property
    def outcomes(self) -> list[bool | None]:
        """The G verdicts; None where unscored."""
        return [None if r.score.unscored else r.score.correct for r in self.rollouts]

    def effective(self, by: Keep) -> bool:
        """Whether the group's scored rollouts differ: in their verdicts, or in their rewards (max - min > 1e-6)."""
        if by == "correct":
            return len(set(self.outcomes) - {None}) == 2
        scored = [r for r in self.rewards if not np.isnan(r)]
        return len(scored) > 1 and max(scored) - min(scored) > 1e-6


@dataclass(frozen=True)
class Collection:
    """What one step collected. `kept` and `padding` together are exactly as many groups as asked for."""

    kept: tuple[Group, ...]
    padding: tuple[Group, ...]
    """Discarded groups that fill the batch when the cap on rounds is hit; they are not in the loss."""
    groups: tuple[Group, ...]
    """Every group that was played, in order, the discarded ones included."""
    schedule: Schedule
    """The schedule after hearing of every group."""
    rounds: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What this process spent: "model", "environment", and "waiting" for the others."""

    @property
    def batch(self) -> tuple[Group, ...]:
        return self.kept + self.padding


@dataclass(frozen=True)
class Refill:
    """How many groups a step wants, and how hard it tries to get ones that teach something."""

    prompts: int = 8
    group_size: int = 8
    rounds: int = 3
    """Rounds of drawing in all; the first included."""
    keep: Keep = "correct"


def collect(
    schedule: Schedule,
    refill: Refill,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    crew: Crew = ALONE,
) -> Collection:
    """The groups of one step. `key` names its randomness: the same key and schedule give the same draws.

    The collection is the same whatever the `crew`, up to the rounding of log-probabilities. A group is played whole by
    one process.
    """
    clock = Clock()
    kept: list[Group] = []
    played: list[Group] = []
    rounds = 0
    while rounds < refill.rounds and len(kept) < refill.prompts:
        drawn = [_draw(schedule, (*key, rounds, i)) for i in range(refill.prompts - len(kept))]
        mine = [i for i in range(len(drawn)) if i % crew.players == crew.rank]
        groups = _play_groups(drawn, mine, refill.group_size, (*key, rounds), shop, sampler, renderer, clock)
        with clock.phase("waiting"):
            parts = crew.share(groups)
        for i in range(len(drawn)):  # in the order of drawing, whoever played them
            group = parts[i % crew.players][i // crew.players]
            played.append(group)
            if group.effective(refill.keep):
                kept.append(group)
            schedule = schedule.report(group.env, group.difficulty, group.outcomes)
        rounds += 1
    taken = {id(group) for group in kept}
    discarded = [group for group in played if id(group) not in taken]
    return Collection(
        kept=tuple(kept),
        padding=tuple(discarded[: refill.prompts - len(kept)]),
        groups=tuple(played),
        schedule=schedule,
        rounds=rounds,
        seconds=dict(clock.seconds),
    )


def _draw(schedule: Schedule, key: Sequence[Any]) -> tuple[str, int, int]:
    """An environment, a difficulty from its window as it is now, and a training seed."""
    random = rng("draw", *key)
    env = schedule.draw_environment(random)
    return env, schedule.draw(env, random), int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))


def _play_groups(
    drawn: Sequence[tuple[str, int, int]],
    mine: Sequence[int],
    size: int,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    clock: Clock,
) -> list[Group]:
    """Groups of `size` copies of each of my drawn tasks, played as one batch."""
    if not mine:
        return []
    with clock.phase("environment"):
        tasks = [draw_task(*drawn[i], shop) for i in mine]
    copies = [task for task in tasks for _ in range(size)]
    streams = [rng("sample", *key, i, copy) for i in mine for copy in range(size)]
    rollouts = play_batch(copies, streams, shop, sampler, renderer, clock)
    return [
        Group(*drawn[i][:2], tuple(rollouts[g * size : (g + 1) * size]), round=int(key[-1]))
        for g, i in enumerate(mine)
    ]
