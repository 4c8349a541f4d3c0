"""Changes of mind: what they say of what was withheld before, and what they leave for the asking."""

import pytest

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.customer import goal_changes
from ecomlab.customer.goal_state import GoalState
from ecomlab.episode.episode import draw_task
from ecomlab.task import Goal, GoalChange, changes_of

CART, RETURN = (ENVIRONMENTS[env].phrases for env in ("CART", "RETURN"))
OLD = {"type": "Tank Top", "brand": "TrailTwill", "quantity": 3}
NEW = {"type": "Tank Top", "brand": "ThreadHaven"}


def told(goal: Goal) -> GoalState:
    return GoalState(goal.said(), goal.said(withheld=True))


def test_an_exchange_does_not_tell_a_withheld_quantity() -> None:
    goal = Goal.one(OLD, ["quantity"])
    state, change = told(goal), GoalChange(how="replace", slots=NEW)
    after, (act,) = goal_changes.apply(change, goal, state, CART, lambda item: "Tank Top") or (goal, [])
    assert after["quantity"] == 3
    assert "quantity" not in act.slots
    assert [slot.name for slot in state.withheld] == ["quantity"]


def test_who_hears_of_a_shortage_says_how_many_of_the_other() -> None:
    goal = Goal.one(OLD, ["quantity"])
    state, change = told(goal), GoalChange(how="replace", slots={**NEW, "quantity": 3})
    after, (act,) = goal_changes.settle(change, goal, state, CART, "Tank Top")
    assert after["quantity"] == act.slots["quantity"] == 3
    assert not state.withheld


def test_that_nothing_is_wanted_in_return_is_said_unless_it_was() -> None:
    """Left out where it was withheld, it would tell that it had been so before."""
    change = GoalChange(how="anew", slots={**NEW, "replacement": []})
    said = []
    for wish, withheld in (([], []), ([], ["replacement"]), ([["price", 500]], ["replacement"])):
        goal = Goal.one({"type": "Tank Top", "replacement": wish}, withheld)
        found = goal_changes.apply(change, goal, told(goal), RETURN, lambda item: "Tank Top")
        assert found
        said.append(any("replacement" in act.slots for act in found[1]))
    assert said == [False, True, True]


@pytest.mark.parametrize("env", ["POLICY", "RETURN"])
def test_a_fact_is_set_right_by_one_that_people_take_it_for(env: str, big_shop: Shop) -> None:
    """ "By phone" set right "in one of your stores", and what had been used was sealed again."""
    never = [{"sealed", "used"}, {"store", "phone"}, {"none", "Gold"}, {"none", "Onyx"}, {"Silver", "Onyx"}]
    corrected = 0
    for seed in range(40):
        task = draw_task(env, 12, seed, big_shop, {"p_switch": 1.0})
        for change in changes_of(task.events):
            for name in change.slots.keys() - {"twist", "units", "replacement", "insists"}:
                before, after = task.goal[name], change.slots[name]
                corrected += 1
                assert {before, after} not in never
                assert not isinstance(after, int) or max(before, after) <= 2 * min(before, after)
    assert corrected > 10
