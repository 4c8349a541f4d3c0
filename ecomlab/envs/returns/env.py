"""RETURN: find the order line that the customer means, and return the wanted units of it or decline."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.outcomes import Outcome, is_named, read_outcome, read_replacement
from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.replacements import can_be_had, draw_change, draw_sell_out, draw_wish, is_as_wanted
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.returns.audit import ReturnsAudit
from ecomlab.envs.returns.player import ReturnsPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick
from ecomlab.task import Event, Goal, Problem, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.world import sell_outs
from ecomlab.world.orders import history, lines
from ecomlab.world.state import World
from ecomlab.world.tools import catalog as shop_tools
from ecomlab.world.tools import orders as order_tools

WEIGHTS = {"line": 0.45, "effect": 0.45, "replacement": 0.10}
NEAR = 0.15
"""Credit for another line of the right type: without it an honest miss would earn less than a line picked at random."""


@tool
def submit(
    world: World,
    order_id: Annotated[str | None, Field(description="The order that the customer means.")] = None,
    line_id: Annotated[str | None, Field(description="Its line that the customer means.")] = None,
    outcome: Annotated[Outcome | None, Field(description="What came of it.")] = None,
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


class Returns(Environment):
    id, version = "RETURN", 2
    brief = (
        "The customer wants to send something back. Find the line of the order that they mean and check whether it can "
        "be returned. If it can, return exactly the units they want and, if they want another product for it, find one "
        "of the same type that is as they say, in stock, and not the same product. If it cannot, decline. Hand in the "
        "line and the outcome; with a decline the last day on which it can or could be returned."
    )
    tools = (
        order_tools.order_list, order_tools.order_get_status, order_tools.return_check_eligibility,
        order_tools.return_initiate, order_tools.return_cancel, shop_tools.catalog_search,
        shop_tools.catalog_get_product, shop_tools.catalog_get_variants, shop_tools.datetime_now,
    )  # fmt: skip
    moments = ("order_get_status", "return_check_eligibility")
    submit, player, auditor = submit, ReturnsPlayer, ReturnsAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        world, random = history.draw_history(key, axes, shop), key.rng("return")
        orders = world["orders"]
        patient = random.random() < axes.orders.p_patient
        # The first is meant in the end; all lines are equally likely.
        found = list(islice(lines.candidates(world, patient, key, shop, random), 2))
        if not found:
            raise TaskError("no line of the order history can be told from the others")
        last, *others = found
        swapping, share = random.random() < 0.45, sell_outs.draw_sell_out(axes.p_oos, 2, random)
        switching = random.random() < axes.p_switch
        first, slots = last, draw_wish(last, swapping, axes, shop, random)
        change = draw_change(last, slots, bool(others), axes, shop, random) if switching else None
        events: list[Event] = [replace(change, moment=pick(random, self.moments))] if change else []
        later = [change.slots] if change and "replacement" in change.slots else []
        if change and change.how == "anew":  # the customer speaks of another line first
            first = others[0]
            slots = draw_wish(first, swapping, axes, shop, random)
        wishes = [(slots["replacement"], first.line), *((s["replacement"], last.line) for s in later)]
        # Whether or not a replacement is wanted, or a sell-out would tell that one is.
        sold = draw_sell_out(slots["type"], wishes, share, shop, random)
        if sold.left and all(can_be_had(wanted, line, shop, sold) for wanted, line in wishes if wanted):
            events.append(sold)
        goal = withhold(Goal.one(slots), axes, random)
        need = ReturnsPlayer.need(goal, first.goes, orders, shop)
        events = [ReturnsPlayer.costs(event, first.goes, last.goes, orders, shop) for event in events]
        return Problem(goal, world, need, events)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        slots, today = goal.of(), date.fromisoformat(world.given["today"])
        order, line = lines.line_meant(slots, world.given["orders"], world.shop)
        expected = lines.expected_returns(slots, world)
        terms = history.eligible_now(world, order, line, undone=True)
        wanted = slots["replacement"] if expected else []
        named, exact = is_named(answer, order, line), world.returns == expected
        outcome, told = read_outcome(answer.get("outcome")), answer.get("last_return_day")
        day = says_none(told) if terms.last_day is None else read_day(told, today) == terms.last_day
        given = read_replacement(answer.get("replacement"), world.catalog)
        swapped = given is None
        if wanted:
            swapped = given is not None and is_as_wanted(given, wanted, line, world)
        if expected:
            said = outcome == "returned"
            effect = float(exact) * (1.0 if said else 0.5)
        else:  # doing nothing counts only beside the right line and outcome
            said = outcome == "declined" and day
            effect = float(exact and named and outcome == "declined") * (1.0 if day else 0.5)
        if wanted:
            share = WEIGHTS["line"] * named + WEIGHTS["effect"] * effect
            share += WEIGHTS["replacement"] * (swapped and exact)
        else:
            share = max(0.0, 0.5 * named + 0.5 * effect - WEIGHTS["replacement"] * (not swapped))
        alike = lines.lines_meant({"type": slots["type"]}, world.given["orders"], world.shop)
        if not named and not effect and any(is_named(answer, *other) for other in alike):
            share = NEAR
        correct = named and exact and said and swapped
        why = "exactly what was wanted was returned" if expected else "rightly declined"
        why = why if correct else self.reasons(goal, world, answer, first)
        return Verdict.of(correct, 2 * share - 1, why, () if given is None else (given,))

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        if thing.kind == "product":  # a replacement
            return None
        meant = lines.lines_meant(goal.of(), world.given["orders"], world.shop)
        right = any(thing.id == o["order_id"] and thing.line in ("", n["line_id"]) for o, n in meant)
        return Opinion(right, identifies=True)
