"""What a message names, in an order that is the same in every process."""

from collections import defaultdict

from ecomlab import Episode, Shop, make_task
from ecomlab.customer.opinions import things_in


def test_products_of_one_title_are_named_in_the_order_of_their_ids(shop: Shop) -> None:
    """A set has another order in each process, and the first of several wrong ones decides what the customer says."""
    by_title: dict[str, list[str]] = defaultdict(list)
    for row in range(shop.catalog.size):
        by_title[shop.catalog.title(row)].append(shop.catalog.ids[row])
    title, ids = max(by_title.items(), key=lambda one: len(one[1]))
    assert len(ids) > 1
    world = Episode(make_task("PD", 0, 0, shop), shop).world
    for given in (sorted(ids), sorted(ids, reverse=True)):
        world.shown = dict.fromkeys(given).keys()  # type: ignore[assignment]
        assert [thing.id for thing in things_in(f"Do you mean the {title}?", world)] == sorted(ids)
