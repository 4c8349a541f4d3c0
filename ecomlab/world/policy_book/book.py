"""The policy book of one task: drawn from public randomness, and deciding the cases that are brought to it.

A section holds the clauses of one rule in the order listed; a clause is an outcome under conditions on the customer's
facts, or leaves its cases to a section of their own. The verifier decides on this structure; a player reads the text
that `wording` makes of it. Conditions that a shop rewards only ever improve an outcome, the others only worsen it.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

from ecomlab.catalog import Catalog, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import Draws, rng
from ecomlab.steps import may_hold
from ecomlab.task import frozen
from ecomlab.world.policy_book.places import draw_places
from ecomlab.world.policy_book.rules import (
    AGREEMENT,
    FACTS,
    FORM,
    LABEL,
    OF_RETURNS,
    PRECEDENCE,
    REFERRED,
    RESTOCKING,
    RULES,
    WINDOW,
    Lean,
    Named,
    Rule,
    is_odd,
)
from ecomlab.world.policy_book.terms import RETURN_DAYS, draw_terms

Atom = Sequence[Any]
"""One condition as JSON: [fact, "in", [values]], or [fact, ">=" or "<", limit]."""
Clause = Mapping[str, Any]
"""{"id", "if": conditions that must all hold, "then": value, "form": number of its wording}; in place of "then" there
may be "see": the group of the section that decides."""
Section = Mapping[str, Any]
"""{"rule", "department" (of a return window, else ""), "group": the cases that it is about ("" for all; "opened goods,
members" for some of the opened goods), "clauses" in the order listed}."""
Book = Mapping[str, Any]
"""{"precedence": "first" or "last" of the clauses that apply decides, "form": number of its wording, "sections",
"places": where facts can be looked up, by their names; none where no task holds such a step}."""

FEWEST = 28
"""Rules in a book, plus four for each clause per rule: too many for a constant query to find the right one."""
FEES = ((RESTOCKING, LABEL), (RESTOCKING,), (LABEL,))
"""Fees of a return that a book may have."""
P_AGREED = 0.8
"""Share of the books that say whether customers must agree to a refund before a return is started; half say yes."""
P_FREE = 0.65
"""Share of the fees of a return that are charged in exceptions only."""
STEPS_APART = 4
"""Most steps between a return window and an exception to it."""
FORMS = 24
"""Numbers of a clause's wording: a multiple of 2 outcomes times 3 or 4 sentences, so that each is equally likely."""
LETTERS = "ABCDEFGHJKLMNPRSTVWX"
"""First letters of clause ids, none of which is easily taken for another letter or a digit."""


@lru_cache(maxsize=16)  # the subtasks of a journey share one book
def draw_book(key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Book:
    """Draw the policy book of the task that `key` names, independently of what the customer asks.

    Each rule has `axes.branches` clauses, and more branches mean more rules. The general clauses on return windows are
    the terms that the store's systems show.
    """
    random, catalog = Draws(rng("policies", *key)), shop.catalog
    precedence, strict = random.pick(("first", "last")), may_hold(axes, "rules")
    fees = random.pick(FEES) if strict else ()
    agreed = (AGREEMENT, FORM) if strict and random.random() < P_AGREED else ()
    others = random.some(name for name in RULES if name not in (*OF_RETURNS, AGREEMENT, *agreed))
    chosen = [*fees, *agreed, *others[: FEWEST + 4 * axes.branches]]
    size = axes.steps.rules_size if strict else 1 + min(1.4, 0.3 * (axes.branches - 1))
    draw = _Drawing(axes.branches, size, levels(axes), catalog, random)
    sections = [section for name in chosen for section in draw.sections(name)]
    for department, days in draw_terms(key, catalog).return_days.items():
        sections += draw.sections(WINDOW, department, days)
    for section in sections:
        if precedence == "first":
            section["clauses"].reverse()
    clauses = [clause for section in sections for clause in section["clauses"]]
    numbers = random.some(range(len(LETTERS) * max(90, len(clauses))), len(clauses))
    for clause, number in zip(clauses, numbers, strict=True):
        clause["id"] = f"{LETTERS[number % len(LETTERS)]}-{10 + number // len(LETTERS)}"
    sections = random.some(sections)
    form = random.below(len(PRECEDENCE[precedence]))
    places = draw_places(random) if may_hold(axes, "looking") else {}
    book: Book = frozen({"precedence": precedence, "form": form, "sections": sections, "places": places})
    return book


def levels(axes: Difficulty) -> int:
    """Count the sections, each of which leaves a case to the next, that there are at most beside the first one."""
    return 1 + math.floor(axes.steps.rules_size) if may_hold(axes, "rules") and axes.branches > 1 else 0


class _Drawing:
    """Draws sections of `branches` clauses, each clause overriding those before it, with `size` conditions in the mean;
    some leave a case to a section of its own, and so on down so many `levels`."""

    def __init__(self, branches: int, size: float, levels: int, catalog: Catalog, random: Draws) -> None:
        self.branches, self.levels, self.random = branches, levels, random
        self.most = max(2, math.ceil(1.5 * (size - 1)))
        """Conditions of a clause beyond the first one, at most."""
        self.more, self.deeper = (size - 1) / self.most, 1 - 1 / size
        """Chance of each of these, and of a section of its own for an exception."""
        self.departments: dict[str, list[str]] = {}
        for kind in catalog.drawable_types:
            self.departments.setdefault(kind.department, []).append(kind.name)

    def sections(self, name: str, department: str = "", days: int | None = None) -> list[dict[str, Any]]:
        """Draw the section of a rule, and those to which it leads, anew where members are worse off. Of a window the
        general clause says `days`."""
        while _is_worse_for_members(found := self._sections(name, department, days)):
            pass
        for section in found:
            section["clauses"] = [{n: v for n, v in c.items() if n != "lean"} for c in section["clauses"]]
        return found

    def _sections(self, name: str, department: str, days: int | None) -> list[dict[str, Any]]:
        rule = RULES[name]
        exceptions = self.branches - 1 if name != WINDOW or self.levels else 0
        general, outcomes = self._outcomes(rule, exceptions, days)
        clauses = [self._clause([], general)]
        for lean, value in outcomes:
            self._except(rule, lean, value, department, clauses)
        found: list[dict[str, Any]] = [
            {"rule": name, "department": department, "group": "", "clauses": clauses}
        ]
        return found + self._referred(rule, found[0], [])

    def _except(
        self,
        rule: Rule,
        lean: Lean,
        value: Any,
        department: str,
        clauses: list[dict[str, Any]],
        where: Sequence[list[Any]] = (),
    ) -> None:
        """Add an exception to clauses; often it is one in fewer cases of the last exception of its lean or, where that
        would say the same again, of the other lean. What says the same as the general clause always is."""
        other = _OTHER[lean] if rule.unit == "yes" else lean
        last: list[list[Any]] = next((c["if"] for c in reversed(clauses) if c.get("lean") == other), [])
        again = value == clauses[0].get("then")
        start = last if again or (len(last) <= self.levels and self.random.random() < self.deeper) else []
        if again and not start:
            return
        before = [clause["if"] for clause in clauses]
        atoms = self._conditions(rule, lean, department, before, where, start)
        if atoms:
            clauses.append(self._clause(atoms, value) | {"lean": lean})

    def _clause(self, atoms: list[list[Any]], value: Any) -> dict[str, Any]:
        return {"if": atoms, "then": value, "form": self.random.below(FORMS)}

    def _outcomes(self, rule: Rule, exceptions: int, days: int | None) -> tuple[Any, list[tuple[Lean, Any]]]:
        """Draw the general outcome, and lean and outcome of each exception: the later, the further from it."""
        random = self.random
        values = list(rule.values) if days is None else list(RETURN_DAYS)
        if rule.unit == "yes":  # both answers equally often, to within one
            general = random.pick(values)
            other = next(value for value in values if value != general)
            turns = [other if number % 2 == 0 else general for number in range(exceptions)]
            return general, [("good" if value == rule.better else "bad", value) for value in turns]
        if not rule.better:
            general, *drawn = [values[n % len(values)] for n in _some(len(values), exceptions + 1, random)]
            return general, [(_lean(random), value) for value in drawn]
        values.sort(reverse=rule.better == "less")
        at = values.index(days) if days is not None else None
        leans = [_lean(random) for _ in range(exceptions)]
        bad = leans.count("bad")
        if at is None and rule.zero and random.random() < P_FREE:
            at = values.index(0)
        if at is None:
            at = min(bad + random.below(max(1, len(values) - exceptions)), len(values) - 1)
        worse, better = values[:at], values[at + 1 :]
        if days is not None:  # no shop gives half a year in place of two weeks
            worse, better = worse[-STEPS_APART:], better[:STEPS_APART]
        leans = [lean if (worse if lean == "bad" else better) else _OTHER[lean] for lean in leans]
        down, up = (
            [able[n] for n in sorted(random.some(range(len(able)), leans.count(lean)))]
            for able, lean in ((worse, _BAD), (better, _GOOD))
        )
        if days is None and rule.zero and up:  # in the end there is no fee
            up[-1] = better[-1]
        taken = {_BAD: down[::-1], _GOOD: up}
        return values[at], [(lean, taken[lean].pop(0)) for lean in leans if taken[lean]]

    def _conditions(
        self,
        rule: Rule,
        lean: Lean,
        department: str,
        before: Sequence[list[list[Any]]],
        where: Sequence[list[Any]],
        start: Sequence[list[Any]],
    ) -> list[list[Any]]:
        """Draw conditions that leave each clause `before` some cases of its own, among the cases for which those of
        `where` hold, and go on from those of `start`; none where that fails."""
        known = {atom[0] for atom in (*where, *start)}
        facts = [fact for fact in rule.facts if fact not in known and lean in _LEANS[fact]]
        random = self.random
        for _ in range(20):
            number = 1 if start else 1 + sum(random.random() < self.more for _ in range(self.most))
            drawn = [self._atom(fact, lean, department) for fact in random.some(facts, number)]
            atoms = [*start, *drawn]
            named = {fact: value for fact, op, value in (*where, *atoms) if op == "in"}
            if drawn and not is_odd(named) and _all_decide([*before, atoms], where):
                return atoms
        return []

    def _atom(self, fact: str, lean: Lean, department: str) -> list[Any]:
        random = self.random
        if fact == "type":
            names = self.departments[department or random.pick(list(self.departments))]
            return [fact, "in", random.some(names, 1 + random.below(3))]
        about = FACTS[fact]
        if isinstance(about, Named):
            return [fact, "in", list(random.pick(about.good if lean == "good" else about.bad))]
        return [fact, about.op(lean), random.pick(about.limits if lean == "good" else about.bad_limits)]

    def _referred(
        self, rule: Rule, section: dict[str, Any], where: Sequence[list[Any]]
    ) -> list[dict[str, Any]]:
        """Leave, as chance has it, the last exception of a lean to a section of its own, with exceptions that go
        further, of which one may be left to one of its own in turn; nothing where no fact gives such a section a
        name. No other clause overrides what is left to it. The section itself is about the cases for which the
        conditions `where` hold."""
        random, clauses = self.random, section["clauses"]
        if len(where) >= self.levels or len(clauses) < 2:
            return []
        if rule not in _OF_RETURNS and random.random() >= self.deeper:
            return []
        known = {"type", *(atom[0] for atom in where)}
        last = {clause["lean"]: number for number, clause in enumerate(clauses) if clause["if"]}
        for lean, number in random.some(last.items()):
            able = [f for f in rule.facts if f not in known and FACTS[f].group_names(lean)]
            for fact in random.some(able):
                about, name = FACTS[fact], random.pick(FACTS[fact].group_names(lean))
                if isinstance(about, Named):
                    atoms = [[fact, "in", [*about.groups[name]]]]
                else:
                    atoms = [self._atom(fact, lean, "")]
                    name = name.replace("{}", about.kind.write(atoms[0][2]))
                others = [clause for n, clause in enumerate(clauses) if n != number]
                if not _all_decide([*(clause["if"] for clause in others), atoms], where):
                    continue
                value, form = clauses[number]["then"], clauses[number]["form"]
                group = REFERRED.format(section["group"], name) if section["group"] else name
                clauses[:] = [*others, {"if": atoms, "see": group, "form": form, "lean": lean}]
                own, cases = [self._clause([], value)], [*where, *atoms]
                for further, then in self._further(rule, value, lean):
                    self._except(rule, further, then, section["department"], own, cases)
                inner = {**section, "group": group, "clauses": own}
                return [inner, *self._referred(rule, inner, cases)]
        return []

    def _further(self, rule: Rule, value: Any, lean: Lean) -> list[tuple[Lean, Any]]:
        """Draw exceptions to an exception: lean and outcome of each, which lies further from the general one."""
        values = list(RETURN_DAYS) if rule is RULES[WINDOW] else list(rule.values)
        if rule.unit == "yes":
            other = next(one for one in values if one != value)
            return [("good" if other == rule.better else "bad", other)]
        if not rule.better:
            others = self.random.some([one for one in values if one != value], self.branches - 1)
            return [(_lean(self.random), one) for one in others]
        more = (rule.better == "more") == (lean == "good")
        beyond = [one for one in values if (one > value) == more and one != value]
        near = beyond[:STEPS_APART] if more else beyond[-STEPS_APART:]  # room for another one
        taken = {*self.random.some(range(len(near)), self.branches - 1)}
        drawn = [one for number, one in enumerate(near) if number in taken]
        return [(lean, one) for one in (drawn if more else drawn[::-1])]


_OF_RETURNS = [RULES[name] for name in OF_RETURNS]
_GOOD: Lean = "good"
_BAD: Lean = "bad"
_LEANS: Mapping[str, Sequence[Lean]] = {
    "type": (_GOOD, _BAD),
    **{name: about.leans() for name, about in FACTS.items()},
}
"""Leans of the conditions on a fact."""
_OTHER: Mapping[Lean, Lean] = {_GOOD: _BAD, _BAD: _GOOD}


def _lean(random: Draws) -> Lean:
    return "good" if random.random() < 0.5 else "bad"


def _some(among: int, count: int, random: Draws) -> list[int]:
    """Draw numbers below `among`, each once as far as there are enough."""
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += random.some(range(among))
    return drawn[:count]


Masks = Mapping[str, int]
"""By fact, the values that a case may have: a bit for each, and of a product one more for all that are not named."""


def _all_decide(every: Sequence[Sequence[Atom]], where: Sequence[Atom]) -> bool:
    """Tell whether of clauses with these conditions, each of which overrides those before it, each decides some case
    for which those of `where` hold; of values joined by "either" each one does."""
    masks = [[_mask(atom) for atom in atoms] for atoms in every]
    around = _both({}, [_mask(atom) for atom in where])
    for number, atoms in enumerate(every):
        later = sorted(masks[number + 1 :], key=len)
        for one in product(*[_masks(atom) for atom in atoms]):
            if not _is_left(_both(around, one), later):
                return False
    return True


def _mask(atom: Atom) -> tuple[str, int]:
    """Turn a condition into the bits of the values that fulfil it."""
    fact, op, value = atom
    return fact, _bits(fact, op, value if op != "in" else tuple(value))


def _masks(atom: Atom) -> list[tuple[str, int]]:
    """Turn a condition into the bits of each of the values that it joins by "either"."""
    fact, op, value = atom
    about = FACTS.get(fact)
    if isinstance(about, Named) and set(value) not in map(set, about.together.values()):
        return [(fact, _bits(fact, op, (one,))) for one in value]
    return [_mask(atom)]


@lru_cache(maxsize=1 << 14)
def _bits(fact: str, op: str, value: Any) -> int:
    if fact == "type":
        return sum(1 << 1 + _type_number(name) for name in value)
    about = FACTS[fact]
    if isinstance(about, Named):
        return sum(1 << n for n, name in enumerate(about.words) if name in value)
    grid = sorted({*about.limits, *about.bad_limits})
    return sum(1 << n for n, number in enumerate((-1, *grid)) if (number >= value) == (op == ">="))


_TYPES: dict[str, int] = {}


def _type_number(name: str) -> int:
    return _TYPES.setdefault(name, len(_TYPES))


def _both(case: Masks, further: Sequence[tuple[str, int]]) -> Masks:
    """Narrow a case by further conditions."""
    found = dict(case)
    for fact, bits in further:
        found[fact] = found.get(fact, ~0) & bits
    return found


def _is_left(case: Masks, later: Sequence[Sequence[tuple[str, int]]]) -> bool:
    """Tell whether some value of each fact is left to a `case`, and together they do not fulfil all conditions of any
    of `later`."""
    if 0 in case.values():
        return False
    for number, conditions in enumerate(later):
        if 0 in [case.get(fact, ~0) & bits for fact, bits in conditions]:
            continue  # they never hold
        rest = later[number + 1 :]
        for fact, bits in conditions:
            left = case.get(fact, ~0) & _ALL.get(fact, ~0) & ~bits
            if left and _is_left({**case, fact: left}, rest):
                return True
        return False
    return True


_ALL: Mapping[str, int] = {
    name: (
        1 << (len(about.words) if isinstance(about, Named) else 1 + len({*about.limits, *about.bad_limits}))
    )
    - 1
    for name, about in FACTS.items()
}
"""Bits of all values of a fact."""


def _is_worse_for_members(sections: Sequence[Section]) -> bool:
    """Tell whether a rule decides some case worse for customers of a higher level than for those of a lower one; of the
    sections on it each is the one to which the one before leads, and later clauses override."""
    rule, about = RULES[sections[0]["rule"]], FACTS["tier"]
    clauses = [(dict(map(_mask, atoms)), then) for atoms, then in _flat(sections)]
    if not rule.better or not any("tier" in masks for masks, _ in clauses):
        return False
    assert isinstance(about, Named)
    by_tier: list[list[tuple[list[tuple[str, int]], Any]]] = []
    for tier in (1 << n for n in range(len(about.words))):
        able = [(masks, then) for masks, then in clauses if masks.get("tier", tier) & tier]
        by_tier.append([([i for i in masks.items() if i[0] != "tier"], then) for masks, then in able])
    for lower, higher in pairwise(by_tier):
        if lower == higher:  # nothing depends on which of the two levels it is
            continue
        for n, (if_one, one) in enumerate(lower):
            for m, (if_other, other) in enumerate(higher):
                if _is_better(one, other, rule):
                    later = _rest(lower, n) + _rest(higher, m)
                    if _is_left(_both({}, [*if_one, *if_other]), later):
                        return True
    return False


def _rest(clauses: Sequence[tuple[Any, Any]], number: int) -> list[Any]:
    return sorted((conditions for conditions, _ in clauses[number + 1 :]), key=len)


def _is_better(one: Any, other: Any, rule: Rule) -> bool:
    """Tell whether customers like one outcome better than another."""
    if rule.unit == "yes":
        return one != other and one == rule.better
    return bool(one > other if rule.better == "more" else one < other)


def _flat(sections: Sequence[Section]) -> list[tuple[list[Atom], Any]]:
    """List conditions and outcomes of all clauses that decide, those of a section in the place of what leads there."""
    found: list[tuple[list[Atom], Any]] = []
    for clause in sections[0]["clauses"]:
        inner = _flat(sections[1:]) if "see" in clause else [([], clause.get("then"))]
        found += [([*clause["if"], *atoms], then) for atoms, then in inner]
    return found


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
    numbers = range(len(section["clauses"]))
    for number in numbers if precedence == "first" else reversed(numbers):
        if all(holds(atom, facts) for atom in section["clauses"][number]["if"]):
            return number
    raise ValueError("a section without a general clause")


def section_of(book: Book, rule: str, department: str = "", group: str = "") -> Section | None:
    """Find the section on a rule, or on a group of its cases; `department` counts for return windows alone. None if the
    book has none."""
    where = (rule, department if rule == WINDOW else "", group)
    return next((s for s in book["sections"] if (s["rule"], s["department"], s["group"]) == where), None)


def referred(section: Section, book: Book, clause: Clause) -> Section:
    """Find the section to which a clause of another one leaves its cases. Raises LookupError if the book has none."""
    other = section_of(book, section["rule"], section["department"], clause["see"])
    if other is None:
        raise LookupError(f"the book has no section on {section['rule']}, {clause['see']}")
    return other


def with_referred(section: Section, book: Book) -> list[Section]:
    """List a section and those to which its clauses refer, and theirs."""
    found = [section]
    for clause in section["clauses"]:
        found += with_referred(referred(section, book, clause), book) if "see" in clause else []
    return found


def ways(section: Section, book: Book) -> list[list[Clause]]:
    """List the ways to each clause that may decide: clauses that leave a case to another section, and that one."""
    found: list[list[Clause]] = []
    for clause in section["clauses"]:
        on = ways(referred(section, book, clause), book) if "see" in clause else [[]]
        found += [[clause, *way] for way in on]
    return found


def way_of(section: Section, book: Book, facts: Mapping[str, Any]) -> list[tuple[Section, Clause]]:
    """Follow a case from section to section, each with the clause that counts there; the last one decides."""
    clause: Clause = section["clauses"][decide(section, book["precedence"], facts)]
    on = way_of(referred(section, book, clause), book, facts) if "see" in clause else []
    return [(section, clause), *on]


def deciding(section: Section, book: Book, facts: Mapping[str, Any]) -> Clause:
    """Find the clause that decides a case, in the section on it or in one to which that refers."""
    return way_of(section, book, facts)[-1][1]


def exceptions(way: Sequence[tuple[Section, Clause]], facts: Mapping[str, Any]) -> int:
    """Count the clauses with conditions that apply to a case, whether or not others override them, in the sections of
    its `way_of`. Where the general clause decides, none of them counts."""
    if not way[0][1]["if"]:
        return 0
    clauses = (clause for one, _ in way for clause in one["clauses"])
    return sum(bool(c["if"]) and all(holds(atom, facts) for atom in c["if"]) for c in clauses)


def general(section: Section) -> Clause:
    """Return the clause without conditions."""
    found: Clause = next(clause for clause in section["clauses"] if not clause["if"])
    return found


def relevant(section: Section, book: Book) -> list[str]:
    """List the facts that the conditions of a section, and of those to which it refers, are about."""
    clauses = [clause for one in with_referred(section, book) for clause in one["clauses"]]
    return list(dict.fromkeys(atom[0] for clause in clauses for atom in clause["if"]))
