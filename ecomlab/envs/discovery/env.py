"""PD: recommend the k best products of a type under the customer's constraints, by an order of preferences or what they
are worth; where nothing fits, the nearest."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.catalog import Catalog, Shop
from ecomlab.customer.choices import (
    CHOICE,
    Choice,
    draw_giving_way,
    draw_logic,
    draw_worths,
    leads,
    plainer,
)
from ecomlab.customer.goals import draw_row, withhold
from ecomlab.customer.said_draws import READ, draw_saids, evidence_counts
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.discovery.audit import DiscoveryAudit
from ecomlab.envs.discovery.player import PREFERENCES, STEPS, DiscoveryPlayer
from ecomlab.reward import Verdict, ndcg
from ecomlab.seeding import pick, shuffled
from ecomlab.slots import LIMITS, PRICE, SlotType, limits_in, slot_type
from ecomlab.task import LOOK, Event, Goal, GoalChange, Problem, Task, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.wishes import Said, wishes_in, without
from ecomlab.world import ranking, reviews, unmet
from ecomlab.world.cart import constraints_of
from ecomlab.world.faults import list_faults, named, told
from ecomlab.world.ranking import Worth
from ecomlab.world.sell_outs import ALIKE, draw_sell_out, draw_sold, sell_out_of
from ecomlab.world.state import PAGE, World
from ecomlab.world.tools.catalog import PRODUCT_TOOLS, catalog_get_reviews

WEIGHTS = {"rank": 0.5, "met": 0.4, "stock": 0.1}
"""Weights of nDCG, satisfaction and stock in r_task."""

TRIES = 250
"""Most types among which one is sought that has room for a task's steps of thought."""
LOGICAL = 60
"""Most of them that are tried for logical demands."""


@tool
def submit(
    world: World,
    product_ids: Annotated[list[str], Field(description="The products, the best first.")],
    unmet: Annotated[
        list[str] | None,
        Field(
            description="Only where nothing meets all demands: those that cannot be met together, as few as show it, "
            'such as ["price", "brand"].'
        ),
    ] = None,
) -> dict[str, Any]:
    """Hand in the products; the conversation ends."""
    return {"submitted": True}


class Discovery(Environment):
    id, version = "PD", 3
    brief = (
        "Recommend products that satisfy everything the customer asks for and can be bought now, as many as they want "
        "to see, the best of them by what matters most to the customer; where that is equal, by what comes next. Where "
        "they would pay more for a star or a day, the best has the lowest price after that is taken off, in "
        "proportion. If nothing satisfies everything, give up one demand, the first that the customer would give up "
        "and that helps, recommend the best of what is left, and name in unmet which demands cannot be met together."
    )
    tools, submit = (*PRODUCT_TOOLS, catalog_get_reviews), submit
    player, auditor = DiscoveryPlayer, DiscoveryAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, choice = key.rng("discovery"), Choice.of(STEPS, axes, key.rng("steps"))
        share, switching = draw_sell_out(axes.p_oos, axes.k_rec, random), random.random() < axes.p_switch
        for attempt in range(TRIES if choice != Choice() else 1):
            able = (
                choice if attempt < LOGICAL else replace(choice, logic=0) if attempt < TRIES - 1 else Choice()
            )
            problem = self._draw(able, share, switching, key, axes, shop, random)
            if problem is not None:
                return problem
        raise TaskError(f"nothing of this shop of {shop.catalog.size} products can be recommended")

    def _draw(
        self,
        choice: Choice,
        share: float,
        switching: bool,
        key: TaskKey,
        axes: Difficulty,
        shop: Shop,
        random: np.random.Generator,
    ) -> Problem | None:
        """Draw a task with these steps of thought, in which this share sells out and the customer may change their
        mind; None where there is no room for that."""
        catalog = shop.catalog
        kind = pick(random, catalog.drawable_types).name
        row = draw_row(catalog.type_rows(kind), shop, random)
        if row is None:
            raise TaskError(f"no {kind} of this shop is well in stock; load a larger shop")
        thought, count = choice != Choice(), choice.few or min(axes.k_rec, axes.top_k)
        if choice.logic:  # all that filters leave is listed
            count = min(count, max(1, axes.top_k // 5))
        enough = math.ceil(axes.k_rec / max(0.1, 1 - axes.p_oos))
        least = math.ceil(count / max(0.4, 1 - axes.p_oos))
        if thought:
            enough = math.ceil((CHOICE - bool(choice.logic)) * count) + math.ceil(axes.p_oos * count)
        if choice.claims:
            enough = math.ceil(READ * least)
        limits = _draw_limits(row, enough, self.phrases.limits, axes, shop, random)
        weights = random.gamma(1.0, size=len(PREFERENCES))  # more weight for what the customer constrains
        weights += [2.0 * any(slot_type(name).sort == dim for name in limits) for dim in PREFERENCES]
        known = [limit.sort for limit in self.phrases.limits if catalog.has(limit)]
        importance = [PREFERENCES[i] for i in np.argsort(-weights).tolist() if PREFERENCES[i] in known]
        goal: Goal | None = Goal.one({"type": kind, **limits, "importance": importance})
        if goal and choice.gives_way:
            in_stock = ranking.fitting(Goal.one({"type": kind}), shop)
            goal = draw_giving_way(goal, choice, in_stock, catalog, random)
        if goal is None:
            return None
        if choice.logic:
            goal = draw_logic(goal, choice.logic, enough, axes, shop, random)
            choice = replace(choice, logic=len(wishes_in(goal.of())))
            if not choice.logic:
                return None
        need = DiscoveryPlayer.need(count, len(choice.steps))

        def holds(some: Goal, so_far: Sequence[Event]) -> bool:
            """Tell whether every step of thought counts in the end, and enough is left, and can be listed, all the
            time."""
            if not thought:
                return True
            lefts = unmet.stages(some, so_far, shop)
            shown = unmet.stages(plainer(some), so_far, shop)  # what filters leave
            last = lefts[-1]
            if min(len(left.rows) for left in lefts) < count or bool(last.dropped) == choice.fits:
                return False
            pairs = zip(lefts, shown, strict=True)
            listed = [DiscoveryPlayer.calls(left, of, count, catalog) for left, of in pairs]
            rows = max(len(last.asked), DiscoveryPlayer.rows(last, shown[-1], count, catalog))
            if max(listed) > need.calls or rows > axes.top_k:
                return False
            if choice.logic and _is_right_without_logic(last, some, so_far, count, shop):
                return False
            thinks = _thinks(last, choice, count, catalog)
            return thinks and (choice.fits or 0 < last.meeting <= axes.top_k)

        if choice.terms or choice.claims:
            base = goal.drop_slots("importance") if choice.terms else goal
            terms = [limit for limit in self.phrases.limits if limit.gain and catalog.has(limit)]
            left = unmet.stages(goal, (), shop)[-1]
            read = PAGE * ((need.calls - 1) // 2)
            if choice.claims and len(left.rows) > read:
                return None
            slots = _draw_rank(left, goal, terms, choice, count, least, shop, random)
            able = (base.set_slots(one) for one in slots)
            goal = next((one for one in able if holds(one, ())), None)
        if goal is None:
            return None
        goal = withhold(goal, axes, random)
        again = DiscoveryPlayer.need(axes.k_rec, len(choice.steps))
        turns, calls = again.turns - 1, again.calls
        alike = _alike(goal, enough, self.phrases.limits, axes, shop, random) if share else ()
        chosen = (
            ranking.ranked_first(unmet.stages(one, (), shop)[-1].rows, one, axes.k_rec, shop) for one in alike
        )
        sold = sell_out_of(draw_sold(chosen, share, random), catalog, LOOK)
        events: list[Event] = [replace(sold, turns=turns, calls=calls)] if sold.left else []
        found = [len(left.rows) for left in unmet.stages(goal, events, shop)]
        if not holds(goal, events):
            return None
        if not min(found):  # it must stay possible
            events, found = [], found[:1]
        enough = count if thought else min(axes.k_rec, *found)
        change = _draw_change(goal, events, enough, holds, shop, random) if switching else None
        if thought and switching and change is None:
            return None
        if change:
            timed = replace(change, moment=pick(random, self.moments), about=(kind,))
            events.append(replace(timed, turns=turns, calls=calls))
        if not thought:
            found = [len(left.rows) for left in unmet.stages(goal, events, shop)]
            count = min(axes.k_rec, axes.top_k, *found)
        goal = goal.set_slots({"count": count})
        notes = {"weights": weights.round(6).tolist()}
        need = DiscoveryPlayer.need(count, len(choice.steps))
        return Problem(goal, {}, need, events, notes=notes, steps=choice.steps)

    def is_right(self, taken: Goal, goal: Goal, task: Task, shop: Shop) -> bool:
        mine, best = (unmet.stages(one, task.events, shop)[-1] for one in (taken, goal))
        count = int(goal["count"])
        if mine.dropped != best.dropped or min(len(mine.rows), len(best.rows)) < count:
            return False
        return ranking.among_the_best(mine.rows, best.rows, mine.goal, best.goal, count, shop)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        ids, count = list(answer.get("product_ids", ())), goal["count"]
        if not ids:
            return Verdict(-1.0, False, "nothing was recommended")
        left, rank = unmet.nearest_in(goal, world), ranking.rank_of(goal)
        aim = left.goal
        reason = unmet.fault_of(answer.get("unmet"), left, goal, world)
        ordered, places = ranking.places(left.rows, rank, world.catalog)
        # A product given twice, or shown by no tool, counts as none.
        rows = [
            world.catalog.row(p) if p in world.shown and p not in ids[:i] else None for i, p in enumerate(ids)
        ]
        place = {row: int(p) for row in rows if row is not None for p in places[ordered == row]}
        usable = [place[row] for row in rows if row in place]
        gains = [float(max(0, count - place[row])) if row in place else 0.0 for row in rows]
        worst = max(usable, default=0)
        above = sum(p < worst for p in usable)
        best = len(usable) == count and int((places < worst).sum()) == above
        shares = [ranking.share_met(row, aim, world) for row in rows] + [0.0] * (count - len(ids))
        stock = sum(row is not None and world.stock(row) > 0 for row in rows) / max(count, len(ids))
        met = 2 * float(np.mean(shares)) ** world.axes.discovery.alpha - 1
        ideal = np.maximum(0, count - places[:count]).tolist()
        ranked = 2 * ndcg(gains, ideal, count) * min(1.0, count / len(ids)) - 1
        credit = WEIGHTS["rank"] * ranked + WEIGHTS["met"] * met + WEIGHTS["stock"] * (2 * stock - 1)
        correct = best and len(ids) == count and reason is None
        if correct:
            why = f"these are the {count} best by {rank}{f', without {left.dropped}' if left.dropped else ''}"
        else:
            reasons = [fault.words for fault in list_faults(ids, count, ranking.constraints(aim), world)]
            reasons += [one.words for one in reviews.faults(ids, goal, world)]
            better = [
                row for row, p in zip(ordered.tolist(), places, strict=True) if p < worst and row not in rows
            ]
            if better:
                name = named(world.catalog.ids[better[0]], world.catalog)
                others = f" and {len(better) - 1} more" if len(better) > 1 else ""
                reasons.append(f"better by {rank}: {name}{others}")
            why = told([*reasons, *([reason.words] if reason else ())])
        if reason is not None:  # half of the answer, as nothing was right in what was said of the demands
            credit = (credit - 1) / 2
        perfect = correct and ranked > 0.999
        return Verdict(1.0 if perfect else min(credit, 0.999), correct, why, tuple(ids))


def _is_right_without_logic(
    last: unmet.Nearest, goal: Goal, events: Sequence[Event], count: int, shop: Shop
) -> bool:
    """Tell whether the best by what somebody hears who takes no logical step are a right choice of what is left."""
    end = goal.after(events)
    heard = replace(Goal.one(without(end.of(), frozenset(("logic",)))), unsaid=goal.unsaid)
    stocks = [event for event in events if not isinstance(event, GoalChange)]
    rows = unmet.stages(heard, stocks, shop)[-1].rows
    return ranking.among_the_best(rows, last.rows, heard, end, count, shop)


def _thinks(left: unmet.Nearest, choice: Choice, count: int, catalog: Catalog) -> bool:
    """Tell whether what the customer ranks by, and what reviews say, counts among what is left."""
    if choice.terms and not leads(left.rows, ranking.rank_of(left.goal), count, catalog):
        return False
    return not choice.claims or evidence_counts(left, count, choice.trap, catalog)


def _draw_rank(
    left: unmet.Nearest,
    goal: Goal,
    terms: Sequence[SlotType],
    choice: Choice,
    count: int,
    least: int,
    shop: Shop,
    random: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield what reviews must say, of at least so many of what is left, and what some of these terms are worth, where
    both count for the `count` best of it."""
    catalog = shop.catalog
    saids: Iterable[Said | None] = (None,)
    if choice.claims:
        saids = draw_saids(goal["type"], left.rows, choice.claims, least, catalog, random)
    for said in saids:
        some = left
        if said is not None:
            some = unmet.by_reviews(left, said, catalog)
        for worth in _draw_worths(some.rows, goal, terms, choice, count, catalog, random):
            slots = {name: wish for name, wish in (("said", said), ("worth", worth)) if wish is not None}
            if _thinks(replace(some, goal=some.goal.set_slots(slots)), choice, count, catalog):
                yield slots


def _draw_worths(
    rows: np.ndarray,
    goal: Goal,
    terms: Sequence[SlotType],
    choice: Choice,
    count: int,
    catalog: Catalog,
    random: np.random.Generator,
) -> Iterable[Worth | None]:
    if not choice.terms:
        return (None,)
    return draw_worths(rows, goal[PRICE.name], terms, choice.terms, count, catalog, random)


def _draw_limits(
    row: int, wanted: int, may: Sequence[SlotType], axes: Difficulty, shop: Shop, random: np.random.Generator
) -> dict[str, Any]:
    """Draw constraints that a product satisfies: the price and up to m - 1 others; of those that `may` limit a number,
    with random slack.

    They leave as many products as are `wanted` to choose from: a list of one is no recommendation.
    """
    catalog = shop.catalog
    shares = (2 * axes.discovery.slack * random.random(len(may))).tolist()
    slack = dict(zip(may, shares, strict=True))
    kind = catalog.type_of(row).name
    values: dict[str, Any] = {}
    for limit, share in slack.items():
        if limit is PRICE or not catalog.has(limit):
            continue
        value = limit.loosened(catalog.column(limit).item(row), share)
        # A user's limit outside its range says nothing ("at least 0"); the shipped ones keep what their versions draw.
        if limit in LIMITS or limit.range[0] <= value <= limit.range[1]:
            values[limit.name] = value
    values["brand"] = catalog.brands[catalog.brand_code.item(row)]
    values |= {f"attr:{name}": value for name, value in catalog.attributes(row).items()}
    rows = catalog.select(constraints_of(kind, {}))
    rows = rows[catalog.stock[rows] > 0]
    limits: dict[str, Any] = {}
    for name in shuffled(random, values):
        narrower = catalog.select(constraints_of(kind, {name: values[name]})[1:], rows)
        if len(limits) < axes.constraints - 1 and len(narrower) >= min(wanted, len(rows)):
            limits[name], rows = values[name], narrower
    prices = np.sort(catalog.price_cents[rows])
    least = PRICE.rounded(prices[min(wanted, len(prices)) - 1].item())
    dearest = max(PRICE.loosened(catalog.price_cents.item(row), slack[PRICE]), least)
    return {PRICE.name: dearest, **limits}


def _alike(
    goal: Goal,
    wanted: int,
    may: Sequence[SlotType],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> list[Goal]:
    """Draw customers who say the same in their opening: this one, and others who leave out something else."""
    stated = {slot.name: slot.value for slot in goal.said()}
    stated |= {"give_way": goal["give_way"]} if "give_way" in goal else {}
    seen = {name: value for name, value in stated.items() if name != "said"}  # few tell by reviews
    rows = unmet.stages(Goal.one({"type": goal["type"], **seen}), (), shop)[-1].rows
    others = []
    for _ in range(ALIKE - 1):
        left_out = _draw_limits(pick(random, rows.tolist()), wanted, may, axes, shop, random)
        rank: dict[str, Any] = {"importance": shuffled(random, goal.get("importance", ()))}
        if "worth" in goal:
            rank = {"worth": pick(random, goal["worth"].others())}
        others.append(Goal.one({"type": goal["type"], **left_out, **rank, **stated}))
    return [goal, *others]


def _draw_change(
    goal: Goal,
    events: Sequence[Event],
    enough: int,
    holds: Callable[[Goal, Sequence[Event]], bool],
    shop: Shop,
    random: np.random.Generator,
) -> GoalChange | None:
    """Draw a change of mind: a limit moved up or down, another order or worth of preferences, or other reviewers to go
    by. None that leaves the same products the best, or fewer than `enough`, or after which `holds` is not true."""
    order = goal.get("importance", ())
    moved: list[dict[str, Any]] = [
        {limit.name: new} for limit, value in limits_in(goal.of()) for new in limit.moved(value)
    ]
    moved += [{"importance": [*order[i:], *order[:i]]} for i in range(1, len(order))]
    moved += [{name: other} for name in ("worth", "said") if name in goal for other in goal[name].others()]
    before = unmet.stages(goal, events, shop)[-1].rows
    for name in shuffled(random, dict.fromkeys(name for slots in moved for name in slots)):
        for slots in shuffled(random, [slots for slots in moved if name in slots]):
            change = GoalChange(slots=slots)
            lefts = unmet.stages(goal, [*events, change], shop)
            if min(len(left.rows) for left in lefts) < enough or not holds(goal, [*events, change]):
                continue
            after = goal.apply(change)
            if not ranking.among_the_best(before, lefts[-1].rows, goal, after, enough, shop):
                return change
    return None
