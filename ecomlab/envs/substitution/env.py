"""SUB: for a product that is sold out, the most similar compatible ones that can be bought."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer import demands
from ecomlab.customer.demand_draws import LUCK, MATCHES, MOST, DemandDraws, chance_right, takes_cheapest
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
from ecomlab.slots import LIMITS, slot_type
from ecomlab.steps import draw_kinds
from ecomlab.task import ACT, Event, Goal, Problem, Slot, Task, TaskError, TaskKey
from ecomlab.wishes import Demand, without
from ecomlab.world.plain import AtFirst, plain
from ecomlab.world.sell_outs import MOST_SOLD, draw_sell_out, sell_out_share
from ecomlab.world.state import World
from ecomlab.world.substitutes import (
    best_of,
    demanded,
    fewest,
    narrowed,
    original_of,
    rank_keys,
    requirements,
    similarity,
    stages_of,
)
from ecomlab.world.tools import catalog as shop_tools

MANY = 2_000
"""Products left, as a shop of millions has them, of which demands may keep small shares, so that a list holds them."""
TRIES = 128
THOUGHT = 5
"""Draws among which one is sought whose steps of thought all count, and which has room."""
ROOM = 7
"""Replacements that are to be left to choose from, beside one for each step of thought."""
STEPS = ("reference", "joint", "logic", "trade_off")
"""Kinds of steps of thought that a substitution may hold."""
MAY_BE_WITHHELD = (
    "must", "worth", "which", "matching", *MATCHES, "choices", "choices_too", "excluded", "excluded_too", "if",
)  # fmt: skip
"""Slots that an opening may leave out, beside limits."""


class Substitution(Environment):
    id, version = "SUB", 3
    brief = (
        "A product that the customer looked at lately is sold out. Find replacements that can be bought now, as many "
        "as they want. A replacement is of the same type, has the same attributes where the customer insists on it, "
        "and satisfies all their other demands. Of those, hand in the most similar: the ones that have the most in "
        "common with the sold-out product, counting one each for the same brand, each remaining attribute that is the "
        "same, a price at most a tenth above or below its price, and stars at most 0.2 from its stars; fewer where "
        "fewer fit. "
        "Where the customer says what they would pay more for, the best are instead those with the lowest price after "
        "that is taken off; each of the things counted is a matching detail."
    )
    tools = (
        shop_tools.user_get_visit_history, shop_tools.catalog_search, shop_tools.catalog_get_product,
        shop_tools.catalog_get_variants, shop_tools.catalog_rerank, shop_tools.datetime_now,
    )  # fmt: skip
    moments = ("catalog_search", ACT)
    submit, player, auditor = shop_tools.submit, SubstitutionPlayer, SubstitutionAudit
    phrases = Phrases.load(Path(__file__).with_name("phrases.toml"))

    def draw(self, key: TaskKey, axes: Difficulty, shop: Shop) -> Problem:
        random = key.rng("substitution")
        kinds = draw_kinds(axes, STEPS, key.rng("kinds"), MOST)
        share = draw_sell_out(axes.p_oos, axes.k_rec, random)
        holds, best, most = bool(key.rng("holds").random() < 0.5), None, 0
        for attempt in range(TRIES):
            made = self._draw(attempt / TRIES, share, kinds, holds, axes, key, shop, random)
            if made is None:
                continue
            problem, worth = made
            if best is None or worth > most:
                best, most = problem, worth
            if worth == len(kinds) + 1 or attempt >= THOUGHT:
                break
        if best is None:
            raise TaskError("nothing of this shop can be replaced; load a larger shop")
        return best

    def _draw(
        self,
        part: float,
        share_sold: float,
        kinds: Sequence[str],
        holds: bool,
        axes: Difficulty,
        key: TaskKey,
        shop: Shop,
        random: np.random.Generator,
    ) -> tuple[Problem, int] | None:
        """Draw a task, and how much thought it takes: one for each step that counts, and one where the cheapest are not
        the best; None where the product cannot be replaced. After a larger `part` of the tries, less is asked of the
        shop."""
        # Enough for a sell-out, whether or not there will be one: no bound tells.
        spare = min(MOST_SOLD, round(2 * sell_out_share(axes.p_oos, axes.k_rec) * axes.k_rec))
        # Enough for a choice, where the shop has it; the visits will take some of them. With nine products a type
        # (1,000 in all) about four can be replacements at any level: there the list cannot grow, demands cannot
        # exclude much, and d hardly makes the task harder.
        aim = min(ROOM + axes.steps.mean, 0.8 * axes.top_k)
        enough = max(2, round((aim + 2 + spare) * (1 - 2 * part)))
        least = max(1, round(CLUSTER * (1 - 2 * part)))
        kind = pick(random, shop.catalog.stocked_types).name
        vague = "reference" in kinds and part < 0.75  # of visits to all products few words tell none apart
        missed = demands.draw_missed(kind, enough, axes, shop, random, vague)
        if missed is None or len(missed.rows) < least:
            return None
        cluster, visits, gone = demands.draw_visits(missed, enough, axes, key, shop, vague)
        goal, first = demands.goal_of(cluster, missed.must, shop), AtFirst(shop, {"visits": visits})
        least = max(1, round(aim / 2 * (1 - 2 * part)))
        draws = DemandDraws(shop.catalog.rows_of(visits), axes, shop, random, least, holds)
        if vague:
            which = draws.which(original_of(goal, shop))
            if which is None:
                return None
            goal = goal.set_slots({"which": which})
        if not fewest(goal, (), gone, shop):
            return None
        wished = [step for step in kinds if step not in ("reference", "trade_off")]
        left = stages_of(goal, (), gone, shop)[-1]
        limits = min(len(LIMITS), axes.constraints - 1)

        def share(count: int) -> float:
            """Compute the share that each of so many demands is to keep of what is left."""
            fair = (aim / max(1, len(left))) ** (1 / max(1, count))
            return min(0.95, fair if len(left) > MANY else max(0.3, fair))

        keep = max(least, min(axes.k_rec + 1 + spare, axes.top_k - 2))  # all of them are to be listed
        goal = goal.set_slots(
            demands.draw_limits(kind, left, keep, axes, shop, random, share(limits + len(wished)))
        )
        steps = ["reference"] if vague else []
        for number, step in enumerate(wished):
            known = plain(goal, first)
            left = stages_of(known, (), gone, shop)[-1]
            for able in dict.fromkeys((step, *wished)):  # another one where there is none of its kind
                made = draws.demand(able, known, left, share(len(wished) - number))
                if made is not None:
                    goal = goal.set_slots(dict([made]))
                    steps.append(able)
                    break
        goal = goal.drop_slots(*(limit.name for name, limit in MATCHES.items() if name in goal))
        known = plain(goal, first)
        sold = demands.draw_sell_out(known, gone, share_sold, axes, shop, random)
        events: list[Event] = [replace(sold, moment="catalog_search")] if sold else []
        if not fewest(known, events, gone, shop):  # it must stay possible
            events = []
        if not fewest(known, events, gone, shop):
            return None
        # Of several, would each have to be as a condition says? And would it be about the best by worths?
        most = 1 if "if" in goal else min(axes.k_rec, axes.top_k)
        chosen: dict[str, Any] = {"count": most}
        if axes.steps.mean:
            left = stages_of(known, events, gone, shop)[-1]
            chosen = draws.choice(known, left, most, "trade_off" in kinds and "if" not in goal)
        goal = goal.set_slots(chosen)
        known = plain(goal, first)
        steps += ["trade_off"] * ("worth" in chosen)
        if random.random() < axes.p_switch:
            change = demands.draw_change(known, events, gone, axes, shop, random)
            events += [replace(change, moment=pick(random, self.moments))] if change else []
        counts = {kind: self._counts(kind, goal, events, visits, gone, shop) for kind in set(steps)}
        steps = [kind for kind in steps if counts[kind]]
        never = [name for name in goal.of() if name not in MAY_BE_WITHHELD and not slot_type(name).is_limit]
        goal = withhold(goal, axes, random, never)
        known = plain(goal, first)
        left, end = stages_of(known, events, gone, shop)[-1], plain(goal.after(events), first)
        keys, prices = rank_keys(left, end, shop), shop.catalog.price_cents[left]
        dearer = not takes_cheapest(keys, prices, int(end["count"]))
        open_ones = [n for n, one in known.of().items() if isinstance(one, Demand) and one.slot == "brand"]
        costs = [
            SubstitutionPlayer.steps(known, rows, axes.top_k, shop)
            for rows in stages_of(known.drop_slots("if", *open_ones), events, gone, shop)
        ]
        if None in costs:
            return None
        turns, calls = (max(cost[at] for cost in costs if cost) for at in (0, 1))
        if calls > SubstitutionPlayer.most_calls(axes):
            return None
        need = SubstitutionPlayer.need(goal, visits, shop, turns, calls)
        events = [replace(event, turns=turns, calls=calls) for event in events]
        return Problem(goal, {"visits": visits, "gone": gone}, need, events, steps=steps), len(steps) + dearer

    def _counts(
        self,
        kind: str,
        goal: Goal,
        events: Sequence[Event],
        visits: Sequence[str],
        gone: Sequence[str],
        shop: Shop,
    ) -> bool:
        """Tell whether somebody who cannot take steps of this kind gets something else in the end."""
        first = AtFirst(shop, {"visits": visits})
        known, heard = plain(goal, first), Goal.one(without(goal.of(), frozenset((kind,))))
        other = plain(replace(heard, unsaid=goal.unsaid), first)
        if kind == "reference":
            taken = SubstitutionPlayer.first_guess(goal, visits, gone, shop)
            if taken == goal.unsaid["original"]:
                return False
            other = replace(other, unsaid={"original": taken})
        return self._chance(other, known, events, gone, shop) < LUCK

    @staticmethod
    def _chance(taken: Goal, goal: Goal, events: Sequence[Event], gone: Sequence[str], shop: Shop) -> float:
        """Compute the chance that the best for one goal are the best for another."""
        rows, right = (stages_of(one, events, gone, shop)[-1] for one in (taken, goal))
        count = int(goal["count"])
        best = best_of(right, goal, count, shop)
        return chance_right(rows, -rank_keys(rows, taken, shop), best, min(count, len(right)), count)

    def is_right(self, taken: Goal, goal: Goal, task: Task, shop: Shop) -> bool:
        first = AtFirst(shop, task.world)
        taken, goal = plain(taken, first), plain(goal, first)
        return self._chance(taken, goal, task.events, task.world["gone"], shop) >= LUCK

    def verify(self, goal: Goal, world: World, answer: Mapping[str, Any], first: Goal) -> Verdict:
        shop, catalog, count = world.shop, world.catalog, int(goal["count"])
        original = original_of(goal, shop)
        ids = list(answer.get("product_ids", ()))
        if not ids:
            return Verdict.of(False, -1.0, "no replacement was submitted")
        required, compatible = requirements(goal, shop), requirements(goal, shop, limits=False)
        candidates = world.in_stock(catalog.select(required))
        candidates = narrowed(candidates[candidates != original], goal, shop)
        keys = rank_keys(candidates, goal, shop)
        best = candidates[np.argsort(keys, kind="stable")[:count]]
        keys = np.sort(keys)[:count]
        count = len(best)  # fewer where fewer fit
        good: dict[int, bool] = {}
        for product_id in ids:
            row = catalog.row(product_id)
            if row is None or row == original or product_id not in world.shown or not world.stock(row):
                continue
            if catalog.satisfies(row, compatible):
                good[row] = row in candidates
        alike = similarity(np.array(list(good), int), goal, shop)
        limits = [constraint for constraint in required if constraint not in compatible]
        met = sum(
            1.0 if fits else float(np.mean([catalog.satisfies(row, (c,)) for c in limits] or [False]))
            for row, fits in good.items()
        )
        mine = np.sort(rank_keys(np.array(list(good), int), goal, shop))
        correct = len(ids) == len(good) == count and all(good.values()) and bool((mine == keys).all())
        # One more than the number of equal entries, so that being compatible counts too.
        most = similarity(best, goal, shop)
        similar = min(1.0, float((alike + 1).sum() / max(1, (most + 1).sum())))
        if "worth" in goal:
            similar = sum(row in best for row in good) / max(1, count)
        weight = world.axes.substitution.similarity
        share = weight * similar + (1 - weight) * min(1.0, float(met) / max(1, count))
        correct = correct and bool(ids)
        why = f"these {count} are compatible, and none that can be had is more similar"
        if not correct:
            why = (
                f"{len(ids)} replacements of the {count} that there are, {len(good)} of them compatible and in stock, "
                f"{sum(good.values())} as the customer wants; {alike.sum()} equal entries in all, {most.sum()} in the "
                "best choice"
                f"{', which is worth more' if 'worth' in goal else ''}"
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
        wanted = demanded(goal, world.shop)
        name = next((name for name, one in wanted if not world.catalog.satisfies(row, (one,))), None)
        return Opinion(name is None, broken=Slot(0, name, goal[name]) if name else None)
