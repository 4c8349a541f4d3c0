"""Measure UNDERSTOOD: ask customers a bank of questions, in tasks that withhold the slots asked for.

An answer is *exact* if the customer reveals exactly the slots that the rule of replies names: at most three that the
question names, then at most two for an open part.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon, lexicon_of
from ecomlab.catalog.real import WRAPPING
from ecomlab.customer.dialogue import AT_ONCE, OPEN
from ecomlab.customer.llm import Chat, Wording
from ecomlab.customer.phrasing import phrases
from ecomlab.episode.episode import Episode
from ecomlab.laws.tool_introspection import drawn
from ecomlab.seeding import rng
from ecomlab.slots import slot_type
from ecomlab.task import Place, Slot, Task

BANK = Path(__file__).parent / "questions"
BANKS = ("read", "held", "fifth", "tenth")
"""The two halves of the first bank, from which the reader was developed, and two banks written by others: `fifth` was
never opened; `tenth` was opened once, after it had judged the reader unseen, and nothing was changed for it."""
LEVELS = range(5, 13)
TASKS = 24
"""Number of tasks per level in which questions are asked."""
NAMES = {"original_brand": "was_brand", "original_feature": "was_feature"}
DENIALS = ("indifferent", "nothing")


@dataclass(frozen=True)
class Asked:
    """One question to one customer: the right reply by the rule, and the actual one."""

    question: Mapping[str, Any]
    text: str
    task: Task
    later: bool
    expected: tuple[frozenset[Place], ...]
    """The sets of slots that are right."""
    told: frozenset[Place]
    asked_back: bool
    denied: bool

    @property
    def exact(self) -> bool:
        right = self.told in self.expected and not self.denied
        return right and (self.asked_back or self.question["form"] != "nonsense")


@dataclass(frozen=True)
class Share:
    """Share of a bank's questions to one environment's customers, or to all, that are answered exactly; `group` is
    "all", "of it" or a form of question."""

    bank: str
    env: str
    group: str
    asks: int
    exact: float
    denied: int


EVERYWHERE = "all"


def measure(
    shop: Shop, times: int = 2, banks: Sequence[str] = BANKS, chat: Chat | None = None
) -> list[Share]:
    """Ask the banks' questions; return the shares by environment, by form, and of all, where any could be asked. With
    `chat`, an endpoint rewords the customers and labels questions."""
    made = []
    for bank in banks:
        asked = list(ask(questions(bank), shop, times, chat))
        if not asked:
            continue
        envs = dict.fromkeys(one.question["env"] for one in asked)
        forms = dict.fromkeys(one.question["form"] for one in asked)
        made.append(_share(bank, EVERYWHERE, "all", asked))
        made += [_share(bank, EVERYWHERE, f, [a for a in asked if a.question["form"] == f]) for f in forms]
        made += [_share(bank, env, "of it", [a for a in asked if a.question["env"] == env]) for env in envs]
    return made


def _share(bank: str, env: str, group: str, asked: Sequence[Asked]) -> Share:
    exact = sum(one.exact for one in asked) / len(asked)
    return Share(bank, env, group, len(asked), exact, sum(one.denied for one in asked))


def questions(name: str) -> list[dict[str, Any]]:
    """Read a bank: env, text with {item}, {items}, {attr}, {value}, {wrong}, slots, open, form, register."""
    return [json.loads(line) for line in (BANK / f"{name}.jsonl").read_text("utf-8").splitlines()]


def ask(
    bank: Sequence[Mapping[str, Any]], shop: Shop, times: int = 2, chat: Chat | None = None
) -> Iterator[Asked]:
    """Ask every question of `times` customers on the first turn, and of as many later. With `chat`, an endpoint labels
    the questions of which the parser makes nothing."""
    for number, question in enumerate(bank):
        env = question.get("sub") or question["env"]
        random, found = rng("understood", number), 0
        pool = _tasks(env, shop)
        for i in random.permutation(len(pool)).tolist():
            if found == 2 * times:
                break
            one = _ask(question, pool[i], shop, found >= times, random, chat)
            if one is not None:
                found += 1
                yield one


@cache
def _tasks(env: str, shop: Shop) -> list[Task]:
    numbers = range(5_000_000, 5_000_000 + TASKS)
    return [task for d in LEVELS for task in drawn(env, d, numbers, shop)[0]]


def _ask(
    question: Mapping[str, Any], task: Task, shop: Shop, later: bool, random: Any, chat: Chat | None = None
) -> Asked | None:
    names = [NAMES.get(name, name) for name in question["slots"]]
    if not all(_slot(name, question, task.parts[0].goal.said(withheld=True)) for name in names):
        return None  # nor is it withheld later, and most tasks end here
    episode = Episode(task, shop, wording=Wording(chat) if chat else None)
    customer, world = episode.customer, episode.world
    if later:
        customer.hear("Is there anything else I should know?", world)
    withheld, lexicon = list(customer.state.withheld), lexicon_of(shop.catalog)
    wanted = [_slot(name, question, withheld) for name in names]
    if not all(wanted) or (question["open"] and len(withheld) <= len(names)):
        return None
    slots = [slot for slot in wanted if slot is not None]
    items = {slot.item for slot in slots if slot.name not in customer.state.own}
    mentions = "{item}" in question["text"] or "{items}" in question["text"]
    if mentions and (len(items) > 1 or not customer.type_name(next(iter(items), 0))):
        return None
    item = items.pop() if len(items) == 1 else customer.goal.items[0] if customer.goal.items else 0
    text = _filled(
        question["text"], slots, customer.type_name(item), customer.phrases.slots, lexicon, shop, random
    )
    if text is None:
        return None
    named = [
        s
        for slot in slots
        for s in withheld
        if s.name == slot.name and (not mentions or s.item == item or s.name in customer.state.own)
    ]
    first = list(dict.fromkeys(map(_place, named)))[:AT_ONCE]
    rest = [place for place in map(_place, withheld) if place not in first]
    open_ = min(OPEN, AT_ONCE - len(first)) if question["open"] else 0
    # No label says whether the open part is about the item that is named, as in "What else about the kettle?".
    of_it = sorted(rest, key=lambda place: place[0] != item) if mentions else rest
    expected = tuple(frozenset([*first, *some[:open_]]) for some in (rest, of_it))
    reply = customer.hear(text, world)
    kinds = {act.kind for act in reply.acts}
    could = [slot for slot in named if slot not in reply.news]
    return Asked(
        question, text, task, later, expected, frozenset(map(_place, reply.news)), "ask back" in kinds,
        bool(could and kinds & set(DENIALS) and not reply.news),
    )  # fmt: skip


def _place(slot: Slot) -> Place:
    return slot.item, slot.name


def _slot(name: str, question: Mapping[str, Any], withheld: Sequence[Slot]) -> Slot | None:
    """Find a withheld slot that a question's label means; of several, the first."""
    attribute = question.get("attr")
    for slot in withheld:
        if name == "attr" and slot.name.startswith("attr:"):
            if attribute in (None, slot.name.removeprefix("attr:")):
                return slot
        elif slot.name == name:
            return slot
    return None


def _filled(
    text: str,
    slots: Sequence[Slot],
    kind: str,
    templates: Mapping[str, Any],
    lexicon: Lexicon,
    shop: Shop,
    random: Any,
) -> str | None:
    """Put names and values into a question; None where it does not fit what is asked for."""
    attributes = [slot.name for slot in slots if slot.name.startswith("attr:")]
    if "{attr}" in text and not attributes:
        return None
    spoken = set(text.lower().replace("colour", "color").split())
    literal = {
        name
        for name in shop.catalog.attr_values
        if set(name.split("_")) <= {w.strip(".,?!:;()") for w in spoken}
    }
    if (
        attributes
        and "{attr}" not in text
        and "{value}" not in text
        and {a[5:] for a in attributes} - literal
    ):
        return None  # the text names an attribute in words of its own
    if any(slot.name == "option" for slot in slots) and _asks_for_a_property(spoken, kind, lexicon, shop):
        return None
    words = {"item": kind, "items": lexicon.types[kind].plural if kind in lexicon.types else kind}
    if attributes:
        words["attr"] = attributes[0].removeprefix("attr:").replace("_", " ")
    for slot, suffix in zip(slots, ("", "2"), strict=False):
        said = _words(slot, templates, shop)
        others = [w for w in _others(slot, templates, kind, lexicon, shop) if w != said]
        if said is None or (f"{{wrong{suffix}}}" in text and not others):
            return None
        words[f"value{suffix}"] = said
        if others:
            words[f"wrong{suffix}"] = others[int(random.integers(len(others)))]
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", str(word))
    return None if "{" in text else text


def _asks_for_a_property(spoken: Iterable[str], kind: str, lexicon: Lexicon, shop: Shop) -> bool:
    """Tell whether a question for an option asks for a size, a color or the like of what has none to choose from: its
    option is the wrapping, which catalogs get that know no variants."""
    if kind not in lexicon.types or lexicon.types[kind].option != WRAPPING:
        return False
    properties = {phrases().attributes.get(name, (name,))[0] for name in shop.catalog.attr_values}
    return not properties.isdisjoint(word.strip(".,?!:;()") for word in spoken)


def _words(slot: Slot, templates: Mapping[str, Any], shop: Shop) -> str | None:
    value = slot.value
    if isinstance(value, list | tuple):
        flat = [one for one in value if isinstance(one, str)]
        return flat[0] if flat else None
    written = templates[slot.name].format if slot.name in templates else slot_type(slot.name).format
    return written.write(value) if written else str(value)


def _others(slot: Slot, templates: Mapping[str, Any], kind: str, lexicon: Lexicon, shop: Shop) -> list[str]:
    value, name = slot.value, slot.name
    if isinstance(value, list | tuple):
        return []
    template = templates.get(name)
    if template is not None and template.format.words:
        return list(template.format.words)
    if isinstance(value, int):
        written, step = (
            template.format if template is not None else slot_type(name).format,
            slot_type(name).step,
        )
        return [(written.write if written else str)(value + times * step) for times in (1, 2)]
    named = {"brand": shop.catalog.brands, "feature": shop.catalog.features, "type": lexicon.types}
    if slot_type(name).names:
        return list(named[slot_type(name).names])
    if kind in lexicon.types:
        closed = {f"attr:{a.name}": a.values for a in lexicon.types[kind].attributes}
        return list({"option": lexicon.types[kind].option.values, **closed}.get(name, ()))
    return []
