"""Cases that customers bring to the policy book: the facts they tell, and follow-ups that change a case."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog
from ecomlab.seeding import pick, shuffled
from ecomlab.world.policy_book.book import Atom, Book, Section, decide, relevant, section_of
from ecomlab.world.policy_book.rules import FACTS, RULES, WINDOW, Amount

LEAST_FACTS = 3
"""Facts that a customer mentions at least, whether they matter or not."""


def section_on(book: Book, facts: Mapping[str, Any], catalog: Catalog) -> Section:
    """Find the section that rules on the question asked. Raises LookupError if the book has none."""
    department = ""
    if facts["question"] == WINDOW:
        department = catalog.types[catalog.type_codes[facts["type"]]].department
    found = section_of(book, facts["question"], department)
    if found is None:
        raise LookupError(f"the book has no section on {facts['question']}")
    return found


def draw_question(book: Book, random: np.random.Generator) -> Section:
    """Draw the section that the customer asks about: each rule equally often, though windows have several sections."""
    name = pick(random, list(dict.fromkeys(section["rule"] for section in book["sections"])))
    return pick(random, [section for section in book["sections"] if section["rule"] == name])


def draw_mentioned(section: Section, random: np.random.Generator) -> list[str]:
    """Draw the facts that a customer tells: all that matter, the product if the rule may ask for it, some others."""
    rule, matter = RULES[section["rule"]], [fact for fact in relevant(section) if fact != "type"]
    others = shuffled(random, (fact for fact in rule.facts if fact not in (*matter, "type")))
    spare = max(LEAST_FACTS - len(matter), int(random.integers(2)))
    told = shuffled(random, [*matter, *others[:spare]])
    return ["type", *told] if "type" in rule.facts else told


def draw_facts(
    section: Section,
    precedence: str,
    catalog: Catalog,
    random: np.random.Generator,
    names: Sequence[str],
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Draw a case: first the clause that is to decide, so that all do equally often, then facts that make it decide.

    Numbers lie near the limits. `known` facts stay; where no case is found for the clause, another one decides.
    """
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
    limits = _limits(name, section)
    if name == "type":
        if section["department"]:
            kinds = [kind.name for kind in catalog.drawable_types if kind.department == section["department"]]
        elif limits and random.random() < 0.5:
            kinds = [kind for some in limits for kind in some]
        else:
            kinds = [kind.name for kind in catalog.drawable_types]
        return pick(random, kinds)
    about = FACTS[name]
    if isinstance(about, Amount):
        limits = limits or [pick(random, about.limits)]
        op = pick(random, (">=", "<"))
        return _fulfil([name, op, pick(random, limits)], random)
    return pick(random, list(about.words))


def _limits(name: str, section: Section) -> list[Any]:
    """List what the section's conditions compare this fact with."""
    return [atom[2] for clause in section["clauses"] for atom in clause["if"] if atom[0] == name]


def _fulfil(atom: Atom, random: np.random.Generator) -> Any:
    """Draw a value that a condition holds for; of a number, often one that only just does."""
    name, op, value = atom
    if op == "in":
        return pick(random, value)
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
    """Draw the slots of a follow-up to the question `name`.

    Either one fact changes so that another clause decides, or the question changes, and with it come the facts that it
    needs and the customer has not told.
    """
    section = section_on(book, {**facts, "question": name}, catalog)
    before = decide(section, book["precedence"], facts)
    matter = [fact for fact in relevant(section) if fact != "type"]
    for _ in range(20 if matter and random.random() < 0.7 else 0):
        fact = pick(random, matter)
        value = _draw_value(fact, section, catalog, random)
        if decide(section, book["precedence"], {**facts, fact: value}) != before:
            return {fact: value}
    rules = [
        rule
        for rule in dict.fromkeys(s["rule"] for s in book["sections"])
        if rule != name and ("type" in facts or "type" not in RULES[rule].facts)
    ]
    other = pick(random, rules)
    section = section_on(book, {**facts, "question": other}, catalog)
    drawn = draw_facts(section, book["precedence"], catalog, random, relevant(section), facts)
    return {"question": other, **{fact: value for fact, value in drawn.items() if fact not in facts}}


def other_values(name: str, value: Any, section: Section) -> list[Any]:
    """List other values of a fact: for a number, those on either side of each limit and the next higher one."""
    about = FACTS[name]
    if not isinstance(about, Amount):
        return [other for other in about.words if other != value]
    limits = (*_limits(name, section), value + 1)
    return [other for limit in limits for other in (limit, max(2, limit - 1)) if other != value]
