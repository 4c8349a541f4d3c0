"""Verifiers say what is wrong with an answer, product by product."""

import pytest

from ecomlab import Episode, Shop, make_task
from ecomlab.laws.tool_introspection import calls
from ecomlab.world.policy_book.book import deciding
from ecomlab.world.policy_book.cases import section_on


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
