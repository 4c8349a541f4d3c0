"""Finding the mistakes in the world that the customer can see, and what is still missing."""

from collections.abc import Collection, Sequence

from ecomlab.customer.acts import Act, Mistake
from ecomlab.customer.templates import Phrases
from ecomlab.task import Goal, Slot
from ecomlab.world.cart import Want, match, wants_of
from ecomlab.world.orders.history import find_line
from ecomlab.world.orders.lines import expected_returns, line_value
from ecomlab.world.state import World


def mistakes(goal: Goal, phrases: Phrases, acts_on: Collection[str], world: World) -> list[Mistake]:
    """Find the mistakes in what the agent's tools act on: the cart, the returns."""
    found = _in_cart(goal, world) if "cart" in acts_on else []
    return found + (_in_returns(goal, phrases, world) if "returns" in acts_on else [])


def missing(goal: Goal, given_up: Collection[int], acts_on: Collection[str], world: World) -> list[Act]:
    """Make the acts that ask for what is still missing when the agent says that it is done."""
    if "cart" not in acts_on:
        return [Act("hand in")]
    wants = wants_of(goal)
    held = match(wants, world).held
    return [
        Act("missing", want.type)
        for want, units in zip(wants, held, strict=True)
        if units == 0 and want.item not in given_up
    ]


def _in_returns(goal: Goal, phrases: Phrases, world: World) -> list[Mistake]:
    """Find the first return that is not what was asked for: of other units, or of another line."""
    if not world.returns:
        return []
    slots = goal.of()
    expected = expected_returns(slots, world)
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
        if not broken:  # the line meant, of which nothing may go back: no tool returned it
            continue
        broken.pop("type", None)
        act = Act("wrong line", slots["type"], broken, world.catalog.title(row))
        return [Mistake(act, tuple(Slot(0, name, value) for name, value in broken.items()), 0)]
    return []


def _in_cart(goal: Goal, world: World) -> list[Mistake]:
    """Find the mistakes in the cart, one per item; units that are merely not there yet are none."""
    wants = wants_of(goal)
    matched = match(wants, world)
    found: list[Mistake] = []
    for (product_id, variant), extra in matched.extra.items():
        row = world.row(product_id)
        mine = [
            (want, held)
            for want, held in zip(wants, matched.held, strict=True)
            if want.type == world.catalog.type_of(row).name
        ]
        found.append(_mistake(mine, world, row, variant, extra))
    blamed = {mistake.item for mistake in found}
    for want, held in zip(wants, matched.held, strict=True):
        if 0 < held < want.quantity and want.item not in blamed:
            act = Act("wrong quantity", want.type, seen=str(held), number=want.quantity)
            found.append(Mistake(act, item=want.item))
    first = {mistake.name: mistake for mistake in reversed(found)}
    return list(reversed(first.values()))


def _mistake(
    mine: Sequence[tuple[Want, int]], world: World, row: int, variant: str | None, extra: int
) -> Mistake:
    """Find what is wrong with `extra` units of a line; `mine` pairs each want of its type with the units it holds."""
    for want, _ in mine:
        if want.option in (None, variant) and world.catalog.satisfies(row, want.constraints):
            act = Act("wrong quantity", want.type, seen=str(want.quantity + extra), number=want.quantity)
            return Mistake(act, item=want.item)
    lacking = [want for want, held in mine if held < want.quantity]
    for want in lacking:
        if world.catalog.satisfies(row, want.constraints):
            act = Act(
                "wrong option" if variant else "no option", want.type, {"option": want.option}, variant or ""
            )
            return Mistake(act, (Slot(want.item, "option", want.option),), want.item)
    if not lacking:
        title = world.catalog.title(row)
        return Mistake(Act("not wanted", seen=f"{title} ({variant})" if variant else title))
    want = lacking[0]
    broken = {
        c.field: want.slots[c.field]
        for c in want.constraints
        if c.field != "type" and not world.catalog.satisfies(row, (c,))
    }
    slots = tuple(Slot(want.item, name, value) for name, value in broken.items())
    act = Act("wrong product", want.type, broken, seen=f"The {world.catalog.title(row)}")
    return Mistake(act, slots, want.item)
