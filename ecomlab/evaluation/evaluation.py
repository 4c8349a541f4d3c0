"""Evaluation of any contestant on held-out tasks: each episode is recorded as it ends, and a killed run resumes."""

import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS, observed, version_record
from ecomlab.episode.episode import ask_user, make_task
from ecomlab.episode.play import ReplayError, replay
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import Axes, axes_of, held_out_seeds
from ecomlab.evaluation.transcript import Transcript, key_of
from ecomlab.evaluation.transcripts import Log, TranscriptError, differences, opened, read, read_header
from ecomlab.reward import PUBLISHED, Score, Weights
from ecomlab.seeding import digest

EVALUATION, FRONTIER, TRAINING = "evaluation", "frontier", "training"
"""Kinds of runs that write transcripts."""
CONDITIONS = ("limits", "max_tokens", "context", "strict", "customer")
"""Fields of an identity that are conditions: players are compared under equal ones."""
OnProgress = Callable[[Mapping[str, Any]], None]


class Contestant(Protocol):
    """A player of many episodes at once."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that determines its answers, as JSON values: kind, model, digest of weights, sampling, limits."""

    def play(self, jobs: Sequence[Job], shop: Shop) -> Iterator[Transcript]:
        """Play every job, in any order, and yield each episode as soon as it is over.

        A caller that stops iterating cancels the running episodes. An infrastructure error makes its episode unscored,
        which is yielded like the others; only a mistake of the caller raises.
        """


@dataclass(frozen=True)
class Cells:
    """The tasks of an evaluation: environments, levels, number of held-out tasks per cell, trials per task."""

    envs: tuple[str, ...]
    levels: tuple[int, ...]
    tasks: int
    block: int = 0
    trials: int = 1
    axes: Axes = field(default_factory=dict)

    def jobs(self) -> list[Job]:
        """List every episode; the cells take turns, so that an interrupted run covers them evenly."""
        return [
            Job(env, d, seed, trial, axes_of(self.axes, env))
            for seed in held_out_seeds(self.block, self.tasks)
            for trial in range(self.trials)
            for env in self.envs
            for d in self.levels
        ]


def header_of(
    kind: str,
    player: str,
    identity: Mapping[str, Any],
    envs: Sequence[str],
    axes: Axes,
    shop: Shop,
    catalog: Mapping[str, Any],
    weights: Weights = PUBLISHED,
    **more: Any,
) -> dict[str, Any]:
    """Make a run's header: `player` (the name in tables), its identity, conditions, and `more`. `catalog` records the
    source of the shop, `weights` are the reward's. Raises ValueError if the header would contain a secret."""
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
            "reward": weights.by_name,
        },
        **more,
    }
    _check_no_secret(header)
    return header


def _limits(identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the token limits per turn, episode and context; None for a player without limits."""
    if "limits" in identity:
        return dict(identity["limits"])
    if "max_tokens" in identity:
        return {"turn": identity["max_tokens"] or None, "episode": None, "context": identity.get("context")}
    return None


def environment_of(env: str) -> dict[str, Any]:
    """Describe an environment as it is now: version, digest of its first tasks, digest of its tool schemas."""
    found = ENVIRONMENTS[env]
    schemas = [tool.schema for tool in (*found.offered.values(), ask_user, found.submit)]
    return {**version_record(env), "tools": digest(schemas)}


def _check_no_secret(header: Mapping[str, Any]) -> None:
    """Raise ValueError for a header with a password in an address, or the value of a secret environment variable."""
    text = repr(header)
    if re.search(r"://[^/@\s'\"]+@", text):
        raise ValueError(
            "the player's address contains a user name or password; put the key into an environment variable instead"
        )
    for name, value in os.environ.items():
        secret = re.search(r"KEY|TOKEN|SECRET|PASSWORD", name.upper()) and len(value) >= 8
        if secret and value in text:
            raise ValueError(
                f"the player's settings contain the value of {name}; give the name of the variable instead"
            )


def run_evaluation(
    contestant: Contestant,
    cells: Cells,
    shop: Shop,
    folder: Path,
    header: Mapping[str, Any],
    made_with: Mapping[str, Any],
    *,
    weights: Weights = PUBLISHED,
    retry_unscored: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> None:
    """Play every episode of `cells` that `folder` has not scored yet, and record each as soon as it is over.

    A folder with fewer tasks gets the others. `weights` are the reward's. Unscored episodes are tried again only with
    `retry_unscored`. `on_progress` is called with the plan and each episode. Raises TranscriptError for a folder that
    holds another run.
    """
    with opened(folder, {**header, "cells": asdict(cells)}, made_with) as log:
        planned = log.plan["tasks"] if log.plan else 0
        if planned > cells.tasks:
            raise TranscriptError(
                f"{folder} already holds {planned} tasks per cell, more than {cells.tasks}; ask for {planned}, or "
                "choose another --out"
            )
        if planned < cells.tasks:
            log.decide({"tasks": cells.tasks})
        on_progress({"kind": "plan", "tasks": cells.tasks, "cells": len(cells.envs) * len(cells.levels)})
        play_all(contestant, cells.jobs(), shop, log, retry_unscored, on_progress, weights)


def play_all(
    contestant: Contestant,
    jobs: Sequence[Job],
    shop: Shop,
    log: Log,
    retry_unscored: bool,
    on_progress: OnProgress,
    weights: Weights = PUBLISHED,
) -> None:
    """Play the jobs that the log lacks and record each episode as it ends, with the clock of the log.

    Raises RuntimeError for a contestant that plays other jobs, one twice, or not all.
    """
    done = log.scored if retry_unscored else log.scored | log.unscored
    left = [job for job in jobs if key_of(job) not in done]
    waiting, began = {key_of(job) for job in left}, time.monotonic() - log.elapsed
    if left:
        with closing(_iterate(contestant, left, shop)) as episodes:
            for played in episodes:
                if played.key not in waiting:
                    raise RuntimeError(f"the contestant played {played.job} twice or without being asked to")
                waiting.remove(played.key)
                score, elapsed = _weighed(played.score, weights), round(time.monotonic() - began, 3)
                transcript = replace(played, score=score, elapsed=elapsed)
                log.add(transcript)
                on_progress(
                    {"kind": "episode", "left": len(waiting), "total": len(jobs), "transcript": transcript}
                )
    if waiting:
        raise RuntimeError(
            f"the contestant did not play {len(waiting)} of {len(left)} episodes; the others are recorded"
        )


def _iterate(contestant: Contestant, jobs: Sequence[Job], shop: Shop) -> Generator[Transcript, None, None]:
    """Wrap any iterator in one with `close`, so that a caller that stops ends the running episodes."""
    yield from contestant.play(jobs, shop)


def _weighed(score: Score, weights: Weights) -> Score:
    """Compose the reward of a score's parts by other weights; that of an invalid or unscored episode has none."""
    if score.unscored or score.weights == weights.by_name:
        return score
    value = score.value if "invalid" in score.parts else weights.compose(score.parts)
    return replace(score, value=value, weights=weights.by_name)


# --- scoring again ---


@dataclass(frozen=True)
class Rescored:
    """An episode whose score has changed."""

    job: Job
    was: Mapping[str, Any]
    now: Mapping[str, Any]
    """The new score, or {"differs": the first difference between replay and record}."""


def check_conditions(header: Mapping[str, Any], shop: Shop) -> None:
    """Check that the environments, tools and catalog of a header are unchanged. Raises TranscriptError with all
    differences."""
    was = header["conditions"]
    known = {
        env: environment_of(env) if env in ENVIRONMENTS else {"version": None} for env in was["environments"]
    }
    now = {"environments": known, "catalog": {**was["catalog"], "fingerprint": shop.fingerprint}}
    then = {name: was[name] for name in now}
    if differs := differences(then, now, ("in the record", "now")):
        commit = header.get("made_with", {}).get("commit", "unknown")
        raise TranscriptError(
            f"environments, tools or catalog have changed: {'; '.join(differs)}; score them with commit {commit}, "
            "or evaluate again"
        )


def rescore(folder: Path, shop: Shop) -> Iterator[Rescored | None]:
    """Replay every scored episode of `folder`, without a model, and score it again; None for an unchanged score.

    Raises TranscriptError if an environment, its tools or the catalog have changed since.
    """
    check_conditions(read_header(folder), shop)
    for transcript in read(folder):
        if not transcript.unscored:
            yield rescored(transcript, shop)


def rescored(transcript: Transcript, shop: Shop) -> Rescored | None:
    """Replay one scored episode; None if its score is unchanged."""
    job, was = transcript.job, asdict(transcript.score)
    try:
        now = asdict(replay(trajectory_of(transcript, shop), shop))
    except ReplayError as error:
        return Rescored(job, was, {"differs": str(error)})
    same = {**now, "why": ""} == {**was, "why": ""}  # a reason may be worded anew
    return None if same else Rescored(job, was, now)


def trajectory_of(transcript: Transcript, shop: Shop) -> Trajectory:
    """Make the trajectory of a transcript, with its task. Raises ReplayError if the task has changed."""
    job = transcript.job
    task = make_task(job.env, job.d, job.seed, shop, job.axes)
    if task.digest() != transcript.task:
        raise ReplayError("the task of this episode has changed since")
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
