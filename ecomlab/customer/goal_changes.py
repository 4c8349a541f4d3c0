"""Changes of mind: drawn with the task, later applied to the goal, and put into acts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ecomlab.catalog import Shop
from ecomlab.customer.acts import Act
from ecomlab.customer.goal_state import GoalState
from ecomlab.customer.goals import draw_item, other_options
from ecomlab.customer.shortages import Left, alternative_left
from ecomlab.customer.templates import Phrases
from ecomlab.difficulty import Difficulty
from ecomlab.seeding import pick
from ecomlab.task import ACT, LOOK, Goal, GoalChange, SellOut, TaskKey
from ecomlab.world.cart import without_type


def draw_change(
    goal: Goal,
    free: Sequence[int],
    lefts: Mapping[int, Left],
    spare_types: Sequence[str],
    axes: Difficulty,
    key: TaskKey,
    shop: Shop,
    random: np.random.Generator,
) -> GoalChange | None:
    """Draw a change of mind about one of the `free` items, or an item of a spare type. What is wanted then is left,
    after the sell-outs that `lefts` has by item."""
    optional = [i for i in free if goal.get("option", item=i)]
    kinds = ["add"] if spare_types else []
    kinds += ["quantity", "replace"] if free else []
    kinds += ["option"] if optional else []
    kinds += ["drop"] if any(i > 0 for i in free) else []
    if not kinds:
        return None
    kind, moment = pick(random, kinds), pick(random, (LOOK, ACT))
    types = tuple(str(goal.get("type", item=i)) for i in goal.items)
    if kind == "add":
        slots = draw_item(spare_types[0], axes, key, shop, random)
        turns = 3 if "option" in slots else 2
        return GoalChange(
            how="add", item=len(types), slots=slots, moment=moment, about=types, turns=turns, calls=3
        )
    able = [i for i in free if (kind != "option" or i in optional) and (kind != "drop" or i > 0)]
    i = pick(random, able)
    slots = goal.of(i)
    left = lefts.get(i) or Left(SellOut(types=(slots["type"],), left=()), shop)
    change = GoalChange(item=i, moment=moment, about=(slots["type"],))
    if kind == "drop":
        return replace(change, how="drop")
    if kind == "replace":
        to = alternative_left(slots, shop, random, left)
        return None if to is None else replace(change, how="replace", slots=to, turns=2, calls=3)
    values: list[Any] = [q for q in range(1, 5) if q != slots.get("quantity", 1)]
    if kind == "option":
        values = other_options(slots, shop)
    new = [{kind: value} for value in values]
    new = [v for v in new if left.units({**slots, **v}) >= (slots | v).get("quantity", 1)]
    return replace(change, slots=pick(random, new), calls=3 if kind == "option" else 1) if new else None


def apply(
    event: GoalChange,
    goal: Goal,
    state: GoalState,
    phrases: Phrases,
    type_name: Callable[[int], str],
) -> tuple[Goal, list[Act]] | None:
    """Return the goal after a change of mind and the acts that tell of it; None if what it is about is not wanted any
    more."""
    if event.how != "add" and event.item not in goal.items:
        return None
    if event.how == "anew":
        return _turn_to(event, goal, state, phrases)
    kind = "exchange" if event.how == "replace" else ""
    return _change(event, goal, state, phrases, type_name(event.item), kind)


SETTLED = {"drop": "give up", "replace": "replace", "option": "settle option", "quantity": "settle quantity"}
"""Kinds of the acts that say what is wanted instead."""


def settle(
    event: GoalChange, goal: Goal, state: GoalState, phrases: Phrases, type_name: str
) -> tuple[Goal, list[Act]]:
    """Return the goal of a customer who has heard of a shortage, and the acts that say what they want instead."""
    how = event.how if event.how != "set" else next(iter(event.slots))
    return _change(event, goal, state, phrases, type_name, SETTLED[how])


def _change(
    event: GoalChange, goal: Goal, state: GoalState, phrases: Phrases, type_name: str, kind: str = ""
) -> tuple[Goal, list[Act]]:
    """Change the goal and the goal state, and say so by an act of this kind, or of the usual one."""
    if event.asks and not event.slots:
        return goal.apply(event), [Act("ask agent", type_name, event.asks)]
    slots = dict(event.slots)
    if event.how == "drop":
        state.forget(event.item)
        return goal.drop_item(event.item), [Act(kind or "drop", type_name)]
    hidden = []
    if event.how == "replace":
        quantity = goal.get("quantity", 1, event.item)
        slots |= {"quantity": quantity} if quantity > 1 else {}
        if kind == "exchange":  # a change of mind does not tell how many where that is withheld
            hidden = [slot for slot in state.withheld if (slot.item, slot.name) == (event.item, "quantity")]
        state.forget(event.item)
    kept = {
        name: value
        for name, value in slots.items()
        if name not in phrases.slots or not phrases.slots[name].once
    }
    untold = {slot.name for slot in state.withheld if slot.item == event.item}
    after = goal.apply(replace(event, slots=kept))
    state.unsay(event.forgets)
    first = {name: slots.pop(name) for name in event.known}
    unsaid = any(slot.item == event.item and slot.name in first for slot in state.withheld)
    before = [Act("elaborate", type_name, first)] if unsaid else []
    state.restate(event.item, without_type(kept))
    state.hide(hidden)
    slots = {name: value for name, value in slots.items() if name not in {slot.name for slot in hidden}}
    if not kept:  # something is only said
        return after, [Act("elaborate", type_name, slots)]
    if event.how in ("add", "replace"):
        return after, [Act(kind or event.how, slots.get("type", type_name), without_type(slots))]
    if (
        not (kind or event.known) and kept.keys() <= untold
    ):  # no change, for somebody who has heard nothing of it
        return after, [Act("mention", type_name, kept)]
    if slots.keys() == {"quantity"}:
        return after, [Act(kind or "quantity", type_name, number=slots["quantity"])]
    if slots.keys() == {"option"}:
        return after, [Act(kind or "option", type_name, slots)]
    if "twist" in slots:  # a fact, not a wish
        return after, [Act("elaborate", type_name, slots)]
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
    said |= event.asks
    *announcements, description = phrases.anew
    acts = [Act(announcement) for announcement in announcements]
    acts += [Act(description, kind, described)] if kind else []
    return goal.apply(event), [*acts, *([Act("elaborate", kind, said)] if said else [])]
