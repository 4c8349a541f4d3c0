"""Status of a sweep: runs done, running, queued, failed and left, and their cost so far and to come."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pandas as pd
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


def survey(plan: Sweep, jobs: Mapping[str, str]) -> pd.DataFrame:
    """Read the state and cost of every run from its folder; `jobs` holds the runs that a cluster has. Writes nothing.

    Returns a row per run (index: its name): the grid's values, `state`, `hours` so far and `to come`, NaN where nothing
    is known, and `estimated`, true where the file's [cost] was used. An unfinished run is expected to take the mean of
    its arm's finished runs; without any, the file's estimate; without that, the mean of all finished runs.
    """
    runs = {run.id: run for run in plan.runs()}
    rows = pd.DataFrame(
        [{name: str(run.given[name]) for name in plan.grid} for run in runs.values()], index=[*runs]
    )
    rows["state"] = [_state(run, jobs) for run in runs.values()]
    rows["hours"] = [hours(run) for run in runs.values()]
    done = rows.state == State.DONE
    taken = rows.hours.where(done)
    expected = taken.groupby([rows[name] for name in plan.grid] or (lambda _: "")).transform("mean")
    estimate = pd.Series(
        {name: _estimate(plan, runs[name]) for name in rows.index[expected.isna()]}, dtype=float
    )
    expected = expected.fillna(estimate).fillna(taken.mean())
    rows["to come"] = (expected - rows.hours).clip(lower=0).where(~done, 0.0)
    rows["estimated"] = rows.index.isin(estimate.dropna().index)
    return rows


def hours(run: Run) -> float:
    """Count the hours that `run` has taken: by the steps in its train.csv, which misses loading, or by finished.json,
    which misses all but the last session; whichever is longer."""
    try:
        steps = {row["step"]: float(row["seconds"]) for row in read(run.folder / "train.csv")}
    except (KeyError, TypeError, ValueError, OSError):
        steps = {}  # half-written, or not a training run's; `gather` reports mistakes
    finished = read_json(run.folder / FINISHED) or {}
    return max(sum(steps.values()), float(finished.get("seconds", 0.0))) / 3600


def show(plan: Sweep, rows: pd.DataFrame, console: Console) -> None:
    """Print a survey: a row per arm, the runs at work, the failures, where the sweep writes, and its cost."""
    arm = [*plan.grid] or ["sweep"]
    counted = rows.assign(sweep=plan.name, **{state: rows.state == state for state in State})
    arms = counted.groupby(arm, sort=False)[[*State, "hours", "to come"]].agg(lambda s: s.sum(skipna=False))
    print_table(arms.reset_index(), f"{plan.name}: {len(rows)} runs", console, left=len(arm))
    for run in plan.runs():
        if rows.state[run.id] == State.RUNNING:
            console.print(f"running: {escape(run.id)}, {RunState.read(run.folder)}")
        if rows.state[run.id] == State.FAILED:
            why = (read_json(run.folder / FAILED) or {}).get("why", "")
            console.print(f"failed: {escape(f'{run.id}: {why}')}")
    lines = [f"runs in {shown(plan.runs_folder)}/, tables in {shown(plan.folder)}/"]
    gpus = plan.cluster.gpus if plan.cluster else 0
    for when, spent in (("so far", rows.hours), ("to come", rows["to come"])):
        total = spent.sum(skipna=False)
        lines.append(
            f"{when}: {_number(total)} hours" + (f", {_number(total * gpus)} GPU-hours" if gpus else "")
        )
    if estimated := rows.estimated.sum():
        lines.append(
            f"runs estimated by [cost] in {shown(plan.file)}: {estimated}; {plan.cost.note}".rstrip("; ")
        )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def print_table(rows: pd.DataFrame, title: str, console: Console, left: int = 1) -> None:
    """Print a data frame without its index, the first `left` columns to the left."""
    table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(rows):
        table.add_column(name, no_wrap=number < left, justify="left" if number < left else "right")
    for row in rows.itertuples(index=False):
        table.add_row(*(escape(_number(value) if isinstance(value, float) else str(value)) for value in row))
    console.print(table)


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
