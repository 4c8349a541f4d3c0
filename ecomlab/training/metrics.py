"""The run's tables of steps and evaluations: appended and flushed, trimmed when a run resumes."""

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.heldout import EPISODE
from ecomlab.files import replacing
from ecomlab.training.config import RunError
from ecomlab.training.rollouts import Collection, Group, is_trained

if TYPE_CHECKING:
    from ecomlab.training.trl_trainer import Step

ALARMS, DONE = "alarms.txt", "done.json"
"""Files of a run: its alarms, a line each, and the mark of its end, with its steps and configuration."""
HEAD = ("schedule", "collection", "seed", "step", "env")
PHASES = ("model", "environment", "waiting", "logprobs", "update", "sync", "evaluation", "other")
"""Phases of a step. In the rollout: decoding, the environments, waiting for other processes. Then: the trainer's
forward passes, the rest of the update, sending weights to vLLM, held-out evaluation, and the remainder (the last
step's checkpoint, TRL's own work)."""
UPDATE = ("entropy", "clip_share", "grad_norm", "logp_gap", "logp_gap_max")
"""Metrics of a step's update, which `UpdateMetrics.total` explains."""


class Cell:
    """The episodes of a step in one environment at one level."""

    def __init__(self, collection: Collection, env: str, d: int, mask_truncated: bool = False) -> None:
        def mine(groups: Sequence[Group]) -> list[Group]:
            return [group for group in groups if (group.draw.env, group.draw.level) == (env, d)]

        self.rounds = collection.rounds
        self.groups, self.kept = mine(collection.groups), mine(collection.kept)
        self.padding = mine(collection.padding)
        self.rollouts = [r for group in self.groups for r in group.rollouts]
        self.scores = [r.score for r in self.rollouts if not r.score.unscored]
        self.generated = sum(r.sampled for r in self.rollouts)
        """Tokens that the policy sampled."""
        trained = [r for group in self.kept for r in group.rollouts if is_trained(r, mask_truncated)]
        self.used = sum(r.sampled for r in trained)
        """Of these, the tokens that enter the loss."""

    def ended(self, end: str) -> int:
        return sum(r.end == end for r in self.rollouts)


@dataclass(frozen=True)
class Metric:
    """A column of train.csv that is computed from what was played."""

    name: str
    of: Callable[[Cell], float]
    pooled: str
    """How rows are pooled over levels: "sum", "max", "same" (a metric of the whole step), or a mean weighted by its
    number of "scored" rollouts, of all "rollouts", or of "groups"."""


METRICS = (
    Metric("success", lambda c: _mean([s.correct for s in c.scores]), "scored"),
    Metric("reward", lambda c: _mean([s.value for s in c.scores]), "scored"),
    Metric("effective_reward", lambda c: _mean([g.effective("reward") for g in c.groups]), "groups"),
    Metric("effective_correct", lambda c: _mean([g.effective("correct") for g in c.groups]), "groups"),
    Metric("groups", lambda c: len(c.groups), "sum"),
    Metric("kept", lambda c: len(c.kept), "sum"),
    Metric("discarded", lambda c: len(c.groups) - len(c.kept), "sum"),
    Metric("padding", lambda c: len(c.padding), "sum"),
    Metric("rounds", lambda c: c.rounds, "same"),
    Metric("rollouts", lambda c: len(c.rollouts), "sum"),
    Metric("unscored", lambda c: len(c.rollouts) - len(c.scores), "sum"),
    Metric("truncated", lambda c: c.ended("truncated"), "sum"),
    Metric("invalid", lambda c: c.ended("invalid"), "sum"),
    Metric("failed", lambda c: sum(not s.correct for s in c.scores), "sum"),
    Metric("tokens_generated", lambda c: c.generated, "sum"),
    Metric("tokens_used", lambda c: c.used, "sum"),
    Metric("tokens_wasted", lambda c: c.generated - c.used, "sum"),
    Metric("sampled_per_episode", lambda c: _mean([r.sampled for r in c.rollouts]), "rollouts"),
    Metric("sampled_longest", lambda c: max((r.sampled for r in c.rollouts), default=0), "max"),
    Metric("turns_per_episode", lambda c: _mean([r.turns for r in c.rollouts]), "rollouts"),
)
"""Means are over all rollouts, discarded ones too; effective_* are shares of groups; `failed` counts scored episodes
that are not correct, truncated and invalid ones among them."""
TRAIN_COLUMNS = (
    *HEAD,
    *("d", "d_low", "d_high"),
    *(metric.name for metric in METRICS),
    *UPDATE,
    *("seconds", *(f"seconds_{phase}" for phase in PHASES)),
)
"""One row per step, environment and level `d` that was drawn in it; an environment of which nothing was drawn has one
row without groups, at the upper edge of its window. d_low and d_high are the window at the beginning of the step, or
for a schedule without windows the lowest and the highest level drawn. `rounds`, `UPDATE` and the seconds are those of
the whole step, equal in all its rows; the seconds_* sum to `seconds`."""
EVAL_COLUMNS = (*HEAD, "d", "axes", "block", "episodes", "success", "reward", "unscored", "decoding")
"""One row per evaluation, environment, level, block of tasks and decoding, drawn by `heldout.summarize`."""
EPISODE_COLUMNS = (*HEAD, *(name for name in EPISODE if name not in HEAD))
"""One row per held-out episode: the run and its step, then as `heldout.EPISODE` says."""


def phases(known: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Split a step's `seconds` by phase, as columns of its row; "other" is the remainder."""
    split = {phase: float(known.get(phase, 0.0)) for phase in PHASES[:-1]}
    split["other"] = seconds - sum(split.values())
    return {"seconds": seconds} | {f"seconds_{phase}": split[phase] for phase in PHASES}


def train_rows(
    step: "Step",
    windows: Mapping[str, tuple[int, int]],
    seconds: Mapping[str, float],
    mask_truncated: bool = False,
) -> list[dict[str, Any]]:
    """Make a step's rows (columns from `env` on) for the environments in `windows`, which gives (low, high) at the
    step's beginning; without windows, for the environments that were drawn.

    `seconds` is the result of `phases`; `mask_truncated` is the run's setting, for the count of trained tokens.
    """
    shared = {name: step.update.get(name, math.nan) for name in UPDATE} | dict(seconds)
    drawn: dict[str, set[int]] = {}
    for group in step.collection.groups:
        drawn.setdefault(group.draw.env, set()).add(group.draw.level)
    rows = []
    for env in windows or drawn:
        low, high = windows[env] if windows else (min(drawn[env]), max(drawn[env]))
        for d in sorted(drawn.get(env, {high})):
            cell = Cell(step.collection, env, d, mask_truncated)
            head = {"env": env, "d": d, "d_low": low, "d_high": high}
            rows.append({**head, **{metric.name: metric.of(cell) for metric in METRICS}, **shared})
    return rows


def by_environment(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pool a step's rows over levels: one for each environment, without `d`, as `Metric.pooled` says."""
    pooled = []
    for env in dict.fromkeys(row["env"] for row in rows):
        mine = [{**row, "scored": row["rollouts"] - row["unscored"]} for row in rows if row["env"] == env]
        found = {name: value for name, value in mine[0].items() if name not in ("d", "scored")}
        for metric in METRICS:
            values = [row[metric.name] for row in mine]
            if metric.pooled in ("sum", "max"):
                found[metric.name] = sum(values) if metric.pooled == "sum" else max(values)
            elif metric.pooled != "same":
                over = [row[metric.pooled] for row in mine]
                total = sum(value * count for value, count in zip(values, over, strict=True) if count)
                found[metric.name] = total / sum(over) if sum(over) else math.nan
        pooled.append(found)
    return pooled


def logged(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List a step's rows for a logger: those of whole environments, then those of levels, as "CART/d=3"."""
    names = [metric.name for metric in METRICS if metric.pooled not in ("same", "max")]
    levels = [
        {"env": f"{row['env']}/d={row['d']}", "step": row["step"], **{name: row[name] for name in names}}
        for row in rows
    ]
    return by_environment(rows) + levels


def whole_steps(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Reduce to one row per step: counts summed over its environments and levels, metrics of the whole step as they
    are. `failures` maps (environment, level) to its failed and its truncated episodes."""
    summed = ("kept", "rollouts", "truncated", "unscored")
    steps: dict[int, dict[str, Any]] = {}
    for row in rows:
        number = int(row["step"])
        shared = {name: float(row[name]) for name in ("entropy", "logp_gap")}
        fresh = {"step": number, **dict.fromkeys(summed, 0), **shared, "failures": {}}
        step = steps.setdefault(number, fresh)
        for name in summed:
            step[name] += _count(row[name])
        step["failures"][row["env"], int(row["d"])] = _count(row["failed"]), _count(row["truncated"])
    return [steps[number] for number in sorted(steps)]


def read(path: Path) -> list[dict[str, str]]:
    """Read a table's rows; none if the file is missing."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_alive(collection: Collection) -> None:
    """Raise RunError if no episode of a step could be scored."""
    scores = [r.score for g in collection.groups for r in g.rollouts]
    if scores and all(s.unscored for s in scores):
        raise RunError(
            f"all {len(scores)} episodes of this step failed on our side, the first with: {scores[0].why}; "
            "repair that and run again; the run continues from its last checkpoint"
        )


def append(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], mode: str = "a") -> None:
    """Append rows and flush them to disk; write the header first in a new file."""
    with path.open(mode, newline="") as file:
        writer = csv.DictWriter(file, columns)
        if not file.tell():
            writer.writeheader()
        writer.writerows([{name: _short(row[name]) for name in columns} for row in rows])
        file.flush()
        os.fsync(file.fileno())


def trim(path: Path, last: int, columns: Sequence[str]) -> None:
    """Drop rows of steps after `last`, and a half-written last line: those steps will be repeated. Columns missing from
    a table of an older ecomlab are added as NaN. Raises RunError for a table with other columns, and changes nothing.
    """
    if not path.exists():
        return
    rows = read(path)
    if rows and not set(HEAD) <= set(rows[0]) <= set(columns):
        raise RunError(
            f"{path} was written by another ecomlab, with other columns; finish that run with the ecomlab that "
            "started it, or choose another out"
        )
    kept = [row for row in rows if None not in row.values() and int(row["step"]) <= last]
    with replacing(path) as draft:
        append(draft, [{**dict.fromkeys(columns, "nan"), **row} for row in kept], columns, mode="w")


def trim_lines(path: Path, last: int) -> None:
    """Drop the lines "step N: ..." with N after `last`."""
    if path.exists():
        numbered = [
            (line, re.match(r"step (\d+): ", line)) for line in path.read_text().splitlines(keepends=True)
        ]
        path.write_text("".join(line for line, step in numbered if step and int(step[1]) <= last))


def unscored_reasons(collection: Collection) -> list[str]:
    """List why episodes of a step are unscored, most common first: "3 episodes: ZeroDivisionError: ..."."""
    whys = Counter(r.score.why for g in collection.groups for r in g.rollouts if r.score.unscored)
    return [f"{count} episodes: {why}" for why, count in whys.most_common()]


def _count(value: Any) -> int:
    """Read a count; 0 where it was not counted."""
    return 0 if math.isnan(float(value)) else int(value)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
