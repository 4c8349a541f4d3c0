"""The player of RETURN: finds the line that is meant, returns it, and searches for a replacement."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from ecomlab.answers.amounts import read_amount
from ecomlab.catalog import Shop
from ecomlab.difficulty import Difficulty
from ecomlab.envs.cart.player import Wish
from ecomlab.envs.policy.player import clause_of
from ecomlab.envs.returns.questions import QUESTIONS, at_first_sight
from ecomlab.players.budgets import budget
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.steps import may_hold
from ecomlab.task import Event, GoalChange, Message, Need, Place
from ecomlab.values import money
from ecomlab.wishes import Of
from ecomlab.world.orders.history import Line, Order
from ecomlab.world.orders.lines import LOOKUPS, is_identity, may_be
from ecomlab.world.orders.references import named
from ecomlab.world.orders.returns import CASE, Desk
from ecomlab.world.policy_book.book import Clause, levels
from ecomlab.world.policy_book.places import TITLE
from ecomlab.world.policy_book.rules import AGREEMENT, FORM, OF_RETURNS, RULES, WINDOW
from ecomlab.world.policy_book.wording import Read, read_section

MOST_SAID = 8
"""Number of slots by which a customer describes the returned line and its replacement, in nearly all tasks at most."""


class ReturnsPlayer(GoalPlayer):
    """Lists the orders, looks into those that may be meant, checks the line and the policy book, returns the line,
    searches a replacement, and answers the customer's questions."""

    tells = QUESTIONS

    def comes_to(self, given: Mapping[str, Any], today: date | None) -> dict[str, int | None]:
        return {"refund": read_amount(given.get("refund"), "cents")}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.orders: list[dict[str, Any]] | None = None
        self.looked: dict[str, dict[str, Any]] = {}
        self.checked: dict[tuple[str, str], dict[str, Any]] = {}
        self.returns: dict[tuple[str, str], int] = {}
        self.refused: set[tuple[tuple[str, str], int]] = set()
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.refunds: dict[Any, int] = {}
        """Cents that are paid back, as they were worked out, by what they follow from."""
        self.choice: tuple[str, str] | None = None
        self.minded: list[Any] = []
        self.book: dict[tuple[str, str], Read | None] = {}
        """Sections by rule and product type; None while one is awaited, or where the book has none."""
        self.referred: dict[str, Read | None] = {}
        """Sections to which others refer, by title."""
        self.agreed: set[Any] = set()
        """Refunds about which the customer was asked: choice, cents and form."""

    @staticmethod
    def need(
        slots: Mapping[str, Any], world: Mapping[str, Any], order: Order, line: Line, shop: Shop, looks: bool
    ) -> Need:
        """Count the steps to a decline, or to a return if the line goes back: listing the orders, looking
        into those that may be meant, checking the line and the book, what the book refers to, where the
        customer `looks` something up, returning the line while searching for a replacement, submit."""
        desk = Desk(world, shop.catalog)
        goes, further = desk.judge(order, line, slots).goes, desk.references(order, line, slots)
        calls = sum(may_be(one, slots, shop) for one in world["orders"]) + 3 + len(OF_RETURNS) + sum(further)
        calls += goes * (1 + bool(slots["replacement"]))
        calls += sum(isinstance(value, Of) for _, value in slots["replacement"])
        return Need(4 + goes + max(further) + looks, 1 + calls + looks)

    @staticmethod
    def budget(axes: Difficulty, shop: Shop, items: int | None) -> Need:
        """Count the steps to any return."""
        look, strict, deep = min(LOOKUPS, axes.history), may_hold(axes, "rules"), levels(axes)
        looks = may_hold(axes, "looking")  # in the book, and by the customer
        events = ((axes.p_oos, 1, 1), (axes.p_switch, 2, 5 if strict else 2))
        work = Need(5 + strict + deep + 2 * looks, 1 + look + 5 + len(OF_RETURNS) * (1 + deep) + looks)
        return budget(work, MOST_SAID + len(CASE) * strict, axes, *events)

    @staticmethod
    def costs(event: Event, goes: bool) -> Event:
        """Set the steps that an event costs."""
        turns = calls = int(goes)  # returned again, or a replacement sought again
        if isinstance(event, GoalChange) and "units" in event.slots:
            calls = 2 * goes
        elif isinstance(event, GoalChange) and "twist" in event.slots:
            turns, calls = 2, 5
        elif isinstance(event, GoalChange):
            turns = calls = 0
        return replace(event, turns=turns, calls=calls)

    def hear(self, text: str, opening: bool) -> None:
        super().hear(text, opening)
        self.choice = None

    def stock_changed(self) -> None:
        self.found.clear()

    def read_later(self, text: str) -> dict[Place, Any]:
        return self.read_renamed(text, keeps=("replacement",))

    def restart(self) -> None:
        self.choice = None

    def work(self) -> Message:
        if self.orders is None:
            return self.turn(self.call("order_list", "orders"))
        slots = {name: value for (_, name), value in self.known.items() if is_identity(name) and value}
        likely = [order for order in self.orders if _listed(order, slots)] or self.orders[:1]
        unseen = [o["order_id"] for o in likely if o["order_id"] not in self.looked][:LOOKUPS]
        undo = [self.call("return_cancel", "returns", order_id=o, line_id=n) for o, n in self._stale(slots)]
        unseen += [order_id for order_id in self._referred_to() if order_id not in (*unseen, *self.looked)]
        if unseen:
            return self.turn(*undo, *(self.call("order_get_status", "order", order_id=o) for o in unseen))
        if self.choice is None:
            self.choice = self._choose([self.looked[order["order_id"]] for order in likely], slots)
        order_id, line_id = self.choice
        kind = str(slots["type"])
        if self.choice not in self.checked:
            calls = [self.call("return_check_eligibility", "check", order_id=order_id, line_id=line_id)]
            for rule in (*OF_RETURNS, AGREEMENT, FORM):
                if (rule, kind) not in self.book:
                    self.book[rule, kind] = None
                    words = f"{RULES[rule].questions[0]} {kind}" if rule == WINDOW else RULES[rule].title
                    calls.append(self.call("policy_search", (rule, kind), query=words))
            return self.turn(*undo, *calls)
        said = self.checked[self.choice]
        clauses = [self._decides(rule, kind) for rule in (*OF_RETURNS, AGREEMENT, FORM)]
        titles = [clause["see"] for clause in clauses if clause is not None and "see" in clause]
        if titles:
            self.referred |= dict.fromkeys(titles)
            return self.turn(
                *undo, *(self.call("policy_search", "referred", query=title) for title in titles)
            )
        window, restocking, label, *agree = (None if clause is None else clause["then"] for clause in clauses)
        last = self._last_day(said, window)
        goes = last is not None and last >= said["checked"] and "rules" not in self.contrary
        if self.get("promise") and "belief" in self.lacks | self.contrary:
            goes = "belief" in self.lacks
        units, calls = self.get("units") or 1, undo
        swap = [pair for pair in map(self._worked_out, self.get("replacement") or ()) if pair]
        full = not (restocking or label)
        fails = self.get("only_if") == ("part" if full else "full") and "logic" not in self.lacks
        if not goes or (fails and not self.slip()):
            swap = []
        if goes and agree[0] == "yes" and "rules" not in self.lacks:
            form = "towards another one" if swap else f"back by {agree[1]}"
            asked = self._ask_to_agree(self._refund(units, restocking, label), form)
            if asked is not None:
                return asked
        now = self.returns.get(self.choice, 0)
        if now and not goes:
            calls.append(self.call("return_cancel", "returns", order_id=order_id, line_id=line_id))
        if goes and now != units and (self.choice, units) not in self.refused:
            if now:
                calls.append(self.call("return_cancel", "returns", order_id=order_id, line_id=line_id))
            about = ("return", self.choice, units)
            calls.append(
                self.call("return_initiate", about, order_id=order_id, line_id=line_id, quantity=units)
            )
        sought = repr((kind, swap))
        if swap and sought not in self.found:
            self.minded = [pair for pair in swap if not self.slip()]  # the others are overlooked
            minded = {str(name): value for name, value in self.minded}
            calls.append(
                self.search(("search", sought), kind, minded, sort=None if self._price is None else "price")
            )
        if calls:
            return self.turn(*calls)
        refund = self._refund(units, restocking, label) if goes else None
        fitting = self._fitting(sought, kind, self.minded) if swap else None
        price = None if fitting is None else fitting.get("price")
        cheapest = None if price is None else round(100 * price)
        told = self._tell(last, refund, cheapest) if goes else None
        return told or self._submit(goes, last, refund, fitting)

    def _referred_to(self) -> list[str]:
        """List the orders of the things that a replacement is to be like."""
        found = []
        for _, value in self.get("replacement") or ():
            if isinstance(value, Of) and value.step not in self.lacks:
                found += [order["order_id"] for order in self.orders or () if _holds(order, value.described)]
        return found

    def _worked_out(self, pair: Sequence[Any]) -> Sequence[Any] | None:
        """Put the value of a thing ordered earlier in the place of a reference; None for who cannot."""
        name, value = pair
        if not isinstance(value, Of):
            return pair
        if value.step in self.lacks:
            return None
        lines = [
            line
            for order in self.looked.values()
            if _holds({**order, "items": order["lines"]}, value.described)
            for line in order["lines"]
            if line["type"] == value.described["type"]
        ]
        values = [line["attributes"].get(name.removeprefix("attr:")) for line in lines]
        return [name, values[0]] if values else None

    def _decides(self, rule: str, kind: str) -> Clause | None:
        """Find the clause on a rule that decides, or one that refers to a section which is still to be read."""
        assert self.choice is not None
        read = self.book.get((rule, kind))
        if read is None:
            return None
        facts = {name: self.get(name) for name in CASE if self.get(name) is not None}
        order, said = self.looked[self.choice[0]], self.checked[self.choice]
        facts["type"] = kind
        if said["delivered"]:
            facts["age"] = (date.fromisoformat(said["checked"]) - date.fromisoformat(said["delivered"])).days
        if all(line["price"] is not None for line in order["lines"]):
            facts["total"] = round(sum(100 * line["price"] * line["quantity"] for line in order["lines"]))
        clause = clause_of(read, facts, self)
        while clause is not None and clause.get("see") in self.referred:
            other = self.referred[clause["see"]]
            clause = None if other is None else clause_of(other, facts, self)
        return clause

    def _last_day(self, said: Mapping[str, Any], window: int | None) -> str | None:
        """Work out the last day of a window, that of the standard one where none was read; None for never."""
        if window is None:
            window = said["standard_window_days"]
        if not window or not said["delivered"]:
            return None
        return (date.fromisoformat(said["delivered"]) + timedelta(days=window)).isoformat()

    @property
    def _price(self) -> int | None:
        """Cents that were paid for a unit of the line that is meant."""
        assert self.choice is not None
        order = self.looked[self.choice[0]]
        price = next(line["price"] for line in order["lines"] if line["line_id"] == self.choice[1])
        return None if price is None else round(100 * price)

    def _refund(self, units: int, restocking: int | None, label: int | None) -> int | None:
        """Work out what is paid back for units of the line that is meant; a mistake forgets the label."""
        price, follows_from = self._price, (self.choice, units, restocking, label)
        if price is not None and follows_from not in self.refunds:
            kept = price * units * (restocking or 0) // 1000 + (0 if self.slip() else label or 0)
            self.refunds[follows_from] = max(0, price * units - kept)
        return self.refunds.get(follows_from)

    def _tell(self, last: str | None, refund: int | None, cheapest: int | None) -> Message | None:
        """Answer the customer's questions; who lacks the step names the first value that tools show."""
        assert self.choice is not None
        if "telling" in self.lacks:
            shown = self.checked[self.choice]["standard_last_day"]
            day = None if shown == "never" else shown
            values = {slot: at_first_sight(slot, day, self._price, cheapest) for slot in self.asks}
        else:
            apart = None if cheapest is None or refund is None else abs(cheapest - refund)
            found = {"ask_until": last, "ask_back": refund, "ask_more": apart}
            values = {slot: found[slot] for slot in self.asks}
        return self.answer({slot: value for slot, value in values.items() if value is not None})

    def _ask_to_agree(self, refund: int | None, form: str) -> Message | None:
        """Ask the customer whether they agree to the refund, once for each amount; None where that was done."""
        assert self.choice is not None
        if refund is None or (self.choice, refund, form) in self.agreed:
            return None
        self.agreed.add((self.choice, refund, form))
        if self.slip():  # forgets it
            return None
        if self.courtesy is not None:
            self.courtesy.confirmed = True
        order = self.looked[self.choice[0]]
        title = next(line["title"] for line in order["lines"] if line["line_id"] == self.choice[1])
        words = f"For the {title} you get {money(refund)} {form}. Do you agree?"
        return {"role": "assistant", "content": words}

    def _submit(
        self, goes: bool, last: str | None, refund: int | None, replacement: Mapping[str, Any] | None
    ) -> Message:
        assert self.choice is not None
        order_id, line_id = self.choice
        told = goes or not self.slip()  # a mistake forgets until when it could be returned
        return self.turn(
            self.call(
                "submit",
                None,
                order_id=order_id,
                line_id=line_id,
                outcome="returned" if goes else "declined",
                last_return_day=(last or "never") if told and not goes else None,
                refund=None if refund is None else money(refund),
                replacement=None if replacement is None else str(replacement["product_id"]),
            )
        )

    def result(self, about: Any, result: dict[str, Any]) -> None:
        if "orders" in result:
            self.orders = result["orders"]
        elif "lines" in result:
            self.looked[result["order_id"]] = result
        elif about == TITLE:
            self.read_places(result["sections"])
        elif "sections" in result:
            self._read_book(about, result["sections"])
        elif "units_left" in result:
            self.checked[result["order_id"], result["line_id"]] = result
        elif "returns" in result:
            self.returns = {(r["order_id"], r["line_id"]): r["quantity"] for r in result["returns"]}
        elif "results" in result:
            self.found[about[1]] = result["results"]
        elif "error" in result and isinstance(about, tuple) and about[0] == "return":
            self.refused.add(about[1:])
        elif "error" in result and isinstance(about, tuple):
            self.found[about[1]] = []

    def _read_book(self, about: Any, sections: Sequence[Mapping[str, str]]) -> None:
        """Read the section that a search shows, if it is the one sought."""
        plurals = {self.lexicon.types[name].plural: name for name in self.lexicon.types}
        for section in sections:
            read = read_section(section["section"], section["text"], plurals)
            if about == "referred":
                self.referred[section["section"]] = read
            elif read is not None and read.rule == about[0] and (not read.kinds or about[1] in read.kinds):
                self.book[about] = read

    def _stale(self, slots: Mapping[str, Any]) -> list[tuple[str, str]]:
        """List the returns of lines that are no longer meant."""
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
            fitting = others  # each slot, and each line it excludes, is a chance of a mistake
        order, line = fitting[0]
        return order["order_id"], line["line_id"]

    def _fitting(self, sought: str, kind: str, swap: Sequence[Sequence[Any]]) -> Mapping[str, Any] | None:
        """Find the first wanted product that differs from the returned one; distractors may be of other types."""
        assert self.choice is not None
        order = self.looked[self.choice[0]]
        own = next(r["product_id"] for r in order["lines"] if r["line_id"] == self.choice[1])
        wish = Wish(kind, {str(name): value for name, value in swap})
        for record in self.found[sought]:
            if record["product_id"] != own and record["stock"] > 0 and wish.fits(record):
                return record
        return None


def _holds(order: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    """Tell whether an order is of the month, and holds something of the type, that a reference names."""
    of_month = order["placed"][5:7] == described["month"]
    return of_month and any(item["type"] == described["type"] for item in order["items"])


def _listed(order: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether an order may hold what these slots describe, by what `order_list` shows of it."""
    if slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    return any(named(item, slots) for item in order["items"])


def _fits(order: Mapping[str, Any], line: Mapping[str, Any], slots: Mapping[str, Any]) -> bool:
    """Tell whether a line that `order_get_status` shows is as these slots describe."""
    if not named(line, slots) or slots.get("ordered") not in (None, order["placed"][5:]):
        return False
    if slots.get("option") not in (None, line["variant_id"]):
        return False
    parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else {}
    if slots.get("delivered") not in (None, parcel.get("delivered", "")[5:]):
        return False
    return all(line["attributes"].get(n[5:]) == v for n, v in slots.items() if n.startswith("attr:"))
