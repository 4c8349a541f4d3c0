"""What a shopping list costs at least: found without looking at every product, and the same as if all were."""

import numpy as np
import pytest

from ecomlab.catalog import Shop, columns
from ecomlab.task import SellOut, TaskKey
from ecomlab.world.shopping_list import Part, least_price, least_total, rows_left
from ecomlab.world.state import is_left, sold_out_rows

KEYS = [TaskKey("BUNDLE", 2, 5, seed, "shop") for seed in range(4)]


def test_a_single_row_is_told_what_the_mask_of_all_tells(big_shop: Shop) -> None:
    """In any order, more than once, and where nothing sells out."""
    catalog, random = big_shop.catalog, np.random.default_rng(0)
    for key, share in zip(KEYS, (0.0, 0.1, 0.5, 0.9), strict=True):
        for kind in catalog.types[:20]:
            span, left = catalog.type_rows(kind.name), is_left(key, catalog, kind.name, share)
            rows = random.integers(span.start, span.stop, 30)
            gone = sold_out_rows(key, catalog, kind.name, share)[rows - span.start]
            assert [left(row) for row in rows.tolist()] == (~gone).tolist()


@pytest.mark.parametrize("most", [1, 2, 64])
def test_the_least_price_is_the_least_of_all_that_is_left(
    most: int, big_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the few cheapest, which are looked at first, have all sold out."""
    monkeypatch.setattr(columns, "CHEAPEST", most)
    catalog, alone = big_shop.catalog, 0
    monkeypatch.setitem(catalog.__dict__, "_cheapest", {})
    for key, share in zip(KEYS, (0.0, 0.3, 0.6, 0.9), strict=True):
        sold = SellOut(types=tuple(kind.name for kind in catalog.types[::2]), share=share)
        for kind in catalog.types:
            part: Part = (kind.name, {})
            rows = rows_left(part, catalog, key, sold)
            least = int(catalog.price_cents[rows].min()) if len(rows) else None
            assert least_price(part, catalog, key, sold) == least
            few = catalog.cheapest_of(kind.name)
            assert len(few) <= most
            alone += not np.isin(few, rows).any()
    assert bool(alone) == (most < 64)


def test_a_part_that_is_not_to_be_had_has_no_total(big_shop: Shop) -> None:
    kind = big_shop.catalog.types[0].name
    assert least_total([(kind, {"days": -1})], big_shop.catalog, KEYS[0], None) is None
    assert least_total([], big_shop.catalog, KEYS[0], None) == 0


def test_lines_are_numbered_alike_with_and_without_a_sort(
    big_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered = []
    for sparse in (0, 10**6):
        monkeypatch.setattr(columns, "SPARSE", sparse)
        monkeypatch.setitem(big_shop.catalog.__dict__, "_lines", {})
        numbered.append([big_shop.catalog.lines_of(kind.name).tolist() for kind in big_shop.catalog.types])
    assert numbered[0] == numbered[1]
    assert max(map(max, numbered[0])) > 20
