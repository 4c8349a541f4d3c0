"""STATUS: tell which order the customer means, how it stands, and when it arrives or arrived (SPEC §7)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answering import Answering, Wanted, withhold
from ecomlab.catalog import Shop
from ecomlab.core import Draft, Event, Message, Need, Task, TaskError, Verdict
from ecomlab.customer.lexicon import Lexicon
from ecomlab.customer.reading import read_message
from ecomlab.customer.sayings import DAY, MONTHS, NAME, Saying, choice, read_sayings
from ecomlab.customer.words import ANSWERS, Act
from ecomlab.difficulty import Difficulty
from ecomlab.players.clerk import Clerk
from ecomlab.seeding import rng
from ecomlab.tooling import tool
from ecomlab.world import order_tools
from ecomlab.world import tools as shop_tools
from ecomlab.world.dates import read_day, says_no_day
from ecomlab.world.orders import STATUSES, draw_history, last_date, status_of
from ecomlab.world.overlay import World

if TYPE_CHECKING:
    from ecomlab.episode import Job

Seen = Mapping[str, Any]
"""An order as it is looked at to find the one that is meant: "placed", "items" (title, type), "parcels" (how many, None
if not known)."""
WORDS = ("type", "brand", "feature")
LOOKUPS = 40
"""Most orders that a reference leaves to be looked into."""
WEIGHTS = {"order": 0.5, "status": 0.25, "date": 0.25}
NEAR = 0.3
"""The share for another order that is part of what was said."""

PLACES = {
    0: "my most recent order",
    1: "my second most recent order",
    2: "my third most recent order",
    -1: "my oldest order",
    -2: "my second oldest order",
}
PLACE = choice(PLACES)
SHIFT = choice({1: "the one before that", -1: "the one after that"})
"""Steps back in time from the order that was spoken of."""
TIME = choice(
    {f"{days} days": f"{days} days ago" for days in range(2, 7)}
    | {"1 days": "yesterday", "week": "last week", "month": "last month"}
    | {f"{number:02d}": f"in {name}" for number, name in enumerate(MONTHS, 1)}
)
THINGS = choice({2: "two", 3: "three", 4: "four", 5: "five"})
TWO = choice({2: "two parcels"})

_SAID = (
    ("partly delivered", r"part\w*[ -]+(?:delivered|arrived)|(?:delivered|arrived) (?:in )?part\w*"),
    ("partly shipped", r"part\w*[ -]+(?:shipped|sent)|(?:shipped|sent) (?:in )?part\w*"),
    ("cancelled", r"cancell?ed"),
    ("delayed", r"delayed|late"),
    ("delivered", r"delivered|arrived"),
    ("shipped", r"shipped|in transit|on (?:its|the) way"),
    ("processing", r"processing|being processed|in process"),
)


@tool
def submit(
    world: World,
    order_id: Annotated[str | None, Field(description="The order that the customer means.")] = None,
    status: Annotated[str | None, Field(description=f"One of: {', '.join(STATUSES)}.")] = None,
    date: Annotated[
        str | None,
        Field(description="The day on which it was delivered or is expected, its last parcel if it has several; none "
        "if it was cancelled."),
    ] = None,
) -> dict[str, Any]:  # fmt: skip
    """Hand in the answer; the conversation ends."""
    return {"submitted": True}


class Tracker(Clerk):
    """Lists the orders, finds the one that is meant, looks into it and says how it stands."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.today: date | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.choice: str | None = None

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        slots = {name: value for (_, name), value in self.known.items() if value is not None}
        calls = [] if self.orders is not None else [self.call("order_list", None)]
        if "when" in slots and self.today is None:
            calls.append(self.call("datetime_now", None))
        if calls:
            return self.turn(*calls)
        assert self.orders is not None
        if "parcels" in slots:
            likely = resolve(
                self._seen(), {n: v for n, v in slots.items() if n not in ("parcels", *STEPS)}, self.today
            )
            unseen = [self.orders[i]["order_id"] for i in likely]
            unseen = [order_id for order_id in unseen if order_id not in self.looked][:LOOKUPS]
            if unseen:
                return self.turn(*(self.call("order_get_status", None, order_id=o) for o in unseen))
        if self.choice is None:
            seen = self._seen()
            found = resolve(seen, slots, self.today) or [0]
            first = next(iter(slots), "")
            others = [i for i in resolve(seen, {first: slots.get(first)}, self.today) if i not in found]
            if slots.get("place", 0) not in (0, -1) or "relation" in slots:  # one can miscount
                others += [i - 1 for i in found if i]
            if any(self.slip() for _ in range(max(0, len(slots) - 1) + len(others))) and others:
                found = others  # each thing that was said, and each order it is told from, is a chance to err
            self.choice = self.orders[found[0]]["order_id"]
        if self.choice not in self.looked:
            return self.turn(self.call("order_get_status", None, order_id=self.choice))
        order = self.looked[self.choice]
        day = max((p.get("delivered") or p["expected"] for p in order["parcels"]), default=None)
        status = order["status"]
        if any(self.slip() for _ in order["parcels"][1:]):  # the first parcel is not the order
            status = order["parcels"][0]["status"] if status.startswith("partly") else "processing"
        dates = sum(len(parcel) - 2 for parcel in order["parcels"])
        if any(self.slip() for _ in range(dates - 1)):  # each date more is one to mix it up with
            day = order["placed"]
        return self.turn(self.call("submit", None, order_id=self.choice, status=status, date=day))

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "orders" in result:
            self.orders = result["orders"]
        elif "today" in result:
            self.today = date.fromisoformat(result["today"])
        elif "lines" in result:
            self.looked[result["order_id"]] = result

    def _seen(self) -> list[dict[str, Any]]:
        assert self.orders is not None
        parcels = {order_id: len(order["parcels"]) for order_id, order in self.looked.items()}
        return [{**order, "parcels": parcels.get(order["order_id"])} for order in self.orders]


class Status(Answering):
    id = "STATUS"
    version = 1
    golden = "b95e2c896f1c4f96f295799ee569d57c"
    axes = ("p_missing", "turn_slack", "tool_slack", "p_noise", "p_switch", "history")
    brief = (
        "The customer asks about one of their orders. Find out which one they mean, and hand in how it stands and the "
        "day on which it was delivered or is expected (of the last parcel, if it has several)."
    )
    tools = shop_tools.named(
        order_tools.order_list,
        order_tools.order_get_status,
        order_tools.return_check_eligibility,
        shop_tools.catalog_get_product,
        shop_tools.datetime_now,
    )
    submit = submit
    clerk = Tracker
    which = "order"
    sayings: ClassVar[Mapping[str, Saying]] = {
        "placed": Saying(
            "order", DAY, ("I placed it on {}.", "It's the one from {}.", "The order I mean is from {}.")
        ),
        "place": Saying("order", PLACE, ("It's {}.", "I'm asking about {}.", "The one I mean is {}.")),
        "when": Saying(
            "order", TIME, ("I placed it {}.", "I ordered it {}.", "The one I mean was placed {}.")
        ),
        "thing": Saying(
            "order",
            NAME,
            ("It's the one with the {} in it.", "The {} is from that order.", "The {} was part of it."),
        ),
        "things": Saying(
            "order",
            THINGS,
            ("I ordered {} different things at once.", "There were {} different things in that order."),
        ),
        "parcels": Saying(
            "order",
            TWO,
            ("It was to come in {}.", "I mean the one that was split into {}.", "They put it into {}."),
        ),
        "relation": Saying("order", SHIFT, ("I mean {}.", "It's {}.", "What I'd like to know about is {}.")),
        "correction": Saying("order", SHIFT, ("Sorry, I meant {}.", "Actually, I'd rather know about {}.")),
    }
    acts: ClassVar[Mapping[str, Sequence[str]]] = {
        **ANSWERS,
        "elaborate": ("The order with {wanted}.", "With {wanted}, that is.", "There was {wanted} in it."),
        "remind": ("As I said, the order with {wanted}.",),
        "indifferent": ("I can't tell you that.", "I don't know about that, sorry."),
        "nothing": (
            "That is all I can tell you.",
            "I have told you all I know.",
            "There is nothing more I can say.",
        ),
    }
    leads = (
        "where is my order with {}?",
        "what about my order with {}?",
        "what is the state of my order with {}?",
        "I'd like to know how my order with {} is doing.",
        "I'm writing about the order with {}.",
        "can you check on an order for me? It's the one with {}.",
        "has my order with {} been sent?",
        "what happened to the order with {}?",
    )
    vague = (
        "I have a question about one of my orders: has it come, and if not, when will it?",
        "could you check one of my orders for me?",
        "I'd like to know how one of my orders is doing.",
        "where has one of my orders got to?",
        "can you look up an order for me and tell me how it is doing?",
        "I'm writing about one of my orders.",
    )
    """Leads where no product is named."""
    beside = (
        "do you see my order with {}? It's not that one I'm asking about.",
        "there is my order with {}, but that one is fine.",
        "I know about my order with {}. It's a different one I'm asking about.",
        "you'll find an order with {} there. My question is about a different one, close to it.",
        "please go to my order with {} first.",
    )
    """Leads where the product stands in the order before or after."""
    closings = ("", "", "", "Thanks!", "Please help me out.", "Please have a look.", "I hope you can tell.")
    intros = (
        "It's about something I ordered.",
        "One of my orders is on my mind.",
        "An order of mine needs a look.",
    )

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        world = draw_history(key, axes, shop)
        random, level = rng("status", *key), key[2]
        today, seen = date.fromisoformat(world["today"]), look(world["orders"], shop)
        indirect = random.random() < 1 / (1 + math.exp(-(level - 2) / 1.5))
        switching = random.random() < axes.p_switch
        events: list[Event] = []
        slots: dict[str, Any] | None = None
        for target in random.permutation(len(seen)).tolist():  # any order, with equal chance
            slots = refer(target, seen, today, indirect, shop, random)
            if slots is not None:
                break
        if slots is None:
            raise TaskError("no order of the history can be told from the others")
        if switching:
            # The order that is asked about in the end is the one drawn; the first question was about another.
            ways = [step for step in (1, -1) if 0 <= target - step < len(seen)]
            if ways and _in_a_row(seen) and random.random() < 0.6:
                step = ways[int(random.integers(len(ways)))]
                first = refer(target - step, seen, today, indirect, shop, random)
                if first and "relation" in first:  # "the one after that; no, the one before that": of which?
                    first = refer(target - step, seen, today, False, shop, random)
                told = [["correction", step]]
            else:
                others = [i for i in range(len(seen)) if i != target]
                other = others[int(random.integers(len(others)))] if others else target
                first = refer(other, seen, today, indirect, shop, random) if others else None
                direct = refer(target, seen, today, False, shop, random)
                told = [[n, v] for n, v in direct.items()] if direct else []
            if first is not None and told:
                kind = "change" if told[0][0] == "correction" else "order"
                slots = first
                events.append(Event(0, kind, 0, 1, 1, data={"slots": told}))
        elsewhere = any(event.kind == "order" for event in events)
        listed = [(0, name, value) for name, value in slots.items()]
        withheld = withhold(listed, axes, random, lambda _, name: elsewhere)
        asks = int(bool(withheld))
        lookups = 1
        if "parcels" in slots:
            lookups = len(
                resolve(seen, {n: v for n, v in slots.items() if n not in ("parcels", *STEPS)}, today)
            )
        need = Need(asks + 2, asks, 1 + ("when" in slots) + lookups)
        timed = []
        for event in events:
            turn, new = int(random.integers(asks + 1, need.turns + 1)), dict(event.data["slots"])
            # Which order is in two parcels has still to be found out, before one can look at the next.
            again = turn == asks + 1 and "parcels" in slots and event.kind == "change"
            dated = "when" in new and "when" not in slots  # then one has to ask for today's date
            timed.append(replace(event, turn=turn, chain=1 + (again or dated), calls=1 + dated))
        leads = self.beside if "relation" in slots else self.leads if "type" in slots else self.vague
        return self.draft(listed, withheld, world, need, timed, leads)

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        slots = dict(event.data["slots"])
        if event.kind != "order":
            episode.state.update({(0, name): value for name, value in slots.items()})
            episode.kernel.ledger.restate(0, slots)
            return [Act("elaborate", "", slots)]
        episode.state.clear()
        episode.state.update({(0, name): value for name, value in slots.items()})
        episode.kernel.ledger.forget(0)
        kind = slots.pop("type", "")
        episode.kernel.ledger.restate(0, slots)
        words = {name: value for name, value in slots.items() if name not in self.sayings}
        said = {name: value for name, value in slots.items() if name in self.sayings}
        acts = [Act("another order")]
        acts += [Act("this order", kind, words)] if kind else []
        return [*acts, *([Act("elaborate", kind, said)] if said else [])]

    def read_later(self, text: str, lexicon: Lexicon, known: Mapping[tuple[int, str], Any]) -> Wanted:
        said, rest = read_sayings(text, self.sayings)
        read: Wanted = {}
        if "another order" in rest:
            read = dict.fromkeys(known)
            rest = rest[rest.index("another order") :]
        for mention in read_message(rest, lexicon):
            if read or mention.type == known.get((0, "type")):
                slots = {"type": mention.type, **mention.slots}
                read |= {(0, name): value for name, value in slots.items() if name in WORDS}
        return read | {(0, name): value for name, value in said}

    def verify(self, episode: "Job") -> Verdict:
        world, answer = episode.world, episode.answer or {}
        today = date.fromisoformat(world.given["today"])
        slots = {name: value for (_, name), value in episode.state.items()}
        (at,) = resolve(look(world.given["orders"], episode.shop), slots, today)
        order = world.given["orders"][at]
        status, last = status_of(order), last_date(order)
        told, token = answer.get("date"), answer.get("order_id")
        right = isinstance(token, str) and token.strip().upper() == order["order_id"]
        stands = right and read_status(answer.get("status")) == status
        day = says_no_day(told) if last is None else read_day(told, today) == date.fromisoformat(last)
        day = right and bool(answer) and day
        correct = right and stands and day
        share = WEIGHTS["order"] * right + WEIGHTS["status"] * stands + WEIGHTS["date"] * day
        if not right and token in self._nearly(episode):
            share = NEAR
        wrong = [
            *([] if right else [f"order {order['order_id']} was meant"]),
            *([] if stands or not right else [f"it is {status}"]),
            *([] if day or not right else [f"the day is {last or 'none'}"]),
        ]
        why = "; ".join(wrong) or f"order {order['order_id']} is {status}, {last or 'no day'}"
        return Verdict(1.0 if correct else min(2 * share - 1, 0.999), correct, why)

    def _nearly(self, episode: "Job") -> set[str]:
        """Orders that are part of what was said: with such a thing in them, spoken of to find another, or asked about
        at first. Without a credit for these an honest miss would earn less than any order picked blindly (law 3)."""
        history = episode.world.given["orders"]
        today, seen = date.fromisoformat(episode.world.given["today"]), look(history, episode.shop)
        slots = {name: value for (_, name), value in episode.state.items()}
        first = {name: value for _, name, value in episode.task.truth["slots"]}
        found = set(resolve(seen, first, today))
        for said in (slots, first):
            found |= set(resolve(seen, {n: v for n, v in said.items() if n not in STEPS}, today))
        if "type" in slots or "thing" in slots:
            kind = {name: slots.get(name) for name in ("type", "thing")}
            found |= set(resolve(seen, kind, today))
        return {history[at]["order_id"] for at in found}

    def chance(self, task: Task, shop: Shop) -> float:
        """Any order is as likely to be the one that is asked about in the end."""
        return 1 / len(task.world["orders"])

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another value of something withheld that still leaves one order."""
        slots = {name: value for _, name, value in task.truth["slots"]}
        today, seen = date.fromisoformat(task.world["today"]), look(task.world["orders"], shop)
        after = {n: v for e in task.events if e.kind == "change" for n, v in e.data["slots"]}
        hidden = [name for _, name in task.truth["withheld"]]
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            others = _values(name, seen, shop)
            for value in [others[i] for i in random.permutation(len(others)).tolist()]:
                other = {**slots, name: value}
                if value != slots[name] and len(resolve(seen, {**other, **after}, today)) == 1:
                    return replace(task, truth={**task.truth, "slots": [[0, n, v] for n, v in other.items()]})
        return None


STEPS = ("relation", "correction")
"""Slots that lead from the order spoken of to the one before or after."""


def look(history: Sequence[Mapping[str, Any]], shop: Shop) -> list[dict[str, Any]]:
    """Orders as they are seen by somebody who has looked into all of them."""
    seen = []
    for order in history:
        rows = [shop.catalog.row(line["product_id"]) or 0 for line in order["lines"]]
        items = [{"title": shop.catalog.title(row), "type": shop.catalog.type_of(row).name} for row in rows]
        seen.append({"placed": order["placed"], "items": items, "parcels": len(order["parcels"])})
    return seen


def resolve(seen: Sequence[Seen], slots: Mapping[str, Any], today: date | None) -> list[int]:
    """The orders (newest first, by number) that these slots may mean."""
    found = [i for i, order in enumerate(seen) if _fits(order, slots, today)]
    place = slots.get("place")
    if place is not None:
        place = place if place >= 0 else len(seen) + place
        found = [i for i in found if i == place]
    for step in STEPS:
        if slots.get(step) is not None:
            found = [i + slots[step] for i in found if 0 <= i + slots[step] < len(seen)]
    return found


def _fits(order: Seen, slots: Mapping[str, Any], today: date | None) -> bool:
    if slots.get("placed") not in (None, order["placed"][5:]):
        return False
    if slots.get("things") not in (None, len(order["items"])):
        return False
    if slots.get("parcels") is not None and order["parcels"] not in (None, slots["parcels"]):
        return False
    if slots.get("when") is not None and today is not None and not _at(order["placed"], slots["when"], today):
        return False
    return all(slots.get(name) is None for name in (*WORDS, "thing")) or any(
        _named(i, slots) for i in order["items"]
    )


def _named(item: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    kind, brand, feature = slots.get("type") or slots.get("thing"), slots.get("brand"), slots.get("feature")
    return bool(
        kind in (None, item["type"])
        and (brand is None or item["title"].startswith(f"{brand} "))
        and (feature is None or f" {feature} " in item["title"])
    )


def _at(placed: str, when: str, today: date) -> bool:
    """Whether an order was placed then: weeks begin on Monday, months are those of the calendar."""
    day = date.fromisoformat(placed)
    if when.endswith(" days"):
        return (today - day).days == int(when.split()[0])
    if when == "week":
        monday = today - timedelta(days=today.weekday())
        return monday - timedelta(days=7) <= day < monday
    if when == "month":
        before = today.replace(day=1) - timedelta(days=1)
        return (day.year, day.month) == (before.year, before.month)
    return day.month == int(when)


def _loosely(placed: str, when: str, today: date) -> bool:
    """Whether somebody who counts weeks or months in another way might mean it."""
    age = (today - date.fromisoformat(placed)).days
    if when == "week":
        return age <= 14
    if when == "month":
        return age <= 62 and not age < 7
    return False


def _in_a_row(seen: Sequence[Seen]) -> bool:
    """Whether no two orders are of one day: only then is there one before another."""
    return len({order["placed"] for order in seen}) == len(seen)


def refer(
    target: int, seen: Sequence[Seen], today: date, indirect: bool, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Slots that mean this order and no other, in one of the ways in which customers speak; None if there is none."""
    ways = (
        (_when, _place, _relation, _parcels, _things, _both, _both) if indirect else (_words, _placed, _both)
    )
    for make in [ways[i] for i in random.permutation(len(ways)).tolist()]:
        slots = make(target, seen, today, shop, random)
        if slots is not None and resolve(seen, slots, today) == [target]:
            bare = not {"brand", "feature", "relation"} & slots.keys()
            if "type" in slots and bare and random.random() < 0.75:  # what was in it comes after the question
                return {"thing" if name == "type" else name: value for name, value in slots.items()}
            return slots
    return refer(target, seen, today, False, shop, random) if indirect else None


def _words(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "my order with the Compact Yoga Mat", and its day where that does not say it."""
    for i in random.permutation(len(seen[target]["items"])).tolist():
        slots = _item(seen[target]["items"][i], seen, today, shop, random)
        if resolve(seen, slots, today) == [target]:
            return slots
    return {**slots, "placed": seen[target]["placed"][5:]}


def _item(
    item: Mapping[str, Any], seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """A thing in words, no more than are of use."""
    brand, rest = item["title"].split(" ", 1)
    values = {"brand": brand, "feature": rest.removesuffix(f" {item['type']}")}
    slots: dict[str, Any] = {"type": item["type"]}
    for name in [("brand", "feature")[i] for i in random.permutation(2).tolist()]:
        more = {**slots, name: values[name]}
        if len(resolve(seen, more, today)) < len(resolve(seen, slots, today)):
            slots = more
    return {name: slots[name] for name in WORDS if name in slots}


def _placed(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    return {"placed": seen[target]["placed"][5:]}


def _when(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "the charger from last week": of several chargers."""
    kinds = list(dict.fromkeys(item["type"] for item in seen[target]["items"]))
    placed = seen[target]["placed"]
    times = ["week", "month", placed[5:7], f"{(today - date.fromisoformat(placed)).days} days"]
    times = [t for t in times if _at(placed, t, today) and t in _TIMES and t != today.isoformat()[5:7]]
    pairs = [(kind, time) for kind in kinds for time in times]
    several = [p for p in pairs if len(resolve(seen, {"type": p[0]}, today)) > 1]
    for kind, time in [(several or pairs)[i] for i in random.permutation(len(several or pairs)).tolist()]:
        slots = {"type": kind, "when": time}
        others = [i for i in resolve(seen, {"type": kind}, today) if i != target]
        if not any(
            _at(seen[i]["placed"], time, today) or _loosely(seen[i]["placed"], time, today) for i in others
        ):
            return slots
    return None


def _place(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "my latest order but one"."""
    places = [place for place in (target, target - len(seen)) if place in PLACES]
    if not places or not _in_a_row(seen):
        return None
    return {"place": places[int(random.integers(len(places)))]}


def _relation(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "the one before that": the order next to one that words describe."""
    steps = [step for step in (1, -1) if 0 <= target - step < len(seen)]
    if not steps or not _in_a_row(seen):
        return None
    step = steps[int(random.integers(len(steps)))]
    slots = _words(target - step, seen, today, shop, random)
    return None if slots is None or "placed" in slots else {**slots, "relation": step}


def _parcels(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "the one in two parcels", of all orders or of those with such a thing."""
    if seen[target]["parcels"] != 2 or len(seen) > LOOKUPS:
        return None
    if resolve(seen, {"parcels": 2}, today) == [target]:
        return {"parcels": 2}
    kind = seen[target]["items"][int(random.integers(len(seen[target]["items"])))]["type"]
    return {"type": kind, "parcels": 2}


def _things(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """ "the one with four different things in it", of all orders or of those with such a thing."""
    count = len(seen[target]["items"])
    if count < 2:
        return None
    if resolve(seen, {"things": count}, today) == [target]:
        return {"things": count}
    kind = seen[target]["items"][int(random.integers(count))]["type"]
    return {"type": kind, "things": count}


def _both(
    target: int, seen: Sequence[Seen], today: date, shop: Shop, random: np.random.Generator
) -> dict[str, Any] | None:
    """Two things that only together say which: "the one from March with three different things in it"."""
    placed, items = seen[target]["placed"], seen[target]["items"]
    values: dict[str, Any] = {"thing": items[int(random.integers(len(items)))]["type"], "things": len(items)}
    values |= {"when": placed[5:7]} if placed[5:7] != today.isoformat()[5:7] else {}
    names = [list(values)[i] for i in random.permutation(len(values)).tolist()]
    for one, other in ((names[0], names[1]), (names[-1], names[0])):
        slots = {name: values[name] for name in sorted((one, other))}
        if slots.get("things") != 1 and all(
            len(resolve(seen, {name: value}, today)) > 1 for name, value in slots.items()
        ):
            return slots
    return None


_TIMES = frozenset(
    ["week", "month", *(f"{n} days" for n in range(1, 7)), *(f"{n:02d}" for n in range(1, 13))]
)


def _values(name: str, seen: Sequence[Seen], shop: Shop) -> list[Any]:
    """Values that a slot might have in this history."""
    if name == "placed":
        return [order["placed"][5:] for order in seen]
    if name == "place":
        return [place for place in PLACES if -len(seen) <= place < len(seen)]
    if name in STEPS:
        return [1, -1]
    if name == "when":
        return sorted(_TIMES)
    if name == "things":
        return [2, 3, 4, 5]
    if name == "brand":
        return sorted({item["title"].split(" ", 1)[0] for order in seen for item in order["items"]})
    if name == "thing":
        return sorted({item["type"] for order in seen for item in order["items"]})
    if name == "feature":
        return list(shop.catalog.features)
    return []


def read_status(said: Any) -> str | None:
    """The one status of the closed vocabulary that a text names; None for none, several, or a denied one."""
    if not isinstance(said, str) or len(said) > 200:
        return None
    text, found = said.lower().replace("_", " "), []
    if re.search(r"\b(?:not|never|no)\b|n't\b", text):
        return None
    for status, pattern in _SAID:
        text, count = re.subn(rf"\b(?:{pattern})\b", " ", text)
        found += [status] if count else []
    return found[0] if len(found) == 1 else None
