"""The truth in words: complete, and as a customer would say it."""

import pytest

from ecomlab import ENVIRONMENTS, make_task
from ecomlab.catalog import Shop
from ecomlab.lab.truth import WITHHELD, score_in_lines, slot_in_words, truth_of, wanted
from ecomlab.reward import Score
from ecomlab.task import Goal
from ecomlab.wishes import AnyBut, Of, OneOf, Wish

LEVELS, SEEDS = (0, 6, 12), range(3)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_everything_that_is_withheld_and_everything_that_happens_is_told(env: str, shop: Shop) -> None:
    for level in LEVELS:
        for seed in SEEDS:
            task = make_task(env, level, seed, shop)
            facts = truth_of(task)
            told = "; ".join(fact.text for fact in facts if fact.what == WITHHELD)
            slots = [slot for part in task.parts for slot in part.goal.said(withheld=True)]
            assert told.count(": ") >= len(slots) and bool(told) == bool(slots)
            events = [event for part in task.parts for event in part.events]
            assert sum(fact.what.startswith("after ") for fact in facts) == len(events) + len(task.interrupts)
            assert not [fact for fact in facts if set("[]{}") & set(fact.text)], "nobody has to read JSON"


def test_what_is_wanted_in_the_end_is_that_of_the_goals_as_they_are() -> None:
    goal = Goal({(0, "type"): "Mug", (0, "brand"): "HomeNest", (1, "type"): "Kite"})
    one, two = wanted([("CART", goal)])
    assert (one.about, one.text) == ("Mug", "brand: HomeNest") and two.about == "Kite"
    assert next(wanted([("CART", goal), ("PD", goal)])).about == "CART: Mug"


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (OneOf(("Red", "Blue")), "Red or Blue"),
        (AnyBut(("Red",)), "not Red"),
        (
            Of("visits", (("type", "Lamp"), ("brand", "GlowPetal"))),
            "with the same color as the GlowPetal Lamp I looked at",
        ),
    ],
)
def test_a_wish_is_shown_in_its_words(wish: Wish, words: str) -> None:
    assert slot_in_words("attr:color", wish, ENVIRONMENTS["CART"].phrases) == f"color: {words}"


def test_the_parts_of_a_reward_are_weighed() -> None:
    score = Score(0.6, True, "", {"task": 1.0, "efficiency": -1.0})
    assert score_in_lines(score)[1:] == ["task 1.000 x 0.75 = 0.750", "efficiency -1.000 x 0.15 = -0.150"]
