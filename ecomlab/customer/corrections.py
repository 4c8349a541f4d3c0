"""What the customer sees is wrong with a cart."""

from collections.abc import Sequence

from ecomlab.customer.acts import Act, Fault, Slot
from ecomlab.world.cart import Want, match
from ecomlab.world.state import World


def faults(wants: Sequence[Want], world: World) -> list[Fault]:
    """What is wrong with the cart, one fault a thing; units that are merely not there yet are none."""
    matched = match(wants, world)
    found: list[Fault] = []
    for (product_id, variant), extra in matched.extra.items():
        row = world.row(product_id)
        mine = [
            (want, held)
            for want, held in zip(wants, matched.held, strict=True)
            if want.type == world.catalog.type_of(row).name
        ]
        found.append(_fault(mine, world, row, variant, extra))
    blamed = {fault.subject for fault in found}
    for want, held in zip(wants, matched.held, strict=True):
        if 0 < held < want.quantity and want.subject not in blamed:
            act = Act("wrong quantity", want.type, seen=str(held), number=want.quantity)
            found.append(Fault(act, subject=want.subject))
    first = {fault.thing: fault for fault in reversed(found)}
    return list(reversed(first.values()))


def _fault(
    mine: Sequence[tuple[Want, int]], world: World, row: int, variant: str | None, extra: int
) -> Fault:
    """What is wrong with `extra` units of a line; `mine` are the wants of its type with the units that they hold."""
    for want, _ in mine:
        if want.option in (None, variant) and world.catalog.satisfies(row, want.constraints):
            act = Act("wrong quantity", want.type, seen=str(want.quantity + extra), number=want.quantity)
            return Fault(act, subject=want.subject)
    lacking = [want for want, held in mine if held < want.quantity]
    for want in lacking:
        if world.catalog.satisfies(row, want.constraints):
            act = Act(
                "wrong option" if variant else "no option", want.type, {"option": want.option}, variant or ""
            )
            return Fault(act, (Slot(want.subject, "option", want.option),), want.subject)
    if not lacking:
        title = world.catalog.title(row)
        return Fault(Act("not wanted", seen=f"{title} ({variant})" if variant else title))
    want = lacking[0]
    broken = {
        c.field: want.slots[c.field]
        for c in want.constraints
        if c.field != "type" and not world.catalog.satisfies(row, (c,))
    }
    slots = tuple(Slot(want.subject, name, value) for name, value in broken.items())
    act = Act("wrong product", want.type, broken, seen=f"The {world.catalog.title(row)}")
    return Fault(act, slots, want.subject)
