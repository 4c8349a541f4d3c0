"""The run's tables of steps and evaluations: appended and flushed, trimmed when a run resumes."""

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecomlab.evaluation.heldout import EPISODE
from ecomlab.models.batch import Rollout
from ecomlab.training.config import RunError
from ecomlab.training.rollouts import Collection, Group, is_trained

if TYPE_CHECKING:
    from ecomlab.training.trl_trainer import Step

ALARMS, DONE = "alarms.txt", "done.json"
"""Files of a run: its alarms, a line each, and the mark of its end, with its steps and configuration."""
HEAD = ("schedule", "collection", "seed", "step", "env")
PHASES = ("model", "environment", "waiting", "logprobs", "update", "sync", "evaluation", "other")
"""Phases of a step. In the rollout: decoding, the environments, waiting for other processes or, with `ahead`, for what
is in flight. Then: the trainer's
forward passes, the rest of the update, sending weights to vLLM, held-out evaluation, and the remainder (the last
step's checkpoint, TRL's own work)."""
UPDATE = ("entropy", "clip_share", "grad_norm", "logp_gap", "logp_gap_max")
COUNTS = (
    "groups", "kept", "discarded", "padding", "rollouts", "unscored", "truncated", "invalid", "failed",
    "tokens_generated", "tokens_used", "tokens_wasted",
)  # fmt: skip
TRAIN_COLUMNS = (
    *HEAD, "d", "d_low", "d_high", "success", "reward", "effective_reward", "effective_correct", "groups", "kept",
    "discarded", "padding", "rounds", "rollouts", "unscored", "truncated", "invalid", "failed", "tokens_generated",
    "tokens_used", "tokens_wasted", "sampled_per_episode", "sampled_longest", "turns_per_episode", *UPDATE,
    "seconds", *(f"seconds_{phase}" for phase in PHASES),
)  # fmt: skip
"""One row per step, environment and level `d` that was drawn in it; an environment of which nothing was drawn has one
row without groups, at the upper edge of its window. d_low and d_high are the window at the beginning of the step. From
`entropy` on, and in `rounds`, metrics are those of the whole step, equal in all its rows. `success` and `reward` are
means over all scored rollouts, discarded ones too; effective_* are shares of groups; `failed` counts scored episodes
that are not correct, truncated and invalid ones among them; tokens are those sampled by the policy, used if they enter
the loss and wasted otherwise; `UpdateMetrics.total` explains entropy, clip_share, grad_norm and logp_gap; the seconds_*
sum to `seconds`."""
EVAL_COLUMNS = (*HEAD, "d", "axes", "block", "episodes", "success", "reward", "unscored", "decoding")
"""One row per evaluation, environment, level, block of tasks and decoding, drawn by `heldout.summarize`."""
EPISODE_COLUMNS = (*HEAD, *(name for name in EPISODE if name not in HEAD))
"""One row per held-out episode: the run and its step, then as `heldout.EPISODE` says."""


class AllFailedError(RunError):
    """A step without a single scored episode: continuing would train on nothing."""


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
    """Make a step's rows, from `env` on, of the environments in `windows`, (low, high) at the step's beginning.

    `seconds` as `phases` gives them; `mask_truncated` as the run sets it, for the count of tokens that were used.
    """
    shared = {name: step.update.get(name, math.nan) for name in UPDATE} | dict(seconds)
    return [
        {
            "env": env,
            "d": d,
            "d_low": low,
            "d_high": high,
            **_cell(step.collection, env, d, mask_truncated),
            **shared,
        }
        for env, (low, high) in windows.items()
        for d in sorted({g.difficulty for g in step.collection.groups if g.env == env}) or [high]
    ]


def _cell(collection: Collection, env: str, d: int, mask_truncated: bool) -> dict[str, Any]:
    """Count what a step played of an environment at one level."""
    groups, kept, padding = (
        [g for g in some if (g.env, g.difficulty) == (env, d)]
        for some in (collection.groups, collection.kept, collection.padding)
    )
    rollouts = [r for g in groups for r in g.rollouts]
    scored = [r.score for r in rollouts if not r.score.unscored]
    generated, used = sum(r.sampled for r in rollouts), _used(kept, mask_truncated)
    return {
        "success": _mean([s.correct for s in scored]),
        "reward": _mean([s.value for s in scored]),
        "effective_reward": _mean([g.effective("reward") for g in groups]),
        "effective_correct": _mean([g.effective("correct") for g in groups]),
        "groups": len(groups),
        "kept": len(kept),
        "discarded": len(groups) - len(kept),
        "padding": len(padding),
        "rounds": collection.rounds,
        "rollouts": len(rollouts),
        "unscored": len(rollouts) - len(scored),
        "truncated": _ended(rollouts, "truncated"),
        "invalid": _ended(rollouts, "invalid"),
        "failed": sum(not s.correct for s in scored),
        "tokens_generated": generated,
        "tokens_used": used,
        "tokens_wasted": generated - used,
        "sampled_per_episode": _mean([r.sampled for r in rollouts]),
        "sampled_longest": max((r.sampled for r in rollouts), default=0),
        "turns_per_episode": _mean([r.turns for r in rollouts]),
    }


WEIGHTS = {
    "success": "scored", "reward": "scored", "effective_reward": "groups", "effective_correct": "groups",
    "sampled_per_episode": "rollouts", "turns_per_episode": "rollouts",
}  # fmt: skip
"""What each mean of a row is a mean over: `scored` are the rollouts that are not unscored."""


def by_environment(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pool a step's rows over levels: one for each environment, without `d`, means weighted by what they are over."""
    pooled = []
    for env in dict.fromkeys(row["env"] for row in rows):
        mine = [{**row, "scored": row["rollouts"] - row["unscored"]} for row in rows if row["env"] == env]
        found = {name: value for name, value in mine[0].items() if name not in ("d", "scored")}
        found |= {name: sum(row[name] for row in mine) for name in COUNTS}
        for name, over in WEIGHTS.items():
            whole = sum(row[over] for row in mine)
            found[name] = (
                sum(row[name] * row[over] for row in mine if row[over]) / whole if whole else math.nan
            )
        found["sampled_longest"] = max(row["sampled_longest"] for row in mine)
        pooled.append(found)
    return pooled


def logged(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List a step's rows for a logger: those of whole environments, then what is counted by level, as "CART/d=3"."""
    levels = [
        {
            "env": f"{row['env']}/d={row['d']}",
            "step": row["step"],
            **{name: row[name] for name in (*COUNTS, *WEIGHTS)},
        }
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
            step[name] += int(row[name])
        step["failures"][row["env"], int(row["d"])] = int(row["failed"]), int(row["truncated"])
    return [steps[number] for number in sorted(steps)]


def read(path: Path) -> list[dict[str, str]]:
    """Read a table's rows; none if the file is missing."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_alive(collection: Collection) -> None:
    """Raise AllFailedError if no episode of a step could be scored."""
    scores = [r.score for g in collection.groups for r in g.rollouts]
    if scores and all(s.unscored for s in scores):
        raise AllFailedError(
            f"all {len(scores)} episodes of this step failed on our side, the first with: {scores[0].why}; "
            "repair that and run again; the run continues from its last checkpoint"
        )


def append(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Append rows and flush them to disk; write the header before the first."""
    fresh = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if fresh:
            writer.writeheader()
        writer.writerows([{name: _short(row[name]) for name in columns} for row in rows])
        file.flush()
        os.fsync(file.fileno())


def trim(path: Path, last: int, columns: Sequence[str]) -> None:
    """Drop rows of steps after `last`, and a half-written last line: those steps will be repeated.

    A table with an incomplete header has no rows and is removed. Raises RunError for a header of other columns, and
    changes nothing.
    """
    if not path.exists():
        return
    text = path.read_text()
    if "\n" not in text.lstrip():
        path.unlink()
        return
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise RunError(
                f"{path} was written by another ecomlab, with other columns; finish that run with the ecomlab that "
                "started it, or choose another out"
            )
        kept = [row for row in reader if None not in row.values() and 0 <= _step(row) <= last]
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(kept)
    part.replace(path)


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


def has_step(path: Path, step: int) -> bool:
    """Tell whether the table has a row of this step."""
    return any(_step(row) == step for row in read(path))


def _step(row: Mapping[str, Any]) -> int:
    """Read the row's step; -1 when it has none."""
    try:
        return int(row["step"])
    except (KeyError, TypeError, ValueError):
        return -1


def _ended(rollouts: Sequence[Rollout], end: str) -> int:
    return sum(r.end == end for r in rollouts)


def _used(kept: Sequence[Group], mask_truncated: bool) -> int:
    """Count sampled tokens that enter the loss."""
    return sum(r.sampled for g in kept for r in g.rollouts if is_trained(r, mask_truncated))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
