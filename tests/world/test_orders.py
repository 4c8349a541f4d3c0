"""Order histories, return windows, and the text of answers about them."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from ecomlab import Episode, Shop, make_task
from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.status import read_status
from ecomlab.difficulty import Difficulty
from ecomlab.laws import attackers
from ecomlab.task import TaskKey
from ecomlab.world.orders.history import delivered, draw_history, lines_of, standing
from ecomlab.world.orders.references import same_time
from ecomlab.world.policy_book.terms import draw_terms

TODAY = date(2026, 3, 20)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-09",
        "March 9",
        "9 March 2026",
        "Mar 9th",
        "the 9th of March",
        "03/09/2026",
        "March 9, 2026",
        "2026/3/9",
    ],
)
def test_a_day_is_read_as_people_write_it(text: str) -> None:
    assert read_day(text, TODAY) == date(2026, 3, 9)


@pytest.mark.parametrize(
    "text", ["", "nan", "-15", "March 32", "March 9 or March 10", "15 days", "\ud800", "x" * 9999]
)
def test_what_names_no_day_or_two_is_none(text: str) -> None:
    assert read_day(text, TODAY) is None


@pytest.mark.parametrize(
    "text",
    [None, "", "-", "never", "N/A", "None", "never returnable", "It can never be returned.", "Never (non-returnable)",
     "cannot be returned", "none (cancelled)", "the order was cancelled", "no delivery date", "no replacement wanted"],
)  # fmt: skip
def test_none_is_said_in_words(text: str | None) -> None:
    assert says_none(text)


@pytest.mark.parametrize(
    "text", ["March 9", "never after March 9", "none, 2026-03-09", "nan", "x" * 9999, 3, "yes", "P000012"]
)
def test_what_names_something_does_not_say_none(text: object) -> None:
    assert not says_none(text)


@pytest.mark.parametrize(
    ("text", "status"),
    [("Delivered.", "delivered"), ("partially delivered", "partly delivered"), ("in transit", "shipped"),
     ("canceled", "cancelled"), ("partly delivered (1 of 2 delivered)", "partly delivered"),
     ("shipped, not yet delivered", "shipped"), ("hasn't arrived; it is delayed", "delayed"),
     ("shipped, to be delivered on March 9", "shipped"), ("not partly delivered", None), ("it isn't delivered", None),
     ("partly delivered; the second parcel is shipped", "partly delivered"),
     ("partly delivered and partly shipped", None),
     ("not delivered", None), ("shipped, delivered, delayed", None), ("", None)],
)  # fmt: skip
def test_a_status_is_read_leniently_and_lists_are_none(text: str, status: str | None) -> None:
    assert read_status(text) == status


@pytest.mark.parametrize("d", [0, 6, 12])
def test_the_last_day_counts_and_the_day_after_does_not(d: int, big_shop: Shop) -> None:
    catalog, seen = big_shop.catalog, set()
    for seed in range(30):
        key = TaskKey("X", 1, d, seed, big_shop.fingerprint)
        world, terms = draw_history(key, Difficulty.at(d), big_shop), draw_terms(key, catalog)
        assert draw_history(key, Difficulty.at(d), big_shop) == world
        assert len(world["orders"]) == Difficulty.at(d).history
        for order, line in lines_of(world["orders"]):
            found = standing(order, line, date.fromisoformat(world["today"]), catalog, terms)
            if found.last_day:
                assert standing(order, line, found.last_day, catalog, terms).is_open
                after = found.last_day + timedelta(days=1)
                assert not standing(order, line, after, catalog, terms).is_open
            else:
                seen.add("not delivered" if not delivered(order, line) else "never returnable")
                assert not found.is_open
                assert not (line["returned"] and found.window == 0)
    assert len(seen) == 2


@pytest.mark.parametrize("departments", [1, 2, 3])
def test_a_shop_of_few_departments_takes_something_back(big_shop: Shop, departments: int) -> None:
    names = list(dict.fromkeys(kind.department for kind in big_shop.catalog.types))[:departments]
    of_these = tuple(kind.name for kind in big_shop.catalog.types if kind.department in names)
    catalog = replace(big_shop.catalog, drawable=of_these)
    drawn = [draw_terms(("X", seed), catalog).return_days for seed in range(30)]
    assert {sum(days == 0 for days in terms.values()) for terms in drawn} == {
        1: {0},
        2: {1},
        3: {1, 2},
    }[departments]


def test_an_order_has_no_more_lines_than_the_shop_has_types(big_shop: Shop) -> None:
    few = tuple(kind.name for kind in big_shop.catalog.types[:2])
    shop = Shop(replace(big_shop.catalog, drawable=few), big_shop.engine)
    most = 0
    for seed in range(5):
        world = draw_history(TaskKey("X", 1, 12, seed, shop.fingerprint), Difficulty.at(12), shop)
        for order in world["orders"]:
            rows = [shop.catalog.row(line["product_id"]) for line in order["lines"]]
            kinds = [shop.catalog.type_of(row).name for row in rows if row is not None]
            assert len(set(kinds)) == len(kinds)
            most = max(most, len(kinds))
    assert most == 2


def test_a_wrong_return_is_corrected_and_never_right(big_shop: Shop) -> None:
    corrected = 0
    for seed in range(12):
        episode = Episode(make_task("RETURN", 0, seed, big_shop), big_shop)
        goal = episode.goal
        for order, line in lines_of(episode.world.given["orders"]):
            row = episode.world.row(line["product_id"])
            ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
            if big_shop.catalog.type_of(row).name == goal["type"]:
                continue
            episode.act(attackers.calls(("return_initiate", ids)))
            if episode.world.returns:
                break
        corrected += "customer" not in episode.messages[-1] and episode.messages[-1]["role"] == "user"
        while not episode.done:
            episode.act(attackers.SUBMIT)
        assert not episode.score().correct
    assert corrected >= 6


@pytest.mark.parametrize(
    ("held", "named", "so"),
    [
        ("Friday", "week", True),  # Monday's Friday is last week's
        ("Friday", "3 days", True),
        ("3 days", "Friday", True),
        ("1 days", "week", True),  # a week begins on Monday
        ("Friday", "Thursday", False),
        ("Friday", "month", False),
        ("Friday", "09", True),
        ("week", "Friday", None),
        ("09", "week", None),
        ("month", "08", True),
        ("08", "09", False),
    ],
)
def test_who_knows_one_time_of_an_order_knows_others(held: str, named: str, so: bool | None) -> None:
    assert same_time(held, named, date(2026, 9, 28)) is so


def test_a_customer_agrees_with_another_name_for_the_time_of_their_order(shop: Shop) -> None:
    """Yes to what is so, no to what is not, and neither where they cannot tell."""
    met = set()
    for seed in range(400):
        task = make_task("STATUS", 6, seed, shop, {"steps.mean": 0.0})
        if (0, "when") in task.goal.withheld:
            episode = Episode(task, shop)
            acts = episode.customer.hear("Did you order it last week?", episode.world).acts
            so = same_time(task.goal["when"], "week", date.fromisoformat(task.world["today"]))
            said = {"yes", "no"} & {act.kind for act in acts}
            assert said == ({"yes"} if so else {"no"} if so is False else set()), (seed, task.goal["when"])
            met.add(so)
    assert met == {True, False, None}
