"""Hugging Face datasets: tasks, and transcripts in the conversational format with tools that TRL's SFTTrainer takes."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset, Features, Json, List, Value

from ecomlab.bridges.common import play_reference, task_of
from ecomlab.catalog import Shop
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.reward import Score
from ecomlab.task import Message, Task, TaskError

AXES = List({"name": Value("string"), "value": Value("float64")})
"""Overridden axes, as text: a `Json` column truncates numbers to ten digits (as it does in the arguments of calls)."""
PARTS = ("task", "efficiency", "hallucination", "invalid")
"""Named parts of a score; an invalid episode has only the last, others the first three."""
_TASK = {
    "env": Value("string"),
    "version": Value("int64"),
    "difficulty": Value("int64"),
    "seed": Value("int64"),
    "overrides": AXES,
    "shop": Value("string"),
    "turns_allowed": Value("int64"),
    "calls_allowed": Value("int64"),
    "tools": List(Json()),
}
TASKS = Features({**_TASK, "prompt": List(Json())})
"""Columns of a data set of tasks: key, budgets, the tools' OpenAI schemas, and the prompt (system message and the
customer's opening). No column contains withheld slots."""
TRANSCRIPTS = Features(
    {
        **_TASK,
        "messages": List(Json()),
        "reward": Value("float64"),
        "correct": Value("bool"),
        "why": Value("string"),
        "parts": {name: Value("float64") for name in PARTS},
        "asking": Json(),
        "end": Value("string"),
        "turns": Value("int64"),
        "calls": Value("int64"),
        "strict": Value("bool"),
        "wording": Value("string"),
    }
)
"""Columns of a data set of played episodes; `reward` is null if the episode is unscored. Arguments of tool calls
are objects, as TRL and chat templates expect them, not text as in OpenAI's format. `wording` is JSON: the requests to
an endpoint that words the customer and its answers, which the replay of such an episode needs."""


def task_dataset(jobs: Iterable[Job], shop: Shop) -> Dataset:
    """Make a data set of tasks, with the columns `TASKS`."""
    rows = []
    for job in jobs:
        episode = Episode(task_of(job, shop), shop)
        rows.append({**_named(episode.task, episode.tools), "prompt": episode.messages})
    return Dataset.from_list(rows, features=TASKS)


def transcript_dataset(trajectories: Iterable[Trajectory], shop: Shop) -> Dataset:
    """Make a data set of played episodes, with the columns `TRANSCRIPTS`."""
    rows = []
    for trajectory in trajectories:
        score, tools = trajectory.score, Episode(trajectory.task, shop).tools
        rows.append(
            {
                **_named(trajectory.task, tools),
                "messages": [_with_objects(message) for message in trajectory.messages],
                "reward": None if score.unscored else score.value,
                "correct": score.correct,
                "why": score.why,
                "parts": {name: score.parts.get(name) for name in PARTS},
                "asking": dict(score.asking),
                "end": trajectory.end,
                "turns": trajectory.turns,
                "calls": trajectory.calls,
                "strict": trajectory.strict,
                "wording": json.dumps(trajectory.wording),
            }
        )
    return Dataset.from_list(rows, features=TRANSCRIPTS)


def demonstration_dataset(jobs: Iterable[Job], shop: Shop) -> Dataset:
    """Make a data set of the reference player's episodes, for imitation; incorrect ones are left out."""
    played = (play_reference(job, shop) for job in jobs)
    return transcript_dataset([one for one in played if one.score.correct], shop)


def read_trajectory(row: Mapping[str, Any], shop: Shop) -> Trajectory:
    """Read a row of a data set of played episodes; `ecomlab.replay` plays it again.

    Raises TaskError for a row of another shop or of another version of its environment.
    """
    task = make_task(row["env"], row["difficulty"], row["seed"], shop, read_axes(row["overrides"]))
    if (row["version"], row["shop"]) != (task.version, task.fingerprint):
        raise TaskError(
            f"the row is of {row['env']} version {row['version']} in shop {row['shop']}, this is version "
            f"{task.version} in shop {task.fingerprint}; load that catalog, or install the ecomlab that made it"
        )
    unscored = row["reward"] is None
    score = Score(
        value=math.nan if unscored else row["reward"],
        correct=row["correct"],
        why=row["why"],
        parts={name: value for name, value in row["parts"].items() if value is not None},
        unscored=unscored,
        asking=row["asking"],
    )
    messages = [_with_text(message) for message in row["messages"]]
    wording = json.loads(row.get("wording") or "[]")
    return Trajectory(task, messages, row["end"], score, row["turns"], row["calls"], row["strict"], wording)


def write_axes(axes: Mapping[str, float]) -> list[dict[str, Any]]:
    """Write overridden axes as a value of `AXES`."""
    return [{"name": name, "value": value} for name, value in axes.items()]


def read_axes(axes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Read what `write_axes` wrote."""
    return {axis["name"]: axis["value"] for axis in axes}


def _named(task: Task, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "env": task.env,
        "version": task.version,
        "difficulty": task.difficulty,
        "seed": task.seed,
        "overrides": write_axes(task.overrides),
        "shop": task.fingerprint,
        "turns_allowed": task.turns,
        "calls_allowed": task.calls,
        "tools": list(tools),
    }


def _with_objects(message: Message) -> Message:
    """Copy a message with its calls' arguments as objects; arguments that are not a JSON object stay text."""
    return _with_arguments(message, lambda text: _object(text) if isinstance(text, str) else text)


def _with_text(message: Message) -> Message:
    """Copy a message with its calls' arguments as text."""
    return _with_arguments(message, lambda value: value if isinstance(value, str) else json.dumps(value))


def _with_arguments(message: Message, change: Any) -> Message:
    if "tool_calls" not in message:
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    changed = [{**function, "arguments": change(function["arguments"])} for function in functions]
    calls = [
        {**call, "function": function} for call, function in zip(message["tool_calls"], changed, strict=True)
    ]
    return {**message, "tool_calls": calls}


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
