"""Wrong calls: what a right call of each tool becomes when a mistake of a kind is planted.

What is wrong follows from the catalog, the orders and the verifier, never from the code that labels mistakes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, get_args

import numpy as np

from ecomlab.answers.status import StatusName
from ecomlab.episode.episode import Episode
from ecomlab.episode.subtask import Subtask
from ecomlab.laws.surface import calls as message_of
from ecomlab.laws.surface import records, results
from ecomlab.seeding import pick, shuffled
from ecomlab.task import Message
from ecomlab.tool import RefusedError, SlipError
from ecomlab.world.cart import Want
from ecomlab.world.orders.history import eligible_now, find_line
from ecomlab.world.orders.lines import lines_meant
from ecomlab.world.state import World

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


@dataclass
class Scene:
    """An episode as the agent finds it, and the random stream of what is planted."""

    episode: Episode
    random: np.random.Generator

    @property
    def world(self) -> World:
        return self.episode.world

    @property
    def subtask(self) -> Subtask:
        return self.episode.subtask

    def wants(self) -> Sequence[Want]:
        """List the products that are sought now."""
        return self.subtask.env.audit.wishes(self.subtask.goal, self.world)

    def before(self) -> Sequence[Want]:
        """List the products that were sought at first: what fits those is a stale wish, not another mistake."""
        return self.subtask.env.audit.wishes(self.subtask.customer.first, self.world)

    def seen(self, product_id: str, fits: bool, units: int = 1) -> Iterator[str]:
        """Yield other products of a product's type that a tool has shown, that fit the wish for it or break it, now and
        at first, and of which so many units can be had; in random order."""
        catalog, world = self.world.catalog, self.world
        kind = catalog.type_of(world.row(product_id)).name
        wants = [want for want in self.wants() if want.type == kind]
        every = [*wants, *(want for want in self.before() if want.type == kind)]
        for other in shuffled(self.random, sorted(world.shown - {product_id})):
            row = world.row(other)
            if catalog.type_of(row).name != kind or world.stock(row) < units:
                continue
            some = wants if fits else every
            if wants and any(catalog.satisfies(row, want.constraints) for want in some) == fits:
                yield other

    def read(self, name: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Read the arguments that a call gives as its tool does, a "2" as 2; None where the tool would not take them,
        and for what is no tool of the shop."""
        env = self.episode.env
        tool = env.submit if name == env.submit.name else env.offered.get(name)
        try:
            taken = tool.check(given) if tool else None
        except SlipError:
            return None
        return None if taken is None else {name: taken[name] for name in given if name in taken}

    def stands(self, answer: Mapping[str, Any]) -> bool:
        """Tell whether the verifier would find this answer correct."""
        subtask = self.subtask
        return subtask.env.verify(subtask.goal, self.world, answer, subtask.customer.first).correct

    def was_right(self, answer: Mapping[str, Any]) -> bool:
        """Tell whether an answer is what the customer wanted at first: it would be a stale wish."""
        subtask = self.subtask
        first = subtask.customer.first
        return subtask.env.verify(first, self.world, answer, first).correct

    def cost(self, product_ids: Sequence[str]) -> int:
        """Add up the prices of these products, in cents."""
        return sum(self.world.catalog.price_cents.item(self.world.row(one)) for one in product_ids)


Edit = Callable[[str, dict[str, Any], Scene], list[Call] | None]
"""A function of a right call that returns the calls to make instead, or None where it has nothing to go by."""


def _listed(name: str, given: Mapping[str, Any]) -> list[str]:
    """Return the products that a call hands in; empty for any other call."""
    return list(given.get("product_ids") or ()) if name == "submit" else []


def _affordable(ids: Sequence[str], scene: Scene) -> bool:
    """Tell whether a list stays within the budget, where there is one."""
    goal = scene.subtask.goal
    return "budget" not in goal or scene.cost(ids) <= goal["budget"]


def _replacing(ids: Sequence[str], fits: bool, scene: Scene) -> Iterator[list[str]]:
    """Yield the list with one product replaced by another that was shown."""
    for place in shuffled(scene.random, range(len(ids))):
        for other in scene.seen(ids[place], fits):
            if other not in ids:
                yield [*ids[:place], other, *ids[place + 1 :]]


def wrong_product(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name == "cart_add":  # in no variant, for none of the other product was shown
        others = scene.seen(given["product_id"], fits=False, units=given.get("quantity", 1))
        wrong = {key: value for key, value in given.items() if key != "variant_id"}
        return next(([(name, {**wrong, "product_id": other})] for other in others), None)
    found = (ids for ids in _replacing(_listed(name, given), False, scene) if _affordable(ids, scene))
    return next(([(name, {"product_ids": ids})] for ids in found), None)


def unwanted_item(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    world = scene.world
    wanted = {want.type for want in (*scene.wants(), *scene.before())}
    others = [one for one in sorted(world.shown) if world.stock(world.row(one)) > 0]
    others = [one for one in others if world.catalog.type_of(world.row(one)).name not in wanted]
    if name == "cart_add" and others:
        return [(name, given), (name, {"product_id": pick(scene.random, others), "quantity": 1})]
    if _listed(name, given) and "budget" in scene.subtask.goal:
        ids = _listed(name, given)
        seconds = [other for one in ids for other in scene.seen(one, fits=True)]
        more = [[*ids, one] for one in (*others, *seconds) if one not in ids]
        able = [longer for longer in more if _affordable(longer, scene)]
        return [(name, {"product_ids": pick(scene.random, able)})] if able else None
    return None


def wrong_variant(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name != "cart_add" or not given.get("variant_id"):
        return None
    product_id, units = given["product_id"], given.get("quantity", 1)
    row = scene.world.row(product_id)
    right = {given["variant_id"], *(want.option for want in scene.before())}
    others = [
        one for one in scene.world.options(row) if one not in right and scene.world.stock(row, one) >= units
    ]
    seen = [one for one in others if (product_id, one) in scene.world.shown_pairs]
    return [(name, {**given, "variant_id": pick(scene.random, seen)})] if seen else None


def wrong_quantity(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name == "cart_add":
        row, option = scene.world.row(given["product_id"]), given.get("variant_id")
        left = scene.world.stock(row, option if option in scene.world.options(row) else None)
    elif name == "return_initiate":
        left = eligible_now(scene.world, *find_line(scene.world, given["order_id"], given["line_id"])).left
    else:
        ids = _listed(name, given)
        fewer = len(ids) > 1 and "count" in scene.subtask.goal
        return [(name, {"product_ids": ids[:-1]})] if fewer else None
    units, customer = given.get("quantity", 1), scene.subtask.customer
    was = {
        goal.get("quantity", goal.get("units", 1, item), item)
        for goal in (customer.first, customer.goal)
        for item in goal.items
    } - {units}
    others = [other for other in (units - 1, units + 1) if 1 <= other <= left and other not in was]
    return [(name, {**given, "quantity": pick(scene.random, others)})] if others else None


def missed_item(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name == "cart_add":
        return []
    ids = _listed(name, given)
    if ids and "budget" in scene.subtask.goal:
        left_out = int(scene.random.integers(len(ids)))
        fewer = [one for place, one in enumerate(ids) if place != left_out]
        return [(name, {"product_ids": fewer})] if fewer else None
    if name == "submit" and not scene.subtask.env.acts_on and not scene.episode.task.subtasks:
        return [(name, {"product_ids": []} if ids else {})]
    return None


def not_the_best(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if "count" not in scene.subtask.goal:
        return None
    lists = _replacing(_listed(name, given), True, scene)
    return next(
        ([(name, {"product_ids": ids})] for ids in lists if not scene.stands({"product_ids": ids})), None
    )


def over_budget(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if "budget" not in scene.subtask.goal:
        return None
    lists = (ids for ids in _replacing(_listed(name, given), True, scene) if not _affordable(ids, scene))
    return next(([(name, {"product_ids": ids})] for ids in lists), None)


def sold_out(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    ids, catalog, world = _listed(name, given), scene.world.catalog, scene.world
    for place in shuffled(scene.random, range(len(ids))):
        kind = catalog.type_of(world.row(ids[place])).name
        wants = [want for want in scene.wants() if want.type == kind]
        for other in shuffled(scene.random, sorted(world.shown - set(ids))):
            row, made = world.row(other), [*ids[:place], other, *ids[place + 1 :]]
            fits = any(catalog.satisfies(row, want.constraints) for want in wants)
            if (
                fits
                and world.stock(row) == 0
                and catalog.type_of(row).name == kind
                and _affordable(made, scene)
            ):
                return [(name, {"product_ids": made})]
    return None


def wrong_line(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name not in ("return_initiate", "submit") or not given.get("line_id"):
        return None
    if name == "submit" and scene.world.returns:
        return None
    units, able = given.get("quantity", 1), []
    was = lines_meant(scene.subtask.customer.first.of(), scene.world.given["orders"], scene.world.shop)
    right = {
        given["line_id"],
        *(line["line_id"] for _, line in was),
    }  # what was meant before would be a stale wish
    for _, result in results(scene.episode.messages):
        for row in records(result):
            line = (row.get("order_id"), row.get("line_id"))
            if "title" not in row or None in line or line[1] in right:
                continue
            found = eligible_now(scene.world, *find_line(scene.world, *map(str, line)))
            if name == "submit" or (found.eligible and units <= found.left):
                able.append({**given, "order_id": line[0], "line_id": line[1]})
    return [(name, pick(scene.random, able))] if able else None


def wrong_outcome(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    said = given.get("outcome")
    other = {"returned": "declined", "declined": "returned"}.get(str(said))
    return [(name, {**given, "outcome": other})] if name == "submit" and other else None


def wrong_order(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name != "submit" or "status" not in given:
        return None
    orders = {
        row["order_id"]
        for _, result in results(scene.episode.messages)
        for row in records(result)
        if "order_id" in row
    }
    others = sorted(orders - {given["order_id"]})
    return [(name, {**given, "order_id": pick(scene.random, others)})] if others else None


def wrong_status(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name != "submit" or "status" not in given:
        return None
    others = [status for status in get_args(StatusName) if status != given["status"]]
    return [(name, {**given, "status": pick(scene.random, others)})]


def wrong_date(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    for field in ("date", "last_return_day") if name == "submit" else ():
        try:
            day = date.fromisoformat(str(given.get(field)))
        except ValueError:
            continue
        off = int(scene.random.integers(1, 8)) * (1 if scene.random.random() < 0.5 else -1)
        return [(name, {**given, field: (day + timedelta(days=off)).isoformat()})]
    return None


def _clauses_shown(scene: Scene) -> dict[str, Any]:
    """Return the outcome of each clause whose text a tool has shown, by id."""
    book = scene.world.given.get("policies", {"sections": ()})
    told = " ".join(
        str(result) for name, result in results(scene.episode.messages) if name == "policy_search"
    )
    return {
        clause["id"]: clause["then"]
        for section in book["sections"]
        for clause in section["clauses"]
        if f"[{clause['id']}]" in told
    }


def wrong_clause(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name != "submit" or not given.get("clause"):
        return None
    shown = _clauses_shown(scene)
    # Of the same outcome, so that the answer beside it stays right or follows from it.
    others = sorted(
        one for one, then in shown.items() if one != given["clause"] and then == shown.get(given["clause"])
    )
    others = others or sorted(one for one in shown if one != given["clause"])
    return [(name, {**given, "clause": pick(scene.random, others)})] if others else None


def wrong_answer(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    said = given.get("answer")
    if name != "submit" or not said:
        return None
    if said in ("yes", "no"):
        return [(name, {**given, "answer": "no" if said == "yes" else "yes"})]
    other = re.sub(r"\d+", lambda found: str(int(found[0]) + 1), said, count=1)
    return [(name, {**given, "answer": other})] if other != said else None


def calls_of(message: Message) -> list[Call]:
    """Read the calls of a message that was played."""
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]


def with_calls(message: Message, calls: Sequence[Call]) -> Message:
    """Put these calls into a message. Those that it had keep their ids, and one that is changed that of the call in
    whose place it is made, so that who made them knows the results."""
    had = list(zip(calls_of(message), (call["id"] for call in message["tool_calls"]), strict=True))
    ids: dict[int, str] = {}
    for same in (lambda one, other: one == other, lambda one, other: one[0] == other[0]):
        for number, call in enumerate(calls):
            mine = next((one for one in had if number not in ids and same(one[0], call)), None)
            if mine:
                had.remove(mine)
                ids[number] = mine[1]
    made = message_of(*calls)
    for number, call in enumerate(made["tool_calls"]):
        call["id"] = ids.get(number, f"planted{number}")
    return {**message, "tool_calls": made["tool_calls"]}


@dataclass(frozen=True)
class Edited:
    """A message with one wrong call: what it was and the calls that are made instead of it."""

    message: Message
    right: Call
    wrong: list[Call]


def edit(message: Message, kind: str, scene: Scene, answers: bool = True) -> Edited | None:
    """Make the first call of a message wrong of which that can be done, or by one of `TRICKS` only look so; None where
    there is none. With `answers` also one that hands in, which nobody can mend."""
    calls = calls_of(message)
    for place, (name, said) in enumerate(calls):
        given = scene.read(name, said)
        if given is None or (name == "submit" and not answers):
            continue
        try:
            wrong = (EDITS.get(kind) or TRICKS[kind])(name, given, scene)
        except RefusedError:  # what it is about does not exist; the call will be refused too
            continue
        if wrong is None or (name == "submit" and scene.was_right(wrong[0][1])):
            continue
        if len(calls) > 1 or wrong:
            made = with_calls(message, [*calls[:place], *wrong, *calls[place + 1 :]])
            return Edited(made, (name, given), wrong)
    return None


EDITS: Mapping[str, Edit] = {
    "wrong product": wrong_product,
    "unwanted item": unwanted_item,
    "wrong variant": wrong_variant,
    "wrong quantity": wrong_quantity,
    "missed item": missed_item,
    "not the best": not_the_best,
    "over budget": over_budget,
    "sold out": sold_out,
    "wrong line": wrong_line,
    "wrong outcome": wrong_outcome,
    "wrong order": wrong_order,
    "wrong status": wrong_status,
    "wrong date": wrong_date,
    "wrong clause": wrong_clause,
    "wrong answer": wrong_answer,
}
"""By kind of mistake."""


# Right calls that look wrong.


def undone_at_once(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    wrong = wrong_line(name, given, scene) if name == "return_initiate" else unwanted_item(name, given, scene)
    if name == "cart_add" and wrong:
        return [*wrong, ("cart_remove", {"product_id": wrong[1][1]["product_id"]})]
    if name == "return_initiate" and wrong:
        line = {field: wrong[0][1][field] for field in ("order_id", "line_id")}
        return [(name, given), *wrong, ("return_cancel", line)]
    return None


def in_two_halves(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    units = given.get("quantity", 1)
    if name != "cart_add" or units < 2:
        return None
    return [(name, {**given, "quantity": part}) for part in (units - 1, 1)]


def another_that_fits(name: str, given: dict[str, Any], scene: Scene) -> list[Call] | None:
    if name != "cart_add" or given.get("variant_id"):
        return None
    others = scene.seen(given["product_id"], fits=True, units=given.get("quantity", 1))
    return next(([(name, {**given, "product_id": other})] for other in others), None)


TRICKS: Mapping[str, Edit] = {
    "undone at once": undone_at_once,
    "in two halves": in_two_halves,
    "another that fits": another_that_fits,
}
"""By name; none of these is a mistake."""
