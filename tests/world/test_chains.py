"""Orders that are spoken of by others, and questions over several orders: what they come to, by hand."""

from datetime import date

import numpy as np
import pytest

from ecomlab.catalog import Shop
from ecomlab.envs.status.questions import VALUES, Facts
from ecomlab.episode.episode import draw_task
from ecomlab.world.orders.chains import draw_chain, follow, read_chain, say
from ecomlab.world.orders.references import look


def order(kinds: list[str], cents: int, parcels: int = 1) -> dict[str, object]:
    items = [{"type": kind, "title": kind, "quantity": 1} for kind in kinds]
    return {"items": items, "prices": [cents] + [0] * (len(kinds) - 1), "parcels": parcels}


SEEN = [
    order(["Lamp"], 900), order(["Tent"], 5000, 2), order(["Lamp", "Mug"], 300), order(["Kettle"], 2000),
    order(["Lamp"], 700, 2), order(["Sofa"], 8000), order(["Lamp"], 100),
]  # fmt: skip


@pytest.mark.parametrize(
    ("phrase", "at"),
    [
        ("the one right before the one with the tent", 2),
        ("the one two orders after the one with the sofa", 3),
        ("the last one with a lamp before the one with the tent", 2),
        ("the second to last one with a lamp before the one with the tent", 4),
        ("the first one with a lamp after the one with the sofa", 4),
        ("the third one with a lamp after the one with the sofa", 0),
        ("the most expensive of my last 5 orders", 1),
        ("the second most expensive of my last 5 orders", 3),
        ("the cheapest of my last 6 orders", 2),
        ("the one right after the first one that was split into two parcels", 3),
        ("the one between the one with the tent and the one with the kettle", 2),
        ("the last one with a lamp before the one right after the most expensive of my last 7 orders", 6),
        ("the one right after the second one with a lamp after the one with the kettle", None),
        ("the one with the lamp", None),
        ("the one by the sea", None),
    ],
)
def test_a_phrase_leads_to_one_order(phrase: str, at: int | None) -> None:
    assert follow(phrase, SEEN) == at
    chain = read_chain(phrase)
    assert chain is None or say(chain) == phrase


def test_what_is_drawn_is_read_back_and_leads_there(shop: Shop) -> None:
    drawn = 0
    for seed in range(12):
        orders = look(draw_task("STATUS", 20, seed, shop).world["orders"], shop)
        for target in range(len(orders)):
            for size in (1, 3, 6):
                text = draw_chain(target, orders, size, np.random.default_rng(seed))
                drawn += text is not None
                chain = read_chain(text or "")
                assert text is None or (chain and sum(link.size for link in chain) == size)
                assert text is None or follow(text, orders) == target
    assert drawn > 200


def test_answers_over_several_orders_are_those_worked_out_by_hand() -> None:
    today, day = date(2026, 3, 4), date
    every = [
        Facts(day(2026, 3, 1), [day(2026, 3, 9)], {}, [(1000, 2)], ["Lamp"], [day(2026, 3, 9)]),
        Facts(day(2026, 2, 20), [day(2026, 2, 25), day(2026, 3, 6)], {}, [(500, 1), (250, 4)], ["Lamp", "Mug"],
              [day(2026, 3, 6)]),
        Facts(day(2026, 2, 1), [day(2026, 2, 5)], {}, [(9900, 1)], ["Sofa"], []),
    ]  # fmt: skip

    def asked(slot: str, value: object) -> object:
        return VALUES[slot](1, every, today, value)

    assert asked("ask_due", "all") == "2026-03-09"
    assert asked("ask_left", "all") == 2
    assert asked("ask_spent", 2) == 3500
    assert asked("ask_spent_with", "lamp") == 3500
    assert asked("ask_paid", "all") == 1500
    assert asked("ask_took", "all") == 14
    assert (asked("ask_by", "Saturday"), asked("ask_all_by", "Saturday")) == ("yes", "no")
    assert asked("ask_all_by", "03-09") == "yes"
