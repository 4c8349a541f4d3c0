"""Measure TRUTHFUL: tell customers summaries, proposals, choices and yes-or-no questions, with wrong elements put in by
code or right throughout, and judge the replies.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ecomlab.catalog import Shop
from ecomlab.customer.dialogue import Reply
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.laws.tool_introspection import drawn
from ecomlab.laws.truth_messages import THINGS, Element, Filler, gaps_in
from ecomlab.seeding import rng, shuffled
from ecomlab.task import Slot, Task

AFFIRMS = frozenset(("yes", "this one", "as wanted", "choose", "consent"))
"""Acts that call what was said right."""
ACCEPTS = frozenset(("go ahead", "thanks", "acknowledge"))
"""Acts that let it pass: a yes to the forms of `PASSING`, and to all that is wrong."""
REFUSES = frozenset((
    "no", "not this one", "none of these", "not as wanted", "correct", "not wanted", "wrong units", "wrong about",
))  # fmt: skip
"""Acts that call something wrong: their slots, where they have any."""
DENIES = frozenset(("indifferent", "indifferent to"))
"""Acts that claim not to have such a wish: they deny what is right, and refuse nothing that is wrong."""
ASKS_BACK = frozenset(("ask back",))
PASSING = ("statement", "proposal", "consent")
"""Forms of messages that ask for no more than to go on."""

BANK = Path(__file__).parent / "truths"
BANKS = ("read", "held")
"""The bank for work, and the one of which only rates are looked at."""
LEVELS = range(2, 13)
FIRST, TASKS = 5_100_000, 8
"""The first seed, and the number of tasks per environment and level."""
WRONG = 18
"""Number of messages with wrong elements made of a frame; of those right throughout, twice as many."""
MORE = "Is there anything else I should know?"
WRONG_OUTCOMES = ("named", "refused", "affirmed", "asked back", "passed over")
RIGHT_OUTCOMES = ("affirmed", "refused", "asked back", "passed over")


@dataclass(frozen=True)
class Told:
    """One message to one customer, its elements, and the reply; `extra`: what that tells anew beside these."""

    frame: Mapping[str, Any]
    task: Task
    text: str
    elements: Sequence[Element]
    reply: Reply
    extra: Sequence[Slot]

    @property
    def wrong(self) -> list[Element]:
        return [element for element in self.elements if element.wrong]

    def outcome(self, wrong: Element | None = None) -> str:
        """Judge the reply by a wrong element, or as one to a message that is right throughout."""
        kinds, form = {act.kind for act in self.reply.acts}, self.frame["form"]
        named = wrong is not None and self._names(wrong)
        if form == "either":  # one of both is right, so that neither "yes" nor "no" is an answer
            if named or (kinds & REFUSES != {"no"} and self._refuses(wrong)):
                return "named" if named else "refused"
            return "affirmed" if kinds & AFFIRMS else "passed over"
        if self._refuses(wrong) or (wrong is None and kinds & DENIES):
            return "named" if named else "refused"
        if kinds & AFFIRMS or (kinds & ACCEPTS and (wrong is not None or form in PASSING)):
            return "affirmed"
        return "named" if named else "asked back" if kinds & ASKS_BACK else "passed over"

    def _refuses(self, wrong: Element | None) -> bool:
        name = wrong.slot.name if wrong else ""
        refusing = [act for act in self.reply.acts if act.kind in REFUSES]
        return any(not act.slots or not name or name in act.slots for act in refusing)

    def _names(self, wrong: Element) -> bool:
        """Tell whether the reply tells what is right in place of a wrong element."""
        name, value = wrong.slot.name, wrong.slot.value
        acts = [act for act in self.reply.acts if act.kind not in DENIES]
        if isinstance(value, str) and any(act.kind == "choose" and value in act.seen for act in acts):
            return True
        if name == "type":
            return any(act.type == value for act in acts)
        of_it = [act for act in acts if wrong.type in ("", act.type)]
        implied = name == "quantity" and value == 1 and any(act.kind == "just one" for act in of_it)
        return implied or any(name in act.slots and act.slots[name] == value for act in of_it)


@dataclass(frozen=True)
class Truths:
    """Outcomes of wrong elements of one group ("all", an environment, a kind of element, a form) and of the messages
    right throughout; `extra`: number of the latter whose reply tells anew what they do not name."""

    bank: str
    group: str
    wrong: Mapping[str, int]
    right: Mapping[str, int]
    extra: int


def measure(shop: Shop, wrong: int = WRONG, banks: Sequence[str] = BANKS) -> list[Truths]:
    """Tell customers the banks' messages, of each frame so many `wrong` ones and twice as many right ones; return the
    outcomes of all and of each group."""
    return [share for bank in banks for share in shares(bank, list(tell(frames(bank), shop, wrong)))]


def shares(bank: str, told: Sequence[Told]) -> list[Truths]:
    """Count the outcomes of all messages and of each group."""
    wrong, right, extra = dict[str, Counter[str]](), dict[str, Counter[str]](), Counter[str]()
    for one in told:
        groups = ("all", one.task.env, f"form: {one.frame['form']}")
        for element in one.wrong:
            for group in (*groups, f"kind: {element.kind}"):
                wrong.setdefault(group, Counter())[one.outcome(element)] += 1
        for group in () if one.wrong else (*groups, *{f"kind: {element.kind}" for element in one.elements}):
            right.setdefault(group, Counter())[one.outcome()] += 1
            extra[group] += bool(one.extra)
    every = sorted({*wrong, *right}, key=lambda group: (group != "all", ":" in group, group))
    return [Truths(bank, g, dict(wrong.get(g, {})), dict(right.get(g, {})), extra[g]) for g in every]


def frames(bank: str) -> list[dict[str, Any]]:
    """Read a bank: form, for (environments of the customers that it suits), text with gaps, lower (small letters)."""
    return [json.loads(line) for line in (BANK / f"{bank}.jsonl").read_text("utf-8").splitlines()]


def tell(bank: Sequence[Mapping[str, Any]], shop: Shop, wrong: int = WRONG) -> Iterator[Told]:
    """Make `wrong` messages of every frame and twice as many right ones, and tell each to a customer, after the opening
    or later."""
    seeds = range(FIRST, FIRST + TASKS)
    pool = [task for env in ENVIRONMENTS for d in LEVELS for task in drawn(env, d, seeds, shop)[0]]
    for frame in bank:
        random = rng("truthful", frame["text"])
        suited = [task for task in pool if task.parts[0].env in frame["for"]]
        left = {False: 0 if "{~" in frame["text"] else 2 * wrong, True: wrong}
        for task in (task for _ in range(3) for task in shuffled(random, suited)):
            later = bool(random.integers(2))
            for is_wrong in (False, True):
                one = _tell(frame, task, shop, later, is_wrong, random) if left[is_wrong] else None
                if one is not None:
                    left[is_wrong] -= 1
                    yield one


def _tell(
    frame: Mapping[str, Any], task: Task, shop: Shop, later: bool, wrong: bool, random: Any
) -> Told | None:
    gaps, names = gaps_in(frame["text"]), {name for _, name in task.parts[0].goal.slots}
    outright = {gap.slot for gap in gaps} - {"quantity", "type", "attr", ""}
    beside = "relation" in names and any(gap.name not in THINGS for gap in gaps)  # of the order next to it
    if beside or not outright <= names:
        return None  # as most tasks end here
    episode = Episode(task, shop)
    if later:
        episode.customer.hear(MORE, episode.world)
    filled = Filler(frame, episode, random).fill(wrong)
    if filled is None:
        return None
    text, elements = filled
    reply = episode.customer.hear(text, episode.world)
    named = {(element.slot.item, element.slot.name) for element in elements}
    return Told(frame, task, text, elements, reply, [s for s in reply.news if (s.item, s.name) not in named])


def table_of(shares: Sequence[Truths]) -> Table:
    """Tabulate a bank's outcomes: numbers of wrong elements and of right messages, and shares of each in percent."""
    table = Table(title=shares[0].bank, box=None)
    for heading in ("", "wrong", *WRONG_OUTCOMES, "right", *RIGHT_OUTCOMES, "told more"):
        table.add_column(heading.replace(" ", "\n"), no_wrap=True, justify="right" if heading else "left")
    for share in shares:
        cells = [share.group]
        for counts, outcomes in ((share.wrong, WRONG_OUTCOMES), (share.right, RIGHT_OUTCOMES)):
            n = sum(counts.values())
            cells += [str(n), *(f"{100 * counts.get(one, 0) / n:.1f}" if n else "" for one in outcomes)]
        table.add_row(*cells, str(share.extra))
    return table
