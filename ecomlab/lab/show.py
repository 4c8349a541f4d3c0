"""Tasks, conversations, tools and scores as a notebook shows them."""

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from ecomlab.analysis.tables import in_order
from ecomlab.difficulty import AXES, Difficulty
from ecomlab.envs.registry import ENVIRONMENTS, moved_by
from ecomlab.episode.episode import Trajectory
from ecomlab.files import write_json
from ecomlab.lab.conversation import COLOURS, Conversation, as_json, call, cut, say
from ecomlab.lab.paths import resolve
from ecomlab.reward import WEIGHTS, Score
from ecomlab.task import ACT, LOOK, Event, GoalChange, Instead, SellOut, Task

__all__ = ["Conversation", "Table", "Tokens", "axes", "call", "matrix", "openings", "results"]
__all__ += ["save", "say", "score", "task", "tools"]


class Table:
    """A table that shows long texts in full."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return self.frame.to_string()

    def _repr_html_(self) -> str:
        texts = self.frame.select_dtypes(exclude=["number", "bool"]).columns
        as_is = dict.fromkeys(texts, str)  # pandas would write a line break as a backslash and an n
        with pd.option_context("display.max_colwidth", None):
            table = self.frame.to_html(justify="left", border=0, formatters=as_is)
        return table.replace("<td>", '<td style="text-align: left; white-space: pre-line">')


class Tokens:
    """Tokens as text, with those of mask 1 marked: by colour in a notebook, by brackets elsewhere."""

    def __init__(self, ids: Sequence[int], mask: Sequence[int], tokenizer: Any) -> None:
        self.spans: list[tuple[bool, str]] = []
        for marked, pairs in groupby(zip(mask, ids, strict=True), key=lambda pair: bool(pair[0])):
            text = tokenizer.decode([token for _, token in pairs], skip_special_tokens=False)
            self.spans.append((marked, text))

    def __repr__(self) -> str:
        return "".join(f"⟦{text}⟧" if marked else text for marked, text in self.spans)

    def _repr_html_(self) -> str:
        looks = {True: f"background: {COLOURS['assistant']}33", False: "color: #777"}
        spans = (f'<span style="{looks[marked]}">{html.escape(text)}</span>' for marked, text in self.spans)
        return f'<pre style="white-space: pre-wrap">{"".join(spans)}</pre>'


def tools(schemas: Sequence[Mapping[str, Any]]) -> Table:
    """Tabulate tools, a row each: the arguments (optional ones with a question mark) and the description."""
    rows = {}
    for schema in schemas:
        function = schema["function"]
        parameters = function.get("parameters", {})
        required = parameters.get("required", [])
        names = [name if name in required else f"{name}?" for name in parameters.get("properties", {})]
        rows[function["name"]] = {
            "arguments": ", ".join(names),
            "description": function.get("description", ""),
        }
    return Table(pd.DataFrame.from_dict(rows, orient="index"))


def score(result: Score, weights: Mapping[str, float] = WEIGHTS) -> pd.DataFrame:
    """Tabulate the parts of the reward, their weights and contributions; the last row is the reward."""
    parts = {part: (value, weights.get(part, 1.0)) for part, value in result.parts.items()}
    rows = {
        part: {"value": value, "weight": weight, "adds": value * weight}
        for part, (value, weight) in parts.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index").round(3).astype({"weight": object})
    table.loc["reward"] = [round(result.value, 3), "", round(result.value, 3)]
    return table


def axes(levels: Sequence[int]) -> pd.DataFrame:
    """Tabulate the twelve axes (rows) at each difficulty (columns)."""
    return pd.DataFrame({f"d = {d}": Difficulty.at(d).to_json() for d in levels}).round(2)


def matrix() -> pd.DataFrame:
    """Tabulate the difficulty axes (columns) that move each environment (rows, in the order of collection C8)."""
    moved = {env: [axis in (moved_by(env) or ()) for axis in AXES] for env in in_order(ENVIRONMENTS)}
    return pd.DataFrame.from_dict(moved, orient="index", columns=list(AXES))


def task(task: Task) -> Table:
    """Tabulate a task with what no player sees: opening, withheld values, events to come, budgets; a journey's by
    subtask. Values are those of the goal: prices in cents, ratings in tenths of a star."""
    rows = [("opening", "", task.opening)]
    for subtask in task.parts:
        withheld: dict[str, list[str]] = {}
        for slot in subtask.goal.said(withheld=True):
            about = subtask.goal.get("type", "", slot.item)
            withheld.setdefault(about, []).append(f"{slot.name}: {as_json(slot.value)}")
        told = [("withheld", about, "; ".join(slots)) for about, slots in withheld.items()]
        for event in subtask.events:
            about = subtask.goal.get("type", "", event.item)
            told.append((f"after {_moment(event)}", about, cut(_event(event), 200)))
        named = f"{subtask.env} " if task.subtasks else ""
        rows += [(row, named + about, text) for row, about, text in told]
    for number, event in task.interrupts:
        inner, outer = task.parts[number + 1].env, task.parts[number].env
        rows.append((f"after {_moment(event)}", outer, f"interrupted by {inner}"))
    most, jobs = task.fullest, len(task.parts)
    for name, budget, need, slack in (
        ("turns", task.turns, most.turns, jobs * task.axes.turn_slack),
        ("tool calls", task.calls, most.calls, jobs * task.axes.tool_slack),
    ):
        rows.append(("budget", name, f"{budget}: at most {need} are needed here, {slack} are slack"))
    return Table(pd.DataFrame(rows, columns=["", "about", "the task"]).set_index(""))


HOW = {
    "set": "now wants",
    "add": "adds",
    "drop": "gives up",
    "replace": "wants instead",
    "anew": "wants something else:",
}
"""Goal changes in words."""


PREFERS = {
    "option": "another option",
    "quantity": "as many as there are",
    "replace": "another product",
    "drop": "nothing",
}
"""What is preferred instead of what has run short, in words."""


def _moment(event: Event) -> str:
    """Describe when an event happens, at the latest when the agent first hands in."""
    if isinstance(event, Instead):
        return "hearing of it"
    return {LOOK: "a look at the type", ACT: "a first act or proposal"}.get(event.moment, event.moment)


def _event(event: Event) -> str:
    """Describe an event: its kind and what it changes."""
    if isinstance(event, SellOut):
        options = " (options)" if event.of == "options" else ""
        return f"sells out: {event.share:.0%} of {', '.join(event.types)}{options}"
    if isinstance(event, Instead):
        return f"would take: {PREFERS[event.prefers]}, or {as_json(dict(event.slots))}"
    if isinstance(event, GoalChange):
        slots = dict(event.slots)
        if "correction" in slots:  # STATUS: in steps from the order first asked about
            slots["order"] = f"{slots.pop('correction'):+d} from the one asked about"
        told = "; ".join(f"{name}: {as_json(value)}" for name, value in slots.items())
        return f"{HOW[event.how]} {told}".rstrip()
    return type(event).__name__


def results(episodes: Iterable[Trajectory]) -> Table:
    """Tabulate episodes, a row each: turns and tool calls of those allowed, reward, correctness and the reason."""
    rows = [
        {
            "env": episode.task.env,
            "turns": f"{episode.turns} of {episode.task.turns}",
            "calls": f"{episode.calls} of {episode.task.calls}",
            "reward": round(episode.score.value, 3),
            "correct": episode.score.correct,
            "why": episode.score.why,
        }
        for episode in episodes
    ]
    return Table(pd.DataFrame(rows).set_index("env"))


def openings(tasks: Sequence[Task]) -> Table:
    """Tabulate tasks, a row each: difficulty, overrides, and the customer's first message."""
    rows = [
        {
            "d": task.difficulty,
            "overrides": dict(task.overrides) or "",
            "the customer's first message": task.opening,
        }
        for task in tasks
    ]
    return Table(pd.DataFrame(rows).set_index("d"))


def save(trajectory: Trajectory, out: str | Path, name: str = "episode") -> Path:
    """Write an episode to `out`/`name`.json (task, messages, end, score) and return that path."""
    path = resolve(out) / f"{name}.json"
    result = trajectory.score
    value = None if result.unscored else result.value
    verdict = {"value": value, "correct": result.correct, "parts": dict(result.parts), "why": result.why}
    record = {"task": trajectory.task.to_json(), "messages": trajectory.messages, "end": trajectory.end}
    write_json(path, {**record, "score": verdict})
    return path
