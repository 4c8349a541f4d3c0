"""Attackers of law 3, per verifier: made from an environment's tools and the fields of its `submit`.

Blind players never use the customer's words, or what a tool says, to decide. Positional ones choose by the place in a
list alone, and then do all the rest as well as it can be done. The naive shopper takes the customer's words as the
query and the first hit.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ecomlab.envs.base import Environment
from ecomlab.seeding import rng
from ecomlab.task import Message, Player

Factory = Callable[[int], Player]
"""Makes a player for one episode from its seed."""


def text(words: str) -> Message:
    """A message to the customer."""
    return {"role": "assistant", "content": words}


def calls(*named: tuple[str, dict[str, Any]]) -> Message:
    """A message of tool calls."""
    made = [
        {"id": f"b{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


SUBMIT = calls(("submit", {}))


CONSTANTS = (
    "",
    "0",
    "1",
    "yes",
    "no",
    "N/A",
    "nan",
    "30 days",
    "$5.00",
    "returned",
    "declined",
    "never",
    "delivered",
)
"""What a constant answer puts into every field of text."""
HISTORY = calls(("user_get_visit_history", {}))
ANYTHING = calls(("catalog_search", {"query": "product"}))
ORDERS = calls(("order_list", {}))
POLICIES = calls(("policy_search", {"query": "policy"}))
Rows = list[dict[str, Any]]


def constant(env: Environment, value: str = "", products: tuple[str, ...] = ()) -> Message:
    """`submit` with `value` in every field of text and `products` in every list."""
    arguments: dict[str, Any] = {}
    for name, field in env.submit.schema["function"]["parameters"].get("properties", {}).items():
        kinds = [field, *field.get("anyOf", ())]
        if any(kind.get("type") == "array" for kind in kinds):
            arguments[name] = list(products) or ([value] if value else [])
        elif any(kind.get("type") == "string" for kind in kinds):
            arguments[name] = value
    return calls(("submit", arguments))


def blind(env: Environment) -> dict[str, Factory]:
    """Players that are correct by luck at most: at most 5% (law 3)."""
    empty = constant(env)
    ask = calls(("ask_user", {"question": "Anything else?"}))
    made: dict[str, Factory] = {
        "hand in at once": _always(empty),
        "say nothing": _always(text("")),
        "say done": _always(text("Done, everything is in your cart.")),
        "ask for ever": _always(ask),
        "refuse": _always(text("I'm sorry, I cannot help with that.")),
        "ask, then hand in": _script(ask, empty),
        "broken output": _always({"role": "assistant", "content": "{", "invalid": "malformed JSON"}),
    }
    if _text_fields(env):
        made |= {f"always {value!r}": _always(constant(env, value)) for value in CONSTANTS[1:]}
    fields = env.submit.schema["function"]["parameters"].get("properties", {})
    looks = {"history": HISTORY, "a search": ANYTHING, "orders": ORDERS}
    for name, look in looks.items():
        if look["tool_calls"][0]["function"]["name"] not in env.offered:
            continue
        if "cart_add" in env.offered:
            made[f"all of {name}"] = _look_then(look, lambda rows, random: _buy(rows), empty)
        if "product_ids" in fields:
            made[f"all of {name}"] = _look_then(look, lambda rows, random: constant(env, products=_ids(rows)))
    if "cart_add" in env.offered:
        made["made-up id"] = _script(calls(("cart_add", {"product_id": "P000000"})), empty)
    if "product_ids" in fields:
        made["made-up ids"] = _always(constant(env, products=("P000000", "P000001", "P000002")))
    if "return_initiate" in env.offered:
        made["everything sent back"] = lambda seed: _Returner(env, None, seed)
    return made


def positional(env: Environment) -> dict[str, Factory]:
    """Players held to the chance rate that the environment states for itself (law 3)."""
    made: dict[str, Factory] = {}
    empty, fields = constant(env), env.submit.schema["function"]["parameters"].get("properties", {})
    for place, choose in CHOICES.items():
        for name, look in {"history": HISTORY, "search": ANYTHING}.items():
            if look["tool_calls"][0]["function"]["name"] not in env.offered:
                continue
            if "cart_add" in env.offered:
                made[f"{place} of {name}"] = _look_then(look, _one(choose, _buy), empty)
            if "product_ids" in fields:
                for count in (1, 3, 5):
                    made[f"{place} {count} of {name}"] = _look_then(look, _several(env, choose, count))
        if "return_initiate" in env.offered:
            made[f"{place} line of an order"] = lambda seed, choose=choose: _Returner(env, choose, seed)  # type: ignore[misc]
        if "status" in fields:
            made[f"{place} order"] = lambda seed, choose=choose: _Tracker(env, choose, seed)  # type: ignore[misc]
        if "policy_search" in env.offered:
            made[f"{place} section"] = lambda seed, choose=choose: _Reader(env, choose, seed)  # type: ignore[misc]
    if "return_initiate" in env.offered:
        made["lines until silence"] = lambda seed: _Retrier(env, None, seed)
    if "cart_add" in env.offered and "user_get_visit_history" in env.offered:
        made |= {
            "two of history": _look_then(
                HISTORY,
                lambda rows, random: _buy([rows[i] for i in random.permutation(len(rows))[:2]]),
                empty,
            ),
            "commonest type of history": _look_then(
                HISTORY, lambda rows, random: _buy(_commonest_first(rows)[:1]), empty
            ),
            "history until silence": _until_silence(lambda rows: rows),
            "commonest until silence": _until_silence(_commonest_first),
        }
    return made


CHOICES: dict[str, Callable[[Rows, np.random.Generator], dict[str, Any]]] = {
    "first": lambda rows, random: rows[0],
    "last": lambda rows, random: rows[-1],
    "random": lambda rows, random: rows[int(random.integers(len(rows)))],
    "cheapest": lambda rows, random: min(rows, key=lambda row: row.get("price", 0)),
    "longest": lambda rows, random: max(rows, key=lambda row: len(json.dumps(row))),
}
"""How a positional player chooses from a list."""
Choice = Callable[[Rows, np.random.Generator], dict[str, Any]]


def _text_fields(env: Environment) -> bool:
    return constant(env, "x") != constant(env)


def _always(message: Message) -> Factory:
    return lambda seed: lambda messages, tools: message


def _script(*messages_: Message) -> Factory:
    """These messages one after the other, the last one for ever."""

    def make(seed: int) -> Player:
        said = iter(messages_)
        return lambda messages, tools: next(said, messages_[-1])

    return make


def _look_then(
    look: Message, answer: Callable[[Rows, np.random.Generator], Message], then: Message | None = None
) -> Factory:
    """One look at a list, one answer to what it shows, and `then` for ever."""

    def make(seed: int) -> Player:
        random, step = rng("positional", seed), 0

        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            nonlocal step
            step += 1
            rows = _listed(messages)
            if step == 1:
                return look
            if step == 2 and rows:
                return answer(rows, random)
            return then or answer([], random)

        return player

    return make


def _buy(rows: Rows) -> Message:
    return calls(*[("cart_add", {"product_id": product_id}) for product_id in _ids(rows)])


def _ids(rows: Rows) -> tuple[str, ...]:
    return tuple(row["product_id"] for row in rows)


def _one(choose: Choice, act: Callable[[Rows], Message]) -> Callable[[Rows, np.random.Generator], Message]:
    return lambda rows, random: act([choose(rows, random)])


def _several(env: Environment, choose: Choice, count: int) -> Callable[[Rows, np.random.Generator], Message]:
    """The chosen row, then the chosen one of the rest, and so on."""

    def answer(rows: Rows, random: np.random.Generator) -> Message:
        left, taken = list(rows), list[dict[str, Any]]()
        while left and len(taken) < count:
            taken.append(choose(left, random))
            left.remove(taken[-1])
        return constant(env, products=_ids(taken))

    return answer


class _Looker:
    """A player in steps: each says one message from the results so far."""

    def __init__(self, env: Environment, choose: Choice | None, seed: int) -> None:
        self.env, self.choose = env, choose
        self.random = rng("positional", seed)
        self.step = 0
        self.results: list[dict[str, Any]] = []

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        self.results = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
        self.step += 1
        said = self.say(self.step)
        return said if said["tool_calls"] else constant(self.env)

    def say(self, step: int) -> Message:
        raise NotImplementedError

    def pick(self, rows: Rows) -> Rows:
        """The chosen row; all of them without a choice."""
        return [self.choose(rows, self.random)] if self.choose and rows else rows

    def submit(self, **fields: Any) -> Message:
        filled = json.loads(constant(self.env)["tool_calls"][0]["function"]["arguments"]) | fields
        return calls(("submit", filled))


class _OrderLooker(_Looker):
    """Looks into an order chosen by its place in the list first."""

    def say(self, step: int) -> Message:
        if step == 1:
            return ORDERS
        if step == 2:
            orders = self.pick(self.results[0].get("orders", []))
            return calls(*[("order_get_status", {"order_id": o["order_id"]}) for o in orders])
        return self.go_on(step)

    def go_on(self, step: int) -> Message:
        raise NotImplementedError


class _Tracker(_OrderLooker):
    """Reports on that order."""

    def go_on(self, step: int) -> Message:
        order = self.results[-1]
        days = [p.get("delivered") or p.get("expected") or "" for p in order.get("parcels", ())]
        return self.submit(
            order_id=order.get("order_id", ""), status=order.get("status", ""), date=max(days, default="")
        )


class _Returner(_OrderLooker):
    """Sends back a line of it chosen likewise, or everything; declines where it must."""

    def go_on(self, step: int) -> Message:
        if step == 3:
            orders = [result for result in self.results[1:] if "lines" in result]
            self.lines = [(o["order_id"], line) for o in orders for line in self.pick(o["lines"])]
            return calls(
                *[
                    ("return_check_eligibility", {"order_id": order_id, "line_id": line["line_id"]})
                    for order_id, line in self.lines
                ]
            )
        if step == 4:
            return calls(
                *[
                    (
                        "return_initiate",
                        {
                            "order_id": order_id,
                            "line_id": line["line_id"],
                            "quantity": max(1, line["quantity"] - line.get("returned", 0)),
                        },
                    )
                    for order_id, line in self.lines
                ]
            )
        if not self.lines:
            return constant(self.env)
        order_id, line = self.lines[0]
        declined = "error" in self.results[-1]
        days = [
            str(result.get("last_return_day") or "never") for result in self.results if "eligible" in result
        ]
        return self.submit(
            order_id=order_id,
            line_id=line["line_id"],
            outcome="declined" if declined else "returned",
            last_return_day=days[0] if declined and days else "",
        )


class _Retrier(_OrderLooker):
    """Sends back one line after the other and keeps the first of which the customer says nothing."""

    sent: dict[str, Any] | None = None
    silent = False

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        self.silent = messages[-1]["role"] == "tool"
        return super().__call__(messages, tools)

    def go_on(self, step: int) -> Message:
        if step == 3:
            orders = [result for result in self.results[1:] if "lines" in result]
            lines = [(o["order_id"], n["line_id"]) for o in orders for n in o["lines"] if _can_go(o, n)]
            self.left = [lines[i] for i in self.random.permutation(len(lines)).tolist()]
        if self.sent and "error" in self.results[-1]:
            self.sent = None  # this one cannot go back
        if not self.left or (self.sent and self.silent):
            return self.submit(**(self.sent or {}), outcome="returned")
        undo = [("return_cancel", self.sent)] if self.sent else []
        self.sent = dict(zip(("order_id", "line_id"), self.left.pop(), strict=True))
        return calls(*undo, ("return_initiate", self.sent))


def _can_go(order: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether units of a line are with the customer."""
    parcel = order["parcels"][line["parcel"] - 1] if line["parcel"] else {}
    return "delivered" in parcel and line["returned"] < line["quantity"]


class _Reader(_Looker):
    """Answers with the first number and the first clause of a section chosen by its place."""

    look = POLICIES

    def say(self, step: int) -> Message:
        if step == 1:
            return self.look
        sections = self.pick(self.results[0].get("sections", [])[:])
        shown = json.dumps(sections)
        clause = re.search(r"[A-Z]-\d+", shown)
        number = re.search(
            r"\$?\d+(?:\.\d+)?(?: \w+|%)?", shown.partition(clause.group())[2] if clause else ""
        )
        return self.submit(
            answer=number.group() if number else "yes", clause=clause.group() if clause else ""
        )


class _NaiveReader(_Reader):
    """Searches the policy book for what the customer said."""

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        self.look = calls(("policy_search", {"query": messages[1]["content"]}))
        return super().__call__(messages, tools)


def _listed(messages: list[Message]) -> list[dict[str, Any]]:
    """Every product that a tool has listed so far."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            result = json.loads(message["content"])
            for value in result.values():
                if isinstance(value, list):
                    found += [entry for entry in value if isinstance(entry, dict) and "title" in entry]
    return found


def _until_silence(order: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Factory:
    """Try the visits one after the other in some order; keep the first after which the customer says nothing."""

    def make(seed: int) -> Player:
        tried: list[str] = []

        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            if len(messages) <= 2:
                return HISTORY
            left = [row["product_id"] for row in order(_listed(messages)) if row["product_id"] not in tried]
            if not left or (tried and messages[-1]["role"] != "user"):
                return SUBMIT
            undo = [("cart_remove", {"product_id": tried[-1]})] if tried else []
            tried.append(left[0])
            return calls(*undo, ("cart_add", {"product_id": left[0]}))

        return player

    return make


def _commonest_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose title's last word is commonest in the list come first."""
    words = Counter(row["title"].split()[-1] for row in rows)
    return sorted(rows, key=lambda row: -words[row["title"].split()[-1]])


def naive(env: Environment) -> Factory:
    """The customer's words as the query, the first hit into cart or answer: shown without a bound."""
    if "policy_search" in env.offered and "cart_add" not in env.offered:
        return lambda seed: _NaiveReader(env, CHOICES["first"], seed)

    def make(seed: int) -> Player:
        def player(messages: list[Message], tools: list[dict[str, Any]]) -> Message:
            if len(messages) <= 2 and "catalog_search" in env.offered:
                return calls(("catalog_search", {"query": messages[1]["content"]}))
            rows = _listed(messages)
            if "cart_add" not in env.offered:
                return constant(env, products=_ids(rows[:1]))
            if rows and not any('"cart"' in m["content"] for m in messages if m["role"] == "tool"):
                return _buy(rows[:1])
            return constant(env)

        return player

    return make
