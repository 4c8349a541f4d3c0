"""STATUS: tell which order the customer means, how it stands, and when it arrives or arrived (SPEC §7)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answers.dates import read_day, says_none
from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act
from ecomlab.customer.nlg import ANSWERS
from ecomlab.customer.nlu import read_message
from ecomlab.customer.templates import Saying, read_sayings
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, Wanted, withhold
from ecomlab.players.status import Tracker
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task, TaskError
from ecomlab.tool import tool
from ecomlab.values import DAY, MONTHS, NAME, choice
from ecomlab.world.orders.history import STATUSES, draw_history, last_date, status_of
from ecomlab.world.orders.references import (
    STEPS,
    WORDS,
    Seen,
    in_a_row,
    look,
    refer,
    resolve,
    values_of,
)
from ecomlab.world.state import World
from ecomlab.world.tools import catalog as shop_tools
from ecomlab.world.tools import orders as order_tools

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

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

_DENIED = re.compile(r"(?:\b(?:not|never|no)\b|n't\b)[^,.;:]*|\b(?:to|will) be \w+")


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


class Status(Answering):
    id = "STATUS"
    version = 1
    golden = "a47650e06300fa207dce35d55bd5321f"
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
            first, told = _draw_switch(target, seen, today, indirect, shop, random)
            if first and told:
                slots = first
                kind = "change" if "correction" in told else "order"
                events.append(Event(0, kind, 0, 1, 1, data={"slots": [[n, v] for n, v in told.items()]}))
        elsewhere = any(event.kind == "order" for event in events)
        listed = [(0, name, value) for name, value in slots.items()]
        withheld = withhold(listed, axes, random, lambda _, name: elsewhere)
        asks = int(bool(withheld))
        lookups = 1
        if "parcels" in slots:
            listed_only = {n: v for n, v in slots.items() if n not in ("parcels", *STEPS)}
            lookups = len(resolve(seen, listed_only, today))
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
        kind, words, said = self.turn_to(episode, slots)
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
        day = says_none(told) if last is None else read_day(told, today) == date.fromisoformat(last)
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
            others = values_of(name, seen, shop)
            for value in [others[i] for i in random.permutation(len(others)).tolist()]:
                other = {**slots, name: value}
                if value != slots[name] and len(resolve(seen, {**other, **after}, today)) == 1:
                    return replace(task, truth={**task.truth, "slots": [[0, n, v] for n, v in other.items()]})
        return None


def _draw_switch(
    target: int, seen: Sequence[Seen], today: date, indirect: bool, shop: Shop, random: np.random.Generator
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The slots of another order that the customer asks about first, and what they say to come to `target`: a step
    from the first, or what describes it. None for what cannot be said."""
    ways = [step for step in (1, -1) if 0 <= target - step < len(seen)]
    if ways and in_a_row(seen) and random.random() < 0.6:
        step = ways[int(random.integers(len(ways)))]
        first = refer(target - step, seen, today, indirect, shop, random)
        if first and "relation" in first:  # "the one after that; no, the one before that": of which?
            first = refer(target - step, seen, today, False, shop, random)
        return first, {"correction": step}
    others = [i for i in range(len(seen)) if i != target]
    other = others[int(random.integers(len(others)))] if others else target
    first = refer(other, seen, today, indirect, shop, random) if others else None
    return first, refer(target, seen, today, False, shop, random)


def read_status(said: Any) -> str | None:
    """The one status of the closed vocabulary that a text names; None for none or several. What it denies or expects
    does not count: "shipped, not yet delivered"; nor do the parcels of an order that stands in parts."""
    if not isinstance(said, str) or len(said) > 200:
        return None
    text, found = said.lower().replace("_", " "), []
    text = re.sub(r"\([^()]*\)", " ", text).strip() or text  # "partly delivered (1 of 2 delivered)"
    text = _DENIED.sub(" ", text)
    for status, pattern in _SAID:
        text, count = re.subn(rf"\b(?:{pattern})\b", " ", text)
        found += [status] if count else []
    partly = [status for status in found if status.startswith("partly")]
    return (partly or found)[0] if len(partly or found) == 1 else None
