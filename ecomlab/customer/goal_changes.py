"""Goal changes and shortages: drawn with the task, later applied to the goal and the world, and put into acts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Constraint, Shop
from ecomlab.customer.acts import Act
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.goals import alternative, draw_item, other_option
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick
from ecomlab.task import Event, Goal, GoalChange, Need, SellOut, Shortage, TaskKey
from ecomlab.world.cart import constraints_of, identity_of, match, wants_of, without_type
from ecomlab.world.state import World


def draw_shortage(
    i: int, goal: Goal, need: Need, key: TaskKey, shop: Shop, random: np.random.Generator
) -> Shortage | None:
    """Draw a shortage of an item, after a turn in which it could have been seen and before the last of `need`; None
    where the item has no replacement."""
    slots = goal.of(i)
    option, quantity, left = slots.get("option"), slots.get("quantity", 1), 0
    reactions = ["replace"]
    reactions += ["option"] if option else []
    reactions += ["quantity"] if quantity > 1 else []
    reactions += ["drop"] if i > 0 else []  # the first item stays, so that a cart is left
    reaction = pick(random, reactions)
    then: dict[str, Any] = {}
    if reaction == "option":
        then = {"option": other_option(slots["type"], key, shop, random, than=option)}
    elif reaction == "quantity":
        left = int(random.integers(1, quantity))
    elif reaction == "replace":
        to = alternative(slots, shop, random)
        if to is None:
            return None
        then = to
    silent = bool(random.random() < 0.5)
    return Shortage(
        turn=int(random.integers(1, need.turns)),
        item=i,
        chain=2 if reaction == "replace" else 1,
        calls=3,
        silent=silent,
        how=reaction if reaction in ("drop", "replace") else "set",  # type: ignore[arg-type]
        slots=then,
        constraints=[c.to_list() for c in constraints_of(slots["type"], identity_of(slots))],
        option=option,
        left=left,
    )


def draw_change(
    goal: Goal,
    free: Sequence[int],
    spare_types: Sequence[str],
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> GoalChange | None:
    """Draw a change of mind about one of the `free` items, or an item of a spare type; its turn is set later."""
    optional = [i for i in free if goal.get("option", item=i)]
    kinds = ["add"] if spare_types else []
    kinds += ["quantity", "replace"] if free else []
    kinds += ["option"] if optional else []
    kinds += ["drop"] if any(i > 0 for i in free) else []
    if not kinds:
        return None
    kind = pick(random, kinds)
    if kind == "add":
        slots = draw_item(spare_types[0], axes, key, shop, random)
        chain = 3 if "option" in slots else 2
        return GoalChange(how="add", item=len(goal.items), slots=slots, chain=chain, calls=3)
    able = [i for i in free if (kind != "option" or i in optional) and (kind != "drop" or i > 0)]
    i = pick(random, able)
    slots = goal.of(i)
    if kind == "quantity":
        others = [q for q in range(1, 5) if q != slots.get("quantity", 1)]
        return GoalChange(item=i, slots={"quantity": pick(random, others)})
    if kind == "option":
        other = other_option(slots["type"], key, shop, random, slots["option"])
        return GoalChange(item=i, slots={"option": other}, calls=3)
    if kind == "drop":
        return GoalChange(how="drop", item=i)
    to = alternative(slots, shop, random)
    return None if to is None else GoalChange(how="replace", item=i, slots=to, chain=2, calls=3)


def occur(event: Event, world: World) -> None:
    """Apply an event to the world; the customer has not heard of it yet."""
    if isinstance(event, SellOut):
        for kind in event.types:
            world.sell_out(kind, event.share)
    elif isinstance(event, Shortage):
        world.run_short(_affected(event), event.option, event.left)


def run_into(event: Event, world: World) -> bool:
    """Tell whether the agent came across a shortage in the turn just played."""
    return isinstance(event, Shortage) and any(
        event.option in (None, option) and world.catalog.satisfies(row, _affected(event))
        for row, option in world.touched
    )


def apply(
    event: Event,
    goal: Goal,
    state: GoalState,
    phrases: Phrases,
    type_name: Callable[[int], str],
    world: World,
) -> tuple[Goal, list[Act]] | None:
    """Return the goal after an event and the acts that tell of it; None if it changed nothing that is wanted."""
    if isinstance(event, SellOut):
        return goal, [Act("check stock", event.types[0])]
    if not isinstance(event, GoalChange) or (event.how != "add" and event.item not in goal.items):
        return None
    if isinstance(event, Shortage):
        return _run_short(event, goal, state, world)
    if event.how == "anew":
        return _turn_to(event, goal, state, phrases)
    kind = "exchange" if event.how == "replace" else ""
    return _change(event, goal, state, phrases, type_name(event.item), kind)


def _affected(event: Shortage) -> tuple[Constraint, ...]:
    return tuple(Constraint.from_list(c) for c in event.constraints)


def _run_short(event: Shortage, goal: Goal, state: GoalState, world: World) -> tuple[Goal, list[Act]] | None:
    """Apply a shortage. Units already in the cart stay wanted; a customer who has some wants nothing else instead."""
    wants = wants_of(goal)
    at = next(n for n, want in enumerate(wants) if want.item == event.item)
    want, held = wants[at], match(wants, world).held[at]
    if held >= want.quantity:
        return None
    option = {"option": event.option} if event.option else {}
    news = Act("sold out", want.type, option)
    if held or (event.how == "set" and not event.slots):
        enough = min(want.quantity, held + event.left)
        change = GoalChange(item=event.item, slots={"quantity": enough})
        after, _ = _change(change, goal, state, Phrases(), want.type)
        if event.left:
            news = Act("only left", want.type, number=event.left)
        return after, [news, Act("settle quantity", want.type, number=enough)]
    kind = {"drop": "give up", "set": "settle option"}.get(event.how, "")
    after, said = _change(event, goal, state, Phrases(), want.type, kind)
    return after, [news, *said]


def _change(
    event: GoalChange, goal: Goal, state: GoalState, phrases: Phrases, type_name: str, kind: str = ""
) -> tuple[Goal, list[Act]]:
    """Change the goal and the goal state, and say so by an act of this kind, or of the usual one."""
    slots = dict(event.slots)
    if event.how == "drop":
        state.forget(event.item)
        return goal.without(event.item), [Act(kind or "drop", type_name)]
    if event.how == "replace":
        quantity = goal.get("quantity", 1, event.item)
        slots |= {"quantity": quantity} if quantity > 1 else {}
        state.forget(event.item)
    kept = {
        name: value
        for name, value in slots.items()
        if name not in phrases.slots or not phrases.slots[name].once
    }
    after = goal.changed(replace(event, slots=kept))
    state.unsay(event.forgets)
    first = {name: slots.pop(name) for name in event.known}
    unsaid = any(slot.item == event.item and slot.name in first for slot in state.withheld)
    before = [Act("elaborate", type_name, first)] if unsaid else []
    state.restate(event.item, without_type(kept))
    if event.how in ("add", "replace"):
        return after, [Act(kind or event.how, slots.get("type", type_name), without_type(slots))]
    if slots.keys() == {"quantity"}:
        return after, [Act(kind or "quantity", type_name, number=slots["quantity"])]
    if slots.keys() == {"option"}:
        return after, [Act(kind or "option", type_name, slots)]
    return after, [*before, Act(kind or "change", type_name, slots)]


def _turn_to(event: GoalChange, goal: Goal, state: GoalState, phrases: Phrases) -> tuple[Goal, list[Act]]:
    """Replace the whole goal: nothing that was said before still holds."""
    slots = without_type(event.slots)
    told = {slot.name: slot.value for slot in (*state.stated, *state.revealed) if slot.item == event.item}
    state.forget(event.item)
    state.restate(event.item, slots)
    kind = event.slots.get("type", "")
    described = {name: value for name, value in slots.items() if name not in phrases.slots}
    # An empty wish is left out where that is what the customer said before.
    said = {n: v for n, v in slots.items() if n in phrases.slots and (v != [] or told.get(n) != [])}
    *announcements, description = phrases.anew
    acts = [Act(announcement) for announcement in announcements]
    acts += [Act(description, kind, described)] if kind else []
    return goal.changed(event), [*acts, *([Act("elaborate", kind, said)] if said else [])]
