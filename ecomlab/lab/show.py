"""Tasks, conversations, tools and scores as a notebook shows them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from ecomlab.analysis.tables import in_order
from ecomlab.difficulty import AXES, Difficulty
from ecomlab.envs.registry import ENVIRONMENTS, moved_by
from ecomlab.episode.record import Trajectory
from ecomlab.lab.paths import resolve
from ecomlab.lab.play.watch import write_episode
from ecomlab.lab.truth import SAID, truth_of
from ecomlab.markup.conversation import alone
from ecomlab.markup.elements import element, in_notebook, table
from ecomlab.markup.entries import as_text, conversation
from ecomlab.markup.record import system_of
from ecomlab.markup.results import cut
from ecomlab.task import Message, Task


def call(tool: str, **arguments: Any) -> Message:
    """Make the assistant message that calls one tool: `episode.act(call("cart_add", product_id="P3B43PH"))`."""
    made = {
        "id": "call_0",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": "", "tool_calls": [made]}


class Conversation:
    """Messages: in a notebook by turns, with tool calls folded; elsewhere as lines, one for each row of a result."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages

    def __repr__(self) -> str:
        work = system_of(self.messages)
        told = [f"{'task':>8}  {work}"] if work else []
        return "\n".join([*told, as_text(conversation(self.messages))])

    def _repr_html_(self) -> str:
        return in_notebook(alone(self.messages))


class Table:
    """A table that shows long texts in full."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return self.frame.to_string()

    def _repr_html_(self) -> str:
        frame = self.frame
        if not isinstance(frame.index, pd.RangeIndex):  # then it says more than the number of the row
            frame = frame.reset_index()
        headings = ["" if name == "index" else str(name) for name in frame.columns]
        shown = frame.astype(object).where(frame.notna(), "")
        return in_notebook(table(headings, shown.itertuples(index=False)))


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
        spans = (element("mark" if marked else "span", text) for marked, text in self.spans)
        return in_notebook(element("pre", *spans, class_="tokens"))


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


def axes(levels: Sequence[int]) -> pd.DataFrame:
    """Tabulate the twelve axes (rows) at each difficulty (columns)."""
    return pd.DataFrame({f"d = {d}": Difficulty.at(d).to_json() for d in levels}).round(2)


def matrix() -> pd.DataFrame:
    """Tabulate the difficulty axes (columns) that move each environment (rows, in the order of collection C8)."""
    moved = {env: [axis in (moved_by(env) or ()) for axis in AXES] for env in in_order(ENVIRONMENTS)}
    return pd.DataFrame.from_dict(moved, orient="index", columns=list(AXES))


def task(task: Task) -> Table:
    """Tabulate a task with what no player sees: opening, withheld slots, events to come, budgets."""
    rows = [("opening", "", task.opening)]
    rows += [(fact.what, fact.about, cut(fact.text, 200)) for fact in truth_of(task) if fact.what != SAID]
    most, jobs = task.fullest, len(task.parts)
    for name, budget, need, slack in (
        ("turns", task.turns, most.turns, jobs * task.axes.turn_slack),
        ("tool calls", task.calls, most.calls, jobs * task.axes.tool_slack),
    ):
        falls = f"over the next {slack} the reward for efficiency falls to its least"
        rows.append(("budget", name, f"{budget}: at most {need} count as needed here; {falls}"))
    return Table(pd.DataFrame(rows, columns=["", "about", "the task"]).set_index(""))


def truth(task: Task) -> Table:
    """Tabulate the truth of a task: what the customer says at once, what they withhold, and what is to happen."""
    rows = [(fact.about, fact.what, fact.text) for fact in truth_of(task)]
    return Table(pd.DataFrame(rows, columns=["about", "when", "the truth"]).set_index("about"))


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
            "overrides": ", ".join(f"{name} = {value}" for name, value in dict(task.overrides).items()),
            "the customer's first message": task.opening,
        }
        for task in tasks
    ]
    return Table(pd.DataFrame(rows).set_index("d"))


def save(trajectory: Trajectory, out: str | Path, name: str = "episode") -> Path:
    """Write an episode to `out`/`name`.json (task, messages, end, score) and return that path."""
    path = resolve(out) / f"{name}.json"
    write_episode(trajectory, path)
    return path
