"""verifiers (its v1 interface): a taskset and a harness that plays its tasks, `vf-eval ecomlab-verifiers`.

verifiers names a plugin by a top-level module; `ecomlab_verifiers` is that name for what this module exports.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import verifiers.v1 as vf
from openai import APIStatusError, AsyncOpenAI
from pydantic import Field
from verifiers.v1.utils.loaders import load_environment as load

from ecomlab.bridges.common import outcome, score_from_json, task_of
from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import environments_of, held_out_seeds
from ecomlab.training.schedule import factory_of

PLUGIN = "ecomlab-verifiers"
"""The id by which verifiers finds taskset and harness."""
TRAINING = "ecomlab-training"
"""The id of the taskset of training tasks (`ecomlab.bridges.verifiers_training`)."""
OUTCOME = "ecomlab"
"""Key of the score in a trace's `info`."""


class ShoppingConfig(vf.TasksetConfig):
    """Selection of held-out tasks: `--env.taskset.envs CART,PD`."""

    envs: str = "C8"
    """A collection, or environments by id."""
    levels: list[int] = Field(default_factory=lambda: [0])
    episodes: int = 20
    """Number of tasks of an environment at a level."""
    block: int = 0
    """Block of held-out tasks."""
    size: int = 20_000
    """Number of products in the shop."""


class ShoppingData(vf.TaskData):
    """Key of a task; the prompt is the customer's opening."""

    env: str
    version: int
    d: int
    seed: int
    axes: dict[str, float] = Field(default_factory=dict)
    size: int


class ShoppingTask(vf.Task[ShoppingData]):
    """A task. Its reward is our score's value; the score's named parts are metrics, because an invalid episode has a
    reward but no parts."""

    @vf.reward
    async def ecomlab(self, trace: vf.Trace) -> float:
        """Return the score's value; raises for an unscored episode, so that verifiers counts an error."""
        score = score_from_json(trace.info[OUTCOME]["score"])
        if score.unscored:
            raise RuntimeError(f"unscored: {score.why}")
        return score.value

    @vf.metric
    async def parts(self, trace: vf.Trace) -> Mapping[str, float]:
        """Return correctness, the reward's named parts, turns and tool calls."""
        over = trace.info[OUTCOME]
        counts = {"turns": over["turns"], "calls": over["calls"]}
        return {"correct": over["score"]["correct"], **over["score"]["parts"], **counts}


TaskT = TypeVar("TaskT", bound=ShoppingTask)


class ShoppingTaskset(vf.Taskset[ShoppingTask, ShoppingConfig]):
    """Held-out tasks of some environments at some levels."""

    def load(self) -> Iterator[ShoppingTask]:
        """Draw the tasks, environment by environment and level by level."""
        config = self.config
        for env in environments_of(config.envs):
            for d in config.levels:
                for seed in held_out_seeds(config.block, config.episodes):
                    yield make_task(Job(env, d, seed), config.size, config.task)


class ShoppingHarnessConfig(vf.HarnessConfig):
    """Settings of the harness."""

    strict: bool = False
    """End an episode at the first format error."""


class ShoppingHarness(vf.Harness[ShoppingHarnessConfig]):
    """Plays an episode in this process: every message of the model comes through verifiers' endpoint, with our tools'
    schemas, and goes to ecomlab, which runs the tools and speaks as the customer."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> vf.ProgramResult:
        """Play the task to its end. A token limit, or a limit of verifiers' own, ends the episode as truncated."""
        shop = load_shop(data.size)
        job = Job(data.env, data.d, data.seed, axes=data.axes)
        episode = Episode(task_of(job, shop), shop, strict=self.config.strict)
        if data.system_prompt is not None:
            episode.messages[0]["content"] = data.system_prompt
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0, timeout=None) as client:
            while not episode.done:
                try:
                    answer = await client.chat.completions.create(
                        model=ctx.model,
                        messages=episode.messages,
                        tools=episode.tools,
                    )
                except APIStatusError:
                    if trace.stop_condition is None:
                        raise
                    episode.end_truncated(f"verifiers stopped the rollout: {trace.stop_condition}")
                    break
                choice = answer.choices[0]
                if choice.finish_reason == "length":
                    episode.end_truncated()
                else:
                    episode.act(choice.message.model_dump(include={"role", "content", "tool_calls"}))
        trace.info[OUTCOME] = outcome(episode)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class ShoppingEnvConfig(vf.EnvConfig):
    """Settings of the environment. Its agent runs no code of the model, so it needs no container and no tunnel."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ShoppingEnv(vf.Env[ShoppingEnvConfig]):
    """One agent plays a task."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Let the agent play."""
        await agents.agent.run(task)


def make_task(
    job: Job, size: int, config: vf.TaskConfig | None = None, kind: type[TaskT] = ShoppingTask, name: str = ""
) -> TaskT:
    """Make the task of a job, in the shop of `size` products."""
    shop = load_shop(size)
    system, opening = (message["content"] for message in Episode(task_of(job, shop), shop).messages)
    version = ENVIRONMENTS[job.env].version
    data = ShoppingData(
        id=f"{job.env}-v{version}-{job.d}-{job.seed}",
        name=name or f"{job.env} d={job.d} #{job.seed}",
        prompt=opening,
        system_prompt=system,
        env=job.env,
        version=version,
        d=job.d,
        seed=job.seed,
        axes=dict(job.axes),
        size=size,
    )
    return kind(data, config)


def load_environment(
    env: str = "C8", difficulty: int | Sequence[int] | None = None, schedule: str = "", **taskset: Any
) -> vf.Env:
    """Make the environment of held-out tasks that `vf-eval` runs, at one or more difficulties, or with a `schedule` the
    endless one of training tasks; `taskset` are further settings of `ShoppingConfig` or `TrainingConfig`.

    Raises ValueError for unknown names, and for both a difficulty and a schedule, which draws it.
    """
    environments_of(env)
    if schedule:
        if difficulty is not None:
            raise ValueError("a schedule draws the difficulty: give one or the other")
        factory_of(schedule)
        given: dict[str, Any] = {"id": TRAINING, "schedule": schedule}
    else:
        levels = (
            [difficulty] if isinstance(difficulty, int) else list([0] if difficulty is None else difficulty)
        )
        if not levels or min(levels) < 0:
            raise ValueError(f"a difficulty is 0 or more, or several of these, not {difficulty!r}")
        given = {"id": PLUGIN, "levels": levels}
    return load(ShoppingEnvConfig.model_validate({"taskset": {**given, "envs": env, **taskset}}))
