"""What is seen and scored stays what it was: the digests of `net.json`."""

import json
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
    now = net.measure(env, shop, big_shop)
    changed = [name for name in now.keys() | KNOWN[env].keys() if now.get(name) != KNOWN[env].get(name)]
    assert not changed, f"{env}: {sorted(changed)} changed; if that is meant: python tests/net.py"


def test_training_batches_and_a_step_are_what_they_were(shop: Shop) -> None:
    now, known = net.training(shop), KNOWN["training"]
    assert {name: now[name] for name in ("batch", "drawn")} == {n: known[n] for n in ("batch", "drawn")}
    assert now["sampled"] == pytest.approx(known["sampled"], rel=0.1)
    assert now["gradient"] == pytest.approx(known["gradient"], rel=0.05)
