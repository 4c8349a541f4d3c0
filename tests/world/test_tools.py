"""What the tools of the shop show, forgive and leave out."""

import json
from typing import Any

import pytest

from ecomlab import ENVIRONMENTS, Episode, Shop, make_task
from ecomlab.catalog import Constraint
from ecomlab.laws.tool_introspection import calls
from ecomlab.task import SellOut
from ecomlab.world.filters import filters_of
from ecomlab.world.state import PAGE
from ecomlab.world.substitutes import noun
from ecomlab.world.tools.catalog import catalog_search, whole


def episode_of(env: str, shop: Shop, d: int = 0, seed: int = 0) -> Episode:
    return Episode(make_task(env, d, seed, shop), shop)


def ask(episode: Episode, tool: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(episode.act(calls((tool, arguments))).messages[0]["content"])
    return result


def search(episode: Episode, **arguments: Any) -> dict[str, Any]:
    """Search without an episode's budgets."""
    result: dict[str, Any] = catalog_search.function(episode.world, **catalog_search.check(arguments))
    return result


# Search.


def test_rows_that_need_not_fit_are_sponsored_and_all_others_fit(big_shop: Shop) -> None:
    sponsored = strange = 0
    for seed in range(20):
        episode = Episode(make_task("PD", 12, seed, big_shop, {"steps.mean": 0.0}), big_shop)
        kind = episode.goal["type"]
        found = search(episode, category=kind, price_max=40, in_stock=True, sort=["price"])["results"]
        fitting = [row for row in found if "sponsored" not in row]
        assert len(fitting) <= PAGE
        assert all(row["price"] <= 40 and row["stock"] > 0 and "type" not in row for row in fitting)
        others = [row for row in found if row.get("sponsored") is True]
        assert len(others) == len(found) - len(fitting)
        sponsored += len(others)
        strange += sum(row["price"] > 40 or row["stock"] == 0 for row in others)
    assert sponsored > 10 and strange > 0


def test_nothing_is_put_out_of_reach_by_sponsored_rows(big_shop: Shop) -> None:
    crowded = Episode(make_task("PD", 0, 3, big_shop, {"eps_rank": 0.4}), big_shop)
    plain = Episode(make_task("PD", 0, 3, big_shop, {"eps_rank": 0.0}), big_shop)
    for page in (1, 2, 3):
        asked = {"category": plain.goal["type"], "page": page}
        shown = [r["product_id"] for r in search(crowded, **asked)["results"] if "sponsored" not in r]
        assert shown == [row["product_id"] for row in search(plain, **asked)["results"]]


def test_what_a_filter_fixes_is_left_out_and_can_be_put_back(big_shop: Shop) -> None:
    episode = episode_of("PD", big_shop, d=8)
    catalog = big_shop.catalog
    row = catalog.type_rows("Yoga Mat")[0]
    name, value = next(iter(catalog.attributes(row).items()))
    brand = catalog.brands[catalog.brand_code.item(row)]
    given = {"category": "Yoga Mat", "brand": brand, "attributes": {name: value}}
    for arguments in (given, {"query": "mat"}, {"category": "Yoga Mat"}, {"query": "mat", "brand": brand}):
        for shown in search(episode, **arguments)["results"]:
            record = {**catalog.record(catalog.row(shown["product_id"]) or 0), "stock": shown["stock"]}
            left_out = record.keys() - shown.keys()
            assert "brand" in left_out and shown["title"].startswith(f"{record['brand']} ")
            if "sponsored" in shown:
                assert left_out == {"brand"}
                record["sponsored"] = True
            else:
                assert ("type" in left_out) == ("category" in arguments)
                assert name not in shown.get("attributes", {}) or "attributes" not in arguments
            assert whole(shown, arguments) == record
            assert "reviews" not in shown


def test_words_may_be_left_out_beside_a_category(shop: Shop) -> None:
    episode = episode_of("PD", shop)
    assert search(episode, category="Yoga Mat") == search(episode, category="yoga mats", query="Yoga Mat")
    assert "a category" in ask(episode, "catalog_search")["error"]


def test_a_page_beyond_the_last_is_empty_and_says_how_many_there_are(shop: Shop) -> None:
    episode = episode_of("PD", shop)
    pages = search(episode, query="mat")["pages"]
    assert pages > 1 and search(episode, query="mat", page=pages)["results"]
    for page in (pages + 1, 10_000):
        assert search(episode, query="mat", page=page) == {"results": [], "page": page, "pages": pages}


@pytest.mark.parametrize(
    ("kind", "said", "value", "meant"),
    [
        ("Phone Charger", "cable", "1m", ("attr:cable", "1 m")),
        ("Phone Charger", "Cable ", " 1 M", ("attr:cable", "1 m")),
        ("Perfume", "scent notes", "floral", ("attr:note", "Floral")),
        ("Perfume", "Notes", "Floral", ("attr:note", "Floral")),
        ("Memory Card", "speed class", "v10", ("attr:speed", "V10")),
        ("Pet Carrier", "number of doors", "1 door", ("attr:door", "1 Door")),
        ("Keyboard", "works with", "laptops", ("attr:works_with", "Laptops")),
        ("Keyboard", "compatibility", "Laptops", ("attr:works_with", "Laptops")),
    ],
)
def test_attributes_are_known_by_what_people_call_them(
    kind: str, said: str, value: str, meant: tuple[str, str], shop: Shop
) -> None:
    world = episode_of("PD", shop).world
    about = next(k for k in shop.catalog.types if k.name == kind)
    found = filters_of(world, kind, attributes={said: value})
    if about.option.name == meant[0].removeprefix("attr:"):
        assert found.option == meant[1]
    else:
        assert [(c.field, c.value) for c in found.constraints[1:]] == [meant]


def test_every_attribute_is_known_by_its_own_name_and_noun_and_no_two_are_confused(big_shop: Shop) -> None:
    world = episode_of("PD", big_shop).world
    for kind in big_shop.catalog.types:
        for attribute in (*kind.attributes, kind.option):
            for value in attribute.values:
                for said in (attribute.name, noun(attribute.name), attribute.name.replace("_", " ").title()):
                    squeezed = value.replace(" ", "").lower()
                    found = filters_of(world, kind.name, attributes={said: squeezed})
                    if attribute is kind.option:
                        assert found.option == value
                    else:
                        assert found.fixed["attributes"] == {attribute.name: value}


def test_a_variant_can_be_searched_for_and_then_bought(big_shop: Shop) -> None:
    episode = episode_of("CART", big_shop)
    kind = next(k for k in big_shop.catalog.types if k.name == "Running Shoe")
    rows_of = big_shop.catalog.type_rows(kind.name)
    options = kind.option.values
    option = next(one for one in options if one not in big_shop.catalog.shared_options(rows_of))
    wanted = {"category": kind.name, "attributes": {kind.option.name: option.upper()}, "in_stock": True}
    rows = search(episode, **wanted)["results"]
    assert rows and {row["variant_id"] for row in rows if "sponsored" not in row} == {option}
    found = big_shop.catalog.select([Constraint("option", "==", option)], rows_of)
    assert found.tolist() == [row for row in rows_of if option in episode.world.options(row)] != list(rows_of)
    chosen = rows[0]["product_id"]
    assert (chosen, option) in episode.world.shown_pairs
    left = ask(episode, "catalog_get_variants", product_id=chosen)["variants"]
    assert next(v["stock"] for v in left if v["variant_id"] == option) == rows[0]["stock"]
    line = {"product_id": chosen, "variant_id": option}
    assert ask(episode, "cart_add", **line)["line"]["quantity"] == 1
    assert search(episode, **wanted)["results"][0]["stock"] == rows[0]["stock"] - 1
    refused = ask(episode, "catalog_search", category=kind.name, attributes={kind.option.name: "US 99"})
    assert options[0] in refused["error"]


def test_a_product_without_variants_says_so_and_can_be_bought(big_shop: Shop) -> None:
    catalog, episode = big_shop.catalog, episode_of("CART", big_shop)
    for kind in ("Perfume", "Stapler"):
        rows = catalog.type_rows(kind)
        row = next(row for row in rows if not catalog.option_bits[row] and catalog.stock[row] > 0)
        product = {"product_id": catalog.ids[row]}
        assert ask(episode, "catalog_get_variants", **product) == {
            **product,
            "attribute": None,
            "variants": [],
        }
        assert "no variant" in ask(episode, "cart_add", **product, variant_id="Black")["error"]
        assert ask(episode, "cart_add", **product)["line"]["quantity"] == 1


def in_stock(row: int, episode: Episode) -> list[str]:
    """List the options of a product that can be bought."""
    options = episode.shop.catalog.options(row)
    return [option for option in options if episode.world.stock(row, option)]


def test_stock_of_a_variant_is_what_a_search_for_it_filters_by(big_shop: Shop) -> None:
    episode = episode_of("CART", big_shop)
    kind = "Wheelbarrow"
    name = big_shop.catalog.type_of(big_shop.catalog.type_rows(kind)[0]).option.name
    rows = map(big_shop.catalog.row, [one["product_id"] for one in search(episode, category=kind)["results"]])
    row = next(row for row in rows if row and len(in_stock(row, episode)) > 1)
    first, second, *_ = in_stock(row, episode)
    product = big_shop.catalog.ids[row]
    episode.world.sell_out(SellOut(types=(kind,), left=((product, first, 0),)))
    assert (episode.world.stock(row, first), episode.world.stock(row, second) > 0) == (0, True)
    for option in (first, second):
        shown = search(episode, category=kind, in_stock=True, attributes={name: option})["results"]
        listed = [one["product_id"] for one in shown if not one.get("sponsored")]
        assert all(episode.world.stock(big_shop.catalog.row(one) or 0, option) > 0 for one in listed)
        assert (product in listed) <= (episode.world.stock(row, option) > 0)


# Visits and the cart.


def test_visits_are_listed_by_category(shop: Shop) -> None:
    episode = Episode(make_task("CART", 2, 0, shop, {"p_oos": 0}), shop)
    everything = ask(episode, "user_get_visit_history")["visits"]
    kind = episode.goal.of(0)["type"]
    some = ask(episode, "user_get_visit_history", category=kind.lower())["visits"]
    assert some == [visit for visit in everything if visit["title"].endswith(kind)]
    assert 0 < len(some) < len(everything)
    assert "did you mean" in ask(episode, "user_get_visit_history", category=kind[:-1] + "q")["error"]


def test_a_change_of_the_cart_returns_its_line(shop: Shop) -> None:
    episode = episode_of("CART", shop)
    first, second = (v["product_id"] for v in ask(episode, "user_get_visit_history")["visits"][:2])
    for tool, product, more, left in (
        ("cart_add", first, {}, 1),
        ("cart_add", second, {"quantity": "2"}, 2),
        ("cart_add", first, {"quantity": 1.0}, 2),
        ("cart_set_quantity", first, {"quantity": [3]}, 3),
        ("cart_remove", first, {}, 0),
    ):
        result = json.loads(
            episode.act(calls((tool, {"product_id": product, **more}))).messages[0]["content"]
        )
        assert list(result) == ["line"]
        line = result["line"]
        assert (line["product_id"], line["variant_id"], line["quantity"]) == (product, None, left)
        if episode.done:
            break
    else:
        assert len(episode.world.cart) == 1


# Schemas.


@pytest.mark.parametrize("env", list(ENVIRONMENTS))
def test_every_argument_is_described_and_closed_sets_are_enums(env: str, shop: Shop) -> None:
    environment = ENVIRONMENTS[env]
    for tool in (*environment.tools, environment.submit):
        for name, schema in tool.schema["function"]["parameters"].get("properties", {}).items():
            assert schema.get("description"), f"{tool.name}: {name}"
            if name in ("status", "outcome"):
                assert schema["enum"]
            if name == "sort":
                assert schema["enum"]
