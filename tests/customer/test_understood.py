"""Customers understand questions that nobody had read while the reader was made: part of what the certificate asks."""

from collections.abc import Iterator

import pytest

from ecomlab import Shop
from ecomlab.laws import laws, understanding
from ecomlab.laws.understanding import Share, ask, questions

EVERY = 6
"""One in so many questions of a bank is asked here."""


@pytest.fixture(autouse=True)
def fewer_customers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Half of the tasks whose customers the certificate asks."""
    understanding._tasks.cache_clear()
    monkeypatch.setattr(understanding, "TASKS", understanding.TASKS // 2)
    yield
    understanding._tasks.cache_clear()


@pytest.mark.parametrize("bank", ["fifth", "tenth"])
def test_questions_that_nobody_had_read_are_understood(bank: str, big_shop: Shop) -> None:
    asked = list(ask(questions(bank)[::EVERY], big_shop, 1))
    exact = sum(one.exact for one in asked) / len(asked)
    denied = sum(one.denied for one in asked)
    share = Share(bank, "all", "all", len(asked), exact, denied)
    broken = laws.broken_laws([], understood=[share])
    assert not broken, broken  # by itself, so that a failure does not print the bank
    assert len(asked) > 150
