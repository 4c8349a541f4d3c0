"""Cases that customers bring to the policy book: the facts they tell, and follow-ups that change a case."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from ecomlab.answers.amounts import read_amount, read_answer
from ecomlab.answers.dates import read_day, says_none
from ecomlab.catalog import Catalog
from ecomlab.seeding import pick, shuffled
from ecomlab.task import TaskKey
from ecomlab.world.policy_book.book import (
    Atom,
    Book,
    Clause,
    Section,
    deciding,
    relevant,
    section_of,
    ways,
    with_referred,
)
from ecomlab.world.policy_book.rules import (
    FACTS,
    RULES,
    UNITS,
    WINDOW,
    WORKED_OUT,
    Amount,
    Named,
    Rule,
    is_odd,
    may_be_mistaken,
    rule_of,
)

TRIES = 80
"""Cases that are tried for a clause: the first half with the customer's membership."""
FEW_FACTS = 6
"""Facts that a customer tells in nearly all cases at most."""


def section_on(book: Book, facts: Mapping[str, Any], catalog: Catalog) -> Section:
    """Find the section that rules on the question asked. Raises LookupError if the book has none."""
    department, rule = "", rule_of(facts["question"])
    if rule == WINDOW:
        department = catalog.types[catalog.type_codes[facts["type"]]].department
    found = section_of(book, rule, department)
    if found is None:
        raise LookupError(f"the book has no section on {rule}")
    return found


def answer_of(question: str, then: Any, facts: Mapping[str, Any], today: date) -> Any:
    """Work out the answer to a question from the outcome of the clause that decides: the outcome itself, a share of the
    total in cents (of tenths of a percent), or the day that lies so many days after the delivery."""
    worked = RULES[rule_of(question)].worked if question.endswith(WORKED_OUT) else None
    if worked is None:
        return then
    if worked.of == "total":
        return facts["total"] * then // 1000
    return None if then == 0 else today - timedelta(days=facts["age"]) + timedelta(days=then)


def write_answer(question: str, answer: Any) -> str:
    """Write an answer as a person would."""
    rule = RULES[rule_of(question)]
    worked = rule.worked if question.endswith(WORKED_OUT) else None
    if worked is None:
        return rule.kind.write(answer)
    if answer is None:
        return "never"
    return answer.isoformat() if worked.unit == "day" else UNITS["cents"].write(answer)


def read_as(question: str, said: Any, today: date) -> Any:
    """Read an answer to a question: a number of its unit, "yes" or "no", a name, or a day. None for anything else, and
    for "never" where it is a day."""
    rule = RULES[rule_of(question)]
    if not question.endswith(WORKED_OUT) or rule.worked is None:
        return read_answer(said, rule.unit, rule.values)
    if rule.worked.unit == "cents":
        return read_amount(said, "cents")
    return read_day(said, today) or (None if says_none(said) else said)


def draw_question(
    book: Book,
    rules: int,
    worked: bool,
    tells: int,
    further: Callable[[Rule], Collection[str]],
    member: str,
    random: np.random.Generator,
) -> tuple[Section, str]:
    """Draw the section that the customer asks about, and the question: each rule equally often, though windows have
    several sections. As far as the book goes, it has an answer to work out where `worked`, as many `further` questions
    about it as `tells`, and a case of such a `member` to which as many exceptions lead as `rules`."""
    able = [section for section in book["sections"] if not section["group"]]
    able = [section for section in able if RULES[section["rule"]].worked or not worked]
    for count, most in (
        (lambda s: len(further(RULES[s["rule"]])), tells),
        (lambda s: max(map(_depth, ways_of(s, book, member))), rules),
    ):
        counts = [count(section) for section in able]
        able = [s for s, found in zip(able, counts, strict=True) if found >= min(most, max(counts))]
    name = pick(random, list(dict.fromkeys(section["rule"] for section in able)))
    section = pick(random, [section for section in able if section["rule"] == name])
    return section, name + WORKED_OUT if worked and RULES[name].worked else name


def draw_mentioned(
    section: Section, worked: bool, book: Book, random: np.random.Generator, other: str = ""
) -> list[str]:
    """Draw the order of the facts that a customer tells: all that matter, the product first; with `worked` that from
    which an answer is worked out, and those that matter to the `other` rule, if any."""
    rule, matter = RULES[section["rule"]], relevant(section, book)
    also = section_of(book, other) if other else None
    matter = list(dict.fromkeys([*matter, *(relevant(also, book) if also else ())]))
    if worked and rule.worked:
        matter = list(dict.fromkeys([*matter, rule.worked.of]))
    told = shuffled(random, [fact for fact in matter if fact != "type"])
    return ["type", *told] if "type" in matter or section["department"] else told


def member_of(key: TaskKey) -> str:
    """Draw the membership of a task's customer, the same in all jobs of a journey."""
    about = FACTS["tier"]
    assert isinstance(about, Named)
    return pick(key.rng("membership"), list(about.words))


def draw_facts(
    section: Section,
    question: str,
    book: Book,
    steps: int,
    catalog: Catalog,
    random: np.random.Generator,
    names: Sequence[str],
    member: str,
) -> dict[str, Any]:
    """Draw a case, of a customer with this membership where it can be: first the clause that is to decide, then facts
    that make it decide. Where the task holds `steps` of the kind "rules", as many exceptions lead to it, as far as they
    can. Otherwise all clauses decide equally often.

    Numbers lie near the limits; where no case is found for the clause, another one decides.
    """
    able = ways_of(section, book, member)
    if question.endswith(WORKED_OUT):  # no days from the delivery on make no day
        able = [way for way in able if way[-1]["then"] != 0] or able
    if steps:
        able = [way for way in able if _depth(way)] or able
        nearest = min(abs(_depth(way) - steps) for way in able)
        able = [way for way in able if abs(_depth(way) - steps) == nearest]
    wanted, facts = pick(random, able), dict[str, Any]()
    for attempt in range(TRIES):
        facts = {name: _draw_value(name, section, book, catalog, random) for name in names}
        for atom in (atom for clause in wanted for atom in clause["if"]):
            facts[atom[0]] = _fulfil(atom, random)
        facts |= {"tier": member} if "tier" in facts and attempt < TRIES // 2 else {}
        if deciding(section, book, facts) is wanted[-1] and not is_odd(facts):
            break
    return facts


def ways_of(section: Section, book: Book, member: str) -> list[list[Clause]]:
    """List the ways through the book that are those of customers with this membership."""

    def may_hold(clause: Clause) -> bool:
        return all(member in value for name, _, value in clause["if"] if name == "tier")

    return [way for way in ways(section, book) if all(map(may_hold, way))]


def _depth(way: Sequence[Clause]) -> int:
    """Count the exceptions of a way."""
    return sum(bool(clause["if"]) for clause in way)


def _draw_value(
    name: str, section: Section, book: Book, catalog: Catalog, random: np.random.Generator
) -> Any:
    limits = _limits(name, section, book)
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


def _limits(name: str, section: Section, book: Book) -> list[Any]:
    """List what the conditions of the section, and of those to which it refers, compare this fact with."""
    clauses = [clause for one in with_referred(section, book) for clause in one["clauses"]]
    return [atom[2] for clause in clauses for atom in clause["if"] if atom[0] == name]


def _fulfil(atom: Atom, random: np.random.Generator) -> Any:
    """Draw a value that a condition holds for; of a number, often one that only just does."""
    name, op, value = atom
    if op == "in":
        return pick(random, value)
    about = FACTS[name]
    assert isinstance(about, Amount)
    further = int(random.integers(4)) * about.limits.step
    return value + further if op == ">=" else max(2 * about.finest, value - about.finest - further)


def draw_twist(
    question: str,
    facts: Mapping[str, Any],
    book: Book,
    catalog: Catalog,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Draw a fact that the customer tells otherwise later, so that another clause decides; none where none is found."""
    section = section_on(book, {**facts, "question": question}, catalog)
    before = deciding(section, book, facts)
    matter = [fact for fact in relevant(section, book) if fact != "type"]
    for _ in range(60 if matter else 0):
        fact = pick(random, matter)
        value = _draw_value(fact, section, book, catalog, random)
        changed = {**facts, fact: value}
        told = fact in facts and may_be_mistaken(fact, facts[fact], value)
        if told and deciding(section, book, changed) is not before and not is_odd(changed):
            return {fact: value}
    return {}


def draw_other_case(
    question: str,
    facts: Mapping[str, Any],
    but: Collection[str],
    book: Book,
    catalog: Catalog,
    random: np.random.Generator,
) -> str:
    """Draw a fact with another value, as "tier Gold", with which the answer would be another one; "" where none is
    found. It is none of the facts `but`, nor a number or a product; and no answer is nothing, which has many words."""
    section = section_on(book, {**facts, "question": question}, catalog)
    before = deciding(section, book, facts)["then"]
    named = [
        fact for fact in relevant(section, book) if fact not in but and isinstance(FACTS.get(fact), Named)
    ]
    others = [(fact, v) for fact in named for v in other_values(fact, facts[fact], section, book)]
    for fact, value in shuffled(random, others):
        changed = {**facts, fact: value}
        if deciding(section, book, changed)["then"] not in (0, before) and not is_odd(changed):
            return f"{fact} {value}"
    return ""


def other_values(name: str, value: Any, section: Section, book: Book) -> list[Any]:
    """List other values of a fact: for a number, those on either side of each limit and the next higher one."""
    about = FACTS[name]
    if not isinstance(about, Amount):
        return [other for other in about.words if other != value]
    limits, least = (*_limits(name, section, book), value + about.finest), 2 * about.finest
    return [o for limit in limits for o in (limit, max(least, limit - about.finest)) if o != value]
