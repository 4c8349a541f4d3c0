"""Status of a sweep: runs done, running, queued, failed and left, and their cost so far and to come."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ecomlab.files import read_json
from ecomlab.lab import notebooks
from ecomlab.lab.paths import shown
from ecomlab.lab.progress import RunState
from ecomlab.lab.sweep import FAILED, FINISHED, Run, Sweep, training_config
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
    spent = {run.id: hours(run) for run in runs}
    done = [run for run in runs if run.finished]
    found = []
    for run in runs:
        alike, estimate = [spent[other.id] for other in done if arm(plan, other) == arm(plan, run)], None
        if run in done:
            expected = spent[run.id]
        elif alike:
            expected = fmean(alike)
        elif (estimate := _estimate(plan, run)) is not None:
            expected = estimate
        else:
            expected = fmean(spent[other.id] for other in done) if done else math.nan
        found.append(Status(run, _state(run, jobs), spent[run.id], expected, estimate is not None))
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
    """Print a row per arm, the runs at work, the failures, where the sweep writes, and its cost so far and to come."""
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
    lines = [f"runs in {shown(plan.runs_folder)}/, tables in {shown(plan.folder)}/"]
    hours = {"so far": sum(s.spent for s in statuses), "to come": sum(s.to_come for s in statuses)}
    gpus = plan.cluster.gpus if plan.cluster else 0
    for when, spent in hours.items():
        lines.append(f"{when}: {_number(spent)} hours")
        if gpus:
            lines[-1] += f", {_number(spent * gpus)} GPU-hours"
    if estimated := sum(s.estimated for s in statuses):
        lines.append(
            f"runs estimated by [cost] in {shown(plan.file)}: {estimated}; {plan.cost.note}".rstrip("; ")
        )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


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
    """Estimate the hours of a run by the file's [cost]: given, or of its steps and held-out episodes; None without."""
    cost = plan.cost
    if cost.hours or not cost.step:
        return cost.hours or None
    config = training_config(notebooks.check(run.notebook, run.given))
    episodes = len(config.eval_steps) * config.evaluation_episodes
    return (config.steps * cost.step + episodes * cost.episode) / 3600
