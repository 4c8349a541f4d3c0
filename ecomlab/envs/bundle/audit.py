"""The audit of BUNDLE: faults of a list of parts, and other wishes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ecomlab.catalog import Shop
from ecomlab.envs.base import Audit
from ecomlab.reward import Fault
from ecomlab.task import Goal, Place, SellOut, Task
from ecomlab.values import money
from ecomlab.world.cart import Want, constraints_of
from ecomlab.world.faults import fault_of, named
from ecomlab.world.shopping_list import least_total, parts_of
from ecomlab.world.state import World


class BundleAudit(Audit):
    def faults(
        self, goal: Goal, world: World, answer: Mapping[str, Any] | None, first: Goal
    ) -> Sequence[Fault]:
        if answer is None:
            return []
        ids, parts, catalog = list(answer.get("product_ids", ())), dict(parts_of(goal.slots)), world.catalog
        found, there, cost = list[Fault](), set[str](), 0
        for product_id in ids:
            row = catalog.row(product_id)
            kind = "" if row is None else catalog.type_of(row).name
            cost += 0 if row is None else catalog.price_cents.item(row)
            wanted = constraints_of(kind, parts[kind]) if kind in parts else ()
            fault = fault_of(product_id, wanted, world, kind or product_id)
            if fault is None and (kind not in parts or kind in there):
                words = f"{named(product_id, catalog)} is {'a second one' if kind in there else 'not wanted'}"
                fault = Fault("unwanted item", product_id, product_id, ("parts",), words=words)
            found += [fault] if fault else []
            there |= {kind}
        for kind in [part for part in parts if part not in there]:
            found.append(Fault("missed item", kind, "", ("parts",), words=f"no {kind}"))
        if cost > goal["budget"]:
            words = f"it costs {money(cost)}, wanted at most {money(goal['budget'])}"
            found.append(Fault("over budget", "budget", str(cost), ("budget",), words=words))
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
        return self.product_values(name, value, goal.get("type", item=item), shop)

    def possible(self, goal: Goal, task: Task, shop: Shop) -> bool:
        sold = next((event for event in task.events if isinstance(event, SellOut)), None)
        goals = (goal, goal.after(task.events))
        totals = [least_total(parts_of(wanted.slots), shop.catalog, sold) for wanted in goals]
        return all(t is not None and t <= g["budget"] for t, g in zip(totals, goals, strict=True))
