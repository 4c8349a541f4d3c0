"""A caller's mistakes are answered with the fact and the way out."""

from collections.abc import Callable
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, load_shop, make_task, play
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer.templates import Template
from ecomlab.task import Task, TaskError
from ecomlab.values import choice


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda task, shop: play(None, task, shop), TypeError, "a player is a function"),  # type: ignore[arg-type]
        (lambda task, shop: Episode(shop, task), TypeError, "what make_task and load_shop return"),
        (lambda task, shop: load_shop("5"), ValueError, "there is no catalog in 5"),
        (lambda task, shop: load_shop(0.5), ValueError, "the number of products is a whole number"),  # type: ignore[arg-type]
        (lambda task, shop: load_shop(1_000, seed=1.5), ValueError, "seed is a whole number"),  # type: ignore[arg-type]
        (lambda task, shop: Task.from_json({}), TaskError, "it lacks 'key'"),
        (
            lambda task, shop: Task.from_json({**task.to_json(), "turns": "ten"}),
            TaskError,
            "whole numbers, not 'ten'",
        ),
        (lambda task, shop: Task.from_json({**task.to_json(), "overrides": {"nope": 1}}), TaskError, "nope"),
        (lambda task, shop: ENVIRONMENTS[None], KeyError, "no environment None; there are"),  # type: ignore[index]
        (lambda task, shop: choice({"Mon": "on Monday"}).write("Sun"), ValueError, "no words for 'Sun'"),
        (
            lambda task, shop: lexicon_of(shop.catalog).phrase("Tea Kettle", "day", "Mon"),
            ValueError,
            r"phrases need a table \[slots.day\]",
        ),
    ],
)
def test_a_mistake_says_so(
    wrong: Callable[[Task, Shop], Any], error: type[Exception], said: str, shop: Shop
) -> None:
    with pytest.raises(error, match=said):
        wrong(make_task("CART", 1, 0, shop), shop)


def test_a_player_s_exception_names_its_line(shop: Shop) -> None:
    def broken(messages: Any, tools: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    assert (
        "division by zero (test_mistakes.py, line"
        in play(broken, make_task("CART", 1, 0, shop), shop).score.why
    )


def test_a_value_that_begins_a_sentence_is_read_back() -> None:
    slot = Template(choice({"e": "the evening", "m": "the morning"}), ("{} would be fine.",))
    assert [value for value, _ in slot.find("The evening would be fine.")] == ["e"]
