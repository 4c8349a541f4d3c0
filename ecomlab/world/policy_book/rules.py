"""Facts, rules and wordings that policy books are drawn from, read from `rules.toml` by the schema below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown
from ecomlab.values import MONEY, NUMBER, Format, choice

WINDOW = "return window"
"""The rule that states the store's terms: a section for each department."""
RESTOCKING, LABEL = "restocking", "label"
"""The rules on what a return costs."""
OF_RETURNS = (WINDOW, RESTOCKING, LABEL)
"""The rules by which returns are judged."""
AGREEMENT, FORM = "agreement", "refund form"
"""The rules on whether the customer must agree to a refund first, and on the form in which it is paid."""
WORKED_OUT = " worked out"
"""End of the name of a question for an answer that is worked out."""


def _counted(unit: str) -> Format:
    one = unit.removesuffix("s")
    return Format(
        lambda n: f"{n} {one if n == 1 else unit}", rf"\d+ {one}s?", lambda text: int(text.partition(" ")[0])
    )


UNITS: Mapping[str, Format] = {
    **{unit: _counted(unit) for unit in ("days", "hours", "months", "points")},
    "percent": Format(
        lambda n: f"{n // 10}.{n % 10}%" if n % 10 else f"{n // 10}%",
        r"\d+(?:\.\d)?%",
        lambda text: round(10 * float(text[:-1])),
    ),
    "cents": MONEY,
}
"""Units of numeric answers, which are whole numbers; "percent" counts tenths."""


def _read_range(given: object) -> range:
    if isinstance(given, list) and len(given) in (2, 3) and all(type(number) is int for number in given):
        found = range(*given)
        if found:
            return found
    raise ValueError("a range is [from, below] or [from, below, step], whole numbers, and not empty")


def _read_words(given: object) -> object:
    """Turn a list of values into a table in which each value is its own words."""
    return {str(value): value for value in given} if isinstance(given, list) else given


Form = Annotated[str, Field(pattern=r"^[^{}]*\{\}[^{}]*$")]
Forms = Annotated[tuple[Form, ...], Field(min_length=1)]
ConditionalForm = Annotated[str, Field(pattern=r"^[^{}]*\{if\}[^{}]*\{then\}[^{}]*$")]
Texts = Annotated[tuple[str, ...], Field(min_length=1)]
Sets = tuple[Texts, ...]
Range = Annotated[range, PlainValidator(_read_range)]
Precedence = Annotated[str, Field(pattern="^(first|last|only)$")]


Lean = Literal["good", "bad"]
"""Whether a shop rewards a fact or makes it dearer: privileges never cost more than none."""


class Groups(Strict):
    """Names of the sections on cases of a fact, "" for none."""

    good: str = ""
    bad: str = ""


class Named(Strict):
    """A fact with a closed set of values: how a clause puts it, the words of each value there, and the sets of values
    that a condition names, by lean, and those that people take for each other: `mistaken`."""

    condition: Form
    words: Annotated[dict[str, str], BeforeValidator(_read_words)]
    mistaken: Sets = ()
    good: Sets = ()
    bad: Sets = ()
    groups: dict[str, Texts] = Field(default_factory=dict)
    """Names of the sections on cases of one of the sets that `good` and `bad` hold."""
    together: dict[str, Texts] = Field(default_factory=dict)
    """Words for several values at once."""

    @model_validator(mode="after")
    def _check_sets(self) -> "Named":
        for name in {
            value
            for some in (
                *self.good,
                *self.bad,
                *self.mistaken,
                *self.together.values(),
                *self.groups.values(),
            )
            for value in some
        }:
            if name not in self.words:
                raise ValueError(unknown("value", name, self.words))
        return self

    def group_names(self, lean: Lean) -> Sequence[str]:
        """List the names of groups of cases that a shop treats so."""
        sets = self.good if lean == "good" else self.bad
        return [name for name, values in self.groups.items() if values in sets]

    def leans(self) -> Sequence[Lean]:
        """List the leans of its conditions."""
        return [lean for lean, sets in (("good", self.good), ("bad", self.bad)) if sets]  # type: ignore[misc]


class Amount(Strict):
    """A fact that is a number: how a clause says "at least" and "less than", the limits that good and bad conditions
    may draw, the smallest difference, and which comparison is the good one."""

    least: Form
    below: Form
    limits: Range
    bad_limits: Range
    finest: int = 1
    unit: Literal["number", "cents"] = "number"
    good: Literal[">=", "<"]
    groups: Groups = Groups()

    def group_names(self, lean: Lean) -> Sequence[str]:
        """List the name of the group of cases that a shop treats so, if any."""
        name = self.groups.good if lean == "good" else self.groups.bad
        return [name] if name else []

    def op(self, lean: Lean) -> str:
        """Return the comparison of this lean."""
        return self.good if lean == "good" else {">=": "<", "<": ">="}[self.good]

    def leans(self) -> Sequence[Lean]:
        """List the leans of its conditions."""
        return ("good", "bad")

    @property
    def kind(self) -> Format:
        """Format of its value in a clause."""
        return MONEY if self.unit == "cents" else NUMBER


class Worked(Strict):
    """An answer that is worked out: a share of the total in cents, or days from the delivery as a day."""

    of: Literal["total", "age"]
    unit: Literal["cents", "day"]
    questions: Texts


@dataclass(frozen=True)
class Rule:
    """A subject that the book rules on."""

    title: str
    unit: str
    """A name of UNITS; "yes" for yes or no; "name" for one of some names."""
    values: Sequence[int] | Sequence[str]
    """Whole numbers of `unit`, or the words to choose from."""
    facts: Sequence[str]
    """Facts that its conditions may be about."""
    outcomes: Sequence[str]
    """Two wordings of an outcome; for yes or no, what yes says and what no says."""
    questions: Sequence[str]
    """Ways in which a customer asks for it."""
    better: str
    """The answer that customers like better: "less" or "more" of a number, "yes" or "no", "" for none."""
    zero: str
    """What an outcome of 0 says."""
    worked: Worked | None
    together: Sequence[str]
    """Rules whose charges people pay together with this one."""

    @property
    def numeric(self) -> bool:
        return self.unit in UNITS

    @property
    def kind(self) -> Format:
        """Format of its value in a clause."""
        return UNITS[self.unit] if self.numeric else choice({str(value): str(value) for value in self.values})


class SectionEntry(Strict):
    """Heading of a rule's sections, the set of facts that conditions there are about, and the values to choose from."""

    title: str
    facts: str
    unit: Literal["days", "hours", "months", "points", "percent", "cents", "yes", "name"]
    better: Literal["less", "more", "yes", "no", ""] = ""
    range: Range | None = None
    names: Texts | None = None

    @model_validator(mode="after")
    def _check_values(self) -> "SectionEntry":
        if (self.range is not None, self.names is not None) != (self.unit in UNITS, self.unit == "name"):
            raise ValueError(
                f'a number has a range, "name" has names, "yes" has neither; the unit is "{self.unit}"'
            )
        kinds = {"yes": ("yes", "no"), "name": ("",)}.get(self.unit, ("less", "more"))
        if self.better not in kinds:
            raise ValueError(
                f'the better answer of unit "{self.unit}" is one of {kinds}, not "{self.better}"'
            )
        return self


class RuleEntry(Strict):
    """A rule as the file has it."""

    section: SectionEntry
    outcomes: tuple[str, str]
    questions: Texts
    zero: str = ""
    worked: Worked | None = None
    together: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_outcomes(self) -> "RuleEntry":
        gaps = 0 if self.section.unit == "yes" else 1
        if any(form.count("{}") != gaps for form in self.outcomes):
            raise ValueError(f'an outcome of unit "{self.section.unit}" holds {gaps} {{}}')
        return self


class RulesFile(Strict):
    """Schema of `rules.toml`."""

    type_condition: Form
    special: Annotated[tuple[ConditionalForm, ...], Field(min_length=1)]
    general: Annotated[dict[Precedence, Forms], Field(min_length=3)]
    reference: Form
    referred: str
    precedence: Annotated[dict[Precedence, Texts], Field(min_length=2)]
    stop_words: frozenset[str]
    usual: dict[str, frozenset[int]]
    named: dict[str, Named]
    amounts: dict[str, Amount]
    fact_sets: dict[str, Texts]
    rules: dict[str, RuleEntry]

    @model_validator(mode="after")
    def _check_names(self) -> "RulesFile":
        facts = ("type", *self.named, *self.amounts)
        for name, members in self.fact_sets.items():
            for fact in members:
                if fact not in facts:
                    raise ValueError(f"fact_sets.{name}: {unknown('fact', fact, facts)}")
        for name, rule in self.rules.items():
            if rule.section.facts not in self.fact_sets:
                raise ValueError(f'rules."{name}": {unknown("fact set", rule.section.facts, self.fact_sets)}')
            for other in rule.together:
                if other not in self.rules:
                    raise ValueError(f'rules."{name}": {unknown("rule", other, self.rules)}')
        for name in (*OF_RETURNS, AGREEMENT, FORM):
            if name not in self.rules:
                raise ValueError(f'rules: there is no "{name}", by which returns are judged')
        return self


FILE = Path(__file__).with_name("rules.toml")
_READ = read_toml(FILE, RulesFile)


def _numbers(section: SectionEntry) -> list[int]:
    """List the numbers of a section's range that a shop would print."""
    usual = _READ.usual.get(section.unit, section.range)
    return [number for number in section.range or () if number in (usual or ())]


FACTS: Mapping[str, Named | Amount] = {**_READ.named, **_READ.amounts}
"""Facts that a clause's condition may be about, beside "type": which product it is."""
RULES: Mapping[str, Rule] = {
    name: Rule(
        entry.section.title,
        entry.section.unit,
        [*([0] if entry.zero else []), *_numbers(entry.section)] or entry.section.names or ("yes", "no"),
        _READ.fact_sets[entry.section.facts],
        entry.outcomes,
        entry.questions,
        entry.section.better,
        entry.zero,
        entry.worked,
        entry.together,
    )
    for name, entry in _READ.rules.items()
}
QUESTIONS: Mapping[str, Sequence[str]] = {
    **{name: rule.questions for name, rule in RULES.items()},
    **{name + WORKED_OUT: rule.worked.questions for name, rule in RULES.items() if rule.worked},
}
"""Sentences by question; a question is the name of a rule, or that with `WORKED_OUT`."""


def rule_of(question: str) -> str:
    """Name the rule that a question is about."""
    return question.removesuffix(WORKED_OUT)


def is_odd(facts: Mapping[str, Any]) -> bool:
    """Tell whether facts, each with its value or a collection of values, do not go together: who has not opened a
    product knows of no defect."""
    return "sealed" in facts.get("opened", ()) and "defect" in facts.get("reason", ())


def may_be_mistaken(name: str, value: Any, other: Any) -> bool:
    """Tell whether people set right one value of a fact by another: who has used a product does not find it sealed, and
    a number is not told as more than twice what it is."""
    fact = FACTS[name]
    if isinstance(fact, Amount):
        return value != other and max(value, other) <= 2 * min(value, other)
    return value != other and any({value, other} <= {*some} for some in fact.mistaken)


TYPE_CONDITION = _READ.type_condition
SPECIAL = _READ.special
"""Clauses with conditions."""
GENERAL: Mapping[str, Sequence[str]] = _READ.general
"""Clauses without conditions, by which of several clauses decides; listed first where the last one decides, and
"only" where there is no other."""
REFERENCE = _READ.reference
"""What a clause says that leaves a case to another section."""
REFERRED = _READ.referred
"""Title of such a section: that of the rule's section, and the group of cases."""
PRECEDENCE: Mapping[str, Sequence[str]] = _READ.precedence
"""Statements of which clause decides."""
STOP_WORDS = _READ.stop_words
"""Words that the search leaves out."""
