"""Cases that customers bring to the policy book: the facts they tell, and how a case may turn into another."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.world.policy_book.book import Book, Section, decide, relevant, section_of
from ecomlab.world.policy_book.rules import FACTS, RULES, WINDOW, Amount

LEAST_FACTS = 3
"""Facts that a customer mentions at least, whether they matter or not."""


def section_on(book: Book, facts: Mapping[str, Any], catalog: Catalog) -> Section:
    """The section that rules on the question asked."""
    department = ""
    if facts["question"] == WINDOW:
        department = catalog.types[catalog.type_codes[facts["type"]]].department
    found = section_of(book, facts["question"], department)
    if found is None:
        raise LookupError(f"the book has no section on {facts['question']}")
    return found


def draw_question(book: Book, random: np.random.Generator) -> Section:
    """The section that the customer asks about: each rule as often as another, of return windows there are several."""
    rules = list(dict.fromkeys(section["rule"] for section in book["sections"]))
    name = rules[int(random.integers(len(rules)))]
    some = [section for section in book["sections"] if section["rule"] == name]
    return some[int(random.integers(len(some)))]


def draw_mentioned(section: Section, random: np.random.Generator) -> list[str]:
    """The facts a customer tells: all that matter, the product where the rule may ask for it, and some that do not."""
    rule, matter = RULES[section["rule"]], relevant(section)
    others = [name for name in rule.facts if name not in (*matter, "type")]
    order = [others[i] for i in random.permutation(len(others)).tolist()]
    spare = max(LEAST_FACTS - len([name for name in matter if name != "type"]), int(random.integers(2)))
    told = [*(name for name in matter if name != "type"), *order[:spare]]
    told = [told[i] for i in random.permutation(len(told)).tolist()]
    return ["type", *told] if "type" in rule.facts else told


def draw_facts(
    section: Section,
    precedence: str,
    catalog: Catalog,
    random: np.random.Generator,
    names: Sequence[str],
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A case in which a clause decides that is drawn first, so that none decides more often than another; values lie
    near the limits. What is `known` stays; where no such case turns up, another clause decides."""
    wanted = int(random.integers(len(section["clauses"])))
    facts: dict[str, Any] = {}
    for _ in range(40):
        facts = {name: _draw_value(name, section, catalog, random) for name in names}
        for atom in section["clauses"][wanted]["if"]:
            facts[atom[0]] = _fulfil(atom, random)
        facts |= known or {}
        if decide(section, precedence, facts) == wanted:
            break
    return facts


def _draw_value(name: str, section: Section, catalog: Catalog, random: np.random.Generator) -> Any:
    limits = [atom[2] for clause in section["clauses"] for atom in clause["if"] if atom[0] == name]
    if name == "type":
        if section["department"]:
            kinds = [kind.name for kind in catalog.types if kind.department == section["department"]]
        elif limits and random.random() < 0.5:
            kinds = [kind for some in limits for kind in some]
        else:
            kinds = [kind.name for kind in catalog.types]
        return kinds[int(random.integers(len(kinds)))]
    about = FACTS[name]
    if isinstance(about, Amount):
        limits = limits or [about.limits[int(random.integers(len(about.limits)))]]
        return _fulfil(
            [name, (">=", "<")[int(random.integers(2))], limits[int(random.integers(len(limits)))]], random
        )
    values = list(about.words)
    return values[int(random.integers(len(values)))]


def _fulfil(atom: Sequence[Any], random: np.random.Generator) -> Any:
    """A value that a condition holds for; of a number, often one that only just does."""
    name, op, value = atom
    if op == "in":
        return value[int(random.integers(len(value)))]
    about = FACTS[name]
    further = int(random.integers(4)) * about.limits.step if isinstance(about, Amount) else 0
    return value + further if op == ">=" else max(2, value - 1 - further)


def draw_twist(
    name: str,
    facts: Mapping[str, Any],
    book: Book,
    catalog: Catalog,
    random: np.random.Generator,
) -> dict[str, Any]:
    """The slots of a follow-up: one fact is another so that another clause decides, or the question is another one,
    with the facts that it needs and the customer has not thought of."""
    section = section_on(book, {**facts, "question": name}, catalog)
    before = decide(section, book["precedence"], facts)
    matter = [fact for fact in relevant(section) if fact != "type"]
    for _ in range(20 if matter and random.random() < 0.7 else 0):
        fact = matter[int(random.integers(len(matter)))]
        value = _draw_value(fact, section, catalog, random)
        if decide(section, book["precedence"], {**facts, fact: value}) != before:
            return {fact: value}
    rules = [
        rule
        for rule in dict.fromkeys(s["rule"] for s in book["sections"])
        if rule != name and ("type" in facts or "type" not in RULES[rule].facts)
    ]
    other = rules[int(random.integers(len(rules)))]
    section = section_on(book, {**facts, "question": other}, catalog)
    drawn = draw_facts(section, book["precedence"], catalog, random, relevant(section), facts)
    return {"question": other, **{fact: value for fact, value in drawn.items() if fact not in facts}}


def other_values(name: str, value: Any, section: Section) -> list[Any]:
    """Other values that a fact might have."""
    about = FACTS[name]
    if not isinstance(about, Amount):
        return [other for other in about.words if other != value]
    limits = [atom[2] for clause in section["clauses"] for atom in clause["if"] if atom[0] == name]
    return [other for limit in (*limits, value + 1) for other in (limit, max(2, limit - 1)) if other != value]
