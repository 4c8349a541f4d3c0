"""What is seen and scored stays what it was: the digests of `net.json`."""

import json
from collections.abc import Iterable
from typing import Any

import net
import pytest

from ecomlab import ENVIRONMENTS, Shop

KNOWN: dict[str, Any] = json.loads(net.FILE.read_text())
VERSIONS = {env: ENVIRONMENTS[env].version for env in ENVIRONMENTS}
pytestmark = pytest.mark.skipif(
    KNOWN.get("versions") != VERSIONS,
    reason="the environments' next version is being made; at its end: python tests/net.py",
)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_what_is_seen_and_scored_is_what_it_was(env: str, shop: Shop, big_shop: Shop) -> None:
    compare(env, net.LEVELS[:: net.EVERY], shop, big_shop)


@pytest.mark.slow
@pytest.mark.parametrize("env", [env for env in ENVIRONMENTS if not ENVIRONMENTS[env].composes])
def test_it_is_so_at_the_levels_between(env: str, shop: Shop, big_shop: Shop) -> None:
    compare(env, [d for d in net.levels_of(env) if d % net.EVERY], shop, big_shop)


def compare(env: str, levels: Iterable[int], shop: Shop, big_shop: Shop) -> None:
    now = net.measure(env, levels, shop, big_shop)
    changed = net.changed(now, {d: KNOWN[env][d] for d in now})
    assert not changed, f"{env}: {changed} changed; if that is meant: python tests/net.py"


def test_training_batches_and_a_step_are_what_they_were(shop: Shop) -> None:
    now, known = net.training(shop), KNOWN["training"]
    assert {name: now[name] for name in ("batch", "drawn")} == {n: known[n] for n in ("batch", "drawn")}
    assert now["sampled"] == pytest.approx(known["sampled"], rel=0.1)
    assert now["gradient"] == pytest.approx(known["gradient"], rel=0.05)
