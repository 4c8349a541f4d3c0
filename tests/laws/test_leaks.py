"""The leak report finds a leak where there is one, each that an attacker once found among them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Shop, make_task, slots
from ecomlab.catalog import Catalog
from ecomlab.catalog.columns import PLENTY
from ecomlab.customer import goals, visits
from ecomlab.envs.bundle import env as bundle
from ecomlab.episode.play import play
from ecomlab.laws import leaks, opening_leaks
from ecomlab.laws.leaks import tasks_at
from ecomlab.laws.tool_introspection import reference_player
from ecomlab.task import Problem
from ecomlab.world.orders import lines
from ecomlab.world.shopping_list import least_total, parts_of


def found(measure: Callable[..., list[leaks.Leak]], env: str, kind: str, *args: Any) -> leaks.Leak:
    """The one measurement of this kind."""
    (leak,) = (leak for leak in measure(env, *args) if leak.kind == kind)
    return leak


def openings(env: str, *which: Any) -> list[leaks.Leak]:
    return opening_leaks.openings(env, tasks_at(env, *which))


def bounds(env: str, shop: Shop, *which: Any) -> list[leaks.Leak]:
    return opening_leaks.bounds(env, tasks_at(env, shop, *which), shop)


def test_a_leak_is_found(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Customers who want the first of the options that their visits share would be a leak."""
    real = Catalog.shared_options
    monkeypatch.setattr(Catalog, "shared_options", lambda self, rows: real(self, rows)[:1])
    assert found(leaks.measure, "CART", "catalog_get_variants: variant_id", big_shop, (8,), 80).leaks


def test_the_order_in_which_a_player_asks_is_no_leak() -> None:
    """A reference player that reads the cheapest first would make their places tell what it submits."""
    result: dict[str, Any] = {"products": [{"product_id": one, "reviews": []} for one in ("PB", "PC", "PA")]}
    ((_, ids, _, own),) = leaks._candidates("PD", [("catalog_get_reviews", result)])
    assert own and ids == ["PA", "PB", "PC"]


def test_an_option_that_a_cart_wants_too_marks_no_line(shop: Shop) -> None:
    """Lines of an order are told apart by their ids: "Red" of one is no leak where a cart of the journey wants Red."""
    played = (
        play(reference_player("JOURNEY", shop), task, shop) for task in tasks_at("JOURNEY", shop, (8,), 15)
    )
    kinds = {kind for trajectory in played for kind, _, _ in leaks._judged(trajectory, shop)}
    assert "order_get_status: line_id" in kinds and "order_get_status: variant_id" not in kinds


@pytest.mark.slow
def test_a_wanted_product_whose_brand_stands_alone(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoys drawn around the wanted product never were of its brand, but of one another's."""
    kind = "user_get_visit_history: product_id, content"
    assert not found(leaks.measure, "CART", kind, big_shop, (0, 1), 120).leaks
    brand = big_shop.catalog.brand_code

    def around(outline: visits.Outline, shop: Shop, random: Any, usable: Any = None) -> list[int]:
        pool = random.permutation(list(shop.catalog.type_rows(outline.type)))
        pool = pool[shop.catalog.stock[pool] >= PLENTY]
        others = [row for row in pool[1:].tolist() if brand[row] != brand[pool[0]]]
        return [int(pool[0]), *others[: visits.CLUSTER - 1]]

    from ecomlab.seeding import pick as real

    monkeypatch.setattr(goals, "draw_cluster", around)
    monkeypatch.setattr(goals, "pick", lambda random, of: of[0] if type(of[0]) is int else real(random, of))
    assert found(leaks.measure, "CART", kind, big_shop, (0, 1), 120).leaks


def test_a_limit_that_lies_near_the_wanted_product(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(bounds, "CART", "limits: visits", big_shop, (4, 8), 120).leaks
    monkeypatch.setattr(visits.Cluster, "alike", lambda self, shop: [self.row])
    monkeypatch.setattr(slots, "SLACK", 0.01)
    assert found(bounds, "CART", "limits: visits", big_shop, (4, 8), 120).leaks


def test_a_budget_that_names_the_parts_withheld(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(bounds, "BUNDLE", "budget: parts", big_shop, (4, 6), 120).leaks

    def exact(wanted: Any, later: int, usable: Any, catalog: Any, sold: Any) -> int:
        return least_total(parts_of(wanted), catalog, sold) or 0

    monkeypatch.setattr(bundle, "dearest_total", exact)
    monkeypatch.setattr(bundle, "draw_budget", lambda total, slack, random: 100 * math.ceil(total / 100))
    assert found(bounds, "BUNDLE", "budget: parts", big_shop, (4, 6), 120).leaks


@pytest.mark.slow
@pytest.mark.parametrize("env", ["RETURN", "STATUS"])
def test_an_opening_that_tells_what_will_happen(
    env: str, big_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots that an event would touch never were withheld: "That's all." foretold a change of mind."""
    assert not found(openings, env, "opening: GoalChange", big_shop, (4, 8), 400).leaks
    real = type(ENVIRONMENTS[env]).draw

    def draw(self: Any, *args: Any) -> Problem:
        problem = real(self, *args)
        return (
            replace(problem, goal=replace(problem.goal, withheld=frozenset())) if problem.events else problem
        )

    monkeypatch.setattr(type(ENVIRONMENTS[env]), "draw", draw)
    assert found(openings, env, "opening: GoalChange", big_shop, (4, 8), 400).leaks


@pytest.mark.slow
def test_an_opening_that_says_more_where_something_goes_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcomes() -> leaks.Leak:
        tasks = tasks_at("RETURN", shop, (6,), 400)
        (leak,) = (
            leak for leak in opening_leaks.outcomes("RETURN", tasks, shop) if "it goes back" in leak.kind
        )
        return leak

    assert not outcomes().leaks
    real = type(ENVIRONMENTS["RETURN"]).draw

    def draw(self: Any, *args: Any) -> Problem:
        problem = real(self, *args)
        meant = lines.meant_by(problem.goal.of(), problem.world, shop)
        kept = frozenset() if meant and meant.goes else problem.goal.withheld
        return replace(problem, goal=replace(problem.goal, withheld=kept))

    monkeypatch.setattr(type(ENVIRONMENTS["RETURN"]), "draw", draw)
    assert outcomes().leaks


@pytest.mark.slow
def test_items_of_which_more_is_said_because_they_sell_out(
    big_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "what is said of an item: any event"
    assert not found(openings, "CART", kind, big_shop, (6, 8), 200).leaks
    real = type(ENVIRONMENTS["CART"]).draw

    def draw(self: Any, *args: Any) -> Problem:
        problem = real(self, *args)
        touched = {event.item for event in problem.events}
        kept = frozenset(place for place in problem.goal.withheld if place[0] not in touched)
        return replace(problem, goal=replace(problem.goal, withheld=kept))

    monkeypatch.setattr(type(ENVIRONMENTS["CART"]), "draw", draw)
    assert found(openings, "CART", kind, big_shop, (6, 8), 200).leaks


@pytest.mark.slow
def test_a_journey_is_compared_with_those_that_begin_alike(shop: Shop) -> None:
    """Only carts and visits sell out, and an opening shows which it is of: that tells nothing that is to be hidden."""
    alike: dict[Any, set[str]] = {}
    for seed in range(40):
        task = make_task("JOURNEY", 8, seed, shop)
        alike.setdefault(opening_leaks._alike(task), set()).add(task.parts[0].env)
    assert {len(envs) for envs in alike.values()} == {1} and len(set.union(*alike.values())) > 3


@pytest.mark.slow
def test_a_sold_out_product_that_stands_out(big_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = "user_get_visit_history: product_id, meant, content"
    assert not found(leaks.measure, "SUB", kind, big_shop, (4, 8), 100).leaks
    price = big_shop.catalog.price_cents

    def dearest(random: Any, rows: Any) -> Any:
        return max(rows, key=price.item) if type(rows[0]) is int else rows[int(random.integers(len(rows)))]

    monkeypatch.setattr("ecomlab.customer.demands.pick", dearest)
    assert found(leaks.measure, "SUB", kind, big_shop, (4, 8), 100).leaks


def test_tasks_that_look_alike_have_the_same_budgets(shop: Shop) -> None:
    """Those of more subtasks are larger, and more is withheld in all: compared with each other they seemed to leak."""
    tasks = [make_task("JOURNEY", 2, seed, shop) for seed in range(40)]
    budgets: dict[Any, set[tuple[int, int]]] = {}
    for task in tasks:
        budgets.setdefault(opening_leaks._alike(task), set()).add((task.turns, task.calls))
    assert {len(of_alike) for of_alike in budgets.values()} == {1}
    assert len(set.union(*budgets.values())) > 1


def test_what_happens_to_a_list_as_a_whole_tells_nothing_of_its_items(shop: Shop) -> None:
    """Told from the parts of other lists, the list itself, to which everything happens, seemed to leak in journeys."""
    tasks = [make_task("JOURNEY", 8, seed, shop) for seed in range(80)]
    parts = [part for task in tasks for part in task.parts]
    assert {part.env for part in parts if len(part.goal.items) > 1} == {"BUNDLE", "CART"}
    assert {task.parts[0].env for task in opening_leaks._by_item(tasks)} == {"CART"}
