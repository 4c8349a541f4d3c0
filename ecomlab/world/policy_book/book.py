"""The policy book of a task: drawn from public randomness, told as English text, and read back from that text.

A section is one rule's clauses in the order listed; a clause is a condition on the customer's facts and an outcome. The
verifier decides on this structure, a player on the text, which `read_clause` takes apart by the forms that wrote it.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ecomlab.catalog import Catalog, Shop
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import rng
from ecomlab.world.policy_book.rules import (
    FACTS,
    GENERAL,
    NOT_RETURNABLE,
    PRECEDENCE,
    RULES,
    SPECIAL,
    STOP_WORDS,
    TYPE_CONDITION,
    WINDOW,
    Named,
    Rule,
)
from ecomlab.world.policy_book.terms import draw_terms

Atom = Sequence[Any]
"""One condition as JSON: [fact, "in", [values]], or [fact, ">=" or "<", limit]."""
Clause = Mapping[str, Any]
"""{"id", "if": atoms that must all hold, "then": value, "form": which of its wordings}."""
Section = Mapping[str, Any]
"""{"rule", "department" (of a return window, else ""), "clauses" in the order listed}."""
Book = Mapping[str, Any]
"""{"precedence": "first" or "last" of the clauses that apply decides, "form", "sections"}."""

SHOWN = 4
"""Sections that a search shows at most."""
FEWEST = 28
"""Rules in a book beside four for every clause that a rule has: enough that no constant search finds the right one."""
STEM = 5
"""Letters of a word that the search compares."""
LETTERS = "ABCDEFGHJKLMNPRSTVWX"
_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")


@lru_cache(maxsize=16)  # the jobs of a journey share one, and none may change it
def draw_book(key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> dict[str, Any]:
    """The policy book of the task that `key` names, whatever anybody will ask: `axes.branches` clauses a rule, and
    more rules the more clauses; return windows are the terms that the store's systems act on."""
    random, catalog = rng("policies", *key), shop.catalog
    precedence = ("first", "last")[int(random.integers(2))]
    others = [name for name in RULES if name != WINDOW]
    chosen = [others[i] for i in random.permutation(len(others)).tolist()][: FEWEST + 4 * axes.branches]
    sections = [_draw_section(name, axes.branches, precedence, catalog, random) for name in chosen]
    for department, days in draw_terms(key, catalog).return_days.items():
        clause = {"if": [], "then": days, "form": int(random.integers(24))}
        sections.append({"rule": WINDOW, "department": department, "clauses": [clause]})
    clauses = [clause for section in sections for clause in section["clauses"]]
    numbers = random.permutation(len(LETTERS) * max(90, len(clauses)))[: len(clauses)].tolist()
    for clause, number in zip(clauses, numbers, strict=True):
        clause["id"] = f"{LETTERS[number % len(LETTERS)]}-{10 + number // len(LETTERS)}"
    order = random.permutation(len(sections)).tolist()
    form = int(random.integers(len(PRECEDENCE[precedence])))
    return {"precedence": precedence, "form": form, "sections": [sections[i] for i in order]}


def _draw_section(
    name: str, branches: int, precedence: str, catalog: Catalog, random: np.random.Generator
) -> dict[str, Any]:
    """A general clause and exceptions to it; the more there are, the more of them have two conditions or three."""
    rule, more = RULES[name], min(0.7, 0.15 * (branches - 1))
    clauses: list[dict[str, Any]] = []
    used: list[list[Any]] = [[]]
    for number in range(branches):
        atoms: list[list[Any]] = []
        for _ in range(20 if number else 0):  # no two clauses with one condition
            count = 1 + int((random.random(2) < more).sum())
            facts = [rule.facts[i] for i in random.permutation(len(rule.facts))[:count].tolist()]
            atoms = [_draw_atom(fact, catalog, random) for fact in facts]
            if atoms not in used:
                break
        used.append(atoms)
        clauses.append({"if": atoms, "form": int(random.integers(24))})
    values = random.permutation(len(rule.values)).tolist()
    if rule.unit == "yes":  # as many yes as no, where there are two
        values = [(values[0] + i) % 2 for i in range(branches)]
        values = [values[i] for i in random.permutation(branches).tolist()]
    for number, clause in enumerate(clauses):
        value = rule.values[values[number % len(values)]]
        clause["then"] = value if isinstance(value, str) else int(value)
    if precedence == "first":
        clauses.reverse()
    return {"rule": name, "department": "", "clauses": clauses}


def _draw_atom(fact: str, catalog: Catalog, random: np.random.Generator) -> list[Any]:
    if fact == "type":
        names = [catalog.types[i].name for i in _some(len(catalog.types), 3, random)]
        return [fact, "in", names]
    about = FACTS[fact]
    if isinstance(about, Named):
        values = list(about.words)
        return [fact, "in", [values[i] for i in _some(len(values), max(1, len(values) // 3), random)]]
    limit = about.limits[int(random.integers(len(about.limits)))]
    return [fact, (">=", "<")[int(random.integers(2))], limit]


def _some(size: int, most: int, random: np.random.Generator) -> list[int]:
    """Some of `size` numbers, from one to `most` of them."""
    count = 1 + int(random.integers(most))
    return list(dict.fromkeys(random.integers(size, size=count).tolist()))


def holds(atom: Atom, facts: Mapping[str, Any]) -> bool:
    """Whether a condition is known to hold."""
    fact, op, value = atom
    if fact not in facts:
        return False
    return facts[fact] in value if op == "in" else (facts[fact] >= value) == (op == ">=")


def decisive(applies: Sequence[bool], precedence: str) -> int | None:
    """Which of a section's clauses decides: the first or the last of those that apply."""
    found = [number for number, does in enumerate(applies) if does]
    return (found[0] if precedence == "first" else found[-1]) if found else None


def decide(section: Section, precedence: str, facts: Mapping[str, Any]) -> int:
    """The number of the clause that decides a case whose facts are all known."""
    clauses = section["clauses"]
    applies = [all(holds(atom, facts) for atom in clause["if"]) for clause in clauses]
    number = decisive(applies, precedence)
    if number is None:
        raise ValueError("a section without a general clause")
    return number


def section_of(book: Book, rule: str, department: str = "") -> Section | None:
    """The section that rules on this."""
    where = department if rule == WINDOW else ""
    return next((s for s in book["sections"] if s["rule"] == rule and s["department"] == where), None)


def relevant(section: Section) -> list[str]:
    """The facts that its conditions are about."""
    return list(dict.fromkeys(atom[0] for clause in section["clauses"] for atom in clause["if"]))


# From structure to text.


def title_of(section: Section, catalog: Catalog) -> str:
    """A section's heading; that of a department says which products belong to it."""
    title = RULES[section["rule"]].title
    if section["rule"] != WINDOW:
        return title
    kinds = [kind.plural for kind in catalog.types if kind.department == section["department"]]
    return title.replace("{}", f"{section['department']} department ({_row(kinds, 'and')})")


def text_of(section: Section, book: Book, plurals: Mapping[str, str]) -> str:
    """A section as the book has it: which clause decides, then the clauses, a line each; `plurals` by type name."""
    rule, clauses = RULES[section["rule"]], section["clauses"]
    lines = []
    if len(clauses) > 1:
        lines.append(PRECEDENCE[book["precedence"]][book["form"]])
    general = GENERAL[book["precedence"] if len(clauses) > 1 else "last"]
    return "\n".join([*lines, *(_clause(rule, clause, general, plurals) for clause in clauses)])


def _clause(rule: Rule, clause: Clause, general: Sequence[str], plurals: Mapping[str, str]) -> str:
    outcome, frame = clause["form"] % 2, clause["form"] // 2
    if rule.unit == "yes":
        then = rule.outcomes[rule.values.index(clause["then"])]
    elif rule is RULES[WINDOW] and clause["then"] == 0:
        then = NOT_RETURNABLE
    else:
        then = rule.outcomes[outcome].replace("{}", rule.kind.write(clause["then"]))
    if not clause["if"]:
        return f"[{clause['id']}] " + general[frame % len(general)].replace("{}", then)
    condition = " and ".join(_condition(atom, plurals) for atom in clause["if"])
    form = SPECIAL[frame % len(SPECIAL)]
    return f"[{clause['id']}] " + form.replace("{if}", condition).replace("{then}", then)


def _condition(atom: Atom, plurals: Mapping[str, str]) -> str:
    fact, op, value = atom
    if fact == "type":
        return TYPE_CONDITION.replace("{}", _row([plurals[name] for name in value]))
    about = FACTS[fact]
    if isinstance(about, Named):
        return about.condition.replace("{}", " or ".join(about.words[name] for name in value))
    return (about.least if op == ">=" else about.below).replace("{}", about.kind.write(value))


def _row(names: Sequence[str], last: str = "or") -> str:
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


# From text to structure, by the same forms.


def read_section(
    title: str, text: str, plurals: Mapping[str, str]
) -> tuple[str, Collection[str], str, list[Clause]] | None:
    """(rule, types that its heading lists, precedence, clauses) of a section as a search shows it."""
    found = [(name, rule) for name, rule in RULES.items() if _form(rule.title).fullmatch(title)]
    if not found:
        return None
    name, rule = found[0]
    precedence, clauses = "last", []
    listed = re.search(r"\((.*)\)$", title) if name == WINDOW else None
    kinds = _read_types(listed[1], plurals, "and") if listed else []
    for line in text.split("\n"):
        read = read_clause(line, rule, plurals)
        if read is not None:
            clauses.append(read)
        for which, forms in PRECEDENCE.items():
            precedence = which if line in forms else precedence
    return name, kinds, precedence, clauses


def read_clause(line: str, rule: Rule, plurals: Mapping[str, str]) -> Clause | None:
    """A clause's structure from its line; None for a line that is no clause of this rule."""
    marked = re.fullmatch(r"\[([A-Z]-\d+)\] (.*)", line)
    if not marked:
        return None
    for form in (*SPECIAL, *GENERAL["first"], *GENERAL["last"]):
        before = form.partition("{")[0]
        if not marked[2].startswith(before):
            continue
        body, atoms = marked[2][len(before) : -1], []
        for cut in [m.start() for m in re.finditer(", ", body)] if "{if}" in form else []:
            atoms = _read_conditions(body[:cut], plurals) or []
            value = _read_outcome(body[cut + 2 :], rule)
            if atoms and value is not None:
                return {"id": marked[1], "if": atoms, "then": value}
        value = _read_outcome(body, rule)
        if value is not None and "{if}" not in form:
            return {"id": marked[1], "if": [], "then": value}
    return None


def _read_outcome(text: str, rule: Rule) -> Any:
    if text == NOT_RETURNABLE:
        return 0
    if rule.unit == "yes":
        return dict(zip(rule.outcomes, rule.values, strict=True)).get(text)
    for form in rule.outcomes:
        match = _form(form, rule.kind.pattern).fullmatch(text)
        if match:
            return rule.kind.read(match[1])
    return None


def _read_conditions(text: str, plurals: Mapping[str, str]) -> list[Atom] | None:
    """The conditions that "and" joins; names may hold an "and" of their own."""
    for cut in [len(text), *(m.start() for m in re.finditer(" and ", text))]:
        atom = _read_condition(text[:cut], plurals)
        if atom is not None:
            rest = _read_conditions(text[cut + 5 :], plurals) if cut < len(text) else []
            if rest is not None:
                return [atom, *rest]
    return None


def _read_condition(text: str, plurals: Mapping[str, str]) -> Atom | None:
    match = _form(TYPE_CONDITION).fullmatch(text)
    if match:
        kinds = _read_types(match[1], plurals)
        return ["type", "in", kinds] if kinds else None
    for fact, about in FACTS.items():
        if isinstance(about, Named):
            match = _form(about.condition).fullmatch(text)
            back = {words: value for value, words in about.words.items()}
            if match and set(match[1].split(" or ")) <= set(back):
                return [fact, "in", [back[words] for words in match[1].split(" or ")]]
            continue
        for op, form in ((">=", about.least), ("<", about.below)):
            match = _form(form, about.kind.pattern).fullmatch(text)
            if match:
                return [fact, op, about.kind.read(match[1])]
    return None


def _read_types(text: str, plurals: Mapping[str, str], last: str = "or") -> list[str]:
    """The types of an enumeration, of names within names the longest; none when a part of it is no type."""
    names, at = [], 0
    while at < len(text):
        ends = [m.start() for m in re.finditer(rf", | {last} |$", text) if text[at : m.start()] in plurals]
        if not ends:
            return []
        names.append(plurals[text[at : ends[-1]]])
        at = ends[-1] + (2 if text.startswith(", ", ends[-1]) else len(last) + 2)
    return names


@lru_cache(maxsize=1_024)
def _form(form: str, pattern: str = ".+") -> re.Pattern[str]:
    before, found, after = form.partition("{}")
    return re.compile(f"{re.escape(before)}({pattern}){re.escape(after)}" if found else re.escape(form))


# The search.


def search(book: Book, query: str, catalog: Catalog) -> list[dict[str, str]]:
    """The sections that share most words with the query, a word in a heading counting three times and a rare word
    more than a common one; those without a word of it never."""
    wanted = dict.fromkeys(words(query))
    plurals = {kind.name: kind.plural for kind in catalog.types}
    shown = [(title_of(section, catalog), text_of(section, book, plurals)) for section in book["sections"]]
    bags = [(set(words(title)), set(words(text))) for title, text in shown]
    common = Counter(word for title, text in bags for word in title | text)
    weight = {word: round(math.log(1 + len(bags) / common[word]), 6) for word in wanted if common[word]}
    points = [
        sum(w * (3 * (word in title) + (word in text)) for word, w in weight.items()) for title, text in bags
    ]
    best = sorted((number for number, score in enumerate(points) if score), key=lambda n: (-points[n], n))
    return [{"section": shown[n][0], "text": shown[n][1]} for n in best[:SHOWN]]


def words(text: str) -> list[str]:
    """The stems of a text's telling words: "returned" and "returns" are one, "bookshelf" and "bookshelves" too."""
    return [stem for word in _WORD.findall(text.lower()) if (stem := _stem(word))]


@lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    if word in STOP_WORDS:
        return ""
    return _ENDING.sub("", word)[:STEM] if len(word) > 4 else word.removesuffix("s")
