"""Customers understand questions that others wrote, on the banks of the certificate: part of what it asks.

The banks were written by agents who had seen slot names, meanings and example openings alone. The reader was made on
all of them but `fifth` and `tenth`: only their rates are looked at.
"""

from collections.abc import Iterator

import pytest

from ecomlab import Episode, Shop
from ecomlab.laws import banks
from ecomlab.laws.understanding import ask, questions

EVERY, OF_KNOWN = 2, 4
"""One in so many questions is asked here, of a bank that nobody had read and of another."""
LEAST = 0.90
"""SPEC asks for 0.95, which the certificate judges; this is what holds today."""


@pytest.fixture(scope="module", autouse=True)
def fewer_customers() -> Iterator[None]:
    """A quarter of the tasks whose customers the certificate asks."""
    banks.tasks_of.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banks, "TASKS", banks.TASKS // 4)
        yield
    banks.tasks_of.cache_clear()


@pytest.mark.parametrize("bank", ["fifth", "tenth"])
def test_most_questions_that_nobody_had_read_are_understood(bank: str, big_shop: Shop) -> None:
    asked = list(ask(questions(bank)[::EVERY], big_shop, 1))
    exact = sum(one.exact for one in asked) / len(asked)  # by itself: a failure is not to print the bank
    assert exact >= LEAST and len(asked) > 150


@pytest.mark.parametrize("bank", ["read", "development", "second", "third", "held"])
def test_most_questions_of_the_banks_are_understood(bank: str, big_shop: Shop) -> None:
    asked = list(ask(questions(bank)[::OF_KNOWN], big_shop, 1))
    exact = sum(one.exact for one in asked) / len(asked)
    assert exact >= LEAST and len(asked) > 250


@pytest.mark.parametrize(
    ("env", "text", "slots"),
    [
        ("STATUS", "Which order do you mean?", ""),
        ("SUB", "Which features must stay the same?", "must"), ("PD", "Which one matters most?", "importance"),
        ("BUNDLE", "What is your budget?", "budget"),
        ("POLICY", "Are you a member?", "tier"), ("POLICY", "Are you a member, and was it opened?", "tier opened"),
        ("RETURN", "Which one do you mean?", ""),
        ("PD", "Which do you care about more, price or quality?", "importance"),
        ("BUNDLE", "What else is on the list?", "parts"),
    ],
)  # fmt: skip
def test_a_natural_question_gets_what_it_asks_for(env: str, text: str, slots: str, big_shop: Shop) -> None:
    question = {"env": env, "text": text, "slots": slots.split(), "open": not slots, "form": "wh"}
    asked = list(ask([question], big_shop, 5))
    assert len(asked) > 1 and all(one.exact for one in asked)


def test_values_beside_a_question_are_read(big_shop: Shop) -> None:
    bank = [q for q in questions("read") if q["form"] in ("either", "yesno") and "{value}" in q["text"]]
    found = []
    for one in ask(bank, big_shop, 1):
        if one.exact and not one.later:
            read = Episode(one.task, big_shop).customer.read(one.text)
            named = [value for question in read.questions for value in question.values]
            found.append(any(value.lower() in one.text.lower() for value in named))
    assert len(found) > 20
    assert sum(found) / len(found) > 0.95
