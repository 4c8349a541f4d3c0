"""TRL's `environment_factory`: an environment of ecomlab as a class whose methods are the tools.

    GRPOTrainer(..., train_dataset=prompt_dataset(jobs, shop), environment_factory=factories(envs, shop))

TRL calls tools one by one and ends a rollout at the first message without a call, so this is for interoperation: the
customer is reached by `ask_user` alone, and each call counts as a message. `ecomlab.training` has neither limit.
"""

import inspect
import json
import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from datasets import Dataset, Features, Json, List, Value

from ecomlab.bridges.common import task_of
from ecomlab.bridges.datasets import AXES, read_axes, write_axes
from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, ask_user, make_task, system_of
from ecomlab.evaluation.contestant import Job
from ecomlab.suggest import raised
from ecomlab.tool import Tool

RULES = " Talk to the customer by ask_user alone; a message without a tool call ends the conversation."
"""Differences of TRL's loop, for the system prompt."""
STOPPED = "a message without a tool call, or TRL's limit, ended the rollout"
PROMPTS = Features(
    {
        "prompt": List(Json()),
        "environment": Value("string"),
        "difficulty": Value("int64"),
        "seed": Value("int64"),
        "overrides": AXES,
    }
)
"""Columns of the data set that TRL trains on; all but the first two are arguments of `reset`."""


class ShoppingRollout:
    """Base of the classes that `rollout_class` makes: one rollout at a time. TRL takes every public method
    except `reset` and `get_reward` as a tool."""

    _env: ClassVar[str]
    _shop: ClassVar[Shop]

    def __init__(self) -> None:
        self._episode: Episode | None = None

    def reset(self, difficulty: int, seed: int, overrides: Any = (), **others: Any) -> None:
        """Begin the task of a row of the data set."""
        task = make_task(self._env, difficulty, seed, self._shop, read_axes(overrides))
        self._episode = Episode(task, self._shop)

    def get_reward(self) -> float:
        """Score the rollout: NaN, which TRL leaves out, if it is unscored. A rollout that stopped before its end is
        truncated and never correct."""
        episode = self._running()
        if not episode.done:
            episode.end_truncated(STOPPED)
        score = episode.score()
        return math.nan if score.unscored else score.value

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Play a message with one call; return the tool's result and the customer's reply."""
        episode = self._running()
        if episode.done:
            return json.dumps({"error": "the conversation is over"})
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": f"call_{len(episode.messages)}", "type": "function", "function": function}]
        try:
            turn = episode.act({"role": "assistant", "content": "", "tool_calls": calls})
        except Exception as error:  # TRL would show it to the model as a tool's result, and go on
            episode.fail(raised(error))
            raise
        said = [message["content"] for message in turn.messages if message["role"] == "user"]
        result = next((message["content"] for message in turn.messages if message["role"] == "tool"), "")
        return "\n".join([result, *(f"The customer: {words}" for words in said)])

    def _running(self) -> Episode:
        if self._episode is None:
            raise RuntimeError("there is no rollout yet; call reset first")
        return self._episode


def rollout_class(env: str, shop: Shop) -> type[ShoppingRollout]:
    """Make the class of an environment: TRL makes as many instances as it plays rollouts at once."""
    environment = ENVIRONMENTS[env]
    tools = [*environment.offered.values(), ask_user, environment.submit]
    methods = {tool.name: _method(tool) for tool in tools}
    return type(f"{env.title()}Rollout", (ShoppingRollout,), {**methods, "_env": env, "_shop": shop})


def factories(envs: Iterable[str], shop: Shop) -> dict[str, Callable[[], ShoppingRollout]]:
    """Make the argument `environment_factory`; a row's `environment` selects the class."""
    return {env: rollout_class(env, shop) for env in envs}


def prompt_dataset(jobs: Iterable[Job], shop: Shop) -> Dataset:
    """Make TRL's data set of these tasks, with the columns `PROMPTS`."""
    rows = []
    for job in jobs:
        task = task_of(job, shop)
        prompt = [
            {"role": "system", "content": system_of(task) + RULES},
            {"role": "user", "content": task.opening},
        ]
        row = {
            "environment": job.env,
            "difficulty": job.d,
            "seed": job.seed,
            "overrides": write_axes(job.axes),
        }
        rows.append({**row, "prompt": prompt})
    return Dataset.from_list(rows, features=PROMPTS)


def _method(tool: Tool) -> Callable[..., str]:
    """Make a method of a tool, with the signature and docstring from which transformers makes its schema."""

    def method(self: ShoppingRollout, **arguments: Any) -> str:
        return self._call(tool.name, arguments)

    # the first parameter of a tool's function is the world; transformers knows a receiver by its name and no annotation
    _, *parameters = inspect.signature(tool.function, eval_str=True).parameters.values()
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    schema = tool.schema["function"]
    about = schema["parameters"].get("properties", {})
    described = [f"    {p.name}: {about[p.name].get('description') or p.name}" for p in parameters]
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = "\n".join([schema["description"], *(["", "Args:", *described] if described else [])])
    method.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    method.__signature__ = inspect.Signature([receiver, *named])  # type: ignore[attr-defined]
    return method
