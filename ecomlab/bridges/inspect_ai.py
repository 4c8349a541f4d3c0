"""Inspect: every environment as a task, `inspect eval ecomlab/cart -T difficulty=4`, with our tools and customer in its
solver and our score's parts in its scorer."""

import json
import math
from collections.abc import Callable
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)  # fmt: skip
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo, ToolParams
from inspect_ai.util import LimitExceededError

from ecomlab.bridges.common import outcome, score_from_json, task_of
from ecomlab.catalog import load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import SYSTEM, Episode
from ecomlab.episode.messages import invalid
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.task import Message, Player

OUTCOME = "outcome"
"""Key of the score in a sample's store, by which the solver passes it to the scorer."""
PARTS = ("task", "efficiency", "hallucination")
CUT_OFF = ("max_tokens", "model_length")
"""Stop reasons that mean a token limit."""
LIMITS = ("message", "turn", "token")
"""Inspect's limits on a model's output; limits of time and cost are not the model's fault."""


def sample_of(job: Job, size: int) -> Sample:
    """Make the sample of a held-out task, in the shop of `size` products."""
    episode = Episode(task_of(job, load_shop(size)), load_shop(size))
    about = {"env": job.env, "d": job.d, "seed": job.seed, "axes": dict(job.axes), "size": size}
    return Sample(input=written(episode.messages), id=f"{job.env}-{job.d}-{job.seed}", metadata=about)


@solver
def shopping(strict: bool = False) -> Solver:
    """Play an episode: the model's messages go to ecomlab, which runs the tools and speaks as the customer.

    A token limit of a generation and Inspect's own limit of messages or tokens end the episode as
    truncated. An infrastructure error raises, and Inspect counts the sample as an error, not as a score.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        about = dict(state.metadata)
        shop = load_shop(about.pop("size"))
        episode = Episode(task_of(Job(**about), shop), shop, strict=strict)
        try:
            await converse(episode, state)
        except LimitExceededError as limit:
            if limit.type in LIMITS and not episode.done:
                episode.end_truncated(f"Inspect stopped the sample: {limit.message}")
            if episode.done:
                state.store.set(OUTCOME, outcome(episode))
            raise
        state.store.set(OUTCOME, outcome(episode))
        state.completed = True
        return state

    return solve


async def converse(episode: Episode, state: TaskState) -> None:
    """Let the model of a sample play an episode to its end."""
    tools = [tool_info(schema) for schema in episode.tools]
    while not episode.done:
        state.output = await get_model().generate(state.messages, tools=tools)
        state.messages.append(state.output.message)
        if state.output.stop_reason in CUT_OFF:
            return episode.end_truncated()
        before = len(episode.messages) + 1
        episode.act(read(state.output.message))
        state.messages += written(episode.messages[before:])


@scorer(metrics={"*": [mean(), stderr()]})
def shopping_score() -> Scorer:
    """Score reward, correctness and the reward's named parts. Invalid episodes have no parts; a sample that Inspect
    ended by a limit of time or cost, before the end of its episode, has no score."""

    async def score(state: TaskState, target: Target) -> Score:
        over = state.store.get(OUTCOME)
        if over is None:
            return Score.unscored(explanation="Inspect ended the sample before the episode")
        mine = score_from_json(over["score"])
        if mine.unscored:
            return Score.unscored(explanation=mine.why, metadata=over)
        parts = {name: mine.parts.get(name, math.nan) for name in PARTS}
        value = {"reward": mine.value, "correct": int(mine.correct), **parts}
        return Score(value=value, explanation=mine.why, metadata=over)

    return score


def make_task(env: str, difficulty: Any = 0, episodes: int = 20, block: int = 0, size: int = 20_000) -> Task:
    """Make an environment's task: the first `episodes` held-out tasks of a block at each level of `difficulty`, one
    number or several, as in `-T difficulty=0,4`."""
    levels = [int(level) for level in (difficulty if isinstance(difficulty, list | tuple) else [difficulty])]
    jobs = [Job(env, d, seed) for d in levels for seed in held_out_seeds(block, episodes)]
    return task_for(jobs, size, env.lower(), ENVIRONMENTS[env].version)


def task_for(jobs: list[Job], size: int, name: str, version: int = 0) -> Task:
    """Make a task of any jobs."""
    samples = MemoryDataset([sample_of(job, size) for job in jobs], name=name)
    return Task(dataset=samples, solver=shopping(), scorer=shopping_score(), name=name, version=version)


def tool_info(schema: dict[str, Any]) -> ToolInfo:
    """Make Inspect's description of a tool from its OpenAI schema."""
    function = schema["function"]
    parameters = ToolParams.model_validate(function["parameters"])
    return ToolInfo(name=function["name"], description=function["description"], parameters=parameters)


def read(message: ChatMessageAssistant) -> Message:
    """Read a model's message into OpenAI's shape, without its reasoning; calls that Inspect could not parse make it
    invalid."""
    broken = [call.parse_error for call in message.tool_calls or () if call.parse_error]
    if broken:
        return invalid(message.text, broken[0])
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls or ()
    ]
    return {"role": "assistant", "content": message.text, **({"tool_calls": calls} if calls else {})}


def written(messages: list[Message]) -> list[ChatMessage]:
    """Write messages that came from ecomlab as Inspect's."""
    made: list[ChatMessage] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "tool":
            made.append(
                ChatMessageTool(
                    content=content, tool_call_id=message["tool_call_id"], function=message["name"]
                )
            )
        else:
            made.append(
                (ChatMessageSystem if message["role"] == "system" else ChatMessageUser)(content=content)
            )
    return made


def shaped(message: ChatMessage) -> Message:
    """Read any of Inspect's messages into OpenAI's shape."""
    if isinstance(message, ChatMessageAssistant):
        return read(message)
    told = {"role": message.role, "content": message.text}
    if isinstance(message, ChatMessageTool):
        return {**told, "name": message.function, "tool_call_id": message.tool_call_id}
    return told


def said(message: Message) -> ModelOutput:
    """Make the output of a model that says a message in OpenAI's shape, at no tokens."""
    calls = [
        ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
    speech = ChatMessageAssistant(content=message["content"], tool_calls=calls or None, model="ecomlab")
    output = ModelOutput.from_message(speech, stop_reason="tool_calls" if calls else "stop")
    output.usage = ModelUsage()  # else Inspect counts tokens with a tokenizer from the network
    return output


class ReferenceModel(ModelAPI):
    """The reference players as a model, for comparison: `--model ecomlab/reference -M size=1000`."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (Inspect's own signature)
        size: int = 20_000,
        **others: Any,
    ) -> None:
        """`size` must be that of the tasks' shop, because the players know its vocabulary."""
        super().__init__(model_name, base_url, api_key, [], config)
        self.size = size

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Replay the conversation and play one more message, because a model keeps no state between its calls."""
        messages = [shaped(message) for message in input]
        player = self.player_of(messages)
        for number, message in enumerate(messages):
            if message["role"] == "assistant":
                player(messages[:number], [])
        return said(player(messages, []))

    def player_of(self, messages: list[Message]) -> Player:
        """Make the player of a conversation, identified by the system prompt."""
        before, system = SYSTEM.partition("{brief}")[0], messages[0]["content"]
        [env] = [env for env in ENVIRONMENTS.values() if system.startswith(before + env.brief)]
        player: Player = env.reference_player(load_shop(self.size))
        return player


@modelapi(name="ecomlab")
def reference_model() -> type[ModelAPI]:
    """Register the reference players."""
    return ReferenceModel


def _register(env: str) -> Callable[..., Task]:
    def make(difficulty: Any = 0, episodes: int = 20, block: int = 0, size: int = 20_000) -> Task:
        return make_task(env, difficulty, episodes, block, size)

    make.__doc__ = ENVIRONMENTS[env].brief
    return task(name=env.lower())(make)


TASKS = {env.lower(): _register(env) for env in ENVIRONMENTS}
"""Names that Inspect finds through the entry point, without `ecomlab/`."""
