"""Dynamic sampling: the groups of rollouts that a training step learns from.

`collect` draws tasks from a schedule inside the rollout (the level is never stale), plays G copies of each, keeps the
groups with non-zero advantage, draws again in place of the others (DAPO's dynamic sampling), and reports every group
and the end of the step to the schedule.

The processes of a `ProcessGroup` draw the same tasks, play a share of them each, and exchange whole groups. Each then
holds what a single process would have collected, so that all draw equally often and their schedules stay equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.evaluation.tasks import Axes
from ecomlab.models.batch import Clock, Rollout, play_batch
from ecomlab.models.process_group import SINGLE_PROCESS, ProcessGroup
from ecomlab.reward import PUBLISHED, Weights, varies
from ecomlab.seeding import rng
from ecomlab.training.schedule import Draw, Schedule
from ecomlab.training.stream import Stream

if TYPE_CHECKING:
    from ecomlab.catalog import Shop
    from ecomlab.models.environment_pool import EnvironmentPool
    from ecomlab.models.renderer import Renderer
    from ecomlab.models.samplers.cached import Sampler

Keep = Literal["correct", "reward"]
TRUNCATED = -1.0
"""Reward with which truncated episodes are trained: the minimum."""


@dataclass(frozen=True)
class Group:
    """G rollouts of one task."""

    draw: Draw
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
        """True if the group's scored rollouts differ in their verdicts (correct) or rewards (reward; truncated rollouts
        count as `TRUNCATED`)."""
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

    @property
    def batch(self) -> tuple[Group, ...]:
        return self.kept + self.padding


@dataclass(frozen=True)
class DynamicSampling:
    """Settings of dynamic sampling: groups per step, group size, the criterion for keeping, and common settings of all
    groups."""

    prompts: int = 8
    group_size: int = 8
    rounds: int = 3
    """Maximum number of rounds of drawing, including the first."""
    keep: Keep = "correct"
    axes: Axes = field(default_factory=dict)
    """Overridden axes of all tasks, in the environments that they move; a draw's own overrides take precedence."""
    weights: Weights = PUBLISHED
    """Weights of the reward."""
    envs: tuple[str, ...] = ()
    """Environments that may be drawn; empty: any."""


def collect(
    schedule: Schedule,
    sampling: DynamicSampling,
    key: Sequence[Any],
    shop: "Shop",
    sampler: "Sampler",
    renderer: "Renderer",
    processes: ProcessGroup = SINGLE_PROCESS,
    pool: "EnvironmentPool | None" = None,
) -> Collection:
    """Collect the groups of one step. `key` names its randomness: the same key and schedule give the same draws.

    Rounds are played one after another, each as one batch, until enough groups are kept; each is reported to the
    schedule before the next. The collection does not depend on `processes`, up to the rounding of log-probabilities:
    each group is played by one process. Nor does it depend on `pool`, whose workers play this process's episodes.
    """
    stream = Stream(
        schedule, sampling.envs or tuple(ENVIRONMENTS), groups_per_step=None, axes=sampling.axes,
        weights=sampling.weights, shop=shop, key=key[:-1], step=key[-1],
    )  # fmt: skip
    clock = Clock()
    played: list[Group] = []
    missing = sampling.prompts
    for number in range(sampling.rounds):
        drawn = [stream.next_group() for _ in range(missing)]
        mine = [i for i in range(len(drawn)) if i % processes.workers == processes.rank]
        groups = []
        if mine:
            with clock.phase("environment"):
                tasks = [stream.start(drawn[i]) for i in mine]
            copies = [task for task in tasks for _ in range(sampling.group_size)]
            streams = [rng("sample", *key, number, i, c) for i in mine for c in range(sampling.group_size)]
            rollouts = play_batch(copies, streams, shop, sampler, renderer, clock, pool)
            groups = [
                Group(
                    drawn[i].draw,
                    tuple(rollouts[g * sampling.group_size : (g + 1) * sampling.group_size]),
                    number,
                )
                for g, i in enumerate(mine)
            ]
        with clock.phase("waiting"):
            shares = processes.all_gather(groups)
        for i in range(len(drawn)):  # in the order of drawing
            group = shares[i % processes.workers][i // processes.workers]
            played.append(group)
            missing -= group.effective(sampling.keep)
            stream.report(drawn[i], group.outcomes)
        if not missing:
            break
        stream.next_round()
    stream.end_step()
    kept = [group for group in played if group.effective(sampling.keep)]
    discarded = [group for group in played if not group.effective(sampling.keep)]
    return Collection(
        kept=tuple(kept),
        padding=tuple(discarded[: sampling.prompts - len(kept)]),
        groups=tuple(played),
        schedule=stream.schedule,
        rounds=number + 1,
        seconds=dict(clock.seconds),
    )
