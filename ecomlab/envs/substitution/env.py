"""SUB: for a product that is sold out, the most similar compatible ones that can be bought."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer import demands
from ecomlab.customer.goals import withhold
from ecomlab.customer.opinions import Opinion, Thing
from ecomlab.customer.templates import Phrases
from ecomlab.customer.visits import CLUSTER
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.envs.substitution.audit import SubstitutionAudit
from ecomlab.envs.substitution.player import SubstitutionPlayer
from ecomlab.reward import Verdict
from ecomlab.seeding import pick
from ecomlab.slots import slot_type
from ecomlab.task import ACT, Event, Goal, Problem, Slot, TaskError, TaskKey
from ecomlab.world.sell_outs import MOST_SOLD, draw_sell_out, sell_out_share
from ecomlab.world.state import World
from ecomlab.world.substitutes import fewest, original_of, requirements, similarity, stages_of
from ecomlab.world.tools import catalog as shop_tools

TRIES = 128


class Substitution(Environment):
    id, version = "SUB", 2
    brief = (
        "A product that the customer looked at lately is sold out. Find replacements that can be bought now, as many "
        "as they want. A replacement is of the same type, has the same attributes where the customer insists on it, "
        "and satisfies all their other demands. Of those, hand in the most similar: the ones that have the most in "
        "common with the sold-out product, counting its brand and its remaining attributes."
    )
    tools = (
        shop_tools.user_get_visit_history, shop_tools.catalog_search, shop_tools.catalog_get_product,
        shop_tools.catalog_get_variants, shop_tools.catalog_rerank, shop_tools.datetime_now,
    )  # fmt: skip
    moments = ("catalog_search", ACT)
    submit, player, auditor = shop_tools.submit, SubstitutionPlayer, SubstitutionAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random, catalog = key.rng("substitution"), shop.catalog
        share = draw_sell_out(axes.p_oos, axes.k_rec, random)
        # Enough for a sell-out, whether or not there will be one: no bound tells.
        spare = min(MOST_SOLD, round(2 * sell_out_share(axes.p_oos, axes.k_rec) * axes.k_rec))
        for attempt in range(TRIES):
            # Enough for a choice, where the shop has it; the visits will take some of them. With nine products a type
            # (1,000 in all) about four can be replacements at any level: there the list cannot grow, demands cannot
            # exclude much, and d hardly makes the task harder.
            enough = max(2, round((axes.k_rec + 2 + spare) * (1 - 2 * attempt / TRIES)))
            least = max(1, round(CLUSTER * (1 - 2 * attempt / TRIES)))
            kind = pick(random, catalog.drawable_types).name
            missed = demands.draw_missed(kind, enough, axes, shop, random)
            if missed is None or len(missed.rows) < least:
                continue
            cluster, visits, gone = demands.draw_visits(missed, enough, axes, key, shop)
            goal = demands.goal_of(cluster, missed.must, shop)
            if fewest(goal, (), gone, shop):
                break
        else:
            raise TaskError("nothing of this shop can be replaced; load a larger shop")
        left = stages_of(goal, (), gone, shop)[-1]
        goal = goal.set_slots(demands.draw_limits(kind, left, axes.k_rec + 1 + spare, axes, shop, random))
        sold = demands.draw_sell_out(goal, gone, share, axes, shop, random)
        events: list[Event] = [replace(sold, moment="catalog_search")] if sold else []
        if not fewest(goal, events, gone, shop):  # it must stay possible
            events = []
        if random.random() < axes.p_switch:
            change = demands.draw_change(goal, events, gone, axes, shop, random)
            events += [replace(change, moment=pick(random, self.moments))] if change else []
        count = min(axes.k_rec, axes.top_k, fewest(goal, events, gone, shop))
        goal = goal.set_slots({"count": count})
        goal = withhold(
            goal, axes, random, [n for n in goal.of() if n != "must" and not slot_type(n).is_limit]
        )
        need = SubstitutionPlayer.need(goal, visits, shop)
        turns, calls = SubstitutionPlayer.steps(goal, shop)
        events = [replace(event, turns=turns, calls=calls) for event in events]
        return Problem(goal, {"visits": visits, "gone": gone}, need, events)

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        shop, catalog, count = world.shop, world.catalog, int(goal["count"])
        original = original_of(goal, shop)
        ids = list(answer.get("product_ids", ()))
        if not ids:
            return Verdict.of(False, -1.0, "no replacement was submitted")
        required, compatible = requirements(goal, shop), requirements(goal, shop, limits=False)
        candidates = world.in_stock(catalog.select(required))
        best = np.sort(similarity(candidates[candidates != original], goal, shop))[::-1][:count]
        good: dict[int, bool] = {}
        for product_id in ids:
            row = catalog.row(product_id)
            if row is None or row == original or product_id not in world.shown or not world.stock(row):
                continue
            if catalog.satisfies(row, compatible):
                good[row] = catalog.satisfies(row, required)
        alike = similarity(np.array(list(good), int), goal, shop)
        limits = [constraint for constraint in required if constraint not in compatible]
        met = sum(np.mean([catalog.satisfies(row, (c,)) for c in limits]) if limits else 1.0 for row in good)
        correct = len(ids) == len(good) == count and all(good.values()) and alike.sum() == best.sum()
        # One more than the number of equal entries, so that being compatible counts too.
        similar = min(1.0, float((alike + 1).sum() / max(1, (best + 1).sum())))
        weight = world.axes.substitution.similarity
        share = weight * similar + (1 - weight) * min(1.0, float(met) / count)
        why = f"these {count} are compatible, and none that can be had is more similar"
        if not correct:
            why = (
                f"{len(ids)} replacements of {count} asked for, {len(good)} of them compatible and in stock, "
                f"{sum(good.values())} as the customer wants; {alike.sum()} equal entries in all, {best.sum()} in the "
                "best choice"
            )
        return Verdict.of(bool(correct), 2 * share * min(1.0, count / len(ids)) - 1, why, ids)

    def opinion(self, goal: Goal, world: World, thing: Thing) -> Opinion | None:
        if thing.kind != "product":
            return None
        row = world.row(thing.id)
        if world.catalog.type_of(row).name != goal["type"]:
            return None
        goal = goal if "must" in goal else goal.set_slots({"must": []})  # nothing was said of it yet
        if not world.stock(row):  # the product that they had chosen?
            return Opinion(row == original_of(goal, world.shop), identifies=True)
        broken = next(
            (c for c in requirements(goal, world.shop) if not world.catalog.satisfies(row, (c,))), None
        )
        name = "must" if broken and broken.field.startswith("attr:") else broken.field if broken else ""
        return Opinion(broken is None, broken=Slot(0, name, goal[name]) if broken else None)
