"""BUNDLE: put together a shopping list for a project, each part once, within the budget."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.bundle.audit import BundleAudit, Judged
from ecomlab.envs.bundle.player import BundlePlayer
from ecomlab.envs.bundle.steps import Drawing, Listing, counting, is_sound
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled, whole_near
from ecomlab.task import Event, Goal, Place, Problem, TaskError, TaskKey
from ecomlab.tool import tool
from ecomlab.values import money
from ecomlab.world.joint import surplus
from ecomlab.world.orders.history import draw_history
from ecomlab.world.sell_outs import sell_out_share
from ecomlab.world.shopping_list import (
    dearest_total,
    draw_budget,
    draw_change,
    draw_sell_out,
    draw_trait,
    draw_types,
    least_price,
    least_total,
    parts_of,
    rows_left,
)
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import PRODUCT_TOOLS

TRIES = 6
"""Draws of a list's steps of thought until one has a clear answer; the last has none."""


@tool
def submit(
    world: World,
    product_ids: Annotated[list[str], Field(description="The products.")],
    unmet: Annotated[
        list[str] | None, Field(description="Things left out because not all can be had as asked, if any.")
    ] = None,
) -> dict[str, Any]:
    """Hand in the products; the conversation ends."""
    return {"submitted": True}


class Bundle(Environment):
    id, version = "BUNDLE", 3
    brief = (
        "Put together the customer's shopping list: one product for each thing they need and nothing else, as they "
        "want it, that can be bought now. All of it together must not cost more than their budget. Where a star or a "
        "day is worth something to them, what counts is the price minus that worth. Only where not all can be had as "
        "they say, leave out what they give up, as few things as possible in their order, and name it as unmet."
    )
    tools, submit, player, auditor = PRODUCT_TOOLS, submit, BundlePlayer, BundleAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, catalog = key.rng("bundle"), shop.catalog
        count = whole_near(random, axes.bundle.parts)
        departments, pool = draw_types(catalog, count + 1, random)
        usable = {kind: price for kind in pool if (price := least_price((kind, {}), catalog)) is not None}
        happens = random.random() < 1 - (1 - axes.p_oos) ** count
        if len(usable) < 2:
            raise TaskError(f"too little of {', '.join(departments)} is in stock; load a larger shop")
        kinds = shuffled(random, usable)
        kinds, spare = kinds[:count], kinds[count : count + 1]
        hidden = (random.random(len(kinds)) < axes.p_missing).tolist()
        later = [kind for i, kind in enumerate(kinds) if hidden[i] and i >= count / 2]
        stated = [kind for kind in kinds if kind not in later]
        world = {"today": draw_history(key, axes, shop)["today"]} if axes.steps.mean else {}
        today = date.fromisoformat(world["today"]) if world else None
        share = sell_out_share(axes.p_oos, count)
        # The sell-out falls on whole departments, so that it tells nothing about the list. All is drawn as if it
        # happened, so that neither the budget nor anything else tells whether it will.
        sold = draw_sell_out([], usable, share, catalog, key.rng("bundle rush"))
        states = [partial(rows_left, catalog=catalog, sold=one) for one in (None, sold)]

        @cache
        def listings(kind: str, days: int | None) -> list[Listing]:
            slots = {} if days is None else {"days": days}
            return [Listing.of(catalog, rows_of((kind, slots)), axes.top_k) for rows_of in states]

        def budget_for(goal: Goal, slack: float) -> int:
            """Draw a budget for the least total. In one that the opening states, the parts named later are the dearest
            that they may be."""
            if (0, "budget") in goal.withheld:
                total = least_total(parts_of(goal.slots), catalog, sold) or 0
            else:
                total = dearest_total(goal.slots, len(later), prices, catalog, sold)
            total += surplus(goal.slots, today, states[1], catalog)
            return draw_budget(total, slack, random) + drawing.room

        for tries_left in reversed(range(TRIES)):
            drawing = Drawing(stated, listings, today, axes, catalog, random)
            if tries_left:
                drawing.draw()
            slots: dict[Place, Any] = {(i, "type"): kind for i, kind in enumerate(stated)}
            # The budget is one of the m constraints, and so is each demand across parts.
            slots |= drawing.places()
            alone = [i for i, kind in enumerate(stated) if kind not in drawing.taken]
            for i in alone[: max(0, axes.constraints - 1 - len(drawing.wishes) - len(drawing.slots))]:
                rows = states[1]((stated[i], {}))
                name, value = draw_trait(int(rows[int(random.integers(len(rows)))]), catalog, random)
                slots[i, name] = value
            sold = draw_sell_out(parts_of(slots), usable, share, catalog, key.rng("bundle rush"))
            states = [partial(rows_left, catalog=catalog, sold=one) for one in (None, sold)]
            prices = {kind: least_price((kind, {}), catalog, sold) or price for kind, price in usable.items()}
            if later:
                slots[0, "parts"] = later
            slots[0, "budget"] = 0
            goal = withhold(Goal(slots, frozenset(slots) & {(0, "parts")}), axes, random, ("parts",))
            goal = goal.set_slots({"budget": budget_for(goal, axes.bundle.slack)})
            change = (
                draw_change(goal, alone, spare, axes, random) if random.random() < axes.p_switch else None
            )
            if change and "budget" in change.slots:  # a higher one would leave every list as right as it was
                less = budget_for(goal, 0.4 * axes.bundle.slack)
                change = replace(change, slots={"budget": less}) if less < goal["budget"] else None
            elif change and "added" in change.slots:
                # A budget that had room for it from the start would tell that it will come.
                more = budget_for(goal.set_slots(change.slots), axes.bundle.slack)
                change = replace(change, slots={**change.slots, "budget": max(more, goal["budget"] + 100)})
            ends = [goal, goal.apply(change)] if change else [goal]
            if all(is_sound(end, today, rows_of, catalog, axes.top_k) for end in ends for rows_of in states):
                break
        need = BundlePlayer.need(goal)
        added = change is not None and "added" in change.slots
        sold = replace(sold, about=tuple(usable), calls=need.calls + added)
        happens = happens and bool(sold.left)
        events: list[Event] = [sold] if happens else []
        if change:
            events.append(replace(change, moment=pick(random, self.moments), about=tuple(usable)))
        data, first = self.phrases.data, departments[0]
        options = data["mixed"] if departments[1:] else data["projects"].get(first, data["mixed"])
        project = pick(random, options)
        steps = counting(ends[-1], today, states[happens], catalog)
        gaps = {"project": project}
        return Problem(goal, world, need, events, gaps=gaps, notes={"pool": list(usable)}, steps=steps)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        ids = list(answer.get("product_ids", ()))
        if not ids:
            return Verdict(-1.0, False, "nothing was submitted")
        judged, budget = Judged.of(goal, world, answer), goal["budget"]
        wanted, right = len(judged.wanted), len(judged.wanted) - len(judged.wrong)
        correct = right == wanted == len(ids) and judged.cost <= budget and judged.said
        why = f"all {wanted} things on the list for {money(judged.cost)} of {money(budget)}"
        if not correct:
            why = f"{right} of {wanted} things on the list: {self.reasons(goal, world, answer, first)}"
        overspent = max(0, judged.cost - budget) / budget
        return Verdict.of(correct, 4 * right / (len(ids) + wanted) - 1 - overspent, why, ids)
