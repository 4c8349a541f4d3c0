"""Tools for the customer's orders. Docstrings are written to the model; results are JSON objects."""

from typing import Annotated, Any

from pydantic import Field

from ecomlab.tool import RefusedError, tool
from ecomlab.world.orders.history import find_line, find_order, standing_now, status_of
from ecomlab.world.state import World

OrderId = Annotated[str, Field(description="As shown.")]
LineId = Annotated[str, Field(description="As shown.")]
PARCEL = ("status", "shipped", "delivered", "first_expected", "expected")
"""Fields of a parcel in the order shown."""


@tool(lists={"orders": "order_id"})
def order_list(world: World) -> dict[str, Any]:
    """List the customer's orders, the newest first: when each was placed and what was in it."""
    orders = []
    for order in world.given.get("orders", ()):
        items = []
        for line in order["lines"]:
            row = world.row(line["product_id"])
            kind = world.catalog.type_of(row).name
            items.append({"title": world.catalog.title(row), "type": kind, "quantity": line["quantity"]})
        orders.append({"order_id": order["order_id"], "placed": order["placed"], "items": items})
    return {"orders": orders}


@tool(lists={"lines": ("line_id", "product_id", "variant_id")}, tells="status")
def order_get_status(world: World, order_id: OrderId) -> dict[str, Any]:
    """Show one order: its status, its dated parcels, and its lines with their ids and the price of one."""
    order = find_order(world, order_id)
    lines = []
    for line in order["lines"]:
        row = world.row(line["product_id"])
        world.shown.add(line["product_id"])
        lines.append(
            {
                "line_id": line["line_id"],
                "product_id": line["product_id"],
                "title": world.catalog.title(row),
                "type": world.catalog.type_of(row).name,
                "attributes": world.catalog.attributes(row),
                "variant_id": line["variant_id"],
                "quantity": line["quantity"],
                "returned": line["returned"] + world.returns.get((order_id, line["line_id"]), 0),
                "price": None if line["price_cents"] is None else line["price_cents"] / 100,
                "parcel": line["parcel"],
            }
        )
        if line["variant_id"] is not None:
            world.shown_pairs.add((line["product_id"], line["variant_id"]))
    parcels = [
        {"parcel": number, **{name: parcel[name] for name in PARCEL if name in parcel}}
        for number, parcel in enumerate(order["parcels"], 1)
    ]
    return {
        "order_id": order_id,
        "placed": order["placed"],
        "status": status_of(order),
        "parcels": parcels,
        "lines": lines,
    }


@tool
def return_check_eligibility(world: World, order_id: OrderId, line_id: LineId) -> dict[str, Any]:
    """Show the facts that bear on a return of a line: when it was delivered, the standard window of its department and
    whether that is open, units left. The policy book has the exceptions and the fees."""
    order, line = find_line(world, order_id, line_id)
    found = standing_now(world, order, line)
    last = found.last_day.isoformat() if found.last_day else None
    return {
        "order_id": order_id,
        "line_id": line_id,
        "checked": world.given["today"],
        "delivered": found.delivered.isoformat() if found.delivered else None,
        "standard_window_days": found.window,
        "standard_last_day": last if found.window else "never",
        "standard_window_open": found.is_open,
        "units_returned": found.returned,
        "units_left": found.left,
    }


@tool(acts=True)
def return_initiate(
    world: World,
    order_id: OrderId,
    line_id: LineId,
    quantity: Annotated[int, Field(description="Units.")] = 1,
) -> dict[str, Any]:
    """Start the return of units of a line. It does not check the policy book, nor whether the customer agrees."""
    order, line = find_line(world, order_id, line_id)
    found = standing_now(world, order, line)
    if found.delivered is None:
        raise RefusedError("this has not been delivered, there is nothing to send back; see order_get_status")
    if not found.left:
        raise RefusedError(
            "all units of this line have been returned already; see return_check_eligibility, or undo what was "
            "started here with return_cancel"
        )
    if not 1 <= quantity <= found.left:
        most = "1 unit" if found.left == 1 else f"1 to {found.left} units"
        raise RefusedError(f"{most} of this line can be returned, not {quantity}")
    world.agreed_before[order_id, line_id] = tuple(world.agreed)
    world.returns[order_id, line_id] = world.returns.get((order_id, line_id), 0) + quantity
    world.changes += 1
    return _returns(world)


@tool(undoes=return_initiate)
def return_cancel(world: World, order_id: OrderId, line_id: LineId) -> dict[str, Any]:
    """Undo every return of a line started in this conversation."""
    find_line(world, order_id, line_id)
    if world.returns.pop((order_id, line_id), None) is None:
        raise RefusedError(
            "no return of this line was started in this conversation, there is nothing to cancel"
        )
    world.changes += 1
    return _returns(world)


def _returns(world: World) -> dict[str, Any]:
    return {
        "returns": [
            {"order_id": order_id, "line_id": line_id, "quantity": quantity}
            for (order_id, line_id), quantity in world.returns.items()
        ]
    }
