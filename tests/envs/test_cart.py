"""Carts: what openings tell and what they leave to be asked for."""

import re
from typing import Any

import numpy as np
import pytest

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.nlg import wish_phrase
from ecomlab.customer.nlu import read_item
from ecomlab.customer.visits import MOST_WITHHELD, exact_value
from ecomlab.envs.cart.player import Wish
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, draw_task
from ecomlab.laws.tool_introspection import calls
from ecomlab.steps import only
from ecomlab.wishes import MOST_SHOWN, SHOWINGS, If, Of, Packs, Taste, wishes_in
from ecomlab.world.cart import constraints_of
from ecomlab.world.plain import AtFirst, plain

LEVELS = (*range(13), 20)


def test_openings_have_at_most_about_sixty_words(big_shop: Shop) -> None:
    words = [
        [len(draw_task("CART", d, seed, big_shop).opening.split()) for seed in range(30)] for d in LEVELS
    ]
    for counted in words:
        assert np.quantile(counted, 0.95) <= 75
    assert np.mean(np.concatenate(words) <= 60) >= 0.95


def test_a_cart_has_at_most_so_many_slots(big_shop: Shop) -> None:
    for d in LEVELS:
        for seed in range(10):
            goal = draw_task("CART", d, seed, big_shop).goal
            assert len(goal.withheld) <= MOST_WITHHELD
            assert len(goal.slots) - len(goal.items) <= 22  # a condition may come on top of 21


def test_a_reference_over_visits_is_read_back_and_means_the_visit_that_it_counts_to(shop: Shop) -> None:
    lexicon, phrases, seen = lexicon_of(shop.catalog), ENVIRONMENTS["CART"].phrases, set[int]()
    for seed in range(10):
        size = 1 + 3 * (seed % 2)
        task = draw_task("CART", 12, seed, shop, only("reference", mean=4, reference_size=size))
        visits = [shop.catalog.row(one) or 0 for one in task.world["visits"]]
        for (item, name), wish in wishes_in(task.goal.slots).items():
            assert isinstance(wish, Of)
            kind = str(task.goal.get("type", item=item))
            said = f"{kind} {wish_phrase(kind, name, wish, lexicon)}, and more"
            assert read_item(said, lexicon, phrases) == {"type": kind, name: wish}
            wanted = constraints_of(wish.described["type"], wish.described)
            (start,) = (at for at, row in enumerate(visits) if shop.catalog.satisfies(row, wanted))
            meant = visits[start - wish.steps]  # the newest come first
            value = plain(task.goal, AtFirst(shop, task.world)).get(name, item=item)
            assert exact_value(meant, name, shop) == value
            seen.add(abs(wish.steps))
    assert seen >= {0, 3}


@pytest.mark.parametrize(
    ("count", "pack", "units"), [(14, "4-Pack", 4), (12, "4-Pack", 3), (13, "12-Pack", 2)]
)
def test_packs_hold_at_least_as_many_things_as_are_wanted(count: int, pack: str, units: int) -> None:
    assert Packs(count).units(pack) == units


def test_a_number_of_packs_is_said_by_what_they_are_to_hold_and_never_as_a_number_of_packs(
    shop: Shop,
) -> None:
    bare = {
        "p_missing": 0,
        "p_oos": 0,
        "p_switch": 0,
        "p_noise": 0,
        "steps.arithmetic": 1,
        "steps.telling": 0,
    }
    seen = 0
    for seed in range(40):
        task = draw_task("CART", 12, seed, shop, bare)
        goal = plain(task.goal, AtFirst(shop, task.world))
        for item, packs in [(i, v) for (i, n), v in wishes_in(task.goal.slots).items() if n == "quantity"]:
            seen += 1
            kind, units = str(goal.get("type", item=item)), goal.get("quantity", item=item)
            rows = shop.catalog.select(constraints_of(kind, goal.of(item))).tolist()
            row = max(rows, key=lambda row: int(shop.catalog.stock[row]))
            line = {"product_id": shop.catalog.ids[row], "variant_id": goal.get("option", item=item)}
            replies = []
            for said in (f"How many {kind}s do you need?", f"So that's {units} of the {kind}, right?"):
                episode = Episode(task, shop)
                replies.append(_said(episode.act({"role": "assistant", "content": said})))
            episode = Episode(task, shop)
            replies.append(_said(episode.act(calls(("cart_add", {**line, "quantity": units + 1})))))
            for reply in replies:
                assert f"enough packs to have {packs.count} of them" in reply, (task.goal.of(item), replies)  # type: ignore[attr-defined]
                assert not re.search(rf"\b{units} (?:{kind}|of|pack)", reply, re.IGNORECASE)
    assert seen > 5


def test_whoever_shows_different_looks_sees_one_that_is_liked_and_nobody_hears_of_others(
    big_shop: Shop,
) -> None:
    bare = {"p_missing": 0, "p_oos": 0, "p_switch": 0, "p_noise": 0, "cart.items": 2}
    lexicon, phrases, seen = lexicon_of(big_shop.catalog), ENVIRONMENTS["CART"].phrases, 0
    for seed in range(12):
        task = draw_task("CART", 20, seed, big_shop, bare | only("taste", mean=2))
        for (item, name), taste in wishes_in(task.goal.slots).items():
            assert isinstance(taste, Taste)
            slots = {n: value for n, value in task.goal.of(item).items() if n != name}
            kind = str(slots["type"])
            words = f"{kind} {wish_phrase(kind, name, taste, lexicon)}"
            assert words.partition(" in a ")[2] in task.opening
            assert read_item(words, lexicon, phrases) == {"type": kind, name: Taste()}
            rows = big_shop.catalog.select(constraints_of(kind, slots)).tolist()
            by_look = {exact_value(row, name, big_shop): big_shop.catalog.ids[row] for row in rows}
            disliked = [look for look in by_look if look not in taste.values]
            assert 2 <= len(disliked) < SHOWINGS * MOST_SHOWN
            liked = next(look for look in by_look if look in taste.values)
            episode, said = Episode(task, big_shop), []
            episode.world.shown.update(by_look.values())
            for looks in (disliked[:2], [disliked[0], liked], disliked[:1], [liked]):
                shown = " or the ".join(by_look[look] for look in looks)
                episode.act({"role": "assistant", "content": f"Do you like the {shown}?"})
                said.append({act.kind: act.seen for act in episode.customer.last_said})
            like = {"like": f"{liked} one".lower()}
            assert said[:2] == [{"like none": ""}, {**like, "dislike": f"{disliked[0]} one".lower()}]
            assert said[2] == like  # as they have said
            assert {"as wanted", "this one", "yes"} & {*said[3]}
            seen += 1
    assert seen > 5


def _said(turn: Any) -> str:
    return " ".join(str(message["content"]) for message in turn.messages)


def test_a_condition_is_asked_anew_once_another_product_is_wanted() -> None:
    crank = If("Patio Umbrella", "attr:tilt", "Crank", 9100, "Push-Button")
    wish = Wish("Patio Umbrella", {"brand": "ThistleBarn", "attr:tilt": "Push-Button"}, {"if": crank}, False)
    wish.learn({"quantity": 2})
    assert not wish.condition_holds
    wish.learn({"brand": "CloverPatch"})
    assert wish.condition_holds
    assert "attr:tilt" not in wish.slots
