"""CART: put exactly the products, variants and quantities that the customer wants into the cart (SPEC §7)."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import goal_changes, goals
from ecomlab.customer.acts import Act, Fault, Slot
from ecomlab.customer.corrections import faults
from ecomlab.customer.dialogue import PATIENCE
from ecomlab.difficulty import Difficulty
from ecomlab.envs.base import Environment
from ecomlab.players.base import Slips
from ecomlab.players.cart import FairShopper, KnowingShopper
from ecomlab.reward import Verdict, cart_credit
from ecomlab.seeding import rng
from ecomlab.task import Draft, Event, Need, Player, Task
from ecomlab.tool import RefusedError, tool
from ecomlab.world.cart import Want, constraints_of, match, want_of
from ecomlab.world.state import World
from ecomlab.world.tools import cart as cart_tools
from ecomlab.world.tools import catalog as shop_tools

if TYPE_CHECKING:
    from ecomlab.episode.episode import Episode
    from ecomlab.episode.subtask import Job


@tool
def submit(world: World, done: bool = True) -> dict[str, Any]:
    """Hand in the cart as it is; the conversation ends."""
    if not done:
        raise RefusedError("nothing was handed in; call submit with done true when the cart is right")
    return {"submitted": True}


class Cart(Environment):
    id = "CART"
    version = 2
    golden = "a70d368611e5e6c6ef8513a244b5eede"
    axes = (
        "constraints",
        "p_missing",
        "eps_rank",
        "p_oos",
        "turn_slack",
        "tool_slack",
        "p_noise",
        "p_switch",
        "top_k",
        "history",
    )
    brief = "Put exactly what the customer wants into the cart: product, variant and quantity."
    tools = shop_tools.named(
        shop_tools.catalog_search,
        shop_tools.catalog_get_variants,
        cart_tools.cart_add,
        cart_tools.cart_remove,
        cart_tools.cart_set_quantity,
        cart_tools.cart_view,
        shop_tools.user_get_visit_history,
    )
    submit = submit
    intros = (
        "I have some shopping to do.",
        "Let's fill my cart.",
        "There are things I've run out of.",
    )

    def draw(self, key: tuple[Any, ...], axes: Difficulty, shop: Shop) -> Draft:
        level = key[2]
        random = rng("cart", *key)
        count = min(5, 1 + level // 3)
        order = random.permutation(len(shop.catalog.types))[: count + 1 + goals.VISITS * axes.history]
        names = [shop.catalog.types[i].name for i in order.tolist()]
        items = [goals.draw_item(name, axes, level, key, shop, random) for name in names[:count]]
        sold_out = [i for i in range(count) if random.random() < axes.p_oos]
        switching = bool(random.random() < axes.p_switch)
        free = [i for i in range(count) if i not in sold_out]
        switch = (
            goal_changes.draw_switch(items, free, names[count:], axes, level, key, shop, random)
            if switching
            else None
        )
        # What sells out is talked about, and shows in the tools: nothing about it may be withheld (law 8). A
        # product or option that will be exchanged is said in full for the same reason.
        fixed = {
            *sold_out,
            *([switch.subject] if switch and switch.kind in ("option", "replace", "add") else []),
        }
        withheld = {  # in order of drawing
            (i, name): None
            for i, item in enumerate(items)
            if i not in fixed
            for name in item["slots"]
            if name not in ("type", "quantity") and random.random() < axes.p_missing
        }
        asks = int(bool(withheld))
        optional = any("option" in item["slots"] for item in items)
        need = Need(
            turns=asks + 2 + optional, asks=asks, calls=2 * count + sum("option" in i["slots"] for i in items)
        )
        events = [goal_changes.draw_shortage(i, items, count, need, key, shop, random) for i in sold_out]
        if switch:
            events.append(replace(switch, turn=int(random.integers(1, need.turns + 1))))
        happening = tuple(sorted((e for e in events if e), key=lambda e: (e.turn, e.subject)))
        told = [
            {name: value for name, value in item["slots"].items() if (i, name) not in withheld}
            for i, item in enumerate(items)
        ]
        visits = goals.draw_visits(items, told, names[count + 1 :], axes, key, shop)
        truth = {
            "items": [goals.pairs(item["slots"]) for item in items],
            "withheld": [[i, name] for i, name in withheld],
        }
        return Draft(told, not withheld, {"visits": visits}, truth, need, happening)

    def begin(self, task: Task, shop: Shop) -> list[Want]:
        return [want_of(i, dict(slots)) for i, slots in enumerate(task.truth["items"])]

    def slots(self, task: Task) -> tuple[list[Slot], list[Slot]]:
        hidden = {(subject, name) for subject, name in task.truth["withheld"]}
        stated: list[Slot] = []
        withheld: list[Slot] = []
        for i, slots in enumerate(task.truth["items"]):
            for name, value in slots:
                if name != "type":
                    (withheld if (i, name) in hidden else stated).append(Slot(i, name, value))
        return stated, withheld

    def type_name(self, task: Task, state: list[Want], subject: int) -> str:
        items = task.truth["items"]
        if subject < len(items):
            return str(dict(items[subject])["type"])
        return next(want.type for want in state if want.subject == subject)

    def occur(self, episode: "Job", event: Event) -> None:
        goal_changes.occur(event, episode.world)

    def heard(self, episode: "Job", event: Event) -> bool:
        return goal_changes.run_into(event, episode.world)

    def fire(self, episode: "Job", event: Event) -> list[Act] | None:
        return goal_changes.apply(event, episode.state, episode.kernel.ledger, episode.world)

    def faults(self, episode: "Job") -> list[Fault]:
        return faults(episode.state, episode.world)

    def missing(self, episode: "Job") -> list[Act]:
        held = match(episode.state, episode.world).held
        return [
            Act("missing", want.type)
            for want, units in zip(episode.state, held, strict=True)
            if units == 0 and want.subject not in episode.kernel.skipped
        ]

    def verify(self, episode: "Job") -> Verdict:
        wants: list[Want] = episode.state
        world = episode.world
        matched = match(wants, world)
        got, units = sum(world.cart.values()), sum(want.quantity for want in wants)
        right = sum(matched.held)
        correct = right == got == units
        claims: list[Any] = [product_id for product_id, _ in world.cart]
        claims += [line for line in world.cart if line[1] is not None]
        if correct:
            why = f"the cart holds exactly the {units} units wanted"
        else:
            why = f"{right} of {units} wanted units are in the cart" + (
                f", {got - right} others" if got > right else ""
            )
            wrong = [f"{f.act.kind}: {f.act.type or f.act.seen}" for f in self.faults(episode)]
            wrong += [f"missing: {w.type}" for w, h in zip(wants, matched.held, strict=True) if h == 0]
            why += f" ({'; '.join(wrong)})" if wrong else ""
        return Verdict(cart_credit(right, matched.near, got, units), correct, why, tuple(claims))

    def solver(self, episode: "Job | Episode") -> Player:
        def truth() -> Iterator[tuple[str, dict[str, Any]]]:
            for want in episode.state:
                slots = {**want.slots, "quantity": want.quantity}
                yield want.type, {**slots, "option": want.option} if want.option else slots

        return KnowingShopper(truth)

    def fair_player(self, shop: Shop, slips: Slips | None = None) -> Player:
        return FairShopper(lexicon_of(shop.catalog), slips)

    def chance(self, task: Task, shop: Shop) -> float:
        """Right by position alone: taking visits, one unit each, as often as the customer's patience allows.

        One item: a first pick and `PATIENCE` more, each after a correction. Several: all right at once.
        """
        visits, items = task.world["visits"], [dict(slots) for slots in task.truth["items"]]
        if any(slots.get("quantity", 1) != 1 or "option" in slots for slots in items):
            return 0.0
        rows = [row for row in map(shop.catalog.row, visits) if row is not None]
        good = [
            sum(shop.catalog.satisfies(row, want_of(0, slots).constraints) for row in rows) for slots in items
        ]
        if len(items) == 1:
            picks = min(PATIENCE + 1, len(rows) - good[0])
            return 1.0 - math.comb(len(rows) - good[0], picks) / math.comb(len(rows), picks)
        return min(1.0, math.prod(good) / math.comb(len(rows), len(items)))

    def twin(self, task: Task, shop: Shop, random: np.random.Generator) -> Task | None:
        """Another option, or another product from the visits that fits all that was stated."""
        items = [dict(slots) for slots in task.truth["items"]]
        changed = False
        for i, slots in enumerate(items):
            hidden = [name for subject, name in task.truth["withheld"] if subject == i]
            if "option" in hidden:
                than = slots["option"]
                slots["option"] = goals.other_option(slots["type"], task.key, shop, random, than)
                changed = True
            identity = [name for name in hidden if name != "option"]
            stated = {n: v for n, v in slots.items() if n not in hidden}
            for product_id in task.world["visits"] if identity else ():
                row = shop.catalog.row(product_id)
                if row is None or not shop.catalog.satisfies(row, constraints_of(slots["type"], stated)):
                    continue
                other = goals.slot_values(shop, row, identity, slots)
                if other is not None and any(other[name] != slots[name] for name in identity):
                    slots.update(other)
                    changed = True
                    break
        told = {**task.truth, "items": [goals.pairs(slots) for slots in items]}
        return replace(task, truth=told) if changed else None
