"""Carts: what openings tell and what they leave to be asked for."""

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.visits import MOST_WITHHELD
from ecomlab.episode.episode import draw_task

LEVELS = (*range(13), 20)


def test_openings_have_at_most_about_sixty_words(shop: Shop) -> None:
    words = {d: [len(draw_task("CART", d, seed, shop).opening.split()) for seed in range(30)] for d in LEVELS}
    for d, counted in words.items():
        print(d, np.quantile(counted, [0.5, 0.75, 0.95, 1]))
        assert np.quantile(counted, 0.95) <= 70
    pooled = np.concatenate(list(words.values()))
    assert np.mean(pooled <= 60) >= 0.95


def test_a_cart_has_at_most_so_many_slots(shop: Shop) -> None:
    for d in LEVELS:
        for seed in range(10):
            goal = draw_task("CART", d, seed, shop).goal
            assert len(goal.withheld) <= MOST_WITHHELD
            assert len(goal.slots) - len(goal.items) <= 21
