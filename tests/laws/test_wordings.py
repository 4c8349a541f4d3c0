"""The laws hold whatever an endpoint makes of the customer's words: hostile ones change nothing."""

from collections import Counter
from functools import lru_cache
from itertools import islice

import pytest
from wordings import HOSTILE, STYLES, Honest, is_label

from ecomlab import ENVIRONMENTS, Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.fillers import telling
from ecomlab.customer.llm import NONE, Wording
from ecomlab.customer.nlu import sentences
from ecomlab.customer.noise import plain
from ecomlab.customer.templates import Phrases
from ecomlab.episode.episode import Episode, make_task
from ecomlab.episode.play import play, replay
from ecomlab.episode.record import Trajectory
from ecomlab.laws import attackers, counterfactual
from ecomlab.laws.tool_introspection import reference_player
from ecomlab.task import Message, Task

LEVEL = 8
ACTING = (
    "down",
    "slow",
    "not text",
    "empty",
    "white space",
    "huge",
    "another language",
    "markup",
    "injections",
)
"""Hostile endpoints of which nothing is ever said."""
HELD = ("CART", "POLICY", "STATUS", "JOURNEY")
"""Environments whose customers speak of products, of facts, of orders and of all in turn; hostile endpoints word those
of the others in `make certify`."""


@lru_cache(maxsize=64)
def with_templates(env: str, seed: int, shop: Shop) -> Trajectory:
    return play(reference_player(env, shop), make_task(env, LEVEL, seed, shop), shop)


def worded(env: str, seed: int, shop: Shop, style: str) -> Trajectory:
    task = make_task(env, LEVEL, seed, shop)
    return play(reference_player(env, shop), task, shop, customer=Honest(style))


@pytest.mark.parametrize(
    "env", [pytest.param(env, marks=() if env in HELD else pytest.mark.slow) for env in ENVIRONMENTS]
)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_endpoint_changes_no_score_and_costs_no_episode(env: str, name: str, shop: Shop) -> None:
    """SOLVABLE, FAIR, BROKEN IS NOT WRONG: the reference player is as right as with the templates."""
    seed = list(HOSTILE).index(name) % 3
    expected = with_templates(env, seed, shop)
    found = play(reference_player(env, shop), expected.task, shop, customer=HOSTILE[name])
    assert found.score == expected.score
    assert found.end == expected.end
    if name in ACTING:
        assert found.messages == expected.messages
        assert all(one["refused"] for one in found.wording)


@lru_cache
def used_of_honest(env: str, shop: Shop) -> Counter[bool]:
    """Count what an honest endpoint says that is said, and that is refused; the reference player is as right."""
    used = Counter[bool]()
    for seed, style in enumerate(STYLES):
        found = worded(env, seed, shop, style)
        assert found.score.correct == with_templates(env, seed, shop).score.correct, found.score.why
        used.update(not one["refused"] for one in found.wording if one["answer"] != one["given"])
        assert replay(found, shop) == found.score
    return used


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_an_honest_endpoint_is_heard_and_understood(env: str, shop: Shop) -> None:
    """FAIR: the reference player is right."""
    assert used_of_honest(env, shop).total()


def test_most_of_what_an_honest_endpoint_says_is_said(shop: Shop) -> None:
    used = sum((used_of_honest(env, shop) for env in ENVIRONMENTS), Counter[bool]())
    assert used[True] / used.total() > 0.8, used


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_courteous_player_is_talked_through_by_an_honest_endpoint(env: str, shop: Shop) -> None:
    for seed in range(2):
        task = make_task(env, LEVEL, seed, shop)
        make = ENVIRONMENTS[env].reference_player
        plain_spoken, chatty = (
            play(make(shop, courteous=True), task, shop, customer=customer)
            for customer in (None, Honest("chatty"))
        )
        assert chatty.score == plain_spoken.score


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_what_an_endpoint_is_sent_does_not_tell_what_is_withheld(env: str, shop: Shop) -> None:
    """SILENT: tasks that differ only in what is withheld send the same, until the customer is asked for it."""
    said = ("Thank you.", "What do you reckon about the whatchamacallit?")

    def sent(task: Task) -> list[list[Message]]:
        asked: list[list[Message]] = []

        def chat(messages: list[Message]) -> str:
            asked.append(messages)
            return NONE if is_label(messages) else ""

        episode = Episode(task, shop, wording=Wording(chat))
        for text in said:
            if not episode.done:
                episode.act({"role": "assistant", "content": text})
        return asked

    levels = (LEVEL, 4)  # where links lead to an order, nothing of it is withheld
    pairs = list(islice((p for d in levels for p in counterfactual.pairs(env, d, range(12), shop)), 4))
    assert pairs
    for task, other in pairs:
        assert sent(task) == sent(other)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_labels_of_everything_make_no_blind_attacker_right(env: str, shop: Shop) -> None:
    """NOT GAMEABLE: who does not listen gains nothing by a customer who tells more."""
    for name, make in attackers.blind(ENVIRONMENTS[env]).items():
        task = make_task(env, LEVEL, 1, shop)
        found = play(make(1), task, shop, customer=HOSTILE["every label"])
        assert not found.score.correct, name
        assert not found.score.unscored, found.score.why


def straightened(text: str, phrases: Phrases, opening: bool = False) -> str:
    return "".join(said.text + said.space for said in sentences(text, phrases, opening))


@pytest.mark.parametrize("env", [env for env in ENVIRONMENTS if not ENVIRONMENTS[env].composes])
def test_what_the_templates_say_is_never_read_as_other_words(env: str, shop: Shop) -> None:
    phrases, lexicon = ENVIRONMENTS[env].phrases, lexicon_of(shop.catalog)
    for d in (0, 6, 12):
        for seed in range(3):
            opening = plain(make_task(env, d, seed, shop).opening, phrases.words, lexicon)
            assert straightened(opening, phrases, opening=True) == opening
    for forms in phrases.acts.values():
        for form in forms:
            said = form.literal if not form.fields else ""
            assert straightened(said, phrases) == said


def test_a_sentence_that_may_mean_two_things_stays_as_it_is() -> None:
    phrases = ENVIRONMENTS["CART"].phrases
    texts = phrases.by_telling["", telling("Not that, sorry.")]
    assert len({said.kind for text in texts for said in sentences(text, phrases)}) > 1
    assert straightened("I am sorry, not that.", phrases) == "I am sorry, not that."
