"""RETURN: find the order line that the customer means, and return the wanted units of it or decline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.answers.amounts import read_amount
from ecomlab.answers.dates import read_day, says_none
from ecomlab.answers.outcomes import Outcome, is_named, read_outcome, read_replacement
from ecomlab.catalog import Shop
from ecomlab.customer.goals import look_up, withhold
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.replacements import can_be_had, draw_replacement, draw_sell_out, is_as_wanted, rows_of
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Comes, Environment
from ecomlab.envs.returns.audit import ReturnsAudit
from ecomlab.envs.returns.player import ReturnsPlayer
from ecomlab.envs.returns.questions import QUESTIONS, at_first_sight, right
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import PRICE
from ecomlab.steps import draw_kinds, draw_size, may_hold
from ecomlab.task import Event, Goal, GoalChange, Problem, SellOut, Task, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.world import sell_outs
from ecomlab.world.orders import history, lines, returns
from ecomlab.world.orders.history import Line, Order
from ecomlab.world.plain import AtFirst
from ecomlab.world.policy_book.book import draw_book
from ecomlab.world.policy_book.cases import member_of
from ecomlab.world.policy_book.places import FACTS as FOUND
from ecomlab.world.policy_book.rules import is_odd, may_be_mistaken
from ecomlab.world.sell_outs import sold_rows
from ecomlab.world.state import World
from ecomlab.world.tools import catalog as shop_tools
from ecomlab.world.tools import orders as order_tools
from ecomlab.world.tools.policy import policy_search

WEIGHTS = {"line": 0.45, "effect": 0.45, "replacement": 0.10}
STEPS = {"rules": 1 << 30, "telling": len(QUESTIONS), "reference": 2, "logic": 1, "looking": 1, "belief": 1}
"""Kinds of steps of thought that a return may hold, and the most of each."""
P_BELIEVES = 0.35
"""Share of the customers who tell of a promise, where a step may be about one: at most .3 of all then do."""
PROMISE = "goes"
"""What they say that they were promised."""
P_SWAPPED = 0.45
"""Share of the customers who want another product, where no step is about one."""
ASKED = "so"
"""Value of a customer's question, of which each is asked in one way."""
P_FULL = 0.5
"""Share of full refunds among the returns that go back, where either is possible: often only a part is."""
P_USUAL = {"declined": 0.6, "part": 0.5, "full": 0.0}
"""Share of the returns to which the standard window would say the same, by what comes of them: about .45 of all. Where
all is paid back by it, no exception counts."""
CASES = 24
"""Cases that are tried for a task."""
SHARES = {"declined": 2, "part": 1, "full": 1}
"""How often a return ends so, in quarters."""
MISSING, UNUSUAL = 100, 5
"""How far a case is from what was drawn in which no line ends so, or none as usual, in exceptions."""
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
    refund: Annotated[
        str | None,
        Field(
            description="If returned: what the customer gets back for the units after all fees, whether in money or "
            'towards another product, such as "$27.54".'
        ),
    ] = None,
    replacement: Annotated[
        str | None,
        Field(description="If returned and the customer wants another product for it: its product id."),
    ] = None,
) -> dict[str, Any]:
    """Submit what came of the request; the conversation ends."""
    return {"submitted": True}


class Returns(Environment):
    id, version = "RETURN", 3
    brief = (
        "The customer wants to send something back. Find the line of the order that they mean, and decide by the "
        "policy book whether it goes back: the return window of its department with the exceptions to it. If it does, "
        "return exactly the units they want (where the book demands that they agree first, ask them, naming product, "
        "amount and form of the refund) and, if they want another product for it, find one of the same type that "
        "is as they say, in stock, and not the same product. If not, decline. Submit the line and the outcome; with a "
        "decline the last day on which it can or could be returned, with a return what the customer gets back: the "
        "price paid, minus the restocking fee (rounded down to a cent) and the shipping label for a return (once). "
        "Without a section on one of these the book has no such charge. Whatever else they ask, tell them. A customer "
        "who does not know a fact can look it up: tell them where, as the book says."
    )
    tools = (
        order_tools.order_list, order_tools.order_get_status, order_tools.return_check_eligibility,
        order_tools.return_initiate, order_tools.return_cancel, policy_search, shop_tools.catalog_search,
        shop_tools.catalog_get_product, shop_tools.catalog_get_variants, shop_tools.datetime_now,
    )  # fmt: skip
    moments = ("order_get_status", "return_check_eligibility")
    submit, player, auditor, questions = submit, ReturnsPlayer, ReturnsAudit, QUESTIONS
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        world = {**history.draw_history(key, axes, shop), "policies": draw_book(key, axes, shop)}
        random, view = key.rng("return"), AtFirst(shop, world)
        patient, swapping = random.random() < axes.orders.p_patient, random.random() < P_SWAPPED
        share, switching = sell_outs.draw_sell_out(axes.p_oos, 2, random), random.random() < axes.p_switch
        kinds = draw_kinds(
            axes, (*STEPS, "rules", "rules", "rules"), random, STEPS
        )  # the book is what returns are about
        must_swap = not {"reference", "logic"}.isdisjoint(kinds)
        swapping = swapping or must_swap
        believes = "belief" in kinds and random.random() < P_BELIEVES
        meant, case, other, refers = _draw_meant(
            view, kinds, member_of(key), swapping, believes, patient, axes, random
        )
        units = {"units": int(random.integers(1, meant.most + 1))} if meant.line["quantity"] > 1 else {}
        last = {**meant.slots, **units, "replacement": other if swapping else [], **case}
        condition = pick(random, ("part", "full"))
        last |= {"only_if": condition} if "logic" in kinds and other else {}
        last |= {"promise": PROMISE} if believes else {}
        insisting = believes and draw_size(axes, "belief", random) > 1
        first, changed, events = last, dict[str, Any](), list[Event]()
        if switching and insisting:  # in place of a change, or a promise would tell that something comes
            events.append(GoalChange(moment="return_check_eligibility", slots={"insists": "so"}))
        elif switching:
            before, changed = _draw_change(meant.most, last, not must_swap, random)
            first, last = last | before, last | {name: new for name, new in changed.items() if name in last}
            events += [GoalChange(moment=pick(random, self.moments), slots=changed)] if changed else []
        wishes = [(slots["replacement"], meant.line) for slots in (first, last)]
        # Whether or not a replacement is wanted, or a sell-out would tell that one is.
        sold = draw_sell_out(last["type"], wishes, share, view, random)
        if sold.left and all(can_be_had(wanted, line, view, sold) for wanted, line in wishes if wanted):
            events.append(sold)
        may_compare = bool(last["replacement"]) and "only_if" not in last
        names = [one.slot for one in QUESTIONS if one.slot != "ask_more" or may_compare]
        names = [name for name in names if name == "ask_until" or shop.catalog.has(PRICE)]
        names = shuffled(random, names)[: kinds.count("telling")]
        goal = replace(
            withhold(Goal.one(first), axes, random, ("promise",)), asks=dict.fromkeys(names, ASKED)
        )
        book = world["policies"]
        if "looking" in kinds:
            able = [fact for fact in case if fact not in changed]
            able = _missed(returns.Desk(world, shop.catalog), meant.order, meant.line, last, able) or able
            goal = look_up(goal, able, book, draw_size(axes, "looking", random), random)
        need = ReturnsPlayer.need(first, world, meant.order, meant.line, shop, bool(goal.places))
        events = [ReturnsPlayer.costs(one, meant.goes) for one in events]
        told = [name for name in names if _is_worked_out(name, last, meant, sold, view)]
        desk = returns.Desk(world, shop.catalog)
        agrees = desk.agreement(meant.order, meant.line, last)
        outcome = desk.judge(meant.order, meant.line, last)
        rules = desk.exceptions(meant.order, meant.line, last) if may_hold(axes, "rules") else 0
        steps = ["rules"] * (rules + agrees) + ["telling"] * len(told)
        swaps = bool(lines.wanted_for(last, outcome))
        left = {name: value for name, value in last.items() if name not in goal.places}
        other_way = desk.judge(meant.order, meant.line, left)
        missed = outcome.differs(other_way, meant.line["price_cents"])
        if outcome.goes and outcome.form:
            missed |= not other_way.form or (other_way.form != outcome.form and not swaps)
        steps += ["looking"] * missed + ["belief"] * (believes and not outcome.goes)
        steps += ["logic"] * (meant.goes and bool(last["replacement"]) and not swaps)
        if refers and swaps:
            steps += ["reference"] * kinds.count("reference")
        return Problem(goal, world, need, events, steps=tuple(steps))

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        slots, today = goal.of(), date.fromisoformat(world.given["today"])
        order, line = lines.line_meant(slots, world.given["orders"], world.shop)
        expected = lines.expected_returns(slots, world)
        terms = returns.judge(world.given, order, line, slots, world.catalog)
        wanted = lines.wanted_for(slots, terms) if expected else []
        named, exact = is_named(answer, order, line), world.returns == expected
        outcome, told = read_outcome(answer.get("outcome")), answer.get("last_return_day")
        day = says_none(told) if terms.last_day is None else read_day(told, today) == terms.last_day
        given = read_replacement(answer.get("replacement"), world.catalog)
        swapped = given is None
        if wanted:
            swapped = given is not None and is_as_wanted(given, wanted, line, world)
        refund = terms.refund(line["price_cents"], slots.get("units", 1))
        if expected:
            agreed = lines.has_agreed(slots, world)
            said = (
                outcome == "returned"
                and agreed
                and refund in (None, read_amount(answer.get("refund"), "cents"))
            )
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

    def comes_to(self, task: Task, shop: Shop) -> Comes | None:
        slots = task.goal.after(task.events).of()
        order, line = lines.line_meant(slots, task.world["orders"], shop)
        terms = returns.judge(task.world, order, line, slots, shop.catalog)
        if (terms.restocking, terms.label) == (None, None) or not line["price_cents"]:
            return None  # nobody is asked for the refund
        refund = terms.refund(line["price_cents"], slots.get("units", 1))
        return Comes("refund", refund, line["price_cents"] * slots.get("units", 1))

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        if thing.kind == "product":  # a replacement
            return None
        meant = lines.lines_meant(goal.of(), world.given["orders"], world.shop)
        right = any(thing.id == o["order_id"] and thing.line in ("", n["line_id"]) for o, n in meant)
        return Opinion(right, identifies=True)


def _is_worked_out(
    slot: str,
    slots: Mapping[str, Any],
    meant: lines.Candidate,
    sold: SellOut,
    view: AtFirst,
) -> bool:
    """Tell whether the answer to a question is another value than the first that tools show."""
    line, rows = meant.line, rows_of(slots["replacement"], meant.line, view)
    left = view.catalog.price_cents[rows[~np.isin(rows, sold_rows(sold, view.catalog))]].tolist()
    cheapest, desk = min(left, default=None), returns.Desk(view.given, view.catalog)
    outcome, standard = (desk.judge(meant.order, line, slots, standard) for standard in (False, True))
    found = right(slot, outcome, line, slots.get("units", 1), cheapest)
    day = standard.last_day.isoformat() if standard.last_day else None
    return found not in (None, at_first_sight(slot, day, line["price_cents"], cheapest))


def _draw_meant(
    view: AtFirst,
    kinds: Sequence[str],
    member: str,
    swapping: bool,
    believes: bool,
    patient: bool,
    axes: Difficulty,
    random: np.random.Generator,
) -> tuple[lines.Candidate, dict[str, Any], list[Any], bool]:
    """Draw the line that is meant and the facts of the case, what another product for it should be like, and whether
    steps of the kind "reference" count there.

    Half of the returns are declined, half of the others cost something, and the standard window is right in about half
    of all, as far as can be. The facts are drawn first, those with which, by the line, it may end in each of these ways
    and as many exceptions count as there are steps that nothing else takes: they do not tell how it ends.
    """
    world, shop, catalog = view.given, view.shop, view.catalog
    strict, steps = may_hold(axes, "rules"), kinds.count("rules")
    priced = catalog.has(PRICE) and (strict or "telling" in kinds)
    able = [
        (order, line)
        for order, line in shuffled(random, history.delivered_lines(world["orders"]))
        if line["returned"] < line["quantity"]
        and not (priced and any(other["price_cents"] is None for other in order["lines"]))
    ]
    desk, usual = returns.Desk(world, catalog), {end: random.random() < p for end, p in P_USUAL.items()}
    standard = {line["line_id"]: desk.judge(order, line, {}, standard=True) for order, line in able}
    idle = {"telling", "logic", "looking"}  # may come to nothing
    steps += sum(kind in idle or (kind == "belief" and not believes) for kind in kinds)

    def end_of(order: Order, line: Line, tried: Mapping[str, Any]) -> tuple[str, tuple[bool, int]]:
        """Judge a return: how it ends, and how far that is from what was drawn."""
        judged = desk.judge(order, line, tried)
        end = ("full" if judged.is_full else "part") if judged.goes else "declined"
        if not strict:
            return end, (False, 0)
        looking = "looking" in kinds and _missed(desk, order, line, tried, [*tried.keys() & FOUND.keys()])
        apart = abs(desk.exceptions(order, line, tried) + bool(looking) - steps)
        return end, ((judged.goes == standard[line["line_id"]].goes) != usual[end], apart)

    every = shuffled(random, [case for case in returns.SITUATIONS if case["tier"] == member])
    case, best, least = dict[str, Any](), dict[str, list[Any]](), math.inf
    for tried in every[:CASES] if strict else [case]:
        by_end: dict[str, list[Any]] = {}
        for order, line in able:
            end, apart = end_of(order, line, tried)
            by_end.setdefault(end, []).append((apart, len(by_end.get(end, ())), order, line))
        nearest = [min(one[0] for one in found) for end, found in by_end.items() for _ in range(SHARES[end])]
        far = sum(UNUSUAL * odd + apart for odd, apart in nearest) + MISSING * (
            sum(SHARES.values()) - len(nearest)
        )
        if far < least:
            case, best, least = dict(tried), by_end, far
    declined, free = random.random() < 0.5, random.random() < P_FULL
    ends = ["declined"] if declined else ["full", "part"] if free else ["part", "full"]
    end = next(end for end in (*ends, *best) if end in best)
    for _, _, order, line in sorted(best[end], key=lambda one: one[:2]):
        other, refers = draw_replacement(line, kinds.count("reference"), view, axes, random)
        also = [str(name) for name, _ in other] if swapping else []
        slots = lines.describe(order, line, world["orders"], shop, patient, random, also)
        if slots is not None:
            return lines.Candidate(order, line, slots, end != "declined"), case, other, refers
    raise TaskError("no line of the order history can be told from the others")


def _missed(
    desk: returns.Desk, order: Order, line: Line, case: Mapping[str, Any], facts: Sequence[str]
) -> list[str]:
    """List those of these facts without which a return would be judged otherwise."""
    outcome = desk.judge(order, line, case)
    others = [
        desk.judge(order, line, {name: value for name, value in case.items() if name != fact})
        for fact in facts
    ]
    price = line["price_cents"]
    return [fact for fact, other in zip(facts, others, strict=True) if outcome.differs(other, price)]


def _draw_change(
    most: int, last: Mapping[str, Any], may_drop: bool, random: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a change of mind about a return that would end with the slots `last`: what is wished or told before, and the
    change. It is about the units, a fact that was told wrong, or money in place of another product, where customers who
    want one `may_drop` it: to want one first only where it is dropped would foretell that. Nothing where none can be.
    """
    told = [
        (fact, value)
        for fact in ("opened", "tier")
        for value in returns.VALUES[fact]
        if may_be_mistaken(fact, value, last.get(fact)) and not is_odd({**last, fact: value})
    ]
    drawn: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if "units" in last and most > 1:
        units = pick(random, [n for n in range(1, most + 1) if n != last["units"]])
        drawn.append(({"units": units}, {"units": last["units"]}))
    if told:  # of all alike: either fact by itself would be told the way between two others too often
        fact, value = pick(random, told)
        drawn.append(({fact: value}, {"twist": "case", fact: last[fact]}))
    if last["replacement"] and may_drop:
        drawn.append(({}, {"replacement": []}))
    return pick(random, drawn) if drawn else ({}, {})
