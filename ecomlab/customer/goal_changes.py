"""Changes of mind and shortages: drawn with the task, later applied to what is wanted, and said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.customer.acts import Act
from ecomlab.customer.goal_state import Ledger
from ecomlab.customer.goals import alternative, draw_item, other_option, pairs
from ecomlab.difficulty import Difficulty
from ecomlab.task import Event, Need
from ecomlab.world.cart import Want, constraints_of, match, want_of, without_type
from ecomlab.world.state import World


def draw_shortage(
    i: int,
    items: Sequence[Mapping[str, Any]],
    count: int,
    need: Need,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> Event | None:
    """An item sells out after a turn in which it could have been seen, before the fair player's last two turns."""
    slots = items[i]["slots"]
    option, quantity = slots.get("option"), slots.get("quantity", 1)
    reactions = ["replace"]
    reactions += ["option"] if option else []
    reactions += ["quantity"] if quantity > 1 else []
    reactions += ["drop"] if count > 1 and i > 0 else []  # the first item stays, so that a cart is left
    reaction = reactions[int(random.integers(len(reactions)))]
    data: dict[str, Any] = {"reaction": reaction, "option": option, "left": 0}
    data["constraints"] = [c.to_list() for c in constraints_of(slots["type"], want_of(i, slots).slots)]
    chain, calls = 1, 3
    if reaction == "option":
        data["to"] = other_option(slots["type"], key, shop, random, than=option)
    elif reaction == "quantity":
        data["left"] = int(random.integers(1, quantity))
    elif reaction == "replace":
        data["to"] = alternative(slots, shop, random)
        if data["to"] is None:
            return None
        chain = 2
    silent = bool(random.random() < 0.5)
    turn = int(random.integers(1, need.turns))
    return Event(turn, "shortage", i, chain, calls, silent, data)


def draw_switch(
    items: Sequence[Mapping[str, Any]],
    free: Sequence[int],
    spare_types: Sequence[str],
    axes: Difficulty,
    level: int,
    key: tuple[Any, ...],
    shop: Shop,
    random: np.random.Generator,
) -> Event | None:
    """The customer changes their mind once, about an item that does not sell out. The turn is set later."""
    kinds = ["add"] if spare_types else []
    kinds += ["quantity", "replace"] if free else []
    kinds += ["option"] if any("option" in items[i]["slots"] for i in free) else []
    kinds += ["drop"] if any(i > 0 for i in free) else []
    if not kinds:
        return None
    kind = kinds[int(random.integers(len(kinds)))]
    if kind == "add":
        slots = draw_item(spare_types[0], axes, level, key, shop, random)["slots"]
        return Event(0, "add", len(items), 3 if "option" in slots else 2, 3, data={"slots": pairs(slots)})
    able = [
        i for i in free if (kind != "option" or "option" in items[i]["slots"]) and (kind != "drop" or i > 0)
    ]
    i = able[int(random.integers(len(able)))]
    slots = items[i]["slots"]
    if kind == "quantity":
        before = slots.get("quantity", 1)
        others = [q for q in range(1, 5) if q != before]
        return Event(0, kind, i, 1, 1, data={"quantity": others[int(random.integers(len(others)))]})
    if kind == "option":
        return Event(
            0, kind, i, 1, 3, data={"to": other_option(slots["type"], key, shop, random, slots["option"])}
        )
    if kind == "drop":
        return Event(0, kind, i, 1, 1)
    to = alternative(slots, shop, random)
    return None if to is None else Event(0, kind, i, 2, 3, data={"to": to})


def occur(event: Event, world: World) -> None:
    """What happens in the world, before anybody speaks of it."""
    if event.kind == "shortage":
        world.run_short(_affected(event), event.data["option"], event.data["left"])


def run_into(event: Event, world: World) -> bool:
    """Whether the agent has seen or met a shortage in the turn just played."""
    return any(
        event.data["option"] in (None, option) and world.catalog.satisfies(row, _affected(event))
        for row, option in world.touched
    )


def apply(event: Event, wants: list[Want], ledger: Ledger, world: World) -> list[Act] | None:
    """Change what is wanted; the customer's words about it, or None when it changed nothing they care about."""
    if event.kind == "add":
        wants.append(want_of(event.subject, dict(event.data["slots"])))
        slots = without_type(dict(event.data["slots"]))
        ledger.restate(event.subject, slots)
        return [Act("add", wants[-1].type, slots)]
    want = next((w for w in wants if w.subject == event.subject), None)
    if want is None:
        return None
    if event.kind == "shortage":
        return _sold_out(wants, want, event.data, ledger, match(wants, world).held[wants.index(want)])
    said = _change(wants, want, event.kind, event.data, ledger)
    return [replace(said, kind="exchange") if said.kind == "replace" else said]


def _affected(event: Event) -> tuple[Constraint, ...]:
    return tuple(Constraint.from_list(c) for c in event.data["constraints"])


def _sold_out(
    wants: list[Want], want: Want, data: Mapping[str, Any], ledger: Ledger, held: int
) -> list[Act] | None:
    """What the customer then wants. Units already in the cart stay valid, and with some there they want no others."""
    if held >= want.quantity:
        return None
    if held or data["reaction"] == "quantity":
        enough = min(want.quantity, held + data["left"])
        _change(wants, want, "quantity", {"quantity": enough}, ledger)
        left = data["left"]
        news = Act("only left", want.type, number=left) if left else Act("sold out", want.type, _option(data))
        return [news, Act("settle quantity", want.type, number=enough)]
    said = _change(wants, want, data["reaction"], data, ledger)
    settled = {"drop": "give up", "option": "settle option"}
    return [Act("sold out", want.type, _option(data)), replace(said, kind=settled.get(said.kind, said.kind))]


def _option(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"option": data["option"]} if data["option"] else {}


def _change(wants: list[Want], want: Want, kind: str, data: Mapping[str, Any], ledger: Ledger) -> Act:
    """Change a want and say so; the ledger hears it too."""
    at = wants.index(want)
    if kind == "quantity":
        wants[at] = replace(want, quantity=data["quantity"])
        ledger.restate(want.subject, {"quantity": data["quantity"]})
        return Act("quantity", want.type, number=data["quantity"])
    if kind == "option":
        wants[at] = replace(want, option=data["to"])
        ledger.restate(want.subject, {"option": data["to"]})
        return Act("option", want.type, {"option": data["to"]})
    ledger.forget(want.subject)
    if kind == "drop":
        del wants[at]
        return Act("drop", want.type)
    slots = {**dict(data["to"]), "quantity": want.quantity} if want.quantity > 1 else dict(data["to"])
    wants[at] = want_of(want.subject, slots)
    ledger.restate(want.subject, without_type(slots))
    return Act("replace", want.type, without_type(slots))
