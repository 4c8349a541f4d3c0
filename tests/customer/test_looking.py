"""Looking: what a customer does not know, and finds out when told where."""

import pytest

from ecomlab.catalog import Shop
from ecomlab.episode.episode import Episode, draw_task
from ecomlab.steps import only
from ecomlab.task import Task
from ecomlab.world.policy_book import places

CALM = {"p_oos": 0, "p_switch": 0, "p_noise": 0}
WORDS = {name: place.words for name, place in places.PLACES.items()}


@pytest.fixture(scope="module")
def tasks(big_shop: Shop) -> list[Task]:
    """Tasks whose customers do not know their membership, and nothing else."""
    drawn = (
        draw_task(
            env,
            12,
            seed,
            big_shop,
            CALM | {"p_missing": 0} | only("looking", "rules", mean=4, looking_size=1),
        )
        for env in ("POLICY", "RETURN")
        for seed in range(32)
    )
    return [task for task in drawn if [*task.goal.places] == ["tier"]]


def heard(episode: Episode, text: str) -> str:
    return str(episode.act({"role": "assistant", "content": text}).messages[-1]["content"])


def knows(episode: Episode) -> bool:
    """Whether the customer has told their membership."""
    return any(slot.name == "tier" for slot in episode.customer.state.known)


ASKING = (
    "Are you a member, and which tier?",
    "Anything else?",
    "You're a Gold member, right?",
    "So you are a Gold member, and that's all. Shall I go ahead?",
)


@pytest.mark.parametrize("asked", ASKING)
def test_who_does_not_know_asks_where_and_tells_it_once_they_have_looked(
    asked: str, tasks: list[Task], big_shop: Shop
) -> None:
    assert len(tasks) > 5
    for task in tasks:
        episode = Episode(Task.from_json(task.to_json()), big_shop)
        reply = heard(episode, asked)
        assert "membership" in reply
        assert "?" in reply
        assert not knows(episode)
        heard(episode, f"Please look {WORDS[task.goal.places['tier']]}.")
        assert knows(episode)
        assert episode.customer.dialogue.annoyed == episode.customer.dialogue.guessed == 0


def test_nothing_is_found_by_trying_places_out(tasks: list[Task], big_shop: Shop) -> None:
    for task in tasks:
        others = [name for name in places.FACTS["tier"].places if name != task.goal.places["tier"]]
        episode = Episode(task, big_shop)
        heard(episode, ASKING[0])
        heard(episode, f"It's {' or '.join(WORDS[name] for name in places.FACTS['tier'].places)}.")
        assert not knows(episode)
        for number, name in enumerate(others[:2], 1):
            heard(episode, f"It's {WORDS[name]}.")
            assert episode.customer.dialogue.guessed == number
        assert not knows(episode)
        assert episode.done


def test_a_place_is_known_by_its_words_and_by_no_others() -> None:
    for name, words in WORDS.items():
        assert places.named_in(f"You'll find that {words}.", places.FACTS) == [name]
    book = {fact: about.places[0] for fact, about in places.FACTS.items()}
    assert places.read_places(places.text_of(book)) == {fact: WORDS[place] for fact, place in book.items()}
    said = "The shipping label is free, and the receipt is on its way."
    assert places.named_in(said, ["tier"]) == []
