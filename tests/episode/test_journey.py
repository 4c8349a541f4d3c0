"""Journeys: several jobs in one world, one after the other or one inside another, each judged by its own verifier."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, TaskError, make_task, play
from ecomlab.laws.attackers import calls
from ecomlab.task import Message, changes_of

JOURNEY = ENVIRONMENTS["JOURNEY"]


@pytest.fixture(scope="module")
def shop(big_shop: Shop) -> Shop:
    """The shop in which a journey is drawn in a quarter of the time that a small one takes."""
    return big_shop


def journey(shop: Shop, d: int, first: str, **overrides: float) -> Task:
    """Draw the first journey that begins with this part."""
    drawn = (make_task("JOURNEY", d, seed, shop, overrides) for seed in range(200))
    return next(task for task in drawn if task.subtasks[0].env == first)


def fair(episode: Episode, until: Any = lambda message: False) -> Message:
    """Let the fair player act until it would send a message of which `until` is true; that message."""
    player = JOURNEY.reference_player(episode.shop)
    while True:
        message = player(list(episode.messages), episode.tools)
        if episode.done or until(message):
            return message
        episode.act(message)


def submits(message: Message) -> bool:
    return any(call["function"]["name"] == "submit" for call in message.get("tool_calls", ()))


def test_parts_and_their_number_grow_with_difficulty(shop: Shop) -> None:
    for d, most in ((0, 2), (4, 3), (12, 5)):
        bare = {"steps.mean": 0.0}
        parts = [[part.env for part in make_task("JOURNEY", d, n, shop, bare).subtasks] for n in range(20)]
        assert max(map(len, parts)) == most
        assert min(map(len, parts)) >= 2
        for names in parts:
            assert len(set(names)) == len(names)
            assert "JOURNEY" not in names


def test_what_one_job_did_is_seen_by_the_next(shop: Shop) -> None:
    task = journey(shop, 0, "CART", p_switch=0)
    episode = Episode(task, shop)
    episode.act(fair(episode, submits))
    assert [subtask.answer is not None for subtask in episode.subtasks] == [True, False]
    assert episode.messages[-1]["role"] == "user"
    cart = json.loads(episode.act(calls(("cart_view", {}))).messages[0]["content"])["cart"]
    assert cart


def test_the_next_job_comes_when_the_last_is_handed_in_right_or_wrong(shop: Shop) -> None:
    task = make_task("JOURNEY", 4, 3, shop, {"p_switch": 0, "p_oos": 0})
    episode = Episode(task, shop)
    for number, part in enumerate(task.subtasks):
        assert part.opening in episode.messages[-1]["content"]
        required = ENVIRONMENTS[part.env].submit.schema["function"]["parameters"].get("required", [])
        assert not episode.done
        episode.act(calls(("submit", {name: [] if name == "product_ids" else "x" for name in required})))
        assert episode.opened == min(number + 2, len(task.subtasks))
    assert episode.end == "submit"
    assert not episode.score().correct


def test_running_out_of_turns_scores_what_was_finished(shop: Shop) -> None:
    task = journey(shop, 0, "PD", p_switch=0)
    episode = Episode(task, shop)
    episode.act(fair(episode, submits))
    while not episode.done:
        episode.act(calls(("datetime_now", {})))
    assert episode.end == "turns"
    score = episode.score()
    assert not score.correct
    assert score.parts["task"] == pytest.approx(
        0.0, abs=0.01
    )  # one of two is perfect, the other not begun: 1 and -1


def test_the_customer_interrupts_one_job_with_the_next_and_comes_back(shop: Shop) -> None:
    phrases, came_back = JOURNEY.phrases, 0
    names = phrases.data["names"].values()
    back = [form.text.replace("{seen}", name) for form in phrases.acts["back"] for name in names]
    for seed in range(30):
        task = make_task("JOURNEY", 6, seed, shop, {"p_switch": 1})
        trajectory = play(JOURNEY.reference_player(shop), task, shop)
        assert trajectory.score.correct, trajectory.score.why
        said = " ".join(message["content"] for message in trajectory.messages if message["role"] == "user")
        came_back += any(line in said for line in back)
    assert came_back > 10


def test_all_jobs_are_of_one_person(shop: Shop) -> None:
    episode = Episode(make_task("JOURNEY", 6, 3, shop), shop)
    assert len(episode.subtasks) > 1
    assert len({subtask.customer.person for subtask in episode.subtasks}) == 1


def test_a_job_is_handed_in_once(shop: Shop) -> None:
    task = journey(shop, 0, "PD", p_switch=0)
    episode = Episode(task, shop)
    turn = episode.act(calls(("submit", {"product_ids": ["P000000"]}), ("submit", {"product_ids": []})))
    assert "handed in already" in turn.messages[1]["content"]
    assert episode.subtasks[0].answer == {"product_ids": ["P000000"], "unmet": None}
    assert episode.opened == 2


def test_every_part_of_a_journey_is_right_on_its_own_terms(shop: Shop) -> None:
    """The mean of the parts' credits is the journey's, and all must be correct."""
    for seed in range(10):
        task = make_task("JOURNEY", 8, seed, shop)
        episode = Episode(task, shop)
        player = JOURNEY.oracle(episode)
        while not episode.done:
            episode.act(player(list(episode.messages), episode.tools))
        score = episode.score()
        assert score.correct, score.why
        assert score.parts["task"] == 1.0
        assert [f"{part.env}: " in score.why for part in task.subtasks] == [True] * len(task.subtasks)


@pytest.mark.parametrize("d", [0, 6, 12])
def test_what_tools_show_does_not_tell_which_jobs_can_come(big_shop: Shop, d: int) -> None:
    """Orders, policies, visits and how many of them are sold out: as much of each in every journey."""
    worlds = [make_task("JOURNEY", d, seed, big_shop).world for seed in range(20)]
    sizes = {(len(w["orders"]), len(w["visits"]), len(w["gone"]), bool(w["policies"])) for w in worlds}
    assert len(sizes) == 1, sizes
    assert all(next(iter(sizes)))


def test_a_job_that_agrees_with_no_other_does_not_end_the_draw(big_shop: Shop) -> None:
    """This key's first job touches what all others are about."""
    task = make_task("JOURNEY", 4, 1_000_097, big_shop)
    assert len(task.subtasks) > 1


def test_slips_of_form_are_counted_by_subtask(shop: Shop) -> None:
    task = make_task("JOURNEY", 0, 0, shop, {"p_switch": 0.0})
    episode = Episode(task, shop)
    slip, nothing = calls(("cart_ad", {})), {"done": True, "product_ids": [], "answer": "?", "order_id": "?"}
    for subtask in range(len(task.subtasks)):
        for _ in range(2):
            assert not episode.act(slip).done
        if subtask < len(task.subtasks) - 1:
            assert not episode.act(calls(("submit", nothing))).done
    assert [subtask.format_errors for subtask in episode.subtasks] == [2] * len(task.subtasks)
    assert episode.act(slip).end == "invalid"


def test_two_tools_of_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    search, *others = ENVIRONMENTS["PD"].tools
    monkeypatch.setattr(type(ENVIRONMENTS["PD"]), "tools", (replace(search), *others))
    with pytest.raises(TaskError, match="two tools"):
        _ = ENVIRONMENTS["JOURNEY"].tools


def test_a_customer_is_the_same_member_in_all_jobs(big_shop: Shop) -> None:
    compared = 0
    for seed in range(60):
        told = []
        for part in make_task("JOURNEY", 12, seed, big_shop).subtasks:
            slots = [part.goal.of(), *(change.slots for change in changes_of(part.events))]
            told.append({one["tier"] for one in slots if "tier" in one})
        told = [tiers for tiers in told if tiers]
        compared += len(told) > 1
        assert len(told) < 2 or len(set[str]().union(*told)) == 1
        if compared > 7:
            break
    assert compared > 5
