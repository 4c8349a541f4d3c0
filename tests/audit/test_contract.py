"""Every registered environment keeps the contract: a ninth one is held to it without an edit."""

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task
from ecomlab.audit.contract import EnvironmentContract
from ecomlab.envs.registry import observed


@pytest.mark.parametrize("env", ENVIRONMENTS)
class TestEveryEnvironment(EnvironmentContract):
    """The contract's tests, once for each, at every third level."""

    levels = range(0, 13, 3)

    def test_it_was_observed_at_this_version(self, env: str) -> None:
        assert observed()[env]["version"] == ENVIRONMENTS[env].version


@pytest.mark.slow
@pytest.mark.parametrize("env", ENVIRONMENTS)
class TestEveryLevel(EnvironmentContract):
    """The contract's tests at every level, as `contract.check` takes them."""


_DIGESTS = """
import sys
from ecomlab import ENVIRONMENTS, load_shop, make_task, play
from ecomlab.seeding import digest
shop = load_shop(1_000)
player = lambda env: ENVIRONMENTS[env].reference_player(shop)
tasks = [make_task(env, d, s, shop) for env in ENVIRONMENTS for d in (0, 5, 12) for s in range(3)]
print(digest([[task.to_json(), play(player(task.env), task, shop).messages] for task in tasks]))
"""


def test_the_same_key_gives_the_same_bytes_in_every_process(tmp_path: Any) -> None:
    def run(hash_seed: str, locale: str, zone: str) -> str:
        settings_ = {
            "PYTHONHASHSEED": hash_seed,
            "LC_ALL": locale,
            "TZ": zone,
            "ECOMLAB_CACHE": str(tmp_path / hash_seed),
        }
        done = subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            env={**os.environ, **settings_},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert run("1", "C", "UTC") == run("2", "C.UTF-8", "Asia/Tokyo")


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("d", [0, 6, 12])
def test_the_visit_history_does_not_tell_wanted_from_unwanted(env: str, d: int, big_shop: Shop) -> None:
    catalog = big_shop.catalog
    for seed in range(40):
        task = make_task(env, d, seed, big_shop)
        rows = [catalog.row(product_id) for product_id in task.world.get("visits", ())]
        assert all(row is not None and catalog.stock[row] >= 8 for row in rows)
        per_type = Counter(catalog.type_of(row).name for row in rows if row is not None)
        lists = 1 + (len(task.parts) > 1)  # a journey has a cart's and a substitution's
        assert len(set(per_type.values())) <= lists, per_type
