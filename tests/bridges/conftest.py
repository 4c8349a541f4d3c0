"""The log of a bridge's test, written where ECOMLAB_BRIDGE_LOG says (`make bridges`), else nowhere."""

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import ecomlab
from bridges.twenty import SHOP, sample_player
from ecomlab.bridges.common import task_of
from ecomlab.catalog import Shop, load_shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import environment_of
from ecomlab.reward import Score

Same = Callable[..., None]
"""Asserts that the score of a job, as the other side's loop gave it, is that of `ours(job)` or a given trajectory."""


@pytest.fixture(scope="session")
def bridge_shop() -> Shop:
    """The shop in which the tasks of all bridges are drawn."""
    return load_shop(SHOP)


FACTS = pytest.StashKey[dict[str, Any]]()


@pytest.fixture(scope="session")
def log(pytestconfig: pytest.Config) -> dict[str, Any]:
    """Facts for the log, by name; the first are the software and the environments that it was made with."""
    facts = {"ecomlab": ecomlab.__version__, "python": sys.version.split()[0]}
    return pytestconfig.stash.setdefault(
        FACTS, {**facts, "environments": {env: environment_of(env) for env in ENVIRONMENTS}}
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Count the tests, and write the log if one is asked for."""
    path, facts = os.environ.get("ECOMLAB_BRIDGE_LOG"), session.config.stash.get(FACTS, None)
    if path and facts is not None:
        stats = session.config.pluginmanager.getplugin("terminalreporter").stats
        facts["tests"] = {how: len(stats.get(how, ())) for how in ("passed", "failed", "error", "skipped")}
        Path(path).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def tell_versions(log: dict[str, Any]) -> Callable[..., None]:
    """Put the versions of packages into the log."""
    return lambda *names: log.setdefault("packages", {}).update({name: version(name) for name in names})


@pytest.fixture(scope="session")
def ours(bridge_shop: Shop) -> Callable[[Job], Trajectory]:
    """What the player of a job comes to in ecomlab's own loop; played once a job."""
    played: dict[str, Trajectory] = {}

    def trajectory(job: Job) -> Trajectory:
        if str(job) not in played:
            played[str(job)] = ecomlab.play(
                sample_player(job, bridge_shop), task_of(job, bridge_shop), bridge_shop
            )
        return played[str(job)]

    return trajectory


@pytest.fixture(scope="session")
def same(ours: Callable[[Job], Trajectory], log: dict[str, Any]) -> Same:
    """Compare, and note, the score that the other side gave with ours."""

    def compare(job: Job, theirs: Score, mine: Trajectory | None = None) -> None:
        mine = mine or ours(job)
        row = {"env": job.env, "d": job.d, "seed": job.seed, "end": mine.end, "turns": mine.turns}
        row |= {"ours": mine.score.value, "theirs": theirs.value, "correct": theirs.correct}
        log.setdefault("episodes", []).append(row)
        assert theirs == mine.score, job

    return compare
