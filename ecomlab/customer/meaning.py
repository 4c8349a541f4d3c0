"""What the questions of a message mean to one customer: slots of theirs, or none, and whether a value named is so."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date

from ecomlab.customer.acts import Act
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.reading.reading import Question, Reading
from ecomlab.customer.reading.words import NUMBER
from ecomlab.customer.templates import Template, common_file
from ecomlab.other_words import SPELLED, read_number
from ecomlab.slots import PRICE, slot_type
from ecomlab.task import Slot
from ecomlab.values import FORMATS
from ecomlab.wishes import AnyBut, Demand, If, OneOf, Taste, Wish
from ecomlab.world.orders.references import same_time
from ecomlab.world.ranking import Worth
from ecomlab.world.substitutes import noun

_TENS = re.compile(r"\b(\w+ty) (one|two|three|four|five|six|seven|eight|nine)\b")
"""Tens and ones, which a message may write without their hyphen."""
CHAIN = "chain"
"""Slot that leads from another order to the one that is meant."""
CORRECTION = "correction"
"""Slot that says that another one is meant than was said before."""
RANKED = {"days": "delivery"}
"""What customers call a preference, where it is not as the slot is called."""
QUOTED = 4
"""Most words of a message that are quoted when it is asked back."""


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COMPARED = re.compile(r"\b(?:more|less|over|under|above|below|within|than|longer|least|most|up to|fewer)\b")
_KEPT = re.compile(
    r"\b(?:needs?|must|stays?|keep|again|same|ha(?:ve|s) to|as well|too|any|another|other|matters?|insist|important|"
    r"fixed)\b"
)
_LOOSE = re.compile(
    r"\b(?:e\.g\.|for example|for instance|such as|say|like|matters?|at least|any|some|prefer\w*)"
)
_EXCLUDES = re.compile(r"\b(?:not?|but|except|other than|without|never|avoid\w*|exclud\w*|anything)\b|n't\b")
_CONDITION = re.compile(r"\b(?:if|unless|otherwise|else|in case|when|should|were|whether|provided)\b")
_PAST = re.compile(r"\b(?:was|were|did|had|made|bought|original(?:ly)?|old)\b")


@dataclass(frozen=True)
class Meaning:
    """A question, the customer's slots that it asks for, and whether the one value that it names is so."""

    question: Question
    slots: tuple[Slot, ...]
    so: bool | None = None
    echo: bool = False
    """It only repeats what the customer has said."""


@dataclass(frozen=True)
class Hearing:
    """A message as one customer hears it: `option` names the option of an item, `today` is by their clock."""

    state: GoalState
    templates: Mapping[str, Template]
    option: Callable[[int], str]
    text: str
    today: date | None

    def meanings(self, reading: Reading) -> list[Meaning]:
        """Find what each question means. Where candidates are described, only what tells them apart is asked for."""
        questions, state = reading.questions, self.state
        if described(reading):
            apart = [q for q in questions if len(q.values) > 1 and slot_type(q.slot).describes]
            had, hidden = ({slot.name for slot in slots} for slots in (state.known, state.withheld))
            counts = {"quantity", "units"} - had  # of which one goes without saying
            questions = tuple(
                [q for q in apart if q.slot in had | hidden]
                + [q for q in questions if not q.values and (q.slot in hidden or q.slot in counts)]
                or apart
                or questions
            )
        found = [self._meaning(question) for question in questions]
        return [one for one in found if not self._within_limits(one)] or found

    def _meaning(self, question: Question) -> Meaning:
        state, text, low = self.state, self.text, self.text.lower()
        slots = meant(question, state, self.option)
        if speaks_of_the_past(text):  # not what is to come in its place
            names = (question.slot, *slot_type(question.slot).alike)
            past = [slot for slot in slots if not isinstance(slot.value, Demand)]
            slots = [
                one
                for one in past
                if not any(isinstance(one.value, Worth) and is_demand_on(one, name) for name in names)
            ]
        kept = state.named("must")
        about_new = any(isinstance(slot.value, Demand) for slot in slots)
        if kept and kind_of(question.slot) == "attr" and not about_new and (not slots or asks_to_keep(text)):
            return self._of_kept(question, kept, [question.slot.removeprefix("attr:")])
        if kept and question.slot == "must" and question.values:
            named = [value.replace(" ", "_") for value in question.values]
            if " or " in text and len(named) == 1:  # "Must it be black again, or is another color fine?"
                question = replace(question, slot=f"attr:{named[0]}", values=())
            return self._of_kept(question, kept, named)
        told = not any(slot in state.withheld for slot in slots)
        if question.slot in ("thing", "parts") and re.search(r"\belse\b", text) and told:
            return Meaning(question, ())  # beside what was said
        correction = next((slot for slot in state.known if slot.name == CORRECTION), None)
        if correction is not None and slots and told:
            return Meaning(question, (correction,))
        if self._of_others(question, slots) or self._of_the_new(question, slots):
            slots = []
        ranks = " or " not in text and re.search(r"\b(?:then|before|over|ahead of)\b", low)
        if question.slot == "importance" and len(question.values) > 1 and len(slots) == 1 and ranks:
            ranked = [RANKED.get(one, one) for one in question.values]
            return Meaning(question, tuple(slots), ranked == list(slots[0].value)[: len(ranked)])
        if question.values and all(self._told(value, question.slot, slots) for value in question.values):
            return Meaning(question, tuple(slots), True, echo=True)
        so = None
        if len(question.values) == 1 and len(slots) == 1 and comparable(question.slot, slots[0]):
            so = agrees(slots[0], question.values[0], self.templates.get(slots[0].name), low, self.today)
        return Meaning(question, tuple(slots), so)

    def _within_limits(self, one: Meaning) -> bool:
        """Tell whether a question only names prices or the like of several candidates, all within a limit that was
        said: "The purple one for $68 or the red one for $76?"."""
        if len(one.question.values) < 2 or len(one.slots) != 1 or one.slots[0] in self.state.withheld:
            return False
        (slot,), template = one.slots, self.templates.get(one.slots[0].name)
        if slot_type(slot.name).op == "==" or one.question.slot != slot.name:
            return False
        return all(agrees(slot, value, template, "") is not False for value in one.question.values)

    def _told(self, value: str, name: str, slots: Sequence[Slot]) -> bool:
        """Tell whether the customer has said this value of a slot, and has it nowhere still to say."""
        names = (name, *slot_type(name).alike)
        every = [slot for slot in self.state.known if slot.name in names]  # whichever item it was said of
        so = [slot for slot in (*slots, *every) if self._agrees(slot, value)]
        return bool(so) and not any(slot in self.state.withheld for slot in so)

    def _agrees(self, slot: Slot, value: str) -> bool | None:
        return agrees(slot, value, self.templates.get(slot.name), self.text.lower())

    def _of_kept(self, question: Question, kept: Slot, named: Sequence[str]) -> Meaning:
        """Judge a question whether attributes have to stay as they were."""
        kept_ones = [noun(name) in kept.value for name in named]
        stays = any(kept_ones)
        if kept in self.state.withheld:
            return Meaning(question, (kept,))
        if not stays and question.slot != "must":  # "Should it be pink again?" is free
            return Meaning(question, ())
        if stays and not all(kept_ones):  # "besides the color, is there the lid or the capacity?"
            return Meaning(question, (kept,))
        return Meaning(question, (kept,), stays, echo=stays and bool(question.values))

    def _of_others(self, question: Question, slots: Sequence[Slot]) -> bool:
        """Tell whether a choice that names no item is about another item than those whose value was said and is not
        among it: "Turquoise or purple?", where the mat is to be blue."""
        if question.item >= 0 or len(question.values) < 2 or not slots:
            return False
        if not slot_type(question.slot).describes or len({slot.item for slot in self.state.every}) < 2:
            return False
        if any(isinstance(slot.value, Taste) for slot in slots):  # it may be any of them
            return False
        if any(slot in self.state.withheld or slot.name in self.state.own for slot in slots):
            return False
        return not any(self._agrees(slot, value) for slot in slots for value in question.values)

    def _of_the_new(self, question: Question, slots: Sequence[Slot]) -> bool:
        """Tell whether the brand of a replacement is asked for, where the customer only has the old one's, and has said
        it."""
        old = bool(slots) and all(s.name.startswith("was_") and s not in self.state.withheld for s in slots)
        return old and not question.slot.startswith("was_") and not speaks_of_the_past(self.text)


def described(reading: Reading) -> bool:
    """Tell whether a message describes several candidates: "the black one by X or the pink one by Y?"."""
    several = [q for q in reading.questions if len(q.values) > 1 and slot_type(q.slot).describes]
    return len(several) > 1 or (reading.which and bool(several))


def describes(question: Question) -> bool:
    """Tell whether a question only names values that describe a thing."""
    return bool(question.values) and slot_type(question.slot).describes


def meant(question: Question, state: GoalState, option: Callable[[int], str]) -> list[Slot]:
    """List the slots that a question asks for, withheld ones first: of its item, or of any. Where the customer has no
    such slot, others that answer the same question."""
    slots = [
        s for s in (*state.withheld, *state.known) if question.item in (-1, s.item) or s.name in state.own
    ]
    new = [s for s in slots if s.name == "replacement" and s.value]
    kind = slot_type(question.slot)
    if (
        new
        and state.identified
        and (kind.describes or kind.is_limit)
        and not question.slot.startswith("was_")
    ):
        return [s for s in new if question.slot in dict(s.value)]
    for name in (question.slot, *kind.alike):
        found = [
            slot for slot in slots if name in (slot.name, kind_of(slot.name)) or is_demand_on(slot, name)
        ]
        if name in ("relation", CORRECTION) and question.slot not in ("relation", CORRECTION):
            # who has said "the one before" does not know its day
            found = [slot for slot in found if slot in state.withheld]
        # The colour of one thing is an attribute, of another the option.
        as_option = [s for s in slots if s.name == "option" and name == f"attr:{option(s.item)}"]
        if not any(slot in state.withheld for slot in found):
            found = [slot for slot in as_option if slot in state.withheld] or found or as_option
        if found:
            return found
    return [s for s in new if question.slot in dict(s.value)]


def verdict(asked: Sequence[Meaning]) -> list[Act]:
    """Say yes or no where values are named that are all so, or all not, and nothing else is asked."""
    said = {one.so for one in asked}
    return [Act("yes" if said == {True} else "no")] if said in ({True}, {False}) else []


def speaks_of_the_past(text: str) -> bool:
    """Tell whether a message speaks of something as it was."""
    return _PAST.search(text.lower()) is not None


def called(slot: str) -> str:
    """Name what a slot holds, as in "the brand"."""
    return common_file().names.get(slot) or f"the {slot.removeprefix('attr:').replace('_', ' ')}"


def is_demand_on(slot: Slot, name: str) -> bool:
    """Tell whether a slot with sentences of its own is a demand on the slot that is named."""
    value = slot.value
    if isinstance(value, If):
        return name in (value.slot, PRICE.name)
    if isinstance(value, Worth):
        return name in [wanted for wanted, *_ in value.bonuses]
    return isinstance(value, Demand) and value.slot == name


def repeats(text: str, wish: Wish | str) -> bool:
    """Tell whether a text says a wish's words again: all values that they hold, excluded where they exclude them. A
    reference in words is said again as a whole: one that leads on to another is not the same."""
    low, meant = text.lower(), wish.value if isinstance(wish, Demand) else wish
    if isinstance(wish, str):
        return said_again(wish).search(text) is not None
    if isinstance(meant, AnyBut) and not _EXCLUDES.search(low):
        return False
    said = said_words(wish)
    return bool(said) and all(one in low for one in said)


def decides(text: str, wish: Wish | str) -> bool:
    """Tell whether a text that has a condition's words says what it comes to: "no aluminum one is $46 or less"."""
    meant = wish.value if isinstance(wish, Demand) else wish
    return isinstance(meant, If) and not _CONDITION.search(text.lower())


def said_again(reference: str) -> re.Pattern[str]:
    """Make the pattern of a reference's words in an agent's mouth; no link of a longer one stands before or after."""
    words = re.sub(r"\bmy\b", "(?:my|your)", re.escape(reference))
    return re.compile(rf"(?<!before )(?<!after ){words}\b(?!,? (?:before|after)\b)", re.IGNORECASE)


def said_words(wish: Wish | str) -> list[str]:
    """Write the values that a wish's words hold as messages have them, in lower case; of a reference in words, all."""
    if isinstance(wish, str):
        return [wish.lower()]
    said = [FORMATS["money"].write(one) if isinstance(one, int) else str(one) for one in wish.said_values]
    return [one.lower() for one in said]


def kind_of(slot: str) -> str:
    """Return the name of a slot without that of an attribute."""
    return slot.partition(":")[0]


def quoted(text: str) -> str:
    """Prepare words of a message for a question back: a few at most, for nobody repeats a long sentence."""
    words = text.replace('"', "'").strip()
    return words if len(words.split()) <= QUOTED else ""


def comparable(asked: str, had: Slot) -> bool:
    """Tell whether a value that is named for one slot can be one of another, which the customer has."""
    slot = had.name
    same = asked.removeprefix("was_") == slot.removeprefix("was_")
    same = same or is_demand_on(had, asked.removeprefix("was_"))
    as_option = slot == "option" and asked.startswith(("attr", "option"))
    return same or as_option or {asked, slot} in ({"price", "budget"}, {"quantity", "units"})


def asks_to_keep(text: str) -> bool:
    """Tell whether a question about an attribute of something sold out asks if it has to stay as it was."""
    return _KEPT.search(text.lower()) is not None


def agrees(
    slot: Slot, said: str, template: Template | None, text: str, today: date | None = None
) -> bool | None:
    """Tell whether the value that a message names beside a slot is so, times by the clock; None where yes and no would
    both mislead."""
    value, name, limits = slot.value, slot.name, slot_type(slot.name).op != "=="
    value = value.value if isinstance(value, Demand) else value
    if isinstance(value, Worth):
        return is_worth(value, said)
    if isinstance(value, Wish):  # its words say enough to exclude a value, never to affirm one
        among = said.casefold() in [one.casefold() for one in getattr(value, "values", ())]
        excluded = (isinstance(value, AnyBut) and among) or (isinstance(value, OneOf) and not among)
        return False if excluded else None
    if isinstance(value, list | tuple):
        if name == "importance":
            return bool(value) and said.lower() == str(value[0]).lower()
        flat = {str(one).lower() for one in value if isinstance(one, str)}
        return said.lower() in flat if flat else None
    if isinstance(value, int) and not (template and template.format.words and slot_type(name).mark != NUMBER):
        number = said_number(name, said)
        if number is None:
            return None
        if number == value and (limits or not _COMPARED.search(text)):
            return True
        if limits:  # "does the rating matter, say 4 stars?" names no limit
            admitted = slot_type(name).admits(value, number)
            return None if admitted or _LOOSE.search(text) else False
        return None if _COMPARED.search(text) else False
    if template and template.format.words:
        named = next((m for words, m in template.format.words.items() if words.lower() == said.lower()), None)
        if named is None:
            return None
        return same_time(value, named, today) if name == "when" and today else bool(named == value)
    if template is not None:
        said = _read(said, template)
    return str(said).casefold() == str(value).casefold()


def is_worth(worth: Worth, said: str) -> bool | None:
    """Tell whether an amount with the slot of its unit, "$10 rating", is what that is worth; None without an amount."""
    number, unit = said_number("worth", said), said.rpartition(" ")[2]
    terms = dict(worth.terms)
    if number is None:
        return None
    if unit not in terms and worth.bonuses:  # which of its terms is meant, is not told
        return None
    return terms[unit] == number if unit in terms else number in terms.values() and unit == ""


def _read(said: str, template: Template) -> str:
    for form in (said, said.title()):  # "october 10"
        with suppress(ValueError, KeyError, IndexError):
            return str(template.format.read(form))
    return said


def said_number(name: str, said: str) -> int | None:
    """Read the amount in a value of a slot, in the slot's units; None where there is none."""
    scale = slot_type(name).scale * (7 if name == "days" and "week" in said else 1)
    found = _NUMBER.search(said.replace(",", ""))
    if found:
        return round(float(found.group()) * scale)
    words = _TENS.sub(r"\1-\2", said.lower())
    spelled = re.match(SPELLED, f"one {words}" if words.startswith("hundred") else words)
    number = read_number(spelled.group()) if spelled else None
    return None if number is None else number * scale
