"""The policy book of one task: drawn from public randomness, and deciding the cases that are brought to it.

A section holds the clauses of one rule in the order listed; a clause is an outcome under conditions on the customer's
facts. The verifier decides on this structure; a player reads the text that `wording` makes of it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.task import frozen
from ecomlab.world.policy_book.rules import FACTS, PRECEDENCE, RULES, WINDOW, Named
from ecomlab.world.policy_book.terms import draw_terms

Atom = Sequence[Any]
"""One condition as JSON: [fact, "in", [values]], or [fact, ">=" or "<", limit]."""
Clause = Mapping[str, Any]
"""{"id", "if": conditions that must all hold, "then": value, "form": number of its wording}."""
Section = Mapping[str, Any]
"""{"rule", "department" (of a return window, else ""), "clauses" in the order listed}."""
Book = Mapping[str, Any]
"""{"precedence": "first" or "last" of the clauses that apply decides, "form": number of its wording, "sections"}."""

FEWEST = 28
"""Rules in a book, plus four for each clause per rule: too many for a constant query to find the right one."""
FORMS = 24
"""Numbers of a clause's wording: a multiple of 2 outcomes times 3 or 4 sentences, so that each is equally likely."""
LETTERS = "ABCDEFGHJKLMNPRSTVWX"
"""First letters of clause ids, none of which is easily taken for another letter or a digit."""


@lru_cache(maxsize=16)  # the subtasks of a journey share one book
def draw_book(key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Book:
    """Draw the policy book of the task that `key` names, independently of what the customer asks.

    Each rule has `axes.branches` clauses, and more branches mean more rules. The return windows are the terms that the
    store's systems apply.
    """
    random, catalog = rng("policies", *key), shop.catalog
    precedence = pick(random, ("first", "last"))
    chosen = shuffled(random, (name for name in RULES if name != WINDOW))[: FEWEST + 4 * axes.branches]
    sections = [_draw_section(name, axes.branches, precedence, catalog, random) for name in chosen]
    for department, days in draw_terms(key, catalog).return_days.items():
        clause = {"if": [], "then": days, "form": int(random.integers(FORMS))}
        sections.append({"rule": WINDOW, "department": department, "clauses": [clause]})
    clauses = [clause for section in sections for clause in section["clauses"]]
    numbers = shuffled(random, range(len(LETTERS) * max(90, len(clauses))))
    for clause, number in zip(clauses, numbers, strict=False):
        clause["id"] = f"{LETTERS[number % len(LETTERS)]}-{10 + number // len(LETTERS)}"
    sections = shuffled(random, sections)
    form = int(random.integers(len(PRECEDENCE[precedence])))
    book: Book = frozen({"precedence": precedence, "form": form, "sections": sections})
    return book


def _draw_section(
    name: str, branches: int, precedence: str, catalog: Catalog, random: np.random.Generator
) -> dict[str, Any]:
    """Draw a general clause and exceptions to it; the more there are, the more of them have two conditions or three."""
    rule, more = RULES[name], min(0.7, 0.15 * (branches - 1))
    clauses: list[dict[str, Any]] = []
    used: list[list[Any]] = [[]]
    for number in range(branches):
        atoms: list[list[Any]] = []
        for _ in range(20 if number else 0):  # until no other clause has these conditions
            count = 1 + int((random.random(2) < more).sum())
            atoms = [_draw_atom(fact, catalog, random) for fact in shuffled(random, rule.facts)[:count]]
            if atoms not in used:
                break
        used.append(atoms)
        clauses.append({"if": atoms, "form": int(random.integers(FORMS))})
    numbers = shuffled(random, range(len(rule.values)))
    if rule.unit == "yes":  # both answers equally often, to within one
        numbers = shuffled(random, ((numbers[0] + i) % 2 for i in range(branches)))
    for i, clause in enumerate(clauses):
        clause["then"] = rule.values[numbers[i % len(numbers)]]
    if precedence == "first":
        clauses.reverse()
    return {"rule": name, "department": "", "clauses": clauses}


def _draw_atom(fact: str, catalog: Catalog, random: np.random.Generator) -> list[Any]:
    if fact == "type":
        return [fact, "in", _draw_some([kind.name for kind in catalog.drawable_types], 3, random)]
    about = FACTS[fact]
    if isinstance(about, Named):
        return [fact, "in", _draw_some(list(about.words), max(1, len(about.words) // 3), random)]
    limit = pick(random, about.limits)
    return [fact, pick(random, (">=", "<")), limit]


def _draw_some(names: Sequence[str], most: int, random: np.random.Generator) -> list[str]:
    """Draw one to `most` of these names."""
    count = 1 + int(random.integers(most))
    return [names[i] for i in dict.fromkeys(random.integers(len(names), size=count).tolist())]


def holds(atom: Atom, facts: Mapping[str, Any]) -> bool:
    """Tell whether a condition is known to hold."""
    fact, op, value = atom
    if fact not in facts:
        return False
    return facts[fact] in value if op == "in" else (facts[fact] >= value) == (op == ">=")


def decisive(applies: Sequence[bool], precedence: str) -> int | None:
    """Find the clause that decides: the first or the last of those that apply, by number; None where none does."""
    found = [number for number, does in enumerate(applies) if does]
    return (found[0] if precedence == "first" else found[-1]) if found else None


def decide(section: Section, precedence: str, facts: Mapping[str, Any]) -> int:
    """Find the clause that decides a case, by number; its facts are all known. Raises ValueError if none applies."""
    applies = [all(holds(atom, facts) for atom in clause["if"]) for clause in section["clauses"]]
    number = decisive(applies, precedence)
    if number is None:
        raise ValueError("a section without a general clause")
    return number


def section_of(book: Book, rule: str, department: str = "") -> Section | None:
    """Find the section on a rule; `department` counts for return windows alone. None if the book has none."""
    where = department if rule == WINDOW else ""
    return next((s for s in book["sections"] if s["rule"] == rule and s["department"] == where), None)


def relevant(section: Section) -> list[str]:
    """List the facts that a section's conditions are about."""
    return list(dict.fromkeys(atom[0] for clause in section["clauses"] for atom in clause["if"]))
