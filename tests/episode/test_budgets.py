"""Budgets: told, enough, and silent about what will happen; and the rule of the efficiency part."""

import json
from collections import defaultdict

import pytest
from scipy.stats import binom

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.laws.attackers import calls, text
from ecomlab.players.budgets import SURE, quantile
from ecomlab.reward import Effort
from ecomlab.world.state import LAST_CALLS


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("d", [12, *(pytest.param(d, marks=pytest.mark.slow) for d in (0, 4, 8))])
def test_a_budget_tells_no_more_than_the_opening(env: str, d: int, big_shop: Shop) -> None:
    """Tasks that name as many items, or chain as many subtasks, have one budget, whatever is withheld or happens: a
    classifier has nothing to go by. Few are drawn again, so that what is drawn is what the axes say."""
    budgets, again, count = defaultdict(set), 0, 30 if env == "JOURNEY" else 150
    for seed in range(count):
        task = make_task(env, d, seed, big_shop)
        shown = len(task.subtasks) or sum(name == "type" for _, name in task.goal.slots)
        budgets[0 if env == "BUNDLE" else shown].add((task.turns, task.calls))
        again += task.key.attempt > 0
        assert task.fits
    assert all(len(found) == 1 for found in budgets.values()), budgets
    assert again <= 0.02 * count


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_budgets_are_told_in_the_system_prompt(env: str, shop: Shop) -> None:
    for d in (0, 8):
        task = make_task(env, d, 0, shop)
        told = f"You have {task.turns} messages and {task.calls} tool calls."
        assert told in Episode(task, shop).messages[0]["content"]


@pytest.mark.parametrize("ask", [True, False])
def test_a_line_says_when_two_messages_are_left(ask: bool, shop: Shop) -> None:
    task = make_task("PD", 6, 1, shop)
    episode, said = Episode(task, shop), []
    while not episode.done:
        turn = episode.act(text("Hello?") if ask else calls(("datetime_now", {})))
        said.append(any("Two messages are left." in message["content"] for message in turn.messages))
        if ask and episode.end == "patience":
            return
    assert said.index(True) == task.turns - 3
    assert said.count(True) == 1


def test_a_line_says_when_two_calls_are_left(shop: Shop) -> None:
    task = make_task("PD", 6, 1, shop)
    turn = Episode(task, shop).act(calls(*[("datetime_now", {})] * (task.calls + 1)))
    results = [json.loads(message["content"]) for message in turn.messages if message["role"] == "tool"]
    noticed = ["Two tool calls are left." in result.get("notice", "") for result in results]
    assert noticed.index(True) == task.calls - LAST_CALLS - 1
    assert noticed.count(True) == 1
    assert "error" in results[-1]


@pytest.mark.parametrize(
    ("n", "p"), [(0, 0.5), (1, 0.05), (5, 0.3), (9, 0.8), (40, 0.76), (7, 1.0), (7, 0.0)]
)
def test_the_quantile_is_the_binomial_one(n: int, p: float) -> None:
    assert quantile(n, p) == max(0, int(binom.ppf(SURE, n, p)))


def test_the_quantile_stops_where_it_is_told_to() -> None:
    """Far above the levels in use a goal has so many slots that their binomials are beyond a float."""
    assert quantile(40, 0.76, 9) == 9 and quantile(9, 0.3, 9) == quantile(9, 0.3)
    assert quantile(100_000, 0.8, 9) == 9


@pytest.mark.parametrize("env", [env for env in ENVIRONMENTS if env not in ("JOURNEY", "POLICY")])  # seconds
def test_levels_far_above_those_in_use_can_be_drawn(env: str, shop: Shop) -> None:
    assert make_task(env, 3_000, 0, shop).fits


def test_a_question_beside_calls_counts_like_one_alone(big_shop: Shop) -> None:
    """The prompt invites both, so neither costs reward."""
    compared = 0
    for seed in range(40):
        task = make_task("PD", 4, seed, big_shop, {"p_oos": 0.0, "p_switch": 0.0})
        if len(task.goal.withheld) not in (1, 2):
            continue
        shares = []
        ask: tuple[str, dict[str, object]] = (
            "ask_user",
            {"question": "Is there anything else I should know?"},
        )
        now: tuple[str, dict[str, object]] = ("datetime_now", {})
        for messages in ([[ask], [now]], [[ask, now]]):
            episode = Episode(task, big_shop)
            for message in messages:
                episode.act(calls(*message))
            shares.append(episode.effort)
            assert episode.effort.excused == 1
        assert shares[0].turns - shares[1].turns == 1
        assert shares[0].turn_share == shares[1].turn_share == 0
        compared += 1
    assert compared > 2


def test_no_more_questions_are_excused_than_a_courteous_agent_asks(big_shop: Shop) -> None:
    task = next(
        task for task in (make_task("CART", 8, seed, big_shop) for seed in range(40)) if task.goal.withheld
    )
    episode = Episode(task, big_shop)
    subtask = episode.subtasks[0]
    subtask.useful_asks = 100
    assert subtask.excused == task.asks == -(-len(task.goal.withheld) // 2)


def test_effort_by_hand() -> None:
    effort = Effort(turns=7, excused=2, turns_needed=4, turn_slack=3, calls=9, calls_needed=9, call_slack=5)
    assert effort.turn_share == pytest.approx(1 / 3)
    assert effort.call_share == 0
