"""Phrases: the sentences of one kind of customer, as data that is rendered and parsed by the same forms.

The form of an act holds {fields} and [cues], words that decide what it means and carry no noise. A slot that is not a
property of a product has sentences of its own. What is said comes from the bank of utterances; what a slot holds comes
from TOML, of which all customers share `phrases.toml`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from ecomlab.customer.fillers import telling
from ecomlab.customer.noise import SLANG, Piece, words_of
from ecomlab.customer.replacements import REPLACEMENT
from ecomlab.customer.utterances import Form, frames_of
from ecomlab.settings import Strict, read_toml
from ecomlab.slots import LIMITS, SHIPPED, SlotType, declare, slot_type
from ecomlab.suggest import unknown
from ecomlab.values import FORMATS, Format, any_of, choice
from ecomlab.wishes import AMOUNT_FORMAT, Earlier, Wish
from ecomlab.world.joint import GiveWay, Joint
from ecomlab.world.reviews import reviews_format
from ecomlab.world.unmet import GIVE_WAY

COMMON_ASKS = tuple(slot_type(name).name for name in SHIPPED if slot_type(name).of != "request")
"""Product slots that a customer may be asked about, where their file names none."""
FIELDS = ("type", "plural", "number", "item", "wanted", "details", "seen")
"""What a form of an act may hold: the product type, its plural, a number of units, the item with "a" and as the
customer refers to it, its properties alone, and what the agent named or did."""
WISHES = {name: kind.format() for name, kind in Wish.kinds.items() if kind.pattern}
"""Formats of wishes with sentences of their own, by the name of their class."""
_FORMATS = {**FORMATS, **WISHES, "amount": AMOUNT_FORMAT, "replacement": REPLACEMENT, "demands": GIVE_WAY}
_FORMATS["reviews"] = reviews_format()
_WHOLE = Format(str, "", str)
"""Of a slot that has whole sentences for its values."""
_ENDLESS = ("name", "names", "type", *(kind.__name__ for kind in (*Joint.__subclasses__(), GiveWay)))
"""Formats of values of which only the words around them tell where they begin and end."""
_BEFORE, _SLOT, _OPENING = "before ", "slot ", "opening "
"""Beginnings of the names under which the bank holds what is no later act: lead-ins of slots' sentences, these, and
what openings are made of."""
_NAME_ALONE = (frozenset(("type",)), frozenset(("seen",)))
SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n(?!- )")


@dataclass(frozen=True)
class Template:
    """The sentences of one slot: forms hold {} where the value stands; a closed set of values may have whole sentences
    for each."""

    format: Format = _WHOLE
    forms: tuple[str, ...] = ()
    """Forms that tell the slot, where the bank has none."""
    once: bool = False
    """An announcement, said together with what it announces, and not a slot of the goal."""
    asked: tuple[str, ...] = ()
    """Words by which a question asks for it, beside those in `asks.toml`; by default its name."""
    sentences: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """By value, whole sentences in place of forms."""
    bank: Mapping[str, tuple[Form, ...]] = field(default_factory=dict, hash=False)
    """Forms of the bank in which it is told by "", or repeated by "again"; further sentences by value."""

    def telling(self, value: Any, again: bool = False) -> tuple[Form, ...]:
        """List the forms in which the value may be told, or told `again`."""
        if self.sentences:
            return (*map(Form, self.sentences[value]), *self.bank.get(value, ()))
        forms = (again and self.bank.get("again")) or self.bank.get("") or tuple(map(Form, self.forms))
        if isinstance(value, Earlier):  # so long that nothing can follow it
            forms = tuple(form for form in forms if form.text.endswith("{}."))
        return forms

    def word(self, form: str, value: Any) -> list[Piece]:
        """Word the value in this form."""
        before, gap, after = form.partition("{}")
        if not gap:
            return [Piece(form, "fixed")]
        said = Piece(self.format.write(value), "fixed", self.format.others(value))
        return [Piece(before), said, Piece(after)]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All texts, longest first."""
        texts = {*self.forms, *(text for some in self.sentences.values() for text in some)}
        texts |= {form.text for some in self.bank.values() for form in some}
        return tuple(sorted(texts, key=lambda text: (-len(text), text)))

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str], Any], ...]:
        """Of each text: its longest part around the value, in lower case, its pattern, whatever the case of its first
        letter, and the value that it has for itself."""
        values = {form.text: value for value in self.sentences for form in self.telling(value)}
        made = []
        for text in self.texts:
            before, gap, after = text.partition("{}")
            if gap:
                first = f"(?i:{re.escape(before[:1])})" if before else ""
                value = self.format.pattern if before else f"(?i:{self.format.pattern})"
                told = f"(?<![\\w,] ){first}{re.escape(before[1:])}({value}){re.escape(after)}(?=\\s|$)"
            else:
                told = f"(?i:{re.escape(text)})"
            made.append((max(before, after, key=len).lower(), re.compile(told), values.get(text)))
        return tuple(made)

    @cached_property
    def delimited(self) -> re.Pattern[str] | None:
        """Pattern of a value, wherever in a sentence; None where only the words around one tell where it is."""
        if not self.format.pattern or any(self.format is _FORMATS[name] for name in _ENDLESS):
            return None
        return re.compile(rf"(?<![\w$.])(?:{self.format.pattern})(?![\w-])")

    def match(self, text: str, at: int = 0) -> tuple[int, Any] | None:
        """Read (end, value) of the longest sentence that tells this slot at a place of a text; None where none does."""
        low = text[at:].lower()
        matches = [
            (match.end(), match[1] if value is None else value, value is None)
            for around, pattern, value in self._patterns
            if around in low and (match := pattern.match(text, at))
        ]
        if not matches:
            return None
        end, value, written = max(matches, key=lambda found: found[0])
        return end, self.format.read(value) if written else value


def _of_file(acts: Mapping[str, Sequence[Form]]) -> dict[str, tuple[Form, ...]]:
    """Those of the acts whose forms a file of phrases gave."""
    return {kind: tuple(some) for kind, some in acts.items() if all(form.held is None for form in some)}


class _SlotFile(Strict):
    """Table of a slot: the name of a format, pairs of values and words, or sentences by value."""

    format: str = ""
    values: dict[str, str] | tuple[tuple[str | int, str], ...] = ()
    sentences: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    forms: tuple[str, ...] = ()
    once: bool = False
    asked: tuple[str, ...] = ()

    @model_validator(mode="after")
    def one_kind(self) -> Self:
        if sum(map(bool, (self.format, self.values, self.sentences))) != 1:
            raise ValueError("needs exactly one of format, values and sentences")
        if self.format and self.format not in _FORMATS:
            raise ValueError(unknown("format", self.format, _FORMATS))
        if any("{}" not in form for form in self.forms) or (self.sentences and self.forms):
            raise ValueError("forms hold {} where the value stands; sentences stand alone")
        return self

    def template(self) -> Template:
        if self.sentences:
            return Template(once=self.once, asked=self.asked, sentences=self.sentences)
        found = choice(dict(self.values)) if self.values else _FORMATS[self.format]
        return Template(found, self.forms, self.once, self.asked)


class _File(Strict):
    """Schema of a file of phrases."""

    frames: str = ""
    facts: bool = False
    """They tell facts, not wishes."""
    article: str = "the"
    asks: tuple[str, ...] | None = None
    anew: tuple[str, ...] = ()
    describes: tuple[str, ...] = ()
    intros: tuple[str, ...] = ()
    leads: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    acts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    before: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    bounds: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    slots: dict[str, _SlotFile] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)


class _Common(_File):
    """Schema of the common file, whose phrases others may replace."""

    effects: dict[str, tuple[str, ...]]
    heard: dict[str, tuple[str, ...]]
    names: dict[str, str]


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrases of one kind of customer."""

    intros: tuple[str, ...] = ()
    """Sentences with which they begin such a subtask of a journey, and which occur nowhere else."""
    leads: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)
    """What openings are made of; {items} is where the items stand. "default" and lists that only some environments have
    begin one, "list" begins one with a list, "also" goes on with further items, "greeting" stands before; at the end,
    "complete" says that this is all, and "closing" does not."""
    acts: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)
    before: Mapping[str, Sequence[Form]] = field(default_factory=dict)
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
        return cls._made(_File(leads={"default": tuple(leads)}), limits, slots)

    @classmethod
    def _made(cls, file: "_File", limits: Sequence[SlotType], slots: Mapping[str, Template]) -> "Phrases":
        common, more = common_file(), tuple(map(declare, limits))
        asks = COMMON_ASKS if file.asks is None else file.asks
        acts = {kind: tuple(map(Form, forms)) for kind, forms in file.acts.items()}
        leads = {
            kind: tuple(Form(text.replace("{}", "{items}")) for text in texts)
            for kind, texts in file.leads.items()
        }
        slots = {**slots, **{name: table.template() for name, table in file.slots.items()}}
        for kind, forms in acts.items():
            for used in {name for form in forms for name in form.fields} - set(FIELDS):
                raise ValueError(f"acts.{kind}: {unknown('field', used, FIELDS)}")
        made = cls(
            intros=file.intros,
            leads=leads,
            acts=acts,
            before={kind: tuple(map(Form, texts)) for kind, texts in file.before.items()},
            bounds={**common.bounds, **file.bounds, **{limit.name: limit.forms for limit in more}},
            article=file.article,
            slots=slots,
            asks=(*asks, *(limit.name for limit in more)),
            limits=(*LIMITS, *more),
            anew=file.anew,
            describes=file.describes,
            data=file.data,
        )
        made = made.speaking(frames_of(file.frames, file.facts))
        for name, slot in made.slots.items():
            if not slot.texts:
                raise ValueError(
                    f"slots.{name}: needs forms, sentences that hold {{}} where the value stands"
                )
        return made

    def speaking(self, frames: Mapping[str, tuple[Form, ...]]) -> "Phrases":
        """Copy these phrases with frames of a bank, of acts, openings, lead-ins and slots. Those of a file of phrases
        stay."""

        def named(begin: str) -> dict[str, tuple[Form, ...]]:
            """Frames by the rest of their name."""
            some = (name for name in frames if f"{name} ".startswith(begin))
            return {name.removeprefix(begin.rstrip()).strip(): frames[name] for name in some}

        others = (_BEFORE, _SLOT, _OPENING)
        acts = {kind: some for kind, some in frames.items() if not f"{kind} ".startswith(others)}
        leads = {name or "default": some for name, some in named(_OPENING).items()}
        slots = {name: replace(slot, bank=named(f"{_SLOT}{name} ")) for name, slot in self.slots.items()}
        return replace(
            self,
            leads=leads | _of_file(self.leads),
            acts=acts | _of_file(self.acts),
            before=named(_BEFORE) | _of_file(self.before),
            slots=slots,
        )

    @cached_property
    def lead_in(self) -> re.Pattern[str]:
        """Pattern of the sentences that lead in a slot's."""
        texts = [form.text for some in self.before.values() for form in some]
        return re.compile(rf"(?:{any_of(texts)})(?=\s|$)" if texts else r"(?!)")

    def describe(self, name: str) -> bool:
        """Tell whether an item may be described by this product slot."""
        return not self.describes or bool({name, name.partition(":")[0]} & {*self.describes})

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
    def _acts(self) -> dict[str, list[tuple[str, Form]]]:
        return _by_first_word(self.acts)

    @cached_property
    def _openings(self) -> dict[str, list[tuple[str, Form]]]:
        return _by_first_word(self.leads)

    def recognised(self, text: str, at: int = 0, opening: bool = False) -> tuple[str, re.Match[str]] | None:
        """Recognise the act, or the part of an opening, that is said at this place of a text, by the form that fits
        with most words of its own."""
        begins, forms = text[at:].lower(), self._openings if opening else self._acts
        word = next(iter(begins.split(None, 1)), "")
        for kind, form in forms.get(word) or forms[""]:
            # Most forms are ruled out by how they begin, without their patterns.
            if begins.startswith(form.lead) and (match := form.pattern.match(text, at)):
                return kind, match
        return None

    @cached_property
    def by_telling(self) -> dict[tuple[str, tuple[str, ...]], set[str]]:
        """Texts that say the same: sentences and forms with one gap, {}, by the words of theirs that tell, and for the
        forms of a slot by its name, too. What is only heard stands for a sentence of its act."""
        forms = [form for some in self.acts.values() for form in some]
        said = [("", f.telling, f.open) for f in forms if not f.fields or f.fields in _NAME_ALONE]
        for kind, heard in common_file().heard.items():
            sentences = [form.open for form in self.acts.get(kind, ()) if not form.fields]
            said += [("", telling(text), sentence) for text in heard for sentence in sentences[:1]]
        for slot_name, slot in self.slots.items():
            name = "" if slot.sentences else slot_name
            said += [(name, telling(text.replace("{}", " ")), text) for text in slot.texts]
        found: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        for name, words, text in said:
            if name or words:
                found.setdefault((name, words), set()).add(text)
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of all these phrases, in lower case: what a careful reader takes a misspelt word for."""
        tables = (self.leads, self.acts, self.before)
        texts = [form.literal for table in tables for some in table.values() for form in some]
        texts += [text for slot in self.slots.values() for text in (*slot.texts, slot.format.pattern)]
        texts += [text for some in self.bounds.values() for text in some]
        texts += [*self.intros, *common_file().names.values(), *SLANG]
        return words_of(" ".join(texts))


def _by_first_word(forms: Mapping[str, Sequence[Form]]) -> dict[str, list[tuple[str, Form]]]:
    """Group (kind, form) of forms by the word with which they may begin, by "" those that begin with a field; those
    that say most first."""
    every = [(kind, form) for kind, some in forms.items() for form in some]
    every.sort(key=lambda said: -len(said[1].literal))
    words = {"", *(form.first_word for _, form in every)}
    return {word: [said for said in every if said[1].first_word in (word, "")] for word in words}


@cache
def common_file() -> _Common:
    """Read the phrases that all customers share."""
    return read_toml(Path(__file__).with_name("phrases.toml"), _Common)
