"""Status of a sweep: runs done, running, queued, failed and left, and their cost so far and to come."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.files import read_json
from ecomlab.lab import notebooks
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import RunState
from ecomlab.lab.sweep import FAILED, FINISHED, Cost, Run, Sweep, SweepError
from ecomlab.training.metrics import read


class State(StrEnum):
    DONE = "done"
    RUNNING = "running"
    QUEUED = "queued"
    FAILED = "failed"
    LEFT = "left"  # never started, or interrupted: it continues from its last checkpoint


@dataclass(frozen=True)
class Status:
    """One run as the table shows it."""

    run: Run
    state: State
    spent: float
    """Hours so far."""
    expected: float
    """Hours of the whole run: measured if it is done, else a mean or an estimate; NaN when nothing is known."""
    estimated: bool
    """True if `expected` is the file's estimate."""

    @property
    def to_come(self) -> float:
        if self.state is State.DONE:
            return 0.0
        return max(self.expected - self.spent, 0.0)  # keeps NaN, in this order


def survey(plan: Sweep, runs: Sequence[Run], jobs: Mapping[str, str]) -> list[Status]:
    """Read the state and cost of every run from its folder; `jobs` holds the runs that a cluster has. Writes nothing.

    An unfinished run is expected to take the mean of its arm's finished runs; without any, the file's estimate; without
    that, the mean of all finished runs.
    """
    states = {run.id: _state(run, jobs) for run in runs}
    spent = {run.id: hours(run) for run in runs}
    done = [run for run in runs if states[run.id] is State.DONE]
    found = []
    for run in runs:
        estimate = None
        if states[run.id] is State.DONE:
            expected = spent[run.id]
        elif alike := [spent[other.id] for other in done if arm(plan, other) == arm(plan, run)]:
            expected = sum(alike) / len(alike)
        elif (estimate := _estimate(plan, run)) is not None:
            expected = estimate
        else:
            expected = sum(spent[other.id] for other in done) / len(done) if done else math.nan
        found.append(Status(run, states[run.id], spent[run.id], expected, estimate is not None))
    return found


def hours(run: Run) -> float:
    """Count the hours that `run` has taken: by the steps in its train.csv, which misses loading, or by finished.json,
    which misses all but the last session; whichever is longer."""
    try:
        steps = {row["step"]: float(row["seconds"]) for row in read(run.folder / "train.csv")}
    except (KeyError, TypeError, ValueError, OSError):
        steps = {}  # half-written, or not a training run's; `gather` reports mistakes
    finished = read_json(run.folder / FINISHED) or {}
    return max(sum(steps.values()), float(finished.get("seconds", 0.0))) / 3600


def arm(plan: Sweep, run: Run) -> tuple[str, ...]:
    """List the grid's values in `run`, which name its arm."""
    return tuple(str(run.given[name]) for name in plan.grid)


def show(plan: Sweep, statuses: Sequence[Status], console: Console) -> None:
    """Print a row per arm, the runs at work, the failures, and the costs."""
    arms: dict[tuple[str, ...], list[Status]] = {}
    for status in statuses:
        arms.setdefault(arm(plan, status.run), []).append(status)
    table = Table(title=f"{plan.name}: {len(statuses)} runs", title_justify="left", box=None, pad_edge=False)
    for name in plan.grid:
        table.add_column(name, no_wrap=True)
    for heading in (*State, "hours", "to come"):
        table.add_column(heading, justify="right")
    for names, members in arms.items():
        counts = Counter(status.state for status in members)
        sums = (sum(s.spent for s in members), sum(s.to_come for s in members))
        table.add_row(*map(escape, names), *(str(counts[state]) for state in State), *map(_number, sums))
    console.print(table)
    for status in statuses:
        name, folder = escape(status.run.id), status.run.folder
        if status.state is State.RUNNING:
            console.print(f"running: {name}, {RunState.read(folder)}")
        if status.state is State.FAILED:
            console.print(f"failed: {name}: {escape((read_json(folder / FAILED) or {}).get('why', ''))}")
    for line in _costs(plan, statuses):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _costs(plan: Sweep, statuses: Sequence[Status]) -> Iterator[str]:
    """List where the sweep writes, and the cost so far and to come."""
    yield f"runs in {shown(plan.runs_folder)}/, tables in {shown(plan.folder)}/"
    for when, spent in (
        ("so far", sum(s.spent for s in statuses)),
        ("to come", sum(s.to_come for s in statuses)),
    ):
        gpus = f", {_number(spent * plan.gpus)} GPU-hours" if plan.gpus else ""
        yield f"{when}: {_number(spent)} hours{gpus}"
    if estimated := sum(s.estimated for s in statuses):
        yield f"runs estimated by [cost] in {shown(plan.file)}: {estimated}; {plan.cost.note}".rstrip("; ")


def _number(value: float) -> str:
    if math.isnan(value):
        return "?"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 or not value else f"{value:.2f}"


def _state(run: Run, jobs: Mapping[str, Any]) -> State:
    if run.finished:
        return State.DONE
    if run.at_work:
        return State.RUNNING
    if run.id in jobs:
        return State.QUEUED
    return State.FAILED if (run.folder / FAILED).is_file() else State.LEFT


def _estimate(plan: Sweep, run: Run) -> float | None:
    """Estimate the hours of a run by the file's [cost]: given, or of its steps and held-out episodes; None without.
    Raises SweepError."""
    cost = plan.cost
    if cost.hours or not cost.step:
        return cost.hours or None
    try:
        return _of_its_parts(cost, notebooks.check(run.notebook, run.given))
    except KeyError as e:
        raise SweepError(
            f"{shown(plan.file)}: cost: the notebook has no parameter {e}; give hours instead"
        ) from None


def _of_its_parts(cost: Cost, parameters: Mapping[str, Any]) -> float:
    from ecomlab.evaluation.tasks import environments_of

    steps, every = parameters["steps"], parameters["eval_every"]
    evaluations = {0, *(range(0, steps, every) if every else ()), *parameters.get("eval_at", ()), steps}
    cells = (
        environments_of(parameters.get("eval_collection") or parameters["collection"]),
        parameters["eval_difficulties"],
        parameters["eval_decodings"],
        parameters.get("eval_block", (0,)),
    )
    episodes = len(evaluations) * math.prod(map(len, cells)) * parameters["eval_episodes"]
    return (steps * cost.step + episodes * cost.episode) / 3600
