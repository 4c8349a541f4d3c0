"""Slots are declared once: a new one, in one file beside its phrases, takes part in everything."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task, slots
from ecomlab.customer.templates import Phrases
from ecomlab.episode.play import finish
from ecomlab.lab.truth import slot_in_words
from ecomlab.laws import banks, contract, counterfactual, understanding
from ecomlab.seeding import rng
from ecomlab.slots import DAYS, LIMITS, PRICE, RATING, SlotType, slot_type
from ecomlab.task import GoalChange, Task

FILE = Path(__file__).with_name("reviewed.py")
ENV, NAME = "REVIEWED", "reviews"


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlotType]:
    """The new slot; its environment is registered for one test."""
    monkeypatch.setattr(slots, "_DECLARED", dict(slots._DECLARED))
    ENVIRONMENTS.load(FILE)
    found: Any = sys.modules["ecomlab_env_reviewed"]
    yield found.REVIEWS
    del ENVIRONMENTS._found[ENV]


def tasks(shop: Shop, count: int, d: int = 8, **axes: float) -> Iterator[Task]:
    """Tasks without steps of thought, which take long to draw, whose customer limits the number of reviews."""
    drawn = (make_task(ENV, d, seed, shop, {"steps.mean": 0.0, **axes}) for seed in range(1_000))
    found = (task for task in drawn if NAME in task.goal)
    return (next(found) for _ in range(count))


def test_the_reference_player_is_right_about_a_new_slot(reviews: SlotType, shop: Shop) -> None:
    wanted = 0
    for task in (make_task(ENV, d, seed, shop) for d in (0, 4, 8, 10, 12) for seed in range(14)):
        for courteous in (False, True):
            player = ENVIRONMENTS[ENV].reference_player(shop, courteous=courteous)
            assert finish(player, Episode(task, shop)).score.correct, task.key
        wanted += NAME in task.goal
    assert wanted > 3


@pytest.mark.slow
def test_an_environment_with_a_new_slot_keeps_the_contract(
    reviews: SlotType, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract.EnvironmentContract, "levels", (0, 6, 12))
    assert contract.check(ENV, shop) == []


@pytest.mark.parametrize(
    "question",
    ["How many reviews should it have?", "At least 20 reviews?", "Is the number of reviews important?"],
)
def test_a_new_slot_is_withheld_asked_for_and_told(reviews: SlotType, shop: Shop, question: str) -> None:
    for task in tasks(shop, 3, p_missing=1.0):
        episode = Episode(task, shop)
        assert "review" not in task.opening and (0, NAME) in task.goal.withheld
        reply = episode.customer.hear(question, episode.world)
        assert [(slot.name, slot.value) for slot in reply.news] == [(NAME, task.goal[NAME])]


def test_a_new_slot_is_shown_and_filtered_by(reviews: SlotType, shop: Shop) -> None:
    (task,) = tasks(shop, 1)
    world = Episode(task, shop).world
    search = ENVIRONMENTS[ENV].offered["catalog_search"]
    assert search.schema["function"]["parameters"]["properties"]["reviews_min"] == {
        "description": "Number of reviews.",
        "type": "integer",
    }
    found = search.function(world, category=task.goal["type"], reviews_min=40)["results"]
    assert found and all(row["reviews"] >= 40 for row in found if "sponsored" not in row)
    assert "reviews" not in Episode(make_task("PD", 2, 0, shop), shop).world.show(0)


def test_a_change_of_mind_moves_a_new_slot(reviews: SlotType, shop: Shop) -> None:
    events = (event for task in tasks(shop, 60, p_switch=1.0) for event in task.events)
    assert any(NAME in event.slots for event in events if isinstance(event, GoalChange))


def test_the_laws_look_at_a_new_slot(reviews: SlotType, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banks, "TASKS", 10)
    others = []
    for number, task in enumerate(tasks(shop, 5, p_missing=1.0)):
        other = counterfactual.draw(task, shop, rng("other", number))
        if other is not None and other.goal[NAME] != task.goal[NAME]:
            assert not counterfactual.first_difference(task, other, shop, rng("prober", number))
            others.append(other)
    assert others
    bank = [
        {"env": ENV, "text": text, "slots": [NAME], "open": False, "form": form}
        for text, form in (("How many reviews do you need?", "wh"), ("Would {wrong} be enough?", "yesno"))
    ]
    asked = list(understanding.ask(bank, shop, 3))
    assert len(asked) > 4 and all(one.exact for one in asked)


def test_a_new_slot_has_words_everywhere(reviews: SlotType, shop: Shop) -> None:
    (task,) = tasks(shop, 1)
    env = ENVIRONMENTS[ENV]
    assert slot_in_words(NAME, 30, env.phrases) == "reviews: at least 30 reviews"
    episode = Episode(task, shop)
    kind, limit = task.goal["type"], task.goal[NAME]
    rows = shop.catalog.type_rows(kind)
    (row,) = [row for row in rows if shop.catalog.reviews[row] == min(shop.catalog.reviews[list(rows)])][:1]
    goal = task.goal.set_slots({NAME: limit + 20_000})
    product_id = episode.world.show(row)["product_id"]
    found = env.audit.faults(goal, episode.world, {"product_ids": [product_id]}, goal)
    assert NAME in found[0].slots and "wanted at least" in found[0].words


def test_a_slot_of_a_shipped_name_or_without_a_filter_is_refused() -> None:
    with pytest.raises(ValueError, match="already"):
        Phrases.of(["I want {}."], SlotType("brand"))
    with pytest.raises(ValueError, match="filter"):
        SlotType(NAME, "product", ">=", column=NAME, shown=NAME)


def test_limits_by_hand() -> None:
    assert [limit.name for limit in LIMITS] == ["price", "rating", "days"]
    assert (PRICE.loosened(1999, 0.5), RATING.loosened(47, 0.2), DAYS.loosened(3, 0.5)) == (3000, 40, 5)
    assert (PRICE.moved(1500), RATING.moved(45), DAYS.moved(2)) == (
        [500, 1000, 2500, 3500, 5500],
        [35, 40, 50],
        [1, 3, 4],
    )
    assert (PRICE.bare(1250), RATING.bare(45), DAYS.bare(3)) == ("$12.50", "4.5", "3")
    assert slots.fits({"price": 12.5, "rating": None, "ship_days": 3}, {"price": 1250, "days": 3})
    assert not slots.fits({"rating": None}, {"rating": 10})
    assert slots.filters_of({"days": 2, "price": 1250, "attr:color": "Red"}) == {
        "price_max": 12.5,
        "ship_days_max": 2,
    }
    assert slot_type("attr:color") is slots.ATTRIBUTE and not slot_type("importance").is_limit
