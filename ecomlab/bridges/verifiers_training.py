"""verifiers and prime-rl: an endless taskset of training tasks, drawn by a stream, and prime-rl's sampler for it.

    [[orchestrator.train.env]]
    taskset = { id = "ecomlab-training", envs = "C8", schedule = "adaptive", groups_per_step = 64 }
    harness = { id = "ecomlab-training" }

prime-rl has a closed list of samplers, and its standard one hears of no outcome: call `adapt_prime_rl()` once before
its orchestrator starts, and tasksets of this kind get `StreamSampler`. Without it, and in verifiers' own loops, the
stream draws and never hears, so that an adaptive window stays where it begins.
"""

import json
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from ecomlab.bridges.verifiers import OUTCOME, ShoppingTask, make_task
from ecomlab.catalog import load_shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import axes_of
from ecomlab.training.schedule import windows
from ecomlab.training.stream import Stream, Ticket


class TrainingConfig(vf.TasksetConfig):
    """The stream: `--env.taskset.schedule adaptive`."""

    envs: str = "C8"
    """A collection, or environments by id."""
    schedule: str = "adaptive"
    seed: int = 0
    groups_per_step: int = 64
    axes: dict[str, float] = Field(default_factory=dict)
    size: int = 20_000
    """Number of products in the shop."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the schedule."""


class TrainingTask(ShoppingTask):
    """A task of training, named by its ticket."""

    @property
    def key(self) -> str:
        return self.data.name


class StreamTasks(Iterator[TrainingTask]):
    """The stream's tasks, and what is to be reported about them."""

    def __init__(self, config: TrainingConfig) -> None:
        self.config = config
        self.stream = Stream(
            config.schedule, config.envs, seed=config.seed, groups_per_step=config.groups_per_step, axes=config.axes,
            shop=load_shop(config.size), **config.settings,
        )  # fmt: skip

    def __next__(self) -> TrainingTask:
        ticket = self.stream.next_group()
        while isinstance(self.stream.start(ticket), Exception):  # a bug of ours costs one group, not the run
            self.stream.report(ticket, [None])
            ticket = self.stream.next_group()
        draw = ticket.draw
        if draw.given or draw.planted:
            raise ValueError("verifiers' harness plays whole episodes: it has no given turns")
        job = Job(
            draw.env, draw.level, ticket.seed, axes={**axes_of(self.config.axes, draw.env), **draw.overrides}
        )
        return make_task(
            job, self.config.size, self.config.task, TrainingTask, name=json.dumps(ticket.to_json())
        )


class TrainingTaskset(vf.Taskset[TrainingTask, TrainingConfig]):
    """Training tasks without end."""

    INFINITE = True

    def load(self) -> StreamTasks:
        return StreamTasks(self.config)

    def __iter__(self) -> Iterator[TrainingTask]:
        return self.load() if self.transform is None and self.system_prompt is None else super().__iter__()


class StreamSampler(Iterator[TrainingTask]):
    """prime-rl's `TaskSampler` over a stream: reports finished groups, and its state is in the checkpoint."""

    def __init__(self, tasks: StreamTasks) -> None:
        self.tasks = tasks

    def __next__(self) -> TrainingTask:
        return next(self.tasks)

    def observe(self, group: list[Any]) -> None:
        """Report a finished group; an episode with an error has no outcome."""
        traces = [trace for episode in group for trace in episode.traces if trace.agent.trainable]
        scores = [None if trace.has_error else trace.info.get(OUTCOME, {}).get("score") for trace in traces]
        outcomes = [None if score is None or score["unscored"] else score["correct"] for score in scores]
        self.tasks.stream.report(Ticket.from_json(json.loads(group[0].task.key)), outcomes)

    def state_dict(self) -> dict[str, Any]:
        return self.tasks.stream.state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.tasks.stream.restore(state_dict)

    def metrics(self) -> dict[str, float]:
        """Return the upper edge of each window."""
        found = windows(self.tasks.stream.schedule, self.tasks.stream.envs)
        return {f"top/{env}": float(high) for env, (_, high) in found.items()}


def adapt_prime_rl() -> None:
    """Give tasksets of this module their sampler in prime-rl, and leave all others theirs."""
    from prime_rl.orchestrator.curriculum import samplers

    standard = samplers.StandardSampler

    def choose(tasks: Any) -> Any:
        return StreamSampler(tasks) if isinstance(tasks, StreamTasks) else standard(tasks)

    samplers.StandardSampler = choose
