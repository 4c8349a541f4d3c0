"""Environments on several processes: the same rollouts for any number, and no worker outlives its use."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.local import LocalContestant
from ecomlab.models.batch import Given, Named, Rollout, Start, play_batch
from ecomlab.models.environment_pool import EnvironmentPool, WorkerError, pool_of, workers_for
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.reward import PUBLISHED
from ecomlab.seeding import EVALUATION_SEEDS, rng

FILE = Path(__file__).parents[1] / "envs" / "reviewed.py"
"""An environment outside the package."""


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    return load_policy("novice", shop, ["CART"])


@pytest.fixture(scope="module", params=[2, 3])
def pool(request: pytest.FixtureRequest, shop: Shop, novice: Policy) -> Iterator[EnvironmentPool]:
    ENVIRONMENTS.load(FILE)
    with pool_of(request.param, shop, novice.renderer) as pool:
        assert pool is not None
        yield pool
    del ENVIRONMENTS._found["REVIEWED"]


def tasks_of(shop: Shop) -> list[Given]:
    """Episodes of several environments from their middle on; one that cannot be drawn, and one whose drawing fails in
    the worker."""
    envs = ("CART", "PD", "STATUS", "JOURNEY", "CART", "REVIEWED")
    tasks = [make_task(env, 2, seed, shop) for seed, env in enumerate(envs)]
    failing = Named("CART", 2, 0, {"substitution.similarity": 0.5}, PUBLISHED)
    cart = Named("CART", 2, 3, {}, PUBLISHED)
    return [*(Start(task, given=0.5) for task in tasks), ZeroDivisionError("ours"), failing, cart]


def played(shop: Shop, policy: Policy, pool: EnvironmentPool | None, strict: bool = False) -> list[Rollout]:
    """Play with torch's sampler, which lets others wait for stragglers."""
    tasks = tasks_of(shop)
    sampler = CachedSampler(policy.model, policy.renderer.stop_ids, Limits(60, 120))
    streams = [rng("pool", number) for number in range(len(tasks))]
    return play_batch(tasks, streams, shop, sampler, policy.renderer, None, pool, None, strict)


@pytest.mark.parametrize("strict", [False, True])
def test_the_rollouts_do_not_depend_on_the_workers(
    novice: Policy, shop: Shop, pool: EnvironmentPool, strict: bool
) -> None:
    there, here = played(shop, novice, pool, strict), played(shop, novice, None, strict)
    assert [repr(replace(r, seconds=())) for r in there] == [repr(replace(r, seconds=())) for r in here]
    assert [r.end for r in there[-3:-1]] == ["failed"] * 2 and "ours" in there[-3].score.why
    assert max(r.turns for r in there) > 1 and not all(r.score.unscored for r in there)
    assert all(r.trajectory is None or r.trajectory.strict is strict for r in there)


def test_a_worker_imports_no_torch(novice: Policy, shop: Shop, pool: EnvironmentPool) -> None:
    played(shop, novice, pool)
    asked: list[Any] = [(eval, "'torch' in __import__('sys').modules")] * len(pool._workers)
    assert pool._ask(asked) == [False] * len(pool._workers)


def test_every_worker_plays_as_many_episodes_of_a_cell(shop: Shop, pool: EnvironmentPool) -> None:
    """Also where the cells take turns as often as the workers."""
    count = len(pool._workers)
    pool.open({i: Named("CART", i % count, i, {}, PUBLISHED) for i in range(count * count)}, False)
    assert {(i % count, worker) for i, worker in pool._worker.items()} == {
        (d, worker) for d in range(count) for worker in range(count)
    }


def test_an_evaluation_does_not_depend_on_the_workers(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("CART", d, EVALUATION_SEEDS.start + d) for d in (0, 1, 2)]

    def found(workers: int) -> Any:
        one = LocalContestant("novice", novice, batch=2, environment_workers=workers)
        return {p.key: (p.messages, p.score, p.faults, p.task) for p in one.play(jobs, shop)}

    here = found(1)
    kept: list[EnvironmentPool] = []
    real = EnvironmentPool.open

    def opened(pool: EnvironmentPool, *rest: Any) -> Any:
        kept.append(pool)
        return real(pool, *rest)

    monkeypatch.setattr(EnvironmentPool, "open", opened)
    assert found(2) == here
    assert len(kept) == 2 and len(set(kept)) == 1, "its workers play every batch"


def test_a_dead_worker_is_an_error_that_names_the_way_out(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the policy is sampled; and in the next batch."""
    real = CachedSampler.start
    with pool_of(2, shop, novice.renderer) as pool:
        assert pool is not None
        kill = partial(os.kill, next(iter(pool._workers[1]._processes)), signal.SIGKILL)
        monkeypatch.setattr(CachedSampler, "start", lambda *given: kill() or real(*given))
        for _ in range(2):
            with pytest.raises(WorkerError, match="environment_workers = 1"):
                played(shop, novice, pool)


def test_workers_end_with_a_killed_parent() -> None:
    script = (
        "import os, time; from concurrent.futures import ProcessPoolExecutor as Pool\n"
        "from multiprocessing import get_context\nfrom ecomlab.models.environment_pool import _begin\n"
        "print(Pool(1, get_context('spawn'), _begin).submit(os.getpid).result(), flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)
    parent.kill()
    assert parent.stdout.read() == "", "its pipe closes when the worker, who shares it, has ended"
    parent.wait()


def test_a_shop_that_other_processes_cannot_open_is_refused(novice: Policy, shop: Shop) -> None:
    mine = Shop(shop.catalog, shop.engine)
    with pytest.raises(ValueError, match="environment_workers = 1"):
        EnvironmentPool(2, mine, novice.renderer)


def test_a_policy_on_the_cpu_needs_the_cores_and_processes_share_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(12), raising=False)
    assert (workers_for("cpu"), workers_for("cuda:0")) == (1, 8)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert workers_for("cuda") == 3
