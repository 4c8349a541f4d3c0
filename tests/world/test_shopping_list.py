"""What a shopping list costs at least: found without looking at every product, and the same as if all were."""

from dataclasses import replace

import numpy as np
import pytest

from ecomlab.catalog import Shop, columns
from ecomlab.world.sell_outs import sell_out_of
from ecomlab.world.shopping_list import Part, least_price, least_total, rows_left


@pytest.mark.parametrize("most", [1, 2, 64])
def test_the_least_price_is_the_least_of_all_that_is_left(
    most: int, big_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the few cheapest, which are looked at first, have all sold out."""
    monkeypatch.setattr(columns, "CHEAPEST", most)
    catalog, alone = replace(big_shop.catalog), 0  # a copy, which remembers nothing
    for count in (0, 1, 3, 9):
        gone = [row for kind in catalog.types[::2] for row in catalog.cheapest_of(kind.name)[:count].tolist()]
        sold = sell_out_of(gone, catalog)
        for kind in catalog.types:
            part: Part = (kind.name, {})
            rows = rows_left(part, catalog, sold)
            assert not set(gone) & set(rows.tolist())
            least = int(catalog.price_cents[rows].min()) if len(rows) else None
            assert least_price(part, catalog, sold) == least
            few = catalog.cheapest_of(kind.name)
            assert len(few) <= most
            alone += not np.isin(few, rows).any()
    assert bool(alone) == (most < 64)


def test_a_part_that_is_not_to_be_had_has_no_total(big_shop: Shop) -> None:
    kind = big_shop.catalog.types[0].name
    assert least_total([(kind, {"days": -1})], big_shop.catalog, None) is None
    assert least_total([], big_shop.catalog, None) == 0
