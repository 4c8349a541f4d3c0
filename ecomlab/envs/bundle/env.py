"""BUNDLE: put together a shopping list for a project, each part once, within the budget."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.customer.goals import withhold
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.bundle.audit import BundleAudit
from ecomlab.envs.bundle.player import BundlePlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick, shuffled, whole_near
from ecomlab.task import Event, Goal, Place, Problem, TaskError, TaskKey
from ecomlab.values import money
from ecomlab.world.cart import constraints_of
from ecomlab.world.sell_outs import sell_out_share
from ecomlab.world.shopping_list import (
    dearest_total,
    draw_budget,
    draw_change,
    draw_sell_out,
    draw_trait,
    draw_types,
    least_price,
    parts_of,
    rows_left,
)
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import PRODUCT_TOOLS, submit


class Bundle(Environment):
    id, version = "BUNDLE", 2
    brief = (
        "Put together the customer's shopping list: one product for each thing they need and nothing else, as they "
        "want it, that can be bought now. All of it together must not cost more than their budget."
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
        slots: dict[Place, Any] = {}
        for i, kind in enumerate(kind for kind in kinds if kind not in later):
            slots[i, "type"] = kind
            if i < axes.constraints - 1:  # the budget is one of the m constraints
                rows = rows_left((kind, {}), catalog)
                name, value = draw_trait(int(rows[int(random.integers(len(rows)))]), catalog, random)
                slots[i, name] = value
        # The sell-out falls on whole departments, so that it tells nothing about the list. All is drawn as if it
        # happened, so that neither the budget nor anything else tells whether it will.
        sold = draw_sell_out(parts_of(slots), usable, sell_out_share(axes.p_oos, count), catalog, random)
        usable = {kind: least_price((kind, {}), catalog, sold) or price for kind, price in usable.items()}
        if later:
            slots[0, "parts"] = later

        def dearest(goal: Goal) -> int:
            return dearest_total(goal.slots, len(later), usable, catalog, sold)

        goal = Goal(slots, frozenset(slots) & {(0, "parts")})
        goal = goal.set_slots({"budget": draw_budget(dearest(goal), axes.bundle.slack, random)})
        change = draw_change(goal, spare, axes, random) if random.random() < axes.p_switch else None
        if change and "budget" in change.slots:  # a higher one would leave every list as right as it was
            less = draw_budget(dearest(goal), 0.4 * axes.bundle.slack, random)
            change = replace(change, slots={"budget": less}) if less < goal["budget"] else None
        elif change and "added" in change.slots:
            # A budget that had room for it from the start would tell that it will come.
            more = draw_budget(dearest(goal.set_slots(change.slots)), axes.bundle.slack, random)
            change = replace(change, slots={**change.slots, "budget": max(more, goal["budget"] + 100)})
        goal = withhold(goal, axes, random, ("parts",))
        need = BundlePlayer.need(goal)
        added = change is not None and "added" in change.slots
        sold = replace(sold, about=tuple(usable), calls=need.calls + added)
        events: list[Event] = [sold] if happens and sold.left else []
        if change:
            events.append(replace(change, moment=pick(random, self.moments), about=tuple(usable)))
        data, first = self.phrases.data, departments[0]
        options = data["mixed"] if departments[1:] else data["projects"].get(first, data["mixed"])
        project = pick(random, options)
        return Problem(goal, {}, need, events, gaps={"project": project}, notes={"pool": list(usable)})

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        parts, budget, ids = parts_of(goal.slots), goal["budget"], list(answer.get("product_ids", ()))
        if not ids:
            return Verdict(-1.0, False, "nothing was submitted")
        missing, cost = dict(parts), 0
        for product_id in ids:
            if (row := world.catalog.row(product_id)) is None:
                continue
            cost += world.catalog.price_cents.item(row)
            kind = world.catalog.type_of(row).name
            fits = kind in missing and world.catalog.satisfies(row, constraints_of(kind, missing[kind]))
            if fits and product_id in world.shown and world.stock(row) > 0:
                del missing[kind]
        right = len(parts) - len(missing)
        correct = right == len(parts) == len(ids) and cost <= budget
        why = f"all {len(parts)} things on the list for {money(cost)} of {money(budget)}"
        if not correct:
            why = f"{right} of {len(parts)} things on the list: {self.reasons(goal, world, answer, first)}"
        overspent = max(0, cost - budget) / budget
        return Verdict.of(correct, 4 * right / (len(ids) + len(parts)) - 1 - overspent, why, ids)
