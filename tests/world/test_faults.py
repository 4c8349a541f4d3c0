"""Verifiers say what is wrong with an answer, product by product."""

import pytest

from ecomlab import Episode, Shop, make_task
from ecomlab.catalog import Constraint
from ecomlab.laws.tool_introspection import calls
from ecomlab.world.cart import constraints_of
from ecomlab.world.faults import MOST_TOLD, faults, told
from ecomlab.world.policy_book.book import deciding
from ecomlab.world.policy_book.cases import section_on
from ecomlab.world.shopping_list import parts_of


def first_of(kind: str, shop: Shop) -> tuple[int, str]:
    rows = shop.catalog.select(constraints_of(kind, {}))
    row = int(rows[shop.catalog.stock[rows] > 3][0])
    return row, shop.catalog.ids[row]


def test_a_fault_names_the_product_what_it_is_and_what_was_wanted(big_shop: Shop) -> None:
    catalog = big_shop.catalog
    world = Episode(make_task("PD", 0, 0, big_shop), big_shop).world
    row, product = first_of("Docking Station", big_shop)
    name = f"Docking Station {product}"
    assert faults(product, (), world) == [f"{name} was shown by no tool"]
    world.show(row)
    stars, cents, days = (
        catalog.rating_tenths.item(row),
        catalog.price_cents.item(row),
        catalog.days.item(row),
    )
    brand = catalog.brands[catalog.brand_code.item(row)]
    other = next(b for b in catalog.brands if b != brand)
    (attribute, value), *_ = catalog.attributes(row).items()
    wanted = (
        Constraint("type", "==", "Docking Station"),
        Constraint("rating", ">=", stars + 1),
        Constraint("price", "<=", cents - 100),
        Constraint("days", "<=", days),
        Constraint("brand", "==", other),
        Constraint(f"attr:{attribute}", "==", value),
    )
    found = faults(product, wanted, world)
    assert found[0] == f"{name} has {stars / 10} stars, wanted {(stars + 1) / 10}"
    assert found[1].startswith(f"{name} costs $") and "wanted at most $" in found[1]
    assert found[2:] == [f"{name} is by {brand}, wanted {other}"]
    assert faults("P000000", wanted, world) == ["there is no product P000000"]
    world.gone.add(row)
    assert faults(product, wanted[:1], world) == [f"{name} is sold out"]
    assert faults(product, wanted[:1], world, had=True) == []


def test_a_reason_names_a_few_faults_and_counts_the_rest() -> None:
    many = [str(number) for number in range(MOST_TOLD + 2)]
    assert told(many) == "; ".join(many[:MOST_TOLD]) + "; 2 more"
    assert told(many[:1]) == "0" and told([]) == ""


def test_a_list_says_which_part_does_not_fit(big_shop: Shop) -> None:
    episode = Episode(make_task("BUNDLE", 0, 1, big_shop), big_shop)
    kinds = [kind for kind, _ in parts_of(episode.goal.slots)]
    other = next(k.name for k in big_shop.catalog.types if k.name not in kinds)
    row, stranger = first_of(other, big_shop)
    episode.world.show(row)
    episode.act(calls(("submit", {"product_ids": [stranger]})))
    why = episode.score().why
    assert why.startswith(f"0 of {len(kinds)} things on the list: {other} {stranger} is not wanted; no ")
    assert f"no {kinds[0]}" in why


@pytest.mark.parametrize("seed", range(4))
def test_a_question_says_which_clause_decides(seed: int, big_shop: Shop) -> None:
    task = make_task("POLICY", 4, seed, big_shop, {"p_switch": 0})
    book, facts = task.world["policies"], task.goal.of()
    section = section_on(book, facts, big_shop.catalog)
    right = deciding(section, book, facts)["id"]
    wrong = next(c["id"] for s in book["sections"] if s["rule"] != section["rule"] for c in s["clauses"])
    for clause, handed in ((wrong, f"clause {wrong}"), (None, "no clause")):
        episode = Episode(task, big_shop)
        while not episode.done:  # the customer may change the case first
            episode.act(calls(("submit", {"answer": "blue", "clause": clause})))
        assert episode.score().why.startswith(f"{handed} submitted, {right} decides; blue answered")


def test_a_cart_says_what_is_in_it_and_what_is_not(big_shop: Shop) -> None:
    task = make_task("CART", 0, 0, big_shop)
    kind = task.goal.of(0)["type"]
    other = next(k.name for k in big_shop.catalog.types if k.name != kind)
    _, stranger = first_of(other, big_shop)
    episode = Episode(task, big_shop)
    episode.act(calls(("cart_add", {"product_id": stranger}), ("submit", {})))
    assert episode.score().why.startswith(
        f"0 of 1 wanted units are in the cart: {other} {stranger} is not wanted; no {kind}; "
    )
