"""The text of a policy book: written from its structure, and read back by the same forms."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ecomlab.catalog import Catalog
from ecomlab.values import any_of
from ecomlab.world.policy_book.book import Atom, Book, Clause, Section
from ecomlab.world.policy_book.rules import (
    FACTS,
    GENERAL,
    PRECEDENCE,
    REFERENCE,
    REFERRED,
    RULES,
    SPECIAL,
    TYPE_CONDITION,
    WINDOW,
    Amount,
    Named,
    Rule,
)

ALSO, EITHER = ", and ", "either "
"""What joins conditions, and what begins the values of one: the comma ends what "either" begins."""

# From structure to text.


def title_of(section: Section, catalog: Catalog) -> str:
    """Write a section's heading; that of a department says which products belong to it."""
    title = _short_title(section, section["group"])
    if section["rule"] != WINDOW or section["group"]:
        return title
    kinds = [kind.plural for kind in catalog.drawable_types if kind.department == section["department"]]
    return f"{title} ({_enumerate(kinds, 'and')})"


def _short_title(section: Section, group: str) -> str:
    """Write the heading of a section, or of that on a group of its cases, without the products of a department."""
    title = RULES[section["rule"]].title.replace("{}", f"{section['department']} department")
    return REFERRED.format(title, group) if group else title


def text_of(section: Section, book: Book, plurals: Mapping[str, str]) -> str:
    """Write a section: which of several clauses decides, then a line for each clause. `plurals` is by type name."""
    rule, clauses = RULES[section["rule"]], section["clauses"]
    several, precedence = len(clauses) > 1, book["precedence"]
    general = GENERAL[precedence if several else "only"]
    lines = [PRECEDENCE[precedence][book["form"]]] if several else []
    return "\n".join(
        [*lines, *(_write_clause(section, rule, clause, general, plurals) for clause in clauses)]
    )


def _write_clause(
    section: Section, rule: Rule, clause: Clause, general: Sequence[str], plurals: Mapping[str, str]
) -> str:
    sentence, outcome = divmod(clause["form"], 2)
    if "see" in clause:
        then = REFERENCE.replace("{}", _short_title(section, clause["see"]))
    elif rule.unit == "yes":
        then = rule.outcomes[rule.values.index(clause["then"])]
    elif rule.zero and clause["then"] == 0:
        then = rule.zero
    else:
        then = rule.outcomes[outcome].replace("{}", rule.kind.write(clause["then"]))
    if not clause["if"]:
        text = general[sentence % len(general)].replace("{}", then)
        return f"[{clause['id']}] {text[0].upper()}{text[1:]}"
    conditions = ALSO.join(_write_condition(atom, plurals) for atom in clause["if"])
    form = SPECIAL[sentence % len(SPECIAL)]
    return f"[{clause['id']}] " + form.replace("{if}", conditions).replace("{then}", then)


def _write_condition(atom: Atom, plurals: Mapping[str, str]) -> str:
    fact, op, value = atom
    if fact == "type":
        return TYPE_CONDITION.replace("{}", _enumerate([plurals[name] for name in value], "or"))
    about = FACTS[fact]
    if isinstance(about, Named):
        words = _enumerate([about.words[name] for name in value], "or")
        words = next(
            (text for text, values in about.together.items() if set(values) == set(value)),
            EITHER + words if len(value) > 1 else words,
        )
        return about.condition.replace("{}", words)
    return (about.least if op == ">=" else about.below).replace("{}", about.kind.write(value))


def _enumerate(names: Sequence[str], last: str) -> str:
    """Join names as a list in words: "a, b or c"."""
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


# From text to structure.


@dataclass(frozen=True)
class Read:
    """A section as it is read from a search: its rule, the types that its heading lists, the group of cases that it is
    about, which of several clauses decides, and the clauses, which have no form and whose "see" is a title."""

    rule: str
    kinds: Collection[str]
    group: str
    precedence: str
    clauses: list[Clause]


def read_section(title: str, text: str, names: Mapping[str, str]) -> Read | None:
    """Read a section that a search shows; `names` is by plural. None for a heading of no rule."""
    found = next(
        ((name, r, m[1]) for name, r in RULES.items() if (m := _heading(r.title).fullmatch(title))), None
    )
    if found is None:
        return None
    rule_name, rule, group = found
    listed = re.search(r"\((.*)\)$", title) if rule_name == WINDOW and not group else None
    kinds = _read_types(listed[1], names, "and") if listed else []
    precedence, clauses = "last", []
    for line in text.split("\n"):
        clause = read_clause(line, rule, names)
        if clause is not None:
            clauses.append(clause)
        for which, forms in PRECEDENCE.items():
            precedence = which if line in forms else precedence
    return Read(rule_name, kinds, group or "", precedence, clauses)


def read_clause(line: str, rule: Rule, names: Mapping[str, str]) -> Clause | None:
    """Read a clause from its line; `names` is by plural. None for a line that is no clause of this rule."""
    marked = re.fullmatch(r"\[([A-Z]-\d+)\] (.*)", line)
    if not marked:
        return None
    for form in (*SPECIAL, *GENERAL["first"], *GENERAL["last"], *GENERAL["only"]):
        before = form.partition("{")[0]
        if not marked[2].startswith(before):
            continue
        body = marked[2][len(before) : -1]
        body = body if before else body[0].lower() + body[1:]
        for atoms, outcome in _readings(body, names) if form in SPECIAL else [([], body)]:
            see = _pattern(REFERENCE).fullmatch(outcome)
            if see:
                return {"id": marked[1], "if": atoms, "see": see[1]}
            value = _read_outcome(outcome, rule)
            if value is not None:
                return {"id": marked[1], "if": atoms, "then": value}
    return None


def _readings(body: str, names: Mapping[str, str]) -> Iterator[tuple[list[Atom], str]]:
    """Yield the ways to cut "{if}, {then}", where names in either may hold a comma of their own."""
    for comma in re.finditer(", ", body):
        atoms = _read_conditions(body[: comma.start()], names)
        if atoms:
            yield atoms, body[comma.end() :]


def _read_outcome(text: str, rule: Rule) -> Any:
    if rule.zero and text == rule.zero:
        return 0
    if rule.unit == "yes":
        return dict(zip(rule.outcomes, rule.values, strict=True)).get(text)
    for form in rule.outcomes:
        match = _pattern(form, rule.kind.pattern).fullmatch(text)
        if match:
            return rule.kind.read(match[1])
    return None


def _read_conditions(text: str, names: Mapping[str, str]) -> list[Atom] | None:
    """Read the conditions that `ALSO` joins, where names may hold it as well."""
    for cut in [len(text), *(m.start() for m in re.finditer(ALSO, text))]:
        atom = _read_condition(text[:cut], names)
        if atom is not None:
            rest = _read_conditions(text[cut + len(ALSO) :], names) if cut < len(text) else []
            if rest is not None:
                return [atom, *rest]
    return None


def _read_condition(text: str, names: Mapping[str, str]) -> Atom | None:
    match = _pattern(TYPE_CONDITION).fullmatch(text)
    if match:
        kinds = _read_types(match[1], names, "or")
        return ["type", "in", kinds] if kinds else None
    for fact, about in FACTS.items():
        if isinstance(about, Named):
            match = _pattern(about.condition).fullmatch(text)
            values = {words: value for value, words in about.words.items()}
            if match and match[1] in about.together:
                return [fact, "in", [*about.together[match[1]]]]
            listed = re.split(", | or ", match[1].removeprefix(EITHER)) if match else []
            if listed and set(listed) <= set(values):
                return [fact, "in", [values[words] for words in listed]]
            continue
        for op, form in ((">=", about.least), ("<", about.below)):
            match = _pattern(form, about.kind.pattern).fullmatch(text)
            if match:
                return [fact, op, about.kind.read(match[1])]
    return None


def _read_types(text: str, names: Mapping[str, str], last: str) -> list[str]:
    """Read the types of an enumeration, taking the longest of names within names; none if any part is no type."""
    found, at = [], 0
    while at < len(text):
        ends = [m for m in re.finditer(rf", | {last} |$", text) if text[at : m.start()] in names]
        if not ends:
            return []
        found.append(names[text[at : ends[-1].start()]])
        at = ends[-1].end()
    return found


_NAMES = any_of(name for about in FACTS.values() if isinstance(about, Named) for name in about.groups)
_AMOUNTS = "|".join(
    re.escape(name).replace(r"\{\}", about.kind.pattern)
    for about in FACTS.values()
    if isinstance(about, Amount)
    for lean in about.leans()
    for name in about.group_names(lean)
)
_GROUPS = f"(?:{_NAMES}|{_AMOUNTS})"


@cache
def _heading(title: str) -> re.Pattern[str]:
    """Compile the pattern of a rule's heading, with the group of cases where there is one."""
    return re.compile(
        re.escape(title).replace(r"\{\}", ".+?") + rf"(?:, ({_GROUPS}(?:, {_GROUPS})*)| \(.*\))?"
    )


@lru_cache(maxsize=1_024)
def _pattern(form: str, value: str = ".+") -> re.Pattern[str]:
    """Compile the pattern of a form whose {} is a value of this pattern."""
    before, gap, after = form.partition("{}")
    return re.compile(f"{re.escape(before)}({value}){re.escape(after)}" if gap else re.escape(form))
