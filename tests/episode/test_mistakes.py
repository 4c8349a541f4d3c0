"""A caller's mistakes are answered with the fact and the way out."""

from collections.abc import Callable
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, load_shop, make_task, play
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.task import Task, TaskError
from ecomlab.values import choice


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda task, shop: play(None, task, shop), TypeError, "player"),  # type: ignore[arg-type]
        (lambda task, shop: Episode(shop, task), TypeError, "make_task"),
        (lambda task, shop: load_shop("5"), ValueError, "no catalog"),
        (lambda task, shop: load_shop(0.5), ValueError, "products"),  # type: ignore[arg-type]
        (lambda task, shop: load_shop(1_000, seed=1.5), ValueError, "seed"),  # type: ignore[arg-type]
        (lambda task, shop: make_task("PD", 4, 1, 20_000), TypeError, "load_shop"),  # type: ignore[arg-type]
        (lambda task, shop: make_task("PD", 4, 1, shop, ["p"]), TypeError, "overrides"),  # type: ignore[arg-type]
        (lambda task, shop: Task.from_json({}), TaskError, "key"),
        (lambda task, shop: Task.from_json({**task.to_json(), "turns": "ten"}), TaskError, "ten"),
        (lambda task, shop: Task.from_json({**task.to_json(), "overrides": {"nope": 1}}), TaskError, "nope"),
        (lambda task, shop: ENVIRONMENTS[None], KeyError, "None"),  # type: ignore[index]
        (lambda task, shop: choice({"Mon": "on Monday"}).write("Sun"), ValueError, "Sun"),
        (lambda _, shop: lexicon_of(shop.catalog).phrase("Tea Kettle", "day", "Mon"), ValueError, "slots"),
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
