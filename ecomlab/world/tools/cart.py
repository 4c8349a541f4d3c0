"""Tools of the cart."""

from typing import Annotated, Any

from pydantic import Field

from ecomlab.tool import tool
from ecomlab.world.state import World
from ecomlab.world.tools.catalog import ProductId, VariantId

Quantity = Annotated[int, Field(description="Units.")]


@tool(acts=True)
def cart_add(
    world: World, product_id: ProductId, variant_id: VariantId = None, quantity: Quantity = 1
) -> dict[str, Any]:
    """Put a product into the customer's cart, in a variant if they care which."""
    world.add(product_id, variant_id, quantity)
    return _changed(world, product_id, variant_id)


@tool(undoes=cart_add)
def cart_remove(world: World, product_id: ProductId, variant_id: VariantId = None) -> dict[str, Any]:
    """Take a line out of the cart."""
    world.remove(product_id, variant_id)
    return _changed(world, product_id, variant_id)


@tool(acts=True)
def cart_set_quantity(
    world: World, product_id: ProductId, quantity: Quantity, variant_id: VariantId = None
) -> dict[str, Any]:
    """Change a line's quantity."""
    world.set_quantity(product_id, variant_id, quantity)
    return _changed(world, product_id, variant_id)


@tool
def cart_view(world: World) -> dict[str, Any]:
    """Show the cart."""
    return {"cart": [_line(world, *line) for line in world.cart]}


def _changed(world: World, product_id: str, variant_id: str | None) -> dict[str, Any]:
    """Show the line that was changed, as it is now: with quantity 0 if it is gone."""
    return {"line": _line(world, product_id, variant_id)}


def _line(world: World, product_id: str, variant_id: str | None) -> dict[str, Any]:
    return {
        "product_id": product_id,
        "title": world.catalog.title(world.row(product_id)),
        "variant_id": variant_id,
        "quantity": world.cart.get((product_id, variant_id), 0),
    }
