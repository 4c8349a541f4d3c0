"""What the customer asks in their turn: how answers are read, what counts, and what is asked again."""

import re
from dataclasses import replace
from datetime import date

import pytest

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.nlu import read_acts, read_slots
from ecomlab.customer.telling import SHARE, Asked, read
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, draw_task, make_task
from ecomlab.task import GoalChange, Message, Task
from ecomlab.world.policy_book.rules import RULES

TODAY = date(2026, 3, 4)
MONEY = next(one for one in ENVIRONMENTS["CART"].questions if one.slot == "ask_total")
BY, DAYS = ENVIRONMENTS["STATUS"].questions[:2]
DAY = Asked("ask_day", "day", lambda goal, world: None, "It comes on {}.", r"\ball\b|\blast\b|\beverything\b")
COUNT = Asked("ask_count", "count", lambda goal, world: None, "{} are still to come.", r"\bstill\b")


@pytest.mark.parametrize(
    ("asked", "text", "values"),
    [
        (MONEY, "The total is $1,234.50.", [123450]),
        (MONEY, "That makes 45 dollars altogether.", [4500]),
        (MONEY, "2 x $12.50 plus $5 = **$30**", [3000]),
        (MONEY, "The lamp is $20. The kettle is $10. In total that's $30.", [3000]),
        (MONEY, "The lamp is $20 and the kettle $10.", [2000, 1000]),
        (MONEY, "It will be about $20-$30.", [2000, 3000, None]),
        (MONEY, "It comes to at most $30.", [3000, None]),
        (MONEY, "Is $30 all right for you?", []),
        (MONEY, "That's $30 in total, is that all right?", [3000]),
        (MONEY, "A lamp at $20, as none costs $10. Altogether $30. All right?", [3000]),
        (MONEY, "I've added the lamp.", []),
        (DAY, "It arrives on March 9.", ["2026-03-09"]),
        (DAY, "It'll be there 2026-03-09, a Monday.", ["2026-03-09"]),
        (DAY, "Your order from March 1 arrives on March 9.", ["2026-03-09"]),
        (DAY, "The lamp came on March 3, the kettle comes on March 9.", ["2026-03-03", "2026-03-09"]),
        (DAY, "The lamp came on March 3, so everything is here on March 9.", ["2026-03-09"]),
        (DAY, "The lamp came on March 3. All of it is here on the 9th of March.", ["2026-03-09"]),
        (DAY, "Some time on March 8 or 9.", ["2026-03-08", None]),
        (DAYS, "It arrives in 12 days.", [12]),
        (DAYS, "That's two weeks from now.", [14]),
        (DAYS, "In 3 to 5 days.", [5, None]),
        (DAYS, "It was delivered on March 1.", []),
        (BY, "Yes, all of it.", ["yes"]),
        (BY, "No - the lamp comes later.", ["no"]),
        (BY, "I'm afraid not.", ["no"]),
        (BY, "Yes for the lamp, no for the kettle: no, not all of it.", ["yes", "no"]),
        (BY, "There is no delay, don't worry.", []),
        (BY, "Yes, let me check that.", []),
        (COUNT, "Three things are still to come.", [3]),
    ],
)
def test_one_value_is_an_answer_and_several_are_none(asked: Asked, text: str, values: list[object]) -> None:
    placed = ["2026-03-01"]
    assert list(read(text, asked, TODAY, beside=placed).values) == values


def test_an_answer_of_a_question_is_read_as_it_was_meant() -> None:
    values = {"money": 4590, "day": "2026-03-09", "days": 14, "count": 3, "yes": "no"}
    for env in ENVIRONMENTS.values():
        for asked in env.questions:
            about = next(iter(RULES)) if asked.slot == "ask_with" else "so"
            assert read(asked.say(values[asked.kind]), asked, TODAY, about).values == (values[asked.kind],)


def task_asking(shop: Shop, *slots: str) -> Task:
    """Draw a task of STATUS without a change of mind that asks these questions and withholds nothing."""
    for seed in range(400):
        task = make_task("STATUS", 6, seed, shop, {"p_switch": 0, "p_missing": 0, "p_noise": 0})
        if task.goal.asks.keys() == {*slots}:
            return task
    raise AssertionError(f"no task asks {slots}")


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def heard(episode: Episode, text: str) -> str:
    """Say something to the customer; return what they answer."""
    return str(episode.act(said(text)).messages[-1]["content"])


def right(episode: Episode, slot: str) -> str:
    asked = next(one for one in episode.env.questions if one.slot == slot)
    return asked.say(asked.value(episode.goal, episode.world))


def submit(episode: Episode, text: str = "") -> None:
    """Hand in the right order, with this text beside the call."""
    answers = ENVIRONMENTS["STATUS"].oracle(episode)
    while True:
        message = answers(episode.messages, episode.tools)
        calls = message.get("tool_calls", ())
        if any(call["function"]["name"] == "submit" for call in calls):
            episode.act({**message, "content": text})
            return
        if calls:
            episode.act(message)


@pytest.mark.parametrize(
    ("told", "correct"), [(["right"], True), ([], False), (["wrong"], False), (["wrong", "right"], True),
                          (["right", "wrong"], False)],
)  # fmt: skip
@pytest.mark.parametrize("beside", [False, True])
def test_the_last_answer_counts_and_silence_is_none(
    big_shop: Shop, told: list[str], correct: bool, beside: bool
) -> None:
    episode = Episode(task_asking(big_shop, "ask_paid"), big_shop)
    words = {"right": right(episode, "ask_paid"), "wrong": "In total it cost $1.23."}
    for answer in told[: -1 if beside and told else None]:
        heard(episode, words[answer])
    submit(episode, words[told[-1]] if beside and told else "")
    score = episode.score()
    assert score.correct == correct
    if not correct:
        assert score.parts["task"] == pytest.approx(1 - 2 * SHARE)
        found = episode.env.audit.found(episode.goal, episode.world, episode.answer, episode.goal)
        assert [one.kind for one in found] == ["wrong answer told" if told else "not told"]


def test_what_is_unclear_is_asked_again_and_free(big_shop: Shop) -> None:
    episode = Episode(task_asking(big_shop, "ask_paid"), big_shop)
    customer = episode.customer
    replies = [heard(episode, "It cost $10 or $12.") for _ in range(3)]
    forms = customer.phrases.slots["ask_paid"].texts
    assert all(any(form in reply for form in forms) for reply in replies)
    assert customer.dialogue.annoyed == 0
    assert not episode.world.told
    heard(episode, right(episode, "ask_paid"))
    submit(episode)
    assert episode.score().correct
    assert episode.score().parts["efficiency"] == 1


def test_who_has_nothing_else_to_say_asks_again_what_is_open(big_shop: Shop) -> None:
    for text in (
        "It is on its way. Is that the order you meant, and is there anything else?",
        "Got it, all done.",
    ):
        episode = Episode(task_asking(big_shop, "ask_paid"), big_shop)
        forms = episode.customer.phrases.slots["ask_paid"].texts
        replies = [heard(episode, text), heard(episode, text)]
        assert all(any(form in reply for form in forms) for reply in replies)
        heard(episode, right(episode, "ask_paid"))
        last = heard(episode, text)
        assert not any(form in last for form in forms)


def test_a_right_and_a_wrong_answer_are_taken_alike(big_shop: Shop) -> None:
    replies = set()
    for wrong in (False, True):
        episode = Episode(task_asking(big_shop, "ask_paid"), big_shop)
        replies.add(heard(episode, "In total it cost $1.23." if wrong else right(episode, "ask_paid")))
    assert len(replies) == 1


def test_a_question_may_come_later(big_shop: Shop) -> None:
    task = task_asking(big_shop, "ask_paid")
    later = GoalChange(asks=task.goal.asks, moment="order_list")
    task = replace(task, goal=replace(task.goal, asks={}), events=(later,), opening="Where is my order?")
    task = Task.from_json(task.to_json())
    episode = Episode(task, big_shop)
    call = {"id": "1", "type": "function", "function": {"name": "order_list", "arguments": "{}"}}
    came = episode.act({"role": "assistant", "content": "", "tool_calls": [call]}).messages[-1]
    assert came["role"] == "user"
    assert any(form in came["content"] for form in episode.customer.phrases.slots["ask_paid"].texts)
    heard(episode, right(episode, "ask_paid"))
    submit(episode)
    assert episode.score().correct


def test_a_cart_whose_total_was_not_told_is_not_correct(big_shop: Shop) -> None:
    tasks = (make_task("CART", 8, seed, big_shop) for seed in range(40))
    task = next(task for task in tasks if task.goal.asks)
    for lacks in ((), ("telling",)):
        player = ENVIRONMENTS["CART"].reference_player(big_shop)
        player.lacks = frozenset(lacks)
        episode = Episode(task, big_shop)
        while not episode.done:
            episode.act(player(episode.messages, episode.tools))
        assert episode.score().correct == (not lacks)


@pytest.mark.parametrize(
    "asks",
    [
        "What would you like to know?",
        "You also want to know what it costs, right?",
        "So you'd like to know how long it takes, is that right?",
    ],
)
def test_who_is_asked_for_their_questions_asks_them_and_judges_no_one_elses_words(
    asks: str, big_shop: Shop
) -> None:
    for seed in range(7_000_000, 7_000_012):
        task = draw_task("POLICY", 8, seed, big_shop, {"p_noise": 0.0})
        episode = Episode(task, big_shop)
        heard = [
            episode.act({"role": "assistant", "content": asks}).messages[-1]["content"] for _ in range(2)
        ]
        questions = read_slots(heard[0], episode.env.phrases, lexicon_of(big_shop.catalog))
        assert ("question", task.goal["question"]) in questions
        assert {name for name, _ in questions} == {"question", *task.goal.asks}
        assert episode.customer.dialogue.annoyed == 1  # asked once more, that leads nowhere


def test_a_chain_that_is_read_back_is_affirmed_and_a_longer_one_is_not(big_shop: Shop) -> None:
    heard = 0
    for seed in range(7_000_000, 7_000_020):
        task = draw_task("STATUS", 8, seed, big_shop, {"p_noise": 0.0})
        if (chain := task.goal.get("chain")) is None or (0, "chain") in task.goal.withheld:
            continue
        said = re.sub(r"\bmy\b", "your", chain)
        for text, so in (
            (f"Just to confirm, you mean {said}?", True),
            (f"So it's the one right before {said}, right?", False),
        ):
            reply = (
                Episode(task, big_shop).act({"role": "assistant", "content": text}).messages[-1]["content"]
            )
            kinds = {
                act.kind
                for act in read_acts(reply, ENVIRONMENTS["STATUS"].phrases, lexicon_of(big_shop.catalog))
            }
            assert ("yes" in kinds) == so, (text, reply)
        heard += 1
    assert heard > 5


@pytest.mark.parametrize("asks", ["You also need {}, right?", "So the list also has {}, is that right?"])
def test_what_was_put_on_the_list_is_affirmed_and_what_a_star_is_worth_told(
    asks: str, big_shop: Shop
) -> None:
    listed = worth = 0
    for seed in range(7_000_000, 7_000_020):
        task = draw_task("BUNDLE", 6, seed, big_shop, {"p_noise": 0.0})
        episode = Episode(task, big_shop)
        told = heard(episode, "How much is a star or a day worth to you?")
        if any(name == "worth" for _, name in task.goal.slots):
            slots = read_slots(told, episode.env.phrases, lexicon_of(big_shop.catalog))
            assert "worth" in dict(slots), told
            worth += 1
        heard(episode, "Is there anything else?")
        known = [slot for slot in episode.customer.state.known if slot.name == "parts"]
        if known and (0, "parts") in task.goal.withheld:
            reply = heard(episode, asks.format(f"a {known[0].value[0].lower()}"))
            kinds = {act.kind for act in read_acts(reply, episode.env.phrases, lexicon_of(big_shop.catalog))}
            assert "yes" in kinds, reply
            listed += 1
    assert min(listed, worth) > 3


def test_a_question_that_was_answered_is_not_asked_again(big_shop: Shop) -> None:
    episode = Episode(task_asking(big_shop, "ask_paid"), big_shop)
    forms = episode.customer.phrases.slots["ask_paid"].texts
    answer = right(episode, "ask_paid")
    replies = [heard(episode, f"You wanted to know what it cost. {answer} Is there anything else?")]
    replies.append(heard(episode, "You also wanted to know what it cost, right?"))
    assert not any(form in reply for form in forms for reply in replies), replies
