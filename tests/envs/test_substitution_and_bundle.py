"""SUB and BUNDLE: what their verifiers take for right, worked out anew in the plainest way."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.envs.substitution.player import titled
from ecomlab.episode.episode import draw_task
from ecomlab.episode.play import finish
from ecomlab.laws import attackers
from ecomlab.reward import Verdict
from ecomlab.task import Goal, changes_of
from ecomlab.wishes import Demand, If, Of, OneOf
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
    visits = [catalog.record(catalog.row(visit) or 0) for visit in task.world["visits"]]
    found = {}
    for row in catalog.type_rows(slots["type"]):
        record = catalog.record(row)
        cents, own = round(record["price"] * 100), round(was["price"] * 100)
        stars, own_stars = round(record["rating"] * 10), round(was["rating"] * 10)
        found[record["product_id"]] = sum(
            (
                record["brand"] == was["brand"],
                0.9 * own <= cents <= 1.1 * own,
                own_stars - 2 <= stars <= own_stars + 2,
                *(record["attributes"][n] == v for n, v in was["attributes"].items() if n not in hard),
            )
        )
        if (
            record["stock"] == 0
            or record["product_id"] in task.world["gone"]
            or any(record["attributes"][name] != was["attributes"][name] for name in hard)
            or record["price"] * 100 > slots.get("price", 1e9) + 0.5
            or record["rating"] * 10 < slots.get("rating", 0) - 0.5
            or record["ship_days"] > slots.get("days", 99)
            or not all(meets(record, slot, visits) for slot in slots.values() if isinstance(slot, Demand))
        ):
            del found[record["product_id"]]
    if "if" in slots:
        only = slots["if"].value
        records = [catalog.record(catalog.row(product_id) or 0) for product_id in found]
        first, other = (
            [one for one in records if value(one, only.slot) == what] for what in (only.first, only.other)
        )
        first = [one for one in first if one["price"] * 100 <= only.limit + 0.5]
        found = {one["product_id"]: found[one["product_id"]] for one in first or other}
    for product_id in found if "worth" in slots else ():  # those by price and worths
        record, terms = catalog.record(catalog.row(product_id) or 0), dict(slots["worth"].terms)
        cents = 100 * record["price"] - terms.get("rating", 0) * record["rating"]
        cents += terms.get("days", 0) * record["ship_days"] - terms["likeness"] * found[product_id]
        cents -= sum(paid for slot, has, paid in slots["worth"].bonuses if value(record, slot) == has)
        found[product_id] = -round(cents)
    return found


def value(record: dict[str, Any], slot: str) -> Any:
    shown = {"brand": "brand", "price": "price", "rating": "rating", "days": "ship_days"}
    return record[shown[slot]] if slot in shown else record["attributes"].get(slot[5:])


def described(visit: dict[str, Any], by: Any) -> bool:
    title = f" {visit['title']} "
    return visit["type"] == dict(by)["type"] and all(
        f" {said} " in title if name == "feature" else value(visit, name) == said
        for name, said in by
        if name != "type"
    )


def meets(record: dict[str, Any], demand: Demand, visits: list[dict[str, Any]]) -> bool:
    if isinstance(demand.value, Of):
        (seen,) = [visit for visit in visits if described(visit, demand.value.by)]
        wanted, has = value(seen, demand.slot), value(record, demand.slot)
        if demand.slot == "rating":
            return bool(has >= wanted)
        return bool(has <= wanted + 1e-6 if demand.slot in ("price", "days") else has == wanted)
    if isinstance(demand.value, If):
        return True  # it depends on what else there is
    return (value(record, demand.slot) in demand.value.values) == isinstance(demand.value, OneOf)


@pytest.mark.parametrize("d", [0, 3, 6, 9, 12])
def test_the_best_stand_ins_are_those_with_most_equal_entries(d: int, big_shop: Shop) -> None:
    for seed in range(12):
        task = calm("SUB", d, seed, big_shop)
        alike = stand_ins(task, big_shop)
        count = min(len(alike), wanted(task)["count"])
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
            [*best[:count], original],
            best[: count + 1],
            best[: count - 1],
            [best[0]] * count,
        ):
            right = len(wrong) == count == len(set(wrong)) and original not in wrong
            assert judged(episode, wrong).correct == right
            assert right or judged(episode, wrong).credit < 1


def test_the_visits_hold_one_product_that_fits_the_words(big_shop: Shop) -> None:
    from ecomlab.customer.demands import identity

    catalog = big_shop.catalog
    for d in (0, 6, 12):
        for seed in range(25):
            task = make_task("SUB", d, seed, big_shop)
            was = identity(wanted(task))
            visits = [catalog.record(catalog.row(visit) or 0) for visit in task.world["visits"]]
            fitting = [visit for visit in visits if described(visit, was.items())]
            which = wanted(task).get("which")
            if which:  # told by another visit: which, and how much later or earlier
                places = [at for at, visit in enumerate(visits) if described(visit, which.by)]
                prices = [visits[at]["price"] for at in places]
                end = {"cheapest": min, "most expensive": max}.get(which.pick, max)(prices)
                assert prices.count(end) == 1 and (which.pick or len(places) == 1), "it would be ambiguous"
                meant = visits[places[prices.index(end)] - which.steps]
                assert meant in fitting, "two things that are said contradict each other"
                fitting = [meant]
            assert [visit["product_id"] for visit in fitting] == [task.goal.unsaid["original"]]
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
        if (0, "budget") in task.goal.withheld:
            continue  # it tells nothing before the parts are named
        later = wanted(task).get("parts", [])
        named = parts_of({place: v for place, v in task.goal.slots.items() if place != (0, "parts")})
        others = [kind for kind in task.notes["pool"] if kind not in dict(named)]
        least = [least_total([(kind, {})], catalog, None) or 0 for kind in others]
        dearest = sum(sorted(least, reverse=True)[: len(later)])
        assert (least_total(named, catalog, None) or 0) + dearest <= wanted(task)["budget"]
        held += 0 < len(later) < len(others)
    assert held > 5


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


@pytest.mark.parametrize(("d", "most"), [(2, 7), (12, 12), (20, 16)])
def test_there_is_room_for_a_judgement(d: int, most: int, big_shop: Shop) -> None:
    """What no search says decides: more products meet all demands the harder a task is, they differ in likeness, and
    the best are seldom the cheapest or all of the brand that sold out."""
    numbers, levels, cheapest, branded = [], [], 0, 0
    for seed in range(30):
        task = calm("SUB", d, seed, big_shop)
        alike = stand_ins(task, big_shop)
        records = {one: big_shop.catalog.record(big_shop.catalog.row(one) or 0) for one in alike}
        count = min(len(alike), wanted(task)["count"])
        best = sorted(alike, key=lambda one: -alike[one])[:count]
        low = sorted(records, key=lambda one: records[one]["price"])[:count]
        original = big_shop.catalog.record(original_of(task.goal, big_shop))
        numbers.append(len(alike))
        levels.append(len(set(alike.values())))
        cheapest += {*best} == {*low}
        branded += all(records[one]["brand"] == original["brand"] for one in best)
    assert 0.65 * most <= sum(numbers) / 30 <= 1.5 * most
    assert sum(levels) / 30 >= 2.5
    assert cheapest <= 10 and branded <= 10


@pytest.mark.parametrize("kind", ["reference", "joint", "logic", "trade_off"])
def test_who_lacks_a_kind_of_step_is_wrong_where_it_counts(kind: str, big_shop: Shop) -> None:
    tasks = [make_task("SUB", 9, seed, big_shop) for seed in range(28)]
    held = [task for task in tasks if kind in task.steps]
    assert len(held) >= 8
    player = ENVIRONMENTS["SUB"].reference_player
    assert all(play(player(big_shop), task, big_shop).score.correct for task in held)
    assert sum(play(player(big_shop, lacks=(kind,)), task, big_shop).score.correct for task in held) <= 1


def test_a_condition_holds_in_about_half_of_the_tasks(big_shop: Shop) -> None:
    """Always the first branch is no policy, nor always the second."""
    held, catalog = [], big_shop.catalog
    for seed in range(300):
        task = calm("SUB", 8, seed, big_shop)
        if "if" in wanted(task):
            wish = wanted(task)["if"].value
            without = replace(task, goal=task.goal.drop_slots("if"))
            records = [catalog.record(catalog.row(one) or 0) for one in stand_ins(without, big_shop)]
            first = [one for one in records if value(one, wish.slot) == wish.first]
            held.append(any(one["price"] * 100 <= wish.limit + 0.5 for one in first))
    assert len(held) > 15
    assert 0.35 <= sum(held) / len(held) <= 0.65


def test_a_product_is_known_by_its_whole_name() -> None:
    was = {"type": "Collar", "feature": "Alpine"}
    assert titled("Fern Alpine Collar", was) and not titled("Fern Deluxe-Alpine Collar", was)
    assert titled("Fern Alpine Collar", {"type": "Collar", "brand": "Fern"})
    assert not titled("Fern Alpine Hoodie", was)
