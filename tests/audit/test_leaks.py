"""The classifier of ids and places finds a leak where there is one."""

from typing import Any

import pytest

from ecomlab import Shop
from ecomlab.audit import leaks
from ecomlab.world.state import World


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
