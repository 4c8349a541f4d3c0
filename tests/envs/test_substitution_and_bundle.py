"""SUB and BUNDLE: what their verifiers take for right, worked out anew in the plainest way."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.episode.episode import draw_task
from ecomlab.episode.play import finish
from ecomlab.laws import attackers
from ecomlab.reward import Verdict
from ecomlab.task import Goal, changes_of
from ecomlab.world.shopping_list import least_total, parts_of
from ecomlab.world.substitutes import original_of


def wanted(task: Task) -> dict[str, Any]:
    return task.goal.of()


def calm(env: str, d: int, seed: int, shop: Shop) -> Task:
    """A task in which nothing happens."""
    return make_task(env, d, seed, shop, {"p_oos": 0, "p_switch": 0})


def answer(task: Task, shop: Shop) -> tuple[Episode, list[str]]:
    """The reference player's episode, and what it handed in."""
    episode = Episode(task, shop)
    finish(ENVIRONMENTS[task.env].reference_player(shop), episode)
    assert episode.answer is not None
    return episode, list(episode.answer["product_ids"])


def judged(episode: Episode, ids: Sequence[str], goal: Goal | None = None) -> Verdict:
    """The verdict had these ids been handed in, all of them shown by a tool, for `goal` or for what is wanted."""
    episode.world.shown.update(i for i in ids if episode.shop.catalog.row(i) is not None)
    answer = {"product_ids": list(ids)}
    return episode.env.verify(goal or episode.goal, episode.world, answer, episode.customer.first)


def stand_ins(task: Task, shop: Shop) -> dict[str, int]:
    """Every product that can stand in, with its number of equal entries, found one by one."""
    from ecomlab.world.substitutes import hard_names

    slots, catalog = wanted(task), shop.catalog
    row = catalog.row(task.goal.unsaid["original"])
    assert row is not None
    was = catalog.record(row)
    hard = hard_names(slots["must"], was["attributes"])
    found = {}
    for row in catalog.type_rows(slots["type"]):
        record = catalog.record(row)
        found[record["product_id"]] = (record["brand"] == was["brand"]) + sum(
            record["attributes"][name] == value
            for name, value in was["attributes"].items()
            if name not in hard
        )
        if (
            record["stock"] == 0
            or record["product_id"] in task.world["gone"]
            or any(record["attributes"][name] != was["attributes"][name] for name in hard)
            or record["price"] * 100 > slots.get("price", 1e9) + 0.5
            or record["rating"] * 10 < slots.get("rating", 0) - 0.5
            or record["ship_days"] > slots.get("days", 99)
        ):
            del found[record["product_id"]]
    return found


@pytest.mark.parametrize("d", [0, 3, 6, 9, 12])
def test_the_best_stand_ins_are_those_with_most_equal_entries(d: int, big_shop: Shop) -> None:
    for seed in range(12):
        task = calm("SUB", d, seed, big_shop)
        alike, count = stand_ins(task, big_shop), wanted(task)["count"]
        best = sorted(alike, key=lambda product_id: -alike[product_id])
        episode, ids = answer(task, big_shop)
        assert sorted(alike[i] for i in ids) == sorted(alike[i] for i in best[:count])
        assert judged(episode, best[:count]).correct
        assert judged(episode, best[:count][::-1]).credit == 1.0
        worst = [*best[: count - 1], best[-1]]
        assert judged(episode, worst).correct == (alike[best[-1]] == alike[best[count - 1]])
        original = task.goal.unsaid["original"]
        for wrong in (
            [*best[: count - 1], original],
            best[: count + 1],
            best[: count - 1],
            [best[0]] * count,
        ):
            right = len(wrong) == count == len(set(wrong)) and original not in wrong
            assert judged(episode, wrong).correct == right
            assert right or judged(episode, wrong).credit < 1


def test_the_visits_hold_one_product_that_fits_the_words(big_shop: Shop) -> None:
    from ecomlab.envs.substitution.player import identity
    from ecomlab.world.cart import constraints_of

    catalog = big_shop.catalog
    for d in (0, 6, 12):
        for seed in range(25):
            task = make_task("SUB", d, seed, big_shop)
            was = identity(wanted(task))
            fitting = [
                visit
                for visit in task.world["visits"]
                if catalog.satisfies(catalog.row(visit) or 0, constraints_of(was["type"], was))
            ]
            assert fitting == [task.goal.unsaid["original"]]
            per_type: dict[str, int] = {}
            for product_id in task.world["gone"]:
                kind = catalog.type_of(catalog.row(product_id) or 0).name
                per_type[kind] = per_type.get(kind, 0) + 1
            assert len(set(per_type.values())) == 1, "how many are sold out would tell which type is wanted"


def test_a_sold_out_product_shows_no_stock_in_any_tool(big_shop: Shop) -> None:
    drawn = (make_task("SUB", 2, seed, big_shop) for seed in range(9))
    task = next(t for t in drawn if big_shop.catalog.options(original_of(t.goal, big_shop)))
    original = task.goal.unsaid["original"]
    episode = Episode(task, big_shop)
    turn = episode.act(
        attackers.calls(
            ("user_get_visit_history", {}),
            ("catalog_get_product", {"product_id": original}),
            ("catalog_get_variants", {"product_id": original}),
        )
    )
    visits, product, variants = (json.loads(m["content"]) for m in turn.messages[:3])
    assert next(v["stock"] for v in visits["visits"] if v["product_id"] == original) == 0
    assert product["product"]["stock"] == 0
    assert {v["stock"] for v in variants["variants"]} == {0}


@pytest.mark.parametrize("d", [0, 4, 8, 12])
def test_a_list_is_right_when_each_thing_is_there_once_within_the_budget(d: int, big_shop: Shop) -> None:
    catalog = big_shop.catalog
    for seed in range(8):
        calmly = {"p_oos": 0, "p_switch": 0, "p_missing": 0, "steps.mean": 0}
        task = draw_task("BUNDLE", d, seed, big_shop, calmly)
        episode, ids = answer(task, big_shop)
        cost = sum(catalog.price_cents.item(catalog.row(i) or 0) for i in ids)
        budget = wanted(task)["budget"]
        assert cost <= budget
        assert budget < 100 + 1.001 * cost * (1 + 2 * task.axes.bundle.slack)
        assert judged(episode, ids).credit == 1.0
        assert judged(episode, ids[::-1]).correct
        for wrong in (ids[1:], [*ids, ids[0]], [ids[0], *ids[:-1]], [*ids[1:], "P000000"], []):
            verdict = judged(episode, wrong)
            assert not verdict.correct
            assert verdict.credit < 1


def test_a_budget_has_room_for_whichever_parts_are_withheld(big_shop: Shop) -> None:
    catalog, held = big_shop.catalog, 0
    for seed in range(60):
        task = calm("BUNDLE", 8, seed, big_shop)
        later = wanted(task).get("parts", [])
        named = parts_of({place: v for place, v in task.goal.slots.items() if place != (0, "parts")})
        others = [kind for kind in task.notes["pool"] if kind not in dict(named)]
        least = [least_total([(kind, {})], catalog, None) or 0 for kind in others]
        dearest = sum(sorted(least, reverse=True)[: len(later)])
        assert (least_total(named, catalog, None) or 0) + dearest <= wanted(task)["budget"]
        held += 0 < len(later) < len(others)
    assert held > 10


def test_overspending_costs_its_share_of_the_budget(big_shop: Shop) -> None:
    task = calm("BUNDLE", 0, 3, big_shop)
    episode, ids = answer(task, big_shop)
    cost = sum(big_shop.catalog.price_cents.item(big_shop.catalog.row(i) or 0) for i in ids)
    verdict = judged(episode, ids, episode.goal.set_slots({"budget": cost - cost // 5}))
    assert not verdict.correct
    assert verdict.credit == pytest.approx(1 - (cost // 5) / (cost - cost // 5))
    assert judged(episode, ids).correct


def test_parts_may_be_named_later_dropped_and_added(big_shop: Shop) -> None:
    seen: set[str] = set()
    for seed in range(60):
        task = make_task("BUNDLE", 8, seed, big_shop, {"p_switch": 1})
        seen.update(name for change in changes_of(task.events) for name in change.slots)
        assert play(ENVIRONMENTS["BUNDLE"].reference_player(big_shop), task, big_shop).score.correct
    assert seen == {"budget", "added", "dropped"}


@pytest.mark.parametrize("courteous", [False, True])
def test_after_a_sell_out_only_what_is_gone_is_looked_for_again(courteous: bool, big_shop: Shop) -> None:
    """A reference player hears of it when it hands in; a courteous one looks at what it took, if it hears before."""
    environment, fewer = ENVIRONMENTS["BUNDLE"], 0
    for seed in range(20):
        task = draw_task("BUNDLE", 6, seed, big_shop, {"p_oos": 1.0, "p_switch": 0.0, "steps.mean": 0})
        episode = Episode(task, big_shop)
        finish(environment.reference_player(big_shop, courteous=courteous), episode)
        assert episode.score().correct
        searches = sum(message.get("name") == "catalog_search" for message in episode.messages)
        parts = len(parts_of(episode.goal.slots))
        assert parts <= searches <= 2 * parts
        fewer += searches < 2 * parts
    assert fewer > 5


def test_further_pages_are_asked_for_only_where_they_may_hold_better_stand_ins(big_shop: Shop) -> None:
    """Their number was every page of every combination before; what is handed in is as good."""
    pages: list[int] = []
    for seed in range(12):
        task = calm("SUB", 12, seed, big_shop)
        episode, ids = answer(task, big_shop)
        alike = stand_ins(task, big_shop)
        assert sorted(alike[i] for i in ids) == sorted(alike.values())[-len(ids) :]
        asked = [
            json.loads(call["function"]["arguments"]).get("page", 1)
            for message in episode.messages
            for call in message.get("tool_calls", ())
            if call["function"]["name"] == "catalog_search"
        ]
        pages.append(asked.count(2) - asked.count(1))
    assert max(pages) < 0, "no episode took a second page of everything"
