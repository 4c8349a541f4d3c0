"""Measure TRUTHFUL: tell customers summaries, proposals, choices and yes-or-no questions, right throughout or with wrong
elements put in by code, and judge the replies. `python -m ecomlab.laws.truthful` prints the outcomes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from ecomlab import other_words
from ecomlab.catalog import Shop, load_shop
from ecomlab.customer.dialogue import Reply
from ecomlab.customer.opinions import Thing
from ecomlab.customer.phrasing import phrases
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.episode import Episode
from ecomlab.laws.tool_introspection import calls, drawn
from ecomlab.seeding import pick, rng, shuffled
from ecomlab.slots import filters_of, slot_type
from ecomlab.task import Place, Slot, Task
from ecomlab.values import FORMATS, with_article

AFFIRMS = frozenset(("yes", "this one", "as wanted", "choose"))
"""Acts that call what was said right."""
ACCEPTS = frozenset(("go ahead", "thanks"))
"""Acts that let it pass: a yes to a statement, a proposal or a request for consent, and to all that is wrong."""
REFUSES = frozenset(
    (
        "no",
        "not this one",
        "none of these",
        "not as wanted",
        "correct",
        "mention",
        "not wanted",
        "wrong units",
    )
)
"""Acts that call something wrong: their slots, where they have any."""
DENIES = frozenset(("indifferent", "indifferent to"))
"""Acts that claim not to have such a wish: they deny what is right, and refuse nothing that is wrong."""
ASKS_BACK = frozenset(("ask back",))

BANK = Path(__file__).parent / "truths"
BANKS = ("read", "held")
"""The bank for work, and the one of which only rates are looked at."""
LEVELS = range(2, 13)
FIRST, TASKS = 5_100_000, 6
"""The first seed, and the number of tasks per environment and level."""
RIGHT, WRONG = 36, 18
"""Number of messages made of a frame that are right throughout, and of those with wrong elements."""
TWO_WRONG = 0.25
"""Share of wrong messages with two wrong elements, where there are three or more."""
MORE = "Is there anything else I should know?"
ASKS = ("yesno", "either", "neither", "negative")
"""Forms that may be about what the customer has not said."""
PASSING = ("statement", "proposal", "consent")
"""Forms to which `ACCEPTS` are a yes."""
WRONG_OUTCOMES = ("named", "refused", "affirmed", "asked back", "passed over")
RIGHT_OUTCOMES = ("affirmed", "refused", "asked back", "passed over")
THINGS = ("product", "order")
"""Gaps for things that a tool has shown: the title of a product, the day of an order."""
OF_REQUESTS = ("age", "weight")
"""Slots of a request that share their name with an attribute."""
_GAP = re.compile(r"\{(~*)(a )?([a-z_]+?)(\d?)(:words)?\}")


class Gap(NamedTuple):
    """A gap of a frame: `~` or `~~` for a value that is not so, "a " for its article, its name, a number that tells
    items apart, ":words" for a number in letters."""

    other: str
    article: str
    name: str
    item: str
    words: str


@dataclass(frozen=True)
class Element:
    """What a message claims of a slot, or of a thing: `value` is the right one of the slot at `place`, of the item that
    is called `type`."""

    kind: str
    place: Place | None
    value: Any
    type: str
    wrong: bool


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
            return "named" if named else "affirmed" if kinds & AFFIRMS else "passed over"
        if self._refuses(wrong) or (wrong is None and kinds & DENIES):
            return "named" if named else "refused"
        if kinds & AFFIRMS or (kinds & ACCEPTS and (wrong is not None or form in PASSING)):
            return "affirmed"
        return "named" if named else "asked back" if kinds & ASKS_BACK else "passed over"

    def _refuses(self, wrong: Element | None) -> bool:
        name = wrong.place[1] if wrong is not None and wrong.place else None
        refusing = [act for act in self.reply.acts if act.kind in REFUSES]
        return any(not act.slots or name is None or name in act.slots for act in refusing)

    def _names(self, wrong: Element) -> bool:
        """Tell whether the reply tells what is right in place of a wrong element."""
        name = wrong.place[1] if wrong.place else ""
        acts = [act for act in self.reply.acts if act.kind not in DENIES]
        if isinstance(wrong.value, str) and any(a.kind == "choose" and wrong.value in a.seen for a in acts):
            return True
        if name == "type":
            return any(act.type == wrong.type for act in acts)
        of_it = [act for act in acts if wrong.type in ("", act.type)]
        implied = name == "quantity" and wrong.value == 1 and any(act.kind == "just one" for act in of_it)
        return implied or any(name in act.slots and act.slots[name] == wrong.value for act in of_it)


@dataclass(frozen=True)
class Share:
    """Outcomes of wrong elements of one group ("all", an environment, a kind of element, a form) and of the messages
    right throughout; `extra`: number of the latter whose reply tells anew what they do not name."""

    bank: str
    group: str
    wrong: Counter[str]
    right: Counter[str]
    extra: int


def measure(shop: Shop, banks: Sequence[str] = BANKS) -> list[Share]:
    """Tell customers the banks' messages; return the outcomes of all and of each group."""
    return [share for bank in banks for share in shares(bank, list(tell(frames(bank), shop)))]


def shares(bank: str, told: Sequence[Told]) -> list[Share]:
    """Count the outcomes of all messages and of each group."""
    wrong, right, extra = dict[str, Counter[str]](), dict[str, Counter[str]](), Counter[str]()
    for one in told:
        of_message = ("all", one.task.env, f"form: {one.frame['form']}")
        for element in one.wrong:
            for group in (*of_message, f"kind: {element.kind}"):
                wrong.setdefault(group, Counter())[one.outcome(element)] += 1
        for group in (*of_message, *{f"kind: {e.kind}" for e in one.elements}) if not one.wrong else ():
            right.setdefault(group, Counter())[one.outcome()] += 1
            extra[group] += bool(one.extra)
    groups = sorted({*wrong, *right}, key=lambda group: (group != "all", ":" in group, group))
    return [Share(bank, g, wrong.get(g, Counter()), right.get(g, Counter()), extra[g]) for g in groups]


def frames(bank: str) -> list[dict[str, Any]]:
    """Read a bank: form, for (environments of the customers that it suits), text with gaps, lower (small letters)."""
    return [json.loads(line) for line in (BANK / f"{bank}.jsonl").read_text("utf-8").splitlines()]


def tell(bank: Sequence[Mapping[str, Any]], shop: Shop) -> Iterator[Told]:
    """Make right and wrong messages of every frame, and tell each to a customer, after the opening or later."""
    seeds = range(FIRST, FIRST + TASKS)
    pool = [task for env in ENVIRONMENTS for d in LEVELS for task in drawn(env, d, seeds, shop)[0]]
    for frame in bank:
        random = rng("truthful", frame["text"])
        suited = [task for task in pool if task.parts[0].env in frame["for"]]
        left = {False: 0 if "{~" in frame["text"] else RIGHT, True: WRONG}
        for task in (task for _ in range(3) for task in shuffled(random, suited)):
            later = bool(random.integers(2))
            for wrong in (False, True):
                one = _tell(frame, task, shop, later, wrong, random) if left[wrong] else None
                if one is not None:
                    left[wrong] -= 1
                    yield one


def _tell(
    frame: Mapping[str, Any], task: Task, shop: Shop, later: bool, wrong: bool, random: Any
) -> Told | None:
    gaps = [Gap(*found) for found in _GAP.findall(frame["text"])]
    names = {name for _, name in task.parts[0].goal.slots}
    outright = {_slot_of(gap.name, shop) for gap in gaps} - {"quantity", "type", "attr", ""}
    beside = "relation" in names and not {gap.name for gap in gaps} <= {
        *THINGS
    }  # the slots are another order's
    if beside or not outright <= names:
        return None  # as most tasks end here
    episode = Episode(task, shop)
    if later:
        episode.customer.hear(MORE, episode.world)
    filled = _Filler(frame, gaps, episode, random).filled(wrong)
    if filled is None:
        return None
    text, elements = filled
    reply = episode.customer.hear(text, episode.world)
    named = {element.place for element in elements}
    return Told(frame, task, text, elements, reply, [s for s in reply.news if (s.item, s.name) not in named])


def _slot_of(gap: str, shop: Shop) -> str:
    """Name the slot that a gap is about; "" for a thing, "attr" for any attribute."""
    if gap in THINGS:
        return ""
    if gap in ("item", "plural"):
        return "type"
    if gap.startswith(("attr", "option")):
        return gap.partition("_")[0]
    return f"attr:{gap}" if gap in shop.catalog.attr_values and gap not in OF_REQUESTS else gap


class _Filler:
    """Fills a frame for one customer, as they are now."""

    def __init__(self, frame: Mapping[str, Any], gaps: Sequence[Gap], episode: Episode, random: Any) -> None:
        self.frame, self.gaps, self.episode, self.random = frame, gaps, episode, random
        self.customer, self.world, self.env = episode.customer, episode.world, episode.subtask.env
        self.types, self.own = self.customer.lexicon.types, self.customer.state.own

    def filled(self, wrong: bool) -> tuple[str, list[Element]] | None:
        """Return the message and its elements; None where the frame does not fit this customer."""
        things = self._things(wrong)
        self.known = {(slot.item, slot.name) for slot in self.customer.state.known}
        places = self._places() if things else None
        if things is None or places is None:
            return None
        words, elements = things
        distinct = list(dict.fromkeys(places.values()))
        changed = {place for gap, place in places.items() if gap.other}
        always = bool(changed)
        if wrong and not always and not elements:
            changed = self._changed(distinct)
        if (wrong and not changed and not elements) or not all(
            self.frame["form"] in ASKS or place in changed or self._is_known(place) for place in distinct
        ):
            return None
        others = {place: shuffled(self.random, self._others(place, distinct)) for place in distinct}
        if any(len(others[place]) < 2 for place in changed):
            return None
        shown = {}
        for gap, place in places.items():
            n = len(gap.other) if always else int(place in changed)
            shown[gap] = others[place][n - 1] if n else self._value(place)
        words |= {gap: self._words(gap, place, shown) for gap, place in places.items()}
        for place in distinct:
            in_words = any(gap.words and places[gap] == place for gap in places)
            kind = "attribute" if place[1].startswith("attr:") else place[1] + " in words" * in_words
            elements.append(self._element(kind, Slot(*place, self._value(place)), place in changed))
        text = _GAP.sub(lambda found: words[Gap(*found.groups(""))], self.frame["text"])
        return text if self.frame.get("lower") else text[0].upper() + text[1:], elements

    def _element(self, kind: str, slot: Slot, wrong: bool) -> Element:
        about = "" if slot.name in self.own else self.customer.type_name(slot.item)
        return Element(kind, (slot.item, slot.name), slot.value, about, wrong)

    # Slots.

    def _places(self) -> dict[Gap, Place] | None:
        """Choose an item for each number in the frame, that has all slots that it is given; return each gap's place."""
        chosen: dict[Gap, Place] = {}
        left = shuffled(self.random, self.customer.goal.items)
        for number in sorted({gap.item for gap in self.gaps}):
            gaps = [gap for gap in self.gaps if gap.item == number and gap.name not in THINGS]
            for item in left:
                places = {gap: self._place(gap, item) for gap in gaps}
                if None not in places.values():
                    chosen |= {gap: place for gap, place in places.items() if place}
                    left.remove(item)
                    break
            else:
                return None
        return chosen

    def _place(self, gap: Gap, item: int) -> Place | None:
        goal, name = self.customer.goal, _slot_of(gap.name, self.episode.shop)
        if name == "attr":
            held = [place for place in goal.slots if place[0] == item and place[1].startswith("attr:")]
            return min(held, key=lambda place: place not in self.known, default=None)
        place = (0 if name in self.own else item, name)
        if name == "quantity" and self.env.id == "CART":
            return place
        return place if place in goal.slots and (name != "type" or place not in goal.withheld) else None

    def _value(self, place: Place) -> Any:
        return self.customer.goal.slots.get(place, 1)  # one unit goes without saying

    def _is_known(self, place: Place) -> bool:
        return place[1] == "type" or place in self.known or place not in self.customer.goal.slots

    def _changed(self, places: Sequence[Place]) -> set[Place]:
        """Choose one or two places to get wrong: those that were not said, where no right message would hold them."""
        able = [p for p in shuffled(self.random, places) if len(self._others(p, places)) > 1]
        if self.frame["form"] not in ASKS:
            able.sort(key=self._is_known)
        two = len(places) > 2 and self.random.random() < TWO_WRONG
        second = [p for p in able[1:] if p[0] != able[0][0] or "type" not in (p[1], able[0][1])]
        return {*able[:1], *second[: int(two)]}

    def _others(self, place: Place, places: Sequence[Place]) -> list[Any]:
        """List values that a slot might have and has not; of a type, those that fit what is said of the item."""
        value, (item, name), catalog = self._value(place), place, self.episode.shop.catalog
        kind, template = self.types.get(self.customer.type_name(item)), self.customer.phrases.slots.get(name)
        if name in ("type", "thing", "parts"):
            wanted = {
                *map(self.customer.type_name, self.customer.goal.items),
                *([value] if name != "parts" else value),
            }
            words = {word for one in wanted for word in one.split()}
            said = [
                (p[1], self._value(p))
                for p in places
                if p[0] == item and p[1].startswith(("attr:", "option"))
            ]
            types = [
                other
                for other in self.types
                if words.isdisjoint(other.split())
                and all(v in self._closed(other).get(n, ()) for n, v in said)
            ]
            return [[*value[:-1], other] for other in types] if name == "parts" else types
        if name.endswith(("brand", "feature")):
            return [
                other for other in (catalog.brands if "brand" in name else catalog.features) if other != value
            ]
        if name == "must":
            named = [phrases().attributes.get(a.name, (a.name,))[0] for a in kind.attributes] if kind else []
            return [[*value[:-1], other] for other in named if other not in value]
        if name == "importance":
            return [value[n:] + value[:n] for n in range(1, len(value))]
        if name == "replacement":
            brands = [[["brand", brand]] for brand in catalog.brands if ["brand", brand] not in value]
            return brands if not value else [[], brands[0]]
        if template is not None and template.format.words:
            return [one for one in template.format.words.values() if one != value and _excludes(one, value)]
        if isinstance(value, int):
            step = slot_type(name).step * (
                max(1, round(value / 5000)) if slot_type(name).mark == "MONEY" else 1
            )
            moved = [value + n * step for n in (-2, -1, 1, 2)]
            return [other for other in moved if 0 < other and (name != "rating" or other <= 50)]
        return [o for o in self._closed(kind.name).get(name, ()) if o != value] if kind else []

    def _closed(self, kind: str) -> dict[str, Sequence[str]]:
        attributes = {f"attr:{one.name}": one.values for one in self.types[kind].attributes}
        return {**attributes, "option": self.types[kind].option.values}

    def _words(self, gap: Gap, place: Place, shown: Mapping[Gap, Any]) -> str:
        """Word what is shown in a gap as an agent would."""
        value, name, lexicon = shown[gap], place[1], self.customer.lexicon
        template, mark = self.customer.phrases.slots.get(name), slot_type(name).mark
        if gap.words:
            letters = {"MONEY": other_words.dollars, "DAYS": other_words.days}.get(
                mark, other_words.in_letters
            )
            said = letters(value)[0]
        elif gap.name == "plural":
            counts = {v for g, v in shown.items() if (g.name, g.item) == ("quantity", gap.item)}
            said = value if counts == {1} else self.types[value].plural
        elif gap.name.endswith("_name"):
            said = phrases().attributes.get(name.removeprefix("attr:"), (name.removeprefix("attr:"),))[0]
        elif gap.name in ("attr", "option"):
            said = lexicon.phrase(self.customer.type_name(place[0]), name, value)
        elif mark in ("STARS", "NUMBER") or name == "count":
            said = slot_type(name).bare(value)
        elif template is not None:
            own = {"my": "your", "I": "you"}
            said = re.sub(r"\b(?:my|I)\b", lambda found: own[found[0]], template.format.write(value))
        else:
            written = slot_type(name).format
            said = written.write(value) if written else str(value)
        said = said.lower() if self.frame.get("lower") and "brand" not in name else said
        return with_article(said) if gap.article else said

    # Things.

    def _things(self, wrong: bool) -> tuple[dict[Gap, str], list[Element]] | None:
        """Name the things of the frame, the right one or others; None where no tool shows such ones."""
        gaps = [gap for gap in self.gaps if gap.name in THINGS]
        if not gaps:
            return {}, []
        right, others = (
            self._ordered(gaps[0].name) if self.env.id in ("RETURN", "STATUS") else self._products()
        )
        words: dict[Gap, str] = {}
        broken: Slot | None = None
        always = any(gap.other for gap in gaps)
        for gap in gaps:
            n = len(gap.other) if always else int(wrong)
            if len(others) < n or not (n or right):
                return None
            words[gap], broken = others[n - 1] if n else (right[0], broken)
        if broken and self.frame["form"] != "either":
            return words, [self._element(gaps[0].name, broken, wrong)]
        return words, [Element(gaps[0].name, None, right[0] if right else None, "", wrong)]

    def _ordered(self, what: str) -> tuple[list[str], list[tuple[str, None]]]:
        """List the days of orders, or the titles of what is in them: those that the customer means, and others."""
        self.episode.act(calls(("order_list", {})))
        found: dict[str, bool] = {}
        for order in self.world.given["orders"]:
            day = FORMATS["day"].write(order["placed"])
            things = [Thing("order", order["order_id"], day)]
            if what == "product":
                rows = [(line["line_id"], self.world.row(line["product_id"])) for line in order["lines"]]
                things = [Thing("line", order["order_id"], self.world.catalog.title(r), i) for i, r in rows]
            for thing in things:
                opinion = self.env.opinion(self.customer.goal, self.world, thing)
                found[thing.text] = found.get(thing.text, False) or bool(opinion and opinion.right)
        return [t for t in found if found[t]], shuffled(
            self.random, [(t, None) for t in found if not found[t]]
        )

    def _products(self) -> tuple[list[str], list[tuple[str, Slot]]]:
        """List titles of products that a search shows: as wanted, or breaking a single wish, which was said."""
        goal = self.customer.goal
        slots = goal.of(item := pick(self.random, goal.items))
        attributes = {name[5:]: value for name, value in slots.items() if name.startswith("attr:")}
        narrow = {"brand": slots.get("brand"), "attributes": attributes}
        query = {"query": f"{slots.get('feature', '')} {slots['type']}", "category": slots["type"]}
        searches = [
            {**query, **narrow, **filters_of(slots)},
            {**query, **narrow},
            {**query, **filters_of(slots)},
            query,
        ]
        self.episode.act(
            calls(*[("catalog_search", {n: v for n, v in one.items() if v}) for one in searches])
        )
        goal, known = self.customer.goal, self.customer.state.known
        right, others = list[str](), dict[str, list[Slot | None]]()
        for product_id in sorted(self.world.shown):
            row = self.world.row(product_id)
            thing = Thing("product", product_id, self.world.catalog.title(row))
            opinion = self.env.opinion(goal, self.world, thing)
            if opinion is None or not self.world.stock(row) or opinion.right:
                right += [thing.text] if opinion and opinion.right and self.world.stock(row) else []
                continue
            broken = opinion.broken if opinion.broken in known else None
            rest = goal.drop_slots(broken.name, item=broken.item) if broken else goal
            second = self.env.opinion(rest, self.world, thing)
            others.setdefault(thing.text, []).append(broken if second and second.right else None)
        alone = [
            (title, slots[0]) for title, slots in others.items() if len(slots) == 1 and title not in right
        ]
        return shuffled(self.random, right), shuffled(self.random, [(t, slot) for t, slot in alone if slot])


def _excludes(value: Any, other: Any) -> bool:
    """Tell whether two values of a closed set exclude each other, which "Monday" and "2 days" ago do not."""
    if not isinstance(value, str) or not isinstance(other, str):
        return True
    sorts = [(one in ("week", "month"), one[:1].isdigit(), one.endswith("days")) for one in (value, other)]
    return sorts[0] == sorts[1] and not sorts[0][0]


def table_of(shares: Sequence[Share]) -> Table:
    """Tabulate a bank's outcomes: numbers of wrong elements and of right messages, and shares of each in percent."""
    table = Table(title=shares[0].bank, box=None)
    for heading in ("", "wrong", *WRONG_OUTCOMES, "right", *RIGHT_OUTCOMES, "told more"):
        table.add_column(heading.replace(" ", "\n"), no_wrap=True, justify="right" if heading else "left")
    for share in shares:
        cells = [share.group]
        for counts, outcomes in ((share.wrong, WRONG_OUTCOMES), (share.right, RIGHT_OUTCOMES)):
            n = counts.total()
            cells += [str(n), *(f"{100 * counts[one] / n:.1f}" if n else "" for one in outcomes)]
        table.add_row(*cells, str(share.extra))
    return table


def main(banks: Annotated[list[str] | None, typer.Argument()] = None, misses: int = 0) -> None:
    """Print the banks' outcomes and, of `read`, so many messages with a reply that the law does not allow."""
    shop, console = load_shop(), Console(width=120)
    for bank in banks or BANKS:
        told = list(tell(frames(bank), shop))
        console.print(table_of(shares(bank, told)))
        missed = [one for one in told if not _is_kept(one)] if bank == "read" else []
        for one in shuffled(rng("misses"), missed)[:misses]:
            console.print(one.task.title, repr(one.text), one.wrong, one.reply.acts, sep="\n  ", markup=False)


def _is_kept(one: Told) -> bool:
    if not one.wrong:
        return one.outcome() == "affirmed"
    return all(one.outcome(element) in ("named", "refused") for element in one.wrong)


if __name__ == "__main__":
    typer.run(main)
