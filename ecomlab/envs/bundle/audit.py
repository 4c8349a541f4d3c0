"""The audit of BUNDLE: faults of a list of parts, and other wishes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import product
from typing import Any, Self

from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, SellOut, Task
from ecomlab.values import money
from ecomlab.world.cart import Want, constraints_of
from ecomlab.world.faults import fault_of, named
from ecomlab.world.joint import (
    SLOTS,
    Demands,
    GiveWay,
    Joint,
    Offer,
    Total,
    best,
    evaluate,
    key_of,
    named_parts,
    offer_of,
    upgraded,
)
from ecomlab.world.ranking import Worth
from ecomlab.world.shopping_list import Part, least_total, parts_of, rows_left
from ecomlab.world.state import World


@dataclass(frozen=True)
class Judged:
    """A submitted list beside the best one."""

    wanted: Mapping[str, Mapping[str, Any]]
    """Slots of the parts that it should hold, by type."""
    broken: tuple[Joint, ...]
    """Demands across parts that its products do not meet."""
    worse: tuple[Worth | Total, ...]
    """What counts beside the price and could be better."""
    wrong: frozenset[str]
    """Parts without a right product."""
    left_out: tuple[str, ...]
    """Parts that have to give way."""
    said: bool
    """It names these as unmet, and no others."""
    cost: int

    @classmethod
    def of(cls, goal: Goal, world: World, answer: Mapping[str, Any]) -> Self:
        """Judge an answer."""
        catalog, today = world.catalog, today_of(world.given)
        demands, left_out, choice = Demands.of(goal.slots), tuple[str, ...](), None
        if demands.order or demands.aims:
            _, _, choice = evaluate(goal.slots, today, partial(_rows_now, world=world), catalog)
            left_out = choice.left_out if choice else ()
        wanted = {kind: slots for kind, slots in demands.parts.items() if kind not in left_out}
        cost, chosen = 0, {}
        for product_id in answer.get("product_ids", ()):
            if (row := catalog.row(product_id)) is None:
                continue
            cost += catalog.price_cents.item(row)
            kind = catalog.type_of(row).name
            fits = kind in wanted and catalog.satisfies(row, constraints_of(kind, wanted[kind]))
            if fits and kind not in chosen and product_id in world.shown and world.stock(row) > 0:
                chosen[kind] = offer_of(catalog, row, demands.shared(kind))
        joints = [joint.among(wanted) for joint in demands.joints]
        broken = tuple(joint for joint in joints if not joint.holds(chosen, today))
        worse = tuple(
            aim
            for aim in demands.aims
            if choice
            and choice.chosen.keys() & chosen.keys() >= {*aim.items}
            and key_of(aim, chosen) > key_of(aim, choice.chosen)
        )
        wrong = {kind for kind in wanted if kind not in chosen}
        wrong |= {kind for one in (*broken, *worse) for kind in one.items}
        unmet = " ".join(answer.get("unmet") or ())
        said = named_parts(unmet, demands.parts, catalog) == set(left_out)
        return cls(wanted, broken, worse, frozenset(wrong), left_out, said, cost)


def today_of(given: Mapping[str, Any]) -> date | None:
    """Read the day of a world; None if it has none of its own."""
    return date.fromisoformat(given["today"]) if "today" in given else None


def _rows_now(part: Part, world: World) -> Any:
    return world.in_stock(world.catalog.select(constraints_of(*part)))


class BundleAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        if answer is None:
            return []
        ids, catalog, judged = (
            list(answer.get("product_ids", ())),
            world.catalog,
            Judged.of(goal, world, answer),
        )
        found, there = list[Fault](), set[str]()
        for product_id in ids:
            row = catalog.row(product_id)
            kind = "" if row is None else catalog.type_of(row).name
            wanted = constraints_of(kind, judged.wanted[kind]) if kind in judged.wanted else ()
            fault = fault_of(product_id, wanted, world, kind or product_id)
            if fault is None and (kind not in judged.wanted or kind in there):
                why = (
                    "a second one"
                    if kind in there
                    else "to be left out"
                    if kind in judged.left_out
                    else "not wanted"
                )
                words = f"{named(product_id, catalog)} is {why}"
                fault = Fault("unwanted item", product_id, product_id, ("parts",), words=words)
            found += [fault] if fault else []
            there |= {kind}
        for kind in [part for part in judged.wanted if part not in there]:
            found.append(Fault("missed item", kind, "", ("parts",), words=f"no {kind}"))
        for joint in judged.broken:
            place, slots = f"{joint.slot} {joint.items[0]}", (joint.slot,)
            found.append(Fault("not the best", place, ",".join(ids), slots, words=joint.broken))
        for aim in judged.worse:
            place, words = f"best {aim.items[0]}", f"better can be had of what {aim.say()} is about"
            found.append(Fault("not the best", place, ",".join(ids), (aim.slot,), words=words))
        if ids and not judged.said:
            words = f"unmet should name {', '.join(judged.left_out) or 'nothing'}"
            unmet = ",".join(answer.get("unmet") or ())
            found.append(Fault("wrong outcome", "unmet", unmet, ("give_way",), words=words))
        if judged.cost > goal["budget"]:
            words = f"it costs {money(judged.cost)}, wanted at most {money(goal['budget'])}"
            found.append(Fault("over budget", "budget", str(judged.cost), ("budget",), words=words))
        return found

    def wishes(self, goal: Goal, world: World) -> Sequence[Want]:
        return [
            Want(number, kind, slots, None, 1) for number, (kind, slots) in enumerate(parts_of(goal.slots))
        ]

    def alternatives(self, slot: Place, goal: Goal, task: Task, shop: Shop) -> Sequence[Any]:
        (item, name), value = slot, goal.slots[slot]
        if name == "parts":  # another last one
            taken = {kind for kind, _ in parts_of(goal.slots)} | {goal.after(task.events).get("added")}
            return [[*value[:-1], kind] for kind in task.notes["pool"] if kind not in taken]
        if isinstance(value, Worth):
            return value.others()
        if isinstance(value, Joint | GiveWay):  # about another part instead of the last one
            stated = [kind for (_, slot), kind in goal.slots.items() if slot == "type"]
            items = [(*value.items[:-1], kind) for kind in stated if kind not in value.items]
            return [replace(value, items=some) for some in items]
        return self.product_values(name, value, goal.get("type", item=item), shop)

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        goals, catalog = (goal, goal.after(task.events)), shop.catalog
        if any(name in SLOTS for _, name in goal.slots):
            rows_of, today = (
                partial(rows_left, catalog=catalog, sold=sold),
                today_of(task.world),
            )
            return all(evaluate(wanted.slots, today, rows_of, catalog)[2] for wanted in goals)
        totals = [least_total(parts_of(wanted.slots), catalog, sold) for wanted in goals]
        return all(t is not None and t <= g["budget"] for t, g in zip(totals, goals, strict=True))

    def outcomes(self, task: Task, shop: Shop) -> Mapping[str, bool]:
        """Tell whether something gives way, and of each demand whether the cheapest of each part meet it."""
        goal, today = task.goal.after(task.events), today_of(task.world)
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        rows_of = partial(rows_left, catalog=shop.catalog, sold=sold)
        demands, offers, choice = evaluate(goal.slots, today, rows_of, shop.catalog)
        found, cheapest = dict[str, bool](), dict[str, Sequence[Offer]]()
        if demands.order and choice is not None:
            found["none: something gives way"] = bool(choice.left_out)
        for kind, slots in demands.parts.items():
            rows = rows_of((kind, dict(slots)))
            prices = shop.catalog.price_cents[rows]
            rows = rows[prices == min(prices, default=0)]
            cheapest[kind] = [offer_of(shop.catalog, row, demands.shared(kind)) for row in rows.tolist()]
        for at, joint in enumerate(one for one in demands.joints if not isinstance(one, Total)):
            some = product(*(cheapest[kind] for kind in joint.items))
            met = any(joint.holds(dict(zip(joint.items, one, strict=True)), today) for one in some)
            found[f"joint: the cheapest meet {joint.slot}, {at}"] = met
        for at, total in enumerate(aim for aim in demands.aims if isinstance(aim, Total)):
            others = demands.aiming(*(aim for aim in demands.aims if aim != total))
            start = best(offers, others, today)
            if (
                start is None
                or choice is None
                or not {*total.items} <= start.chosen.keys() & choice.chosen.keys()
            ):
                continue
            taken = upgraded(start.chosen, offers, demands, total)
            right = key_of(total, taken) <= key_of(total, choice.chosen)
            found[f"joint: whoever upgrades greedily is right, {at}"] = right
        for wish in demands.worths:
            right_one = choice.chosen.get(wish.type) if choice else None
            if right_one is not None:
                price = min(one.price for one in offers[wish.type])  # of what comes in time
                least = min(wish.key(one.value) for one in offers[wish.type] if one.price == price)
                found[f"trade_off: the cheapest is the best, {wish.type}"] = least <= wish.key(
                    right_one.value
                )
        return found
