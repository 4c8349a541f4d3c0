"""Narrators: reference players whose turns include the thoughts that a tiny model needs to learn.

Before it acts, a narrator restates what the customer wants in a canonical form; before it uses an id, it quotes the
words that lead to it as the laptop policy sees them (`compact_results`): the customer's words if they name the item,
else its title. Calls have one form, whatever form the player gives them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from ecomlab.customer.demands import identity
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.envs.substitution.player import titled
from ecomlab.players.asking import QUESTIONS
from ecomlab.players.goal_player import GoalPlayer
from ecomlab.slots import slot_type
from ecomlab.starters.compact_results import KNOWN, heading, seen
from ecomlab.starters.questions import Questions
from ecomlab.starters.sorted_rows import OrderedDiscovery
from ecomlab.task import Message, Player
from ecomlab.values import DAY
from ecomlab.world.policy_book.rules import WINDOW, rule_of

TITLE = ("brand", "feature", "type")
"""Slots that make up a title, in order."""
_ISO = re.compile(r"\d{4}-(\d\d-\d\d)")


def asked(message: Message) -> Message:
    """Put words to the customer into `ask_user`, the only way in which the policy speaks."""
    arguments = json.dumps({"question": message["content"]})
    call = {"id": "said", "type": "function", "function": {"name": "ask_user", "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


class Narrator:
    """A player whose turns include thoughts; `knows` tells whether an id has been shown to the policy."""

    def __init__(self, env: str, player: GoalPlayer, knows: Callable[[str], bool] = lambda _: True) -> None:
        self.env = env
        self.player = player
        self.knows = knows
        self.questions = Questions(env)
        self._restated: dict[int, str] = {}
        self._searched: set[str] = set()
        """Words for which the policy book was searched."""
        self._quoted: set[str] = set()
        self._titles: dict[str, str] = {}
        """Titles by id of product or line."""
        self._orders: dict[str, dict[str, Any]] = {}
        self._seen: list[Message] = []
        """The conversation as the policy sees it."""

    def comes_to(self, given: Mapping[str, Any], today: date | None) -> dict[str, int | None]:
        """Tell what the job came to, as its player does."""
        return self.player.comes_to(given, today)

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        for message in messages[len(self._seen) :]:
            if message["role"] == "tool" and message["name"] in KNOWN:
                result = seen(json.loads(message["content"]))
                self._remember(result)
                message = {**message, "content": json.dumps(result)}
            self._seen.append(message)
        message = self.player(self._seen, tools)
        if not message.get("tool_calls"):
            return asked(message)
        calls = [self._rewritten(call) for call in message["tool_calls"]]
        if calls[0]["function"]["name"] == "ask_user":
            return {**message, "tool_calls": calls}
        thoughts = [*self._news(), *self._quotes([_read(call) for call in calls])]
        return {**message, "content": "\n".join(thoughts), "tool_calls": calls}

    def notice(self, text: str) -> None:
        """Pass on a notice that came while another job was under way."""
        self.player.notice(text)

    def _remember(self, result: Mapping[str, Any]) -> None:
        for rows in (result.get("visits"), result.get("results"), [result.get("product")]):
            self._titles |= {row["product_id"]: row["title"] for row in rows or () if row}
        for line in result.get("lines", ()):
            self._titles[line["line_id"]] = line["title"]
        for order in result.get("orders", ()):
            self._orders[order["order_id"]] = order

    # Restating what is wanted.

    def _news(self) -> Iterator[str]:
        """Restate what is known of each wanted item, where that is new."""
        known = {slot: value for slot, value in self.player.known.items() if value is not None}
        for item in dict.fromkeys(item for item, _ in known):
            words = restated(self.env, {n: v for (s, n), v in known.items() if s == item})
            if words and self._restated.get(item) != words:
                self._restated[item] = words
                yield words

    # Quoting the words behind ids.

    def _quotes(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
        if isinstance(self.player, OrderedDiscovery):
            yield from self.player.quoted
            return
        looks = sum(name == "order_get_status" for name, _ in calls)
        for name, arguments in calls:
            if name == "submit" and arguments.get("clause"):
                yield f" {arguments.get('answer', '')} {arguments['clause']}"
            for key in ("product_id", "line_id", "replacement") if name != "catalog_search" else ():
                found = arguments.get(key)
                if found and found not in self._quoted:
                    self._quoted.add(found)
                    yield f" {self._named(found)} {found}"
            order = arguments.get("order_id")
            if order and order not in self._quoted and order in self._orders:
                self._quoted.add(order)
                yield f" {self._order_words(order, alone=looks < 2)} {order}"
            for product in arguments.get("product_ids", ()) if name == "submit" else ():
                yield f"- {self._titles.get(product, '')} {product}"

    def _said(self) -> dict[str, Any]:
        """Collect the slots that name an item in the customer's words."""
        slots = {name: value for (_, name), value in self.player.known.items() if value is not None}
        if "thing" in slots:
            slots["type"] = slots["thing"]
        return {name: value for name, value in identity(slots).items() if name in TITLE}

    def _named(self, found: str) -> str:
        """Name an item in the customer's words if they fit, else by its title."""
        title, said = self._titles.get(found, ""), self._said()
        return _title(said) if "type" in said and titled(title, said) else title

    def _order_words(self, order_id: str, alone: bool) -> str:
        """Name an order by the customer's words for an item if that is how they referred to it, else by its day."""
        order, said = self._orders[order_id], self._said()
        slots = {name for (_, name), value in self.player.known.items() if value is not None}
        dated = {"placed", "ordered"} & slots
        step = {"relation", "correction", "place", "when", "things", "parcels"} & slots
        fits = "type" in said and any(titled(item["title"], said) for item in order["items"])
        return _title(said) if fits and alone and not dated and not step else DAY.write(order["placed"])

    # Writing calls in one form.

    def _rewritten(self, call: dict[str, Any]) -> dict[str, Any]:
        name, arguments = _read(call)
        if name == "ask_user" and arguments["question"] in QUESTIONS:
            arguments = {"question": self.questions.next(self.player.heard_of())}
        elif name == "policy_search" and self.player.get("question"):
            query = self._policy_query()
            arguments = arguments if query in self._searched else {"query": query}  # then another title
            self._searched.add(query)
        elif name == "catalog_search":
            if "attributes" in arguments:
                arguments["attributes"] = self._in_order(arguments["attributes"])
            if arguments.get("price_max", 0.5) % 1 == 0:  # $45, as the customer writes it
                arguments["price_max"] = int(arguments["price_max"])
        elif name == "return_initiate" and arguments.get("quantity") == 1:
            del arguments["quantity"]
        elif name == "submit":
            if "product_ids" in arguments:
                arguments["product_ids"] = [i for i in arguments["product_ids"] if self.knows(i)]
            for key in ("date", "last_return_day"):
                day = _ISO.fullmatch(arguments.get(key, ""))
                arguments |= {key: DAY.write(day[1])} if day else {}
        return {**call, "function": {"name": name, "arguments": json.dumps(arguments)}}

    def _policy_query(self) -> str:
        rule, kind = rule_of(self.player.get("question")), self.player.get("type")
        return heading(rule).strip() + (f" {kind}" if rule == WINDOW and kind else "")

    def _in_order(self, attributes: Mapping[str, str]) -> dict[str, str]:
        """Order attributes as the product that they come from lists them."""
        for record in getattr(self.player, "looked", {}).values():
            shown = record.get("attributes", {})
            if attributes.items() <= shown.items():
                return {name: value for name, value in shown.items() if name in attributes}
        return dict(attributes)


def narrated(env: str, player: Player, knows: Callable[[str], bool]) -> Player:
    """Add thoughts to a player if it plays by a goal."""
    return Narrator(env, player, knows) if isinstance(player, GoalPlayer) else player


def restated(env: str, slots: Mapping[str, Any]) -> str:
    """Write what is known of an item in a canonical form: " InkHarbor Portable Keyboard, must layout, days 4 days"."""
    said = [_title(identity(slots))] if "type" in identity(slots) else []
    names = [name for name in slots if name.removeprefix("was_") not in TITLE and name != "twist"]
    order = [*ENVIRONMENTS[env].phrases.slots, *sorted(names)]
    for name in sorted(names, key=order.index):
        said.append(f"{name.removeprefix('attr:')} {_written(env, name, slots[name])}")
    return " " + ", ".join(said) if said else ""


def _written(env: str, name: str, value: Any) -> str:
    if name == "question":
        return heading(rule_of(value)).strip() + value.removeprefix(rule_of(value))
    template = ENVIRONMENTS[env].phrases.slots.get(name)
    if env in ("POLICY", "RETURN") and name in (
        "tier",
        "payment",
        "channel",
        "opened",
        "gift",
        "sale",
        "reason",
    ):
        return str(value)
    if template is not None and not template.sentences:
        return template.format.write(value)
    return slot_type(name).bare(value) if isinstance(value, int) else str(value)


def _title(slots: Mapping[str, Any]) -> str:
    return " ".join(str(slots[name]) for name in TITLE if slots.get(name))


def _read(call: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return call["function"]["name"], json.loads(call["function"]["arguments"])
