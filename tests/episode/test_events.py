"""Events: they happen at states that speed does not skip, know nothing of right and wrong, and cost nobody reward."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.customer.shortages import Left
from ecomlab.envs.registry import moved_by
from ecomlab.episode.episode import draw_task
from ecomlab.episode.play import finish, record, replay
from ecomlab.laws.attackers import SUBMIT, calls, constant, text
from ecomlab.task import ACT, GoalChange, Instead, SellOut, changes_of
from ecomlab.world.cart import constraints_of, identity_of
from ecomlab.world.sell_outs import MOST_SOLD, sell_out_of

SINGLE = [env for env in ENVIRONMENTS if not ENVIRONMENTS[env].composes]


def eventful(env: str, seed: int, shop: Shop, d: int = 8, **more: float) -> Task:
    """A task in which everything that can happen does."""
    moved = moved_by(env) or ()
    happens: dict[str, float] = {axis: 1.0 for axis in ("p_oos", "p_switch") if axis in moved}
    return draw_task(env, d, seed, shop, {**happens, **more})


def happening(task: Task) -> list[object]:
    return [event for part in task.parts for event in part.events if not isinstance(event, Instead)]


def user(messages: list[dict[str, str]]) -> str:
    return " ".join(message["content"] for message in messages if message["role"] == "user")


@pytest.mark.parametrize("env", SINGLE)
def test_nobody_is_too_fast_for_an_event(env: str, big_shop: Shop) -> None:
    """Everything has happened at the first submit, which is refused where the customer has something to add."""
    refused = 0
    for seed in range(20 if env != "SUB" else 80):  # whose customers change their mind less often
        task = eventful(env, seed, big_shop)
        episode, answer = Episode(task, big_shop), constant(ENVIRONMENTS[env])
        turn = episode.act(answer)
        assert len(episode.fired) == len(happening(task))
        if not list(changes_of(task.events)):
            assert turn.done
            continue
        refused += 1
        assert not turn.done
        assert "something to add" in json.loads(turn.messages[0]["content"])["error"]
        assert (episode.turn, episode.world.calls) == (0, 0), "the refused attempt cost something"
        assert turn.messages[-1]["role"] == "user"
        assert episode.act(answer).done
    assert refused > 10


SELLING = ("CART", "PD", "SUB", "BUNDLE", "RETURN")
"""Environments in which something sells out."""


@pytest.mark.parametrize("env", SELLING)
def test_a_submit_is_refused_for_what_is_gone_of_it_and_for_nothing_else(env: str, big_shop: Shop) -> None:
    """The notice is shown in the very message that submits: it was written without having read it."""
    refused = passed = 0
    for seed in range(30):
        task = make_task(env, 8, seed, big_shop, {"p_oos": 1.0, "p_switch": 0.0})
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        if sold is None:
            continue
        gone = {product_id for product_id, option, units in sold.left if not (option or units)}
        kind = sold.types[0]
        rows = big_shop.catalog.type_rows(kind)
        there = [big_shop.catalog.ids[row] for row in rows if big_shop.catalog.stock[row] > 0]
        for product_id in (*sorted(gone)[:1], *[one for one in there if one not in gone][:1]):
            episode = Episode(task, big_shop)
            episode.act(calls(("catalog_search", {"query": kind, "category": kind})))
            assert episode.world.left
            episode.world.shown.add(product_id)
            name = "replacement" if env == "RETURN" else "product_ids"
            answer = {name: product_id if env == "RETURN" else [product_id]}
            line = {"product_id": product_id, "quantity": 1}
            look = (
                ("cart_add", line) if env == "CART" else ("catalog_search", {"query": "x", "category": kind})
            )
            turn = episode.act(calls(look, ("submit", {} if env == "CART" else answer)))
            assert "sold out" in json.loads(turn.messages[0]["content"])["notice"]
            result = json.loads(turn.messages[1]["content"])
            if product_id in gone:
                assert f"stock has changed ({product_id} sold out)" in result["error"]
                assert not turn.done
            else:
                assert turn.done
            refused, passed = refused + (product_id in gone), passed + (product_id not in gone)
    assert min(refused, passed) > 10


@pytest.mark.parametrize("env", SELLING)
def test_few_products_sell_out_at_once(env: str, big_shop: Shop) -> None:
    """About as many as a shopper compares, also at the top of the axis; never all that are there."""
    sizes = []
    for seed in range(60):
        task = draw_task(env, 14, seed, big_shop, {"steps.mean": 0.0})
        sold = [event for event in task.events if isinstance(event, SellOut)]
        sizes += [len({product_id for product_id, _, _ in event.left}) for event in sold]
    assert len(sizes) > 20
    assert np.mean(sizes) <= MOST_SOLD
    assert env == "CART" or max(sizes) <= MOST_SOLD


@pytest.mark.parametrize("env", ["CART", "PD", "SUB", "BUNDLE"])
def test_what_nobody_wants_sells_out_beside_what_is_wanted(env: str, big_shop: Shop) -> None:
    """Who sees what is gone does not see what is wanted."""
    wanted = unwanted = 0
    for seed in range(60):
        task = draw_task(env, 12, seed, big_shop, {"p_switch": 0.0, "steps.mean": 0.0})
        world = Episode(task, big_shop).world
        audit = ENVIRONMENTS[env].audit
        wishes = [constraints_of(want.type, want.slots) for want in audit.wishes(task.goal, world)]
        for event in task.events:
            for product_id, _, _ in event.left if isinstance(event, SellOut) else ():
                row = world.row(product_id)
                hit = any(big_shop.catalog.satisfies(row, wish) for wish in wishes)
                wanted, unwanted = wanted + hit, unwanted + (not hit)
    assert unwanted > 0.2 * (wanted + unwanted)


def test_any_product_of_the_type_brings_a_sell_out_about(big_shop: Shop) -> None:
    """Whether the one that is wanted was found makes no difference."""
    catalog, compared = big_shop.catalog, 0
    for seed in range(30):
        task = eventful("CART", seed, big_shop, d=6, **{"steps.mean": 0.0})
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        if sold is None:
            continue
        slots = task.goal.of(sold.item)
        rows = catalog.type_rows(slots["type"])
        wanted = set(catalog.select(constraints_of(slots["type"], identity_of(slots))).tolist())
        for row in (min(wanted), next(row for row in rows if row not in wanted)):
            episode = Episode(task, big_shop)
            episode.act(calls(("catalog_search", {"query": catalog.title(row), "category": slots["type"]})))
            assert episode.world.left
        compared += 1
    assert compared > 10


def test_a_wanted_item_runs_short_as_often_as_the_axis_says(big_shop: Shop) -> None:
    """At d = 8, by d's own share."""
    short = []
    for seed in range(300):
        task = draw_task("CART", 8, seed, big_shop, {"steps.mean": 0.0})  # items with wishes never do
        sold = {event.item: event for event in task.events if isinstance(event, SellOut)}
        for item in task.goal.items:
            slots = task.goal.of(item)
            left = Left(sold[item], big_shop) if item in sold else None
            short.append(left is not None and left.units(slots) < slots.get("quantity", 1))
    p_oos = make_task("CART", 8, 0, big_shop).axes.p_oos
    assert abs(np.mean(short) - p_oos) < 4 * (p_oos * (1 - p_oos) / len(short)) ** 0.5


def test_the_shop_tells_of_stock_and_the_customer_never_does_first(big_shop: Shop) -> None:
    noticed = 0
    for seed in range(40):
        messages = play(
            ENVIRONMENTS["CART"].reference_player(big_shop), eventful("CART", seed, big_shop), big_shop
        ).messages
        results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
        noticed += any("sold out" in result.get("notice", "") for result in results)
        assert "sold out" not in user(messages[2:])
    assert noticed > 30


def reacting(prefers: str, shop: Shop) -> tuple[Episode, Instead]:
    """An episode in which an item has run short whose customer prefers this, before they know."""
    for seed in range(400):
        task = make_task("CART", 7, seed, shop, {"p_oos": 0.8, "p_switch": 0, "p_missing": 0, "p_noise": 0})
        for event in task.events:
            if isinstance(event, Instead) and event.prefers == prefers:
                kind = task.goal.get("type", item=event.item)
                episode = Episode(task, shop)
                episode.act(calls(("catalog_search", {"query": kind, "category": kind})))
                if episode.customer.is_short(event.item, episode.world):
                    return episode, event
    raise AssertionError(f"nobody prefers {prefers}")


@pytest.mark.parametrize("prefers", ["option", "quantity", "replace", "drop"])
def test_who_is_told_of_a_shortage_says_what_they_want_instead(prefers: str, big_shop: Shop) -> None:
    episode, event = reacting(prefers, big_shop)
    customer, kind = episode.customer, episode.customer.type_name(event.item)
    before, expected = customer.goal, episode.goal
    assert before != expected
    said = user(episode.act(text(f"I'm sorry, the {kind} is sold out.")).messages)
    plural = episode.shop.catalog.types[episode.shop.catalog.type_codes[kind]].plural
    assert kind.lower() in said.lower() or plural.lower() in said.lower()
    slots, wanted = customer.goal.of(event.item), before.of(event.item)
    changed = {name for name in {*slots, *wanted} if slots.get(name) != wanted.get(name)}
    assert prefers == "replace" or changed == {prefers} or (prefers == "drop" and not slots)
    assert not customer.is_short(event.item, episode.world)
    for item in customer.goal.items:  # the verifier expects what was said, or would be
        if item == event.item:
            assert customer.goal.of(item) == expected.of(item)


def test_silence_is_no_way_to_an_easier_cart(big_shop: Shop) -> None:
    """Untold, the customer would still want something else: nothing in its place is missing."""
    episode, event = reacting("replace", big_shop)
    while not episode.done:
        episode.act(SUBMIT)
    assert not episode.score().correct
    assert episode.goal.of(event.item)["brand"] == event.slots["brand"]


def test_what_is_in_the_cart_stays_valid(big_shop: Shop) -> None:
    task = eventful("CART", 3, big_shop, d=6)
    sold = next(event for event in task.events if isinstance(event, SellOut))
    episode, catalog = Episode(task, big_shop), big_shop.catalog
    rows = catalog.type_rows(sold.types[0])
    row = next(row for row in rows if catalog.stock[row] >= 8)
    product = catalog.ids[row]
    episode.world.add(product, None, 2)
    episode.world.sell_out(sell_out_of([row], catalog))
    assert episode.world.stock(row) == 0
    episode.world.set_quantity(product, None, 1)
    assert episode.world.stock(row) == 1
    assert row in episode.world.in_stock(np.array([row]))
    episode.world.set_quantity(product, None, 2)
    assert row not in episode.world.in_stock(np.array([row]))


@pytest.mark.parametrize("env", ["PD", "SUB", "BUNDLE", "RETURN"])
def test_no_mind_changes_in_the_breath_of_an_answer(env: str, big_shop: Shop) -> None:
    waited = 0
    for seed in range(30 if env != "SUB" else 90):  # whose customers change their mind less often
        task = make_task(env, 8, seed, big_shop, {"p_switch": 1.0})
        changes = list(changes_of(task.events))
        episode = Episode(task, big_shop)
        if not changes or changes[0].moment == ACT:
            continue
        searched = changes[0].about[0] if changes[0].about else "x"
        looks = ("order_list", "order_get_status", "return_check_eligibility")
        ids = {"order_id": "x", "line_id": "x"}
        names = [name for name in looks if name in episode.env.offered]
        given = [(n, {k: ids[k] for k in ids if k in episode.env.offered[n].required}) for n in names]
        look = given or [("catalog_search", {"query": searched})]
        episode.act(calls(("ask_user", {"question": "Is there anything else?"}), *look))
        assert not [event for event in episode.fired if isinstance(event, GoalChange)]
        if episode.done:
            continue
        episode.act(calls(*look))
        waited += any(isinstance(event, GoalChange) for event in episode.fired)
    assert waited > 3


@pytest.mark.parametrize("env", ["PD", "SUB", "POLICY", "STATUS"])
def test_a_change_of_mind_changes_the_answer(env: str, big_shop: Shop) -> None:
    changed = 0
    for seed in range(40):
        task = make_task(env, 8, seed, big_shop, {"p_switch": 1.0})
        changes = list(changes_of(task.events))
        if not changes:
            continue
        steady = replace(task, events=tuple(event for event in task.events if event not in changes))
        episode = Episode(steady, big_shop)
        assert finish(ENVIRONMENTS[env].oracle(episode), episode).score.correct
        now = task.goal.after(task.events)
        verdict = episode.env.verify(now, episode.world, episode.answer or {}, task.goal)
        assert not verdict.correct, (seed, changes)
        changed += 1
    assert changed > 10


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_an_event_costs_nobody_reward(env: str, big_shop: Shop) -> None:
    """Who reacts as the reference player does loses next to nothing."""
    values = []
    for seed in range(24):
        task = eventful(env, seed, big_shop)
        score = play(ENVIRONMENTS[env].reference_player(big_shop), task, big_shop).score
        if score.correct and happening(task):
            values.append(score.value)
    assert len(values) > 10
    assert np.mean(values) > 0.88


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_an_episode_with_a_refused_attempt_replays(env: str, big_shop: Shop) -> None:
    refused = 0
    for seed in range(8):
        episode = Episode(eventful(env, seed, big_shop), big_shop)
        finish(ENVIRONMENTS[env].reference_player(big_shop), episode)
        hasty = Episode(episode.task, big_shop)
        for _ in range(2):
            if not hasty.done:
                hasty.act(SUBMIT if env == "JOURNEY" else constant(hasty.env))
        if not hasty.done:
            hasty.end_truncated()
        for played in (episode, hasty):
            refused += any(subtask.held_back for subtask in played.subtasks)
            trajectory = record(played)
            assert replay(trajectory, big_shop) == trajectory.score
    assert refused > 3
