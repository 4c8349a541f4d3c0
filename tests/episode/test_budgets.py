"""Budgets: told, enough, and silent about what will happen; and the rule of the efficiency part."""

import json
import re
from collections import defaultdict
from dataclasses import replace

import pytest
from scipy.stats import binom

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.episode.episode import SCORING
from ecomlab.episode.play import finish
from ecomlab.laws.attackers import calls, text
from ecomlab.players.budgets import SURE, quantile
from ecomlab.reward import FREE, PUBLISHED, Effort, Talk, free_turns
from ecomlab.world.state import LAST_CALLS


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("d", [12, *(pytest.param(d, marks=pytest.mark.slow) for d in (0, 4, 8))])
def test_a_budget_tells_no_more_than_the_opening(env: str, d: int, big_shop: Shop) -> None:
    """Tasks that name as many items, or chain as many subtasks, have one budget, whatever is withheld or happens: a
    classifier has nothing to go by. Few are drawn again, so that what is drawn is what the axes say."""
    budgets, again, count = defaultdict(set), 0, 30 if env == "JOURNEY" else 50
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
    subtask.talk = dict(enumerate([Talk(useful=True)] * 100))
    assert subtask.excused.turns == task.asks == -(-len(task.goal.withheld) // 2)


def test_effort_by_hand() -> None:
    effort = Effort(
        turns=7,
        excused=2,
        turns_needed=4,
        turn_slack=3,
        calls=12,
        excused_calls=2,
        calls_needed=9,
        call_slack=5,
    )
    assert effort.turn_share == pytest.approx(1 / 3)
    assert effort.call_share == pytest.approx(1 / 5)


def did(*what: str, **more: bool) -> Talk:
    """Make a turn of talk that did these things."""
    return Talk(frozenset(what), **more)


@pytest.mark.parametrize("what", FREE)
def test_talk_is_free_as_often_as_the_rule_has_it_and_costs_beyond(what: str) -> None:
    once = [did(asked=True), did()] if what == "answer" else [did(what)]
    most = FREE[what] + (FREE["question"] if what == "closing" else 0)  # a further one is a question
    for times in range(most + 3):
        assert free_turns(once * times, asks=0) == min(times, most)


def test_free_talk_is_bounded_whatever_is_said() -> None:
    kinds = [*FREE, "closing", "question"]
    talk = [
        did(kind, asked=n % 2 == 0, useful=n % 3 == 0)
        for n, kind in enumerate(kinds * 20)
        if kind != "answer"
    ]
    assert free_turns(talk, asks=3) == 3 + sum(FREE.values())


def test_a_message_of_several_acts_is_free_if_each_of_them_is() -> None:
    both = did("summary", "closing")
    assert free_turns([both], 0) == 1
    assert free_turns([did("summary"), both], 0) == 1
    assert free_turns([both, did("summary")], 0) == free_turns([both, did("consent", "summary")], 0) == 1
    assert free_turns([did("summary"), replace(both, useful=True)], 1) == 2


def test_talk_beside_calls_excuses_a_turn_only_if_it_found_something() -> None:
    """Talk costs no turn there; else a courtesy beside a wasted call would pay for the call."""
    assert free_turns([did(kind, alone=False, asked=True) for kind in FREE], 5) == 0
    assert free_turns([did("question", useful=True, alone=False)], 5) == 1


TALK = {
    "courtesy": "Thank you for your patience!",
    "consent": "Shall I go ahead?",
    "closing": "Is there anything else I should know?",
}


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("what", TALK)
def test_courtesy_neither_costs_nor_pays(what: str, beside: bool, shop: Shop) -> None:
    """A first message costs no turn, alone or beside calls; beside calls it pays for no other."""
    task = make_task("CART", 0, 3, shop, {"p_missing": 0, "p_oos": 0, "p_switch": 0})
    ask: tuple[str, dict[str, object]] = ("ask_user", {"question": TALK[what]})
    view: tuple[str, dict[str, object]] = ("cart_view", {})
    episode = Episode(task, shop)
    for message in [calls(ask, view)] if beside else [text(TALK[what]), calls(view)]:
        episode.act(message)
    assert episode.effort.turns - episode.effort.excused == 1


def after_a_sell_out(shop: Shop) -> tuple[Episode, str]:
    """Begin an episode in which products of the type, returned with it, have just sold out."""
    for seed in range(60):
        task = make_task("PD", 6, seed, shop, {"p_oos": 1.0, "p_switch": 0.0})
        episode, kind = Episode(task, shop), str(task.goal["type"])
        episode.act(calls(("catalog_search", {"category": kind})))
        if episode.subtask.sold_out:
            return episode, kind
    raise AssertionError("nothing sold out")


def test_looking_up_alternatives_after_a_stock_notice_is_free(big_shop: Shop) -> None:
    """However many look-ups it takes; the same call again, and a call about something else, count."""
    episode, kind = after_a_sell_out(big_shop)
    for page in range(1, 3 + episode.effort.calls_needed):
        for sort in ("price", "rating"):
            if episode.world.calls < episode.task.calls and not episode.done:
                episode.act(calls(("catalog_search", {"category": kind, "sort": sort, "page": page})))
    effort = episode.effort
    shown = len(episode.subtask.looked)
    assert shown > sum(event.calls for event in episode.subtask.sold_out), "too few to tell"
    assert effort.excused_calls == shown - sum(event.calls for event in episode.subtask.sold_out)


def test_turns_that_only_look_up_alternatives_are_free_beyond_those_that_the_notice_earns(
    big_shop: Shop,
) -> None:
    episode, kind = after_a_sell_out(big_shop)
    earned = sum(event.turns for event in episode.subtask.sold_out)
    for page in range(1, earned + 3):
        episode.act(calls(("catalog_search", {"category": kind, "page": page, "sort": "price"})))
        assert episode.effort.excused == max(0, page - earned)
    episode.act(
        calls(("catalog_search", {"category": kind, "page": 1, "sort": "rating"}), ("datetime_now", {}))
    )
    assert episode.effort.excused == 2


def test_look_ups_without_a_stock_notice_count(big_shop: Shop) -> None:
    task = make_task("PD", 6, 0, big_shop, {"p_oos": 0.0, "p_switch": 0.0})
    episode = Episode(task, big_shop)
    for page in range(1, 5):
        episode.act(calls(("catalog_search", {"category": task.goal["type"], "page": page})))
    assert episode.effort.excused_calls == 0 and episode.effort.calls == 4


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_the_courteous_player_earns_what_the_terse_one_earns(env: str, shop: Shop) -> None:
    """The law has it within .02; where both are right they are compared one by one."""
    for d in (0, 12):
        gaps = []
        for seed in range(700, 706):
            task = make_task(env, d, seed, shop)
            terse, kind = (
                finish(
                    ENVIRONMENTS[env].reference_player(shop, courteous=courteous), Episode(task, shop)
                ).score
                for courteous in (False, True)
            )
            gaps += [kind.value - terse.value] if kind.correct and terse.correct else []
        assert gaps and abs(sum(gaps) / len(gaps)) <= 0.02


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_the_system_prompt_says_what_counts_and_what_the_best_score_is(env: str, shop: Shop) -> None:
    """In two sentences, the same in every task, by the published weights."""
    best = PUBLISHED.compose({"task": 1.0, "efficiency": 1.0, "hallucination": 0.0})
    prompt = Episode(make_task(env, 0, 0, shop), shop).messages[0]["content"]
    assert prompt.endswith(SCORING) and f"best score is {best:.2f}" in SCORING
    assert len(re.findall(r"[a-z0-9]\.(?: |$)", SCORING)) == 2
