"""Evaluation of any contestant on held-out tasks: each episode is recorded as it ends, and a killed run goes on."""

import math
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ecomlab.envs.registry import ENVIRONMENTS, observed, version_record
from ecomlab.episode.episode import ask_user, make_task
from ecomlab.episode.play import ReplayError, replay
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import Axes, axes_of, held_out_seeds
from ecomlab.evaluation.transcript import Transcript, key_of
from ecomlab.evaluation.transcripts import Log, TranscriptError, differences, opened, read, read_header
from ecomlab.reward import PUBLISHED
from ecomlab.seeding import digest

if TYPE_CHECKING:
    from ecomlab.catalog import Shop

EVALUATION, FRONTIER, TRAINING = "evaluation", "frontier", "training"
"""Kinds of runs that transcripts are of."""
MEASURED = 10
"""Episodes that are played first, to measure the pace."""
CONDITIONS = ("limits", "max_tokens", "context", "strict", "customer", "reward")
"""Fields of an identity that are conditions of play: players are compared under equal ones."""
OnProgress = Callable[[Mapping[str, Any]], None]


class Contestant(Protocol):
    """A player of many episodes at once."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that decides its answers, as JSON values: kind, model, digest of weights, sampling, limits."""

    @property
    def at_once(self) -> int:
        """Maximum number of episodes side by side."""

    def play(self, jobs: Sequence[Job], shop: "Shop") -> Iterator[Transcript]:
        """Play every job, in any order, and yield each as soon as it is over.

        A caller that stops iterating ends what still runs. An infrastructure error makes its episode unscored, and it
        is yielded like the others; only a mistake of the caller raises.
        """


@dataclass(frozen=True)
class Cells:
    """The tasks of an evaluation: environments, levels, how many held-out tasks of each, how often each is played."""

    envs: tuple[str, ...]
    levels: tuple[int, ...]
    tasks: int
    block: int = 0
    trials: int = 1
    axes: Axes = field(default_factory=dict)

    def jobs(self) -> list[Job]:
        """List every episode; the tasks of all cells take turns, so that the first half is an evaluation too."""
        return [
            Job(env, d, seed, trial, axes_of(self.axes, env))
            for seed in held_out_seeds(self.block, self.tasks)
            for trial in range(self.trials)
            for env in self.envs
            for d in self.levels
        ]

    @property
    def rounds(self) -> int:
        """Episodes for one task of every cell."""
        return len(self.envs) * len(self.levels) * self.trials

    def first(self, count: int) -> list[Job]:
        """Choose `count` episodes spread evenly over the cells, of the first tasks of each."""
        tasks = min(self.tasks, math.ceil(count / (len(self.envs) * len(self.levels))))
        one = Cells(self.envs, self.levels, tasks, self.block, 1, self.axes).jobs()
        count = min(count, len(one))
        return [one[i * len(one) // count] for i in range(count)]


def header_of(
    kind: str,
    player: str,
    contestant: Contestant,
    envs: Sequence[str],
    axes: Axes,
    shop: "Shop",
    catalog: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Make a run's header: `player` (the name in tables), identity, conditions, and `more`. `catalog` says how the shop
    is loaded. Raises ValueError where the header would hold a secret."""
    identity = dict(contestant.identity)
    header = {
        "kind": kind,
        "player": player,
        "identity": {name: value for name, value in identity.items() if name not in CONDITIONS},
        "conditions": {
            "environments": {env: environment_of(env) for env in envs},
            "scores": {env: observed()[env]["scores"] for env in envs if env in observed()},
            "catalog": {**catalog, "fingerprint": shop.fingerprint},
            "axes": dict(axes),
            "limits": _limits(identity),
            "strict": identity.get("strict", False),
            "customer": identity.get("customer", "rules"),
            "reward": identity.get("reward", PUBLISHED.by_name),
        },
        **more,
    }
    _check_no_secret(header)
    return header


def _limits(identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Name the limits of tokens: in a turn, in an episode, and of a whole context; None for a player that has none."""
    if "limits" in identity:
        return dict(identity["limits"])
    if "max_tokens" in identity:
        return {"turn": identity["max_tokens"] or None, "episode": None, "context": identity.get("context")}
    return None


def environment_of(env: str) -> dict[str, Any]:
    """Name an environment as it is now: version, digest of its first tasks, digest of its tools' schemas."""
    found = ENVIRONMENTS[env]
    schemas = [tool.schema for tool in (*found.offered.values(), ask_user, found.submit)]
    return {**version_record(env), "tools": digest(schemas)}


def _check_no_secret(header: Mapping[str, Any]) -> None:
    """Raise ValueError for a header with a password in an address, or the value of a variable that is named a key."""
    text = repr(header)
    if re.search(r"://[^/@\s'\"]+@", text):
        raise ValueError(
            "the address of the player holds a user's name or password; give the key in a variable instead"
        )
    for name, value in os.environ.items():
        secret = re.search(r"KEY|TOKEN|SECRET|PASSWORD", name.upper()) and len(value) >= 8
        if secret and value in text:
            raise ValueError(
                f"the player's settings hold the value of {name}; name the variable there, not its value"
            )


def run_evaluation(
    contestant: Contestant,
    cells: Cells,
    shop: "Shop",
    folder: Path,
    header: Mapping[str, Any],
    made_with: Mapping[str, Any],
    *,
    budget: float | None = None,
    retry_unscored: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> None:
    """Play every episode of `cells` that `folder` has not scored yet, and record each as soon as it is over.

    The first ten episodes measure the pace. With a `budget` in seconds they decide, once, how many tasks a cell are
    played; a contestant of more than ten at once is then measured with as many side by side, or with a tenth of the
    budget, and the quicker pace counts. Without a budget, a folder that was asked for fewer tasks gets the others.
    Unscored episodes are tried again only with `retry_unscored`. `on_progress` is called with each measurement, the
    plan and each episode. Raises TranscriptError for a folder that holds another run, ValueError where not one task a
    cell fits into the budget, or no measured episode was scored.
    """
    asked = {**asdict(cells), "budget": budget}
    with opened(folder, {**header, "cells": asked}, made_with) as log:
        if log.plan is None:
            tasks = _choose(contestant, cells, shop, log, budget, retry_unscored, on_progress)
            log.decide({"tasks": tasks})
        elif budget is None and log.plan["tasks"] < cells.tasks:  # after a first look
            log.decide({"tasks": cells.tasks})
        elif budget is None and log.plan["tasks"] > cells.tasks:
            raise TranscriptError(
                f"{folder} holds an evaluation of {log.plan['tasks']} tasks a cell by now, not {cells.tasks}; ask "
                "for as many, or choose another --out"
            )
        assert log.plan is not None
        chosen = Cells(**{**asdict(cells), "tasks": log.plan["tasks"]})
        count = len(cells.envs) * len(cells.levels)
        on_progress({"kind": "plan", "tasks": chosen.tasks, "of": cells.tasks, "cells": count})
        jobs = chosen.jobs()
        left = [job for job in jobs if _is_left(log, job, retry_unscored)]
        play_all(contestant, left, shop, log, on_progress, total=len(jobs))


def _choose(
    contestant: Contestant,
    cells: Cells,
    shop: "Shop",
    log: Log,
    budget: float | None,
    retry_unscored: bool,
    on_progress: OnProgress,
) -> int:
    """Play the first ten episodes, as far as an earlier start has not, and choose the number of tasks a cell."""
    first = cells.first(MEASURED)
    left = [job for job in first if _is_left(log, job, retry_unscored)]
    began = 0.0 if log.scored else log.elapsed  # what an earlier start lost on failures alone is no pace
    play_all(contestant, left, shop, log, on_progress, total=len(first))
    if log.scored:
        each = _pace(len(log.scored), log.elapsed - began, cells, on_progress)
    elif budget is not None:
        *_, last = read(log.path)
        raise ValueError(
            f"none of the first {len(first)} episodes was scored ({last.unscored}: {last.why_unscored}), so that "
            "no pace is known for the budget; mend that, and run it again with --retry-unscored"
        )
    if budget is None:
        return cells.tasks
    each = min(each, _pace_at_once(contestant, cells, shop, log, int(budget / 10 / each), on_progress))
    affordable = int(budget / (each * cells.rounds))
    if not affordable:
        raise ValueError(
            f"one task a cell is {cells.rounds} episodes and takes about {each * cells.rounds:.0f} s, more than the "
            f"budget of {budget:.0f} s; ask for fewer levels, environments or trials, or for more time"
        )
    touched = len({job.seed for job in cells.jobs() if not _is_left(log, job)})
    return min(cells.tasks, max(affordable, touched))


def _pace_at_once(
    contestant: Contestant, cells: Cells, shop: "Shop", log: Log, affordable: int, on_progress: OnProgress
) -> float:
    """Play at most `affordable` episodes side by side, and return the seconds an episode; infinite where no more than
    `MEASURED` would be played, or none was scored."""
    count = min(contestant.at_once, affordable)
    jobs = [job for job in cells.jobs() if _is_left(log, job)][:count]
    if len(jobs) <= MEASURED:
        return math.inf
    began, scored = log.elapsed, len(log.scored)
    play_all(contestant, jobs, shop, log, on_progress, total=len(jobs))
    if len(log.scored) == scored:
        return math.inf
    return _pace(len(log.scored) - scored, log.elapsed - began, cells, on_progress)


def _pace(scored: int, seconds: float, cells: Cells, on_progress: OnProgress) -> float:
    """Return the seconds an episode, and report how long all of them take at that pace."""
    each = max(seconds, 0.001) / scored
    on_progress(
        {"kind": "measured", "episodes": scored, "seconds": seconds, "all": each * cells.rounds * cells.tasks}
    )
    return each


def _is_left(log: Log, job: Job, retry_unscored: bool = False) -> bool:
    key = key_of(job)
    return key not in log.scored and (retry_unscored or key not in log.unscored)


def play_all(
    contestant: Contestant,
    jobs: Sequence[Job],
    shop: "Shop",
    log: Log,
    on_progress: OnProgress = lambda _: None,
    total: int = 0,
) -> None:
    """Play jobs and record each episode as it ends. The clock goes on from what the log has.

    Raises RuntimeError for a contestant that plays what it was not asked for, or not all of it.
    """
    waiting, began = {key_of(job) for job in jobs}, time.monotonic() - log.elapsed
    if jobs:
        with closing(_iterate(contestant, jobs, shop)) as episodes:
            for played in episodes:
                if played.key not in waiting:
                    raise RuntimeError(f"{played.job} was played, which was not asked for, or twice")
                waiting.remove(played.key)
                transcript = replace(played, elapsed=round(time.monotonic() - began, 3))
                log.add(transcript)
                on_progress(
                    {"kind": "episode", "left": len(waiting), "total": total, "transcript": transcript}
                )
    if waiting:
        raise RuntimeError(f"{len(waiting)} of {len(jobs)} episodes were not played; the others are recorded")


def _iterate(contestant: Contestant, jobs: Sequence[Job], shop: "Shop") -> Generator[Transcript, None, None]:
    """Make any iterator one that can be closed, so that a caller that stops ends running episodes."""
    yield from contestant.play(jobs, shop)


# --- scoring again ---


@dataclass(frozen=True)
class Rescored:
    """An episode that was scored again, and otherwise."""

    job: Job
    was: Mapping[str, Any]
    now: Mapping[str, Any]
    """The new score, or {"differs": the place at which the replay left the record}."""


def check_conditions(header: Mapping[str, Any], shop: "Shop") -> None:
    """Check that the environments, the tools and the catalog of a header are those of today. Raises TranscriptError
    with everything that differs."""
    was = header["conditions"]
    known = {
        env: environment_of(env) if env in ENVIRONMENTS else {"version": None} for env in was["environments"]
    }
    now = {"environments": known, "catalog": {**was["catalog"], "fingerprint": shop.fingerprint}}
    then = {name: was[name] for name in now}
    if differs := differences(then, now, ("in the record", "now")):
        commit = header.get("made_with", {}).get("commit", "unknown")
        raise TranscriptError(
            f"what the transcripts were made with has changed: {'; '.join(differs)}; score them with commit {commit}, "
            "or evaluate again"
        )


def rescore(folder: Path, shop: "Shop") -> Iterator[Rescored | None]:
    """Replay every scored episode of `folder`, without a model, and score it anew; None for one that is unchanged.

    Raises TranscriptError if an environment, its tools or the catalog have changed since.
    """
    check_conditions(read_header(folder), shop)
    for transcript in read(folder):
        if not transcript.unscored:
            yield rescored(transcript, shop)


def rescored(transcript: Transcript, shop: "Shop") -> Rescored | None:
    """Replay one scored episode; None if its score is what it was."""
    job, was = transcript.job, asdict(transcript.score)
    try:
        now = asdict(replay(trajectory_of(transcript, shop), shop))
    except ReplayError as error:
        return Rescored(job, was, {"differs": str(error)})
    same = {**now, "why": ""} == {**was, "why": ""}  # a reason may be worded anew
    return None if same else Rescored(job, was, now)


def trajectory_of(transcript: Transcript, shop: "Shop") -> Trajectory:
    """Make the trajectory that a transcript records, with its task. Raises ReplayError where that is another now."""
    job = transcript.job
    task = make_task(job.env, job.d, job.seed, shop, job.axes)
    if task.digest() != transcript.task:
        raise ReplayError("the task that this episode names is another now")
    return Trajectory(
        task,
        list(transcript.messages),
        transcript.end,
        transcript.score,
        transcript.turns,
        transcript.calls,
        transcript.strict,
        [dict(exchange) for exchange in transcript.wording],
    )
