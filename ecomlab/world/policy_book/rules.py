"""Facts, rules and wordings that policy books are drawn from, read from `rules.toml` by the schema below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from ecomlab.settings import Strict, read_toml
from ecomlab.suggest import unknown
from ecomlab.values import MONEY, NUMBER, Format, choice

WINDOW = "return window"
"""The rule that states the store's terms: a section of one clause for each department."""


def _counted(unit: str) -> Format:
    return Format(lambda n: f"{n} {unit}", rf"\d+ {unit}", lambda text: int(text.removesuffix(f" {unit}")))


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
Range = Annotated[range, PlainValidator(_read_range)]
Precedence = Annotated[str, Field(pattern="^(first|last)$")]


class Named(Strict):
    """A fact with a closed set of values: how a clause puts it, and the words of each value there."""

    condition: Form
    words: Annotated[dict[str, str], BeforeValidator(_read_words)]


class Amount(Strict):
    """A fact that is a number: how a clause says "at least" and "less than", and the limits it may draw."""

    least: Form
    below: Form
    limits: Range
    unit: Literal["number", "cents"] = "number"

    @property
    def kind(self) -> Format:
        """Format of its value in a clause."""
        return MONEY if self.unit == "cents" else NUMBER


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
    range: Range | None = None
    names: Texts | None = None

    @model_validator(mode="after")
    def _check_values(self) -> "SectionEntry":
        if (self.range is not None, self.names is not None) != (self.unit in UNITS, self.unit == "name"):
            raise ValueError(
                f'a number has a range, "name" has names, "yes" has neither; the unit is "{self.unit}"'
            )
        return self


class RuleEntry(Strict):
    """A rule as the file has it."""

    section: SectionEntry
    outcomes: tuple[str, str]
    questions: Texts

    @model_validator(mode="after")
    def _check_outcomes(self) -> "RuleEntry":
        gaps = 0 if self.section.unit == "yes" else 1
        if any(form.count("{}") != gaps for form in self.outcomes):
            raise ValueError(f'an outcome of unit "{self.section.unit}" holds {gaps} {{}}')
        return self


class RulesFile(Strict):
    """Schema of `rules.toml`."""

    type_condition: Form
    not_returnable: str
    special: Annotated[tuple[ConditionalForm, ...], Field(min_length=1)]
    general: Annotated[dict[Precedence, Forms], Field(min_length=2)]
    precedence: Annotated[dict[Precedence, Texts], Field(min_length=2)]
    stop_words: frozenset[str]
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
        if WINDOW not in self.rules:
            raise ValueError(f'rules: there is no "{WINDOW}", which the store\'s systems act on')
        return self


FILE = Path(__file__).with_name("rules.toml")
_READ = read_toml(FILE, RulesFile)

FACTS: Mapping[str, Named | Amount] = {**_READ.named, **_READ.amounts}
"""Facts that a clause's condition may be about, beside "type": which product it is."""
RULES: Mapping[str, Rule] = {
    name: Rule(
        entry.section.title,
        entry.section.unit,
        entry.section.range or entry.section.names or ("yes", "no"),
        _READ.fact_sets[entry.section.facts],
        entry.outcomes,
        entry.questions,
    )
    for name, entry in _READ.rules.items()
}

TYPE_CONDITION = _READ.type_condition
NOT_RETURNABLE = _READ.not_returnable
"""The outcome of a window of 0 days."""
SPECIAL = _READ.special
"""Clauses with conditions."""
GENERAL: Mapping[str, Sequence[str]] = _READ.general
"""Clauses without conditions, by which of several clauses decides; listed first where the last one decides."""
PRECEDENCE: Mapping[str, Sequence[str]] = _READ.precedence
"""Statements of which clause decides."""
STOP_WORDS = _READ.stop_words
"""Words that the search leaves out."""
