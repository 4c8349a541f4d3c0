"""Law 8 as statistics: no classifier tells wanted things by their ids, their places or the sizes of lists."""

from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.audit import leaks
from ecomlab.world.state import World

ENVS = list(ENVIRONMENTS)


@pytest.mark.parametrize("env", ENVS)
def test_ids_and_places_do_not_tell_what_is_wanted(env: str, big_shop: Shop) -> None:
    found = [leak for leak in leaks.measure(env, big_shop, seeds=30) if leak.leaks]
    assert found == []


def test_a_leak_is_found(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options listed with the one that most products' buyers want first would be one."""
    real = World.options

    def told(self: World, row: int) -> tuple[str, ...]:
        return tuple(sorted(real(self, row)))

    monkeypatch.setattr(World, "options", told)
    monkeypatch.setattr("ecomlab.customer.goals.other_option", _smallest)
    (leak,) = (found for found in leaks.measure("CART", big_shop, (8,), 80) if "variant_id" in found.kind)
    assert leak.leaks


def _smallest(type_name: str, key: tuple[Any, ...], shop: Shop, random: Any, than: str | None = None) -> str:
    from ecomlab.world.state import options_of

    return min(option for option in options_of(key, shop.catalog, type_name) if option != than)


@pytest.mark.parametrize("env", ENVS)
def test_what_is_offered_is_the_same_in_every_task(env: str, shop: Shop) -> None:
    first = Episode(make_task(env, 0, 0, shop), shop)
    for d in (0, 6, 12):
        for seed in range(5):
            episode = Episode(make_task(env, d, seed, shop), shop)
            assert episode.tools == first.tools
            assert episode.messages[0] == first.messages[0]
