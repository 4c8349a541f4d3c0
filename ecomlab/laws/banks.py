"""Banks of what agents say, with typed gaps, put into real conversations: for UNDERSTOOD and for fitting the reader."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.schema import Attribute
from ecomlab.customer.reading.features import THING_KINDS
from ecomlab.customer.reading.vocabulary import Vocabulary, vocabulary_of
from ecomlab.customer.reading.words import THINGS
from ecomlab.customer.templates import Phrases
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.laws.tool_introspection import drawn
from ecomlab.seeding import pick, rng
from ecomlab.slots import slot_type
from ecomlab.task import Slot, Task
from ecomlab.values import MONTHS
from ecomlab.wishes import Wish

LEVELS = range(5, 13)
TASKS = 24
"""Number of tasks per level into which a bank is put."""
DISTINCT = 4
"""Draws of a word that no other gap of the message has."""
TRIES = 60
"""Tasks that are tried for a message."""
NAMES = {"original_brand": "was_brand", "original_feature": "was_feature"}
"""Names of slots in the banks of questions, and theirs here."""
_MEANT = {
    "quantity": {"RETURN": "units"},
    "count": {"CART": "quantity"},
    "total": {"BUNDLE": "budget"},
    "date": {"STATUS": "placed", "RETURN": "ordered"},
    "ordered": {"STATUS": "placed"},
}
"""What a writer's word for a slot means in an environment."""
_ELSE = {"placed": "when", "when": "placed", "brand": "was_brand", "feature": "was_feature"}
"""Slots that stand in for one that an environment's customers do not have."""
UNNAMED = "?"
"""In place of a slot that a label does not name: another fact of a case."""
_GAP = re.compile(r"\{(\w+?)(\d?)(?::([\w ]+))?\}")
LABELLED = frozenset(("brand", "value", "price", "total", "days", "rating", "count", "date", "fact", "attr"))
"""Gaps whose role is labelled, a letter each."""
_WORDS = {
    "status": ("shipped", "delivered", "processing", "out for delivery", "cancelled", "delayed"),
    "answer": ("$8.99", "30 days", "$14.49", "46 hours", "no", "yes", "two weeks", "15%", "24 months", "at no cost"),
    "fact": (
        "you ordered by phone", "it's a gift", "you paid by credit card", "you're a Gold member", "it goes to Ohio",
        "the box has been opened", "it's on clearance", "your order totals $285", "you bought it in our app",
    ),
    "reason": (
        "it's past the return window", "the shop doesn't allow it", "the carrier has it already",
        "it was a final sale", "the item is no longer made",
    ),
}  # fmt: skip
"""What stands in gaps that no task fills."""
_COUNTS = ("two", "three", "four", "five")


_TOLD = frozenset(("STATE", "ANSWER", "ANNOUNCE", "PROMISE", "INSTRUCT", "HANDOVER", "WAIT", "SELFCORRECT"))


def named_acts(acts: frozenset[str]) -> frozenset[str]:
    """Name a writer's acts as the model does (`reading.model.ACTS`)."""
    return frozenset("TELL" if act in _TOLD else act for act in acts if act != "MARKUP")


@dataclass(frozen=True)
class Listener:
    """A customer as a bank's message finds them: the wishes and the vocabulary of a task's first subtask."""

    env: str
    task: Task
    phrases: Phrases
    vocabulary: Vocabulary
    slots: tuple[Slot, ...]
    """Withheld ones first."""
    types: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A stretch of a message that does one thing."""

    start: int
    end: int
    acts: frozenset[str]
    asks: frozenset[str]
    roles: tuple[tuple[int, int, str], ...] = ()
    """Where values stand in the message, and what each is said of: W a wish, T a thing on offer, O an order or a rule,
    N what is denied or only named beside; ? where no label says."""


@dataclass(frozen=True)
class Case:
    """A message of a bank in one conversation, and what it does and asks for."""

    bank: str
    env: str
    group: str
    """Its writer, or the form of a question."""
    listener: Listener
    text: str
    asks: frozenset[str]
    open: bool
    acts: frozenset[str] | None = None
    """None for a bank of questions, which labels no acts."""
    or_acts: frozenset[str] | None = None
    """Acts that a second reader saw, where they differ."""
    parts: tuple[Part, ...] | None = None
    certain: bool = True
    """All that it asks for is something that this customer can be asked about."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a bank."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@cache
def tasks_of(env: str, shop: Shop) -> list[Task]:
    """Draw the tasks of an environment into which banks are put."""
    numbers = range(5_000_000, 5_000_000 + TASKS)
    return [task for d in LEVELS for task in drawn(env, d, numbers, shop)[0]]


@cache
def listener(env: str, number: int, shop: Shop) -> Listener:
    """Return the customer of one of these tasks."""
    task, lexicon = tasks_of(env, shop)[number], lexicon_of(shop.catalog)
    goal = task.parts[0].goal
    phrases = ENVIRONMENTS[env].phrases
    types = tuple(str(goal.get("type", "", item)) for item in goal.items)
    listed = [kind for slot in goal.said() if slot.name in ("parts", "added") for kind in slot.value]
    slots = (*goal.said(withheld=True), *goal.said())
    return Listener(env, task, phrases, vocabulary_of(phrases, lexicon, [*types, *listed]), slots, types)


def messages(path: Path, shop: Shop) -> list[Case]:
    """Put a bank of messages, of each one once, to customers whose things and attributes it speaks of if any do."""
    others = [env for env in ENVIRONMENTS if env != "JOURNEY"]
    found = []
    for number, row in enumerate(rows_of(path)):
        random = rng("bank", path.stem, number)
        envs = [row["env"]] if row["env"] in others else random.permutation(others).tolist()
        best: tuple[float, Case] | None = None
        tried = [
            (env, place)
            for env in envs
            for place in random.permutation(len(tasks_of(env, shop)))[:TRIES].tolist()
        ]
        for env, place in tried:
            missing, case = _message_in(row, path.stem, listener(env, place, shop), shop, random)
            if best is None or missing < best[0]:
                best = missing, case
            if missing < 0.5:
                break
        found += [best[1]] if best else []  # none where the catalog does not carry its environment
    return found


def _message_in(
    row: Mapping[str, Any], bank: str, one: Listener, shop: Shop, random: np.random.Generator
) -> tuple[float, Case]:
    """Put a message to a customer; return how much of it they cannot be asked about, and the case."""
    gaps = Gaps(one, lexicon_of(shop.catalog), shop, random)
    parts, text, missing = [], "", 0.0
    written = row.get("parts") or [row]
    for part in written:
        said, spans = gaps.fill(part["text"], len(text))
        asks, unknown = _asked(part["asks"], one, said, lexicon_of(shop.catalog))
        acts = frozenset(part["acts"]) | (frozenset(["OPEN"]) if part["open"] else frozenset())
        if (
            part["asks"]
            and "parts" not in one.vocabulary.slots
            and {word for word, *_ in part["asks"]} == {"parts"}
        ):
            acts, unknown = acts - {"SET", "CHECK"} | {"OPEN"}, 0  # what else, where nobody has a list
        if "LIST" in acts and not asks:  # no label says what is chosen
            asks = gaps.chosen(part["text"])
        given = iter(part.get("roles", ""))
        roles = tuple(
            (start, end, next(given, "?") if name in LABELLED else "O" if name == "answer" else "?")
            for name, start, end in spans
        )
        parts.append(Part(len(text), len(text) + len(said), acts, asks, roles))
        text, missing = text + said, missing + unknown
    second = row.get("second", {}).get("acts")
    case = Case(
        bank,
        row["env"],
        str(row.get("writer", "")),
        one,
        text,
        frozenset().union(*(part.asks for part in parts)),
        any(part["open"] for part in written),
        frozenset().union(*(part.acts for part in parts)),
        frozenset(second) | (frozenset(["OPEN"]) if row.get("open") else frozenset()) if second else None,
        tuple(parts) if "parts" in row else None,
        missing < 1 and not gaps.unheard_of,
    )
    return missing + gaps.foreign, case


def _asked(
    asks: Sequence[Sequence[str]], one: Listener, text: str, lexicon: Lexicon
) -> tuple[frozenset[str], float]:
    """Name the slots that a writer's labels mean to this customer, and count those that mean none."""
    found, missing, able = set(), 0.0, one.vocabulary.slots
    for word, *_ in asks:
        name = _MEANT.get(word, {}).get(one.env, word).replace(" ", "_")
        attributes = [slot for slot in able if slot.startswith("attr:")]
        named = [slot for slot in attributes if slot[5:].replace("_", " ") in text.lower()]
        options = {lexicon.types[kind].option.name for kind in one.types if kind in lexicon.types}
        if name in able:
            found.add(name)
        elif _ELSE.get(name) in able:
            found.add(_ELSE[name])
        elif f"attr:{name}" in able:
            found.add(f"attr:{name}")
        elif name == "attr" and named:
            found.add(named[0])
        elif "option" in able and name in options:
            found.add("option")
        else:
            found |= {UNNAMED} if name in ("order", "fact", "reason") else set()
            missing += 0.01 if name in ("order", "fact", "reason") else 1
    return frozenset(found), missing


@dataclass
class Gaps:
    """Fills the gaps of one message: the same gap with the same words."""

    listener: Listener
    lexicon: Lexicon
    shop: Shop
    random: np.random.Generator
    foreign: float = 0.0
    """Things that the message speaks of and the customer does not."""
    filled: dict[str, str] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    slots: dict[str, str] = field(default_factory=dict)
    """The slots of the values in the gaps."""
    any: Attribute | None = None
    """The attribute of values of none that is named."""
    unheard_of: bool = False
    """True if it speaks of an attribute that nothing in this shop has."""

    def fill(self, text: str, start: int = 0) -> tuple[str, list[tuple[str, int, int]]]:
        """Fill the gaps of a text that stands at `start`; also return (name, start, end) of what fills each."""
        said, spans, place = "", list[tuple[str, int, int]](), 0
        for gap in _GAP.finditer(text):
            said += text[place : gap.start()]
            word = self._word(gap)
            spans.append((gap[1], start + len(said), start + len(said) + len(word)))
            said, place = said + word, gap.end()
        return said + text[place:], spans

    def chosen(self, text: str) -> frozenset[str]:
        """Name what is chosen by a list: none of the customer's wishes if it is of things; the slot of its values."""
        gaps = [gap[0] for gap in _GAP.finditer(text)]
        if any(gap.startswith(("{product", "{order", "{line")) for gap in gaps):
            return frozenset()
        of = [self.slots[gap] for gap in dict.fromkeys(gaps) if gap in self.slots]
        able = [slot for slot in of if of.count(slot) > 1 and slot in self.listener.vocabulary.slots]
        return frozenset(able or [UNNAMED])

    def _type(self, number: int) -> str:
        own = list(dict.fromkeys(kind for kind in self.listener.types if kind))
        while len(self.types) < number:
            place = len(self.types)
            others = [kind for kind in self.lexicon.types if kind not in (*own, *self.types)]
            others = others or [*self.lexicon.types]  # a shop of few
            self.foreign += 0.2 * (place >= len(own) > 0)
            self.types.append(own[place] if place < len(own) else pick(self.random, others))
        return self.types[number - 1]

    def _word(self, gap: re.Match[str]) -> str:
        if gap[0] not in self.filled:
            said = set(self.filled.values())
            for _ in range(DISTINCT):
                self.filled[gap[0]] = self._filled(gap[0], gap[1], int(gap[2] or 1), gap[3])
                if gap[1] in ("item", "items") or self.filled[gap[0]] not in said:
                    break
            if gap[1] == "brand":
                self.slots[gap[0]] = "brand"
        return self.filled[gap[0]]

    def _filled(self, gap: str, name: str, number: int, attribute: str | None) -> str:
        random, catalog = self.random, self.shop.catalog
        if name in ("product", "order", "line"):
            kind = ("product", "order", "line").index(name)
            return chr(ord(THINGS) + kind * THING_KINDS + number - 1)
        if name in ("item", "items"):
            kind_name = self._type(number)
            return kind_name if name == "item" else self.lexicon.types[kind_name].plural
        if name == "brand":
            return str(pick(random, list(catalog.brands)))
        if name == "attr":
            return str(pick(random, self._attributes(self._type(1))).name).replace("_", " ")
        if name == "value":
            slot, value = self._value(attribute, number)
            self.slots[gap] = slot
            return value
        if name in ("count", "best"):
            low = 0 if name == "count" else 1
            at = low + int(random.integers(3))
            return _COUNTS[at] if random.random() < 0.4 else str(at + 2)
        if name in ("price", "total"):
            cents = f".{random.integers(10, 99)}" if random.random() < 0.5 else ""
            return f"${random.integers(5, 300)}{cents}"
        if name == "rating":
            return str(pick(random, ("3.5", "4", "4.0", "4.5")))
        if name == "days":
            return str(random.integers(2, 8))
        if name == "date":
            return f"{pick(random, MONTHS)} {random.integers(1, 29)}"
        return str(pick(random, _WORDS[name]))

    def _value(self, attribute: str | None, number: int) -> tuple[str, str]:
        """Choose a value, and name its slot; values of no named attribute are all of one."""
        if attribute == "feature":
            return "feature", str(pick(self.random, list(self.shop.catalog.features)))
        own = [self.lexicon.types[self._type(n)] for n in range(1, max(1, number) + 1)]
        if attribute is not None:
            name = attribute.replace(" ", "_")
            for kind in (*own, *self.lexicon.types.values()):
                for one in (*kind.attributes, kind.option):
                    if one.name == name:
                        self.foreign += 0.1 * (kind not in own)
                        return self._slot(name), str(pick(self.random, one.values))
        if self.any is None:
            self.any = pick(self.random, self._attributes(own[0].name))
        return self._slot(self.any.name), str(pick(self.random, self.any.values))

    def _attributes(self, kind: str) -> Sequence[Attribute]:
        """List the attributes of a type; of another where it has none, or one that nothing in this shop has."""
        every = (one.attributes for one in (self.lexicon.types[kind], *self.lexicon.types.values()))
        found = next(filter(None, every), ())
        self.unheard_of |= not found
        return found or (Attribute("color", ("Red", "Blue", "Green"), "in {}"),)

    def _slot(self, name: str) -> str:
        slot = f"attr:{name}"
        return slot if slot in self.listener.vocabulary.slots else "option"


def filled(
    text: str,
    slots: Sequence[Slot],
    kind: str,
    names_it: bool,
    phrases: Phrases,
    shop: Shop,
    random: np.random.Generator,
) -> str | None:
    """Put names and values into a question for these slots of a `kind` of thing; None where it does not fit them.
    `names_it`: the words themselves name an attribute, which is known to be the right one."""
    lexicon = lexicon_of(shop.catalog)
    attributes = [slot.name.removeprefix("attr:") for slot in slots if slot.name.startswith("attr:")]
    if "{attr}" in text and not attributes:
        return None
    if attributes and not names_it and not re.search(r"\{(?:attr|value\d?)\}", text):
        spoken = set(re.findall(r"\w+", text.lower().replace("colour", "color")))
        if any(not set(name.split("_")) <= spoken for name in attributes):
            return None  # the text names another attribute in words of its own
    words = {"item": kind, "items": lexicon.types[kind].plural if kind in lexicon.types else kind}
    if attributes:
        words["attr"] = attributes[0].replace("_", " ")
    for slot, suffix in zip(slots, ("", "2"), strict=False):
        said = written(slot, phrases, shop)
        others = [word for word in other_values(slot, phrases, kind, lexicon, shop) if word != said]
        words |= {f"value{suffix}": said} if said is not None else {}
        words |= {f"wrong{suffix}": str(pick(random, others))} if others else {}
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", str(word))
    return None if "{" in text else text


def slot_named(name: str, attribute: str | None, slots: Sequence[Slot]) -> Slot | None:
    """Find a slot that a question's label means; of several, the first."""
    for slot in slots:
        if name == "attr" and slot.name.startswith("attr:"):
            if attribute in (None, slot.name.removeprefix("attr:")):
                return slot
        elif slot.name == name or (slot.name, name) == ("worth", "importance"):  # what matters to them
            return slot
    return None


def written(slot: Slot, phrases: Phrases, shop: Shop) -> str | None:
    """Write a slot's value as an agent would; None where it has no short form."""
    value = slot.value
    if isinstance(value, Wish):
        return None
    if isinstance(value, list | tuple):
        flat = [one for one in value if isinstance(one, str)]
        return flat[0] if flat else None
    template = phrases.slots.get(slot.name)
    form = template.format if template else slot_type(slot.name).format
    return form.write(value) if form else str(value)


def other_values(slot: Slot, phrases: Phrases, kind: str, lexicon: Lexicon, shop: Shop) -> list[str]:
    """List other values that a slot could have, as an agent would write them."""
    value, name, template = slot.value, slot.name, phrases.slots.get(slot.name)
    if isinstance(value, list | tuple):
        return []
    if template is not None and template.format.words:
        return list(template.format.words)
    if isinstance(value, int):
        form = template.format if template is not None else slot_type(name).format
        return [(form.write if form else str)(value + times * slot_type(name).step) for times in (1, 2)]
    named = {"brand": shop.catalog.brands, "feature": shop.catalog.features, "type": lexicon.types}
    if slot_type(name).names:
        return list(named[slot_type(name).names])
    if kind in lexicon.types:
        closed = {f"attr:{one.name}": one.values for one in lexicon.types[kind].attributes}
        return list({"option": lexicon.types[kind].option.values, **closed}.get(name, ()))
    return []
