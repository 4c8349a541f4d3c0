"""RETURN: find the order line the customer means, return the wanted units of it or decline it (SPEC §7)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ecomlab.answering import Answering, Wanted, withhold
from ecomlab.catalog import Shop
from ecomlab.core import Draft, Event, Fault, Message, Need, Task, TaskError, Verdict
from ecomlab.customer.kernel import PATIENCE
from ecomlab.customer.ledger import Slot
from ecomlab.customer.lexicon import Lexicon
from ecomlab.customer.reading import read_message
from ecomlab.customer.sayings import DAY, Kind, Saying, choice, money, read_sayings
from ecomlab.customer.wishes import draw_row
from ecomlab.customer.words import ANSWERS, Act
from ecomlab.difficulty import Difficulty
from ecomlab.players.clerk import Clerk
from ecomlab.players.shopper import Wish, bounds
from ecomlab.seeding import rng
from ecomlab.tooling import tool
from ecomlab.world import order_tools, orders
from ecomlab.world import tools as shop_tools
from ecomlab.world.dates import read_day, says_no_day
from ecomlab.world.orders import Line, Order, draw_history, line_fits, line_value, lines_of
from ecomlab.world.overlay import World, rushed
from ecomlab.world.terms import draw_terms
from ecomlab.world.wants import constraints_of

if TYPE_CHECKING:
    from ecomlab.episode import Job

LISTED = ("type", "brand", "feature", "ordered")
"""Slots that `order_list` can settle; for the others one looks into the orders."""
DATES = ("ordered", "delivered")
LOOKUPS = 40
"""Most orders that a description leaves to be looked into."""
RUSH = 0.7
"""Most that a rush takes of a type."""
WEIGHTS = {"line": 0.45, "effect": 0.45, "replacement": 0.10}

NEAR = 0.15
"""The share for another line of the type that is meant."""

MONEY_BACK = "my money back"
_OTHER = "another one "
_PHRASES = {
    "color": "in {}",
    "material": "made of {}",
    "age": "for ages {}",
    "hair": "for {} hair",
    "skin": "for {} skin",
    "season": "for the {} season",
    "terrain": "for {} terrain",
    "grip": "for the {} hand",
    "active": "with {} in it",
    "note": "with {} notes",
    "wattage": "with {} of power",
    "playtime": "with {} of playtime",
    "weight": "weighing {}",
}
"""How one asks for an attribute where "with {value} {name}" would sound odd."""
_COUNTED = frozenset(
    "barrel base bin bulb cable closure collar cover filter finish fit formula frame handle jar lens lid "
    "lining microphone mount pattern picture shape strap surface tail theme tire tray".split()
)
"""Attributes that take an article: "with a Zipper closure"."""
_OUTCOME = re.compile(
    r"(?P<no>declin\w*|reject\w*|refus\w*|denied|deny|ineligible|non-?\s?returnable|"
    r"(?:\b(?:not|never|unable to|no longer)|cannot|n't)(?: \w+){0,2}? (?:return\w*|accept\w*|approv\w*|eligible))|"
    r"(?P<yes>returned|accepted|approved|return(?: \w+){0,2} (?:initiated|started)|^\W*return\W*$)",
    re.IGNORECASE,
)


def _say_swap(value: Sequence[Sequence[Any]]) -> str:
    """What is wanted for it: "another one by HomeNest, in Black, for at most $30"."""
    said = []
    for name, bound in value:
        if name == "price":
            said.append(f"for at most {money(bound)}")
        elif name == "rating":
            said.append(f"with at least {bound / 10:.1f} stars")
        elif name == "brand":
            said.append(f"by {bound}")
        else:
            own = name.removeprefix("attr:")
            article = ("an " if bound[:1] in "AEIO" else "a ") if own in _COUNTED else ""
            said.append(_PHRASES.get(own, f"with {article}{{}} {own}").replace("{}", bound))
    return _OTHER + ", ".join(said) if said else MONEY_BACK


def _read_swap(text: str) -> list[list[Any]]:
    parts = [] if text == MONEY_BACK else text.removeprefix(_OTHER).split(", ")
    return [_read_wish(part) for part in parts]


def _read_wish(part: str) -> list[Any]:
    if part.startswith("for at most $"):
        dollars, _, cents = part.removeprefix("for at most $").partition(".")
        return ["price", 100 * int(dollars) + int(cents or 0)]
    if part.startswith("with at least "):
        return ["rating", int(part.removeprefix("with at least ").removesuffix(" stars").replace(".", ""))]
    if part.startswith("by "):
        return ["brand", part.removeprefix("by ")]
    for name, form in _PHRASES.items():
        before, after = form.split("{}")
        if part.startswith(before) and part.endswith(after):
            return [f"attr:{name}", part.removeprefix(before).removesuffix(after)]
    value, _, name = part.removeprefix("with ").rpartition(" ")
    return [f"attr:{name}", value.partition(" ")[2] if name in _COUNTED else value]


SWAP = Kind(_say_swap, rf"{MONEY_BACK}|{_OTHER}[^!?\n]+?(?=\.(?:\s|$))", _read_swap)
"""What the customer wants for it: constraints on another product as [name, value] pairs; none: their money back."""
COUNT = choice({1: "one", 2: "two", 3: "three", 4: "four"})


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


class Returner(Clerk):
    """Lists the orders, looks into those it may be, checks the line, returns it, and seeks a replacement meanwhile."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.checked: dict[tuple[str, str], dict[str, Any]] = {}
        self.returns: dict[tuple[str, str], int] = {}
        self.refused: set[tuple[tuple[str, str], int]] = set()
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.choice: tuple[str, str] | None = None
        self.minded: list[Any] = []

    def hear(self, text: str, opening: bool) -> None:
        super().hear(text, opening)
        if "sold out" in text:
            self.found.clear()
        self.choice = None

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        if self.orders is None:
            return self.turn(self.call("order_list", "orders"))
        slots = {name: value for (_, name), value in self.known.items() if is_identity(name) and value}
        likely = [order for order in self.orders if _listed(order, slots)] or self.orders[:1]
        unseen = [o["order_id"] for o in likely if o["order_id"] not in self.looked][:LOOKUPS]
        undo = [self.call("return_cancel", "returns", order_id=o, line_id=n) for o, n in self._stale(slots)]
        if unseen:
            return self.turn(*undo, *(self.call("order_get_status", "order", order_id=o) for o in unseen))
        if self.choice is None:
            self.choice = self._choose([self.looked[order["order_id"]] for order in likely], slots)
        order_id, line_id = self.choice
        if self.choice not in self.checked:
            check = self.call("return_check_eligibility", "check", order_id=order_id, line_id=line_id)
            return self.turn(*undo, check)
        said = self.checked[self.choice]
        units, calls = self.get("units") or 1, undo
        swap = self.get("replacement") if said["eligible"] else None
        now = self.returns.get(self.choice, 0)
        if said["eligible"] and now != units and (self.choice, units) not in self.refused:
            if now:
                calls.append(self.call("return_cancel", "returns", order_id=order_id, line_id=line_id))
            about = ("return", self.choice, units)
            calls.append(
                self.call("return_initiate", about, order_id=order_id, line_id=line_id, quantity=units)
            )
        sought = repr((slots["type"], swap))
        if swap and sought not in self.found:
            self.minded = [pair for pair in swap if not self.slip()]  # the rest overlooked
            calls.append(self._search(sought, slots["type"], self.minded))
        if calls:
            return self.turn(*calls)
        return self._hand_in(said, self._fitting(sought, slots["type"], self.minded) if swap else None)

    def _hand_in(self, said: Mapping[str, Any], replacement: str | None) -> Message:
        assert self.choice is not None
        order_id, line_id = self.choice
        done = bool(said["eligible"])
        told = done or not self.slip()  # until when it could be returned
        return self.turn(
            self.call(
                "submit",
                None,
                order_id=order_id,
                line_id=line_id,
                outcome="returned" if done else "declined",
                last_return_day=said["last_return_day"] if told and not done else None,
                replacement=replacement,
            )
        )

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "orders" in result:
            self.orders = result["orders"]
        elif "lines" in result:
            self.looked[result["order_id"]] = result
        elif "eligible" in result:
            self.checked[result["order_id"], result["line_id"]] = result
        elif "returns" in result:
            self.returns = {(r["order_id"], r["line_id"]): r["quantity"] for r in result["returns"]}
        elif "results" in result:
            self.found[about[1]] = result["results"]
        elif "error" in result and isinstance(about, tuple) and about[0] == "return":
            self.refused.add(about[1:])
        elif "error" in result and isinstance(about, tuple):
            self.found[about[1]] = []

    def _stale(self, slots: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Returns that were started and are not of what is wanted now."""
        return [
            (o, n)
            for o, n in self.returns
            if (self.choice not in (None, (o, n)))
            or not any(r["line_id"] == n and _fits(self.looked[o], r, slots) for r in self.looked[o]["lines"])
        ]

    def _choose(self, looked: Sequence[Mapping[str, Any]], slots: Mapping[str, Any]) -> tuple[str, str]:
        lines = [(order, line) for order in looked for line in order["lines"]]
        alike = [pair for pair in lines if _fits(*pair, {"type": slots["type"]})] or lines
        fitting = [pair for pair in alike if _fits(*pair, slots)] or alike[:1]
        others = [pair for pair in alike if pair not in fitting]
        if others and any(self.slip() for _ in range(len(slots) - 1 + len(others))):
            fitting = others  # each thing that was said, and each line it is told from, is a chance to err
        order, line = fitting[0]
        return order["order_id"], line["line_id"]

    def _search(self, sought: str, kind: str, swap: Sequence[Sequence[Any]]) -> dict[str, Any]:
        wanted: dict[str, Any] = {str(n): v for n, v in swap}
        attributes = {name[5:]: value for name, value in wanted.items() if name.startswith("attr:")}
        return self.call(
            "catalog_search",
            ("search", sought),
            query=kind,
            category=kind,
            brand=wanted.get("brand"),
            attributes=attributes or None,
            in_stock=True,
            **bounds(wanted),
        )

    def _fitting(self, sought: str, kind: str, swap: Sequence[Sequence[Any]]) -> str | None:
        """The first found that is as wanted, and not what goes back: distractors may be of another type."""
        assert self.choice is not None
        order = self.looked[self.choice[0]]
        own = next(r["product_id"] for r in order["lines"] if r["line_id"] == self.choice[1])
        wish = Wish(kind, {str(name): value for name, value in swap})
        for record in self.found[sought]:
            if record["product_id"] != own and record["stock"] > 0 and wish.fits(record):
                return str(record["product_id"])
        return None


class Returns(Answering):
    id = "RETURN"
    in_world = True
    version = 1
    golden = "9bd2f77999a5145a905b37738837be0f"
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
        "hand in": ("So what came of it?", "Okay, and is it settled now?"),
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
        random, level = rng("return", *key), key[2]
        history, today, terms = (
            world["orders"],
            date.fromisoformat(world["today"]),
            draw_terms(key, shop.catalog),
        )
        patient = random.random() < 1 / (1 + math.exp(-(level - 4) / 1.5))
        arrived = [(o, n) for o, n in lines_of(history) if orders.delivered(o, n)]
        described = []
        for i in random.permutation(len(arrived)).tolist():
            order, line = arrived[i]
            told = describe(order, line, history, shop, patient, random)
            if told is not None:
                described.append((order, line, told))
            if len(described) == 2:
                break
        if not described:
            raise TaskError("no line of the order history can be told from the others")

        def can(order: Order, line: Line) -> bool:
            return orders.eligibility(order, line, today, shop.catalog, terms).eligible

        def finish(order: Order, line: Line, slots: Mapping[str, Any], swapping: bool) -> dict[str, Any]:
            """The slots of a line with how many units, and what for."""
            left = line["quantity"] - line["returned"] if can(order, line) else line["quantity"]
            many = {"units": int(random.integers(1, left + 1))} if line["quantity"] > 1 else {}
            swap = draw_swap(line, axes, shop, random) if swapping else []
            return {**slots, **many, "replacement": swap}

        swapping, rushing = random.random() < 0.45, random.random() < 1 - (1 - axes.p_oos) ** 2
        switching = random.random() < axes.p_switch
        order, line, identity = described[0]  # the one wanted in the end: any line, with equal chance
        slots = finish(order, line, identity, swapping)
        most = line["quantity"] - line["returned"] if can(order, line) else line["quantity"]
        kinds = ["line"] * (len(described) == 2) + ["swap"] + ["units"] * (most > 1)
        kind = kinds[int(random.integers(len(kinds)))] if switching else ""
        goes = int(can(order, line))
        events: list[Event] = []
        if kind == "line":
            final = _pairs(slots)
            lookups = sum(_may_be(o, slots, shop) for o in history)
            calls = lookups + 1 + goes * (1 + bool(slots["replacement"]))
            order, line, identity = described[1]
            slots = finish(order, line, identity, swapping)
            calls += int(can(order, line))
            events.append(Event(0, "line", 0, 2 + goes, calls, data={"slots": final}))
            goes = int(can(order, line))
        elif kind == "swap":
            new: Any = [] if slots["replacement"] else draw_swap(line, axes, shop, random)
            if new != slots["replacement"]:
                more = goes * bool(new)
                events.append(Event(0, "change", 0, more, more, data={"slots": [["replacement", new]]}))
        elif kind == "units":
            others = [n for n in range(1, most + 1) if n != slots["units"]]
            units = others[int(random.integers(len(others)))]
            events.append(Event(0, "change", 0, goes, 2 * goes, data={"slots": [["units", units]]}))
        share = min(RUSH, axes.p_oos / max(1e-9, 1 - (1 - axes.p_oos) ** 2))
        fixed = bool(slots["replacement"]) and kind not in ("line", "swap")
        if rushing and fixed and _can_be_had(slots["replacement"], line, key, shop, share):
            rush = {"type": slots["type"], "share": share}
            events.append(Event(0, "rush", 0, goes, goes, data=rush))
        changed = {name for e in events if e.kind == "change" for name, _ in e.data["slots"]}
        changed |= {"replacement"} if any(e.kind == "rush" for e in events) else set()
        listed = [(0, name, value) for name, value in slots.items()]
        withheld = withhold(listed, axes, random, lambda _, name: kind == "line" or name in changed)
        asks = int(bool(withheld))
        lookups = sum(_may_be(o, slots, shop) for o in history)
        need = Need(asks + 3 + goes, asks, 2 + lookups + goes * (1 + bool(slots["replacement"])))
        timed = [replace(e, turn=int(random.integers(asks + 1, need.turns + 1))) for e in events]
        return self.draft(listed, withheld, world, need, timed)

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        if event.kind != "line":
            return super().fire(episode, event)
        slots = dict(event.data["slots"])
        kind, before = slots.pop("type"), episode.state.get((0, "replacement"))
        episode.state.clear()
        episode.state.update({(0, "type"): kind, **{(0, name): value for name, value in slots.items()}})
        episode.kernel.ledger.forget(0)
        episode.kernel.ledger.restate(0, slots)
        words = {name: value for name, value in slots.items() if name not in self.sayings}
        # "My money back" goes without saying only where it was so before.
        said = {name: value for name, value in slots.items() if name in self.sayings and (value or before)}
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
            seen_order, seen = orders.find_line(world, order_id, line_id)
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
            act = Act("wrong line", slots["type"], _without_type(broken), world.catalog.title(row))
            return [Fault(act, tuple(Slot(0, n, v) for n, v in _without_type(broken).items()), 0)]
        return []

    def _expected(self, episode: "Job") -> dict[tuple[str, str], int]:
        """What should have been returned in the end."""
        slots = _slots(episode.state)
        order, line = _target(slots, episode.world.given["orders"], episode.shop)
        if not orders.eligible_now(episode.world, order, line, undone=True).eligible:
            return {}
        return {(order["order_id"], line["line_id"]): slots.get("units", 1)}

    def verify(self, episode: "Job") -> Verdict:
        world, slots = episode.world, _slots(episode.state)
        answer = episode.answer or {}
        order, line = _target(slots, world.given["orders"], episode.shop)
        expected, terms = self._expected(episode), orders.eligible_now(world, order, line, undone=True)
        wanted = slots["replacement"] if expected else []
        named = _same(answer.get("order_id"), order["order_id"]) and _same(
            answer.get("line_id"), line["line_id"]
        )
        outcome, exact = _outcome(answer.get("outcome")), world.returns == expected
        today = date.fromisoformat(world.given["today"])
        told = answer.get("last_return_day")
        day = says_no_day(told) if terms.last_day is None else read_day(told, today) == terms.last_day
        given = None if says_no_day(answer.get("replacement")) else str(answer["replacement"]).strip()
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
            share = (
                WEIGHTS["line"] * named
                + WEIGHTS["effect"] * effect
                + WEIGHTS["replacement"] * swapped * exact
            )
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
            if _same(answer.get("order_id"), order["order_id"]) and _same(
                answer.get("line_id"), line["line_id"]
            ):
                return line_fits(line, order, {"type": kind}, episode.shop.catalog)
        return False

    def chance(self, task: Task, shop: Shop) -> float:
        """Right by position alone. Where units go back and nothing else is wanted, returning one line after another
        until the customer is silent: as often as they correct it. Else a line picked from those delivered."""
        slots = dict(_final(task))
        history = task.world["orders"]
        today, terms = date.fromisoformat(task.world["today"]), draw_terms(task.key, shop.catalog)
        found = [
            orders.eligibility(o, n, today, shop.catalog, terms) for o, n in lines_of(history) if orders.delivered(o, n)
        ]  # fmt: skip
        open_ = sum(one.eligible for one in found)
        order, line = _target(slots, history, shop)
        goes = orders.eligibility(order, line, today, shop.catalog, terms).eligible
        if goes and slots["replacement"]:
            return 0.0
        return min(1.0, (PATIENCE + 1) / open_) if goes else 1 / len(found)

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another value of something withheld that still leaves one line."""
        slots = {name: value for _, name, value in task.truth["slots"]}
        history = task.world["orders"]
        lines = [(o, n) for o, n in lines_of(history) if orders.delivered(o, n)]
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
                if value in (None, slots[name]) or len(_all(other, history, shop)) != 1:
                    continue
                order, line = _target(other, history, shop)
                if orders.delivered(order, line) and other.get("units", 1) <= line["quantity"]:
                    return replace(task, truth={**task.truth, "slots": [[0, n, v] for n, v in other.items()]})
        return None


def is_identity(name: str) -> bool:
    """Whether a slot says which line is meant."""
    return name in ("type", "brand", "feature", "option", *DATES) or name.startswith("attr:")


def describe(
    order: Order, line: Line, history: Sequence[Order], shop: Shop, patient: bool, random: np.random.Generator
) -> dict[str, Any] | None:
    """The slots that make a line the only one, each of them needed; None if nothing does.

    A `patient` customer says first what tells little, and the date last: then there is more to be heard.
    """
    catalog = shop.catalog
    row = catalog.row(line["product_id"])
    if row is None:
        return None
    names = ["brand", "feature", "option", *(f"attr:{name}" for name in catalog.attributes(row)), *DATES]
    values = {name: line_value(line, order, row, name, catalog) for name in names}
    names = [names[i] for i in random.permutation(len(names)).tolist()]
    slots: dict[str, Any] = {"type": catalog.type_of(row).name}
    left = [(o, n) for o, n in lines_of(history) if line_fits(n, o, slots, catalog)]
    if patient:
        names.sort(key=lambda name: (name in DATES, -_left(left, name, values[name], shop)))
    if len(left) > LOOKUPS:
        names.insert(0, "ordered")
    for name in names:
        fewer = [(o, n) for o, n in left if line_fits(n, o, {name: values[name]}, catalog)]
        if values[name] is not None and len(fewer) < len(left) and len(left) > 1:
            slots[name], left = values[name], fewer
    if len(left) != 1:
        return None
    ranks = ["type", "brand", "feature", "option"]
    return dict(
        sorted(slots.items(), key=lambda s: (s[0] in DATES, ranks.index(s[0]) if s[0] in ranks else 9))
    )


def _left(lines: Sequence[tuple[Order, Line]], name: str, value: Any, shop: Shop) -> int:
    return sum(line_fits(n, o, {name: value}, shop.catalog) for o, n in lines)


def draw_swap(line: Line, axes: Difficulty, shop: Shop, random: np.random.Generator) -> list[list[Any]]:
    """What another product of the type should be like, as one in stock is; none if the type has no other."""
    catalog = shop.catalog
    own = catalog.row(line["product_id"])
    for _ in range(4):
        row = None if own is None else draw_row(catalog.type_rows(catalog.type_of(own).name), shop, random)
        if row is not None and row != own:
            break
    else:
        return []
    assert row is not None
    values: dict[str, Any] = {
        "price": 500 * math.ceil(catalog.price_cents.item(row) * 1.1 / 500),
        "rating": catalog.rating_tenths.item(row) // 5 * 5,
        "brand": catalog.brands[catalog.brand_code.item(row)],
    }
    # "with Foam wheels" reads well, "with Laptops works_with" does not
    named = {n: v for n, v in catalog.attributes(row).items() if n.isalpha() and not n.endswith("s")}
    values |= {f"attr:{n}": v for n, v in named.items()}
    values = {n: v for n, v in values.items() if not re.search(r"[.!?] |, ", str(v))}
    names = [list(values)[i] for i in random.permutation(len(values)).tolist()]
    chosen = names[: min(3, max(1, axes.constraints // 2))]
    # As one says it: the brand first, the bounds last.
    chosen.sort(key=lambda name: {"brand": 0, "rating": 2, "price": 3}.get(name, 1))
    return [[name, values[name]] for name in chosen]


def _swaps(swap: Sequence[Sequence[Any]], line: Line, shop: Shop) -> np.ndarray:
    """Rows of the line's type that are as wanted, the line's own product not among them."""
    own = shop.catalog.row(line["product_id"])
    kind = shop.catalog.type_of(own or 0).name
    rows = shop.catalog.select(constraints_of(kind, {str(n): v for n, v in swap}))
    return rows[(shop.catalog.stock[rows] > 0) & (rows != own)]


def _can_be_had(
    swap: Sequence[Sequence[Any]], line: Line, key: tuple[Any, ...], shop: Shop, share: float
) -> bool:
    """Whether a rush leaves a replacement."""
    own = shop.catalog.row(line["product_id"])
    kind = shop.catalog.type_of(own or 0).name
    rows = _swaps(swap, line, shop)
    gone = rushed(key, shop.catalog, kind, share)
    return bool((~gone[rows - shop.catalog.type_rows(kind).start]).any())


def _is_a_swap(product_id: str, swap: Sequence[Sequence[Any]], line: Line, world: World) -> bool:
    row = world.catalog.row(product_id)
    if row is None or product_id not in world.shown:
        return False
    return row in world.in_stock(_swaps(swap, line, world.shop))


def _all(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> list[tuple[Order, Line]]:
    described = {name: value for name, value in slots.items() if is_identity(name)}
    return [(o, n) for o, n in lines_of(history) if line_fits(n, o, described, shop.catalog)]


def _target(slots: Mapping[str, Any], history: Sequence[Order], shop: Shop) -> tuple[Order, Line]:
    """The line that is meant: the one that all slots leave."""
    (target,) = _all(slots, history, shop)
    return target


def _may_be(order: Order, slots: Mapping[str, Any], shop: Shop) -> bool:
    """Whether `order_list` leaves it open that an order holds what these slots describe."""
    return any(line_fits(line, order, slots, shop.catalog, only=LISTED) for line in order["lines"])


def _listed(order: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """The same for a player, from what `order_list` shows."""
    if slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    return any(_titled(item, slots) for item in order["items"])


def _titled(item: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    brand, feature = slots.get("brand"), slots.get("feature")
    return bool(
        item["type"] == slots.get("type", item["type"])
        and (brand is None or item["title"].startswith(f"{brand} "))
        and (feature is None or f" {feature} " in item["title"])
    )


def _fits(order: Mapping[str, Any], line: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Whether a line that `order_get_status` shows is what the slots describe."""
    if not _titled(line, slots) or slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    if slots.get("option") not in (None, line["variant_id"]):
        return False
    parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else {}
    if slots.get("delivered") not in (None, parcel.get("delivered", "")[5:]):
        return False
    return all(line["attributes"].get(n[5:]) == v for n, v in slots.items() if n.startswith("attr:"))


def _final(task: Task) -> list[list[Any]]:
    """The slots as they are after all events."""
    slots = {name: value for _, name, value in task.truth["slots"]}
    for event in task.events:
        if event.kind == "line":
            slots = dict(event.data["slots"])
        elif event.kind == "change":
            slots |= dict(event.data["slots"])
    return _pairs(slots)


def _pairs(slots: Mapping[str, Any]) -> list[list[Any]]:
    return [[name, value] for name, value in slots.items()]


def _slots(state: Wanted) -> dict[str, Any]:
    return {name: value for (_, name), value in state.items()}


def _without_type(slots: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in slots.items() if name != "type"}


def _same(said: Any, token: str) -> bool:
    return isinstance(said, str) and said.strip().upper() == token


def _outcome(said: Any) -> str | None:
    """ "returned" or "declined" as a person may write it; what is said first counts."""
    match = _OUTCOME.search(said[:200]) if isinstance(said, str) else None
    return None if match is None else "declined" if match["no"] else "returned"
