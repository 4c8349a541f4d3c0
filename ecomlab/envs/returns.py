"""RETURN: find the order line the customer means, return the wanted units of it or decline it (SPEC §7)."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answers.dates import read_day, says_none
from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import Lexicon
from ecomlab.customer.acts import Act, Fault, Slot
from ecomlab.customer.dialogue import PATIENCE
from ecomlab.customer.nlg import ANSWERS
from ecomlab.customer.nlu import read_message
from ecomlab.customer.replacements import SWAP, Swap, can_be_had, draw_swap, rows_of
from ecomlab.customer.templates import Saying, read_sayings
from ecomlab.difficulty import Difficulty
from ecomlab.envs.answering import Answering, Wanted, withhold
from ecomlab.players.returns import Returner
from ecomlab.reward import Verdict
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Task, TaskError
from ecomlab.tool import tool
from ecomlab.values import DAY, choice
from ecomlab.world.orders.history import (
    Line,
    Order,
    delivered,
    draw_history,
    eligibility,
    eligible_now,
    find_line,
    lines_of,
)
from ecomlab.world.orders.lines import (
    describe,
    is_identity,
    line_fits,
    line_meant,
    line_value,
    lines_meant,
    may_be,
)
from ecomlab.world.policy_book.terms import draw_terms
from ecomlab.world.state import World, draw_rush
from ecomlab.world.tools import catalog as shop_tools
from ecomlab.world.tools import orders as order_tools

if TYPE_CHECKING:
    from ecomlab.episode.subtask import Job

WEIGHTS = {"line": 0.45, "effect": 0.45, "replacement": 0.10}
NEAR = 0.15
"""The share for another line of the type that is meant."""
COUNT = choice({1: "one", 2: "two", 3: "three", 4: "four"})
_OUTCOME = re.compile(
    r"(?P<no>declin\w*|reject\w*|refus\w*|denied|deny|ineligible|non-?\s?returnable|"
    r"(?:\b(?:not|never|unable to|no longer)|cannot|n't)(?: \w+){0,2}? (?:return\w*|accept\w*|approv\w*|eligible)|"
    r"(?:outside|after|past) (?:of )?the (?:return )?(?:window|period)|"
    r"(?:window|period) (?:is|has) (?:over|closed|expired|passed|ended)|expired|too late)|"
    r"(?P<yes>returned|accepted|approved|refunded|exchanged|replaced|sent back|taken back|"
    r"return(?: \w+){0,2} (?:initiated|started)|^\W*return\W*$)",
    re.IGNORECASE,
)


@tool
def submit(
    world: World,
    order_id: Annotated[str | None, Field(description="The order that the customer means.")] = None,
    line_id: Annotated[str | None, Field(description="Its line that the customer means.")] = None,
    outcome: Annotated[str | None, Field(description='"returned" or "declined".')] = None,
    last_return_day: Annotated[
        str | None,
        Field(description='If declined: the last day on which it can or could be returned, or "never".'),
    ] = None,
    replacement: Annotated[
        str | None,
        Field(description="If returned and the customer wants another product for it: its product id."),
    ] = None,
) -> dict[str, Any]:
    """Hand in what came of the request; the conversation ends."""
    return {"submitted": True}


class Returns(Answering):
    id = "RETURN"
    in_world = True
    version = 1
    golden = "ae8221b2d9bf0338465ed9f65a350138"
    axes = (
        "constraints", "p_missing", "eps_rank", "p_oos", "turn_slack", "tool_slack", "p_noise", "p_switch", "top_k",
        "history",
    )  # fmt: skip
    brief = (
        "The customer wants to send something back. Find the line of the order that they mean and check whether it can "
        "be returned. If it can, return exactly the units they want and, if they want another product for it, find one "
        "of the same type that is as they say, in stock, and not the same product. If it cannot, decline. Hand in the "
        "line and the outcome; with a decline the last day on which it can or could be returned."
    )
    tools = shop_tools.named(
        order_tools.order_list,
        order_tools.order_get_status,
        order_tools.return_check_eligibility,
        order_tools.return_initiate,
        order_tools.return_cancel,
        shop_tools.catalog_search,
        shop_tools.catalog_get_product,
        shop_tools.catalog_get_variants,
        shop_tools.datetime_now,
    )
    submit = submit
    clerk = Returner
    which = "order"
    sayings: ClassVar[Mapping[str, Saying]] = {
        "ordered": Saying(
            "order", DAY, ("I ordered it on {}.", "I bought it on {}.", "It is from my order of {}.")
        ),
        "delivered": Saying(
            "order", DAY, ("It came on {}.", "It was delivered on {}.", "It got here on {}.")
        ),
        "units": Saying(
            "quantity",
            COUNT,
            (
                "I bought several, and {} should go back.",
                "I have more than one; please take back {}.",
                "Of those I bought, please take back {}.",
                "I have several, and I want to give back {}.",
            ),
        ),
        "replacement": Saying(
            "replacement price rating",
            SWAP,
            ("In return I'd like {}.", "What I want for it is {}.", "Please give me {}."),
        ),
    }
    acts: ClassVar[Mapping[str, Sequence[str]]] = {
        **ANSWERS,
        "elaborate": ("I mean {wanted}.", "It's {wanted}.", "I'm talking about {wanted}."),
        "remind": ("As I said, I mean {wanted}.",),
        "give up": ("Forget about the {type} then.", "Leave the {type} then."),
        "indifferent": ("I can't tell you that.", "I don't know about that, sorry."),
        "nothing": (
            "That is all I can tell you.",
            "I have told you all I know.",
            "There is nothing more I can say.",
        ),
    }
    leads = (
        "I'd like to return {}.",
        "I want to send something back: {}.",
        "can I return {}?",
        "please start a return for {}.",
        "I'm not happy with what I got, it has to go back: {}.",
        "I bought {} here, and it is not right for me.",
        "I got {} for my husband, and he won't keep it.",
        "I don't want to keep what I got from you: {}.",
        "how do I give back {}?",
        "I need to give back {}.",
        "could you take back {}?",
    )
    closings = ("", "", "", "Thanks!", "Please help me out.", "I hope you can help.", "Please see to it.")
    intros = (
        "There is a return to take care of.",
        "I need to get rid of something.",
        "Something I bought turned out wrong.",
    )

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        world = draw_history(key, axes, shop)
        random, level, history = rng("return", *key), key[2], world["orders"]
        patient = random.random() < 1 / (1 + math.exp(-(level - 4) / 1.5))
        found = list(islice(_candidates(world, patient, key, shop, random), 2))
        if not found:
            raise TaskError("no line of the order history can be told from the others")
        swapping, share = random.random() < 0.45, draw_rush(axes.p_oos, 2, random)
        switching = random.random() < axes.p_switch
        meant = found[0]  # in the end: any line, with equal chance
        slots = meant.draw_wish(swapping, axes, shop, random)
        kinds = ["line"] * (len(found) == 2) + ["swap"] + ["units"] * (meant.most > 1)
        kind = kinds[int(random.integers(len(kinds)))] if switching else ""
        goes, changed = int(meant.goes), dict[str, Any]()
        events: list[Event] = []
        if kind == "line":  # the customer speaks of another one first, of which a return has to be cancelled
            final, calls = slots, _calls(slots, goes, history, shop)
            meant = found[1]
            slots = meant.draw_wish(swapping, axes, shop, random)
            data = {"slots": _pairs(final)}
            events.append(Event(0, "line", 0, 2 + goes, calls + int(meant.goes), data=data))
            goes = int(meant.goes)
        elif kind == "swap":
            new = [] if slots["replacement"] else draw_swap(meant.line, axes, shop, random)
            if new != slots["replacement"]:
                changed, more = {"replacement": new}, goes * bool(new)
                events.append(Event(0, "change", 0, more, more, data={"slots": _pairs(changed)}))
        elif kind == "units":
            others = [n for n in range(1, meant.most + 1) if n != slots["units"]]
            changed = {"units": others[int(random.integers(len(others)))]}
            events.append(Event(0, "change", 0, goes, 2 * goes, data={"slots": _pairs(changed)}))
        fixed = slots["replacement"] and kind not in ("line", "swap")
        if share and fixed and can_be_had(slots["replacement"], meant.line, key, shop, share):
            rush = {"type": slots["type"], "share": share}
            events.append(Event(0, "rush", 0, goes, goes, data=rush))
            changed["replacement"] = None
        listed = [(0, name, value) for name, value in slots.items()]
        withheld = withhold(listed, axes, random, lambda _, name: kind == "line" or name in changed)
        asks = int(bool(withheld))
        need = Need(asks + 3 + goes, asks, 1 + _calls(slots, goes, history, shop))
        timed = [replace(e, turn=int(random.integers(asks + 1, need.turns + 1))) for e in events]
        return self.draft(listed, withheld, world, need, timed)

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        if event.kind != "line":
            return super().fire(episode, event)
        before = episode.state.get((0, "replacement"))
        kind, words, said = self.turn_to(episode, dict(event.data["slots"]))
        # "My money back" goes without saying only where it was so before.
        said = {name: value for name, value in said.items() if value or before}
        return [Act("another line", kind, words), *([Act("elaborate", kind, said)] if said else [])]

    def read_later(self, text: str, lexicon: Lexicon, known: Mapping[tuple[int, str], Any]) -> Wanted:
        said, rest = read_sayings(text, self.sayings)
        read: Wanted = {}
        if "instead" in rest:  # another line: nothing of what described the old one stands
            read = {slot: None for slot in known if is_identity(slot[1]) or slot[1] == "units"}
        rest = re.sub(r"[^.!?\n]*send back", "", rest)  # before it stands what was not meant
        for mention in read_message(rest, lexicon):
            if read or mention.type == known.get((0, "type")):
                slots = {name: value for name, value in mention.slots.items() if is_identity(name)}
                read |= {(0, name): value for name, value in {"type": mention.type, **slots}.items()}
        return read | {(0, name): value for name, value in said}

    def faults(self, episode: "Job") -> list[Fault]:
        world, slots = episode.world, _slots(episode.state)
        expected = self._expected(episode)
        for (order_id, line_id), units in world.returns.items():
            seen_order, seen = find_line(world, order_id, line_id)
            row = world.row(seen["product_id"])
            if (order_id, line_id) in expected:
                wanted = expected[order_id, line_id]
                if units != wanted:
                    act = Act("wrong units", slots["type"], {"units": wanted}, str(units), wanted)
                    return [Fault(act, (Slot(0, "units", wanted),), 0)]
                continue
            broken = {
                name: value
                for name, value in slots.items()
                if is_identity(name) and line_value(seen, seen_order, row, name, world.catalog) != value
            }
            if not broken:  # what they mean cannot be returned, nor can it have been
                continue
            broken.pop("type", None)
            act = Act("wrong line", slots["type"], broken, world.catalog.title(row))
            return [Fault(act, tuple(Slot(0, n, v) for n, v in broken.items()), 0)]
        return []

    def _expected(self, episode: "Job") -> dict[tuple[str, str], int]:
        """What should have been returned in the end."""
        slots = _slots(episode.state)
        order, line = line_meant(slots, episode.world.given["orders"], episode.shop)
        if not eligible_now(episode.world, order, line, undone=True).eligible:
            return {}
        return {(order["order_id"], line["line_id"]): slots.get("units", 1)}

    def verify(self, episode: "Job") -> Verdict:
        world, slots = episode.world, _slots(episode.state)
        answer = episode.answer or {}
        order, line = line_meant(slots, world.given["orders"], episode.shop)
        expected, terms = self._expected(episode), eligible_now(world, order, line, undone=True)
        wanted = slots["replacement"] if expected else []
        named = _names(answer, order, line)
        outcome, exact = _outcome(answer.get("outcome")), world.returns == expected
        today = date.fromisoformat(world.given["today"])
        told = answer.get("last_return_day")
        day = says_none(told) if terms.last_day is None else read_day(told, today) == terms.last_day
        given = _given(answer.get("replacement"), world)
        if wanted:
            swapped = given is not None and _is_a_swap(given, wanted, line, world)
        else:
            swapped = given is None
        if expected:
            said = outcome == "returned"
            effect = float(exact) * (1.0 if said else 0.5)
        else:  # what was left alone counts only for somebody who knew what to leave alone
            said = outcome == "declined" and day
            effect = float(exact and named and outcome == "declined") * (1.0 if day else 0.5)
        correct = bool(named and exact and said and swapped)
        if wanted:
            parts = {"line": named, "effect": effect, "replacement": swapped * exact}
            share = sum(WEIGHTS[name] * part for name, part in parts.items())
        else:
            share = max(0.0, 0.5 * named + 0.5 * effect - WEIGHTS["replacement"] * (not swapped))
        if not named and not effect and self._alike(answer, slots["type"], episode):
            share = NEAR
        wrong = [
            *([] if named else ["the line that was meant is not the one handed in"]),
            *([] if exact else [f"{expected or 'nothing'} was to be returned, {world.returns or 'nothing'} was"]),
            *([] if said else [f"the outcome is {'returned' if expected else 'declined'}, last day {terms.last_day}"]),
            *([] if swapped else ["the replacement is not as wanted"]),
        ]  # fmt: skip
        why = "; ".join(wrong) or ("exactly what was wanted was returned" if expected else "rightly declined")
        claims = () if given is None else (given,)
        return Verdict(1.0 if correct else min(2 * share - 1, 0.999), correct, why, claims)

    def _alike(self, answer: Mapping[str, Any], kind: str, episode: "Job") -> bool:
        """Whether another line of the type that is meant was handed in. Without a credit for it an honest miss would
        earn less than a line picked blindly (law 3)."""
        for order, line in lines_of(episode.world.given["orders"]):
            if _names(answer, order, line):
                return line_fits(line, order, {"type": kind}, episode.shop.catalog)
        return False

    def chance(self, task: Task, shop: Shop) -> float:
        """Right by position alone. Where units go back and nothing else is wanted, returning one line after another
        until the customer is silent: as often as they correct it. Else a line picked from those delivered."""
        slots = _final(task)
        history = task.world["orders"]
        today, terms = date.fromisoformat(task.world["today"]), draw_terms(task.key, shop.catalog)
        found = [
            eligibility(o, n, today, shop.catalog, terms) for o, n in lines_of(history) if delivered(o, n)
        ]  # fmt: skip
        open_ = sum(one.eligible for one in found)
        order, line = line_meant(slots, history, shop)
        goes = eligibility(order, line, today, shop.catalog, terms).eligible
        if goes and slots["replacement"]:
            return 0.0
        return min(1.0, (PATIENCE + 1) / open_) if goes else 1 / len(found)

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another value of something withheld that still leaves one line."""
        slots = {name: value for _, name, value in task.truth["slots"]}
        history = task.world["orders"]
        lines = [(o, n) for o, n in lines_of(history) if delivered(o, n)]
        hidden = [name for _, name in task.truth["withheld"]]
        for name in [hidden[i] for i in random.permutation(len(hidden)).tolist()]:
            if name == "replacement":
                others: list[Any] = [[], [["price", 500_000]]]
            elif name == "units":
                others = list(range(1, 5))
            else:
                others = [
                    line_value(n, o, shop.catalog.row(n["product_id"]) or 0, name, shop.catalog)
                    for o, n in lines
                ]
            for value in [others[i] for i in random.permutation(len(others)).tolist()]:
                other = {**slots, name: value}
                if value in (None, slots[name]) or len(lines_meant(other, history, shop)) != 1:
                    continue
                order, line = line_meant(other, history, shop)
                if delivered(order, line) and other.get("units", 1) <= line["quantity"]:
                    return replace(task, truth={**task.truth, "slots": [[0, n, v] for n, v in other.items()]})
        return None


@dataclass(frozen=True)
class Candidate:
    """A line that the customer may mean, what describes it, and whether it can be returned."""

    order: Order
    line: Line
    identity: Mapping[str, Any]
    goes: bool

    @property
    def most(self) -> int:
        """Units that the customer may speak of: those that are left, if it can be returned."""
        return int(self.line["quantity"] - (self.line["returned"] if self.goes else 0))

    def draw_wish(
        self, swapping: bool, axes: Difficulty, shop: Shop, random: np.random.Generator
    ) -> dict[str, Any]:
        """The slots: which line, how many units of it, and what is wanted for it."""
        units = {"units": int(random.integers(1, self.most + 1))} if self.line["quantity"] > 1 else {}
        swap = draw_swap(self.line, axes, shop, random) if swapping else []
        return {**self.identity, **units, "replacement": swap}


def _candidates(
    world: Mapping[str, Any], patient: bool, key: tuple[Any, ...], shop: Shop, random: np.random.Generator
) -> Iterator[Candidate]:
    """The delivered lines that can be told from all others, in random order."""
    today, terms = date.fromisoformat(world["today"]), draw_terms(key, shop.catalog)
    arrived = [(o, n) for o, n in lines_of(world["orders"]) if delivered(o, n)]
    for i in random.permutation(len(arrived)).tolist():
        order, line = arrived[i]
        identity = describe(order, line, world["orders"], shop, patient, random)
        if identity is not None:
            goes = eligibility(order, line, today, shop.catalog, terms).eligible
            yield Candidate(order, line, identity, goes)


def _calls(slots: Mapping[str, Any], goes: int, history: Sequence[Order], shop: Shop) -> int:
    """Tool calls for a line: the orders to look into, the check and, if it can go, its return and a search."""
    return sum(may_be(o, slots, shop) for o in history) + 1 + goes * (1 + bool(slots["replacement"]))


def _given(said: str | None, world: World) -> str | None:
    """The id handed in as a replacement; None where it is said that there is none."""
    token = (said or "").strip()
    return None if says_none(token) and world.catalog.row(token) is None else token


def _is_a_swap(product_id: str, swap: Swap, line: Line, world: World) -> bool:
    row = world.catalog.row(product_id)
    if row is None or product_id not in world.shown:
        return False
    return row in world.in_stock(rows_of(swap, line, world.shop))


def _final(task: Task) -> dict[str, Any]:
    """The slots as they are after all events."""
    slots = {name: value for _, name, value in task.truth["slots"]}
    for event in task.events:
        if event.kind == "line":
            slots = dict(event.data["slots"])
        elif event.kind == "change":
            slots |= dict(event.data["slots"])
    return slots


def _pairs(slots: Mapping[str, Any]) -> list[list[Any]]:
    return [[name, value] for name, value in slots.items()]


def _slots(state: Wanted) -> dict[str, Any]:
    return {name: value for (_, name), value in state.items()}


def _names(answer: Mapping[str, Any], order: Order, line: Line) -> bool:
    """Whether the ids handed in are these."""
    ids = {"order_id": order["order_id"], "line_id": line["line_id"]}
    return all(str(answer.get(name)).strip().upper() == token for name, token in ids.items())


def _outcome(said: Any) -> str | None:
    """ "returned" or "declined" as a person may write it; what is said first counts."""
    match = _OUTCOME.search(said[:200].replace("_", " ")) if isinstance(said, str) else None
    return None if match is None else "declined" if match["no"] else "returned"
