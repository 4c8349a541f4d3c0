"""Belief: a promise of which the customer tells, which may be right."""

import pytest

from ecomlab.catalog import Shop
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, draw_task, make_task
from ecomlab.episode.play import finish
from ecomlab.steps import only
from ecomlab.task import SellOut, Task
from ecomlab.world.orders.lines import expected_returns

RETURN = ENVIRONMENTS["RETURN"]


@pytest.fixture(scope="module")
def told(big_shop: Shop) -> list[Task]:
    """Returns of customers who tell of a promise, and say so twice."""
    axes = only("belief", "rules", mean=5, belief_size=2) | {"p_switch": 1.0}
    drawn = (draw_task("RETURN", 12, seed, big_shop, axes) for seed in range(60))
    return [task for task in drawn if "promise" in task.goal]


def goes(task: Task, shop: Shop) -> bool:
    return bool(expected_returns(task.goal.after(task.events).of(), Episode(task, shop).world))


def test_a_promise_is_as_often_right_as_wrong_and_counts_where_it_is_wrong(
    told: list[Task], big_shop: Shop
) -> None:
    right = [goes(task, big_shop) for task in told]
    assert 0.35 < sum(right) / len(right) < 0.65
    assert ["belief" not in task.steps for task in told] == right


def test_the_record_decides_whatever_the_customer_insists_on(told: list[Task], big_shop: Shop) -> None:
    phrases = RETURN.phrases.slots
    for task in told[:10]:
        assert (
            len(task.events) - any(isinstance(one, SellOut) for one in task.events) == 1
        )  # and no other change
        assert any(form in task.opening for form in phrases["promise"].texts)
        for lacks, right in (((), True), (("belief",), goes(task, big_shop))):
            episode = Episode(task, big_shop)
            assert finish(RETURN.reference_player(big_shop, lacks=lacks), episode).score.correct == right
            said = " ".join(str(one["content"]) for one in episode.messages if one["role"] != "assistant")
            assert sum(form in said for form in phrases["insists"].texts) == 1


def test_a_promise_is_in_three_of_ten_tasks_at_most(big_shop: Shop) -> None:
    tasks = [make_task("RETURN", d, seed, big_shop) for d in (12, 20) for seed in range(30)]
    assert 3 <= sum("promise" in task.goal for task in tasks) <= 21
