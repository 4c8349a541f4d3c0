"""Every registered environment keeps the contract: a ninth one is held to it without an edit."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task, play
from ecomlab.envs.registry import observed
from ecomlab.episode.play import finish
from ecomlab.laws import observed as observing
from ecomlab.laws.certificate import players
from ecomlab.laws.contract import EnvironmentContract
from ecomlab.seeding import digest


@pytest.mark.parametrize("env", ENVIRONMENTS)
class TestEveryEnvironment(EnvironmentContract):
    """The contract's tests, once for each, at the lowest level, the highest and one between."""

    levels = (0, 6, 12)

    def test_it_was_observed_at_this_version(self, env: str) -> None:
        assert observed()[env]["version"] == ENVIRONMENTS[env].version


@pytest.mark.parametrize("argument", ["--help", "LOCKERS"])
def test_the_record_is_not_written_anew_by_who_asks_for_help(
    argument: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(observing, "OBSERVED", tmp_path / "observed.json")
    monkeypatch.setattr(observing, "ENVIRONMENTS", {})
    monkeypatch.setattr("sys.argv", ["observed", argument])
    with pytest.raises(SystemExit):
        observing.main()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("env", ENVIRONMENTS)
class TestEveryLevel(EnvironmentContract):
    """The contract's tests at every level, as `contract.check` takes them."""


def told_and_played(shop: Shop) -> str:
    """A digest of tasks of every environment, and of what the reference player and the customer say in them."""
    tasks = [make_task(env, d, 1, shop) for env in ENVIRONMENTS for d in (0, 5, 12)]
    played = [play(ENVIRONMENTS[task.env].reference_player(shop), task, shop).messages for task in tasks]
    return digest([[task.to_json() for task in tasks], played])


def played_by_all(shop: Shop) -> str:
    """A digest of what every player of the certificate and the customer say, and of the scores."""
    played = [
        finish(make(episode, seed), episode)
        for env in ENVIRONMENTS
        for d in (0, 10)
        for seed in range(3)
        for task in [make_task(env, d, seed, shop)]  # once: it may take seconds, and players are many
        for make in players(env, shop).values()
        for episode in [Episode(task, shop)]
    ]
    return digest([[one.messages, one.score.value, one.score.why] for one in played])


@pytest.mark.parametrize("digest_of", [told_and_played, pytest.param(played_by_all, marks=pytest.mark.slow)])
def test_the_same_key_gives_the_same_bytes_in_every_process(
    digest_of: Callable[[Shop], str], shop: Shop, tmp_path: Path
) -> None:
    """In another one, with other hashes, another language and another time zone, that makes the shop itself."""
    code = (
        f"import ecomlab, test_contract; print(test_contract.{digest_of.__name__}(ecomlab.load_shop(1_000)))"
    )
    hashes = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    elsewhere = {"PYTHONHASHSEED": hashes, "LC_ALL": "C", "TZ": "Asia/Tokyo", "ECOMLAB_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **elsewhere, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == digest_of(shop)


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("d", [0, pytest.param(6, marks=pytest.mark.slow), 12])
def test_the_visit_history_does_not_tell_wanted_from_unwanted(env: str, d: int, big_shop: Shop) -> None:
    catalog = big_shop.catalog
    for seed in range(16):
        task = make_task(env, d, seed, big_shop)
        rows = [catalog.row(product_id) for product_id in task.world.get("visits", ())]
        assert all(row is not None and catalog.stock[row] >= 8 for row in rows)
        per_type = Counter(catalog.type_of(row).name for row in rows if row is not None)
        lists = 1 + (len(task.parts) > 1)  # a journey has a cart's and a substitution's
        assert len(set(per_type.values())) <= lists, per_type
