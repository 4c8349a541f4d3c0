"""What a message names, in an order that is the same in every process."""

from collections import defaultdict

from ecomlab import Episode, Shop, make_task
from ecomlab.customer.opinions import Thing, of_product, things_in
from ecomlab.world.joint import GiveWay


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


def test_an_id_names_a_product_and_not_what_was_once_bought_under_its_title(shop: Shop) -> None:
    world = Episode(make_task("RETURN", 0, 0, shop), shop).world
    bought = {line["product_id"] for order in world.given["orders"] for line in order["lines"]}
    titles = {shop.catalog.title(world.row(one)) for one in bought}
    pairs = ((one, shop.catalog.title(world.row(one))) for one in shop.catalog.ids if one not in bought)
    one, title = next(pair for pair in pairs if pair[1] in titles)
    world.shown = {one: None}.keys()  # type: ignore[assignment]
    assert [(thing.kind, thing.id) for thing in things_in(f"Do you like the {title} ({one})?", world)] == [
        ("product", one)
    ]


def test_a_list_of_which_items_give_way_judges_its_products(shop: Shop) -> None:
    """The first item holds what gives way: a product of it that breaks a limit was an error of ours."""
    found = []
    for task in (make_task("BUNDLE", 12, seed, shop) for seed in range(100)):
        if isinstance(task.goal.get("give_way", item=0), GiveWay):
            world, rows = Episode(task, shop).world, shop.catalog.type_rows(task.goal.get("type", item=0))
            found += [
                of_product(task.goal, world, Thing("product", shop.catalog.ids[row], "")) for row in rows
            ]
    assert any(opinion is not None and not opinion.right for opinion in found)
