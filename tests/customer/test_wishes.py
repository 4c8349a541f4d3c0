"""Guesses at what a wish comes to, and its own words, as a customer hears them, in every environment with wishes."""

from collections.abc import Iterator
from typing import Any

import pytest

from ecomlab.catalog import Shop
from ecomlab.customer.meaning import said_words
from ecomlab.customer.nlg import wish_phrase
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode, draw_task
from ecomlab.task import Task
from ecomlab.wishes import AnyBut, Demand, If, OneOf, Wish, wishes_in
from ecomlab.world.plain import AtFirst, plain

BARE = {"p_missing": 0, "p_oos": 0, "p_switch": 0, "p_noise": 0, "steps.telling": 0}
ENVS = [name for name in ENVIRONMENTS if name != "JOURNEY"]  # whose customers are those of its jobs
AFFIRMS = {"yes", "consent", "as wanted", "this one", "acknowledge answer", "say what"}
DENIES = {"no", "wrong about", "decline", "not as wanted", "indifferent"}
GUESSES = (
    "So the {kind} should be {value}, right?",
    "Just to confirm: {kind}, {slot} {value}. Is that right?",
    "I would take the {value} {kind}. Is that okay?",
)
SUMMARIES = (
    "To sum up: you want the {kind} {words}. Is that right?",
    "So you want the {kind} {words}, right?",
)


def _wishes(env: str, shop: Shop) -> Iterator[tuple[Task, str, str, Wish, Any]]:
    """Yield tasks with the type, the slot, the wish and its value, of wishes for a value."""
    for seed in range(12):
        task = draw_task(
            env, 12, seed, shop, BARE | ({"cart.items": 2, "steps.mean": 3} if env == "CART" else {})
        )
        for (item, name), wish in wishes_in(task.goal.slots).items():
            slot = wish.slot if isinstance(wish, If | Demand) else name
            worked_out = plain(task.goal, AtFirst(shop, task.world))
            value = worked_out.get(name, worked_out.get(slot, item=item), item)
            value = value.value if isinstance(value, Demand) else value
            if wish.said_values and slot.startswith(("attr:", "brand")):
                yield task, str(task.goal.get("type", item=item)), slot, wish, value


def _kinds(task: Task, shop: Shop, text: str) -> set[str]:
    """Return the kinds of what a customer says to a first message."""
    episode = Episode(task, shop)
    episode.act({"role": "assistant", "content": text})
    return {act.kind for act in episode.customer.last_said}


def _words(wish: Wish, kind: str, slot: str, task: Task, shop: Shop) -> str:
    if isinstance(wish, If):
        return wish.say().partition(": ")[2]
    if isinstance(wish, Demand):
        return wish.words if not isinstance(wish.value, AnyBut) else f"not {wish.words}"
    return wish_phrase(kind, slot, wish, Episode(task, shop).customer.lexicon)


def test_carts_and_substitutions_have_wishes_for_a_value(shop: Shop) -> None:
    assert all(any(_wishes(env, shop)) for env in ("CART", "SUB"))


@pytest.mark.parametrize("env", ENVS)
def test_a_guess_at_a_wish_is_neither_affirmed_nor_denied(env: str, shop: Shop) -> None:
    for task, kind, slot, wish, value in _wishes(env, shop):
        if isinstance(wish, If):
            value = wish.first
        if isinstance(value, OneOf | AnyBut):
            value = value.values[0] if isinstance(value, OneOf) else None
        said_elsewhere = value in task.goal.slots.values()
        for frame in GUESSES if isinstance(value, str) and not said_elsewhere else ():
            text = frame.format(
                kind=kind.lower(), slot=slot.rpartition(":")[2].replace("_", " "), value=value
            )
            said = _kinds(task, shop, text)
            assert not said & (AFFIRMS | DENIES), (text, wish, said)


def test_what_a_condition_comes_to_is_neither_affirmed_nor_denied(shop: Shop) -> None:
    conditions = [one for env in ENVS for one in _wishes(env, shop) if isinstance(one[3], If)]
    for task, kind, _, wish, _ in conditions:
        first, limit, other = said_words(wish)
        text = f"About the {kind.lower()}: no {first} one is {limit} or less, so I take the {other} one there is."
        said = _kinds(task, shop, text)
        assert not said & (AFFIRMS | DENIES), (text, wish, said)
    assert conditions


@pytest.mark.parametrize("env", ENVS)
def test_a_summary_in_the_words_of_a_wish_is_affirmed(env: str, shop: Shop) -> None:
    wrong, summaries = list[tuple[str, Wish, set[str]]](), 0
    for task, kind, slot, wish, _ in _wishes(env, shop):
        for frame in SUMMARIES:
            words = _words(wish, kind, slot, task, shop).replace("I looked", "you looked")
            text = frame.format(kind=kind.lower(), words=words)
            said = _kinds(task, shop, text)
            summaries += 1
            wrong += [] if "yes" in said and not said & DENIES else [(text, wish, said)]
    assert len(wrong) <= 0.03 * summaries, wrong
