"""TRL's `environment_factory`: an environment of ecomlab as a class whose methods are the tools.

    GRPOTrainer(..., train_dataset=prompt_dataset(jobs, shop), environment_factory=factories(envs, shop))
    GRPOTrainer(..., train_dataset=stream_dataset(stream, 8), environment_factory=factories(stream.envs, stream.shop))

The second draws its tasks from a stream, which hears the outcomes, for a trainer of one process: set
`shuffle_dataset=False`, for a shuffled one is drawn a thousand rows ahead, `num_generations` to the group size, and
`ignore_data_skip=True`, so that a resumed trainer does not draw what it has trained. `SaveStream(stream)` among the
callbacks saves the stream with every checkpoint, and its `resume` restores it.

TRL calls tools one by one and ends a rollout at the first message without a call, so this is for interoperation: the
customer is reached by `ask_user` alone, and each call counts as a message. `ecomlab.training` has neither limit, nor
has `ecomlab.bridges.trl_async`.
"""

import inspect
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset, Features, IterableDataset, Json, List, Value
from transformers import TrainerCallback

from ecomlab.bridges.common import play_call, task_of
from ecomlab.bridges.datasets import AXES, read_axes, write_axes
from ecomlab.catalog import Shop, load_shop
from ecomlab.catalog.shop import loaded_shops
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, ask_user, make_task, system_of
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import environments_of
from ecomlab.reward import Score
from ecomlab.task import Task
from ecomlab.tool import Tool
from ecomlab.training.stream import Stream, Ticket

RULES = " Talk to the customer by ask_user alone; a message without a tool call ends the conversation."
"""Differences of TRL's loop, for the system prompt."""
STATE = "ecomlab_stream.json"
"""The stream's state in a checkpoint."""
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
        self._ticket = ""

    def reset(
        self, difficulty: int = 0, seed: int = 0, overrides: Any = (), ticket: str = "", **others: Any
    ) -> None:
        """Begin the task of a row of the data set."""
        self._ticket = ticket
        if ticket:
            self._episode = _drawn(ticket).stream.open(Ticket.from_json(json.loads(ticket)))
        else:
            task = make_task(self._env, difficulty, seed, self._shop, read_axes(overrides))
            self._episode = Episode(task, self._shop)

    def get_reward(self) -> float:
        """Score the rollout: NaN, which TRL leaves out, if it is unscored. A rollout that stopped before its end is
        truncated and never correct."""
        episode = self._running()
        if not episode.done:
            episode.end_truncated(STOPPED)
        score = episode.score()
        if self._ticket:
            _drawn(self._ticket).hear(self._ticket, score)
            self._ticket = ""
        return math.nan if score.unscored else score.value

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Play a message with one call; return the tool's result and the customer's reply."""
        episode = self._running()
        if episode.done:
            return json.dumps({"error": "the conversation is over"})
        return play_call(episode, name, arguments)

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


@dataclass(frozen=True)
class Factory:
    """Makes rollouts of an environment. It can be pickled, as TRL's worker processes want, and opens its shop there."""

    env: str
    shop: Shop

    def __call__(self) -> ShoppingRollout:
        return _class_of(self)()

    def __reduce__(self) -> Any:
        origin = next((origin for origin, one in loaded_shops() if one is self.shop), None)
        if origin is None:
            raise ValueError(f"other processes cannot open {self.shop!r}, which load_shop did not load")
        return _reopened, (self.env, origin)


def _reopened(env: str, origin: tuple[Any, ...]) -> Factory:
    return Factory(env, load_shop(*origin))


_CLASSES: dict[tuple[str, int], type[ShoppingRollout]] = {}


def _class_of(factory: Factory) -> type[ShoppingRollout]:
    key = factory.env, id(factory.shop)
    if key not in _CLASSES:
        _CLASSES[key] = rollout_class(factory.env, factory.shop)
    return _CLASSES[key]


def factories(envs: str | Iterable[str], shop: Shop) -> dict[str, Callable[[], ShoppingRollout]]:
    """Make the argument `environment_factory` for a collection or environments; a row's `environment` selects the
    class. Raises ValueError for unknown ones."""
    return {
        env: Factory(env, shop) for env in environments_of(envs if isinstance(envs, str) else ",".join(envs))
    }


class SaveStream(TrainerCallback):
    """Puts a stream's state into the trainer's checkpoints; `resume` goes on from one."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        (folder / STATE).write_text(json.dumps(self.stream.state()))

    def resume(self, checkpoint: str | Path) -> None:
        """Restore the stream, before `trainer.train(resume_from_checkpoint=checkpoint)`."""
        self.stream.restore(json.loads((Path(checkpoint) / STATE).read_text()))


class _Drawn:
    """A stream whose tickets are rows of a data set, and the scores that are in."""

    def __init__(self, stream: Stream, group_size: int) -> None:
        self.stream, self.group_size = stream, group_size
        self.scores: dict[str, list[Score]] = {}

    def hear(self, ticket: str, score: Score) -> None:
        """Report a group once all of its scores are in."""
        scores = self.scores.setdefault(ticket, [])
        scores.append(score)
        if len(scores) == self.group_size:
            self.stream.report(Ticket.from_json(json.loads(ticket)), self.scores.pop(ticket))


_STREAMS: list[_Drawn] = []


def _drawn(ticket: str) -> _Drawn:
    return _STREAMS[json.loads(ticket)["stream"]]


def stream_dataset(stream: Stream, group_size: int, ahead: int = 64) -> IterableDataset:
    """Make an endless data set of a stream's tasks, for a trainer in this process whose groups have this size. `ahead`
    exceeds the groups of a generation batch: once as many were drawn that nobody has reported, RuntimeError is raised.
    Also raises it in one of several processes, each of which would hear a part of the outcomes."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RuntimeError(
            "each of several processes would have a stream of its own and hear a part of each group: train in one "
            "process, or with TRL's asynchronous trainer (ecomlab.bridges.trl_async)"
        )
    _STREAMS.append(_Drawn(stream, group_size))
    return IterableDataset.from_generator(_rows, gen_kwargs={"number": len(_STREAMS) - 1, "ahead": ahead})


def _rows(number: int, ahead: int) -> Iterator[dict[str, Any]]:
    stream = _STREAMS[number].stream
    while True:
        if len(stream.state()["waiting"]) >= ahead:
            raise RuntimeError(
                f"{ahead} groups are drawn and not reported, so that no schedule can adapt: set shuffle_dataset=False, "
                "num_generations to this data set's group size, after a resume ignore_data_skip=True, or `ahead` above "
                "the groups of a generation batch"
            )
        ticket = stream.next_group()
        start = stream.start(ticket)
        if isinstance(start, Exception):  # a bug of ours costs one group, not the run
            stream.report(ticket, [None])
            continue
        yield {
            "prompt": _prompt(start.task),
            "environment": ticket.draw.env,
            "ticket": json.dumps({**ticket.to_json(), "stream": number}),
        }


def _prompt(task: Task) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": system_of(task) + RULES},
        {"role": "user", "content": task.opening},
    ]


def prompt_dataset(jobs: Iterable[Job], shop: Shop) -> Dataset:
    """Make TRL's data set of these tasks, with the columns `PROMPTS`."""
    rows = []
    for job in jobs:
        task = task_of(job, shop)
        row = {
            "environment": job.env,
            "difficulty": job.d,
            "seed": job.seed,
            "overrides": write_axes(job.axes),
        }
        rows.append({**row, "prompt": _prompt(task)})
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
