"""BUNDLE's steps of thought: demands across parts, what is worth more, what gives way; and whoever lacks one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, make_task, play
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import nlu
from ecomlab.envs.bundle.steps import KINDS
from ecomlab.episode.episode import draw_task
from ecomlab.episode.play import finish
from ecomlab.seeding import pick, rng
from ecomlab.steps import only
from ecomlab.wishes import AnyBut, OneOf, Wish, from_json, to_json
from ecomlab.world.joint import (
    SLOTS,
    Demands,
    GiveWay,
    Joint,
    Offer,
    Same,
    Together,
    Total,
    best,
    day_name,
    days_until,
    evaluate,
    key_of,
)
from ecomlab.world.ranking import Worth
from ecomlab.world.shopping_list import rows_left

TODAY = date(2026, 3, 16)
BUNDLE = ENVIRONMENTS["BUNDLE"]
DEMANDS: Sequence[tuple[str, Wish, str]] = [
    ("same", Same(("Speaker", "Webcam"), "attr:color"), "the speaker and the webcam in the same color"),
    ("same", Same(("Speaker", "Webcam"), "brand"), "the speaker and the webcam from the same brand"),
    ("subtotal", Total(("Speaker", "Webcam"), 12000), "$120 for the speaker and the webcam together"),
    (
        "subtotal",
        Total(("Speaker", "Webcam"), 12000, stars=True),
        "$120 for the speaker and the webcam together, with as many stars in total as that buys",
    ),
    (
        "arrival",
        Together(("Speaker", "Webcam"), "Saturday the 21st"),
        "the speaker and the webcam by Saturday the 21st",
    ),
    ("worth", Worth((("rating", 1000),), "Speaker"), "$10 more for each extra star on the speaker"),
    ("give_way", GiveWay(("Speaker", "Webcam")), "the speaker, then the webcam"),
]


@pytest.mark.parametrize(("slot", "wish", "words"), DEMANDS)
def test_a_demand_says_itself_is_read_back_and_goes_through_json(
    slot: str, wish: Wish, words: str, big_shop: Shop
) -> None:
    template = BUNDLE.phrases.slots[slot]
    assert template.format.write(wish) == words
    for form in template.telling(wish):
        said = f"Hello. {form.text.replace('{}', words)}"
        assert nlu.read_slots(said, BUNDLE.phrases, lexicon_of(big_shop.catalog)) == [(slot, wish)]
    assert from_json(json.loads(json.dumps(to_json(wish)))) == wish


def test_a_day_is_the_next_of_its_name() -> None:
    assert days_until("Saturday the 21st", TODAY) == 5
    assert days_until(day_name(TODAY + timedelta(days=30)), TODAY) == 30
    assert day_name(date(2026, 3, 12)) == "Thursday the 12th"


def offer(thing: str, dollars: int, color: str = "Red", days: int = 2, stars: float = 4.0) -> Offer:
    return Offer(thing, 100 * dollars, round(10 * stars), days, {"attr:color": color})


OFFERS = {
    "Tent": [offer("t1", 50, "Red"), offer("t2", 55, "Blue", days=6), offer("t3", 60, "Green")],
    "Stove": [offer("s1", 20, "Blue"), offer("s2", 21, "Green"), offer("s3", 40, "Red")],
    "Lamp": [offer("l1", 10, stars=3.0), offer("l2", 14, stars=4.0), offer("l3", 30, stars=5.0)],
}
COLORS, THREE = Same(("Tent", "Stove"), "attr:color"), ("Tent", "Stove", "Lamp")


def chosen(budget: int | None, *wishes: Wish) -> tuple[set[str], tuple[str, ...]] | None:
    slots: dict[tuple[int, str], Any] = {(n, "type"): kind for n, kind in enumerate(OFFERS)}
    slots |= {(n, wish.slot): wish for n, wish in enumerate(wishes)}  # type: ignore[attr-defined]
    slots[0, "budget"] = None if budget is None else 100 * budget
    found = best(OFFERS, Demands.of(slots), TODAY)
    return found and ({one.thing for one in found.chosen.values()}, found.left_out)


@pytest.mark.parametrize(
    ("budget", "wishes", "things", "left_out"),
    [
        (200, [], "t1 s1 l1", ()),
        (200, [COLORS], "t2 s1 l1", ()),  # 75 in Blue, 81 in Green, 90 in Red
        (200, [COLORS, Together(("Tent", "Lamp"), "Saturday the 21st")], "t3 s2 l1", ()),
        (200, [COLORS, Total(("Tent", "Stove"), 7500)], "t2 s1 l1", ()),
        (200, [COLORS, Total(("Tent", "Stove"), 7400), GiveWay(("Stove", "Tent"))], "t1 l1", ("Stove",)),
        (200, [COLORS, Total(("Tent", "Stove"), 4000), GiveWay(("Stove", "Tent"))], "l1", ("Stove", "Tent")),
        (85, [COLORS, GiveWay(("Stove", "Tent"))], "t2 s1 l1", ()),
        (84, [COLORS, GiveWay(("Lamp", "Tent"))], "t2 s1", ("Lamp",)),
        (200, [Worth((("rating", 500),), "Lamp")], "t1 s1 l2", ()),
        (200, [Worth((("rating", 2000),), "Lamp")], "t1 s1 l3", ()),
        (90, [Worth((("rating", 2000),), "Lamp")], "t1 s1 l2", ()),  # l3 costs 20 more than is left for it
        (200, [Total(("Stove", "Lamp"), 5000, True)], "t1 s1 l3", ()),
        (200, [Total(("Stove", "Lamp"), 4900, True)], "t1 s1 l2", ()),
        (99, [Total(("Stove", "Lamp"), 5000, True)], "t1 s1 l2", ()),  # the tent leaves 49 of the budget
        (200, [COLORS, Total(THREE, 9000, True)], "t2 s1 l2", ()),  # 75 in Blue
        (200, [COLORS, Total(THREE, 11000, True), Together(("Tent",), "Saturday the 21st")], "t3 s2 l2", ()),
    ],
)  # fmt: skip
def test_the_best_list(budget: int, wishes: Sequence[Wish], things: str, left_out: tuple[str, ...]) -> None:
    assert chosen(budget, *wishes) == (set(things.split()), left_out)


def test_no_list_has_more_stars_than_the_best() -> None:
    """Against every list there is, with limits that overlap and values that are shared."""
    kinds, found = ("A", "B", "C", "D"), 0
    for seed in range(200):
        random = rng("lists", seed)
        offers = {
            kind: [
                offer(
                    f"{kind}{n}", int(random.integers(1, 40)), pick(random, "RG"), 2, int(random.integers(6))
                )
                for n in range(4)
            ]
            for kind in kinds
        }
        wishes = (
            Total(("A", "B", "C"), 100 * int(random.integers(20, 80)), True),
            Same(("B", "C"), "attr:color"),
            Total(("C", "D"), 100 * int(random.integers(10, 40))),
        )
        budget = 100 * int(random.integers(40, 120))
        demands = Demands({kind: {} for kind in kinds}, budget, wishes)
        able = [
            dict(zip(kinds, some, strict=True))
            for some in product(*offers.values())
            if sum(one.price for one in some) <= budget
        ]
        able = [some for some in able if all(wish.holds(some, TODAY) for wish in wishes)]
        right = best(offers, demands, TODAY)
        assert (right is None) == (not able)
        if right is not None:
            stars = [sum(some[kind].rating for kind in wishes[0].items) for some in able]
            costs = [sum(one.price for one in some.values()) for some in able]
            assert (right.key, right.cost) == min((-n, cost) for n, cost in zip(stars, costs, strict=True))
            found += 1
    assert found > 20


def test_where_nothing_gives_way_there_may_be_no_list() -> None:
    assert chosen(84, COLORS) is None


@pytest.mark.parametrize("d", [0, 2])
def test_there_is_no_step_at_the_lowest_levels(d: int, big_shop: Shop) -> None:
    for seed in range(30):
        task = make_task("BUNDLE", d, seed, big_shop)
        assert not task.steps
        assert not any(name in SLOTS for _, name in task.goal.slots)


def played(task: Task, shop: Shop, lacks: Sequence[str] = ()) -> bool:
    player = BUNDLE.reference_player(shop)
    player.lacks = frozenset(lacks)
    return play(player, task, shop).score.correct


@pytest.mark.parametrize("kind", KINDS)
def test_who_lacks_a_kind_of_step_is_wrong_where_it_counts(kind: str, big_shop: Shop) -> None:
    """And who takes it is right; where no step counts, somebody who takes none is."""
    counted = free = 0
    for seed in range(60):
        kinds = (kind, "joint" if kind == "none" else kind)
        task = draw_task("BUNDLE", 12, seed, big_shop, only(*kinds, mean=4))
        if kind in task.steps:
            assert played(task, big_shop), seed
            assert not played(task, big_shop, [kind]), seed
            counted += 1
        elif not task.steps and free < 5:
            assert played(task, big_shop, KINDS), seed
            free += 1
        if counted >= 6 and free >= 2:
            break
    assert counted >= 2


def held(tasks: Sequence[Task], kind: type[Wish]) -> int:
    return sum(isinstance(wish, kind) for task in tasks for wish in task.goal.slots.values())


def stars(task: Task) -> list[Total]:
    """Limits in total within which the customer wants the most stars."""
    return [wish for wish in task.goal.slots.values() if isinstance(wish, Total) and wish.stars]


def test_both_outcomes_are_drawn_and_what_gives_way_is_rare(big_shop: Shop) -> None:
    tasks = [make_task("BUNDLE", 12, seed, big_shop) for seed in range(120)]
    every: Mapping[str, int] = {
        "logic": held(tasks, OneOf) + held(tasks, AnyBut),
        "joint": held(tasks, Same) + held(tasks, Together),
        "trade_off": held(tasks, Worth),
        "none": held(tasks, GiveWay),
    }
    for kind, count in every.items():
        # The cheapest never have as many stars as a limit buys: those steps all count.
        steps = sum(task.steps.count(kind) - (kind == "joint") * len(stars(task)) for task in tasks)
        share = steps / count
        assert 0.35 < share < 0.65, kind
    assert sum("none" in task.steps for task in tasks) <= 0.12 * len(tasks)
    outcomes = [one for task in tasks for one in BUNDLE.audit.outcomes(task, big_shop).items()]
    greedy = [right for name, right in outcomes if "greedily" in name]
    assert 0.35 < sum(greedy) / len(greedy) < 0.65


def left_out(shop: Shop) -> tuple[Episode, dict[str, Any]]:
    """An episode in which something gave way, and what was handed in."""
    for seed in range(200):
        task = make_task("BUNDLE", 12, seed, shop, {"p_oos": 0, "p_switch": 0})
        if "none" in task.steps:
            episode = Episode(task, shop)
            finish(BUNDLE.oracle(episode), episode)
            assert episode.answer is not None
            return episode, episode.answer
    raise AssertionError("nothing ever gave way")


def test_what_is_left_out_has_to_be_named_and_nothing_else(big_shop: Shop) -> None:
    episode, answer = left_out(big_shop)

    def right(**changed: Any) -> bool:
        return BUNDLE.verify(episode.goal, episode.world, answer | changed, episode.customer.first).correct

    (gone, *_), parts = answer["unmet"], Demands.of(episode.goal.slots).parts
    other = next(kind for kind in parts if kind not in answer["unmet"])
    assert right()
    assert right(unmet=[f"we had to leave out the {gone.lower()}, as you said"]) or len(answer["unmet"]) > 1
    assert not right(unmet=None)
    assert not right(unmet=[*answer["unmet"], other])
    assert not right(product_ids=answer["product_ids"][1:])


def test_the_budget_does_not_cut_what_a_limit_in_total_buys(big_shop: Shop) -> None:
    """So that "as many stars in total as that buys" has one reading."""
    held = 0
    for seed in range(16):
        task = make_task("BUNDLE", 12, seed, big_shop, {"p_oos": 0, "p_switch": 0})
        catalog, today = big_shop.catalog, date.fromisoformat(task.world["today"])
        rows_of = partial(rows_left, catalog=catalog, sold=None)
        demands, offers, choice = evaluate(task.goal.slots, today, rows_of, catalog)
        stated = [kind for (_, name), kind in task.goal.slots.items() if name == "type"]
        assert not any({*stated} == {*one.items} for one in demands.joints if isinstance(one, Total))
        for aim in (one for one in demands.aims if isinstance(one, Total)):
            alone = best(offers, replace(demands.aiming(aim), budget=None), today)
            assert choice and alone and key_of(aim, alone.chosen) == key_of(aim, choice.chosen)
            held += 1
    assert held >= 4


def test_a_broken_demand_is_a_fault_of_that_demand(big_shop: Shop) -> None:
    """In every task: the cheapest of each breaks some demands, and each of them is named."""
    named = 0
    for seed in range(20):
        task = make_task("BUNDLE", 12, seed, big_shop, {"p_oos": 0, "p_switch": 0})
        episode = Episode(task, big_shop)
        player = BUNDLE.reference_player(big_shop)
        player.lacks = frozenset(KINDS)
        finish(player, episode)
        found = BUNDLE.audit.faults(episode.goal, episode.world, episode.answer, episode.customer.first)
        assert bool(found) != episode.score().correct
        broken = [fault.slots[0] for fault in found if fault.slots and fault.slots[0] in SLOTS]
        assert found or not task.steps
        named += sum(isinstance(episode.goal.slots[p], Joint) for p in episode.goal.slots if p[1] in broken)
    assert named > 5
