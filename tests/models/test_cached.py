"""The own sampler's cache: it never exceeds its limit and gives rows back; no answer changes."""

from typing import Any

import numpy as np
import pytest

from ecomlab import Shop, make_task
from ecomlab.models.batch import play_batch
from ecomlab.models.load import load_policy
from ecomlab.models.policy import Policy
from ecomlab.models.samplers import cached
from ecomlab.models.samplers.cached import CachedSampler, Limits
from ecomlab.seeding import rng

TASKS = 6


@pytest.fixture(scope="module")
def novice(shop: Shop) -> Policy:
    """In float64: in another batch a row is rounded otherwise, and a tie might flip."""
    policy = load_policy("novice", shop, ["CART"])
    policy.model.double()
    return policy


def played(policy: Policy, shop: Shop, sampler: CachedSampler) -> list[Any]:
    """What is sampled in `TASKS` episodes."""
    tasks = [make_task("CART", i % 4, 900 + i, shop) for i in range(TASKS)]
    streams = [rng("cached", i) for i in range(TASKS)]
    rollouts = play_batch(tasks, streams, shop, sampler, policy.renderer)
    return [(r.prompt_ids, r.completion_ids, r.mask, r.end, r.score.correct) for r in rollouts]


def watched(sampler: CachedSampler, patch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The cache's size at every reading, how many rows are alive, and how wide it would be with padding at its end."""
    seen: list[dict[str, int]] = []
    real = sampler._read

    def read(rows: Any, chunks: Any, first: int = 0) -> Any:
        slots = slice(first, first + len(rows))
        padded = int(sampler._length[slots].max()) + max(map(len, chunks))
        logits = real(rows, chunks, first)
        cache = sampler._cache
        seen.append(
            {
                "capacity": cache.capacity,
                "slots": cache.slots,
                "bytes": cache.bytes,
                "alive": len(sampler._row),
                "padded": padded,
            }
        )
        return logits

    patch.setattr(sampler, "_read", read)
    return seen


def test_the_cache_never_exceeds_its_limit(
    novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the longest row and the longest tool result together are beyond the limit, padding finds another place."""
    context = 130
    monkeypatch.setattr(cached, "FIRST", 64)
    sampler = novice.sampler(Limits(turn=60, episode=context, context=context))
    seen = watched(sampler, monkeypatch)
    together = played(novice, shop, sampler)
    assert max(s["padded"] for s in seen) > context, "nothing had to be cut off"
    assert max(s["capacity"] for s in seen) == context
    assert {end for *_, end, _ in together} >= {"truncated"}
    tasks = [make_task("CART", i % 4, 900 + i, shop) for i in range(TASKS)]
    for i, task in enumerate(tasks):
        (alone,) = play_batch(
            [task], [rng("cached", i)], shop, novice.sampler(sampler.limits), novice.renderer
        )
        assert (alone.prompt_ids, alone.completion_ids, alone.mask) == together[i][:3]


def test_a_large_cache_gives_rows_back(novice: Policy, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(turn=60, episode=200)
    whole = played(novice, shop, novice.sampler(limits))
    monkeypatch.setattr(cached, "SMALL", 0)
    monkeypatch.setattr(cached, "FIRST", 64)
    sampler = novice.sampler(limits)
    seen = watched(sampler, monkeypatch)
    assert played(novice, shop, sampler) == whole
    assert seen[0]["slots"] == TASKS and seen[-1]["slots"] <= 2
    assert all(s["slots"] < 2 * s["alive"] or s["slots"] == 1 for s in seen)
    assert seen[-1]["bytes"] < max(s["bytes"] for s in seen) < TASKS * seen[-1]["bytes"] / seen[-1]["slots"]


def test_rows_that_are_held_go_on_where_they_were(novice: Policy) -> None:
    """A row that a turn leaves out, and that is held, has all that it had read before."""
    ids = [novice.renderer.encode(text) for text in ("I need a lamp", "Two red mugs please", "Hi there")]

    def second_turn(left_out: bool) -> Any:
        sampler = novice.sampler(Limits(turn=1), greedy=True)
        sampler.start([np.random.default_rng(i) for i in range(3)])
        sampler.turn([0, 1, 2], ids)
        if left_out:
            sampler.hold([0])
            sampler.turn([2], [ids[0]])
            sampler.hold([1])
        return sampler.turn([0], [ids[2]])

    assert second_turn(True)[0].ids == second_turn(False)[0].ids
    assert second_turn(True)[0].logprobs == pytest.approx(second_turn(False)[0].logprobs)
