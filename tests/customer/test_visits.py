"""What is drawn for a customer: visits that differ, bounds that do not tell, sizes that grow without steps."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Difficulty, Shop, make_task
from ecomlab.customer.visits import MOST_WITHHELD
from ecomlab.seeding import rng, whole_near
from ecomlab.wishes import Wish
from ecomlab.world.cart import constraints_of, identity_of, is_exact, keys_of
from ecomlab.world.plain import AtFirst, plain


@pytest.mark.parametrize("d", [0, 4, 8, 12])
def test_any_two_visits_of_a_wanted_type_differ_in_what_is_said(d: int, big_shop: Shop) -> None:
    """Where it is said which value, not what else would do."""
    catalog, found = big_shop.catalog, list[bool]()
    for seed in range(30):
        task = make_task("CART", d, seed, big_shop)
        rows = np.array([catalog.row(visit) for visit in task.world["visits"]], int)
        goal = plain(task.goal, AtFirst(big_shop, task.world))
        for item in goal.items:
            wishes = [
                wish for (at, _), wish in task.goal.slots.items() if at == item and isinstance(wish, Wish)
            ]
            if any(wish.step in ("logic", "taste") for wish in wishes):
                continue
            slots = goal.of(item)
            mine = catalog.select(constraints_of(slots["type"], {}), np.sort(rows))
            keys = keys_of(catalog, mine, [name for name in slots if is_exact(name)])
            same = catalog.select(constraints_of(slots["type"], identity_of(slots)), mine)
            found.append(len(set(keys.tolist())) == len(mine) and len(same) == 1)
    assert len(found) >= 30
    assert sum(found) >= 0.97 * len(found), "an option or a limit may tell a rare pair apart"


def test_what_is_stated_will_not_do_where_something_is_withheld(big_shop: Shop) -> None:
    """Whichever visit is wanted, another fits all that is stated but for what is withheld."""
    catalog, alike = big_shop.catalog, Counter[bool]()
    for seed in range(120):
        task = make_task("CART", 4, seed, big_shop)
        rows = np.sort(np.array([catalog.row(visit) for visit in task.world["visits"]], int))
        goal = plain(task.goal, AtFirst(big_shop, task.world))
        for item in goal.items:
            slots = goal.of(item)
            told = {name: value for name, value in slots.items() if (item, name) not in task.goal.withheld}
            if any(is_exact(name) and name not in told for name in slots):
                fit = catalog.select(constraints_of(slots["type"], identity_of(told) | told), rows)
                alike[len(fit) > 1] += 1
    assert alike[True] > 0.8 * alike.total() > 50


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_nine_slots_are_withheld_at_most(env: str, big_shop: Shop) -> None:
    parts = [part for d in (6, 12) for seed in range(6) for part in make_task(env, d, seed, big_shop).parts]
    goals = [part.goal for part in parts]
    hidden = [len(goal.withheld) for goal in goals]
    assert 0 < max(hidden) <= MOST_WITHHELD
    assert not any(name in ("type", "count", "question") for goal in goals for _, name in goal.withheld)


def test_every_slot_of_every_item_is_withheld_equally_often(big_shop: Shop) -> None:
    """Also of what will sell out or change."""
    shares: dict[bool, list[bool]] = {True: [], False: []}
    for seed in range(250):
        task = make_task("CART", 6, seed, big_shop)
        touched = {event.item for event in task.events}
        for item, name in task.goal.slots:
            if name != "type":
                shares[item in touched].append((item, name) in task.goal.withheld)
    hit, spared = (np.mean(shares[so]) for so in (True, False))
    error = sum(np.var(shares[so]) / len(shares[so]) for so in (True, False)) ** 0.5
    assert abs(hit - spared) < 4 * error


def test_a_size_is_near_its_mean() -> None:
    random = rng("sizes")
    drawn = [whole_near(random, 2.25) for _ in range(4_000)]
    assert set(drawn) == {2, 3}
    assert np.mean(drawn) == pytest.approx(2.25, abs=0.03)
    assert {whole_near(random, 4.0) for _ in range(100)} == {4}


@pytest.mark.parametrize("name", ["cart.items", "bundle.parts", "journey.subtasks", "cart.p_option"])
def test_sizes_grow_without_cliffs(name: str) -> None:
    values = [Difficulty.at(d).value(name) for d in range(13)]
    steps = np.diff(values)
    assert min(steps) >= 0
    assert max(steps) <= 0.5
    assert max(steps) < 0.3 * (values[-1] - values[0])


def test_a_carts_size_is_drawn_around_its_mean(big_shop: Shop) -> None:
    for d in (0, 4, 5):
        sizes = [len(make_task("CART", d, seed, big_shop).goal.items) for seed in range(150)]
        assert np.mean(sizes) == pytest.approx(1 + d / 3, abs=0.12)


def test_rows_share_a_number_exactly_where_they_are_equal() -> None:
    """Those that have no value too, and however many values there are."""
    random = np.random.default_rng(0)
    for most in (3, 400):
        columns = {name: random.integers(-1, most, 300) for name in ("brand_code", "feature_code")}
        keys = keys_of(SimpleNamespace(**columns), np.arange(300), ["brand", "feature"])  # type: ignore[arg-type]
        pairs = list(zip(*(column.tolist() for column in columns.values()), strict=True))
        assert len(set(keys.tolist())) == len(set(pairs)) == len(set(zip(keys.tolist(), pairs, strict=True)))
