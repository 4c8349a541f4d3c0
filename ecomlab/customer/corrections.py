"""Finding the mistakes in the world that the customer can see."""

from collections.abc import Collection, Sequence
from typing import Any

from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.templates import Phrases
from ecomlab.slots import slot_type
from ecomlab.task import Goal, Slot
from ecomlab.world.cart import Want, match, wants_of
from ecomlab.world.orders.history import find_line
from ecomlab.world.orders.lines import line_value, wanted_returns
from ecomlab.world.plain import plain
from ecomlab.world.state import World

MOST_REVEALED = 3
"""Most withheld slots that one correction reveals."""


def mistakes(
    goal: Goal,
    phrases: Phrases,
    acts_on: Collection[str],
    world: World,
    withheld: Collection[Slot] = (),
    changed: Collection[int] = (),
) -> list[Mistake]:
    """Find the mistakes in what the agent's tools act on: the cart, the returns. `withheld` is still to be told; what
    is wrong with items that have `changed` is named, however far it is from what is wanted now."""
    found = _in_cart(goal, world, withheld, changed) if "cart" in acts_on else []
    return found + (_in_returns(goal, phrases, world, withheld, changed) if "returns" in acts_on else [])


def right(goal: Goal, acts_on: Collection[str], world: World) -> int:
    """Count the units in cart and returns that are wanted there."""
    goal = plain(goal, world, conditions=False)
    held = sum(match(wants_of(goal), world).held) if "cart" in acts_on else 0
    if "returns" not in acts_on or not world.returns:
        return held
    wanted = wanted_returns(goal.of(), world)  # what the book allows is not theirs to know
    return held + sum(world.returns.get(line) == units for line, units in wanted.items())


def _is_far(said: Collection[str], broken: Collection[str]) -> bool:
    """Tell whether more than half of what was said does not hold: nobody who had listened would have taken this."""
    return 2 * len(set(said) & set(broken)) > len(said)


def _in_returns(
    goal: Goal, phrases: Phrases, world: World, withheld: Collection[Slot], changed: Collection[int]
) -> list[Mistake]:
    """Find the first return that is not what was asked for: of other units, or of another line."""
    if not world.returns:
        return []
    slots = goal.of()
    expected = wanted_returns(slots, world)
    for (order_id, line_id), units in world.returns.items():
        order, line = find_line(world, order_id, line_id)
        row = world.row(line["product_id"])
        wanted = expected.get((order_id, line_id))
        if wanted is not None:
            if units != wanted:
                act = Act("wrong units", slots["type"], {"units": wanted}, str(units), wanted)
                return [Mistake(act, (Slot(0, "units", wanted),), 0)]
            continue
        broken = {
            name: value
            for name, value in slots.items()
            if phrases.describe(name) and line_value(line, order, row, name, world.catalog) != value
        }
        if not broken:
            continue
        hidden = {slot.name for slot in withheld}
        if not changed and _is_far([n for n in slots if phrases.describe(n) and n not in hidden], broken):
            return [Mistake(Act("not this one", slots["type"], seen=line_id), (), 0)]
        broken.pop("type", None)
        return [_corrected("wrong line", 0, slots["type"], broken, withheld, world.catalog.title(row))]
    return []


def _in_cart(goal: Goal, world: World, withheld: Collection[Slot], changed: Collection[int]) -> list[Mistake]:
    """Find the mistakes in the cart, one per item; units that are merely not there yet are none."""
    wants = wants_of(plain(goal, world, conditions=False))
    matched = match(wants, world)
    found: list[Mistake] = []
    for (product_id, variant), extra in matched.extra.items():
        row = world.row(product_id)
        mine = [
            (want, held)
            for want, held in zip(wants, matched.held, strict=True)
            if want.type == world.catalog.type_of(row).name
        ]
        found.append(_mistake(goal, mine, world, row, variant, extra, withheld, changed))
    blamed = {mistake.item for mistake in found}
    for want, held in zip(wants, matched.held, strict=True):
        if 0 < held < want.quantity and want.item not in blamed:
            found.append(_quantity(goal, want, held))
    first = {mistake.name: mistake for mistake in reversed(found)}
    return list(reversed(first.values()))


def _quantity(goal: Goal, want: Want, units: int) -> Mistake:
    said = goal.get("quantity", want.quantity, want.item)
    act = Act("correct", want.type, {"quantity": said}, seen=str(units), number=want.quantity)
    return Mistake(act, (Slot(want.item, "quantity", said),), want.item)


def _mistake(
    goal: Goal,
    mine: Sequence[tuple[Want, int]],
    world: World,
    row: int,
    variant: str | None,
    extra: int,
    withheld: Collection[Slot],
    changed: Collection[int],
) -> Mistake:
    """Find all that is wrong with `extra` units of a line, in the words of the `goal`; `mine` pairs each want of its
    type with the units it has."""
    title = world.catalog.title(row)
    seen = f"{title} in {variant}" if variant else title
    for want, _ in mine:
        if want.option in (None, variant) and world.catalog.satisfies(row, want.constraints):
            return _quantity(goal, want, want.quantity + extra)
    lacking = [want for want, held in mine if held < want.quantity]
    if not lacking:
        return Mistake(Act("not wanted", seen=seen))
    want = min(lacking, key=lambda w: not world.catalog.satisfies(row, w.constraints))
    said = goal.of(want.item)
    broken: dict[str, Any] = {
        c.field: said.get(c.field, want.slots[c.field])
        for c in want.constraints
        if c.field != "type" and not world.catalog.satisfies(row, (c,))
    }
    hidden = {slot.name for slot in withheld if slot.item == want.item}
    told = [c.field for c in want.constraints if c.field != "type" and c.field not in hidden]
    if want.item not in changed and not hidden & broken.keys() and _is_far(told, broken):
        return Mistake(Act("not wanted", want.type, seen=seen), (), want.item)
    if want.option not in (None, variant):
        broken["option"] = want.option
    if extra != want.quantity:
        broken["quantity"] = said.get("quantity", want.quantity)
    return _corrected("correct", want.item, want.type, broken, withheld, seen)


def _corrected(
    kind: str, item: int, type_name: str, broken: dict[str, Any], withheld: Collection[Slot], seen: str
) -> Mistake:
    """Make the correction of all that was said before and at most three withheld slots; where what identifies the item
    is withheld, the customer has not said yet which one they mean."""
    hidden = [slot for slot in withheld if slot.item == item and slot.name in broken]
    if any(slot_type(slot.name).of != "line" for slot in hidden):
        return Mistake(Act("not told yet", type_name, seen=seen), (), item, too_early=True)
    kept = {
        name: value for name, value in broken.items() if Slot(item, name, value) not in hidden[MOST_REVEALED:]
    }
    never_said = {slot.name for slot in hidden}
    if kind == "correct" and kept.keys() <= never_said:  # "I asked for" would not be so
        kind = "mention"
    return Mistake(Act(kind, type_name, kept, seen=seen), tuple(hidden[:MOST_REVEALED]), item)
