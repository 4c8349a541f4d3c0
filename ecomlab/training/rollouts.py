"""Dynamic sampling: the groups of rollouts that a training step learns from.

`collect` draws tasks from a schedule inside the rollout (the level is never stale), plays G copies of each, keeps the
groups that teach something, draws again for those that do not (DAPO's dynamic sampling), and reports every group and
the end of the step to the schedule.

The processes of a `ProcessGroup` draw the same tasks, play a share of them each, and exchange whole groups. Each then
holds what a single process would have collected, so that all draw equally often and their schedules stay equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ecomlab.evaluation.tasks import Axes, axes_of
from ecomlab.models.batch import TRAINING_SEEDS, Clock, Rollout, draw_task, play_batch, play_more
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.reward import varies
from ecomlab.seeding import rng
from ecomlab.training.schedule import Schedule

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.renderer import Renderer
    from ecomlab.models.samplers.cached import OpenSampler

Keep = Literal["correct", "reward"]
TRUNCATED = -1.0
"""Reward that a truncated episode is trained with, the lowest there is."""


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
        """True if the group's scored rollouts differ in their verdicts, or in their rewards, of which truncated ones
        have `TRUNCATED`."""
        if by == "correct":
            return len(set(self.outcomes) - {None}) == 2
        return varies([TRUNCATED if r.end == "truncated" else r.score.value for r in self.rollouts])


def is_trained(rollout: Rollout, mask_truncated: bool = False) -> bool:
    """Tell whether the tokens that the policy sampled in an episode are in the loss: not if it is unscored, nor, with
    `mask_truncated`, if a token limit cut it off."""
    return not rollout.score.unscored and not (mask_truncated and rollout.end == "truncated")


@dataclass(frozen=True)
class Collection:
    """The groups of one step. `kept` and `padding` together have the size of a batch."""

    kept: tuple[Group, ...]
    padding: tuple[Group, ...]
    """Discarded groups that fill the batch when the cap on rounds is hit; they are not in the loss."""
    groups: tuple[Group, ...]
    """Every group played, in order, discarded ones included."""
    schedule: Schedule
    """The schedule after every group was reported and the step has ended."""
    rounds: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of this process by phase: "model", "environment", and "waiting" for the others."""
    version: int | None = None
    """That of all its rollouts; None: the weights are those that are trained now."""

    @property
    def batch(self) -> tuple[Group, ...]:
        return self.kept + self.padding


@dataclass(frozen=True)
class DynamicSampling:
    """Settings of dynamic sampling: groups per step, their size, and which of them teach something."""

    prompts: int = 8
    group_size: int = 8
    rounds: int = 3
    """Most rounds of drawing, the first included."""
    keep: Keep = "correct"
    axes: Axes = field(default_factory=dict)
    """Overridden axes of all tasks, in the environments that they move."""
    early_refill: bool = False
    """Draw again as soon as a group is discarded, in the rows that it leaves free, not after the round."""


def collect(
    schedule: Schedule,
    sampling: DynamicSampling,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "OpenSampler",
    renderer: "Renderer",
    processes: ProcessGroup = SINGLE_PROCESS,
    version: int | None = None,
) -> Collection:
    """Collect the groups of one step. `key` names its randomness: the same key and schedule give the same draws.
    `version` is that of the sampler's weights (`Rollout.version`), which must not change meanwhile.

    The collection does not depend on `processes`, up to the rounding of log-probabilities. Each group is played by
    one process.
    """
    clock = Clock()
    play = _play_refilled if sampling.early_refill else _play_rounds
    played, schedule = play(schedule, sampling, key, shop, sampler, renderer, processes, clock)
    played = [replace(g, rollouts=tuple(replace(r, version=version) for r in g.rollouts)) for g in played]
    kept = [group for group in played if group.effective(sampling.keep)]
    discarded = [group for group in played if not group.effective(sampling.keep)]
    return Collection(
        kept=tuple(kept),
        padding=tuple(discarded[: sampling.prompts - len(kept)]),
        groups=tuple(played),
        schedule=schedule.end_step(),
        rounds=max(group.round for group in played) + 1,
        seconds=dict(clock.seconds),
        version=version,
    )


def _play_rounds(
    schedule: Schedule,
    sampling: DynamicSampling,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "OpenSampler",
    renderer: "Renderer",
    processes: ProcessGroup,
    clock: Clock,
) -> tuple[list[Group], Schedule]:
    """Play round after round, each as one batch, until enough groups teach; report each round before the next."""
    played: list[Group] = []
    missing = sampling.prompts
    for number in range(sampling.rounds):
        drawn = [_draw(schedule, (*key, number, i)) for i in range(missing)]
        mine = [i for i in range(len(drawn)) if i % processes.workers == processes.rank]
        groups = _play_groups(drawn, mine, sampling, (*key, number), shop, sampler, renderer, clock)
        with clock.phase("waiting"):
            shares = processes.all_gather(groups)
        for i in range(len(drawn)):  # in the order of drawing
            group = shares[i % processes.workers][i // processes.workers]
            played.append(group)
            missing -= group.effective(sampling.keep)
            schedule = schedule.report(group.env, group.difficulty, group.outcomes)
        if not missing:
            break
    return played, schedule


def _play_refilled(
    schedule: Schedule,
    sampling: DynamicSampling,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "OpenSampler",
    renderer: "Renderer",
    processes: ProcessGroup,
    clock: Clock,
) -> tuple[list[Group], Schedule]:
    """Play what `_play_rounds` plays, up to rounding, but begin a group of the next round as soon as one is discarded:
    a round has as many groups as the one before it discarded, and which one made room for it does not matter.

    The window must not move within a step (`check_every = "step"`, or a static schedule), and one process plays.
    """
    if processes.workers > 1:
        raise ValueError(
            "early_refill is for one process that plays; the others would have to hear of every group"
        )
    size = sampling.group_size
    begun: list[tuple[tuple[int, int], tuple[str, int, int], list[Rollout | None]]] = []
    counts = [0] * sampling.rounds
    ended: dict[tuple[int, int], Group] = {}

    def begin(number: int) -> list[tuple[Any, Any]]:
        place = (number, counts[number])
        counts[number] += 1
        drawn = _draw(schedule, (*key, *place))
        begun.append((place, drawn, [None] * size))
        task = draw_task(*drawn, shop, axes_of(sampling.axes, drawn[0]))
        return [(task, rng("sample", *key, *place, copy)) for copy in range(size)]

    def more(i: int, rollout: Rollout) -> list[tuple[Any, Any]]:
        place, drawn, rollouts = begun[i // size]
        rollouts[i % size] = rollout
        whole = [r for r in rollouts if r is not None]
        if len(whole) < size:
            return []
        group = ended[place] = Group(*drawn[:2], tuple(whole), round=place[0])
        again = place[0] + 1 < sampling.rounds and not group.effective(sampling.keep)
        return begin(place[0] + 1) if again else []

    if processes.rank == 0:
        with clock.phase("environment"):
            first = [pair for _ in range(sampling.prompts) for pair in begin(0)]
        tasks, streams = zip(*first, strict=True)
        play_more(tasks, streams, more, shop, sampler, renderer, clock)
    with clock.phase("waiting"):
        played = processes.all_gather([ended[place] for place in sorted(ended)])[0]
    for group in played:  # in the order of drawing
        schedule = schedule.report(group.env, group.difficulty, group.outcomes)
    return played, schedule


def _draw(schedule: Schedule, key: Sequence[Any]) -> tuple[str, int, int]:
    """Draw an environment, a difficulty from its window, and a training seed."""
    random = rng("draw", *key)
    env = schedule.draw_environment(random)
    return env, schedule.draw(env, random), int(random.integers(TRAINING_SEEDS.start, TRAINING_SEEDS.stop))


def _play_groups(
    drawn: Sequence[tuple[str, int, int]],
    mine: Sequence[int],
    sampling: DynamicSampling,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "OpenSampler",
    renderer: "Renderer",
    clock: Clock,
) -> list[Group]:
    """Play the copies of each of this process's tasks as one batch."""
    if not mine:
        return []
    size = sampling.group_size
    with clock.phase("environment"):
        tasks = [draw_task(*drawn[i], shop, axes_of(sampling.axes, drawn[i][0])) for i in mine]
    copies = [task for task in tasks for _ in range(size)]
    streams = [rng("sample", *key, i, copy) for i in mine for copy in range(size)]
    rollouts = play_batch(copies, streams, shop, sampler, renderer, clock)
    return [
        Group(*drawn[i][:2], tuple(rollouts[g * size : (g + 1) * size]), round=int(key[-1]))
        for g, i in enumerate(mine)
    ]
