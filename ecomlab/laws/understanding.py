"""Measure UNDERSTOOD: ask customers a bank of questions, in tasks that withhold the slots asked for.

An answer is *exact* if the customer reveals exactly the slots that the rule of replies names: at most three that the
question names, then at most two for an open part.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.dialogue import AT_ONCE, LISTED, told_openly
from ecomlab.customer.llm import Chat, Wording
from ecomlab.customer.meaning import describes, is_demand_on
from ecomlab.customer.reactions import table
from ecomlab.customer.reading.model import GROUPS, QUESTIONS, SCALE
from ecomlab.customer.reading.reading import Decided, Message, Reading
from ecomlab.episode.episode import Episode
from ecomlab.laws.banks import NAMES, UNNAMED, Case, filled, messages, named_acts, slot_named, tasks_of
from ecomlab.seeding import rng
from ecomlab.task import Place, Slot, Task

BANK = Path(__file__).parent / "questions"
MESSAGES = Path(__file__).parent / "messages"
BANKS = ("read", "held", "fifth", "tenth")
"""The two halves of the first bank, from which the reader was developed, and two banks written by others: `fifth` was
never opened; `tenth` was opened once, after it had judged the reader unseen, and nothing was changed for it."""
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
        pool = tasks_of(env, shop)
        for i in random.permutation(len(pool)).tolist():
            if found == 2 * times:
                break
            one = _ask(question, pool[i], shop, found >= times, random, chat)
            if one is not None:
                found += 1
                yield one


def _ask(
    question: Mapping[str, Any], task: Task, shop: Shop, later: bool, random: Any, chat: Chat | None = None
) -> Asked | None:
    names = [NAMES.get(name, name) for name in question["slots"]]
    attribute = question.get("attr")
    if not all(slot_named(name, attribute, task.parts[0].goal.said(withheld=True)) for name in names):
        return None  # nor is it withheld later, and most tasks end here
    episode = Episode(task, shop, wording=Wording(chat) if chat else None)
    customer, world = episode.customer, episode.world
    if later:
        customer.hear("Is there anything else I should know?", world)
    withheld = list(customer.state.withheld)
    wanted = [slot_named(name, attribute, withheld) for name in names]
    if not all(wanted) or (question["open"] and len(withheld) <= len(names)):
        return None
    slots = [slot for slot in wanted if slot is not None]
    items = {slot.item for slot in slots if slot.name not in customer.state.own}
    mentions = "{item}" in question["text"] or "{items}" in question["text"]
    if mentions and (len(items) > 1 or not customer.type_name(next(iter(items), 0))):
        return None
    item = items.pop() if len(items) == 1 else customer.goal.items[0] if customer.goal.items else 0
    kind = customer.type_name(item)
    text = filled(question["text"], slots, kind, "attr" in question, customer.phrases, shop, random)
    if text is None:
        return None
    named = [
        s
        for slot in slots
        for s in withheld
        if (s.name == slot.name or is_demand_on(s, slot.name))
        and (not mentions or s.item == item or s.name in customer.state.own)
    ]
    first = list(dict.fromkeys(map(_place, named)))[:AT_ONCE]
    rest = [place for place in map(_place, withheld) if place not in first]
    rest.sort(key=lambda place: place[1] not in LISTED)  # things first
    open_ = told_openly(len(rest), len(first)) if question["open"] else 0
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


def heard(shop: Shop, bank: str = "held") -> list[Share]:
    """Put the messages of a bank to customers; return the shares that are answered exactly, of all, by act and by
    environment.

    Exact: the reply is the one to the message as its first or second reader labels it: the same slots are told, and the
    same acts answer it. Where the label calls for nothing, the customer's phrase answers an act that the message holds.
    """
    cases = [case for case in messages(MESSAGES / f"{bank}.jsonl", shop) if case.certain]
    exact = [(case, is_exact(case, shop)) for case in cases]
    acts = dict.fromkeys(act for case in cases for act in named_acts(case.acts or frozenset()))
    envs = dict.fromkeys(case.env for case in cases)

    def share(env: str, group: str, some: list[bool]) -> Share:
        return Share(bank, env, group, len(some), sum(some) / len(some), 0)

    return [
        share(EVERYWHERE, "all", [so for _, so in exact]),
        *(
            share(EVERYWHERE, act, [so for case, so in exact if act in named_acts(case.acts or frozenset())])
            for act in sorted(acts)
        ),
        *(share(env, "of it", [so for case, so in exact if case.env == env]) for env in envs),
    ]


def is_exact(case: Case, shop: Shop) -> bool:
    """Tell whether a message is answered as it is labelled."""
    message = Message(case.text, case.listener.vocabulary)
    decided = message.decided()
    found = reaction_to(message.reading(decided), case, shop)
    phrases = {reaction.says for reaction in table().values() if reaction.free == "courtesy"}
    for acts in filter(None, (case.acts, case.or_acts)):
        right = labelled(message, named_acts(acts), case, decided)
        wanted = reaction_to(message.reading(right), case, shop)
        said = {kind for kind, *_ in found}
        if any(one[0] not in phrases for one in found ^ wanted):
            continue
        if right.calls_for or not said <= phrases or said & {table()[act].says for act in right.acts}:
            return True
    return False


def labelled(message: Message, acts: frozenset[str], case: Case, decided: Decided) -> Decided:
    """Decide as a label says; as the model does of a slot that it does not name, and whether wishes are taken up."""
    acts |= decided.acts & {"NOTED"} if "TELL" in acts else frozenset()
    calls_for = frozenset(group for group, some in GROUPS.items() if acts & set(some))
    if UNNAMED in case.asks or not message.seen:
        return Decided(acts, calls_for, decided.slots if "ask" in calls_for else {})
    scores = message.slot_scores(range(len(message.seen)))
    slots = dict[int, list[str]]()
    for slot in sorted(case.asks) if acts & set(QUESTIONS) else ():
        slots.setdefault(max(scores, key=lambda at: scores[at].get(slot, -SCALE)), []).append(slot)
    return Decided(acts, calls_for, slots)


def reaction_to(reading: Reading, case: Case, shop: Shop) -> frozenset[tuple[Any, ...]]:
    """List the acts of the answer to a message that is read so, with the slots that they tell. A bank's things are
    known to no customer: where they are asked about, which they are, whether one is to be chosen, and what else is
    asked for stand for the answer."""
    if reading.things and reading.calls_for & {"ask", "judge"}:
        beside = [(q.slot,) for q in reading.questions if not describes(q)]
        return frozenset([("things", reading.things, reading.which), *beside])
    episode = Episode(case.listener.task, shop)
    customer = episode.customer
    acts = customer.reacts(customer.numbered(reading), case.text, episode.world).acts
    return frozenset((act.kind, act.type, *sorted(act.slots), act.seen) for act in acts)
