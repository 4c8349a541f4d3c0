"""The batched collector: many episodes in lockstep, and the groups of rollouts that a training step learns from.

`play_batch` plays one episode per task, all turn by turn together, and records token for token what was sampled.
`collect` draws tasks from a schedule inside the rollout (the level is never stale), plays G copies of each, keeps the
groups that teach something, draws again for those that do not, and reports every group to the schedule.

Our own failures never become rewards: an exception in an episode makes it unscored (SPEC law 10).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ecomlab.core import Task
from ecomlab.episode import Episode, make_task
from ecomlab.reward import Score
from ecomlab.scheduler import Schedule
from ecomlab.seeding import rng

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.train.backends import Sampler
    from ecomlab.train.renderer import Dialogue, Renderer

TRAINING_SEEDS = range(2**31)
EVALUATION_SEEDS = range(2**31, 2**32)
"""Tasks that are trained on and tasks that are evaluated on never share a seed."""

Keep = Literal["correct", "reward"]


@dataclass(frozen=True)
class Rollout:
    """One episode as the trainer needs it. All token lists after the prompt have the same length."""

    task: Task
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

    task: Task
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


def play_batch(
    tasks: Sequence[Task],
    streams: Sequence[np.random.Generator],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
) -> list[Rollout]:
    """Play every task once with the policy behind `sampler`; rollout i draws its randomness from `streams[i]` alone."""
    plays = [_opened(task, shop, renderer) for task in tasks]
    sampler.start(streams)
    while live := [i for i, play in enumerate(plays) if play.end is None]:
        for i, said in zip(live, sampler.turn(live, [plays[i].pending for i in live]), strict=True):
            play = plays[i]
            if play.turns:  # what stood before the first turn is the prompt
                _append(play, play.pending, 0, [0.0] * len(play.pending))
            play.pending = []
            if said is not None:
                _append(play, said.ids, 1, said.logprobs)
                _advance(play, said.ids, said.truncated)
    return [_rollout(play, renderer.pad_id) for play in plays]


def _opened(task: Task, shop: "Shop", renderer: "Renderer") -> _Play:
    play = _Play(task)
    try:
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
    """Discarded groups that fill the batch when the cap on rounds is hit; they carry no advantage."""
    groups: tuple[Group, ...]
    """Every group that was played, in order, the discarded ones included."""
    schedule: Schedule
    """The schedule after hearing of every group."""
    rounds: int

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
    share: Callable[[Any], list[Any]] = lambda mine: [mine],
) -> Collection:
    """The groups of one step. `key` names its randomness: the same key and schedule give the same draws.

    `share` exchanges an object between processes and returns all ranks' in order: so every rank's schedule hears of
    every group and all ranks make the same number of rounds. A group never leaves its rank.
    """
    kept: list[Group] = []
    played: list[Group] = []
    rounds = 0
    for number in range(refill.rounds):
        missing = share(refill.prompts - len(kept))
        if not any(missing):
            break
        rounds += 1
        drawn = [_draw(schedule, (*key, number, i)) for i in range(refill.prompts - len(kept))]
        groups = (
            _play_groups(drawn, refill.group_size, (*key, number), shop, sampler, renderer) if drawn else []
        )
        played += groups
        kept += [group for group in groups if group.effective(refill.keep)]
        for reports in share([(group.env, group.difficulty, group.outcomes) for group in groups]):
            for env, difficulty, outcomes in reports:
                schedule = schedule.report(env, difficulty, outcomes)
    taken = {id(group) for group in kept}
    discarded = [group for group in played if id(group) not in taken]
    return Collection(
        kept=tuple(kept),
        padding=tuple(discarded[: refill.prompts - len(kept)]),
        groups=tuple(played),
        schedule=schedule,
        rounds=rounds,
    )


def _draw(schedule: Schedule, key: Sequence[Any]) -> tuple[str, int, int]:
    """An environment, a difficulty from its window as it is now, and a training seed."""
    random = rng("draw", *key)
    env = schedule.draw_environment(random)
    return env, schedule.draw(env, random), int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))


def _play_groups(
    drawn: Iterable[tuple[str, int, int]],
    size: int,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
) -> list[Group]:
    """Groups of `size` copies of each drawn task, played as one batch."""
    tasks = [(env, d, make_task(env, difficulty=d, seed=seed, shop=shop)) for env, d, seed in drawn]
    copies = [task for _, _, task in tasks for _ in range(size)]
    streams = [rng("sample", *key, g, copy) for g in range(len(tasks)) for copy in range(size)]
    rollouts = play_batch(copies, streams, shop, sampler, renderer)
    return [
        Group(env, d, tuple(rollouts[g * size : (g + 1) * size]), round=int(key[-1]))
        for g, (env, d, _) in enumerate(tasks)
    ]
