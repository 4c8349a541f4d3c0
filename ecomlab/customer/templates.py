"""Phrases: the sentences of one kind of customer, as data that is rendered and parsed by the same forms.

The form of an act holds {fields} and [cues], words that decide what it means and carry no noise. A slot that is not a
property of a product has sentences of its own. Both come from TOML; all customers share `phrases.toml`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ecomlab.customer.fillers import telling
from ecomlab.customer.noise import SLANG, Piece, words_of
from ecomlab.customer.replacements import REPLACEMENT
from ecomlab.other_words import NUMBER
from ecomlab.seeding import pick
from ecomlab.settings import Strict, read_toml
from ecomlab.slots import LIMITS, SHIPPED, SlotType, declare, slot_type
from ecomlab.suggest import unknown
from ecomlab.values import FORMATS, Format, choice

COMMON = Path(__file__).with_name("phrases.toml")
COMMON_ASKS = tuple(slot_type(name).name for name in SHIPPED if slot_type(name).of != "request")
"""Product slots that a customer may be asked about, where their file names none."""
FIELDS = ("type", "plural", "number", "item", "wanted", "details", "seen")
"""What a form of an act may hold: the product type, its plural, a number of units, the item with "a" and as the
customer refers to it, its properties alone, and what the agent named or did."""
_ENDLESS = ("name", "names", "type")
"""Formats of values of which only the words around them tell where they begin and end."""
_MARKS = re.compile(r"\[([^\]]*)\]|\{(\w*)\}")
_NAME_ALONE = (frozenset(("type",)), frozenset(("seen",)))
_WITHIN = r"(?:(?![.!?]\s).)+?"
"""Pattern of a field: it does not go on after the end of a sentence."""
SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n(?!- )")


@dataclass(frozen=True)
class Form:
    """One way of wording an act: runs of free text, cues and fields, in order."""

    text: str

    @cached_property
    def runs(self) -> tuple[tuple[str, str], ...]:
        """Runs as ("free" | "cue" | "field", text), in order."""
        made, end = [], 0
        for mark in _MARKS.finditer(self.text):
            made.append(("free", self.text[end : mark.start()]))
            made.append(("cue", mark[1]) if mark[1] is not None else ("field", mark[2]))
            end = mark.end()
        return tuple(run for run in (*made, ("free", self.text[end:])) if run[1])

    @cached_property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(text for run, text in self.runs if run == "field")

    @cached_property
    def literal(self) -> str:
        """The text without its fields."""
        return "".join(text for run, text in self.runs if run != "field")

    @cached_property
    def lead(self) -> str:
        """The text before the first field, in lower case."""
        end = next((at for at, (run, _) in enumerate(self.runs) if run == "field"), len(self.runs))
        return "".join(text for _, text in self.runs[:end]).lower()

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
class Template:
    """Sentences of one slot; `forms` hold {} where the value stands."""

    format: Format
    forms: tuple[str, ...]
    once: bool = False
    """An announcement, said together with what it announces, and not a slot of the goal."""
    asked: tuple[str, ...] = ()
    """Words by which a question asks for it, beside those in `questions.toml`; by default its name."""
    again: tuple[str, ...] = ()
    """Forms in which it is repeated; by default the same."""

    def say(self, value: Any, random: np.random.Generator, again: bool = False) -> list[Piece]:
        """Word the value in one of the forms."""
        before, _, after = pick(random, (again and self.again) or self.forms).partition("{}")
        return [
            Piece(before),
            Piece(self.format.write(value), "fixed", self.format.others(value)),
            Piece(after),
        ]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of any of the forms, whatever the case of its first letter."""
        made = []
        for form in (*self.forms, *self.again):
            before, _, after = form.partition("{}")
            first = f"(?i:{re.escape(before[:1])})" if before else ""
            value = self.format.pattern if before else f"(?i:{self.format.pattern})"
            made.append(f"(?<![\\w,] ){first}{re.escape(before[1:])}({value}){re.escape(after)}(?=\\s|$)")
        return re.compile("|".join(made))

    @cached_property
    def delimited(self) -> re.Pattern[str] | None:
        """Pattern of a value, wherever in a sentence; None where only the words around one tell where it is."""
        if not self.format.pattern or any(self.format is FORMATS[name] for name in _ENDLESS):
            return None
        return re.compile(rf"(?<![\w$.])(?:{self.format.pattern})(?![\w-])")

    def find(self, text: str) -> Iterable[tuple[Any, tuple[int, int]]]:
        """Yield (value, span) of each occurrence in `text`."""
        for match in self.pattern.finditer(text):
            said = next(group for group in match.groups() if group is not None)
            yield self.format.read(said), match.span()


class Sentences(Template):
    """A slot with a closed set of values, each with whole sentences of its own; `forms` are all of them."""

    sentences: Mapping[str, Sequence[str]]

    def __init__(
        self, sentences: Mapping[str, Sequence[str]], once: bool = False, asked: Sequence[str] = ()
    ) -> None:
        forms = tuple(form for some in sentences.values() for form in some)
        super().__init__(Format(str, "", str), forms, once, tuple(asked))
        object.__setattr__(self, "sentences", sentences)

    def say(self, value: Any, random: np.random.Generator, again: bool = False) -> list[Piece]:
        return [Piece(pick(random, self.sentences[value]), "fixed")]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of any of the sentences, longer ones first, whatever the case of its first letter."""
        longest_first = sorted(self.forms, key=lambda form: (-len(form), form))
        return re.compile(
            "|".join(f"(?i:{re.escape(form[:1])}){re.escape(form[1:])}" for form in longest_first)
        )

    def find(self, text: str) -> Iterable[tuple[Any, tuple[int, int]]]:
        back = {form.lower(): value for value, some in self.sentences.items() for form in some}
        for match in self.pattern.finditer(text):
            yield back[match.group().lower()], match.span()


class _SlotFile(Strict):
    """Table of a slot: the name of a format, pairs of values and words, or sentences by value."""

    format: str = ""
    values: dict[str, str] | tuple[tuple[str | int, str], ...] = ()
    sentences: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    forms: tuple[str, ...] = ()
    once: bool = False
    asked: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    @model_validator(mode="after")
    def one_kind(self) -> Self:
        if sum(map(bool, (self.format, self.values, self.sentences))) != 1:
            raise ValueError("needs exactly one of format, values and sentences")
        if self.format and self.format not in (*FORMATS, "replacement"):
            raise ValueError(unknown("format", self.format, (*FORMATS, "replacement")))
        if bool(self.sentences) == bool(self.forms) or any(
            "{}" not in form for form in (*self.forms, *self.again)
        ):
            raise ValueError("forms hold {} where the value stands; sentences stand alone")
        return self

    def template(self) -> Template:
        if self.sentences:
            return Sentences(self.sentences, self.once, self.asked)
        found = (
            choice(dict(self.values)) if self.values else {**FORMATS, "replacement": REPLACEMENT}[self.format]
        )
        return Template(found, self.forms, self.once, self.asked, self.again)


class _File(Strict):
    """Schema of a file of phrases."""

    speaks: Literal["shop", "answer", "facts"] = "shop"
    article: str = "the"
    asks: tuple[str, ...] | None = None
    anew: tuple[str, ...] = ()
    describes: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()
    intros: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    joins: tuple[tuple[str, str], ...] = ()
    leads: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    acts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    before: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    bounds: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    slots: dict[str, _SlotFile] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)


class _Common(_File):
    """Schema of the common file, whose phrases others may replace."""

    greetings: tuple[str, ...]
    complete: tuple[str, ...]
    answers: dict[str, tuple[str, ...]]
    facts: dict[str, tuple[str, ...]]
    effects: dict[str, tuple[str, ...]]
    heard: dict[str, tuple[str, ...]]
    names: dict[str, str]


@dataclass(frozen=True)
class Phrases:
    """Phrases of one kind of customer."""

    intros: tuple[str, ...] = ()
    """Sentences with which they begin such a subtask of a journey, and which occur nowhere else."""
    leads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sentences with which an opening may begin, by the name of the list; {} is where the items stand."""
    lists: tuple[str, ...] = ()
    """The same, for several items as a list."""
    closings: tuple[str, ...] = ()
    """Ends of an opening that leaves something out; none of them says that this is all."""
    joins: tuple[tuple[str, str], ...] = ()
    """Separators between items, and before the last of them."""
    acts: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sentences before a slot's sentence that stands alone, by kind of act."""
    bounds: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Phrases for the limits of a product, after its name."""
    article: str = "the"
    """Article of an item that the customer speaks of again: "the" where it is one of those they named, "a" where any
    that fits will do."""
    slots: Mapping[str, Template] = field(default_factory=dict)
    """Templates of the slots that are not properties of a product."""
    asks: tuple[str, ...] = ()
    """Product slots that such a customer may be asked about, beside those that have sentences of their own."""
    limits: tuple[SlotType, ...] = LIMITS
    """Slots that may limit a product, those of the user's own last."""
    anew: tuple[str, ...] = ()
    """Acts with which they turn to an entirely different item: announcements, and last the description."""
    describes: tuple[str, ...] = ()
    """Product slots by which they describe an item; all, if empty."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Word lists of this environment."""

    @classmethod
    def load(cls, path: Path | str, *limits: SlotType, **slots: Template) -> "Phrases":
        """Load the phrases of a TOML file, with more limits and slots made in code. Raises ValueError that names file
        and key."""
        return cls._made(read_toml(Path(path), _File), limits, slots)

    @classmethod
    def of(cls, leads: Sequence[str], *limits: SlotType, **slots: Template) -> "Phrases":
        """Make the phrases of a customer who waits for an answer: the common ones, these leads, limits and slots."""
        return cls._made(_File(speaks="answer", leads={"default": tuple(leads)}), limits, slots)

    @classmethod
    def _made(cls, file: "_File", limits: Sequence[SlotType], slots: Mapping[str, Template]) -> "Phrases":
        common, more = common_file(), tuple(map(declare, limits))
        asks = COMMON_ASKS if file.asks is None else tuple(file.asks)
        answers = common.answers if file.speaks in ("answer", "facts") else {}
        acts = common.acts | answers | (common.facts if file.speaks == "facts" else {}) | file.acts
        made = {name: table.template() for name, table in file.slots.items()}
        for kind, forms in acts.items():
            for used in {name for form in forms for name in Form(form).fields} - set(FIELDS):
                raise ValueError(f"acts.{kind}: {unknown('field', used, FIELDS)}")
        return cls(
            intros=tuple(file.intros),
            leads={**common.leads, **file.leads},
            lists=tuple(file.lists or common.lists),
            closings=tuple(file.closings or common.closings),
            joins=tuple(file.joins or common.joins),
            acts={kind: tuple(map(Form, forms)) for kind, forms in acts.items()},
            before={**common.before, **file.before},
            bounds={**common.bounds, **file.bounds, **{limit.name: limit.forms for limit in more}},
            article=file.article,
            slots={**slots, **made},
            asks=(*asks, *(limit.name for limit in more)),
            limits=(*LIMITS, *more),
            anew=tuple(file.anew),
            describes=tuple(file.describes),
            data=file.data,
        )

    @cached_property
    def lead_in(self) -> re.Pattern[str]:
        """Pattern of the sentences that lead in a slot's."""
        return _any_of((text for some in self.before.values() for text in some), r"(?=\s|$)")

    def read(self, text: str) -> tuple[list[tuple[str, Any]], str]:
        """Read (name, value) of every slot's sentence in `text`, in order; return them and the rest of the text."""
        found = sorted(
            (span, name, value) for name, slot in self.slots.items() for value, span in slot.find(text)
        )
        said: list[tuple[str, Any]] = []
        rest, end = "", 0
        for (start, stop), name, value in found:
            if start >= end:
                said.append((name, value))
                rest += self._led_in.sub("", text[end:start])
                end = stop
        return said, rest + text[end:]

    @cached_property
    def _led_in(self) -> re.Pattern[str]:
        """Pattern of what leads in a slot's sentence without being one itself, at the end of a text: "Again:"."""
        return _any_of(
            (text for some in self.before.values() for text in some if text.endswith(":")), r"\s*$"
        )

    def describe(self, name: str) -> bool:
        """Tell whether an item may be described by this product slot."""
        return (
            not self.describes
            or name in self.describes
            or ("attr" in self.describes and name.startswith("attr:"))
        )

    @cached_property
    def effects(self) -> dict[str, str]:
        """Effect on the goal by kind of act; an act of any other kind has none."""
        return {
            kind: effect
            for effect, kinds in common_file().effects.items()
            for kind in kinds
            if effect != "anew" or kind in self.anew
        }

    @cached_property
    def _by_initial(self) -> dict[str, list[tuple[int, str, Form]]]:
        """(length of its own words, kind, form) of all acts by the letter that they begin with, those that say most
        first; "" where a field comes first."""
        found: dict[str, list[tuple[int, str, Form]]] = {}
        forms = [(len(form.literal), kind, form) for kind, forms in self.acts.items() for form in forms]
        for said in sorted(forms, key=lambda said: -said[0]):
            found.setdefault(said[2].lead[:1], []).append(said)
        return found

    @cached_property
    def _longest_lead(self) -> int:
        return max((len(form.lead) for forms in self.acts.values() for form in forms), default=0)

    def recognised(self, text: str, at: int = 0) -> tuple[str, re.Match[str]] | None:
        """Recognise the act that is said at this place of a text, by the form that fits with most words of its own."""
        best: tuple[int, str, re.Match[str]] | None = None
        head = text[at : at + self._longest_lead]
        # Most forms are ruled out by how they begin, without their patterns. Beyond ASCII a letter may have several
        # lower cases, which only patterns know.
        begins = head.lower() if head.isascii() else None
        for initial in (text[at : at + 1].lower(), ""):
            for length, kind, form in self._by_initial.get(initial, ()):
                if best is not None and best[0] >= length:
                    break
                if begins is not None and form.lead.isascii() and not begins.startswith(form.lead):
                    continue
                match = form.pattern.match(text, at)
                if match:
                    best = length, kind, match
                    break
        return best and best[1:]

    @cached_property
    def sentences_by_telling(self) -> dict[tuple[str, ...], set[tuple[tuple[str, ...], str]]]:
        """(meaning, sentence) of the sentences without fields, of acts and slots, by the words of theirs that tell; for
        what is only heard, a sentence of that act."""
        found: dict[tuple[str, ...], set[tuple[tuple[str, ...], str]]] = {}
        said: list[tuple[tuple[str, ...], str]] = [
            ((kind,), form.literal) for kind, some in self.acts.items() for form in some if not form.fields
        ]
        for name, slot in self.slots.items():
            if isinstance(slot, Sentences):
                said += [((name, value), text) for value, some in slot.sentences.items() for text in some]
        for meaning, text in said:
            if words := telling(text):
                found.setdefault(words, set()).add((meaning, text))
        for kind, texts in common_file().heard.items():
            plain = [form.literal for form in self.acts.get(kind, ()) if not form.fields]
            for text in texts if plain else ():
                found.setdefault(telling(text), set()).add(((kind,), plain[0]))
        return found

    @cached_property
    def named_by_telling(self) -> dict[tuple[str, ...], set[tuple[str, str]]]:
        """(kind, form) of the acts' forms that hold one name and nothing else, by the words around it that tell."""
        found: dict[tuple[str, ...], set[tuple[str, str]]] = {}
        for kind, some in self.acts.items():
            for form in some:
                if form.fields in _NAME_ALONE and (words := telling(form.literal)):
                    found.setdefault(words, set()).add((kind, _MARKS.sub(_cue_or_gap, form.text)))
        return found

    @cached_property
    def forms_by_telling(self) -> dict[tuple[str, tuple[str, ...]], str]:
        """Forms by the slot that they say, and the words around its value that tell; shortest ones first."""
        found: dict[tuple[str, tuple[str, ...]], str] = {}
        for name, slot in self.slots.items():
            for form in () if isinstance(slot, Sentences) else sorted(slot.forms, key=len):
                found.setdefault((name, telling(form.replace("{}", " "))), form)
        return found

    @cached_property
    def openings(self) -> tuple[re.Pattern[str], ...]:
        """Patterns of the leads, those that say most first, with a group for what is asked for."""
        leads = {lead for some in (*self.leads.values(), self.lists) for lead in some if "{}" in lead}
        made = []
        for lead in sorted(leads, key=lambda lead: (-len(lead), lead)):
            before, after = map(_with_gaps, lead.split("{}"))
            made.append(rf"{before}(?P<items>(?:(?![.!?]\s).)+){after}(?=\s|$)")
            if lead in self.lists:  # the same, in lines
                made.append(rf"{before.removesuffix(re.escape(' '))}\n(?P<items>- .+)")
        return tuple(re.compile(rf"(?<!\w){pattern}", re.IGNORECASE | re.DOTALL) for pattern in made)

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of all these phrases, in lower case: what a careful reader takes a misspelt word for."""
        common = common_file()
        texts = [*self.intros, *self.lists, *self.closings, *common.greetings, *common.complete]
        texts += [text for join in self.joins for text in join]
        texts += [form.literal for forms in self.acts.values() for form in forms]
        texts += [text for slot in self.slots.values() for text in (*slot.forms, slot.format.pattern)]
        for table in (self.leads, self.before, self.bounds):
            texts += [text for some in table.values() for text in some]
        return words_of(" ".join(texts)) | words_of(" ".join(SLANG))


def _any_of(texts: Iterable[str], end: str) -> re.Pattern[str]:
    """Compile a pattern of any of these texts before this `end`, the longest first; it fits nothing without texts."""
    longest_first = sorted(set(texts), key=lambda text: (-len(text), text))
    return re.compile(f"(?:{'|'.join(map(re.escape, longest_first))}){end}" if longest_first else r"(?!)")


def _cue_or_gap(mark: re.Match[str]) -> str:
    return "{}" if mark[1] is None else mark[1]


def _with_gaps(text: str) -> str:
    """Make the pattern of a text in which each {field} stands for anything."""
    return "".join(".+?" if part[:1] == "{" else re.escape(part) for part in re.split(r"(\{\w+\})", text))


@cache
def common_file() -> _Common:
    """Read the phrases that all customers share."""
    return read_toml(COMMON, _Common)
