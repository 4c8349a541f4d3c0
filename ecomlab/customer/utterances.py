"""The bank of utterances: the frames of the customer's acts, in several registers, and the manner of one customer.

Language models wrote the frames of `utterances.jsonl`; `experiments/utterances` checks and sorts them. Half of those of
each act are held out: tasks of evaluation speak them, and no other task does.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, ValidationError

from ecomlab.customer.fillers import telling
from ecomlab.other_words import NUMBER
from ecomlab.seeding import EVALUATION_SEEDS, pick
from ecomlab.settings import ConfigError, Strict
from ecomlab.suggest import mistakes
from ecomlab.task import TaskKey

FILE = Path(__file__).with_name("utterances.jsonl")
FACTS = "FACTS"
"""Stands in the bank for every environment whose customers tell facts, not wishes."""
Register = Literal["plain", "casual", "formal", "terse", "warm", "impatient"]
PLAIN = "plain"
"""The register that every customer speaks beside their own."""
REGISTERS: tuple[str, ...] = get_args(Register)
P_TERSE = 0.25
"""Share of customers who say little; they are neither formal nor warm, which takes words."""
_MARKS = re.compile(r"(\[[^\]]*\]|\{\w*\})")
_KINDS = {"[": "cue", "{": "field"}
_WITHIN = r"(?:(?![.!?]\s|\n(?!- )).)+?"
"""Pattern of a field: it does not go on after the end of a sentence."""


class Utterance(Strict):
    """A line of the bank."""

    act: Annotated[str, Field(min_length=1)]
    """Kind of act; "before ..." leads in a slot's sentence, "slot ..." tells a slot, "opening ..." is of an opening."""
    env: str
    """Environment whose customers say it, `FACTS`, or "" for all."""
    register_: Annotated[Register, Field(alias="register")]
    text: Annotated[str, Field(min_length=1)]
    held: bool
    """Held out for tasks of evaluation."""

    @cached_property
    def form(self) -> "Form":
        return Form(self.text, self.register_, self.held)


@dataclass(frozen=True)
class Form:
    """One way of wording an act: runs of free text, cues and fields, in order."""

    text: str
    register: str = PLAIN
    held: bool | None = None
    """True for tasks of evaluation, False for all others, None for every task."""

    @cached_property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """Runs as ("free" | "cue" | "field", text), in order."""
        parts = filter(None, _MARKS.split(self.text))
        return tuple((_KINDS.get(part[0], "free"), part.strip("[]{}")) for part in parts)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(text for run, text in self.runs if run == "field")

    @cached_property
    def open(self) -> str:
        """The text with {} for each field."""
        return "".join("{}" if run == "field" else text for run, text in self.runs)

    @cached_property
    def literal(self) -> str:
        """The text without its fields."""
        return self.open.replace("{}", "")

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """Words of the literal text that tell something."""
        return telling(self.literal)

    @cached_property
    def lead(self) -> str:
        """The text before the first field, in lower case."""
        return self.open.partition("{}")[0].lower()

    @cached_property
    def first_word(self) -> str:
        """The first word of the lead; "" where a field may go on with it."""
        word, space, _ = self.lead.partition(" ")
        return word if space or not self.fields else ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of what this form says, in any case, with a group for each field. A quotation may hold anything."""
        made = ""
        for run, text in self.runs:
            if run != "field":
                made += re.escape(text)
            else:
                inside = NUMBER if text == "number" else r'[^"]+' if made.endswith('"') else _WITHIN
                made += f"(?P<{text}>{inside})"
        return re.compile(made + r"(?=\s|$)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Manner:
    """How one customer speaks, through a whole episode."""

    registers: frozenset[str] = frozenset((PLAIN,))
    held: bool = False

    @classmethod
    def of(cls, key: TaskKey) -> Self:
        """Draw verbosity, formality and temper of the customer of a task."""
        random = key.rng("manner")
        terse = bool(random.random() < P_TERSE)
        formality = pick(random, ("casual", PLAIN) if terse else ("casual", PLAIN, "formal"))
        temper = pick(random, ("impatient", PLAIN) if terse else ("warm", PLAIN, "impatient"))
        spoken = {PLAIN, formality, temper, *(("terse",) if terse else ())}
        return cls(frozenset(spoken), key.seed in EVALUATION_SEEDS)

    def fitting(self, forms: Sequence[Form]) -> list[Form]:
        """List those of the forms that this customer says, the ones of their own registers twice; all where none is."""
        mine = [form for form in forms if form.held in (None, self.held)] or forms
        fit = [form for form in mine if form.register in self.registers] or mine
        return [*fit, *(form for form in fit if form.register != PLAIN)]


Bank = Mapping[str, Mapping[str, tuple[Form, ...]]]
"""Frames by act and environment."""
ANYBODY = Manner()
"""The manner of a customer without a task: plain."""


def read_bank(file: Path = FILE) -> list[Utterance]:
    """Read a bank. Raises ConfigError with a line for each mistake: file, line, key and fault."""
    found, faults = [], []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        try:
            found.append(Utterance.model_validate_json(line))
        except ValidationError as error:
            faults += [f"{file.name}, line {number}: {fault}" for fault in mistakes(error, Utterance)]
    if faults:
        raise ConfigError("\n".join(faults))
    return found


def grouped(lines: Iterable[Utterance]) -> Bank:
    """Group the forms of a bank's lines by act and environment."""
    found: dict[str, dict[str, tuple[Form, ...]]] = {}
    for one in lines:
        by_env = found.setdefault(one.act, {})
        by_env[one.env] = (*by_env.get(one.env, ()), one.form)
    return found


@cache
def _bank() -> Bank:
    return grouped(read_bank())


def frames_of(env: str, facts: bool, bank: Bank | None = None) -> dict[str, tuple[Form, ...]]:
    """Collect the frames of an environment's customers by act: their own, else those of customers who tell facts where
    they do, else everybody's. The `bank` is by default the package's."""
    order = (*filter(None, (env, FACTS if facts else "")), "")
    bank = _bank() if bank is None else bank
    found = {
        act: next(by_env[name] for name in order if name in by_env)
        for act, by_env in bank.items()
        if by_env.keys() & {*order}
    }
    if facts:  # of wishes they say what everybody says, and not that they do not know
        wishes = {"no preference": "indifferent", "no preference to": "indifferent to"}
        found |= {act: bank[other][""] for act, other in wishes.items() if "" in bank.get(other, {})}
    return found
