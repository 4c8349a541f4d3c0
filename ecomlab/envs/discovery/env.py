"""PD: recommend the k best products of a type under the customer's constraints, by an order of preferences or what they
are worth; where nothing fits, the nearest."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ecomlab.catalog import Catalog, ProductType, Shop
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
from ecomlab.task import LOOK, Event, Goal, GoalChange, Place, Problem, Task, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.wishes import AnyBut, OneOf, Said, without
from ecomlab.world import ranking, reviews, unmet
from ecomlab.world.cart import constraints_of
from ecomlab.world.faults import list_faults, named, told
from ecomlab.world.ranking import Worth
from ecomlab.world.sell_outs import ALIKE, draw_sell_out, draw_sold, sell_out_of
from ecomlab.world.state import PAGE, World
from ecomlab.world.tools.catalog import PRODUCT_TOOLS, catalog_get_reviews
from ecomlab.world.unmet import Nearest

WEIGHTS = {"rank": 0.5, "met": 0.4, "stock": 0.1}
"""Weights of nDCG, satisfaction and stock in r_task."""

TRIES, EACH = 60, 2
"""Most types among which one is sought that has room for a task's steps of thought, and those among which one has for
as many as were drawn; for one fewer among as many more, and so on."""
NEAR = 4
"""Products that are to be compared, for each of the customer's constraints."""
AGAIN, WORTHS = 24, 6
"""Most worths and demands on reviews of one customer for which a sell-out is drawn, and most worths of those with the
same demand."""
CHANGES = 8
"""Most changes of mind that are tried."""


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
        "they would pay more for something, such as a star, a day or a material, the best has the lowest price after "
        "that is taken off, in proportion. If nothing satisfies everything, give up one demand, the first that the "
        "customer would give up and that helps, recommend the best of what is left, and name in unmet which demands "
        "cannot be met together."
    )
    tools, submit = (*PRODUCT_TOOLS, catalog_get_reviews), submit
    player, auditor = DiscoveryPlayer, DiscoveryAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, choice = key.rng("discovery"), Choice.of(STEPS, axes, key.rng("steps"))
        share, switching = draw_sell_out(axes.p_oos, axes.k_rec, random), random.random() < axes.p_switch
        best: Problem | None = None
        for attempt in range(TRIES if choice.steps or choice.gives_way else 0):
            wanted = len(choice.steps) - attempt // EACH
            problem = self._draw(choice, wanted, share, switching, key, axes, shop, random)
            if problem is not None and (best is None or len(problem.steps) > len(best.steps)):
                best = problem
            if best is not None and len(best.steps) >= wanted:
                return best
        best = best or self._draw(Choice(), 0, share, switching, key, axes, shop, random)
        if best is None:
            raise TaskError(f"nothing of this shop of {shop.catalog.size} products can be recommended")
        return best

    def _draw(
        self,
        choice: Choice,
        wanted: int,
        share: float,
        switching: bool,
        key: TaskKey,
        axes: Difficulty,
        shop: Shop,
        random: np.random.Generator,
    ) -> Problem | None:
        """Draw a task with these steps of thought, of which as many as are `wanted` count before the customer changes
        their mind, if they do, and in which this share sells out; None where there is no room for that."""
        catalog = shop.catalog
        kind = pick(random, _types(choice, catalog)).name
        row = draw_row(kind, shop, random)
        if row is None:
            raise TaskError(f"no {kind} of this shop is well in stock; load a larger shop")
        thought, count = choice != Choice(), choice.few or min(axes.k_rec, axes.top_k)
        if choice.logic:  # all that filters leave is listed
            count = min(count, max(1, axes.top_k // 5))
        need = DiscoveryPlayer.need(count, DiscoveryPlayer.thoughts(axes) if thought else 0)
        enough, most = _room(choice, count, need.calls, share, axes)
        limits = _draw_limits(row, enough, most, self.phrases.limits, axes, shop, random)
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
            least = max(2 * most // 5, math.ceil((READ if choice.claims else CHOICE - 1) * count))
            goal = draw_logic(goal, choice.logic, least, most, axes, shop, random)

        def holds(some: Goal, so_far: Sequence[Event]) -> bool:
            """Tell whether every kind of step of thought counts in the end, and enough is left, and can be listed, all
            the time."""
            if not thought:
                return True
            last = unmet.last_stage(some, so_far, shop)
            if len(last.rows) < count or bool(last.dropped) == choice.fits:
                return False
            if not _thinks(last, choice, count, catalog):
                return False
            lefts = unmet.stages(some, so_far, shop)
            shown = unmet.stages(plainer(some.drop_slots("said")), so_far, shop)  # what filters leave
            pairs = list(zip(lefts, shown, strict=True))
            listed = max(DiscoveryPlayer.calls(left, of, count, catalog) for left, of in pairs)
            rows = max(len(last.asked), DiscoveryPlayer.rows(*pairs[-1], count, catalog))
            if min(len(left.rows) for left in lefts) < count or listed > need.calls or rows > axes.top_k:
                return False
            return choice.fits or 0 < last.meeting <= axes.top_k

        left = unmet.last_stage(goal, (), shop)
        able: Iterable[tuple[Goal, Nearest]] = ((goal, left),)
        if choice.terms or choice.claims:
            base = goal.drop_slots("importance") if choice.terms else goal
            terms = [limit for limit in self.phrases.limits if limit.gain and catalog.has(limit)]
            ranks = _draw_rank(left, goal, terms, choice, count, 2 * count, shop, random)
            able = islice(((base.set_slots(slots), near) for slots, near in ranks), AGAIN)
        again = DiscoveryPlayer.need(axes.k_rec, DiscoveryPlayer.thoughts(axes) if thought else 0)
        turns, calls, others = again.turns - 1, again.calls, list[np.ndarray]()
        hidden: frozenset[Place] | None = None
        for goal, near in able:
            hidden = withhold(goal, axes, random).withheld if hidden is None else hidden
            goal = replace(goal, withheld=hidden)
            if share and not others:
                others = _draw_others(goal, enough, most, self.phrases.limits, axes, shop, random)
            chosen = _choices(goal, near.rows, others, axes.k_rec, shop, random) if share else ()
            gone = draw_sold(chosen, share, random)
            last = replace(
                near, goal=goal, rows=np.setdiff1d(near.rows, gone), asked=np.setdiff1d(near.asked, gone)
            )
            if not choice.gives_way and not _thinks(last, choice, count, catalog):
                continue
            sold = sell_out_of(gone, catalog, LOOK)
            events: list[Event] = [replace(sold, turns=turns, calls=calls)] if sold.left else []
            if not holds(goal, events):
                continue
            found = [len(left.rows) for left in unmet.stages(goal, events, shop)]
            if thought and len(_counting(goal, events, count, choice, shop)) < wanted:
                continue
            if not min(found):  # it must stay possible
                events, found = [], found[:1]
            left_open = count if thought else min(axes.k_rec, *found)
            change = _draw_change(goal, events, left_open, holds, shop, random) if switching else None
            if thought and switching and change is None:
                continue
            if change:
                timed = replace(change, moment=pick(random, self.moments), about=(kind,))
                events.append(replace(timed, turns=turns, calls=calls))
            if not thought:
                found = [len(left.rows) for left in unmet.stages(goal, events, shop)]
                count = min(axes.k_rec, axes.top_k, *found)
                need = DiscoveryPlayer.need(count)
            steps = _counting(goal, events, count, choice, shop)
            if choice.logic and "logic" not in steps and plainer(goal) != goal:
                continue
            notes = {"weights": weights.round(6).tolist()}
            goal = goal.set_slots({"count": count})
            return Problem(goal, {}, need, events, notes=notes, steps=steps)
        return None

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


def _types(choice: Choice, catalog: Catalog) -> Sequence[ProductType]:
    """List the types that have room for these steps, or else all."""
    able = [one for one in catalog.stocked_types if len(one.attributes) >= choice.logic]
    return able or catalog.stocked_types


def _room(choice: Choice, count: int, calls: int, share: float, axes: Difficulty) -> tuple[int, int]:
    """Count the products that filters are to leave of a choice of `count`, at least and at most, before this share of
    the best sells out."""
    if choice == Choice():
        return math.ceil(axes.k_rec / max(0.1, 1 - axes.p_oos)), axes.top_k
    least = math.ceil(CHOICE * count) + math.ceil(axes.p_oos * count)
    if choice.gives_way:
        return least, axes.top_k
    most = min(axes.top_k + round(share * axes.k_rec), PAGE * calls)
    if choice.claims:  # each is listed, and its reviews are read
        most = min(most, PAGE * ((calls - 1) * (2 if choice.logic else 1) // (3 if choice.logic else 2)))
    wanted = 3 * most // 4 if choice.logic or choice.claims else min(most, NEAR * axes.constraints)
    return min(most, max(least, wanted)), most


def _counting(goal: Goal, events: Sequence[Event], count: int, choice: Choice, shop: Shop) -> tuple[str, ...]:
    """List the kinds of the steps that count: who does not take one of them, or hears one alternative, exception or
    claim less, is wrong about the best."""
    end = goal.after(events)
    stocks = [event for event in events if not isinstance(event, GoalChange)]
    best = unmet.last_stage(end, stocks, shop).rows

    def counts(slots: Mapping[str, Any]) -> bool:
        heard = replace(Goal.one(slots), unsaid=goal.unsaid)
        rows = unmet.last_stage(heard, stocks, shop).rows
        return not ranking.among_the_best(rows, best, heard, end, count, shop)

    slots = end.of()
    logic = [name for name, value in slots.items() if isinstance(value, OneOf | AnyBut)]
    said: Said | None = slots.get("said")
    fewer = said.fewer() if said is not None else []
    number = {
        "trade_off": int(choice.terms > 0),
        "none": int(not choice.fits),
        "evidence": int(said is not None),
        "logic": 0,
    }
    if len(fewer) > 1:
        number["evidence"] = min(choice.reads, max(1, sum(counts({**slots, "said": one}) for one in fewer)))
    if logic and counts(without(slots, frozenset(("logic",)))):
        alone = [
            {**{n: v for n, v in slots.items() if n != name}, **slots[name].without(name)} for name in logic
        ]
        number["logic"] = max(1, sum(map(counts, alone)))
    return tuple(kind for kind, times in number.items() for _ in range(times))


def _thinks(left: Nearest, choice: Choice, count: int, catalog: Catalog) -> bool:
    """Tell whether what the customer ranks by, and what reviews say, counts among what is left."""
    if choice.terms and not leads(left.rows, ranking.rank_of(left.goal), count, catalog):
        return False
    return not choice.claims or evidence_counts(left, count, choice.trap, catalog)


def _draw_rank(
    left: Nearest,
    goal: Goal,
    terms: Sequence[SlotType],
    choice: Choice,
    count: int,
    least: int,
    shop: Shop,
    random: np.random.Generator,
) -> Iterator[tuple[dict[str, Any], Nearest]]:
    """Yield what reviews must say, of at least so many of what is left, and what some of these terms are worth, where
    both count for the `count` best of it."""
    catalog = shop.catalog
    saids: Iterable[Said | None] = (None,)
    if choice.claims:
        saids = draw_saids(goal["type"], left.rows, choice.claims, least, catalog, random)
    exceptions = [name for name, value in goal.of().items() if isinstance(value, AnyBut)]
    for said in saids:
        some = left
        if said is not None:
            some = unmet.by_reviews(left, said, catalog)
        worths: Sequence[Worth | None] = (None,)
        if choice.terms:
            excluded = [ranking.fitting(goal.drop_slots(name), shop) for name in exceptions]
            beside = [np.setdiff1d(rows, left.rows) for rows in excluded]
            if said is not None:
                beside = [reviews.kept(said, rows, catalog) for rows in beside]
                fewer = [reviews.kept(one, left.rows, catalog) for one in said.fewer()]
                beside += [np.setdiff1d(rows, some.rows) for rows in fewer]
            dearest, size = goal[PRICE.name], choice.terms
            worths = draw_worths(some.rows, dearest, terms, size, count, catalog, random, beside)
        for worth in worths[:WORTHS]:
            slots = {name: wish for name, wish in (("said", said), ("worth", worth)) if wish is not None}
            if _thinks(replace(some, goal=some.goal.set_slots(slots)), choice, count, catalog):
                yield slots, some


def _draw_limits(
    row: int,
    wanted: int,
    most: int,
    may: Sequence[SlotType],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Draw constraints that a product satisfies: the price and up to m - 1 others; of those that `may` limit a number,
    with random slack.

    They leave as many products as are `wanted` to choose from, for a list of one is no recommendation, and at `most` so
    many where a price can see to that.
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
    if len(prices) > most:
        dearest = max(least, min(dearest, PRICE.step * ((prices[most].item() - 1) // PRICE.step)))
    return {PRICE.name: dearest, **limits}


def _draw_others(
    goal: Goal,
    wanted: int,
    most: int,
    may: Sequence[SlotType],
    axes: Difficulty,
    shop: Shop,
    random: np.random.Generator,
) -> list[np.ndarray]:
    """Draw customers who say the same of a product in their opening and leave out something else: the rows that fit
    each, whatever is said of reviews."""
    stated = {slot.name: slot.value for slot in goal.said() if slot.name != "said"}  # few tell by reviews
    stated |= {"give_way": goal["give_way"]} if "give_way" in goal else {}
    rows = unmet.last_stage(Goal.one({"type": goal["type"], **stated}), (), shop).rows
    fitting = []
    for _ in range(ALIKE - 1):
        left_out = _draw_limits(pick(random, rows.tolist()), wanted, most, may, axes, shop, random)
        other = Goal.one({"type": goal["type"], **left_out, **stated})
        fitting.append(unmet.last_stage(other, (), shop).rows)
    return fitting


def _choices(
    goal: Goal,
    rows: np.ndarray,
    others: Sequence[np.ndarray],
    count: int,
    shop: Shop,
    random: np.random.Generator,
) -> list[np.ndarray]:
    """List what this customer, whom these rows fit, and `others` would choose of what fits them; what these rank by,
    and what reviews are to say, is the same where the opening states it."""
    stated = {slot.name: slot.value for slot in goal.said()}
    found, said = [ranking.ranked_first(rows, goal, count, shop)], stated.get("said")
    for fit in others:
        rank: dict[str, Any] = {"importance": shuffled(random, goal.get("importance", ()))}
        if "worth" in goal:
            rank = {"worth": pick(random, goal["worth"].others())}
        rank |= {name: stated[name] for name in rank if name in stated}
        fit = fit if said is None else reviews.kept(said, fit, shop.catalog)
        found.append(ranking.ranked_first(fit, Goal.one(rank), count, shop))
    return found


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
    before = unmet.last_stage(goal, events, shop).rows
    names = shuffled(random, dict.fromkeys(name for slots in moved for name in slots))
    able = (slots for name in names for slots in shuffled(random, [one for one in moved if name in one]))
    for slots in islice(able, CHANGES):
        change = GoalChange(slots=slots)
        if not holds(goal, [*events, change]):
            continue
        lefts, after = unmet.stages(goal, [*events, change], shop), goal.apply(change)
        if min(len(left.rows) for left in lefts) < enough:
            continue
        if not ranking.among_the_best(before, lefts[-1].rows, goal, after, enough, shop):
            return change
    return None
