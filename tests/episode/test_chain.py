"""Steps of the kind chain: an amount of a later job of a journey stands on what an earlier one rightly comes to."""

import re
from dataclasses import replace
from itertools import product

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, Task, play
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import nlu
from ecomlab.customer.nlg import wish_phrase
from ecomlab.episode.episode import draw_task
from ecomlab.episode.play import finish
from ecomlab.evaluation.mistakes import label
from ecomlab.laws.attackers import calls
from ecomlab.steps import only
from ecomlab.values import money
from ecomlab.wishes import Earlier, amount_words, is_chained
from ecomlab.world.plain import with_amounts

JOURNEY = ENVIRONMENTS["JOURNEY"]
CALM = {"p_oos": 0, "p_switch": 0}
TWICE = Earlier((("refund", 2), ("answer", -1)), 2300, 10500)


@pytest.fixture(scope="module")
def journeys(big_shop: Shop) -> list[Task]:
    """Journeys in which a later job stands on an earlier one."""
    drawn = (draw_task("JOURNEY", 12, seed, big_shop, only("chain", "rules", mean=6)) for seed in range(22))
    return [task for task in drawn if any(map(chained, task.subtasks))]


def chained(part: Task) -> list[Earlier]:
    values = [value for value in part.goal.slots.values() if is_chained(value)]
    return [value if isinstance(value, Earlier) else value.limit for value in values]


def test_an_amount_is_worked_out_from_outcomes() -> None:
    assert TWICE.of({"refund": 1017, "answer": 599}) == 2300 + 2 * 1017 - 599
    assert TWICE.of({"refund": None, "answer": 599}) == 10500
    assert TWICE.of({"answer": 599}) is None


def test_amounts_and_days_are_read_back_from_their_words(big_shop: Shop) -> None:
    assert amount_words(TWICE) == (
        "$23 on top of twice what I get back for my return minus the charge that I asked about, "
        "or $105 if it can't go back"
    )
    refunds = [(("refund", 1),), (("refund", 2),), TWICE.terms]
    wishes = [Earlier(terms, plus, 900) for terms, plus in product(refunds, (2300, 0))]
    wishes += [Earlier((("refund", 1),), -1500, 900), Earlier((("answer", -1),), 4000)]
    days = [Earlier((("arrival", 1),), plus, 3) for plus in (-2, -1, 0, 1, 4)]
    lexicon, phrases = lexicon_of(big_shop.catalog), ENVIRONMENTS["PD"].phrases
    for name, wish in [*(("price", wish) for wish in wishes), *(("days", wish) for wish in days)]:
        said = f"2 path lights with 4.0 stars or better, {wish_phrase('Path Light', name, wish, lexicon)}"
        assert nlu.read_item(said, lexicon, phrases) == {
            "type": "Path Light",
            "rating": 40,
            "quantity": 2,
            name: wish,
        }
    phrases = ENVIRONMENTS["SUB"].phrases
    template = phrases.slots["price"]
    for form, wish in product(template.telling(TWICE), wishes):
        said = "".join(piece.text for piece in template.word(form.text, wish))
        assert nlu.read_slots(said, phrases, lexicon, opening=True) == [("price", wish)], said


def test_who_lacks_the_step_is_wrong_where_it_counts_and_nobody_else(
    journeys: list[Task], big_shop: Shop
) -> None:
    counting = [task for task in journeys if "chain" in task.steps]
    assert len(counting) > 6
    for task in counting[:6]:
        assert play(JOURNEY.reference_player(big_shop), task, big_shop).score.correct
        episode = Episode(task, big_shop)
        assert finish(JOURNEY.oracle(episode), episode).score.correct
        lacking = play(JOURNEY.reference_player(big_shop, lacks=["chain"]), task, big_shop)
        assert not lacking.score.correct


def test_both_outcomes_occur_and_the_other_amount_would_be_wrong(
    journeys: list[Task], big_shop: Shop
) -> None:
    holds = []
    for part in (part for task in journeys for part in task.subtasks):
        for place, value in part.goal.slots.items():
            if isinstance(value, Earlier) and value.other is not None:
                holds.append(value.value == value.other)
                if not holds[-1]:
                    right = with_amounts(part.goal)
                    taken = replace(right, slots={**right.slots, place: value.other})
                    assert not ENVIRONMENTS[part.env].is_right(taken, right, part, big_shop)
    assert len(holds) > 6
    assert 0.2 < sum(holds) / len(holds) < 0.8


def test_a_customer_says_the_words_and_never_the_amount(journeys: list[Task], big_shop: Shop) -> None:
    for task in journeys[:5]:
        secret = {
            money(wish.value)
            for part in task.subtasks
            for wish in chained(part)
            if wish.value not in (None, wish.other) and wish.terms[0][0] != "arrival"
        }
        player = JOURNEY.reference_player(big_shop, courteous=True)
        played = play(player, task, big_shop)
        said = " ".join(message["content"] for message in played.messages if message["role"] == "user")
        assert not secret & {*re.findall(r"\$\d+(?:\.\d\d)?", said)}


def test_what_is_right_does_not_depend_on_what_was_done_before(big_shop: Shop) -> None:
    """The first job is submitted wrong; the later one is right by what the first should have come to."""
    drawn = (
        draw_task("JOURNEY", 12, seed, big_shop, CALM | only("chain", "rules", mean=6)) for seed in range(60)
    )
    task = next(t for t in drawn if t.subtasks[0].env == "RETURN" and any(map(chained, t.subtasks)))
    episode = Episode(task, big_shop)
    episode.act(calls(("submit", {"outcome": "declined", "last_return_day": "never"})))
    player = JOURNEY.oracle(episode)
    while not episode.done:
        episode.act(player(list(episode.messages), episode.tools))
    verdicts = [subtask.verdict for subtask in episode.subtasks]
    assert [verdict is not None and verdict.correct for verdict in verdicts] == [
        False, *[True] * (len(verdicts) - 1)
    ]  # fmt: skip


def test_nobody_is_interrupted_by_what_stands_on_their_job(big_shop: Shop) -> None:
    for seed in range(20):
        task = draw_task("JOURNEY", 12, seed, big_shop, {"p_switch": 1} | only("chain", "rules", mean=6))
        assert not any(chained(task.subtasks[at + 1]) for at, _ in task.interrupts)


def test_a_mistake_is_one_of_chain(journeys: list[Task], big_shop: Shop) -> None:
    task = next(t for t in journeys if any(p.env == "PD" and "chain" in p.steps for p in t.subtasks))
    played = play(JOURNEY.reference_player(big_shop, lacks=["chain"]), task, big_shop)
    assert "chain" in {mistake.step for mistake in label(played, big_shop).mistakes}
